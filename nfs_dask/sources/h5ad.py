"""AnnData ``.h5ad`` files, read where they lie. The file is opened in each task and never held open between two."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from nfs_dask.arrays.block import UNLABELLED, Array, Block, Csr, full_rows
from nfs_dask.errors import InputError, NfsDaskError, StoreError
from nfs_dask.files.data_files import expand, fingerprint, open_binary, size_of
from nfs_dask.files.remote import is_url
from nfs_dask.sources.anndata_memory import RAW, by_rows
from nfs_dask.sources.anndata_tables import TableColumn, names_at
from nfs_dask.sources.block_cuts import Cuts, cut_by_entries, cut_evenly
from nfs_dask.sources.h5ad_columns import check_names, index_of, names_of_obs, obs_column
from nfs_dask.sources.matrices import check_matrix, check_size, countable, kind_of
from nfs_dask.sources.row_tables import RowTable
from nfs_dask.sources.source import Facts, Source
from nfs_dask.sources.stored_labels import ColumnLabels
from nfs_dask.store.layout import INDEX
from nfs_dask.units import MiB

# What h5py and numpy make of damaged bytes.
_DAMAGE = (ArithmeticError, AttributeError, LookupError, OSError, RuntimeError, SystemError, TypeError, ValueError)
H5PY_NBYTES = 12 * MiB  # measured: what importing h5py takes
_PIECE = 1 << 20  # row pointers looked at together
_NAMES = 1 << 12  # names read together


class H5adSource(Source):
    """Blocks of the matrix of an AnnData file.

    Parameters
    ----------
    path
        Local path or fsspec URL.
    labels : str, optional
        Column of ``obs`` that holds the labels: categorical, text, whole numbers or booleans.
    layer : str, optional
        Layer that is read instead of X.
    """

    def __init__(self, path: str | os.PathLike[str], labels: str | None = None, layer: str | None = None) -> None:
        (self._path,) = expand(path)
        self.location = self._path
        self._matrix = "X" if layer is None else f"layers/{layer}"
        self._labels = labels
        told, read_nbytes = fingerprint([self._path], "h5ad", labels, layer), size_of(self._path)
        with opened(self._path) as file:
            _check_inside(file, self._path)
            matrix = _matrix(file, self._matrix, self._path)
            self._cuts: Cuts = matrix.cut()
            self._sizes = self._cuts.sizes(matrix.entry_nbytes, read_nbytes)
            check_names(file, matrix.shape[1], self._path)
            column = self._column(file, matrix.shape[0])
            self._facts = Facts(
                *matrix.shape,
                self._cuts.n_blocks,
                matrix.nnz,
                kind_of(matrix.dtype),
                None if column is None else ColumnLabels(column).classes,
                import_nbytes=H5PY_NBYTES,
                fingerprint=told,
            )

    def _column(self, file: Any, n_rows: int) -> TableColumn | None:
        """The column of labels, if one was asked for."""
        if self._labels is None:
            return None
        column = obs_column(file, self._labels, self._path)
        if column.length != n_rows:
            raise StoreError(
                f"{self._path}: obs/{self._labels} has {column.length} labels for {n_rows} rows; the file is damaged"
            )
        return column

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        with opened(self._path) as file:
            matrix = _matrix(file, self._matrix, self._path)
            column = self._column(file, self.n_rows)
            labels = None if column is None else ColumnLabels(column, self.classes)
            for number, (first, last) in enumerate(pairwise(self._cuts.rows[start : stop + 1].tolist()), start):
                codes = np.full(last - first, UNLABELLED, np.int8)
                if labels is not None:
                    codes = labels.read(first, last)
                indptr, indices, data, full = matrix.rows(first, last)
                yield Block(indptr, indices, data, codes, self.n_features, None, first, number, full)

    @property
    def annotations(self) -> H5adRows | None:
        with opened(self._path) as file:
            known = index_of(file, "obs", self._path) is not None
        return H5adRows(self._path, self.n_rows, self._labels) if known else None

    def names(self, columns: Array) -> list[str] | None:
        """Names from the index of ``var``, of which only the parts are read that hold one of them."""
        with opened(self._path) as file:
            index = index_of(file, "var", self._path)
            return None if index is None else names_at(index, columns, _NAMES)


@dataclass(frozen=True)
class H5adRows(RowTable):
    """The table of rows of a file."""

    path: str
    n_rows: int
    labels: str | None

    @contextmanager
    def opened(self) -> Iterator[Any]:
        with opened(self.path) as file:
            yield file

    def names(self, place: Any) -> Iterable[Any]:
        return names_of_obs(place)

    def column(self, place: Any, name: str) -> TableColumn:
        if name != INDEX:
            return obs_column(place, name, self.path)
        index = index_of(place, "obs", self.path)
        assert index is not None
        return index


class _Csr:
    """A csr_matrix group of an open file."""

    def __init__(self, group: Any, where: str) -> None:
        shape = group.attrs.get("shape", group.attrs.get("h5sparse_shape"))
        if shape is None or len(shape) != 2 or any(name not in group for name in ("indptr", "indices", "data")):
            raise StoreError(f"{where} is damaged: a sparse matrix has a shape, indptr, indices and data")
        self._where = where
        self._indptr, self._indices, self._data = group["indptr"], group["indices"], group["data"]
        self.shape = (int(shape[0]), int(shape[1]))
        self.dtype: np.dtype[Any] = self._data.dtype
        self.entry_nbytes = int(self._indices.dtype.itemsize + max(4, self.dtype.itemsize))
        self.nnz: int | None = int(self._data.size)
        check_matrix(self.shape, self.dtype)
        check_size(*self.shape)
        if self._indptr.shape != (self.shape[0] + 1,) or self._indices.shape != self._data.shape != ():
            raise StoreError(
                f"{where} is damaged: {self.shape[0]} rows, but row pointers of shape {self._indptr.shape}, columns of "
                f"shape {self._indices.shape} and values of shape {self._data.shape}"
            )

    def cut(self) -> Cuts:
        """Read the row pointers through, a piece at a time."""
        n_rows = self.shape[0]
        ends = (self._indptr[a : min(a + _PIECE, n_rows + 1)] for a in range(1, n_rows + 1, _PIECE))
        cuts = cut_by_entries(ends, self.entry_nbytes, self._where)
        if int(self._indptr[0]) != 0 or int(cuts.entries[-1]) != self.nnz:
            raise StoreError(
                f"{self._where} is damaged: its row pointers run from {self._indptr[0]} to {cuts.entries[-1]} over "
                f"{self.nnz} entries"
            )
        return cuts

    def rows(self, start: int, stop: int) -> Csr:
        indptr = self._indptr[start : stop + 1].astype(np.int64)
        first, last = int(indptr[0]), int(indptr[-1])
        indices = self._indices[first:last]
        return Csr(
            indptr - first,
            indices.astype(indices.dtype.newbyteorder("="), copy=False),
            countable(self._data[first:last]),
        )


class _Dense:
    """A dense dataset of an open file, compressed one block at a time."""

    nnz: int | None = None

    def __init__(self, dataset: Any, where: str) -> None:
        self._dataset = dataset
        check_matrix(dataset.shape, dataset.dtype)
        check_size(*dataset.shape)
        self.shape = (int(dataset.shape[0]), int(dataset.shape[1]))
        self.dtype: np.dtype[Any] = dataset.dtype
        self.entry_nbytes = (4 if self.shape[1] < 2**31 else 8) + max(4, self.dtype.itemsize)

    def cut(self) -> Cuts:
        chunks = self._dataset.chunks or (1,)
        return cut_evenly(*self.shape, self.entry_nbytes + self.dtype.itemsize, int(chunks[0]))

    def rows(self, start: int, stop: int) -> Csr:
        return full_rows(countable(self._dataset[start:stop]))


def _matrix(file: Any, name: str, path: str) -> _Csr | _Dense:
    """The matrix of that name, by what its encoding says, in AnnData's present words or its first ones."""
    where = f"{path}: {name}"
    if name not in file:
        layers = ", ".join(file["layers"]) if "layers" in file else ""
        hint = RAW if name == "layers/raw" and "raw" in file else "leave layer out to read X"
        raise InputError(f"{path} has no {name}; its layers are: {layers or 'none'}; {hint}")
    node = file[name]
    if hasattr(node, "shape"):
        return _Dense(node, where)
    encoding = str(node.attrs.get("encoding-type", node.attrs.get("h5sparse_format", "nothing known")))
    if encoding in ("csr_matrix", "csr"):
        return _Csr(node, where)
    if encoding in ("csc_matrix", "csc"):
        raise StoreError(f"{where} {by_rows(path, name, 'h5ad')}")
    raise StoreError(f"{where} is encoded as {encoding!r}; csr_matrix and dense arrays are read")


