"""How much of each class lies between given edges, and at them: a few numbers in which medians can be located."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numba
import numpy as np

from nfs_dask.arrays.block import Array, Block, Kind
from nfs_dask.arrays.compiling import kernel
from nfs_dask.arrays.exact_kernels import add_to_pair
from nfs_dask.errors import InputError
from nfs_dask.statistics.medians.class_weights import LOW, add_rows, check_representable, merged, no_rows, row_weights
from nfs_dask.statistics.medians.full_rows import (
    LISTS_NBYTES,
    ROWS,
    TILE,
    by_class,
    count_outside,
    gather_marked,
    hulls,
)
from nfs_dask.statistics.statistic import State, Statistic

NEAR = 32  # so many edges are compared at once sooner than one after another
STRETCHES = 256  # between the first and the last edge of a column, in each of which the search for an edge may begin
TOGETHER = 8  # columns whose counts lie side by side in a line of cache: many are counted aside, and then added


@dataclass(frozen=True, eq=False)
class ClassCells(Statistic):
    """Entries besides zeros in the cells of each view and feature.

    ``edges`` (C + 1, B, columns) ascend along B, and may repeat: those of class c, and last those for the classes
    pooled. A class has two *views*, among edges of its own [0, c] and among the pooled ones [1, c]. Cell 2j + 1 is what
    equals edge j, cell 2j what lies between the edges before and at j; cells 0 and 2B lie outside. Of edges that are
    equal the first counts.

    Array "cells" (2, C, 2B + 1, columns) counts entries of unweighted rows; those of weighted rows count in "entries",
    and their weights add up to pairs in "weights" and "weights_low".
    """

    n_classes: int
    edges: Array

    name: ClassVar[str] = "class_cells"
    accepts: ClassVar[Kind] = "signed"

    def __post_init__(self) -> None:
        shape = self.edges.shape
        if len(shape) != 3 or shape[0] != self.n_classes + 1 or shape[1] < 1:
            raise InputError(f"edges of shape {shape} for {self.n_classes} classes; give (classes + 1, edges, columns)")
        if np.isnan(self.edges).any() or (np.diff(self.edges, axis=1) < 0).any():
            raise InputError("edges must be numbers that ascend along their second axis; sort them")

    @cached_property
    def _by_column(self) -> Array:
        """The edges of each column side by side, as a search wants them."""
        return np.ascontiguousarray(self.edges.transpose(0, 2, 1), np.float64)

    @cached_property
    def _bounds(self) -> Array:
        """First and last edge of each column, (C + 1, 2, columns)."""
        return np.ascontiguousarray(self.edges[:, [0, -1]], np.float64)

    @cached_property
    def _table(self) -> tuple[Array, ...]:
        """Where the search for the cell of a value begins, see `_fill_table`; behind the last edge is infinity."""
        targets, n_columns, n_edges = self._by_column.shape
        sharp = np.full((targets, n_columns, n_edges + 1), np.inf)
        cells = np.full(sharp.shape, 2 * n_edges, np.int32)
        buckets, scales = np.zeros((targets, n_columns, STRETCHES), np.int32), np.zeros((targets, n_columns))
        _fill_table(self._by_column, sharp, cells, buckets, scales)
        return sharp, cells, buckets, scales

    @property
    def _shape(self) -> tuple[int, ...]:
        return (2, self.n_classes, 2 * self.edges.shape[1] + 1, self.edges.shape[2])

    def small(self) -> ClassCells:
        return ClassCells(2, np.zeros((3, 2, 4)))

    def zero(self) -> State:
        return State({}, no_rows(self.n_classes))

    def update(self, state: State, block: Block) -> None:
        check_representable(block)
        add_rows(state.totals, block)
        if block.n_features != self._shape[-1]:
            raise InputError(f"a block of {block.n_features} columns, but edges for {self._shape[-1]}")
        if block.weights is not None:
            entries = self._array(state.arrays, "entries", np.int64)
            high, low = (self._array(state.arrays, name, np.float64) for name in ("weights", "weights" + LOW))
            _weigh(*block.entries, row_weights(block), self._by_column, entries, high, low)
            return
        cells = self._array(state.arrays, "cells", np.int64)
        if block.full:
            matrix = block.entries.data.reshape(block.n_rows, block.n_features)
            order = by_class(block.codes, self.n_classes)
            _count_full(matrix, *order, hulls(self._bounds, matrix.dtype), *self._table, cells)
        else:
            _count(*block.entries, self._by_column, cells)

    def _array(self, arrays: dict[str, Array], name: str, dtype: type) -> Array:
        if name not in arrays:
            arrays[name] = np.zeros(self._shape, dtype)
        return arrays[name]

    def merge(self, left: State, right: State) -> State:
        return merged(left, right)

    def array_nbytes(self, n_features: int, kind: Kind | None, weighted: bool) -> int:
        return (3 if weighted else 1) * int(np.prod(self._shape[:-1])) * n_features * 8

    def working_nbytes(self, n_features: int) -> int:
        """Edges by column, where a search for them begins, and lists of values."""
        targets, n_edges, _ = self.edges.shape
        column = 8 * n_edges + 12 * (n_edges + 1) + 4 * STRETCHES + 8
        return int(targets * n_features * column + LISTS_NBYTES)

    def describe(self) -> dict[str, Any]:
        return {"statistic": self.name, "n_classes": self.n_classes, "edges": digest(self.edges)}


def digest(array: Array) -> str:
    """What stands for an array in a description: its shape, type and content."""
    content = hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=16).hexdigest()
    return f"{'x'.join(map(str, array.shape))} {array.dtype} {content}"


@numba.njit(nogil=True, inline="always")
def _place(edges: Any, x: Any) -> Any:
    """The cell of a value that is not outside of the edges of its column."""
    first, n = np.int64(0), len(edges)
    while n > NEAR:
        half = n >> 1
        first += half * np.int64(edges[first + half - 1] < x)
        n -= half
    rest = edges[first : first + n]
    cell = 2 * first
    for j in range(len(rest)):
        cell += 2 * np.int64(rest[j] < x)
    return cell + np.int64(edges[cell >> 1] == x)


@numba.njit(nogil=True, inline="always")
def _cell(edges: Any, x: Any) -> Any:
    """The cell of any value."""
    if x < edges[0]:
        return 0
    if x > edges[-1]:
        return 2 * len(edges)
    return _place(edges, x)


@kernel
def _count(indptr: Array, indices: Array, data: Array, codes: Array, edges: Array, cells: Array) -> None:
    """cells[view, class, cell, column] += 1 for each entry."""
    pooled = len(edges) - 1
    for i in range(len(codes)):
        c = codes[i]
        for j in range(indptr[i], indptr[i + 1]):
            x = np.float64(data[j])
            if x != 0:
                k = indices[j]
                cells[0, c, _cell(edges[c, k], x), k] += 1
                cells[1, c, _cell(edges[pooled, k], x), k] += 1


@kernel
def _weigh(
    indptr: Array,
    indices: Array,
    data: Array,
    codes: Array,
    weights: Array,
    edges: Array,
    entries: Array,
    high: Array,
    low: Array,
) -> None:
    """As `_count`, adding the weight of the row to a pair, which is settled at once."""
    pooled = len(edges) - 1
    for i in range(len(codes)):
        c, w = codes[i], weights[i]
        if w == 0:
            continue
        for j in range(indptr[i], indptr[i + 1]):
            x = np.float64(data[j])
            if x == 0:
                continue
            k = indices[j]
            for view in range(2):
                cell = _cell(edges[pooled if view else c, k], x)
                entries[view, c, cell, k] += 1
                sums = high[view, c, cell, k], low[view, c, cell, k]
                high[view, c, cell, k], low[view, c, cell, k] = add_to_pair(*sums, w)


# Full rows. Few values lie between the edges, and those of a column are placed one after another, by a table that says
# where to begin: it is one step to most cells, and no branch that cannot be foreseen.


@kernel
def _fill_table(edges: Array, sharp: Array, cells: Array, buckets: Array, scales: Array) -> None:
    """Edges that differ from the one before, their cells, and the first of them in each of equal stretches.

    Which stretch a number falls into never decreases with the number, rounding included: so no edge of an earlier
    stretch is above it.
    """
    last = buckets.shape[2] - 1
    for t in range(edges.shape[0]):
        for k in range(edges.shape[1]):
            low, span = edges[t, k, 0], edges[t, k, -1] - edges[t, k, 0]
            scale = last / span if span > 0 else 0.0
            scales[t, k] = scale if scale < np.inf else 0.0
            n, done = 0, 0
            for j in range(edges.shape[2]):
                x = edges[t, k, j]
                if j > 0 and x == edges[t, k, j - 1]:
                    continue
                sharp[t, k, n], cells[t, k, n] = x, 2 * j
                bucket = _bucket(x, low, scales[t, k], last)
                while done <= bucket:
                    buckets[t, k, done] = n
                    done += 1
                n += 1
            buckets[t, k, done:] = n


@numba.njit(nogil=True, inline="always")
def _bucket(x: Any, low: Any, scale: Any, last: Any) -> Any:
    y = (x - low) * scale
    y = y if y > 0 else 0.0  # what is no number, too
    return np.int64(y if y < last else np.float64(last))


@numba.njit(nogil=True)
def _place_all(values: Any, sharp: Any, cells: Any, buckets: Any, scale: Any, counts: Any) -> None:
    """Count the cells of some values of a column."""
    low, last = sharp[0], len(buckets) - 1
    for n in range(len(values)):
        x = np.float64(values[n])
        j = np.int64(buckets[_bucket(x, low, scale, last)])
        while sharp[j] < x:
            j += 1
        counts[np.int64(cells[j]) + np.int64(sharp[j] == x)] += 1


@numba.njit(nogil=True)
def _add_columns(aside: Any, counts: Any) -> None:
    """Add what was counted aside, column by column, to counts that lie cell by cell; and begin anew."""
    for cell in range(counts.shape[0]):
        for j in range(counts.shape[1]):
            counts[cell, j] += aside[j, cell]
    aside[:] = 0


@kernel
def _count_full(
    matrix: Array,
    order: Array,
    starts: Array,
    hulls: Array,
    sharp: Array,
    cells_of: Array,
    buckets: Array,
    scales: Array,
    cells: Array,
) -> None:
    """As `_count`, for rows that have all columns."""
    n_columns, n_classes, last = matrix.shape[1], len(starts) - 1, cells.shape[2] - 1
    lists = np.empty((min(n_columns, TILE), min(len(order), ROWS) + 16), hulls.dtype)
    lengths = np.zeros(TILE, np.int64)
    below, above = np.zeros(TILE, np.int32), np.zeros(TILE, np.int32)  # apart, so that loops over them are vectorised
    marks = np.zeros(TILE, np.uint8)
    words = marks.view(np.uint64)
    aside = np.zeros((TOGETHER, last + 1), np.int64)
    for first in range(0, n_columns, TILE):
        stop = min(n_columns, first + TILE)
        marks[:] = 0
        for c in range(n_classes):
            low, high = hulls[0, c, first:stop], hulls[1, c, first:stop]
            for start in range(starts[c], starts[c + 1], ROWS):
                below[:], above[:], lengths[:] = 0, 0, 0
                for i in range(start, min(start + ROWS, starts[c + 1])):
                    row = matrix[order[i], first:stop]
                    count_outside(row, low, high, below, above, marks)
                    gather_marked(row, words, lists, lengths)
                for view in range(2):
                    target = n_classes if view else c
                    cells[view, c, 0, first:stop] += below[: stop - first]
                    cells[view, c, last, first:stop] += above[: stop - first]
                    for k in range(first, stop, TOGETHER):
                        end = min(stop, k + TOGETHER)
                        many = lengths[k - first : end - first].sum() > last
                        for j in range(k, end):
                            values = lists[j - first, : lengths[j - first]]
                            table = sharp[target, j], cells_of[target, j], buckets[target, j], scales[target, j]
                            if many:
                                _place_all(values, *table, aside[j - k])
                            else:
                                _place_all(values, *table, cells[view, c, :, j])
                        if many:
                            _add_columns(aside, cells[view, c, :, k:end])
