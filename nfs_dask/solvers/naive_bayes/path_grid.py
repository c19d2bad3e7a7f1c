"""Supports of all k at once, or of chosen ones: for two classes, one sort of the gains at a point serves every k.

For each k a point gives an upper value, a support, and on which side of it the dual point is. Every k keeps the two
nearest points around its dual point; the planes of their sets bound it from below. New points are taken where most
unfinished k want one. More classes are solved for each k by itself.

References: NFS Theorem 3.2 for all k; Theorem 3.6, (24), with k + C - 1 in place of k + 4: docs/mathematics.md 3.3 and
3.9.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from nfs_dask.arrays.compiling import inlined_part, kernel, kernel_part
from nfs_dask.solvers.naive_bayes.distinct import ColumnNumbering, bits
from nfs_dask.solvers.naive_bayes.gains import gains, set_gain
from nfs_dask.solvers.naive_bayes.multinomial import GroupedCounts, solve, solve_problem
from nfs_dask.solvers.naive_bayes.problem import Problem
from nfs_dask.solvers.naive_bayes.topk import sums_of_first
from nfs_dask.solvers.solution import Array, FeatureSet, nothing

TOLERANCE = 1e-6  # width of a certificate, relative to the bound
SEARCHED = 50  # up to this k, supports that are not within the tolerance are looked for as a fit does
_SHARP = 1e-10  # of the bound: what a value may be wrong by
_WIDE = 200_000  # columns from which on each k is solved by itself
_MOST_ROUNDS = 500
_STRIDE = 4.0  # how far beyond the only known end the first points go, in t
_FARTHEST = 700.0  # |t| beyond which exp(t) is no number
_NEAR = 4 * float(np.finfo(float).eps)  # relative distance in t that is rounding

Tick = Callable[[], object]  # called when one more k is done


@dataclass(frozen=True)
class SolvedPath:
    """Supports of many sizes, each with its gain and a bound."""

    ks: Array  # (K, ) int64, ascending
    value: Array  # (K, ) gain of the support
    bound: Array  # (K, ) no support of k features has a larger gain, whatever was rounded
    gap: Array  # (K, ) nor one that is larger by more than this
    points: Array  # (K, C) dual points
    n_evaluations: int
    counted: GroupedCounts = field(repr=False)
    chosen: tuple[Array | FeatureSet | None, ...] = field(repr=False)  # of each k: a set, or a point whose best set

    def support(self, k: int) -> Array:
        """Return the features of one of the k, ascending."""
        chosen, problem = self.chosen[int(np.searchsorted(self.ks, k))], self.counted.problem(k)
        if chosen is None:
            return solve(self.counted, k).support
        if not isinstance(chosen, FeatureSet):
            chosen = problem.top(problem.gains(chosen), k)
        found = replace(nothing(problem.start), chosen=chosen, mixture=chosen)
        return self.counted.with_features(found, problem).support


@dataclass(frozen=True)
class _Row:
    """The results of one k."""

    chosen: Array | FeatureSet | None
    value: float
    bound: float
    gap: float
    point: Array
    n_evaluations: int = 0


def solve_path(
    counted: GroupedCounts,
    ks: Sequence[int] | Array | None = None,
    tolerance: float = TOLERANCE,
    tick: Tick = lambda: None,
) -> SolvedPath:
    """Solve for many k; all of 0 to m if ``ks`` is not given.

    Bounds are within ``tolerance`` of the smallest ones, relatively. A support that is not within ``tolerance`` of its
    bound is looked for as a fit of that k does where features share their counts, or k is small.

    >>> from nfs_dask.solvers.naive_bayes.multinomial import count
    >>> path = solve_path(count(np.array([[7, 7, 2, 6, 5, 6, 8], [1, 8, 1, 1, 7, 4, 0]])))
    >>> path.value.round(3).tolist()[:4], path.support(2).tolist()
    ([0.0, 0.0, 4.799, 5.587], [4, 6])
    """
    m = counted.n_features
    ks = np.arange(m + 1) if ks is None else np.unique(np.clip(np.asarray(ks, np.int64), 0, m))
    problem = counted.problem(0)
    together = len(problem.classes) == 2 and len(problem.sizes) <= _WIDE
    grid = _PathGrid(problem, ks[(ks > 0) & (ks < problem.size)] if together else ks[:0], tolerance)
    searched = grid.to_search()
    rows: list[_Row] = []
    near = None
    for k in ks.tolist():
        place = int(np.searchsorted(grid.ks, k))
        known = place < len(grid.ks) and grid.ks[place] == k
        if known and not searched[place]:
            rows.append(grid.row(place))
        else:
            rows.append(_solve_one(counted, k, grid.bound_point[place] if known else near))
        near = rows[-1].point if len(problem.classes) == 2 and rows[-1].n_evaluations > 1 else None
        tick()
    return SolvedPath(
        ks=ks,
        value=np.array([row.value for row in rows]),
        bound=np.array([row.bound for row in rows]),
        gap=np.array([row.gap for row in rows]),
        points=np.array([problem.all_classes(row.point) for row in rows]),
        n_evaluations=grid.n_evaluations + sum(row.n_evaluations for row in rows),
        counted=counted,
        chosen=tuple(row.chosen for row in rows),
    )


def guaranteed(
    counted: GroupedCounts, ks: Sequence[int] | Array, loss: int | None = None, tolerance: float = TOLERANCE
) -> Array:
    """Return what the best support of each k is sure to gain before any is known: psi(k - loss), (len(ks), ).

    The ``loss`` is C - 1 features by default, which is proved; the paper's for two classes is 4.
    """
    loss = len(counted.distinct.totals) - 1 if loss is None else loss
    smaller = np.clip(np.asarray(ks, np.int64) - loss, 0, counted.n_features)
    path = solve_path(counted, smaller, tolerance)
    return (1 - tolerance) * path.bound[np.searchsorted(path.ks, smaller)]


def _solve_one(counted: GroupedCounts, k: int, start: Array | None) -> _Row:
    problem = counted.problem(k)
    if k == 0 or len(problem.classes) < 2:
        return _Row(None, 0.0, 0.0, 0.0, problem.start)
    found = solve_problem(problem, k, start)
    return _Row(found.chosen, found.value, found.bound, found.gap, found.point, found.n_evaluations)


class _PathGrid:
    """Brackets of the dual points of all k, in t = log (a_1 / a_2), closed in on by common points.

    An end of a bracket is (t, height, B+, B-): a point, the sum of the gains of its best set there, and its masses.
    """

    def __init__(self, problem: Problem, ks: Array, tolerance: float) -> None:
        self.problem, self.ks, self.tolerance = problem, ks, tolerance
        n = len(ks)
        self.low, self.high = np.full((2, n, 4), np.nan)  # the nearest points of negative and of positive slope
        self.value, self.value_point = np.full(n, -np.inf), np.zeros((n, 2))
        self.value_height = np.zeros(n)  # which the loss at the point was taken off
        self.bound, self.bound_point = np.full(n, np.inf), np.zeros((n, 2))
        self.floor, self.proposal = np.zeros(n), np.zeros(n)
        self.open = np.ones(n, bool)
        self.n_evaluations = 0
        points = [problem.start]
        for rounds in range(1, _MOST_ROUNDS):
            if not self.open.any():
                break
            for point in points:
                self._evaluate(point)
            points = self._next_points(rounds)

    def to_search(self) -> Array:
        """Return which k have a support that is not within the tolerance, where a fit may find a better one."""
        totals = self.problem.totals
        equal = int(self.problem.sizes.max(initial=1)) > 1
        if not equal and len(self.ks):
            numbering = ColumnNumbering(len(totals))
            numbering.add(bits(totals))
            equal = len(numbering) < totals.shape[1]
        return ((self.ks <= SEARCHED) | equal) & (self.bound - self.value > self.tolerance * self.bound)

    def row(self, i: int) -> _Row:
        """Return the row of the i-th k, whose gain is added up anew where its point was far off."""
        chosen, value, bound, problem = self.value_point[i], self.value[i], self.bound[i], self.problem
        if problem.rounding.of(self.value_height[i], problem.mass) > _SHARP * bound:
            best = problem.top(problem.gains(chosen), int(self.ks[i]))
            gained = set_gain(problem.totals[:, best.columns], best.counts)
            value = float(problem.rounding.below(gained, problem.mass))
        return _Row(chosen, value, bound, max(bound - value, 0.0), self.bound_point[i])

    def _next_points(self, rounds: int) -> list[Array]:
        """Return for each bracket that holds open k the median of where they would go next."""
        t, low, high = self.proposal[self.open], self.low[self.open, 0], self.high[self.open, 0]
        t = np.where(np.isnan(high), np.minimum(t, low + _STRIDE * rounds), t)
        t = np.where(np.isnan(low), np.maximum(t, high - _STRIDE * rounds), t)
        bracket = np.where(np.isnan(low), -np.inf, low)  # brackets do not overlap: the lower end says which
        order = np.lexsort((t, bracket))
        bracket, t = bracket[order], np.clip(t[order], -_FARTHEST, _FARTHEST)
        starts = np.flatnonzero(np.concatenate(([True], bracket[1:] != bracket[:-1])))[: len(t)]
        ends = np.append(starts[1:], len(t))[: len(starts)]
        middle = t[(starts + ends) // 2]
        return [np.array([1 / (1 + math.exp(-x)), 1 / (1 + math.exp(x))]) for x in middle.tolist()]

    def _evaluate(self, point: Array) -> None:
        problem, rounding, mass = self.problem, self.problem.rounding, self.problem.mass
        gain = problem.gains(point)
        order = np.argsort(-gain, kind="stable")
        height, *masses = sums_of_first(np.vstack((gain, problem.totals))[:, order], problem.sizes[order], self.ks)
        self.n_evaluations += 1
        # what these sets gain for sure: heights less what the point costs, each rounded outward
        loss = rounding.above(gains(np.array(masses), point), mass)
        value = np.maximum(np.nextafter(rounding.below(height, mass) - loss, -np.inf), 0.0)
        better = value > self.value
        self.value[better], self.value_point[better], self.value_height[better] = value[better], point, height[better]
        bound = rounding.above(height, mass)
        better = bound < self.bound
        self.bound[better], self.bound_point[better] = bound[better], point
        t, slope = float(np.log(point[0]) - np.log(point[1])), point[0] * masses[1] - point[1] * masses[0]
        end = np.column_stack((np.full(len(height), t), height, *masses))
        inside = self.open & ~(t <= self.low[:, 0]) & ~(t >= self.high[:, 0])
        rising, falling = inside & (slope >= 0), inside & (slope <= 0)
        self.high[rising], self.low[falling] = end[rising], end[falling]
        touched = np.flatnonzero(inside)
        proposal, floor = np.empty((2, len(touched)))
        _propose(self.low[touched], self.high[touched], proposal, floor)
        self.proposal[touched], self.floor[touched] = proposal, np.maximum(self.floor[touched], floor)
        self.open &= self.bound - self.floor > self.tolerance * self.bound
        finite = np.where(np.isfinite(self.proposal), self.proposal, np.nan)
        for known in (self.low[:, 0], self.high[:, 0]):
            self.open &= ~(np.abs(finite - known) <= _NEAR * np.maximum(1.0, np.abs(finite)))


@kernel
def _propose(lows, highs, ts, floors):
    """For each pair of ends: where the larger of their curves is smallest, and a lower bound of that value.

    Q(t) of an end is what the gains of its set add up to at t. A missing end has t = nan; then the other curve alone
    decides.
    """
    for i in range(len(ts)):
        low, high = lows[i], highs[i]
        if np.isnan(low[0]) or np.isnan(high[0]):
            end = high if np.isnan(low[0]) else low
            ts[i], floors[i] = _bottom(end), _lowest(end)
            continue
        a, b = max(low[0], _bottom(high)), min(high[0], _bottom(low))
        if b >= low[0] and b < high[0] and _curve(high, b) <= _curve(low, b):
            ts[i], floors[i] = b, _curve(low, b)
        elif a <= high[0] and a > low[0] and _curve(low, a) <= _curve(high, a):
            ts[i], floors[i] = a, _curve(high, a)
        else:
            t = _crossing(low, high, a, b)
            ts[i], floors[i] = t, min(_curve(low, t), _curve(high, t))


@kernel_part
def _curve(end, t):
    change = 0.0
    if end[2] > 0:
        change -= end[2] * _log_ratio(t, end[0])
    if end[3] > 0:
        change -= end[3] * _log_ratio(-t, -end[0])
    return end[1] + change


@kernel_part
def _log_ratio(t, u):
    """Log of sigma(t) / sigma(u), exact to the last digits where t is near u."""
    if abs(t - u) < 1:
        return -math.log1p(math.expm1(u - t) / (1 + math.exp(u)))
    return _softplus(-u) - _softplus(-t)


@kernel_part
def _softplus(x):
    return x + math.log1p(math.exp(-x)) if x > 0 else math.log1p(math.exp(x))


@kernel_part
def _bottom(end):
    """Where a curve is smallest."""
    if end[2] <= 0:
        return -np.inf
    return math.log(end[2]) - math.log(end[3]) if end[3] > 0 else np.inf


@inlined_part
def _lowest(end):
    """Smallest value of a curve: also where it is reached only at infinity."""
    bottom = _bottom(end)
    if bottom == np.inf:
        return end[1] - end[2] * _softplus(-end[0])
    if bottom == -np.inf:
        return end[1] - end[3] * _softplus(end[0])
    return _curve(end, bottom)


@kernel_part
def _crossing(low, high, a, b):
    """Where the two curves meet between a and b: false position, Illinois variant."""
    fa, fb = _curve(low, a) - _curve(high, a), _curve(low, b) - _curve(high, b)
    side = 0
    for _ in range(100):
        if not (fa * fb < 0 and abs(b - a) > 1e-16 * (1 + abs(a))):
            break
        t = a + (b - a) * (fa / (fa - fb))
        if not (min(a, b) < t < max(a, b)):
            t = (a + b) / 2
        f = _curve(low, t) - _curve(high, t)
        if (f > 0) == (fa > 0):
            a, fa = t, f
            fb = fb / 2 if side == 1 else fb
            side = 1
        else:
            b, fb = t, f
            fa = fa / 2 if side == -1 else fa
            side = -1
    return a if side == 1 else b
