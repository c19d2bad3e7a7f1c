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
