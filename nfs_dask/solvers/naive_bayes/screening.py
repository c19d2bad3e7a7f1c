"""Best sets at points, from the columns that can be in them: others are left out as points come closer together.

In the logarithms of the point a gain is linear, h_i(a) = o_i - sum_c f_c log a_c, with o_i = sum_c f_c log (f_c / g_i)
known once. That form takes no logarithm for each column and loses digits, but widened by what it may lose it bounds the
gain, so that the form which keeps digits is needed for few columns. From one point to another a gain rises by at most
g_i times the largest log (a_c / a'_c). So columns whose bound stays below the k-th gain within a ball of points need
not be looked at there; if a point leaves the ball, or the k-th gain there is lower than was expected, all are again.

References: docs/mathematics.md 3.8.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from nfs_dask.arrays.compiling import kernel
from nfs_dask.solvers.naive_bayes.dual import SupportingSet
from nfs_dask.solvers.naive_bayes.gains import gains
from nfs_dask.solvers.naive_bayes.primal import AROUND, TIED
from nfs_dask.solvers.naive_bayes.problem import Problem
from nfs_dask.solvers.naive_bayes.topk import kth_largest, top
from nfs_dask.solvers.solution import Array, FeatureSet

WORTHWHILE = 30_000  # numbers in a table from which on columns are screened
_SAMPLE = 64  # about one of so many columns is looked at for a first guess of the k-th gain
_EXPECTED = 0.8  # times a k-th gain, those of other points are expected to be more
_FIRST_RADIUS = 0.7  # of the first ball
_WIDER = 2.0  # times the distance of two points, the next ball
_FEW = 5_000  # columns that are not worth leaving out


class Columns(Protocol):
    """The columns of a problem of k features, in memory or in panels."""

    def best_at(self, point: Array) -> SupportingSet:
        """Return the k best features at a point; of equal gains, those of the lower column."""
        ...

    def near(self, point: Array, reach: float) -> tuple[Array, int]:
        """Return columns, ascending, and how many features share the last place of the k best ones at a point.

        The columns are those of the k best features, and of others whose gains are within ``reach`` of the last one,
        but for such as come long after.
        """
        ...

    def only(self, columns: Array) -> Problem:
        """Return some columns, and those of forced features, as a problem in memory."""
        ...


class AllColumns:
    """Columns that are few, so that all are looked at."""

    def __init__(self, problem: Problem, k: int) -> None:
        self.problem, self.k = problem, k

    def best_at(self, point: Array) -> SupportingSet:
        gain = self.problem.gains(point)
        features = self.problem.top(gain, self.k)
        return SupportingSet(point, float(features.sum(gain)), features.sum(self.problem.totals), features)

    def near(self, point: Array, reach: float) -> tuple[Array, int]:
        n, k = self.problem.n_free, self.k - len(self.problem.forced)
        gain, sizes = self.problem.gains(point)[:n], self.problem.sizes[:n]
        return np.arange(len(self.problem.sizes)), tie_count(gain, sizes, k, kth_largest(gain, sizes, k))

    def only(self, columns: Array) -> Problem:
        return self.problem


class ScreenedColumns:
    """Columns of which those that cannot matter are left out."""

    def __init__(self, problem: Problem, k: int) -> None:
        self.problem, self.k = problem, k - len(problem.forced)
        n = problem.n_free
        self._all, self._all_sizes = problem.totals[:, :n], problem.sizes[:n]
        self._counts = np.add.reduce(self._all)
        self._seen: tuple[Array, Array, float] | None = None  # the last point, bounds there, and the k-th gain
        # the columns of most counts mostly gain most: of these, the k-th gain is no more than that of all
        heavy = kth_largest(self._counts, self._all_sizes, min(2 * self.k + n // _SAMPLE, int(self._all_sizes.sum())))
        heaviest = np.flatnonzero(self._counts >= heavy)
        gain = gains(self._all.take(heaviest, axis=1), problem.start)
        likely = max(kth_largest(gain, self._all_sizes[heaviest], self.k), 0.0)
        most = float(-np.log(problem.start.min())) + _FIRST_RADIUS  # that a count gains in the first ball
        self._keep(np.flatnonzero(self._counts * most >= _EXPECTED * likely))
        self._center, self._radius, self._ceiling = problem.start, _FIRST_RADIUS, _EXPECTED * likely

    def _keep(self, columns: Array) -> None:
        self._columns, self._totals = columns, self._all.take(columns, axis=1)
        self._sizes, self._own = self._all_sizes[columns], np.empty(len(columns))
        _own_parts(self._totals, self._own)

    def _restore(self) -> None:
        self._keep(np.arange(len(self._counts)))
        self._radius, self._ceiling, self._seen = math.inf, -math.inf, None

    def best_at(self, point: Array) -> SupportingSet:
        above, last = self._look(point)
        columns, gain = self._reaching(point, above, last)
        free, problem = top(gain, self._all_sizes[columns], self.k), self.problem
        forced = np.arange(problem.n_free, len(problem.sizes))
        counts = np.concatenate((free.counts, problem.sizes[forced]))
        features = FeatureSet(np.concatenate((columns[free.columns], forced)), counts)
        totals = problem.totals.take(features.columns, axis=1)
        height = float((gains(totals, point) * counts).sum())
        return SupportingSet(point, height, (totals * counts).sum(axis=1), features)

    def near(self, point: Array, reach: float) -> tuple[Array, int]:
        above, last = self._look(point)
        floor = last - max(reach, 2 * TIED * last)
        if floor <= self._ceiling:
            self._restore()
            above, _ = self._look(point)
        columns, gain = self._reaching(point, above, floor)
        sizes = self._all_sizes[columns]
        return columns[top(gain, sizes, self.k + AROUND).columns], tie_count(gain, sizes, self.k, last)

    def only(self, columns: Array) -> Problem:
        return self.problem.only(columns)

    def _look(self, point: Array) -> tuple[Array, float]:
        """Return upper bounds of the gains of columns, and the k-th gain of all, at a point."""
        self._narrow(point)
        if _distance(self._center, point) > self._radius:
            self._restore()
        slopes = -np.log(point)
        # of the sums, and of the gains that are compared with them
        slopes += (256 + len(point)) * 2.0**-52 * max(float(slopes.max()), math.log(len(point)), 1.0)
        while True:
            above = self._own + slopes @ self._totals
            first = np.flatnonzero(above >= kth_largest(above, self._sizes, self.k))
            last = kth_largest(gains(self._totals.take(first, axis=1), point), self._sizes[first], self.k)
            if last > self._ceiling or len(self._columns) == len(self._counts):
                self._seen = point, above, last
                return above, last
            self._restore()

    def _narrow(self, point: Array) -> None:
        """Leave out what cannot matter in a ball around the last point that holds this one, if it is small."""
        if self._seen is None or len(self._columns) <= _FEW:
            return
        before, above, last = self._seen
        radius = _WIDER * _distance(before, point)
        if not 0 < radius <= self._radius - _distance(self._center, before):
            return
        kept = np.flatnonzero(above + self._counts[self._columns] * radius >= _EXPECTED * last)
        if len(kept) < 0.5 * len(self._columns):
            self._keep(self._columns[kept])
            self._center, self._radius, self._seen = before, radius, None
            self._ceiling = max(self._ceiling, _EXPECTED * last)

    def _reaching(self, point: Array, above: Array, floor: float) -> tuple[Array, Array]:
        """Return the columns that may gain as much as ``floor``, and their gains."""
        among = np.flatnonzero(above >= floor)
        return self._columns[among], gains(self._totals.take(among, axis=1), point)


def tie_count(gain: Array, sizes: Array, k: int, last: float) -> int:
    """Return how many features have the last of the k largest gains, up to rounding; 0 if all of these are taken."""
    equal = np.abs(gain - last) <= TIED * last
    n, ahead = int(sizes[equal].sum()), int(sizes[(gain > last) & ~equal].sum())
    return n if n > k - ahead else 0


def _distance(center: Array, point: Array) -> float:
    """Return how much a gain may rise from one point to another, for each count."""
    return float(np.log(center / point).max())


@kernel
def _own_parts(totals, out):
    """Write sum_c f_c log (f_c / g) of each column."""
    n_classes = len(totals)
    for i in range(len(out)):
        g = 0.0
        for c in range(n_classes):
            g += totals[c, i]
        total = 0.0
        for c in range(n_classes):
            if totals[c, i] > 0:
                total += totals[c, i] * math.log(totals[c, i] / g)
        out[i] = total
