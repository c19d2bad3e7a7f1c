"""The rows themselves, where there are so few numbers in them that one machine can hold them all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nfs_dask.arrays.block import Array, Block, Kind
from nfs_dask.arrays.compiling import kernel
from nfs_dask.errors import NfsDaskError
from nfs_dask.statistics.statistic import State, Statistic

GROWTH_ROWS = 1 << 20  # rows that memory grows by, at most


@dataclass(frozen=True)
class CollectedRows(Statistic):
    """All rows, dense: array "rows" (n, columns), totals "codes" (n,) and, of weighted ones, "weights" (n,).

    They are in the order of their blocks, whatever the order they were merged in; totals "pieces" (pieces, 3) say which
    block, which row of the data and how many rows each piece began with. Whoever asks for them has made sure that they
    fit: there are at most ``most_rows``.
    """

    n_classes: int
    most_rows: int

    name: ClassVar[str] = "collected_rows"
    accepts: ClassVar[Kind] = "signed"

    def small(self) -> CollectedRows:
        return CollectedRows(2, 4)

    def zero(self) -> State:
        return State({}, {"codes": np.zeros(0, np.int32), "pieces": np.zeros((0, 3), np.int64)})

    def update(self, state: State, block: Block) -> None:
        if not block.n_rows:
            return
        arrays, totals = state.arrays, state.totals
        n = len(totals["codes"]) + block.n_rows
        if n > self.most_rows:
            raise NfsDaskError(f"{n} rows or more, but there is room for {self.most_rows} of them")
        arrays["rows"] = _extended(arrays.get("rows"), dense_rows(block))
        totals["codes"] = _extended(totals["codes"], block.codes.astype(np.int32))
        if block.weights is not None:
            totals["weights"] = _extended(totals.get("weights"), block.weights.astype(np.float64))
        totals["pieces"] = np.append(totals["pieces"], [[block.number, block.first_row, block.n_rows]], axis=0)
        _put_in_order(state)

    def merge(self, left: State, right: State) -> State:
        parts = {}
        for part in ("arrays", "totals"):
            a, b = getattr(left, part), getattr(right, part)
            parts[part] = {name: _joined(a.get(name), b.get(name)) for name in (*a, *(b.keys() - a.keys()))}
        state = State(**parts)
        _put_in_order(state)
        return state

    def array_nbytes(self, n_features: int, kind: Kind | None, weighted: bool) -> int:
        return self.most_rows * row_nbytes(n_features, weighted)


def row_nbytes(n_features: int, weighted: bool) -> int:
    """Bytes of a row. A weight takes eight, and where a state is stored up to sixteen more as text."""
    return 8 * n_features + 4 + (24 if weighted else 0)


def dense_rows(block: Block) -> Array:
    """The matrix (n_rows, n_features) of a block, float64; of a full block of float64 a view."""
    if block.full:
        return block.data.reshape(block.n_rows, block.n_features).astype(np.float64, copy=False)
    matrix = np.zeros((block.n_rows, block.n_features))
    _fill(*block.entries[:3], matrix)
    return matrix


def _extended(array: Array | None, more: Array) -> Array:
    """An array that a task made itself with more rows at its end: in place, while its memory has room for them."""
    n = 0 if array is None else len(array)
    memory = _memory_of(array, more)
    if memory is None or len(memory) < n + len(more):
        memory = np.empty((max(n + len(more), min(2 * n, n + GROWTH_ROWS)), *more.shape[1:]), more.dtype)
        if array is not None:
            memory[:n] = array
    memory[n : n + len(more)] = more
    extended: Array = memory[: n + len(more)]
    return extended


def _memory_of(array: Array | None, more: Array) -> Array | None:
    """The memory that an earlier call made for an array, if it was one that did."""
    memory = None if array is None else array.base
    if array is None or not isinstance(memory, np.ndarray) or not memory.flags.owndata:
        return None
    same = memory.dtype == more.dtype and memory.shape[1:] == more.shape[1:] and memory.ctypes.data == array.ctypes.data
    return memory if same else None


def _joined(left: Array | None, right: Array | None) -> Array:
    """Rows of both, in memory of their own."""
    present = [side for side in (left, right) if side is not None]
    return np.concatenate(present)


def _put_in_order(state: State) -> None:
    """Sort the pieces by block and row, and everything else with them; they nearly always are."""
    pieces = state.totals["pieces"]
    order = np.lexsort((pieces[:, 1], pieces[:, 0]))
    if np.array_equal(order, np.arange(len(order))):
        return
    ends = np.cumsum(pieces[:, 2])
    rows = np.concatenate([np.arange(ends[p] - pieces[p, 2], ends[p]) for p in order])
    state.totals["pieces"] = pieces[order]
    for values, name in ((state.arrays, "rows"), (state.totals, "codes"), (state.totals, "weights")):
        if name in values:
            values[name] = values[name][rows]


@kernel
def _fill(indptr: Array, indices: Array, data: Array, matrix: Array) -> None:
    """Write the entries of CSR rows, whose columns differ, into zeros."""
    for i in range(len(indptr) - 1):
        for j in range(indptr[i], indptr[i + 1]):
            matrix[i, indices[j]] = data[j]
