"""Matrices and tables of AnnData, read by row ranges in one way from HDF5 and from Zarr.

A table was one compound dataset at first, then a group of arrays with the categories kept aside, and is now a group
whose categorical columns are groups of their own. All of these are read.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from nfs_dask.arrays.block import Array, Csr, full_rows
from nfs_dask.errors import InputError, StoreError, did_you_mean
from nfs_dask.sources.anndata_memory import by_rows
from nfs_dask.sources.block_cuts import Cuts, cut_by_entries, cut_evenly
from nfs_dask.sources.matrices import check_matrix, check_size, countable, kind_of
from nfs_dask.units import MiB

_PIECE = 1 << 20  # row pointers looked at together
_NAMES = 1 << 12  # names read together
MOST_KEPT = MiB  # of a chunk of numbers that is kept for the next block


class StoredArray(Protocol):
    """An array in a file, of which some rows are read at a time."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunks: tuple[int, ...]

    @property
    def chunk_nbytes(self) -> int: ...

    def read(self, start: int, stop: int) -> Array: ...


class TableColumn(Protocol):
    """Values of rows: numbers as they are stored, else objects; text as str, and what is missing as None."""

    @property
    def length(self) -> int: ...

    @property
    def where(self) -> str:
        """Its name in messages."""
        ...

    def read(self, start: int, stop: int) -> Array: ...


@dataclass(frozen=True)
class HeldColumn:
    """Values in memory."""

    values: Array
    where: str

    @property
    def length(self) -> int:
        return len(self.values)

    def read(self, start: int, stop: int) -> Array:
        return self.values[start:stop]


