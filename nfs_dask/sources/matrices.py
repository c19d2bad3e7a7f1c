"""Any two-dimensional matrix that Python libraries hold in memory, seen as rows of CSR.

Types are told by the name of their library, so that looking at an array imports neither pandas nor sparse.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from nfs_dask.arrays import kernels
from nfs_dask.arrays.block import Array, Csr, Kind, column_type, full_rows
from nfs_dask.containers import a_type, column_names, library_of, type_of, unwrapped
from nfs_dask.errors import InputError, WrongTypeError
from nfs_dask.sources.anndata_memory import is_anndata
from nfs_dask.sources.block_cuts import Cuts, cut_by_entries, cut_evenly, in_pieces
from nfs_dask.units import format_bytes

ACCEPTED = (
    "a numpy array, a scipy sparse matrix or array, a sparse.COO or GCXS, a DataFrame of pandas or polars, a pyarrow "
    "Table, an xarray DataArray"
)

POINTER_NBYTES = 8  # of where a row begins
MOST_COLUMNS = 1 << 32  # what a file says of its width costs it nothing; each column would cost here


class MatrixRows(Protocol):
    """A matrix in memory, whose rows can be had as CSR."""

    @property
    def n_rows(self) -> int: ...

    @property
    def n_features(self) -> int: ...

    @property
    def nnz(self) -> int | None:
        """Stored entries, where they need not be counted."""

    @property
    def dtype(self) -> np.dtype[Any]: ...

    @property
    def nbytes(self) -> int: ...

    @property
    def entry_nbytes(self) -> int:
        """Bytes that an entry takes in a block."""

    def cut(self) -> Cuts:
        """Blocks of bounded memory."""
        ...

    def rows(self, start: int, stop: int) -> Csr:
        """Some rows, sharing memory with the matrix where that is possible."""
        ...


def as_rows(X: Any) -> MatrixRows:
    """See a matrix as rows, or say why that cannot be."""
    X = unwrapped(X)
    adapt = _ADAPTERS.get(library_of(X) or "")
    if adapt is not None:
        return adapt(X)
    if hasattr(X, "__array__") or isinstance(X, (list, tuple)):
        try:
            array = np.asarray(X)
        except ValueError as error:
            what = f"X is {a_type(X)} that is no table: {error}"
            raise InputError(f"{what}; give rows of equal length") from error
        return _from_numpy(array)
    if hasattr(X, "to_memory") and not is_anndata(X):  # AnnData's, of a file
        raise InputError(f"X is {a_type(X)}, a matrix in a file; give X.to_memory(), or the AnnData that it is of")
    hint = "its matrix, adata.X, and labels as y, such as adata.obs['group']" if is_anndata(X) else ACCEPTED
    raise InputError(f"X is {a_type(X)}; give {hint}")


def kind_of(dtype: np.dtype[Any]) -> Kind | None:
    """What a type alone says about the values."""
    return {"b": "binary", "u": "count"}.get(dtype.kind)  # type: ignore[return-value]


def check_matrix(shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Refuse what is not a table of real numbers with at least one row and one column."""
    if len(shape) != 2:
        raise InputError(
            f"X has {len(shape)} dimension(s), shape {shape}; give one row per document. Reshape your data, "
            "X.reshape(1, -1) if it is a single document or X.reshape(-1, 1) if it is a single feature"
        )
    if dtype.kind == "c":
        raise InputError(f"Complex data not supported: X has type {dtype}; give its real part, X.real")
    if dtype.kind not in "biuf":
        raise InputError(
            f"X has type {dtype}, which is not a number; convert it with X.astype(float), encode categories "
            "as columns, or ingest text with nfs_dask.ingest"
        )


def check_size(n_rows: int, n_features: int) -> None:
    """Refuse data without rows or without columns, and a width that no data have, before anything is made of it."""
    if n_features > MOST_COLUMNS:
        raise InputError(
            f"X has {n_features:,} columns, which is more than the {MOST_COLUMNS:,} that are taken, as models and "
            "stores hold something of each; leave out columns that never occur, or number terms by a hash, "
            "TextVectorizer(hashed=28)"
        )
    for count, what in ((n_rows, "sample(s)"), (n_features, "feature(s)")):
        if count == 0:
            raise InputError(
                f"X has 0 {what} (shape=({n_rows}, {n_features})) while a minimum of 1 is required; check "
                "the selection that made it"
            )


