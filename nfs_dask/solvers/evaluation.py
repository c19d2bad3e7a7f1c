"""Evaluating all gains at a point: plainly, or, where there are millions of columns, only those that can matter."""

from __future__ import annotations

import numpy as np

from nfs_dask.solvers.cuts import Cut, Minimum
from nfs_dask.solvers.gains import gains
from nfs_dask.solvers.problem import Problem
from nfs_dask.solvers.screening import interval_bounds, kth_largest, reaching, sure_floor
from nfs_dask.solvers.solution import Array
from nfs_dask.solvers.tiewalk import TIED
from nfs_dask.solvers.topk import Choice, top

WIDE = 200_000  # columns from which on sieving is worth its passes
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
    between two points, the columns that cannot matter there are left out for good.
    """

    def __init__(self, problem: Problem, k: int) -> None:
        self.problem = problem
        self.k = k
        self.active: Array | None = None  # columns that matter between the ends
        self.seen: Array | None = None  # columns that mattered at the last point

    def __call__(self, point: Array, low: Cut | None, high: Cut | None) -> Cut:
        if self.active is None and low is not None and high is not None:
            self.active = self._between(low.point, high.point)
        columns = self._reaching(point) if self.active is None else self.active
        totals, sizes = self.problem.totals[:, columns], self.problem.sizes[columns]
        gain = gains(totals, point)
        choice = top(gain, sizes, self.k)
        self.seen = columns
        return Cut(point, float(choice.sum(gain)), choice.sum(totals), Choice(columns[choice.cells], choice.counts))

    def columns(self, minimum: Minimum) -> Array | None:
        """Columns that matter at the minimum, ties among them."""
        chosen = [cut.choice.cells for cut in (minimum.best, minimum.low, minimum.high)]
        if self.active is not None:
            return np.unique(np.concatenate([self.active, *chosen]))
        last = gains(self.problem.totals[:, chosen[0]], minimum.best.point).min()
        close = reaching(self.problem.totals, minimum.best.point[None], last * (1 - 2 * TIED))
        return np.unique(np.concatenate([close, *chosen]))

    def _reaching(self, point: Array) -> Array:
        totals, sizes = self.problem.totals, self.problem.sizes
        if self.seen is None:
            floor = sure_floor(totals, sizes, point, self.k)
        else:
            floor = kth_largest(gains(totals[:, self.seen], point), sizes[self.seen], self.k)
        return reaching(totals, point[None], floor)

    def _between(self, low: Array, high: Array) -> Array | None:
        assert self.seen is not None
        totals, sizes = self.problem.totals, self.problem.sizes
        least, _ = interval_bounds(totals[:, self.seen], low, high)
        columns = reaching(totals, np.stack((low, high)), kth_largest(least, sizes[self.seen], self.k))
        if len(columns) > _NARROW * len(sizes):
            return None
        least, most = interval_bounds(totals[:, columns], low, high)
        return columns[most >= kth_largest(least, sizes[columns], self.k)]


def evaluator(problem: Problem, k: int) -> Plain | Sieved:
    """The faster way to cuts of this problem."""
    wide = len(problem.sizes) > WIDE and problem.n_forced == 0 and k < _NARROW * problem.size
    return Sieved(problem, k) if wide else Plain(problem, k)
