"""One k, two classes: the smallest sum of the k largest gains, by curved cuts instead of bisection.

For a set D that is best at a point, q_D(t) = G(D) + B KL(p_D || sigma(t)) touches the sum of the k largest gains there
and bounds it from below everywhere. The next point minimises the larger of two such curves, one from either side.

References: NFS (USMNB), section 3.4, by curved cuts: docs/mathematics.md 3.4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numba
import numpy as np

from nfs_dask.arrays.compiling import kernel
from nfs_dask.solvers.naive_bayes.gains import shares
from nfs_dask.solvers.naive_bayes.topk import TopFeatures
from nfs_dask.solvers.solution import Array

CLOSED = 1e-14  # relative width at which upper and lower value are one number
_MOST = 200  # evaluations; three to twelve are usual
_FARTHEST = 700.0  # |t| beyond which exp(t) is no number
_STRIDE = 4.0  # how far beyond the only known end the first looks go, in t


@dataclass(frozen=True)
class Cut:
    """The best set at a point, and what its curve needs."""

    point: Array  # (2, )
    height: float  # sum of its gains at the point
    masses: Array  # (2, ) B+ and B-
    choice: TopFeatures

    @property
    def t(self) -> float:
        return math.log(self.point[0]) - math.log(self.point[1])

    @property
    def slope(self) -> float:
        """Sign of the derivative in t."""
        return float(self.point[0] * self.masses[1] - self.point[1] * self.masses[0])


@dataclass(frozen=True)
class Minimum:
    """Where the sum of the k largest gains is smallest, and the sets that meet there."""

    best: Cut
    low: Cut  # negative slope, or the best cut itself
    high: Cut  # positive slope, or the best cut itself
    n_evaluations: int

    def map(self, column: Callable[[Array], Array]) -> Minimum:
        """The same with other numbers for the columns."""
        cuts = {id(cut): cut for cut in (self.best, self.low, self.high)}  # the best one often is an end
        found = {key: replace(cut, choice=cut.choice.map(column)) for key, cut in cuts.items()}
        return Minimum(found[id(self.best)], found[id(self.low)], found[id(self.high)], self.n_evaluations)


Evaluate = Callable[[Array, Cut | None, Cut | None], Cut]  # point, and the ends known so far


def minimise(evaluate: Evaluate, start: Array, low: Cut | None = None, high: Cut | None = None) -> Minimum:
    """Minimise over points inside (0, 1); ``low`` and ``high`` may hold cuts that are known already."""
    best = evaluate(start, low, high)
    cut, n, poor = best, 1, 0
    while True:
        if cut.height < best.height:
            best = cut
        if cut.slope == 0:
            return Minimum(cut, cut, cut, n)
        width = _width(low, high)
        low, high = (cut, high) if cut.slope < 0 else (low, cut)
        poor = poor + 1 if _width(low, high) > width / 2 else 0
        t, floor = propose_one(low, high)
        t = _reined(t, low, high, n)
        if best.height - floor <= CLOSED * best.height or n == _MOST or _at_an_end(t, low, high):
            return Minimum(best, low or best, high or best, n)
        cut = evaluate(_next_point(t, low, high, poor), low, high)
        n += 1


def point_at(t: float) -> Array:
    """(sigma(t), sigma(-t)), both to full precision."""
    t = min(max(t, -_FARTHEST), _FARTHEST)
    return np.array([1 / (1 + math.exp(-t)), 1 / (1 + math.exp(t))])


def propose_one(low: Cut | None, high: Cut | None) -> tuple[float, float]:
    """Where the larger of the two curves is smallest, and how small it is there."""
    t, floor = np.empty(1), np.empty(1)
    ends = [np.array([_numbers(end)]) for end in (low, high)]
    propose(*ends, t, floor)
    return float(t[0]), float(floor[0])


def _numbers(cut: Cut | None) -> tuple[float, ...]:
    return (cut.t, cut.height, *cut.masses) if cut else (math.nan, 0.0, 0.0, 0.0)


def _width(low: Cut | None, high: Cut | None) -> float:
    return high.t - low.t if low and high else math.inf


def _at_an_end(t: float, low: Cut | None, high: Cut | None) -> bool:
    return any(end is not None and abs(t - end.t) <= near(t) for end in (low, high))


def near(t: Any) -> Any:
    """Distance in t that is rounding."""
    return 4 * np.finfo(float).eps * np.maximum(1.0, np.abs(t))


def _reined(t: float, low: Cut | None, high: Cut | None, n: int) -> float:
    """Not too far from the only end that is known: the other one may be at infinity."""
    if low and not high:
        return min(t, low.t + _STRIDE * n)
    if high and not low:
        return max(t, high.t - _STRIDE * n)
    return t


def _next_point(t: float, low: Cut | None, high: Cut | None, poor: int) -> Array:
    if low and high and poor >= 3:
        return point_at((low.t + high.t) / 2)
    for end in (low, high):
        if end and end.masses.all() and abs(t - _log_of_ratio(*end.masses)) <= near(t):
            return shares(end.masses, end.masses)  # the same point, to its last digits
    return point_at(t)


@numba.njit(nogil=True)
def _curve(end, t):
    """q(t) of a cut (t, height, B+, B-): its height, and what it falls from there."""
    change = 0.0
    if end[2] > 0:
        change -= end[2] * _log_ratio(t, end[0])
    if end[3] > 0:
        change -= end[3] * _log_ratio(-t, -end[0])
    return end[1] + change


@numba.njit(nogil=True)
def _log_ratio(t, u):
    """Log of sigma(t) / sigma(u), exact to the last digits where t is near u."""
    if abs(t - u) < 1:
        return -math.log1p(math.expm1(u - t) / (1 + math.exp(u)))
    return _softplus(-u) - _softplus(-t)


@numba.njit(nogil=True)
def _softplus(x):
    return x + math.log1p(math.exp(-x)) if x > 0 else math.log1p(math.exp(x))


@numba.njit(nogil=True)
def _bottom(end):
    """Where a curve is smallest."""
    if end[2] <= 0:
        return -np.inf
    if end[3] <= 0:
        return np.inf
    return _log_of_ratio(end[2], end[3])


@numba.njit(nogil=True)
def _log_of_ratio(a, b):
    """Log of a / b, the same for 2 a and 2 b to the last digit."""
    if 1e-300 * b < a < 1e300 * b:
        return math.log(a / b)
    return math.log(a) - math.log(b)


@numba.njit(nogil=True)
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


@kernel
def propose(lows, highs, ts, floors):
    """For each pair of cuts (t, height, B+, B-): where the larger curve is smallest, and a lower bound of that value.

    A missing end has t = nan; then the other curve alone decides.
    """
    for i in range(len(ts)):
        low, high = lows[i], highs[i]
        if np.isnan(low[0]) or np.isnan(high[0]):
            end = high if np.isnan(low[0]) else low
            ts[i] = _bottom(end)
            floors[i] = _lowest(end)
            continue
        a, b = max(low[0], _bottom(high)), min(high[0], _bottom(low))
        if b >= low[0] and b < high[0] and _curve(high, b) <= _curve(low, b):
            ts[i] = b
            floors[i] = _curve(low, b)
        elif a <= high[0] and a > low[0] and _curve(low, a) <= _curve(high, a):
            ts[i] = a
            floors[i] = _curve(high, a)
        else:
            t = _crossing(low, high, a, b)
            ts[i] = t
            floors[i] = min(_curve(low, t), _curve(high, t))


@numba.njit(nogil=True)
def _lowest(end):
    """Smallest value of a curve: also where it is reached only at infinity."""
    bottom = _bottom(end)
    if bottom == np.inf:
        return end[1] - end[2] * _softplus(-end[0])
    if bottom == -np.inf:
        return end[1] - end[3] * _softplus(end[0])
    return _curve(end, bottom)
