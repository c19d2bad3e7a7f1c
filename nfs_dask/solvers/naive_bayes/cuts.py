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

import numpy as np

from nfs_dask.arrays.compiling import inlined_part, kernel, kernel_part
from nfs_dask.solvers.naive_bayes.gains import SMALLEST
from nfs_dask.solvers.naive_bayes.topk import TopFeatures
from nfs_dask.solvers.solution import Array

CLOSED = 1e-14  # relative width at which upper and lower value are one number
_MOST = 200  # evaluations; three to twelve are usual
_FARTHEST = 700.0  # |t| beyond which exp(t) is no number
_STRIDE = 4.0  # how far beyond the only known end the first looks go, in t
_ROUNDED = 4 * float(np.finfo(float).eps)
_NONE = np.array([math.nan, 0.0, 0.0, 0.0])  # the curve of an end that is not known


@dataclass(frozen=True)
class Cut:
    """The best set at a point, and what its curve needs."""

    point: Array  # (2, )
    curve: Array  # (4, ) t of the point, the sum of the set's gains there, B+ and B-
    choice: TopFeatures

    @classmethod
    def of(cls, point: Array, height: float, masses: Array, choice: TopFeatures) -> Cut:
        """From the sum of the gains at the point, and the set's masses (2, )."""
        return cls(point, np.array([log_odds(point), height, *masses]), choice)

    @property
    def t(self) -> float:
        return float(self.curve[0])

    @property
    def height(self) -> float:
        """Sum of the set's gains at the point."""
        return float(self.curve[1])

    @property
    def masses(self) -> Array:
        """(2, ) B+ and B-."""
        return self.curve[2:]

    @property
    def slope(self) -> float:
        """Sign of the derivative in t."""
        return float(self.point[0] * self.curve[3] - self.point[1] * self.curve[2])


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


def minimise(evaluate: Evaluate, start: Array) -> Minimum:
    """Minimise over points inside (0, 1)."""
    low: Cut | None = None
    high: Cut | None = None
    best = cut = evaluate(start, None, None)
    n, poor = 1, 0
    while True:
        if cut.height < best.height:
            best = cut
        if cut.slope == 0:
            return Minimum(cut, cut, cut, n)
        width = _width(low, high)
        low, high = (cut, high) if cut.slope < 0 else (low, cut)
        poor = poor + 1 if _width(low, high) > width / 2 else 0
        point = np.empty(2)
        closed = _next_point(_curve_of(low), _curve_of(high), best.height, n, poor, point)
        if closed or n == _MOST:
            return Minimum(best, low or best, high or best, n)
        cut = evaluate(point, low, high)
        n += 1


def point_at(t: float) -> Array:
    """(sigma(t), sigma(-t)), both to full precision."""
    t = min(max(t, -_FARTHEST), _FARTHEST)
    return np.array([1 / (1 + math.exp(-t)), 1 / (1 + math.exp(t))])


def log_odds(point: Array) -> float:
    """The t of a point."""
    return math.log(point[0]) - math.log(point[1])


def _curve_of(cut: Cut | None) -> Array:
    return cut.curve if cut else _NONE


def _width(low: Cut | None, high: Cut | None) -> float:
    return high.t - low.t if low and high else math.inf


def near(t: Any) -> Any:
    """Distance in t that is rounding."""
    return _ROUNDED * np.maximum(1.0, np.abs(t))


@kernel
def _next_point(low, high, lowest, n, poor, point):
    """Writes where to look after ``n`` points, ``lowest`` the least sum so far; whether nothing is left to see."""
    t, floor = _proposed(low, high)
    if np.isnan(high[0]):  # not too far from the only end that is known: the other one may be at infinity
        t = min(t, low[0] + _STRIDE * n)
    elif np.isnan(low[0]):
        t = max(t, high[0] - _STRIDE * n)
    if lowest - floor <= CLOSED * lowest:
        return True
    for end in (low, high):
        if abs(t - end[0]) <= _near(t):
            return True
    if poor >= 3 and not (np.isnan(low[0]) or np.isnan(high[0])):
        t = (low[0] + high[0]) / 2
    else:
        for end in (low, high):
            if end[2] > 0 and end[3] > 0 and abs(t - _log_of_ratio(end[2], end[3])) <= _near(t):
                total = end[2] + end[3]  # the same point, to its last digits
                point[0], point[1] = max(end[2] / total, SMALLEST), max(end[3] / total, SMALLEST)
                return False
    t = min(max(t, -_FARTHEST), _FARTHEST)
    point[0], point[1] = 1 / (1 + math.exp(-t)), 1 / (1 + math.exp(t))
    return False


@inlined_part
def _near(t):
    return _ROUNDED * max(1.0, abs(t))


@kernel_part
def _curve(end, t):
    """q(t) of a cut (t, height, B+, B-): its height, and what it falls from there."""
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
    if end[3] <= 0:
        return np.inf
    return _log_of_ratio(end[2], end[3])


@kernel_part
def _log_of_ratio(a, b):
    """Log of a / b, the same for 2 a and 2 b to the last digit."""
    if 1e-300 * b < a < 1e300 * b:
        return math.log(a / b)
    return math.log(a) - math.log(b)


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


@kernel
def propose(lows, highs, ts, floors):
    """For each pair of cuts (t, height, B+, B-): where the larger curve is smallest, and a lower bound of that value.

    A missing end has t = nan; then the other curve alone decides.
    """
    for i in range(len(ts)):
        ts[i], floors[i] = _proposed(lows[i], highs[i])


@inlined_part
def _proposed(low, high):
    """As `propose`, for one pair."""
    if np.isnan(low[0]) or np.isnan(high[0]):
        end = high if np.isnan(low[0]) else low
        return _bottom(end), _lowest(end)
    a, b = max(low[0], _bottom(high)), min(high[0], _bottom(low))
    if b >= low[0] and b < high[0] and _curve(high, b) <= _curve(low, b):
        return b, _curve(low, b)
    if a <= high[0] and a > low[0] and _curve(low, a) <= _curve(high, a):
        return a, _curve(high, a)
    t = _crossing(low, high, a, b)
    return t, min(_curve(low, t), _curve(high, t))


@inlined_part
def _lowest(end):
    """Smallest value of a curve: also where it is reached only at infinity."""
    bottom = _bottom(end)
    if bottom == np.inf:
        return end[1] - end[2] * _softplus(-end[0])
    if bottom == -np.inf:
        return end[1] - end[3] * _softplus(end[0])
    return _curve(end, bottom)