@contextmanager
def opened(path: str) -> Iterator[Any]:
    try:
        import h5py  # only for these files
    except ImportError:
        raise InputError(".h5ad files need h5py; install it with: pip install 'nfs-dask[anndata]'") from None
    with ExitStack() as stack:
        content = stack.enter_context(open_binary(path))  # says what is missing better than HDF5 does
        try:
            file = stack.enter_context(h5py.File(content if is_url(path) else path, "r"))
        except OSError as error:
            raise StoreError(f"{path} is not an HDF5 file, or is damaged or cut short ({error})") from None
        try:
            yield file
        except NfsDaskError:
            raise
        except _DAMAGE as error:
            raise StoreError(f"{path} is damaged ({type(error).__name__}: {error}); restore it from a copy") from None


def _check_inside(file: Any, path: str) -> None:
    """Refuse a file that would have others read, which could be any that this process may read."""
    from h5py import h5l

    def elsewhere(name: bytes, link: Any) -> bytes | None:
        return None if link.type in (h5l.TYPE_HARD, h5l.TYPE_SOFT) else name

    def outside(name: str, node: Any) -> str | None:
        return name if getattr(node, "external", None) or getattr(node, "is_virtual", False) else None

    found = file.id.links.visit(elsewhere, info=True) or file.visititems(outside)
    if found is not None:
        name = found.decode(errors="replace") if isinstance(found, bytes) else found
        raise StoreError(f"{path}: {name} lies in another file, which is not read; store all of it in one file")
