"""Loops over entries that fold them into brackets: counts and sums around each, sorted values inside of it.

Arrays are those of `nfs_dask.statistics.medians.pinned.Pinned`; values have the places of a column side by side here.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.arrays.doubles import two_sum
from nfs_dask.arrays.exact_kernels import triple_plus, two_product
from nfs_dask.arrays.kernels import kernel
from nfs_dask.statistics.medians.full_rows import count_above, count_below, gather_marked, mark_inside

BELOW, AT_LOW, INSIDE, AT_HIGH, ABOVE = range(
    5
)  # where an entry lies; a bracket of one value has no inside and no high
TILE = 256  # columns of full rows that are folded before the next row


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


# Full rows, in loops without branches that compile to vector instructions; what is in brackets is gathered.


@numba.njit(nogil=True, inline="always")
def _sum_above(row: Any, high: Any, sums: Any, sums_low: Any) -> None:
    for j in range(len(row)):
        x = np.float64(row[j])
        total, rest = two_sum(sums[j], x if x > high[j] else 0.0)
        sums[j] = total
        sums_low[j] += rest


@numba.njit(nogil=True, inline="always")
def _sum_below(row: Any, low: Any, sums: Any, sums_low: Any) -> None:
    for j in range(len(row)):
        x = np.float64(row[j])
        total, rest = two_sum(sums[j], x if x < low[j] else 0.0)
        sums[j] = total
        sums_low[j] += rest


@numba.njit(nogil=True, inline="always")
def _least_above(row: Any, high: Any, following: Any) -> None:
    for j in range(len(row)):
        x = np.float64(row[j])
        y = x if (x > high[j]) & (x != 0.0) else np.inf
        following[j] = y if y < following[j] else following[j]


@kernel
def fold_full(
    matrix: Array,
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
    """As `fold`, for rows that have all columns."""
    n_columns, pooled = matrix.shape[1], len(bounds) - 1
    marks = np.zeros(TILE, np.uint8)
    words = marks.view(np.uint64)
    found = np.zeros(TILE + 1, np.int64)
    for first in range(0, n_columns, TILE):
        stop = min(n_columns, first + TILE)
        marks[:] = 0
        for i in range(len(codes)):
            c = codes[i]
            row = matrix[i, first:stop]
            for view in range(2):
                target = pooled if view else c
                low, high = bounds[target, 0, first:stop], bounds[target, 1, first:stop]
                _sum_below(row, low, sums_below[view, c, first:stop], sums_below_low[view, c, first:stop])
                _sum_above(row, high, sums_above[view, c, first:stop], sums_above_low[view, c, first:stop])
                count_below(row, low, counts[view, c, BELOW, first:stop])
                count_above(row, high, counts[view, c, ABOVE, first:stop])
                _least_above(row, high, following[view, c, first:stop])
                mark_inside(row, low, high, marks)
                for n in range(gather_marked(marks, words, found)):
                    x, k = np.float64(row[found[n]]), first + found[n]
                    where = AT_LOW if x == bounds[target, 0, k] else AT_HIGH if x == bounds[target, 1, k] else INSIDE
                    if where == INSIDE:
                        place = starts[view, c, k] + counts[view, c, INSIDE, k]
                        if place >= ends[view, c, k]:
                            return False
                        values[k, place] = x
                    counts[view, c, where, k] += 1
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
