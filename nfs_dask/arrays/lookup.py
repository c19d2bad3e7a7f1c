"""Finding a few selected columns among the entries of CSR rows, without an array as wide as the data."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from nfs_dask.arrays.block import Array, Block, column_type
from nfs_dask.arrays.compiling import kernel
from nfs_dask.arrays.kernels import read_only

MANY = 1 << 15  # stretches; their starts still fit the cache of a core


@dataclass(frozen=True)
class Lookup:
    """Sorted columns, with an index of where those of each stretch of ``2**shift`` columns begin.

    >>> Lookup.of(np.array([1, 3, 4]), 6).starts.tolist()
    [0, 0, 1, 1, 2, 3, 3]
    """

    columns: Array  # (k,) int64, ascending
    shift: int
    starts: Array | None  # (stretches + 1,) int64; None: these are all columns there are

    @classmethod
    def of(cls, columns: Array, n_features: int) -> Lookup:
        """An index of twice as many stretches as there are columns, and enough for most of them to be empty.

        None where all columns are wanted: each has the position that its number says.
        """
        if len(columns) == n_features:
            return cls(columns, 0, None)
        shift = 0
        while n_features >> shift > max(2 * len(columns), MANY):
            shift += 1
        edges = np.arange((max(n_features, 1) - 1 >> shift) + 2, dtype=np.int64) << shift
        return cls(columns, shift, np.searchsorted(columns, edges).astype(np.int64))

    def positions(self, columns: Array) -> Array:
        """Where each of some columns is among the sorted ones, int64; -1 for those that are not there."""
        if self.starts is None:
            return columns.astype(np.int64, copy=False)
        out = np.empty(len(columns), np.int64)
        _locate(read_only(columns), read_only(self.columns), self.starts, self.shift, out)
        return out

    def take(self, block: Block) -> tuple[Array, Array, Array]:
        """The entries of a block in these columns, as CSR whose columns are positions among them."""
        if self.starts is None:
            return block.indptr, block.indices, block.data
        indptr = np.empty(len(block.indptr), np.int64)
        columns = np.empty(len(block.data) + 1, column_type(len(self.columns)))
        data = np.empty(len(columns), block.data.dtype)
        entries = block.indptr, block.indices, block.data
        n = _take(*map(read_only, entries), read_only(self.columns), self.starts, self.shift, indptr, columns, data)
        return indptr, columns[:n], data[:n]


@numba.njit(nogil=True)
def _place(column, columns, starts, shift):
    """The position of a column, or -1.

    Halves what is left of a stretch without a branch on it: one that cannot be predicted costs more than the rest.
    """
    stretch = column >> shift
    low = starts[stretch]
    size = starts[stretch + 1] - low
    while size > 1:
        half = size >> 1
        low = low + half if columns[low + half] <= column else low
        size -= half
    return low if size > 0 and columns[low] == column else np.int64(-1)


@kernel
def _locate(wanted, columns, starts, shift, out):
    """Positions of the wanted columns."""
    for j in range(len(wanted)):
        out[j] = _place(np.int64(wanted[j]), columns, starts, shift)


@kernel
def _take(indptr, indices, data, columns, starts, shift, out_indptr, out_columns, out_data):
    """Entries of the columns; each one is written, and kept by going on, as a branch would mostly be guessed wrong."""
    n = 0
    out_indptr[0] = 0
    for i in range(len(indptr) - 1):
        for j in range(indptr[i], indptr[i + 1]):
            place = _place(np.int64(indices[j]), columns, starts, shift)
            out_columns[n], out_data[n] = max(place, 0), data[j]
            n += int(place >= 0)
        out_indptr[i + 1] = n
    return n