@dataclass
class StoredColumn:
    """An array of numbers or text. Remembers the chunk it read last, but for large ones of numbers.

    Blocks are read in order, and unpacking a chunk for each of them may take longer than their entries.
    """

    array: StoredArray
    where: str
    _last: tuple[int, Array] | None = field(default=None, init=False)  # number of a chunk, and what is in it

    @property
    def length(self) -> int:
        return int(self.array.shape[0])

    def read(self, start: int, stop: int) -> Array:
        is_large = self.array.dtype.kind not in "OS" and self.array.chunk_nbytes > MOST_KEPT
        if is_large or self.array.chunks[0] == 1 or not 0 <= start < stop <= self.length:
            return self._as_text(self.array.read(start, stop))
        size = self.array.chunks[0]
        parts = [
            self._chunk(number)[max(0, start - number * size) : stop - number * size]
            for number in range(start // size, -(-stop // size))
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _chunk(self, number: int) -> Array:
        if self._last is None or self._last[0] != number:
            size = self.array.chunks[0]
            self._last = (number, self._as_text(self.array.read(number * size, min((number + 1) * size, self.length))))
        return self._last[1]

    def _as_text(self, values: Array) -> Array:
        if values.dtype.kind not in "OS":
            return values
        out = np.empty(len(values), object)
        try:
            out[:] = [value.decode() if isinstance(value, bytes) else value for value in values.tolist()]
        except UnicodeDecodeError as error:
            raise StoreError(
                f"{self.where} is not valid text ({error}); it is damaged, or has another encoding"
            ) from None
        return out

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_last": None}


@dataclass(frozen=True)
class Categorical:
    """Codes, and the categories that they number; -1 is missing."""

    codes: TableColumn
    categories: TableColumn
    where: str
    ordered: bool = False

    @property
    def length(self) -> int:
        return self.codes.length

    def read(self, start: int, stop: int) -> Array:
        values = np.full(self.categories.length + 1, None, object)  # -1 finds the last
        values[:-1] = self.categories.read(0, self.categories.length)
        return values[self.read_codes(start, stop)]

    def read_codes(self, start: int, stop: int) -> Array:
        """Codes of rows, int64. They come from outside, so their range is checked."""
        codes = self.codes.read(start, stop)
        if codes.dtype.kind not in "iu":
            raise StoreError(f"{self.where} is damaged: its codes are not whole numbers")
        codes = codes.astype(np.int64)
        if len(codes) and not (codes.min() >= -1 and codes.max() < self.categories.length):
            raise StoreError(f"{self.where} is damaged: it holds a code that stands for no category")
        return codes


@dataclass(frozen=True)
class Nullable:
    """Values, and a mask of those that are missing."""

    values: TableColumn
    mask: TableColumn
    where: str

    def __post_init__(self) -> None:
        if self.values.length != self.mask.length:
            raise StoreError(
                f"{self.where} is damaged: it has {self.values.length} values, and a mask of {self.mask.length}"
            )

    @property
    def length(self) -> int:
        return self.values.length

    def read(self, start: int, stop: int) -> Array:
        missing = self.mask.read(start, stop).astype(bool)
        values = self.values.read(start, stop)
        if missing.any():
            values = values.astype(object)
            values[missing] = None
        return values


def unreadable(where: str, encoding: str) -> InputError:
    return InputError(
        f"{where} is encoded as {encoding or 'nothing known'!r}; text, categories, numbers and booleans are read. "
        "Convert it in Python, such as a.obs[name] = a.obs[name].astype(str), and write it again"
    )


class AnnDataFile(ABC):
    """The matrices and tables below one root. Subclasses find groups and arrays by their path."""

    location: str
    ending: str

    @abstractmethod
    def attributes(self, path: str) -> Mapping[str, Any] | None:
        """Return the attributes of a group or array; None where there is nothing."""

    @abstractmethod
    def is_array(self, path: str) -> bool:
        """Tell an array from a group, either of which is there."""

    @abstractmethod
    def array(self, path: str, *, text: bool = False, strict: bool = False) -> StoredArray:
        """Return the array at a path; with ``strict`` a chunk that was left out is damage, and not zeros."""

    @abstractmethod
    def where(self, path: str) -> str:
        """Return the name of a path in messages."""

    @abstractmethod
    def categories_aside(self, path: str) -> str | None:
        """Return the path at which AnnData before 0.8 kept the categories of a column."""

    def matrix(self, path: str) -> CsrArrays | DenseArray:
        """Return the matrix at a path, by what its encoding says, in AnnData's present words or its first ones."""
        found, where = self._get(path), self.where(path)
        if self.is_array(path):
            return DenseArray(self.array(path), where)
        encoding = str(found.get("encoding-type", found.get("h5sparse_format", "nothing known")))
        if encoding in ("csc_matrix", "csc"):
            raise StoreError(f"{where} {by_rows(self.location, path, self.ending)}")
        if encoding not in ("csr_matrix", "csr"):
            raise StoreError(f"{where} is encoded as {encoding!r}; csr_matrix and dense arrays are read")
        shape = found.get("shape", found.get("h5sparse_shape"))
        try:
            n_rows, n_features = (operator.index(n) for n in shape)
            if not (0 <= n_rows < 2**62 and 0 <= n_features < 2**62):
                raise ValueError
        except (TypeError, ValueError):
            raise StoreError(
                f"{where} is damaged: its metadata give {shape!r} for a shape; two whole numbers are expected"
            ) from None
        indptr, indices, data = (self.array(f"{path}/{name}", strict=True) for name in ("indptr", "indices", "data"))
        return CsrArrays(indptr, indices, data, (n_rows, n_features), where)

    def columns(self) -> list[str]:
        """Names of the columns of ``obs`` besides its index, in order."""
        return [str(name) for name in (self.attributes("obs") or {}).get("column-order", [])]

    def column(self, name: str, n_rows: int) -> TableColumn:
        """A column of ``obs``."""
        path = f"obs/{name}"
        if not name or name.startswith((".", "__")) or self.attributes(path) is None:
            known = self.columns()
            near = did_you_mean(name, known)
            raise InputError(
                f"{self.location} has no column {name!r} in obs; it has {', '.join(known) or 'none'}{near}"
            )
        return self._of_length(self._column(path), n_rows, "rows")

    def index(self, table: str, length: int) -> TableColumn | None:
        """The index of a table; None where there is no table."""
        found = self.attributes(table)
        if found is None:
            return None
        if self.is_array(table):
            raise StoreError(f"{self.where(table)} is an array where a table must be; write it again with anndata")
        key = str(found.get("_index", "_index"))
        if self.attributes(f"{table}/{key}") is None:
            raise StoreError(f"{self.where(table)} has no index {key!r}; it is damaged")
        return self._of_length(self._column(f"{table}/{key}"), length, "columns" if table == "var" else "rows")

    def names(self, columns: Array, n_features: int) -> list[str] | None:
        """Some names of columns, of which only the parts are read that hold one of them."""
        index = self.index("var", n_features)
        if index is None:
            return None
        wanted = np.asarray(columns, np.int64)
        names = [""] * len(wanted)
        for low, positions in _by_part(wanted):
            values = index.read(low, min(low + _NAMES, index.length))
            for position in positions:
                name = values[int(wanted[position]) - low]
                if name is None:
                    raise InputError(f"{index.where} has no name at {wanted[position]}; give each a name of its own")
                names[position] = str(name)
        return names

    def _get(self, path: str) -> Mapping[str, Any]:
        found = self.attributes(path)
        if found is None:
            raise StoreError(f"{self.where(path)} is missing; it is damaged, restore it from a copy")
        return found

    def _column(self, path: str) -> TableColumn:
        found, where = self._get(path), self.where(path)
        if self.is_array(path):
            aside = self.categories_aside(path)
            return self.values(path) if aside is None else Categorical(self.values(path), self._part(aside), where)
        encoding = str(found.get("encoding-type", ""))
        if encoding == "categorical":
            codes, categories = self.values(f"{path}/codes"), self._part(f"{path}/categories")
            return Categorical(codes, categories, where, bool(found.get("ordered", False)))
        if encoding.startswith("nullable-"):
            return Nullable(self.values(f"{path}/values"), self.values(f"{path}/mask"), where)
        raise unreadable(where, encoding)

    def _part(self, path: str) -> TableColumn:
        """Categories, which are values or values with a mask, and no categories themselves."""
        column = self._column(path)
        if isinstance(column, Categorical):
            raise StoreError(f"{column.where} holds categories of categories; it is damaged")
        return column

    def values(self, path: str) -> TableColumn:
        array = self.array(path, text=True)
        if len(array.shape) != 1:
            raise StoreError(f"{self.where(path)} is damaged: it has {len(array.shape)} dimensions; a column has one")
        return StoredColumn(array, self.where(path))

    @staticmethod
    def _of_length(column: TableColumn, length: int, what: str) -> TableColumn:
        if column.length != length:
            kind = "values" if what == "rows" else "names"
            raise StoreError(f"{column.where} has {column.length} {kind} for {length} {what}; it is damaged")
        return column


class CsrArrays:
    """A csr_matrix group."""

    def __init__(
        self, indptr: StoredArray, indices: StoredArray, data: StoredArray, shape: tuple[int, int], where: str
    ) -> None:
        self._indptr, self._indices, self._data, self.where = indptr, indices, data, where
        self.shape = shape
        check_matrix(shape, data.dtype)
        check_size(*shape)
        shapes = [part.shape for part in (indptr, indices, data)]
        if shapes[0] != (shape[0] + 1,) or len(data.shape) != 1 or indices.shape != data.shape:
            raise StoreError(
                f"{where} is damaged: {shape[0]} rows, but row pointers, columns and values of the shapes {shapes}"
            )
        if indptr.dtype.kind not in "iu" or indices.dtype.kind not in "iu":
            raise StoreError(f"{where} is damaged: its row pointers or columns are not whole numbers")
        self.nnz: int | None = int(data.shape[0])
        self.kind = kind_of(data.dtype)
        self.entry_nbytes = indices.dtype.itemsize + max(4, data.dtype.itemsize)
        self.chunk_nbytes = sum(part.chunk_nbytes for part in (indptr, indices, data))

    def cut(self) -> Cuts:
        """Read the row pointers through, a piece at a time, to cut blocks of bounded size."""
        n = self.shape[0] + 1
        try:
            ends = (self._indptr.read(first, min(first + _PIECE, n)) for first in range(1, n, _PIECE))
            cuts = cut_by_entries(ends, self.entry_nbytes, self.where)
        except InputError as error:
            raise StoreError(str(error)) from None
        begin, end = int(self._indptr.read(0, 1)[0]), int(cuts.entries[-1])
        if (begin, end) != (0, self.nnz):
            raise StoreError(
                f"{self.where} is damaged: its row pointers run from {begin} to {end} over {self.nnz} values"
            )
        return cuts

    def rows(self, start: int, stop: int) -> Csr:
        indptr = self._indptr.read(start, stop + 1).astype(np.int64)
        if np.any(indptr[1:] < indptr[:-1]):
            raise StoreError(f"{self.where}/indptr is damaged: row pointers go backwards after row {start}")
        first, last = int(indptr[0]), int(indptr[-1])
        return Csr(indptr - first, self._indices.read(first, last), countable(self._data.read(first, last)))


class DenseArray:
    """A dense array of two dimensions, compressed one block at a time."""

    nnz: int | None = None

    def __init__(self, array: StoredArray, where: str) -> None:
        self._array = array
        if len(array.shape) != 2:
            raise StoreError(f"{where} has {len(array.shape)} dimensions; a matrix has two")
        check_matrix(array.shape, array.dtype)
        self.shape = (int(array.shape[0]), int(array.shape[1]))
        check_size(*self.shape)
        self.kind = kind_of(array.dtype)
        self.entry_nbytes = max(4, array.dtype.itemsize) + (4 if self.shape[1] < 2**31 else 8)
        self.chunk_nbytes = array.chunk_nbytes

    def cut(self) -> Cuts:
        both = self.entry_nbytes + self._array.dtype.itemsize  # the CSR, and the array it is made from
        return cut_evenly(*self.shape, both, self._array.chunks[0])

    def rows(self, start: int, stop: int) -> Csr:
        return full_rows(countable(self._array.read(start, stop)))


def _by_part(wanted: Array) -> Iterator[tuple[int, Array]]:
    """First entry of each part that is needed, and the positions of what is wanted from it."""
    order = np.argsort(wanted, kind="stable")
    parts = wanted[order] // _NAMES
    for group in np.split(order, np.flatnonzero(np.diff(parts)) + 1):
        if len(group):
            yield int(wanted[group[0]]) // _NAMES * _NAMES, group