def countable(values: Array) -> Array:
    """Values in a type that compiled code takes: native byte order, no half and no extended precision."""
    dtype = values.dtype
    if dtype.kind == "f" and dtype.itemsize not in (4, 8):
        dtype = np.dtype(np.float32 if dtype.itemsize < 4 else np.float64)
    return values.astype(dtype.newbyteorder("="), copy=False)


@dataclass(frozen=True)
class CsrRows:
    """Compressed rows. Blocks are views, nothing is copied but the row pointers of a block."""

    indptr: Array
    indices: Array
    data: Array
    n_features: int

    def __post_init__(self) -> None:
        nnz = int(self.indptr[-1])
        if self.indptr[0] != 0 or nnz > len(self.indices) or nnz > len(self.data):
            raise InputError(
                f"X is damaged: its row pointers run from {self.indptr[0]} to {nnz} over {len(self.indices)} columns "
                f"and {len(self.data)} values; X.check_format() tells more"
            )

    @property
    def n_rows(self) -> int:
        return len(self.indptr) - 1

    @property
    def nnz(self) -> int:
        return int(self.indptr[-1])

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.data.dtype

    @property
    def nbytes(self) -> int:
        return int(self.indptr.nbytes + self.indices.nbytes + self.data.nbytes)

    @property
    def entry_nbytes(self) -> int:
        return int(self.indices.itemsize + self.data.itemsize)

    def cut(self) -> Cuts:
        return cut_by_entries(in_pieces(self.indptr), self.entry_nbytes)

    def rows(self, start: int, stop: int) -> Csr:
        indptr = self.indptr[start : stop + 1].astype(np.int64)
        first, last = int(indptr[0]), int(indptr[-1])
        indptr -= first
        return Csr(indptr, self.indices[first:last], countable(self.data[first:last]))


