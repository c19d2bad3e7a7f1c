"""Loops that add up real numbers and squares without losing digits, compiled by numba.

Sums are kept as several doubles that do not overlap: two for sums, three for squares, from which large ones cancel.
Each kernel takes the CSR arrays of a block, the class of each row, and the weights of the rows or None.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

from nfs_dask.arrays.block import Array
from nfs_dask.arrays.compiling import kernel
from nfs_dask.arrays.doubles import two_sum
from nfs_dask.arrays.exact_kernels import loose_triple_plus, pair_plus, triple_plus, triple_plus_product, two_product

LANES = 64  # values that are added up side by side
SMALL = 1 << 16  # a whole number below this has a square below 2^32
SMALL_SQUARE = 1 << 32  # squares below this, under their weight, add up in int64


@register_jitable
def _is_small(x: Any, w: Any) -> Any:
    """Return True if the square of a whole number, under its weight, adds up in int64."""
    return x > -SMALL and x < SMALL and (w == 1 or np.float64(w) * np.float64(x * x) < SMALL_SQUARE)


# Entries into arrays (class, column)


@kernel
def add_real_sums(
    indptr: Array, indices: Array, data: Array, codes: Array, weights: Array | None, high: Array, low: Array
) -> None:
    """Add weight * value to high + low [class, column]."""
    for i in range(len(codes)):
        c = codes[i]
        for j in range(indptr[i], indptr[i + 1]):
            k = indices[j]
            x = np.float64(data[j])
            if weights is None:
                total, rest = two_sum(high[c, k], x)
                high[c, k], low[c, k] = two_sum(total, rest + low[c, k])
            else:
                a, b = two_product(np.float64(weights[i]), x)
                high[c, k], low[c, k] = pair_plus(high[c, k], low[c, k], a, b)


@kernel
def add_whole_squares(
    indptr: Array, indices: Array, data: Array, codes: Array, weights: Array | None, out: Array
) -> int:
    """Add weight * value^2 to out[class, column] where that is small; how many entries were left out."""
    left_out = 0
    for i in range(len(codes)):
        c = codes[i]
        w = np.int64(1) if weights is None else np.int64(weights[i])
        for j in range(indptr[i], indptr[i + 1]):
            x = np.int64(data[j])
            if _is_small(x, w):
                out[c, indices[j]] += w * (x * x)
            else:
                left_out += 1
    return left_out


@kernel
def add_real_squares(
    indptr: Array,
    indices: Array,
    data: Array,
    codes: Array,
    weights: Array | None,
    only_large: bool,
    high: Array,
    low: Array,
    least: Array,
) -> None:
    """Add weight * value^2 to high + low + least [class, column]; on request only what `add_whole_squares` left out."""
    for i in range(len(codes)):
        c = codes[i]
        for j in range(indptr[i], indptr[i + 1]):
            if only_large and _is_small(np.int64(data[j]), 1 if weights is None else np.int64(weights[i])):
                continue
            k = indices[j]
            x = np.float64(data[j])
            a, b = two_product(x, x)
            sums = high[c, k], low[c, k], least[c, k]
            if weights is None:
                sums = triple_plus(*sums, a, b)
            else:
                sums = triple_plus_product(*sums, np.float64(weights[i]), a, b)
            high[c, k], low[c, k], least[c, k] = sums


# Rows that have all columns into arrays (class, column)


@kernel
def add_real_rows(matrix: Array, codes: Array, weights: Array | None, high: Array, low: Array) -> None:
    """As `add_real_sums`."""
    for i in range(len(codes)):
        row, h, m = matrix[i], high[codes[i]], low[codes[i]]
        for j in range(len(row)):
            x = np.float64(row[j])
            if weights is None:
                total, rest = two_sum(h[j], x)
                h[j], m[j] = two_sum(total, rest + m[j])
            else:
                h[j], m[j] = pair_plus(h[j], m[j], *two_product(np.float64(weights[i]), x))


@kernel
def add_real_row_squares(
    matrix: Array, codes: Array, weights: Array | None, high: Array, low: Array, least: Array
) -> None:
    """As `add_real_squares`."""
    for i in range(len(codes)):
        row, h, m, s = matrix[i], high[codes[i]], low[codes[i]], least[codes[i]]
        for j in range(len(row)):
            x = np.float64(row[j])
            a, b = two_product(x, x)
            if weights is None:
                h[j], m[j], s[j] = triple_plus(h[j], m[j], s[j], a, b)
            else:
                h[j], m[j], s[j] = triple_plus_product(h[j], m[j], s[j], np.float64(weights[i]), a, b)


# Entries into totals of their classes


@kernel
def narrow_powers(indptr: Array, data: Array, codes: Array, squares: Array, sizes: Array) -> None:
    """Add value^2 to squares[class] and |value| to sizes[class], for numbers of up to 16 bits."""
    for i in range(len(codes)):
        square, size = np.int64(0), np.int64(0)
        for j in range(indptr[i], indptr[i + 1]):
            x = np.int64(data[j])
            square += x * x
            size += abs(x)
        squares[codes[i]] += square
        sizes[codes[i]] += size


@kernel
def whole_powers(
    indptr: Array,
    data: Array,
    codes: Array,
    weights: Array | None,
    squares: Array,
    sizes: Array,
    large_sizes: Array,
    high: Array,
    low: Array,
    least: Array,
) -> float:
    """Add weight * value^2 of whole numbers to squares[class] if small, else to high + low + least [class].

    The sizes weight * |value| go to ``sizes``, those of large squares also to ``large_sizes``. The sum of all sizes is
    returned in floating point, where it cannot wrap.
    """
    about = 0.0
    for i in range(len(codes)):
        c = codes[i]
        w = np.int64(1) if weights is None else np.int64(weights[i])
        for j in range(indptr[i], indptr[i + 1]):
            x = np.int64(data[j])
            about += np.float64(w) * abs(np.float64(x))
            sizes[c] += w * abs(x)
            if _is_small(x, w):
                squares[c] += w * (x * x)
            else:
                large_sizes[c] += w * abs(x)
                a, b = two_product(np.float64(x), np.float64(x))
                high[c], low[c], least[c] = triple_plus_product(high[c], low[c], least[c], np.float64(w), a, b)
    return about


@kernel
def real_powers(
    indptr: Array, data: Array, codes: Array, weights: Array | None, high: Array, low: Array, least: Array
) -> None:
    """Add weight * value^2 to high + low + least [class]."""
    # Each place of a stretch of a row has sums of its own, so that processors add several values at once.
    sums = np.zeros((3, len(high), LANES))
    for i in range(len(codes)):
        h, m, s = sums[0, codes[i]], sums[1, codes[i]], sums[2, codes[i]]
        for first in range(indptr[i], indptr[i + 1], LANES):
            part = data[first : min(first + LANES, indptr[i + 1])]
            for j in range(len(part)):
                x = np.float64(part[j])
                a, b = two_product(x, x)
                if weights is not None:
                    w = np.float64(weights[i])
                    h[j], m[j], s[j] = loose_triple_plus(h[j], m[j], s[j], *two_product(w, b))
                    a, b = two_product(w, a)
                h[j], m[j], s[j] = loose_triple_plus(h[j], m[j], s[j], a, b)
    for c in range(len(high)):
        for j in range(LANES):
            total = triple_plus(high[c], low[c], least[c], sums[0, c, j], sums[1, c, j])
            high[c], low[c], least[c] = triple_plus(*total, sums[2, c, j], 0.0)


@kernel
def add_row_weights(codes: Array, weights: Array | None, high: Array, low: Array) -> None:
    """Add the weight of each row to high + low [class]."""
    for i in range(len(codes)):
        c = codes[i]
        w = 1.0 if weights is None else np.float64(weights[i])
        high[c], low[c] = pair_plus(high[c], low[c], w, 0.0)


# State to state


@kernel
def merge_pairs(high: Array, low: Array, other_high: Array, other_low: Array) -> None:
    """Add the other to high + low, in place."""
    for c in range(len(high)):
        for k in range(high.shape[1]):
            high[c, k], low[c, k] = pair_plus(high[c, k], low[c, k], other_high[c, k], other_low[c, k])


@kernel
def merge_triples(
    high: Array, low: Array, least: Array, other_high: Array, other_low: Array, other_least: Array
) -> None:
    """Add the other to high + low + least, in place."""
    for c in range(len(high)):
        for k in range(high.shape[1]):
            sums = triple_plus(high[c, k], low[c, k], least[c, k], other_high[c, k], other_low[c, k])
            high[c, k], low[c, k], least[c, k] = triple_plus(*sums, other_least[c, k], 0.0)


@kernel
def whole_variances(sums: Array, squares: Array, weight: Array, out: Array) -> None:
    """Rows of ``out``: the sum of class variances, the variance within classes, and that about the mean of all rows.

    Of whole numbers: what would cancel does so in integers, and sums of what is left have no smaller terms than these.
    """
    n_classes, n_columns = sums.shape
    rows = np.int64(0)
    for c in range(n_classes):
        rows += weight[c]
    if rows == 0:
        return
    for i in range(n_columns):
        all_sums, all_squares = np.int64(0), np.int64(0)
        spread, within = 0.0, 0.0
        for c in range(n_classes):
            if weight[c] > 0:
                deviation = np.float64(weight[c] * squares[c, i] - sums[c, i] * sums[c, i]) / weight[c]
                spread += deviation / weight[c]
                within += deviation
                all_sums += sums[c, i]
                all_squares += squares[c, i]
        out[0, i] = spread
        out[1, i] = within / rows
        out[2, i] = np.float64(rows * all_squares - all_sums * all_sums) / rows / rows
