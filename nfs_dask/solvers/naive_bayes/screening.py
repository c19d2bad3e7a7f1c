"""Which columns can matter: bounds of gains on an interval of points, and bounds without logarithms for a first sieve.

For two classes. A gain is convex in the point: on [lo, hi] its maximum is at an end, its minimum is 0 or at an end.

References: docs/mathematics.md 3.4.
"""

from __future__ import annotations

import numba
import numpy as np

from nfs_dask.arrays.kernels import kernel
from nfs_dask.solvers.naive_bayes.gains import gains
from nfs_dask.solvers.solution import Array

_SAFE = 1e-9  # relative: more than the rounding of any bound here
_ROUNDED = 2.0**-51  # of its terms: more than the rounding of f b - e a
_SURE = 1 + 2.0**-43  # more than what two gains may be wrong by


def interval_bounds(totals: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Least and largest gain of each column over the points from ``low`` to ``high``, each (2, )."""
    ends = gains(totals, low), gains(totals, high)
    left = totals[0] * low[1] < totals[1] * low[0]
    right = totals[0] * high[1] > totals[1] * high[0]
    return np.where(left | right, np.minimum(*ends), 0.0), np.maximum(*ends)


def screen(totals: Array, sizes: Array, low: Array, high: Array, k: int) -> tuple[Array, Array]:
    """Columns that are in every best set, and columns in none, at all points from ``low`` to ``high``; both boolean.

    >>> totals = np.array([[9.0, 5.0, 0.0], [1.0, 5.0, 9.0]])
    >>> low, high = np.array([0.45, 0.55]), np.array([0.55, 0.45])
    >>> [mask.tolist() for mask in screen(totals, np.ones(3, int), low, high, 2)]
    [[True, False, True], [False, True, False]]
    """
    least, most = interval_bounds(totals, low, high)
    return least > kth_largest(most, sizes, k + 1) * _SURE, most * _SURE < kth_largest(least, sizes, k)


def kth_largest(values: Array, sizes: Array, k: int) -> float:
    """The k-th largest value, each counted ``sizes`` times; -inf if there are fewer than k."""
    n = len(values)
    total = int(sizes.sum())
    if k > total:
        return -np.inf
    if k <= 0:
        return np.inf
    if total == n:
        return float(np.partition(values, n - k)[n - k])
    order = np.argsort(-values, kind="stable")
    return float(values[order[np.searchsorted(np.cumsum(sizes[order]), k)]])


def sure_floor(totals: Array, sizes: Array, point: Array, k: int) -> float:
    """A number that at least k features' gains reach at ``point``, found without a logarithm."""
    counts = np.zeros(1 << 16, np.int64)
    _count_lower_bounds(totals, sizes, point, counts)
    reached = counts[::-1].cumsum()[::-1]
    buckets = np.flatnonzero(reached >= k)
    if not len(buckets):
        return 0.0
    return float(np.array([buckets[-1] << 48], np.int64).view(np.float64)[0]) * (1 - _SAFE)


def reaching(totals: Array, points: Array, floor: float) -> Array:
    """Columns whose gain may reach ``floor`` at one of ``points`` (n, 2), a few too many; ascending indices."""
    out = np.empty(totals.shape[1], np.int64)
    logs = -np.log(points)
    return out[: _collect(totals, points, logs, floor * (1 - _SAFE), out)].copy()


@numba.njit(nogil=True)
def _lower(f, e, a, b):
    """A lower bound of a gain: its square distance, by the least curvature between p and the point."""
    g = f + e
    p = f / g
    d = max(abs(f * b - e * a) - _ROUNDED * (f * b + e * a), 0.0) / g
    widest = 0.25 if (p - 0.5) * (a - 0.5) < 0 else max(p * (1 - p), a * b)  # variance between p and the point
    return 0.5 * g * d * d / widest


@kernel
def _count_lower_bounds(totals, sizes, point, counts):
    """counts[leading 16 bits of a lower bound] += features; the bits of non-negative numbers are in order."""
    value = np.empty(1)
    bits = value.view(np.uint64)
    for i in range(totals.shape[1]):
        f, e = totals[0, i], totals[1, i]
        if f + e > 0:
            value[0] = _lower(f, e, point[0], point[1])
            counts[np.int64(bits[0] >> np.uint64(48))] += sizes[i]


@kernel
def _collect(totals, points, logs, floor, out):
    """Indices of columns of which an upper bound, chi-square or by the log of the point alone, reaches the floor."""
    n = 0
    for i in range(totals.shape[1]):
        f, e = totals[0, i], totals[1, i]
        for j in range(len(points)):
            a, b = points[j, 0], points[j, 1]
            g = f + e
            d = abs(f * b - e * a) + _ROUNDED * (f * b + e * a)
            if f * logs[j, 0] + e * logs[j, 1] >= floor and (d * d >= floor * g * a * b):
                out[n] = i
                n += 1
                break
    return n
