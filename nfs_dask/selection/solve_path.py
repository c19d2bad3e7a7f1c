"""Solving for many k, method by method."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.dataset import Dataset
from nfs_dask.estimators.centers import SparseCentroid
from nfs_dask.estimators.classifier import SparseClassifier, refuse_nothing, too_wide
from nfs_dask.estimators.naive_bayes import SparseNaiveBayes
from nfs_dask.methods.naive_bayes import Counts, mass_of, null_multinomial
from nfs_dask.progress import Progress
from nfs_dask.selection.path_table import Solved
from nfs_dask.solvers.naive_bayes import bernoulli, multinomial
from nfs_dask.solvers.naive_bayes import every_k as solvers
from nfs_dask.solvers.solution import ABSOLUTE
from nfs_dask.statistics.class_totals import ArrayTotals, PanelTotals, Pick, Totals
from nfs_dask.statistics.counts import documents, sums
from nfs_dask.statistics.panels import Panels

logger = logging.getLogger("nfs_dask")


@dataclass(frozen=True)
class Found:
    """What is known of many k, and how that came about."""

    solved: Solved
    rows: int
    reused: bool  # whether the statistics had been kept, so that no document was read


def solve_path(method: str, estimator: SparseClassifier, dataset: Dataset, ks: Array) -> Found:
    """Read what a fit would read, and solve for all k.

    Parameters
    ----------
    method
        The estimator's, by its name in commands and models.
    estimator
        Not fitted; it knows the parameters.
    dataset
        With labels.
    ks : (K,) ascending
    """
    if isinstance(estimator, SparseNaiveBayes):
        return _of_counts(method, estimator, dataset, ks)
    assert isinstance(estimator, SparseCentroid)
    return Found(*estimator.rank(dataset, ks))


def _of_counts(method: str, estimator: SparseNaiveBayes, dataset: Dataset, ks: Array) -> Found:
    """Of naive Bayes."""
    classes, statistic = dataset.known_classes(), estimator.statistic(dataset)
    reduction = dataset.reduce(statistic, estimator.engine)
    panels = reduction.panels
    refuse_nothing(panels.totals["weight"])
    logger.info("solving for %d values of k", len(ks))
    rows, alpha = int(panels.totals["rows"].sum()), float(estimator.alpha)
    pick = documents if method == "bernoulli" else sums
    counts = Counts(classes, panels.totals["weight"], _totals(panels, pick, len(classes)))
    totals, weight = counts.seen_totals, counts.documents[counts.seen]
    if method == "bernoulli":
        return Found(BernoulliPath.solve(totals, weight, alpha, ks), rows, reduction.reused)
    return Found(MultinomialPath.solve(totals, alpha, ks), rows, reduction.reused)


def _totals(panels: Panels, pick: Pick, n_classes: int) -> Totals:
    """The counts of all features, in memory if they fit."""
    return PanelTotals(panels, pick) if too_wide(panels, n_classes) else ArrayTotals(pick(panels.state().arrays))


@dataclass(frozen=True)
class BernoulliPath:
    """Exact for every k: the features of largest gain."""

    scored: bernoulli.Scored
    value: Array
    bound: Array
    null: float
    noise: float = 0.0

    @classmethod
    def solve(cls, totals: Totals, class_count: Array, alpha: float, ks: Array) -> BernoulliPath:
        scored = bernoulli.score_cells(*totals.grouped(), class_count, alpha)
        value = bernoulli.path(scored, ks)
        bound = scored.rounding.above(value, scored.mass)
        return cls(scored, value, bound, bernoulli.null_objective(scored))

    @property
    def gap(self) -> Array:
        return np.zeros(len(self.value))

    @property
    def objective(self) -> Array:
        return self.null + self.value

    def support(self, k: int) -> Array:
        return bernoulli.solve(self.scored, k).support


@dataclass(frozen=True)
class MultinomialPath:
    """A value and a bound for every k."""

    solution: solvers.Path
    null: float
    noise: float

    @classmethod
    def solve(cls, totals: Totals, alpha: float, ks: Array) -> MultinomialPath:
        counted = multinomial.Counted(*totals.grouped(), float(alpha))
        null = null_multinomial(counted)
        with Progress(len(ks), "solving", "values of k") as progress:
            solution = solvers.solve_path(counted, ks, tick=progress.advance)
        return cls(solution, null, ABSOLUTE * min(mass_of(counted), -null))

    @property
    def value(self) -> Array:
        return self.solution.value

    @property
    def bound(self) -> Array:
        return self.solution.bound

    @property
    def gap(self) -> Array:
        return self.solution.gap

    @property
    def objective(self) -> Array:
        return self.null + self.value

    def support(self, k: int) -> Array:
        return self.solution.support(k)
