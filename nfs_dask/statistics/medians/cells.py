"""Weights of each class between given edges, and at them: a few numbers in which medians can be located."""

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
from nfs_dask.solvers.medians.edges import Ladders
from nfs_dask.statistics.medians.class_weights import (
    LOW,
    add_rows,
    by_column,
    check_representable,
    merged,
    no_rows,
    row_weights,
)
from nfs_dask.statistics.medians.full_rows import (
    LISTS_NBYTES,
    ROWS,
    TILE,
    by_class,
    count_outside,
    gather_marked,
    hulls,
    room,
    rounded_inwards,
)
from nfs_dask.statistics.statistic import State, Statistic

NEAR = 32  # so many steps are compared at once sooner than one after another
STRETCHES = 512  # between the first and the last step of a ladder, in each of which the search for one may begin
AHEAD = 4  # steps that are compared at once from there on: few stretches have more
MOST_EDGES = 1 << 14  # of a target: steps are numbered in 16 bits


@dataclass(frozen=True, eq=False)
class ClassCells(Statistic):
    """Entries besides zeros in the cells of each class and feature.

    ``edges`` (C + 1, B, columns) ascend along B, and may repeat: those of class c, and last those for the classes
    pooled. Cells are those of `Ladders`: of each class, between and at the edges of its own and the pooled ones.

    Array "cells" (4B + 1, C, columns) counts entries of unweighted rows; those of weighted rows count in "entries",
    and their weights add up to pairs in "weights" and "weights_low". The cells of a column lie side by side in memory.
    """

    n_classes: int
    edges: Array

    name: ClassVar[str] = "class_cells"
    accepts: ClassVar[Kind] = "signed"

    def __post_init__(self) -> None:
        shape = self.edges.shape
        if len(shape) != 3 or shape[0] != self.n_classes + 1 or not 1 <= shape[1] <= MOST_EDGES:
            raise InputError(f"edges of shape {shape} for {self.n_classes} classes; give (classes + 1, edges, columns)")
        if not np.isfinite(self.edges).all() or (np.diff(self.edges, axis=1) < 0).any():
            raise InputError("edges must be finite numbers that ascend along their second axis; sort them")

    @cached_property
    def _steps(self) -> Array:
        """The steps (C, columns, 2B + AHEAD) of each ladder, infinities behind the last."""
        steps = Ladders.of(self.edges).steps
        padded = np.full((*steps.shape[:2], steps.shape[2] + AHEAD - 1), np.inf)
        padded[:, :, : steps.shape[2]] = steps
        return padded

    @cached_property
    def _hull(self) -> Array:
        """First and last step of each ladder, (2, C, columns)."""
        return hulls(self.edges[:, [0, -1]])

    @cached_property
    def _table(self) -> tuple[Array, ...]:
        """Steps, where the search for one begins, see `_fill_table`, and how many there are of each ladder."""
        counts = np.isfinite(self._steps).sum(axis=2).astype(np.int32)
        buckets = np.zeros((*self._steps.shape[:2], STRETCHES), np.uint16)
        scales = np.zeros(self._steps.shape[:2])
        _fill_table(self._steps, counts, buckets, scales)
        return self._steps, counts, buckets, scales

    @property
    def _shape(self) -> tuple[int, ...]:
        return (4 * self.edges.shape[1] + 1, self.n_classes, self.edges.shape[2])

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
            _weigh(*block.entries, row_weights(block), self._steps, entries, high, low)
            return
        cells = self._array(state.arrays, "cells", np.int64)
        if block.full:
            matrix = block.entries.data.reshape(block.n_rows, block.n_features)
            hull = rounded_inwards(self._hull, matrix.dtype)
            _count_full(matrix, *by_class(block.codes, self.n_classes), hull, *self._table, cells, room(matrix, hull))
        else:
            _count(*block.entries, self._steps, cells)

    def _array(self, arrays: dict[str, Array], name: str, dtype: type) -> Array:
        """An array of a state as kernels take it, (columns, C, 4B + 1)."""
        if name not in arrays:
            arrays[name] = np.zeros(self._shape, dtype, order="F")
        return by_column(arrays, name)

    def merge(self, left: State, right: State) -> State:
        return merged(left, right)

    def array_nbytes(self, n_features: int, kind: Kind | None, weighted: bool) -> int:
        return (3 if weighted else 1) * int(np.prod(self._shape[:-1])) * n_features * 8

    def working_nbytes(self, n_features: int) -> int:
        """Ladders with the pooled edges in them, what it takes to make one, tables, and lists of values."""
        n_edges = self.edges.shape[1]
        ladder = 8 * (3 * n_edges + AHEAD + 1) + 2 * STRETCHES + 12 + 16
        making = 8 * 10 * n_edges
        return int(n_features * (self.n_classes * ladder + making) + LISTS_NBYTES)

    def describe(self) -> dict[str, Any]:
        cells = "of ladders"  # those of states that were kept before are others
        return {**self.in_short(), "cells": cells, "edges": digest(self.edges)}

    def in_short(self) -> dict[str, Any]:
        return {"statistic": self.name, "n_classes": self.n_classes}


def digest(array: Array) -> str:
    """Return a digest of an array for a description: of its shape, type and content."""
    content = hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=16).hexdigest()
    return f"{'x'.join(map(str, array.shape))} {array.dtype} {content}"


