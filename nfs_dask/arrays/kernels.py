"""Loops over CSR entries, compiled by numba, that run without the interpreter's lock.

None of them is parallel: threads and processes come from Dask.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from nfs_dask.arrays.compiling import kernel


def _multiply_add(_typing: Any, _x: Any, _y: Any, _z: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


# For loops: x y + z, rounded once, an instruction where the processor has it. With z = -(x y) it is what rounding that
# product left over.
fused: Any = intrinsic(_multiply_add)


def _count_trailing_zeros(_typing: Any, _x: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], cgutils.true_bit)

    return types.uint64(types.uint64), generate


# For loops: the position of the lowest bit that is set, of a number that is not 0.
trailing_zeros: Any = intrinsic(_count_trailing_zeros)


def read_only(array: Any) -> Any:
    """A view that cannot be written, so that a kernel is compiled for one kind of the arrays that it only reads."""
    view = array.view()
    view.flags.writeable = False
    return view


@kernel
def is_canonical(indptr, indices):
    """Whether the columns of each row strictly increase."""
    for i in range(len(indptr) - 1):
        for j in range(indptr[i] + 1, indptr[i + 1]):
            if indices[j] <= indices[j - 1]:
                return False
    return True


@kernel
def has_duplicates(indptr, indices, marks):
    """Whether a row has a column twice; ``marks`` has a place for each column, all -1."""
    for i in range(len(indptr) - 1):
        for j in range(indptr[i], indptr[i + 1]):
            if marks[indices[j]] == i:
                return True
            marks[indices[j]] = i
    return False


@kernel
def row_starts(rows, starts):
    """From the row of each entry to row pointers; False where a row is out of order or beyond the last."""
    last = np.int64(0)
    for j in range(len(rows)):
        row = np.int64(rows[j])
        if row != last:
            if row < last or row >= len(starts) - 1:
                return False
            for r in range(last + 1, row + 1):
                starts[r] = j
            last = row
    for r in range(last + 1, len(starts)):
        starts[r] = len(rows)
    return True


@kernel
def about_sum(data):
    """Sum of whole numbers in floating point, where it cannot wrap."""
    about = 0.0
    for j in range(len(data)):
        about += np.float64(np.int64(data[j]))
    return about


def first_refused(data: Any, non_negative: bool) -> int:
    """Position of the first value that is not finite, or negative where that is refused; -1 if none."""
    if not len(data) or data.dtype.kind in "bu":
        return -1
    # numpy takes more values at a time than compiled loops do; to it a NaN is both the smallest and the largest.
    with np.errstate(invalid="ignore"):
        low, high = data.min(), 0 if data.dtype.kind == "i" else data.max()
    finite = np.isfinite(low) and np.isfinite(high)
    return -1 if finite and not (non_negative and low < 0) else _first_refused(read_only(data), non_negative)


@kernel
def _first_refused(data, non_negative):
    for j in range(len(data)):
        v = data[j]
        if not (v - v == 0) or (non_negative and v < 0):
            return j
    return -1


@kernel
def integer_range(data):
    """Smallest value, largest value, and whether all are whole numbers."""
    low, high = 0.0, 0.0
    for j in range(len(data)):
        v = np.float64(data[j])
        if v != np.floor(v):
            return low, high, False
        low = min(low, v)
        high = max(high, v)
    return low, high, True


@kernel
def add_values(indptr, indices, data, codes, weights, out):
    """out[class, column] += value, times the weight of the row if there are any, in the order of the entries."""
    number = out.dtype.type
    for i in range(len(codes)):
        c = codes[i]
        w = number(1) if weights is None else number(weights[i])
        for j in range(indptr[i], indptr[i + 1]):
            out[c, indices[j]] += w * number(data[j])


@kernel
def add_documents(indptr, indices, data, codes, threshold, weights, out):
    """out[class, column] += 1, or the weight of the row, for each entry above the threshold."""
    for i in range(len(codes)):
        c = codes[i]
        w = 1 if weights is None else weights[i]
        for j in range(indptr[i], indptr[i + 1]):
            if data[j] > threshold:
                out[c, indices[j]] += w


@kernel
def bucket_sizes(indptr, indices, codes, shift, n_classes, sizes):
    """sizes[tile * n_classes + class] += 1 for each entry; a tile is 2**shift columns."""
    for i in range(len(codes)):
        c = np.int64(codes[i])
        for j in range(indptr[i], indptr[i + 1]):
            sizes[(np.int64(indices[j]) >> shift) * n_classes + c] += 1


@kernel
def bucket_entries(indptr, indices, data, codes, shift, n_classes, ends, columns, values):
    """Stable counting sort of the entries by (tile, class). ``ends`` holds bucket starts and leaves as bucket ends."""
    mask = (np.int64(1) << shift) - 1
    for i in range(len(codes)):
        c = np.int64(codes[i])
        for j in range(indptr[i], indptr[i + 1]):
            column = np.int64(indices[j])
            b = (column >> shift) * n_classes + c
            p = ends[b]
            ends[b] = p + 1
            columns[p] = column & mask
            values[p] = data[j]


@kernel
def bucket_rows(indptr, indices, codes, shift, n_classes, ends, rows):
    """The row each entry came from, in the order of ``bucket_entries``."""
    for i in range(len(codes)):
        c = np.int64(codes[i])
        for j in range(indptr[i], indptr[i + 1]):
            b = (np.int64(indices[j]) >> shift) * n_classes + c
            p = ends[b]
            ends[b] = p + 1
            rows[p] = i


@kernel
def gather_entries(ends, columns, values, shift, n_classes, first, starts, out_columns, out_values):
    """Copy each bucket of a piece to where it belongs among its siblings; columns become the panel's own.

    The first of the buckets' tiles begins at column ``first`` of the panel.
    """
    p = 0
    for b in range(len(ends)):
        offset = first + ((b // n_classes) << shift)
        q = starts[b]
        for j in range(p, ends[b]):
            out_columns[q] = offset + np.int64(columns[j])
            out_values[q] = values[j]
            q += 1
        starts[b] = q
        p = ends[b]


@kernel
def gather_weights(ends, weights, starts, out):
    """As `gather_entries`, for the weights."""
    p = 0
    for b in range(len(ends)):
        q = starts[b]
        for j in range(p, ends[b]):
            out[q] = weights[j]
            q += 1
        p = ends[b]
