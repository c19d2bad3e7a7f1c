"""Matrices in AnnData Zarr stores that others wrote, read where they lie."""

from __future__ import annotations

import numpy as np

from nfs_dask.arrays.block import Array, Csr, full_rows
from nfs_dask.errors import InputError, StoreError
from nfs_dask.sources.anndata_memory import by_rows
from nfs_dask.sources.block_cuts import Cuts, cut_by_entries, cut_evenly
from nfs_dask.sources.matrices import check_size, countable, kind_of
from nfs_dask.store.foreign_arrays import ForeignArray
from nfs_dask.store.hierarchy import Hierarchy, ZarrNode

_PIECE = 1 << 20  # row pointers looked at together


class ForeignCsr:
    """A csr_matrix group. The row pointers are read through once, to cut blocks of bounded size."""

    def __init__(self, hierarchy: Hierarchy, node: ZarrNode) -> None:
        self.where = hierarchy.folder.path(node.path)
        parts = [ForeignArray(hierarchy, f"{node.path}/{name}", strict=True) for name in ("indptr", "indices", "data")]
        self._indptr, self._indices, self._data = parts
        self.n_rows, self.n_features = _shape(node, self.where)
        check_size(self.n_rows, self.n_features)
        self._check_parts()
        self.nnz: int | None = self._data.length
        self.kind = kind_of(self._data.dtype)
        self.entry_nbytes = self._indices.dtype.itemsize + max(4, self._data.dtype.itemsize)
        self.chunk_nbytes = sum(part.chunk_nbytes for part in parts)
        self.cuts = self._cut()

    def rows(self, start: int, stop: int) -> Csr:
        indptr = self._pointers(start, stop + 1)
        first, last = int(indptr[0]), int(indptr[-1])
        return Csr(indptr - first, self._indices.read(first, last), countable(self._data.read(first, last)))

    def _check_parts(self) -> None:
        lengths = {part.path.rsplit("/", 1)[1]: part.shape for part in (self._indptr, self._indices, self._data)}
        if any(len(shape) != 1 for shape in lengths.values()):
            raise StoreError(f"{self.where}: the parts of a sparse matrix have one dimension, these have {lengths}")
        if self._indptr.length != self.n_rows + 1 or self._indices.length != self._data.length:
            raise StoreError(
                f"{self.where} is damaged: {self.n_rows} rows, but {self._indptr.length} row pointers, "
                f"{self._indices.length} columns and {self._data.length} values"
            )
        if self._indptr.dtype.kind not in "iu" or self._indices.dtype.kind not in "iu":
            raise StoreError(f"{self.where} is damaged: its row pointers or columns are not whole numbers")
        ends = [int(self._indptr.read(row, row + 1)[0]) for row in (0, self.n_rows)]
        if ends != [0, self._data.length]:
            raise StoreError(
                f"{self.where} is damaged: its row pointers run from {ends[0]} to {ends[1]} "
                f"over {self._data.length} values"
            )

    def _cut(self) -> Cuts:
        step = range(1, self.n_rows + 1, _PIECE)
        ends = (self._indptr.read(first, min(first + _PIECE, self.n_rows + 1)) for first in step)
        try:
            return cut_by_entries(ends, self.entry_nbytes, self.where)
        except InputError as error:
            raise StoreError(str(error)) from None

    def _pointers(self, start: int, stop: int) -> Array:
        indptr = self._indptr.read(start, stop).astype(np.int64)
        if np.any(indptr[1:] < indptr[:-1]):
            raise StoreError(f"{self.where}/indptr is damaged: row pointers go backwards after row {start}")
        return indptr


class ForeignDense:
    """A dense array of two dimensions, read one block at a time."""

    nnz: int | None = None

    def __init__(self, hierarchy: Hierarchy, node: ZarrNode) -> None:
        self.where = hierarchy.folder.path(node.path)
        self._array = ForeignArray(hierarchy, node.path)
        if len(self._array.shape) != 2:
            raise StoreError(f"{self.where} has {len(self._array.shape)} dimensions; a matrix has two")
        self.n_rows, self.n_features = self._array.shape
        check_size(self.n_rows, self.n_features)
        self.kind = kind_of(self._array.dtype)
        self.entry_nbytes = max(4, self._array.dtype.itemsize) + (4 if self.n_features < 2**31 else 8)
        self.chunk_nbytes = self._array.chunk_nbytes
        both = self.entry_nbytes + self._array.dtype.itemsize  # the CSR, and the array it is made from
        self.cuts = cut_evenly(self.n_rows, self.n_features, both, self._array.chunks[0])

    def rows(self, start: int, stop: int) -> Csr:
        return full_rows(countable(self._array.read(start, stop)))


def foreign_matrix(hierarchy: Hierarchy, path: str) -> ForeignCsr | ForeignDense:
    """The matrix at a path, by AnnData's word for what it is."""
    node = hierarchy.get(path)
    where = hierarchy.folder.path(path)
    if node.array is not None:
        return ForeignDense(hierarchy, node)
    if node.encoding == "csc_matrix":
        raise StoreError(f"{where} {by_rows(hierarchy.folder.location, path, 'zarr')}")
    if node.encoding != "csr_matrix":
        raise StoreError(
            f"{where} is encoded as {node.encoding or 'nothing known'!r}; csr_matrix and dense arrays are read"
        )
    return ForeignCsr(hierarchy, node)


def _shape(node: ZarrNode, where: str) -> tuple[int, int]:
    shape = node.attributes.get("shape")
    if not isinstance(shape, list) or len(shape) != 2 or not all(isinstance(n, int) and 0 <= n < 2**62 for n in shape):
        raise StoreError(f"{where} is damaged: its metadata give {shape!r} for a shape; two whole numbers are expected")
    return shape[0], shape[1]
