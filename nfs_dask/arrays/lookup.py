"""Finding a few selected columns among the entries of CSR rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numba
import numpy as np

from nfs_dask.arrays.block import Array, Block, column_type, full_rows
from nfs_dask.arrays.compiling import kernel
from nfs_dask.arrays.kernels import read_only

WIDEST = 1 << 20  # columns of data that have a place each, in 4 MiB
MANY = 1 << 15  # stretches; their starts still fit the cache of a core


@dataclass(frozen=True)
class Lookup:
    """Sorted columns, with an index of where each column of the data is among them, or -1.

    Of data of more than `WIDEST` columns, the index has where the sorted ones of each stretch of ``2**shift`` begin.

    >>> Lookup.of(np.array([1, 3, 4]), 6).index.tolist()
    [-1, 0, -1, 1, 2, -1]
    """

    columns: Array  # (k,) int64, ascending
    shift: int  # 0: each column of the data has its own place
    index: Array | None  # int32; None: these are all columns there are

    @classmethod
    def of(cls, columns: Array, n_features: int) -> Lookup:
        """An index of a place for each column, or of twice as many stretches as there are columns at least."""
        if len(columns) == n_features:
            return cls(columns, 0, None)
        if n_features <= WIDEST:
            index = np.full(n_features, -1, np.int32)
            index[columns] = np.arange(len(columns), dtype=np.int32)
            return cls(columns, 0, index)
        shift = 1
        while n_features >> shift > max(2 * len(columns), MANY):
            shift += 1
        edges = np.arange((n_features - 1 >> shift) + 2, dtype=np.int64) << shift
        return cls(columns, shift, np.searchsorted(columns, edges).astype(np.int32))

    def positions(self, columns: Array) -> Array:
        """Return the positions of some columns among the sorted ones, int64; -1 for those that are not there."""
        if self.index is None:
            return columns.astype(np.int64, copy=False)
        out = np.empty(len(columns), np.int64)
        _locate(read_only(columns), read_only(self.columns), read_only(self.index), self.shift, out)
        return out

    def take(self, block: Block) -> Block:
        """A block of these columns alone, numbered by their positions; its values lie in a part of a larger array."""
        if self.index is None:
            return block
        k = len(self.columns)
        if block.full:
            indptr, indices, data, _ = full_rows(block.matrix.take(self.columns, axis=1))
        else:
            indptr = np.empty(len(block.indptr), np.int64)
            indices, data = np.empty(block.nnz + 1, column_type(k)), np.empty(block.nnz + 1, block.data.dtype)
            wanted = (read_only(self.columns), read_only(self.index), self.shift)
            n = _take(*block.entries[:3], *wanted, indptr, indices, data)
            indices, data = indices[:n], data[:n]
        return replace(block, indptr=indptr, indices=indices, data=data, n_features=k)


@numba.njit(nogil=True)
def _place(column, columns, index, shift):
    """The position of a column, or -1.

    Halves what is left of a stretch without a branch on it: one that cannot be predicted costs more than the rest.
    """
    stretch = np.uint64(column) >> np.uint64(shift)
    low = np.int64(index[stretch])
    if shift == 0:
        return low
    size = index[stretch + np.uint64(1)] - low
    while size > 1:
        half = size >> 1
        low = low + half if columns[low + half] <= column else low
        size -= half
    return low if size > 0 and columns[low] == column else np.int64(-1)


@kernel
def _locate(wanted, columns, index, shift, out):
    """Positions of the wanted columns."""
    for j in range(len(wanted)):
        out[j] = _place(np.int64(wanted[j]), columns, index, shift)


@kernel
def _take(indptr, indices, data, columns, index, shift, out_indptr, out_columns, out_data):
    """Entries of the columns; each one is written, and kept by going on, as a branch would mostly be guessed wrong."""
    n = np.uint64(0)
    out_indptr[0] = 0
    for i in range(len(indptr) - 1):
        for j in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            place = _place(np.int64(indices[j]), columns, index, shift)
            out_columns[n], out_data[n] = max(place, 0), data[j]
            n += np.uint64(place >= 0)
        out_indptr[i + 1] = n
    return n
