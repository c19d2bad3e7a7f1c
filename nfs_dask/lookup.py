"""Finding a few selected columns among the entries of CSR rows, without an array as wide as the data."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from nfs_dask.block import Array, Block
from nfs_dask.kernels import kernel


@dataclass(frozen=True)
class Lookup:
    """Sorted columns, with an index of where those of each stretch of ``2**shift`` columns begin.

    >>> Lookup.of(np.array([3, 40, 41]), 64).starts.tolist()
    [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 3, 3, 3, 3, 3]
    """

    columns: Array  # (k,) int64, ascending
    shift: int
    starts: Array  # (stretches + 1,) int64

    @classmethod
    def of(cls, columns: Array, n_features: int) -> Lookup:
        """An index of about twice as many stretches as there are columns."""
        shift = 0
        while n_features >> shift > 2 * len(columns) + 16:
            shift += 1
        edges = np.arange((max(n_features, 1) - 1 >> shift) + 2, dtype=np.int64) << shift
        return cls(columns, shift, np.searchsorted(columns, edges).astype(np.int64))

    def take(self, block: Block) -> tuple[Array, Array, Array]:
        """The entries of a block in these columns, as CSR whose columns are positions among them."""
        indptr = np.zeros(block.n_rows + 1, np.int64)
        indices, data = np.empty(block.nnz, np.int64), np.empty_like(block.data)
        n = _take(block.indptr, block.indices, block.data, *self.arguments, indptr, indices, data)
        return indptr, indices[:n].copy(), data[:n].copy()

    @property
    def arguments(self) -> tuple[Array, Array, int]:
        """What `find` needs, for kernels."""
        return self.columns, self.starts, self.shift


@numba.njit(nogil=True)
def find(columns, starts, shift, column):
    """Position of a column among the sorted ones; -1 if it is not there."""
    stretch = column >> shift
    low, high = starts[stretch], starts[stretch + 1]
    while low < high:
        middle = (low + high) >> 1
        if columns[middle] < column:
            low = middle + 1
        else:
            high = middle
    return low if low < starts[stretch + 1] and columns[low] == column else -1


@kernel
def _take(indptr, indices, data, columns, starts, shift, out_indptr, out_indices, out_data):
    """Copy the entries that are found; returns how many."""
    n = 0
    for i in range(len(indptr) - 1):
        for j in range(indptr[i], indptr[i + 1]):
            p = find(columns, starts, shift, np.int64(indices[j]))
            if p >= 0:
                out_indices[n] = p
                out_data[n] = data[j]
                n += 1
        out_indptr[i + 1] = n
    return n