@dataclass(frozen=True)
class DenseRows:
    """A dense array, whose rows have all columns."""

    values: Array
    nnz: None = None

    @property
    def n_rows(self) -> int:
        return int(self.values.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.values.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    @property
    def nbytes(self) -> int:
        return int(self.values.nbytes)

    @property
    def entry_nbytes(self) -> int:
        return int(column_type(self.n_features).itemsize + countable(self.values[:0]).itemsize)

    def cut(self) -> Cuts:
        return cut_evenly(self.n_rows, self.n_features, self.entry_nbytes)

    def rows(self, start: int, stop: int) -> Csr:
        return full_rows(countable(self.values[start:stop]))


@dataclass(frozen=True)
class FrameRows:
    """A table of numbers with a type for each column, turned into an array one block at a time."""

    frame: Any
    dtype: np.dtype[Any]
    nnz: None = None

    @property
    def n_rows(self) -> int:
        return len(self.frame)

    @property
    def n_features(self) -> int:
        return int(self.frame.shape[1])

    @property
    def nbytes(self) -> int:
        return int(self.frame.memory_usage(index=False).sum())

    @property
    def entry_nbytes(self) -> int:
        return int(column_type(self.n_features).itemsize + countable(np.empty(0, self.dtype)).itemsize)

    def cut(self) -> Cuts:
        both = self.entry_nbytes + self.dtype.itemsize  # the CSR, and the array it is made from
        return cut_evenly(self.n_rows, self.n_features, both)

    def rows(self, start: int, stop: int) -> Csr:
        part = self.frame.iloc[start:stop]
        missing = {"na_value": np.nan} if self.dtype.kind == "f" else {}
        return full_rows(countable(part.to_numpy(self.dtype, **missing)))


class TableRows(FrameRows):
    """A table of polars or pyarrow."""

    @property
    def nbytes(self) -> int:
        return int(self.frame.nbytes if hasattr(self.frame, "nbytes") else self.frame.estimated_size())

    def rows(self, start: int, stop: int) -> Csr:
        values = np.empty((stop - start, self.n_features), self.dtype)
        for number, column in enumerate(_columns_of(self.frame.slice(start, stop - start))):
            values[:, number] = np.asarray(column)
        return full_rows(countable(values))


def as_numbers(objects: Array) -> Array:
    """An array of Python's objects as floating-point numbers, NaN for None."""
    try:
        return objects.astype(np.float64)
    except (TypeError, ValueError) as error:
        kind = WrongTypeError if isinstance(error, TypeError) else InputError
        raise kind(
            f"X holds objects that are no numbers: {error}; convert them, encode categories as columns, or ingest "
            "text with nfs_dask.ingest"
        ) from error


def _from_numpy(X: Any) -> DenseRows:
    values = np.asarray(X)
    if values.dtype.kind == "O" and values.ndim == 2:
        values = as_numbers(values)
    check_matrix(values.shape, values.dtype)
    return DenseRows(values)


def _from_scipy(X: Any) -> CsrRows:
    check_matrix(X.shape, X.dtype)
    if X.format != "csr":
        _check_row_pointers(X.shape[0])
    csr = X if X.format == "csr" else X.tocsr()
    return CsrRows(csr.indptr, csr.indices, csr.data, int(X.shape[1]))


def _from_pandas(X: Any) -> MatrixRows:
    if X.ndim != 2:
        raise InputError("X is a pandas Series; give one row per document, X.to_frame() for a single feature")
    types = [getattr(t, "subtype", getattr(t, "numpy_dtype", t)) for t in X.dtypes]
    for number, dtype in enumerate(types):
        if not isinstance(dtype, np.dtype) or dtype.kind not in "biuf":
            types[number] = _numbers_in(X.iloc[:, number], X.columns[number]).dtype
    if X.shape[1] and all(hasattr(t, "subtype") and getattr(t, "fill_value", None) == 0 for t in X.dtypes):
        return _from_scipy(X.sparse.to_coo())
    dtype = np.result_type(*types) if types else np.dtype(np.float64)
    nullable = any(not isinstance(t, np.dtype) for t in X.dtypes)
    return FrameRows(X, np.result_type(dtype, np.float64) if nullable and X.isna().to_numpy().any() else dtype)


def _from_table(X: Any) -> MatrixRows:
    if (names := column_names(X)) is None:
        raise InputError(
            f"X is {a_type(X)} of {library_of(X)}, which is one column; give a table with one row per document"
        )
    columns = _columns_of(X)
    types = [_numbers_in(column, name).dtype for name, column in zip(names, columns, strict=True)]
    return TableRows(X, np.result_type(*types) if types else np.dtype(np.float64))


def _columns_of(table: Any) -> list[Any]:
    """The columns of a table of polars or pyarrow."""
    columns: list[Any] = table.get_columns() if hasattr(table, "get_columns") else table.columns
    return columns


def _numbers_in(column: Any, name: Any) -> Array:
    """The numbers of a column of a table whose type alone does not say that it has any; NaN for what is missing."""
    values = np.asarray(column)
    if values.dtype.kind == "O":
        with suppress(TypeError, ValueError):  # what is no number is said below
            values = values.astype(np.float64)
    if values.dtype.kind not in "biuf":
        raise InputError(
            f"column {name!r} of X has type {type_of(column)}, which is not a number; drop it, encode it as "
            "columns, such as with pandas.get_dummies(X), or if it holds texts, name it as text_column= of "
            "nfs_dask.ingest"
        )
    return values


def _from_sparse(X: Any) -> MatrixRows:
    check_matrix(X.shape, X.dtype)
    _check_row_pointers(X.shape[0])
    if X.fill_value != 0:
        raise InputError(f"X has fill value {X.fill_value}, so it is not sparse here; give one that is filled with 0")
    if not hasattr(X, "coords") and not hasattr(X, "indptr"):
        X = X.asformat("coo")
    if hasattr(X, "coords"):
        return _from_coordinates(X)
    if tuple(int(axis) for axis in X.compressed_axes) == (0,):
        return CsrRows(X.indptr, X.indices, X.data, int(X.shape[1]))
    return _from_scipy(X.to_scipy_sparse())


def _check_row_pointers(n_rows: int) -> None:
    """Refuse rows that a matrix without row pointers only claims to have, before memory is asked for on its word."""
    import psutil

    needed, free = POINTER_NBYTES * (n_rows + 1), psutil.virtual_memory().available
    if needed > free:
        raise InputError(
            f"X says that it has {n_rows:,} rows, and where each of them begins would take {format_bytes(needed)} of "
            f"{format_bytes(free)} of memory; give a matrix of the rows that there are"
        )


def _from_coordinates(X: Any) -> CsrRows:
    """Coordinates that are sorted by row already need no more than their row pointers."""
    rows, columns = X.coords
    starts = np.zeros(X.shape[0] + 1, np.int64)
    if not kernels.row_starts(rows, starts):
        return _from_scipy(X.to_scipy_sparse())
    return CsrRows(starts, np.ascontiguousarray(columns), X.data, int(X.shape[1]))


_ADAPTERS: dict[str, Callable[[Any], MatrixRows]] = {
    "numpy": _from_numpy,
    "scipy": _from_scipy,
    "sparse": _from_sparse,
    "pandas": _from_pandas,
    "polars": _from_table,
    "pyarrow": _from_table,
}
