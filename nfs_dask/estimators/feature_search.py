"""From class counts to the features with which naive Bayes is predicted to be wrong least."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError, PlanError
from nfs_dask.estimators.classifier import MOST_COUNTS
from nfs_dask.methods.naive_bayes import Counts, Settings, fit_multinomial, merged_multinomial
from nfs_dask.models.model import Evidence
from nfs_dask.models.naive_bayes import NaiveBayesModel
from nfs_dask.progress import Progress
from nfs_dask.solvers.naive_bayes.gains import gains
from nfs_dask.solvers.predicted_error.bounded import MOST_FEATURES, bounded
from nfs_dask.solvers.predicted_error.estimate import ErrorEstimate, ErrorProblem, estimate
from nfs_dask.solvers.predicted_error.kept_set import KeptSet
from nfs_dask.solvers.predicted_error.searches import (
    SearchResult,
    best_individual,
    floating,
    forward,
    plus_minus,
    ranked,
)
from nfs_dask.statistics.class_totals import ArrayTotals, HeldTotals, PanelTotals, Totals

RANKED = "ranked"
_SEARCHES: dict[str, Callable[..., SearchResult]] = {
    "best-individual": best_individual,
    "forward": forward,
    "plus-minus": plus_minus,
    "floating": floating,
    "bounded": bounded,
}
SEARCHES = (RANKED, *_SEARCHES)


@dataclass(frozen=True)
class Search:
    """How to look for features."""

    name: str = RANKED  # one of SEARCHES
    add: int = 2  # of "plus-minus"
    drop: int = 1

    def largest(self, k: int, n_features: int) -> int:
        """The most features that a set has on the way to one of k."""
        if self.name != "plus-minus":
            return k
        return k + self.add if self.add > self.drop else n_features

    def run(self, problem: ErrorProblem, k: int, among: Array) -> SearchResult:
        """The features it finds; who waits sees how far it is."""
        parameters = {"add": self.add, "drop": self.drop} if self.name == "plus-minus" else {}
        unit = "parts" if self.name == "bounded" else "features"
        with Progress(k, f"{self.name} search", unit) as shown:

            def tell(done: int, total: int) -> None:
                shown.total = total
                shown.advance(done - shown.done)

            return _SEARCHES[self.name](problem, k, among=among, progress=tell, **parameters)


@dataclass(frozen=True)
class Documents:
    """Whose errors are predicted."""

    n_tokens: Any  # how long they are, as `Lengths.of` takes it
    prior: Array | None = None  # (C,) of the classes seen; None: equal


@dataclass(frozen=True)
class Selection:
    """What a search has found, and the multinomial model of these features and the rest."""

    model: NaiveBayesModel
    order: Array | None  # features in the order they were taken, where each set is part of the next
    errors: dict[int, float]  # smallest error seen with each number of features
    estimate: ErrorEstimate
    least: float  # the error is no smaller: documents without any of the features, which are decided wrongly


@dataclass(frozen=True)
class _Pool:
    """Some features, and all others as one that is always there."""

    columns: Array  # (n,) features, ascending: the first columns of the problem
    problem: ErrorProblem


def select(counts: Counts, settings: Settings, search: Search, documents: Documents) -> Selection:
    """The features that a search finds.

    Features absent from all documents are not chosen, unless all are.
    """
    if search.name == RANKED:
        support, order = _by_gain(counts, settings)
        pool = _pool(counts, settings.alpha, documents, support)
        found = ranked(pool.problem, len(support), order)
    else:
        pool = _pool(counts, settings.alpha, documents, _candidates(counts.seen_totals, settings.k, search))
        found = search.run(pool.problem, settings.k, np.arange(len(pool.columns)))
        support = pool.columns[found.features]
    evidence = _evidence(found, settings.k, counts.totals.n_features)
    shares = _shares(pool.problem, found.features)
    return Selection(
        model=merged_multinomial(counts, settings, support, shares, evidence),
        order=None if found.order is None else pool.columns[found.order],
        errors=dict(zip(found.sizes.tolist(), found.errors.tolist(), strict=True)),
        estimate=estimate(pool.problem, found.features),
        least=_least(pool.problem, shares[:, len(support) :].sum(axis=1)),
    )


def lone_errors(counts: Counts, alpha: float, documents: Documents) -> Array:
    """Return what each feature alone takes off the error of keeping none, (m,); 0 for absent features."""
    distinct, index = counts.seen_totals.grouped()
    problem = _pool(counts, alpha, documents, np.zeros(1, np.int64)).problem
    nothing = KeptSet(problem)
    mass = (distinct.totals * distinct.sizes).sum(axis=1) + alpha * counts.totals.n_features
    points = np.ascontiguousarray(((distinct.totals + alpha) / mass[:, None]).T)
    less = np.where(distinct.totals.any(axis=0), nothing.error - nothing.errors_with(points), 0.0)
    return less if index is None else index.spread(less)


def _by_gain(counts: Counts, settings: Settings) -> tuple[Array, Array]:
    """The support of a sparse multinomial model, and its positions by falling gain; of equal ones the lower first."""
    model = fit_multinomial(counts, settings)
    assert model.evidence.point is not None
    if not len(model.support):  # of empty documents only
        return np.arange(settings.k), np.arange(settings.k)
    gain = gains(counts.seen_totals.at(model.support) + settings.alpha, model.evidence.point[counts.seen])
    return model.support, np.argsort(-gain, kind="stable")


def _pool(counts: Counts, alpha: float, documents: Documents, columns: Array) -> _Pool:
    """The problem of choosing among some features."""
    totals, prior = counts.seen_totals, documents.prior
    kept, mass, n_others = totals.at(columns), _masses(totals), totals.n_features - len(columns)
    smoothed = kept + alpha
    if n_others:  # of real values, rounding could take more than there is
        others = np.maximum(mass - kept.sum(axis=1), 0) + alpha * n_others
        smoothed = np.append(smoothed, others[:, None], axis=1)
    shares = smoothed / smoothed.sum(axis=1, keepdims=True)
    prior = None if prior is None else prior / prior.sum()
    return _Pool(columns, ErrorProblem.of(shares, documents.n_tokens, prior, least=1))


def _masses(totals: Totals) -> Array:
    """(C,) what all features have in each class."""
    if isinstance(totals, PanelTotals):
        return np.sum([part.sum(axis=1) for _, part in totals.parts()], axis=0)
    assert isinstance(totals, ArrayTotals | HeldTotals)
    return np.asarray(totals.array.sum(axis=1))


def _candidates(totals: Totals, k: int, search: Search) -> Array:
    """Features to choose from: of equal ones, of which the lowest are taken first, no more than a set can hold."""
    if isinstance(totals, PanelTotals) and totals.real:
        raise PlanError(
            f"{totals.n_features:,} features of values that are not whole numbers are too many to search through; "
            f"take search={RANKED!r}, leave out rare features, or count whole numbers"
        )
    distinct, index = totals.grouped()
    useful = np.asarray(distinct.totals.any(axis=0))
    if k == totals.n_features or not useful.any():
        useful = np.ones(len(useful), bool)
    wanted = np.where(useful, np.minimum(distinct.sizes, search.largest(k, totals.n_features)), 0)
    _refuse_too_many(int(wanted.sum()), len(distinct.totals), search)
    nothing = np.zeros(0, np.int64)
    return np.flatnonzero(useful) if index is None else index.members(wanted, nothing)[0]


def _refuse_too_many(n: int, n_classes: int, search: Search) -> None:
    if search.name == "bounded" and n > MOST_FEATURES:
        raise InputError(
            f'search="bounded" is for up to {MOST_FEATURES} features, and there are {n:,} to choose from; '
            'take search="floating", or give it those columns of X that another search has chosen'
        )
    if n * n_classes * 8 > MOST_COUNTS:
        raise PlanError(
            f"{n:,} features of {n_classes} classes are too many to hold and search through; take search={RANKED!r}, "
            "or leave out rare features"
        )


def _shares(problem: ErrorProblem, kept: Array) -> Array:
    """(C, k + 1) probabilities of some features and of all others together, if there are any."""
    others = np.delete(np.arange(problem.n_features), kept)
    rest = problem.P[:, others].sum(axis=1, keepdims=True)
    return np.append(problem.P[:, kept], rest[:, : len(others)], axis=1)


def _least(problem: ErrorProblem, rest: Array) -> float:
    """How many documents have none of the features and are decided wrongly; without them, length alone decides."""
    alike = problem.prior[:, None] * rest[:, None] ** problem.lengths.values
    return float((alike.sum(axis=0) - alike.max(axis=0)) @ problem.lengths.shares)


def _evidence(found: SearchResult, k: int, n_features: int) -> Evidence:
    """The predicted error, which is sure to be the smallest where all sets were looked at, or there is but one."""
    optimal = found.optimal or len(found.features) < k or len(found.features) == n_features
    return Evidence(
        objective=found.error,
        gap=0.0 if optimal else found.error,
        certified=optimal,
        point=None,
        n_evaluations=found.n_evaluated,
    )
