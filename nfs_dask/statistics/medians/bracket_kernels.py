"""Loops over entries that fold them into brackets: counts and sums around each, sorted values inside of it.

Arrays are those of `nfs_dask.statistics.medians.pinned.Pinned`; values have the places of a column side by side here.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.arrays.compiling import kernel
from nfs_dask.arrays.doubles import two_sum
from nfs_dask.arrays.exact_kernels import triple_plus, two_product
from nfs_dask.statistics.medians.full_rows import ROWS, TILE, count_outside, gather_marked

BELOW, AT_LOW, INSIDE, AT_HIGH, ABOVE = range(
    5
)  # where an entry lies; a bracket of one value has no inside and no high


@numba.njit(nogil=True, inline="always")
def _locate(x: Any, low: Any, high: Any) -> Any:
    if x < low:
        return BELOW
    if x > high:
        return ABOVE
    if x == low:
        return AT_LOW
    return AT_HIGH if x == high else INSIDE


@kernel
def fold(
    indptr: Array,
    indices: Array,
    data: Array,
    codes: Array,
    bounds: Array,
    starts: Array,
    ends: Array,
    counts: Array,
    sums_below: Array,
    sums_below_low: Array,
    sums_above: Array,
    sums_above_low: Array,
    following: Array,
    values: Array,
) -> bool:
    """Add entries of weight 1; False where a bracket has no place left."""
    pooled = len(bounds) - 1
    for i in range(len(codes)):
        c = codes[i]
        for j in range(indptr[i], indptr[i + 1]):
            x = np.float64(data[j])
            if x == 0:
                continue
            k = indices[j]
            for view in range(2):
                target = pooled if view else c
                where = _locate(x, bounds[target, 0, k], bounds[target, 1, k])
                if where == BELOW:
                    sums_below[view, c, k], rest = two_sum(sums_below[view, c, k], x)
                    sums_below_low[view, c, k] += rest
                elif where == ABOVE:
                    sums_above[view, c, k], rest = two_sum(sums_above[view, c, k], x)
                    sums_above_low[view, c, k] += rest
                    following[view, c, k] = min(following[view, c, k], x)
                elif where == INSIDE:
                    place = starts[view, c, k] + counts[view, c, INSIDE, k]
                    if place >= ends[view, c, k]:
                        return False
                    values[k, place] = x
                counts[view, c, where, k] += 1
    return True


@kernel
def fold_weighted(
    indptr: Array,
    indices: Array,
    data: Array,
    codes: Array,
    row_weights: Array,
    bounds: Array,
    starts: Array,
    ends: Array,
    counts: Array,
    sums_below: Array,
    sums_below_low: Array,
    sums_above: Array,
    sums_above_low: Array,
    following: Array,
    values: Array,
    sums_below_least: Array,
    sums_above_least: Array,
    weights: Array,
    weights_low: Array,
    value_weights: Array,
) -> bool:
    """As `fold`, with the weight of each row."""
    pooled = len(bounds) - 1
    for i in range(len(codes)):
        c, w = codes[i], row_weights[i]
        if w == 0:
            continue
        for j in range(indptr[i], indptr[i + 1]):
            x = np.float64(data[j])
            if x == 0:
                continue
            k = indices[j]
            product, error = two_product(w, x)
            for view in range(2):
                target = pooled if view else c
                where = _locate(x, bounds[target, 0, k], bounds[target, 1, k])
                if where == BELOW:
                    sums = sums_below[view, c, k], sums_below_low[view, c, k], sums_below_least[view, c, k]
                    sums = triple_plus(*sums, product, error)
                    sums_below[view, c, k], sums_below_low[view, c, k], sums_below_least[view, c, k] = sums
                elif where == ABOVE:
                    sums = sums_above[view, c, k], sums_above_low[view, c, k], sums_above_least[view, c, k]
                    sums = triple_plus(*sums, product, error)
                    sums_above[view, c, k], sums_above_low[view, c, k], sums_above_least[view, c, k] = sums
                    following[view, c, k] = min(following[view, c, k], x)
                elif where == INSIDE:
                    place = starts[view, c, k] + counts[view, c, INSIDE, k]
                    if place >= ends[view, c, k]:
                        return False
                    values[k, place] = x
                    value_weights[k, place] = w
                counts[view, c, where, k] += 1
                total, rest = two_sum(weights[view, c, where, k], w)
                rest += weights_low[view, c, where, k]
                weights[view, c, where, k], weights_low[view, c, where, k] = two_sum(total, rest)
    return True


# Full rows: what is below or above both brackets of a column adds to both of its views alike.


@numba.njit(nogil=True)
def _sum_outside(
    row: Any, low: Any, high: Any, below: Any, below_low: Any, above: Any, above_low: Any, following: Any
) -> None:
    """Add what lies below, and what lies above, to a sum of each column, and find the least that lies above."""
    for j in range(len(row)):
        y = low.dtype.type(row[j])
        x = np.float64(y)
        is_above = (y > high[j]) & (y != 0)
        total, rest = two_sum(below[j], x if y < low[j] else 0.0)
        below[j] = total
        below_low[j] += rest
        total, rest = two_sum(above[j], x if is_above else 0.0)
        above[j] = total
        above_low[j] += rest
        candidate = y if is_above else low.dtype.type(np.inf)
        following[j] = candidate if candidate < following[j] else following[j]


@numba.njit(nogil=True)
def _add_outside(found: Any, sums: Any, rests: Any, counts: Any, into: Any, into_low: Any) -> None:
    """Add sums and counts of some columns to those of a view."""
    for j in range(len(into)):
        counts[j] += found[j]
        total, rest = two_sum(into[j], sums[j])
        into[j] = total
        into_low[j] += rest + rests[j]


@numba.njit(nogil=True)
def _fold_list(
    given: Any,
    view: Any,
    c: Any,
    k: Any,
    low: Any,
    high: Any,
    starts: Any,
    ends: Any,
    counts: Any,
    sums_below: Any,
    sums_below_low: Any,
    sums_above: Any,
    sums_above_low: Any,
    following: Any,
    values: Any,
) -> Any:
    """As `fold`, for some values of one column in one view."""
    for n in range(len(given)):
        x = np.float64(given[n])
        where = _locate(x, low, high)
        if where == BELOW:
            sums_below[view, c, k], rest = two_sum(sums_below[view, c, k], x)
            sums_below_low[view, c, k] += rest
        elif where == ABOVE:
            sums_above[view, c, k], rest = two_sum(sums_above[view, c, k], x)
            sums_above_low[view, c, k] += rest
            following[view, c, k] = min(following[view, c, k], x)
        elif where == INSIDE:
            place = starts[view, c, k] + counts[view, c, INSIDE, k]
            if place >= ends[view, c, k]:
                return False
            values[k, place] = x
        counts[view, c, where, k] += 1
    return True


@kernel
def fold_full(
    matrix: Array,
    order: Array,
    class_starts: Array,
    hulls: Array,
    bounds: Array,
    starts: Array,
    ends: Array,
    counts: Array,
    sums_below: Array,
    sums_below_low: Array,
    sums_above: Array,
    sums_above_low: Array,
    following: Array,
    values: Array,
    lists: Array,
) -> bool:
    """As `fold`, for rows that have all columns, class by class."""
    n_columns, n_classes = matrix.shape[1], len(class_starts) - 1
    into = (starts, ends, counts, sums_below, sums_below_low, sums_above, sums_above_low, following, values)
    lengths = np.zeros(TILE, np.int64)
    n_below, n_above = np.zeros(TILE, np.int32), np.zeros(TILE, np.int32)  # all apart, so that loops are vectorised
    below, below_low = np.zeros(TILE), np.zeros(TILE)
    above, above_low = np.zeros(TILE), np.zeros(TILE)
    least = np.zeros(TILE, hulls.dtype)
    marks = np.zeros(TILE, np.uint8)
    words = marks.view(np.uint64)
    for first in range(0, n_columns, TILE):
        stop = min(n_columns, first + TILE)
        marks[:] = 0
        for c in range(n_classes):
            low, high = hulls[0, c, first:stop], hulls[1, c, first:stop]
            for start in range(class_starts[c], class_starts[c + 1], ROWS):
                n_below[:], n_above[:], least[:], lengths[:] = 0, 0, np.inf, 0
                below[:], below_low[:], above[:], above_low[:] = 0.0, 0.0, 0.0, 0.0
                for i in range(start, min(start + ROWS, class_starts[c + 1])):
                    row = matrix[order[i], first:stop]
                    count_outside(row, low, high, n_below, n_above, marks)
                    _sum_outside(row, low, high, below, below_low, above, above_low, least)
                    gather_marked(row, words, lists, lengths)
                for view in range(2):
                    target = n_classes if view else c
                    low_sums = sums_below[view, c, first:stop], sums_below_low[view, c, first:stop]
                    _add_outside(n_below, below, below_low, counts[view, c, BELOW, first:stop], *low_sums)
                    high_sums = sums_above[view, c, first:stop], sums_above_low[view, c, first:stop]
                    _add_outside(n_above, above, above_low, counts[view, c, ABOVE, first:stop], *high_sums)
                    for k in range(first, stop):
                        following[view, c, k] = min(following[view, c, k], least[k - first])
                        given = lists[k - first, : lengths[k - first]]
                        if not _fold_list(given, view, c, k, bounds[target, 0, k], bounds[target, 1, k], *into):
                            return False
    return True


# Values inside of brackets


@kernel
def append(values: Array, more: Array, starts: Array, before: Array, n_more: Array) -> None:
    """Copy the first values of each view of another state behind those of this one."""
    for view in range(starts.shape[0]):
        for c in range(starts.shape[1]):
            for k in range(starts.shape[2]):
                start = starts[view, c, k]
                for j in range(n_more[view, c, k]):
                    values[k, start + before[view, c, k] + j] = more[k, start + j]


@kernel
def sort_values(values: Array, starts: Array, before: Array, after: Array) -> None:
    """Sort what was appended to each view, and merge it from the largest on into what was sorted before."""
    for k in range(starts.shape[2]):
        for view in range(starts.shape[0]):
            for c in range(starts.shape[1]):
                a, n = before[view, c, k], after[view, c, k]
                if a == n:
                    continue
                part = values[k, starts[view, c, k] : starts[view, c, k] + n]
                tail = np.sort(part[a:])
                b = len(tail)
                while b > 0:
                    n -= 1
                    if a > 0 and part[a - 1] > tail[b - 1]:
                        a -= 1
                        part[n] = part[a]
                    else:
                        b -= 1
                        part[n] = tail[b]


@kernel
def sort_weighted(values: Array, weights: Array, starts: Array, before: Array, after: Array) -> None:
    """As `sort_values`; equal values are in the order of their weights."""
    for k in range(starts.shape[2]):
        for view in range(starts.shape[0]):
            for c in range(starts.shape[1]):
                a, n = before[view, c, k], after[view, c, k]
                if a == n:
                    continue
                part = values[k, starts[view, c, k] : starts[view, c, k] + n]
                heavy = weights[k, starts[view, c, k] : starts[view, c, k] + n]
                order = np.argsort(heavy[a:])
                order = order[np.argsort(part[a:][order], kind="mergesort")]
                tail, tail_weights = part[a:][order], heavy[a:][order]
                b = len(tail)
                while b > 0:
                    n -= 1
                    x, y = part[a - 1], tail[b - 1]
                    if a > 0 and (x > y or (x == y and heavy[a - 1] > tail_weights[b - 1])):
                        a -= 1
                        part[n], heavy[n] = part[a], heavy[a]
                    else:
                        b -= 1
                        part[n], heavy[n] = tail[b], tail_weights[b]
