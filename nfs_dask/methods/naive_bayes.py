"""From class counts to models: choose the features, then estimate what each is worth. Pure functions of arrays.

References: NFS20 (Askari et al. 2020) Theorems 1 and 2, (4), (7); NFS Theorems 3.1 and 3.2, (3), (6), (13).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeGuard

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError
from nfs_dask.methods.class_factors import ClassWeight, Weighing
from nfs_dask.models.model import NOT_JUDGED, Evidence
from nfs_dask.models.naive_bayes import NaiveBayesModel
from nfs_dask.solvers.naive_bayes import bernoulli, bisection, multinomial, objectives, panel_columns
from nfs_dask.solvers.naive_bayes.distinct import DistinctColumns, FeatureIndex
from nfs_dask.solvers.naive_bayes.gains import exact_sum, gains
from nfs_dask.solvers.naive_bayes.objectives import Objective, log_share
from nfs_dask.solvers.solution import Solution
from nfs_dask.statistics.class_totals import ArrayTotals, HeldTotals, PanelTotals, Totals
from nfs_dask.statistics.panels import HeldPanels
from nfs_dask.statistics.statistic import State

SOLVERS = ("cuts", "bisection")


@dataclass(frozen=True)
class Counts:
    """What naive Bayes needs to know of the documents."""

    classes: Array  # (C,) sorted labels
    documents: Array  # (C,) float64, documents of each class under their weights
    totals: Totals  # (C, m) int64 or float64: documents with each feature (Bernoulli), or totals of its values
    lengths: Array | None = None  # documents by their length, as `statistics.lengths` has it, where that was counted

    @property
    def seen(self) -> Array:
        """Positions of the classes that have documents."""
        return np.flatnonzero(self.documents > 0)

    @cached_property
    def seen_totals(self) -> Totals:
        return self.totals.of(self.seen)

    def grouped_counts(self, alpha: float) -> multinomial.GroupedCounts:
        """Return the totals as a multinomial solver takes them; those of the last smoothing are kept."""
        if self._kept.keys() != {alpha}:
            self._kept.clear()
            self._kept[alpha] = multinomial.GroupedCounts(*self._grouped, alpha)
        kept: multinomial.GroupedCounts = self._kept[alpha]
        return kept

    def scored_columns(self, alpha: float) -> bernoulli.ScoredColumns:
        """Return the totals as a Bernoulli solver takes them; those of the last smoothing are kept."""
        if self._kept.keys() != {alpha}:
            self._kept.clear()
            self._kept[alpha] = bernoulli.score_columns(*self._grouped, self.documents[self.seen], alpha)
        kept: bernoulli.ScoredColumns = self._kept[alpha]
        return kept

    @cached_property
    def _grouped(self) -> tuple[DistinctColumns, FeatureIndex | None]:
        return self.seen_totals.grouped()

    @cached_property
    def _kept(self) -> dict[float, Any]:
        return {}

    @classmethod
    def of(cls, classes: Array, documents: Array, totals: Array) -> Counts:
        """Counts in memory."""
        return cls(classes, documents, ArrayTotals(np.asarray(totals)))

    @classmethod
    def held(cls, classes: Array, weighed: Weighing, sums: State | HeldPanels) -> Counts:
        """Counts in memory, in one piece or in panels."""
        if isinstance(sums, HeldPanels):
            totals: Totals = HeldTotals(sums, weighed.pick)
        else:
            totals = ArrayTotals(np.asarray(weighed.pick(sums.arrays)))
        return cls(classes, weighed.documents, totals, sums.totals.get("lengths"))


@dataclass(frozen=True)
class Settings:
    """How many features to choose, and what to assume of what was not seen."""

    k: int
    alpha: float = 1.0
    always: Array | None = None  # features that are chosen in any case; they count in k
    fit_prior: bool = True
    class_prior: Array | None = None
    solver: str = "cuts"  # one of SOLVERS
    binarize: float | None = None
    class_weight: ClassWeight | None = None
    judged: bool = True  # whether the model's evidence is wanted, which may take as long as to find the features


def fit_bernoulli(counts: Counts, settings: Settings) -> NaiveBayesModel:
    """The best sparse Bernoulli model: exact for any number of classes.

    >>> counts = Counts.of(np.array(["ham", "spam"]), np.array([10.0, 10.0]), np.array([[8, 5, 1], [1, 5, 6]]))
    >>> fit_bernoulli(counts, Settings(k=1, alpha=0.0)).support.tolist()
    [0]
    """
    documents = counts.documents[counts.seen]
    solution, objective = _solve_bernoulli(counts, documents, settings)
    present, absent = _bernoulli_logs(counts.seen_totals.at(solution.support), documents, settings.alpha)
    return _model(
        "bernoulli",
        counts,
        settings,
        solution.support,
        _evidence(solution, objective, float(documents.sum()), None),
        present=_spread(present, counts, np.log(0.5)),
        absent=_spread(absent, counts, np.log(0.5)),
        threshold=0.0 if settings.binarize is None else float(settings.binarize),
        binary_only=settings.binarize is None,
    )


def fit_multinomial(counts: Counts, settings: Settings) -> NaiveBayesModel:
    """A sparse multinomial model, with a bound for how much better any other one can be.

    >>> counts = Counts.of(np.arange(2), np.array([9.0, 9.0]), np.array([[7, 7, 2, 6, 5, 6, 8], [1, 8, 1, 1, 7, 4, 0]]))
    >>> model = fit_multinomial(counts, Settings(k=2, alpha=0.0))
    >>> model.support.tolist(), model.evidence.gap
    ([4, 6], 0.0)
    """
    solution, objective, total = _solve_multinomial(counts, settings)
    point = np.zeros(len(counts.classes))
    point[counts.seen] = solution.point
    support, alpha = solution.support, settings.alpha
    logs = _possible(_log_shares(counts.seen_totals.at(support) + alpha, total))
    unseen = len(counts.seen) < len(counts.classes)
    even = np.logaddexp.reduce(logs[0]) - np.log(logs.shape[1]) if unseen and logs.size else 0.0
    return _model(
        "multinomial",
        counts,
        settings,
        solution.support,
        _evidence(solution, objective, total, point),
        present=_spread(logs, counts, even),
    )


def merged_multinomial(
    counts: Counts, settings: Settings, support: Array, shares: Array, evidence: Evidence
) -> NaiveBayesModel:
    """A multinomial model of some features, and of all others as one more.

    ``shares`` are probabilities (C, k) in the classes seen, or (C, k + 1) where there are others.
    """
    even = np.full(shares.shape[1], 1 / counts.totals.n_features)
    even[len(support) :] *= counts.totals.n_features - len(support)
    logs = _spread(np.log(shares), counts, np.log(even))
    rest = logs[:, -1].copy() if logs.shape[1] > len(support) else None
    present = logs[:, : len(support)].copy()
    return _model("error", counts, settings, support, evidence, present=present, rest=rest)


def null_multinomial(counted: multinomial.GroupedCounts) -> float:
    """Return the log likelihood at k = 0: sum of g log(g / S)."""
    g = counted.distinct.totals.sum(axis=0) + len(counted.distinct.totals) * counted.alpha
    return objectives.surprise(g, counted.distinct.sizes)


def mass_of(counted: multinomial.GroupedCounts) -> float:
    """Return the sum S of all counts under smoothing, about."""
    distinct = counted.distinct
    return (
        float((distinct.totals @ distinct.sizes.astype(np.float64)).sum())
        + distinct.totals.shape[0] * distinct.n_features * counted.alpha
    )


def bernoulli_scores(counts: Counts, alpha: float) -> Array:
    """Return the gain of each feature, (m,) float64; 0 for features absent from the documents."""
    return counts.scored_columns(alpha).scores


def multinomial_scores(counts: Counts, alpha: float, point: Array) -> Array:
    """Return the gain of each feature at the dual point (C,), (m,) float64; 0 for absent features."""
    counted = counts.grouped_counts(alpha)
    totals = counted.distinct.totals
    gain = np.where(totals.any(axis=0), gains(totals + alpha, point[counts.seen]), 0.0)
    return gain if counted.index is None else counted.index.spread(gain)


def _solve_bernoulli(counts: Counts, documents: Array, settings: Settings) -> tuple[Solution, Objective | None]:
    """Return the solution, and its log likelihood if that is wanted."""
    totals, k, alpha, always = counts.seen_totals, settings.k, settings.alpha, settings.always
    if _streams(totals):
        solution = bernoulli.solve_panels(totals, documents, k, alpha=alpha, always=always)
        if not settings.judged:
            return solution, None
        return solution, Objective(bernoulli.panels_objective(totals, documents, alpha, totals.at(solution.support)))
    scored = counts.scored_columns(alpha)
    solution = bernoulli.solve(scored, k, always=always)
    if not settings.judged:
        return solution, None
    columns = totals.at(solution.support)
    return solution, Objective(objectives.bernoulli(scored.distinct, documents, alpha, solution.support, columns))


def _solve_multinomial(counts: Counts, settings: Settings) -> tuple[Solution, Objective | None, float]:
    """Return the solution, its log likelihood if that is wanted, and the sum of all counts under smoothing."""
    totals, k, alpha = counts.seen_totals, settings.k, settings.alpha
    if settings.solver == "bisection":
        solution = bisection.solve(_to_bisect(totals, len(counts.seen), settings), k, alpha=alpha)
    elif _streams(totals):
        sums = panel_columns.TotalsSums.of(totals, alpha)
        solution = panel_columns.solve(totals, sums, k, settings.always)
        objective = sums.objective(totals.at(solution.support)) if settings.judged else None
        return solution, objective, exact_sum(sums.masses)
    else:
        solution = multinomial.solve(counts.grouped_counts(alpha), k, always=settings.always)
    counted = counts.grouped_counts(alpha)
    if not settings.judged:
        return solution, None, mass_of(counted)
    columns = totals.at(solution.support)
    value = objectives.multinomial(counted.distinct, alpha, solution.support, columns)
    return solution, Objective(value), mass_of(counted)


def _streams(totals: Totals) -> TypeGuard[PanelTotals]:
    """Whether features are too many to hold and cannot be grouped."""
    return isinstance(totals, PanelTotals) and totals.real


def _to_bisect(totals: Totals, n_classes: int, settings: Settings) -> Array:
    """Counts that bisection can work on."""
    if n_classes != 2 or (settings.always is not None and len(settings.always)):
        raise InputError(
            f'solver="bisection" is for two classes and without always=, here are {n_classes} classes and '
            f'{0 if settings.always is None else len(settings.always)} forced features; take solver="cuts"'
        )
    if not isinstance(totals, ArrayTotals | HeldTotals):
        raise InputError('solver="bisection" works on counts in memory, and these are in panels; take solver="cuts"')
    return totals.array


def _bernoulli_logs(totals: Array, documents: Array, alpha: float) -> tuple[Array, Array]:
    """Logs of the probabilities that features are present, and absent, (C, n)."""
    n = documents[:, None]
    log_n = np.log(n + 2 * alpha)
    present, absent = _log(totals + alpha) - log_n, _log(n - totals + alpha) - log_n  # in this order n - f is exact
    return _possible(present), _possible(absent)


def _log_shares(f: Array, total: float) -> Array:
    """Return the log of (B/S) f_c / B_c, (C, k), for totals of the support: every class has the same share on it.

    A class without mass there is like all others together.
    """
    masses = f.sum(axis=1)
    mass = masses.sum()
    if mass == 0:
        return np.full(f.shape, -np.inf)
    shares = _log(f) - _log(masses[:, None], otherwise=0.0) + log_share(mass, total)
    if not masses.all():
        shares[masses == 0] = _log(f.sum(axis=0)) - np.log(total)
    return np.asarray(shares)


def _possible(logs: Array) -> Array:
    """The same, where what is impossible in every class says nothing."""
    if not logs.size or logs.min() > -np.inf:
        return logs
    return np.where(np.isneginf(logs).all(axis=0), 0.0, logs)


def _spread(logs: Array, counts: Counts, even: Any) -> Array:
    """Rows for all classes; those that were not seen take all features for alike, and are ruled out by their priors."""
    if len(logs) == len(counts.classes):
        return logs
    out = np.empty((len(counts.classes), logs.shape[1]))
    out[:] = even
    out[counts.seen] = logs
    return out


def _model(
    method: str, counts: Counts, settings: Settings, support: Array, evidence: Evidence, **estimates: Any
) -> NaiveBayesModel:
    return NaiveBayesModel(
        method=method,
        classes=counts.classes,
        class_count=counts.documents,
        class_log_prior=log_prior(counts, settings),
        n_features=counts.totals.n_features,
        alpha=settings.alpha,
        support=support,
        evidence=evidence,
        **estimates,
    )


def log_prior(counts: Counts, settings: Settings) -> Array:
    """Log of the priors; classes without documents are never predicted."""
    if settings.class_prior is not None:
        prior = np.asarray(settings.class_prior, np.float64)
    elif settings.fit_prior:
        prior = counts.documents / counts.documents.sum()
    else:
        prior = np.full(len(counts.classes), 1 / len(counts.classes))
    prior = np.where(counts.documents > 0, prior, 0.0)
    if not prior.any():
        raise InputError(
            f"class_prior={settings.class_prior} gives 0 to every class that has documents; give one of them more"
        )
    return _log(prior)


def _evidence(solution: Solution, objective: Objective | None, total: float, point: Array | None) -> Evidence:
    if objective is None:
        return NOT_JUDGED
    best = np.nextafter(objective.value + objective.error + solution.gap, np.inf)
    return Evidence(
        objective=objective.value,
        bound=min(float(best), 0.0),
        gap=solution.gap,
        certified=solution.certified(min(total, -objective.value)),
        point=point,
        n_evaluations=solution.n_evaluations,
        second_dual=solution.second_dual if point is not None else None,
    )


def _log(x: Array, otherwise: float = -np.inf) -> Array:
    """Logarithms, and ``otherwise`` at 0, without a warning."""
    x = np.asarray(x, np.float64)
    return np.log(x, out=np.full(x.shape, otherwise), where=x > 0)
