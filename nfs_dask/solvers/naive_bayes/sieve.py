"""Evaluating all gains at a point: plainly, or, where there are millions of columns, only those that can matter.

References: docs/mathematics.md 3.4.
"""

from __future__ import annotations

import copy

import numpy as np

from nfs_dask.solvers.naive_bayes.cuts import Cut, Minimum
from nfs_dask.solvers.naive_bayes.gains import divergence, gains
from nfs_dask.solvers.naive_bayes.problem import Problem
from nfs_dask.solvers.naive_bayes.screening import interval_bounds, kth_largest, reaching, screen, sure_floor
from nfs_dask.solvers.naive_bayes.topk import TIED, TopFeatures, top
from nfs_dask.solvers.solution import Array

WIDE = 200_000  # columns from which on sieving is worth its passes
_CLOSER = 2  # times closer the ends have to be before it is worth looking again
_NARROW = 0.5  # of all columns: what a sieve has to leave out to be used


class Plain:
    """Cuts of a problem from all of its columns."""

    def __init__(self, problem: Problem, k: int) -> None:
        self.problem = problem
        self.k = k

    def __call__(self, point: Array, low: Cut | None, high: Cut | None) -> Cut:
        gain = self.problem.gains(point)
        choice = self.problem.top(gain, self.k)
        return Cut(point, float(choice.sum(gain)), choice.sum(self.problem.totals), choice)

    def columns(self, minimum: Minimum) -> Array | None:
        """Columns that matter at the minimum; None for all."""
        return None


class Sieved:
    """The same cuts, from the columns that can be among the k best.

    At first each look at a point sieves all columns by bounds without logarithms. Once the minimum is known to be
    between two points, columns that cannot matter there are left out for good, and those that are in every best set
    there enter only through their sums.
    """

    def __init__(self, problem: Problem, k: int) -> None:
        self.problem = problem
        self.k = k
        self.seen: Array | None = None  # columns that mattered at the last point
        self.between: Between | None = None

    def __call__(self, point: Array, low: Cut | None, high: Cut | None) -> Cut:
        if low is not None and high is not None:
            self._narrow(low, high)
        if self.between is not None:
            return self.between.cut(point)
        self.seen = self._reaching(point)
        return Between(self.problem, self.k, self.seen).cut(point)

    def columns(self, minimum: Minimum) -> Array | None:
        """Columns that matter at the minimum, ties among them."""
        best = minimum.best
        last = gains(self.problem.totals[:, best.choice.cells], best.point).min()
        if self.between is None:
            close = reaching(self.problem.totals, best.point[None], last * (1 - 2 * TIED))
        else:
            close = self.between.columns
        matter = np.zeros(len(self.problem.sizes), bool)
        for columns in (close, best.choice.cells, minimum.low.choice.cells, minimum.high.choice.cells):
            matter[columns] = True
        return np.flatnonzero(matter)

    def _reaching(self, point: Array) -> Array:
        totals, sizes = self.problem.totals, self.problem.sizes
        if self.seen is None:
            floor = sure_floor(totals, sizes, point, self.k)
        else:
            floor = kth_largest(gains(totals[:, self.seen], point), sizes[self.seen], self.k)
        return reaching(totals, point[None], floor)

    def _narrow(self, low: Cut, high: Cut) -> None:
        if self.between is not None:
            self.between = self.between.narrowed(low, high)
            return
        assert self.seen is not None
        totals, sizes = self.problem.totals, self.problem.sizes
        least, _ = interval_bounds(totals[:, self.seen], low.point, high.point)
        floor = kth_largest(least, sizes[self.seen], self.k)
        columns = reaching(totals, np.stack((low.point, high.point)), floor)
        if len(columns) <= _NARROW * len(sizes):
            self.between = Between(self.problem, self.k, columns).narrowed(low, high)


class Between:
    """What matters between two points: columns that may be chosen, and the sure ones by the sum of their gains."""

    def __init__(self, problem: Problem, k: int, columns: Array) -> None:
        self.columns, self.k = columns, k
        self.totals, self.sizes = problem.totals[:, columns], problem.sizes[columns]
        self.sure = TopFeatures(np.zeros(0, np.intp), np.zeros(0, np.int64))
        self.sure_gain, self.sure_masses, self.sure_point = 0.0, np.zeros(2), problem.start
        self.width = np.inf

    def cut(self, point: Array) -> Cut:
        """The best set at a point between."""
        gain = gains(self.totals, point)
        choice = top(gain, self.sizes, self.k)
        fixed = self.sure_gain - _loss(self.sure_masses, self.sure_point) + _loss(self.sure_masses, point)
        cells = np.concatenate((self.sure.cells, self.columns[choice.cells]))
        counts = np.concatenate((self.sure.counts, choice.counts))
        return Cut(
            point,
            fixed + float(choice.sum(gain)),
            self.sure_masses + choice.sum(self.totals),
            TopFeatures(cells, counts),
        )

    def narrowed(self, low: Cut, high: Cut) -> Between:
        """The same for points closer together; itself, where they are not much closer."""
        width = high.t - low.t
        if width > self.width / _CLOSER:
            return self
        always, never = screen(self.totals, self.sizes, low.point, high.point, self.k)
        out = copy.copy(self)
        out.width = width
        kept = ~(always | never)
        out.columns, out.totals, out.sizes = self.columns[kept], self.totals[:, kept], self.sizes[kept]
        new = TopFeatures(np.flatnonzero(always), self.sizes[always])
        out.k = self.k - int(new.counts.sum())
        out.sure = TopFeatures(
            np.concatenate((self.sure.cells, self.columns[always])), np.concatenate((self.sure.counts, new.counts))
        )
        moved = self.sure_gain - _loss(self.sure_masses, self.sure_point) + _loss(self.sure_masses, low.point)
        out.sure_gain = moved + float(new.sum(gains(self.totals, low.point)))
        out.sure_masses, out.sure_point = self.sure_masses + new.sum(self.totals), low.point
        return out


def _loss(masses: Array, point: Array) -> float:
    """B KL(B_c/B || point): how much more a set's gains sum to at a point than at its own."""
    return float(divergence(masses[:, None], point)[0])


def evaluator(problem: Problem, k: int) -> Plain | Sieved:
    """The faster way to cuts of this problem."""
    wide = len(problem.sizes) > WIDE and problem.n_forced == 0 and k < _NARROW * problem.size
    return Sieved(problem, k) if wide else Plain(problem, k)
