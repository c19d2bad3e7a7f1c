"""Full rows against a hull of each column: most values lie outside of it, and need no look of their own.

Rows are walked class by class. What lies outside is told by loops over whole rows without branches, which compile to
vector instructions; what lies inside is gathered in a list for each column, so that what belongs to one column is
looked up together, while it is in cache.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.arrays.kernels import trailing_zeros

TILE = 1024  # columns that are walked together: less, and starting each row costs more than its values
ROWS = 1024  # rows of a class that are walked before lists are emptied
LISTS_NBYTES = TILE * (ROWS + 16) * 8  # of the lists of a tile
_ONE_BIT_EACH = np.uint64(0x0102040810204080)  # times eight bytes of 0 or 1: these are the bits of the highest byte


def by_class(codes: Array, n_classes: int) -> tuple[Array, Array]:
    """Rows in the order of their classes, and where each class begins."""
    order = np.argsort(codes, kind="stable")
    return order, np.searchsorted(codes[order], np.arange(n_classes + 1))


def hulls(bounds: Array) -> Array:
    """Return the hull of the own and the pooled bounds of each class: (2, C, columns) of (C + 1, 2, columns)."""
    return np.stack((np.minimum(bounds[:-1, 0], bounds[-1, 0]), np.maximum(bounds[:-1, 1], bounds[-1, 1])))


def rounded_inwards(hull: Array, dtype: np.dtype[Any]) -> Array:
    """Lows and highs in a type that values of ``dtype`` fit, which compare with them as with the bounds themselves."""
    if dtype.itemsize > (4 if dtype.kind == "f" else 2):
        return hull
    with np.errstate(over="ignore"):  # beyond the largest float there are no values
        low, high = hull.astype(np.float32)
    low = np.where(low < hull[0], np.nextafter(low, np.float32(np.inf)), low)
    return np.stack((low, np.where(high > hull[1], np.nextafter(high, np.float32(-np.inf)), high)))


def room(matrix: Array, hull: Array) -> Array:
    """Memory for a list of each column of a tile."""
    n_rows, n_columns = matrix.shape
    return np.empty((min(n_columns, TILE), min(n_rows, ROWS) + 16), hull.dtype)


@numba.njit(nogil=True)
def count_outside(row: Any, low: Any, high: Any, below: Any, above: Any, marks: Any) -> None:
    """Count what lies below and above in each column, and mark what lies inside; zeros are neither."""
    for j in range(len(row)):
        x = low.dtype.type(row[j])
        there = x != 0
        is_below, is_above = (x < low[j]) & there, (x > high[j]) & there
        below[j] += np.int32(is_below)
        above[j] += np.int32(is_above)
        marks[j] = np.uint8(there & ~(is_below | is_above))


@numba.njit(nogil=True)
def gather_marked(row: Any, words: Any, lists: Any, lengths: Any) -> None:
    """Append what is marked to the list of its column; ``words`` are the marks, eight at a time."""
    for first in range(0, len(words), 8):
        bits = np.uint64(0)
        for k in range(8):
            bits |= ((words[first + k] * _ONE_BIT_EACH) >> np.uint64(56)) << np.uint64(8 * k)
        while bits:
            j = 8 * first + np.int64(trailing_zeros(bits))
            bits &= bits - np.uint64(1)
            lists[j, lengths[j]] = row[j]
            lengths[j] += 1
