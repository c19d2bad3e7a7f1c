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
    """Return True if the columns of each row strictly increase."""
    for i in range(len(indptr) - 1):
        for j in range(indptr[i] + 1, indptr[i + 1]):
            if indices[j] <= indices[j - 1]:
                return False
    return True


@kernel
def has_duplicates(indptr, indices, marks):
    """Return True if a row has a column twice; ``marks`` has a place for each column, all -1."""
    for i in range(len(indptr) - 1):
        for j in range(indptr[i], indptr[i + 1]):
            if marks[indices[j]] == i:
                return True
            marks[indices[j]] = i
    return False


LANES = 256  # values that are looked at side by side


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
    if data.dtype.kind in "bu" or (data.dtype.kind == "i" and not non_negative):
        return -1
    return int(_first_refused(read_only(data), 0.0 if non_negative else -np.inf))


@kernel
def _first_refused(data, least):
    # A stretch is looked at without a branch and by unsigned places, so that processors take several values at once.
    for first in range(0, len(data), 4096):
        stop = min(first + 4096, len(data))
        refused = False
        for j in range(np.uint64(first), np.uint64(stop)):
            refused |= not (data[j] - data[j] == 0)
            refused |= data[j] < least
        if refused:
            for j in range(first, stop):
                if not (data[j] - data[j] == 0) or data[j] < least:
                    return j
    return -1


@kernel
def value_range(data):
    """Smallest and largest value, or 0, and the sum of what is left over whole numbers: NaN if one is not finite."""
    # Each place of a stretch has results of its own, so that processors take several values at once.
    low, high, rest = np.zeros(LANES), np.zeros(LANES), np.zeros(LANES)
    for first in range(0, len(data), LANES):
        part = data[first : first + LANES]
        for j in range(len(part)):
            x = np.float64(part[j])
            low[j] = x if x < low[j] else low[j]
            high[j] = x if x > high[j] else high[j]
            rest[j] += x - np.floor(x)
    return low.min(), high.max(), rest.sum()


@kernel
def mass(indptr, data, weights):
    """Sum of whole numbers, times the weight of their row if there are any."""
    total = np.int64(0)
    if weights is None:
        for j in range(len(data)):
            total += np.int64(data[j])
        return total
    for i in range(len(indptr) - 1):
        row = np.int64(0)
        for j in range(indptr[i], indptr[i + 1]):
            row += np.int64(data[j])
        total += row * weights[i]
    return total


# Rows that have all columns: loops over them compile to instructions that take several columns at once.


@kernel
def add_rows(matrix, codes, weights, squared, out):
    """out[class] += row, or its squares, times the weight of the row if there are any."""
    number = out.dtype.type
    for i in range(len(codes)):
        row, sums = matrix[i], out[codes[i]]
        w = number(1) if weights is None else number(weights[i])
        for j in range(len(row)):
            x = number(row[j])
            sums[j] += w * (x * x if squared else x)


@kernel
def add_rows_above(matrix, codes, threshold, weights, out):
    """out[class, column] += 1, or the weight of the row, for each value above the threshold."""
    for i in range(len(codes)):
        row, sums = matrix[i], out[codes[i]]
        w = out.dtype.type(1 if weights is None else weights[i])
        for j in range(len(row)):
            sums[j] += w * (row[j] > threshold)


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


# Places are unsigned below: of a signed one numba asks each time whether it counts from the end, which takes a third of
# such loops.


@kernel
def bucket_sizes(indptr, indices, codes, shift, n_classes, sizes):
    """sizes[tile * n_classes + class] += 1 for each entry; a tile is 2**shift columns."""
    shift, n_classes = np.uint64(shift), np.uint64(n_classes)
    for i in range(len(codes)):
        c = np.uint64(codes[i])
        for j in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            sizes[(np.uint64(indices[j]) >> shift) * n_classes + c] += 1