@numba.njit(nogil=True, inline="always")
def _cell(steps: Any, x: Any) -> Any:
    """The cell of a value."""
    first: Any = np.int64(0)
    n = len(steps) - AHEAD
    while n > NEAR:
        half = n >> 1
        first += half * np.int64(steps[first + half - 1] < x)
        n -= half
    rest = steps[first : first + n]
    cell = 2 * first
    for j in range(len(rest)):
        cell += 2 * np.int64(rest[j] < x)
    return cell + np.int64(steps[cell >> 1] == x)


@kernel
def _count(indptr: Array, indices: Array, data: Array, codes: Array, steps: Array, cells: Array) -> None:
    """cells[column, class, cell] += 1 for each entry."""
    for i in range(len(codes)):
        c = codes[i]
        for j in range(indptr[i], indptr[i + 1]):
            x = np.float64(data[j])
            if x != 0:
                cells[indices[j], c, _cell(steps[c, indices[j]], x)] += 1


@kernel
def _weigh(
    indptr: Array,
    indices: Array,
    data: Array,
    codes: Array,
    weights: Array,
    steps: Array,
    entries: Array,
    high: Array,
    low: Array,
) -> None:
    """As `_count`, adding the weight of the row to a pair, which is settled at once."""
    for i in range(len(codes)):
        c, w = codes[i], weights[i]
        if w == 0:
            continue
        for j in range(indptr[i], indptr[i + 1]):
            x = np.float64(data[j])
            if x == 0:
                continue
            k = indices[j]
            cell = _cell(steps[c, k], x)
            entries[k, c, cell] += 1
            high[k, c, cell], low[k, c, cell] = add_to_pair(high[k, c, cell], low[k, c, cell], w)


# Full rows. Few values lie within a ladder, and those of a column are placed one after another, by a table that says
# where to begin: there is no branch that cannot be foreseen. Numbers of steps are unsigned, as no place is then looked
# for from the end of an array.

_ONE, _TWO, _THREE = np.uint64(1), np.uint64(2), np.uint64(3)


@kernel
def _fill_table(steps: Array, counts: Array, buckets: Array, scales: Array) -> None:
    """The first step in each of equal stretches of a ladder.

    Which stretch a number falls into never decreases with the number, rounding included: so no step of an earlier
    stretch is above it.
    """
    last = buckets.shape[2] - 1
    for c in range(steps.shape[0]):
        for k in range(steps.shape[1]):
            n = counts[c, k]
            low, span = steps[c, k, 0], steps[c, k, n - 1] - steps[c, k, 0]
            scale = last / span if span > 0 else 0.0
            scales[c, k] = scale if scale < np.inf else 0.0
            done = 0
            for j in range(n):
                bucket = np.int64(_bucket(steps[c, k, j], low, scales[c, k], last))
                while done <= bucket:
                    buckets[c, k, done] = j
                    done += 1
            buckets[c, k, done:] = n


@numba.njit(nogil=True, inline="always")
def _bucket(x: Any, low: Any, scale: Any, last: Any) -> Any:
    y = (x - low) * scale
    y = y if y > 0 else 0.0  # what is no number, too
    return np.uint64(y if y < last else np.float64(last))


@numba.njit(nogil=True)
def _place_all(values: Any, steps: Any, buckets: Any, scale: Any, cells: Any) -> None:
    """Count the cells of some values of a column."""
    low, last = steps[0], len(buckets) - 1
    for n in range(len(values)):
        x = np.float64(values[n])
        j = np.uint64(buckets[_bucket(x, low, scale, last)])
        near = np.uint64(steps[j] < x) + np.uint64(steps[j + _ONE] < x)
        j += near + np.uint64(steps[j + _TWO] < x) + np.uint64(steps[j + _THREE] < x)
        while steps[j] < x:
            j += _ONE
        cells[_TWO * j + np.uint64(steps[j] == x)] += 1


@kernel
def _count_full(
    matrix: Array,
    order: Array,
    starts: Array,
    hull: Array,
    steps: Array,
    n_steps: Array,
    buckets: Array,
    scales: Array,
    cells: Array,
    lists: Array,
) -> None:
    """As `_count`, for rows that have all columns."""
    n_columns, n_classes = matrix.shape[1], len(starts) - 1
    lengths = np.zeros(TILE, np.int64)
    below, above = np.zeros(TILE, np.int32), np.zeros(TILE, np.int32)  # apart, so that loops over them are vectorised
    marks = np.zeros(TILE, np.uint8)
    words = marks.view(np.uint64)
    for first in range(0, n_columns, TILE):
        stop = min(n_columns, first + TILE)
        marks[:] = 0
        for c in range(n_classes):
            low, high = hull[0, c, first:stop], hull[1, c, first:stop]
            for start in range(starts[c], starts[c + 1], ROWS):
                below[:], above[:], lengths[:] = 0, 0, 0
                for i in range(start, min(start + ROWS, starts[c + 1])):
                    row = matrix[order[i], first:stop]
                    count_outside(row, low, high, below, above, marks)
                    gather_marked(row, words, lists, lengths)
                for k in range(first, stop):
                    values = lists[k - first, : lengths[k - first]]
                    cells[k, c, 0] += below[k - first]
                    cells[k, c, 2 * n_steps[c, k]] += above[k - first]
                    _place_all(values, steps[c, k], buckets[c, k], scales[c, k], cells[k, c])
