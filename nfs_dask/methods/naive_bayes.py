"""From class counts to models: choose the features, then estimate what each is worth. Pure functions of arrays.

References: NFS20 (Askari et al. 2020) Theorems 1 and 2, (4), (7); NFS Theorems 3.1 and 3.2, (3), (6), (13).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, TypeGuard

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError
from nfs_dask.methods import shared_totals
from nfs_dask.methods.class_factors import ClassWeight, Weighing
from nfs_dask.methods.shared_totals import mapped, smoothed
from nfs_dask.models.model import NOT_JUDGED, Evidence
from nfs_dask.models.naive_bayes import NaiveBayesModel
from nfs_dask.solvers.naive_bayes import bernoulli, bisection, multinomial, objectives, streamed_bernoulli
from nfs_dask.solvers.naive_bayes import streamed_multinomial as streamed
from nfs_dask.solvers.naive_bayes.gains import gains
from nfs_dask.solvers.naive_bayes.objectives import Objective, log_share
from nfs_dask.solvers.naive_bayes.stream import TotalsSurvey
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

    @property
    def seen_totals(self) -> Totals:
        return self.totals.of(self.seen)

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
    documents, alpha = counts.documents[counts.seen], settings.alpha
    totals = counts.seen_totals
    solution, objective = _solve_bernoulli(totals, documents, settings)
    logs = partial(_bernoulli_logs, documents=documents, alpha=alpha)
    present, absent = mapped(totals, solution.support, alpha, "logs", logs)
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
    totals = counts.seen_totals
    solution, objective, total = _solve_multinomial(totals, len(counts.seen), settings)
    point = np.zeros(len(counts.classes))
    point[counts.seen] = solution.point
    support, alpha = solution.support, settings.alpha
    logs = _possible(_log_shares(totals, support, alpha, total))
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
    """Log likelihood at k = 0: sum of g log(g / S)."""
    g = counted.cells.totals.sum(axis=0) + len(counted.cells.totals) * counted.alpha
    return objectives.surprise(g, counted.cells.sizes)


def mass_of(counted: multinomial.GroupedCounts) -> float:
    """The sum S of all counts under smoothing, about."""
    cells = counted.cells
    return (
        float((cells.totals @ cells.sizes.astype(np.float64)).sum())
        + cells.totals.shape[0] * cells.n_features * counted.alpha
    )


def bernoulli_scores(counts: Counts, alpha: float) -> Array:
    """Gain of each feature, (m,) float64; 0 for features absent from the documents."""
    return bernoulli.score_cells(*counts.seen_totals.grouped(), counts.documents[counts.seen], alpha).scores


def multinomial_scores(counts: Counts, alpha: float, point: Array) -> Array:
    """Gain of each feature at the dual point (C,), (m,) float64; 0 for features absent from the documents."""
    counted = multinomial.GroupedCounts(*counts.seen_totals.grouped(), float(alpha))
    cells = counted.cells.totals
    gain = np.where(cells.any(axis=0), gains(cells + float(alpha), point[counts.seen]), 0.0)
    return gain if counted.where is None else np.concatenate([part for _, part in counted.where.spread(gain)])


def _solve_bernoulli(totals: Totals, documents: Array, settings: Settings) -> tuple[Solution, Objective | None]:
    """The solution, and its log likelihood if that is wanted."""
    k, alpha, always = settings.k, settings.alpha, settings.always
    if _streams(totals):
        solution = streamed_bernoulli.solve(totals, documents, k, alpha=alpha, always=always)
        if not settings.judged:
            return solution, None
        columns = totals.at(solution.support)
        return solution, Objective(streamed_bernoulli.objective(totals, documents, alpha, columns))
    scored = shared_totals.scored(totals, documents, float(alpha))
    solution = bernoulli.solve(scored, k, always=always)
    if not settings.judged:
        return solution, None
    columns = totals.at(solution.support)
    value = objectives.bernoulli(scored.cells, scored.where, documents, alpha, solution.support, columns)
    return solution, Objective(value)


def _solve_multinomial(totals: Totals, n_classes: int, settings: Settings) -> tuple[Solution, Objective | None, float]:
    """The solution, its log likelihood if that is wanted, and the sum of all counts under smoothing."""
    k, alpha, always = settings.k, settings.alpha, settings.always
    if settings.solver == "cuts" and _streams(totals):
        survey = TotalsSurvey.of(totals, alpha)
        solution = streamed.solve(totals, survey, k, alpha=alpha, always=always)
        return solution, survey.objective(totals.at(solution.support)) if settings.judged else None, survey.mass
    array = _to_bisect(totals, n_classes, settings) if settings.solver == "bisection" else None
    counted = shared_totals.counted(totals, float(alpha))
    if array is not None:
        solution = bisection.solve(array, k, alpha=alpha)
    else:
        solution = multinomial.solve(counted, k, always=always)
    if not settings.judged:
        return solution, None, mass_of(counted)
    cells, columns = counted.cells, totals.at(solution.support)
    objective = Objective(objectives.multinomial(cells, counted.where, counted.alpha, solution.support, columns))
    return solution, objective, mass_of(counted)


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


def _log_shares(totals: Totals, support: Array, alpha: float, total: float) -> Array:
    """Log of (B/S) f_c / B_c, (C, k): every class has the same share of its mass on the support.

    A class without mass there is like all others together.
    """
    logs, masses = smoothed(totals, support, alpha, _log)
    mass = masses.sum()
    if mass == 0:
        return np.full(logs.shape, -np.inf)
    shares = logs - _log(masses[:, None], otherwise=0.0) + log_share(mass, total)
    if not masses.all():
        shares[masses == 0] = _log((totals.at(support) + alpha).sum(axis=0)) - np.log(total)
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
    )


def _log(x: Array, otherwise: float = -np.inf) -> Array:
    """Logarithms, and ``otherwise`` at 0, without a warning."""
    x = np.asarray(x, np.float64)
    return np.log(x, out=np.full(x.shape, otherwise), where=x > 0)
