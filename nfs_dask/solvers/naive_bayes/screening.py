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
_RADIUS = 0.2  # of a ball around a point nothing is known of
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
        gain = self.problem.gains(point)
        n_ties = tie_count(gain[:n], self.problem.sizes[:n], k, kth_largest(gain[:n], self.problem.sizes[:n], k))
        if len(self.problem.classes) == 2:
            return np.arange(len(gain)), n_ties
        # as many as are held of panels, so that bits are the same
        return self.problem.top(gain, self.k + AROUND).columns, n_ties

    def only(self, columns: Array) -> Problem:
        return self.problem if len(self.problem.classes) == 2 else self.problem.only(columns)


class ScreenedColumns:
    """Columns of which those that cannot matter are left out."""

    def __init__(self, problem: Problem, k: int) -> None:
        self.problem, self.k = problem, k - len(problem.forced)
        n = problem.n_free
        self._all, self._all_sizes = problem.totals[:, :n], problem.sizes[:n]
        self._counts = np.add.reduce(self._all)
        # the columns of most counts mostly gain most
        heavy = kth_largest(self._counts, self._all_sizes, min(2 * self.k + n // _SAMPLE, int(self._all_sizes.sum())))
        self._heaviest = np.flatnonzero(self._counts >= heavy)
        self._begin(problem.start)

    def _begin(self, center: Array) -> None:
        """Leave out columns of so few counts that they cannot matter in a ball around a point."""
        gain = gains(self._all.take(self._heaviest, axis=1), center)
        likely = max(kth_largest(gain, self._all_sizes[self._heaviest], self.k), 0.0)  # no more than the k-th gain
        most = float(-np.log(center.min())) + _RADIUS  # that a count gains in the ball
        self._keep(np.flatnonzero(self._counts * most >= _EXPECTED * likely))
        self._center, self._radius, self._ceiling = center, _RADIUS, _EXPECTED * likely
        self._seen: tuple[Array, Array, float] | None = None  # the last point, bounds there, and of the k-th gain

    def _keep(self, columns: Array) -> None:
        self._columns, self._own = columns, np.empty(len(columns))
        self._totals, self._sizes, self._kept_counts = self._all, self._all_sizes, self._counts
        if len(columns) < len(self._counts):
            self._totals = self._all.take(columns, axis=1)
            self._sizes, self._kept_counts = self._all_sizes[columns], self._counts[columns]
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
        gain = np.concatenate((gain[free.columns], gains(problem.totals[:, problem.n_free :], point)))
        return SupportingSet(point, float((gain * counts).sum()), features.sum(problem.totals), features)

    def near(self, point: Array, reach: float) -> tuple[Array, int]:
        above, last = self._look(point)
        floor = last - max(reach, 2 * TIED * last)
        if floor <= self._ceiling:
            self._restore()
            above, _ = self._look(point)
        columns, gain = self._reaching(point, above, floor)
        sizes = self._all_sizes[columns]
        n_ties = tie_count(gain, sizes, self.k, kth_largest(gain, sizes, self.k))
        forced = np.arange(self.problem.n_free, len(self.problem.sizes))
        return np.concatenate((columns[top(gain, sizes, self.k + AROUND).columns], forced)), n_ties

    def only(self, columns: Array) -> Problem:
        return self.problem.only(columns)

    def _look(self, point: Array) -> tuple[Array, float]:
        """Return upper bounds of the gains of columns, and a lower one of the k-th gain of all, at a point."""
        self._narrow(point)
        if _distance(self._center, point) > self._radius:
            self._begin(point)
        slopes = -np.log(point)
        # what the sums, and the gains that are compared with them, may be wrong by for each count
        wrong = (256 + len(point)) * 2.0**-52 * max(float(slopes.max()), math.log(len(point)), 1.0)
        while True:
            above = self._own + (slopes + wrong) @ self._totals
            last = kth_largest(above, self._sizes, self.k) - 2 * wrong * float(self._kept_counts.max(initial=0.0))
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
        kept = np.flatnonzero(above + self._kept_counts * radius >= _EXPECTED * last)
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
    if not np.isfinite(last):  # all features are forced
        return 0
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
