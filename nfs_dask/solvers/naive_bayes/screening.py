"""Which columns can matter: bounds of gains on an interval of points.

For two classes. A gain is convex in the point: on [lo, hi] its maximum is at an end, its minimum is 0 or at an end.

References: docs/mathematics.md 3.4.
"""

from __future__ import annotations

import numpy as np

from nfs_dask.solvers.naive_bayes.gains import gains
from nfs_dask.solvers.naive_bayes.topk import kth_largest
from nfs_dask.solvers.solution import Array

_SURE = 1 + 2.0**-43  # more than what two gains may be wrong by


def interval_bounds(totals: Array, low: Array, high: Array, at_low: Array, at_high: Array) -> tuple[Array, Array]:
    """Least and largest gain of each column over the points from ``low`` to ``high``, each (2, ), from those there."""
    left = totals[0] * low[1] < totals[1] * low[0]
    right = totals[0] * high[1] > totals[1] * high[0]
    return np.where(left | right, np.minimum(at_low, at_high), 0.0), np.maximum(at_low, at_high)


def screen(totals: Array, sizes: Array, low: Array, high: Array, k: int) -> tuple[Array, Array]:
    """Columns that are in every best set, and columns in none, at all points from ``low`` to ``high``; both boolean.

    >>> totals = np.array([[9.0, 5.0, 0.0], [1.0, 5.0, 9.0]])
    >>> low, high = np.array([0.45, 0.55]), np.array([0.55, 0.45])
    >>> [mask.tolist() for mask in screen(totals, np.ones(3, int), low, high, 2)]
    [[True, False, True], [False, True, False]]
    """
    least, most = interval_bounds(totals, low, high, gains(totals, low), gains(totals, high))
    return least > kth_largest(most, sizes, k + 1) * _SURE, most * _SURE < kth_largest(least, sizes, k)


def in_none(totals: Array, sizes: Array, low: Array, high: Array, at_low: Array, at_high: Array, k: int) -> Array:
    """Columns that are in no best set at any point from ``low`` to ``high``, where gains are known; boolean."""
    least, most = interval_bounds(totals, low, high, at_low, at_high)
    return np.asarray(most * _SURE < kth_largest(least, sizes, k))