@kernel
def bucket_entries(indptr, indices, data, codes, shift, n_classes, ends, columns, values):
    """Stable counting sort of the entries by (tile, class). ``ends`` holds bucket starts and leaves as bucket ends.

    Without ``values``, whole numbers of zero or more are put into the bits of ``columns`` above the column within its
    tile: to write to one array takes half of the time of two.
    """
    shift, n_classes = np.uint64(shift), np.uint64(n_classes)
    mask = (np.uint64(1) << shift) - np.uint64(1)
    for i in range(len(codes)):
        c = np.uint64(codes[i])
        for j in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            column = np.uint64(indices[j])
            b = (column >> shift) * n_classes + c
            p = np.uint64(ends[b])
            ends[b] = p + np.uint64(1)
            if values is None:
                columns[p] = (column & mask) | (np.uint64(data[j]) << shift)
            else:
                columns[p] = column & mask
                values[p] = data[j]


@kernel
def bucket_rows(indptr, indices, codes, shift, n_classes, ends, rows):
    """The row each entry came from, in the order of ``bucket_entries``."""
    shift, n_classes = np.uint64(shift), np.uint64(n_classes)
    for i in range(len(codes)):
        c = np.uint64(codes[i])
        for j in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            b = (np.uint64(indices[j]) >> shift) * n_classes + c
            p = np.uint64(ends[b])
            ends[b] = p + np.uint64(1)
            rows[p] = i


@kernel
def gather_entries(borders, columns, values, weights, shift, n_classes, first, out_columns, out_values, out_weights):
    """Copy each bucket of all pieces to one place after the other; columns become the panel's own.

    Bucket b of piece p lies at ``borders[b, p] .. borders[b + 1, p] - 1``; the first tile begins at column ``first`` of
    the panel. Columns and values are as `bucket_entries` leaves them.
    """
    mask, q = (np.uint64(1) << np.uint64(shift)) - np.uint64(1), np.uint64(0)
    for b in range(len(borders) - 1):
        offset = np.uint64(first + ((b // n_classes) << shift))
        for p in range(borders.shape[1]):
            for j in range(np.uint64(borders[b, p]), np.uint64(borders[b + 1, p])):
                out_columns[q] = offset + (np.uint64(columns[j]) & mask)
                if values is None:
                    out_values[q] = np.uint64(columns[j]) >> np.uint64(shift)
                else:
                    out_values[q] = values[j]
                if weights is not None:
                    out_weights[q] = weights[j]
                q += np.uint64(1)


@kernel
def count_bucket(begins, ends, packed, shift, threshold, counts):
    """counts[column within the tile] += value, over one bucket of all pieces, as `bucket_entries` packs them.

    With a ``threshold``, 1 in place of the value for each entry above it.
    """
    shift = np.uint64(shift)
    mask = (np.uint64(1) << shift) - np.uint64(1)
    for p in range(len(begins)):
        for j in range(np.uint64(begins[p]), np.uint64(ends[p])):
            entry = np.uint64(packed[j])
            if threshold is None:
                counts[entry & mask] += np.int64(entry >> shift)
            elif (entry >> shift) > threshold:
                counts[entry & mask] += 1


@kernel
def add_products(matrix, columns, steps, start, out):
    """out[row, class] = start[class] + the sum over some columns of value * steps[class, column], in their order.

    Four rows at a time: a sum waits for itself, and four of them do not wait for each other.
    """
    last = len(matrix) - 1
    for a in range(0, len(matrix), 4):
        b, c, d = min(a + 1, last), min(a + 2, last), min(a + 3, last)
        for i in range(len(start)):
            of_a = of_b = of_c = of_d = start[i]
            for p in range(len(columns)):
                column, step = np.uint64(columns[p]), steps[i, p]
                of_a += np.float64(matrix[a, column]) * step
                of_b += np.float64(matrix[b, column]) * step
                of_c += np.float64(matrix[c, column]) * step
                of_d += np.float64(matrix[d, column]) * step
            out[a, i], out[b, i], out[c, i], out[d, i] = of_a, of_b, of_c, of_d
