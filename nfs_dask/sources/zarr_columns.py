"""Columns of the tables in an AnnData Zarr store, in the encodings it has had over the years."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError, StoreError, did_you_mean
from nfs_dask.files.folder import Folder
from nfs_dask.sources.anndata_tables import (
    Categorical,
    HeldColumn,
    Nullable,
    TableColumn,
    as_text,
    names_at,
    unreadable,
)
from nfs_dask.store.foreign_arrays import ForeignArray
from nfs_dask.store.header import find_header
from nfs_dask.store.hierarchy import Hierarchy, ZarrNode
from nfs_dask.store.layout import Numbers, Texts
from nfs_dask.store.shards import ShardReader
from nfs_dask.store.string_arrays import read_texts
from nfs_dask.units import MiB

MOST_KEPT = MiB  # of a chunk of numbers that is kept for the next block


class OwnArray:
    """An array of a store of ours, whose values are compared with what was written."""

    def __init__(self, folder: Folder, array: Numbers | Texts) -> None:
        self._folder, self._array = folder, array
        self._reader = ShardReader(folder, array) if isinstance(array, Numbers) else None
        self.dtype = np.dtype(array.dtype if isinstance(array, Numbers) else object)
        self.length, self.chunks = array.length, (array.chunk,)
        self.chunk_nbytes = array.chunk * self.dtype.itemsize

    def read(self, start: int, stop: int) -> Array:
        """Values ``start .. stop - 1``; of texts ``start`` is the beginning of a chunk."""
        if isinstance(self._array, Texts):
            return np.array(read_texts(self._folder, self._array, start, stop), object)
        assert self._reader is not None
        return self._reader.read(start, stop)


@dataclass
class ZarrValues:
    """An array of numbers or text. Remembers the chunk it read last, but for large ones of numbers.

    Blocks are read in order, and unpacking a chunk for each of them may take longer than their entries.
    """

    array: ForeignArray | OwnArray
    where: str
    _last: tuple[int, Array] | None = field(default=None, init=False)  # number of a chunk, and what is in it

    @property
    def length(self) -> int:
        return self.array.length

    def read(self, start: int, stop: int) -> Array:
        is_large = self.array.dtype.kind != "O" and self.array.chunk_nbytes > MOST_KEPT
        if is_large or not 0 <= start < stop <= self.length:
            return self.array.read(start, stop)
        size = self.array.chunks[0]
        parts = [
            self._chunk(number)[max(0, start - number * size) : stop - number * size]
            for number in range(start // size, -(-stop // size))
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _chunk(self, number: int) -> Array:
        if self._last is None or self._last[0] != number:
            size = self.array.chunks[0]
            whole = self.array.read(number * size, min((number + 1) * size, self.length))
            self._last = (number, as_text(whole, self.where) if self.array.dtype.kind == "O" else whole)
        return self._last[1]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_last": None}


def zarr_column(hierarchy: Hierarchy, path: str) -> TableColumn:
    """The column at a path, by AnnData's word for what it is."""
    node = hierarchy.get(path)
    where = hierarchy.folder.path(path)
    if node.array is not None:
        aside = categories_aside(node)
        values = _values(hierarchy, path)
        return values if aside is None else Categorical(values, zarr_column(hierarchy, aside), where)
    if node.encoding == "categorical":
        codes, categories = _values(hierarchy, f"{path}/codes"), _part(hierarchy, f"{path}/categories")
        return Categorical(codes, categories, where, bool(node.attributes.get("ordered", False)))
    if node.encoding.startswith("nullable-"):
        return Nullable(_values(hierarchy, f"{path}/values"), _values(hierarchy, f"{path}/mask"), where)
    raise unreadable(where, node.encoding)


def categories_aside(node: ZarrNode) -> str | None:
    """Where AnnData before 0.8 kept the categories of a column."""
    if "categories" not in node.attributes:
        return None
    table, _, name = node.path.rpartition("/")
    return f"{table}/__categories/{name}"


def zarr_index(hierarchy: Hierarchy, table: str) -> TableColumn | None:
    """The index of a table; None where there is no table."""
    frame = hierarchy.find(table)
    if frame is None:
        return None
    if frame.array is not None:
        raise unreadable(hierarchy.folder.path(table), "a compound array")
    return zarr_column(hierarchy, f"{table}/{frame.attributes.get('_index', '_index')}")


def zarr_names(hierarchy: Hierarchy, columns: Array) -> list[str] | None:
    """Names of some columns from AnnData's index, chunk by chunk; None where there is no table of columns."""
    index = zarr_index(hierarchy, "var")
    if index is None:
        return None
    return names_at(index, columns, _step(index))


def check_names(hierarchy: Hierarchy, n_features: int) -> None:
    """Refuse an index of the columns that cannot be read, or is of another length; looks at metadata only."""
    index = zarr_index(hierarchy, "var")
    if index is not None and index.length != n_features:
        raise StoreError(f"{index.where} has {index.length} names for {n_features} columns; the store is damaged")


def obs_column(hierarchy: Hierarchy, name: str, n_rows: int) -> TableColumn:
    """A column of AnnData's table of rows."""
    path = f"obs/{name}"
    if not name or name.startswith((".", "__")) or hierarchy.find(path) is None:
        frame = hierarchy.find("obs")
        known = frame.attributes.get("column-order", []) if frame is not None else []
        near = did_you_mean(name, known)
        raise InputError(
            f"{hierarchy.folder.location} has no column {name!r}; it has {', '.join(known) or 'none'}{near}"
        )
    column = zarr_column(hierarchy, path)
    if column.length != n_rows:
        raise StoreError(f"{column.where} has {column.length} labels for {n_rows} rows; the store is damaged")
    return column


def _step(column: TableColumn) -> int:
    """How many values of a column are unpacked together."""
    if isinstance(column, ZarrValues):
        return column.array.chunks[0]
    if isinstance(column, Nullable):
        return _step(column.values)
    return _step(column.codes) if isinstance(column, Categorical) else column.length


def _part(hierarchy: Hierarchy, path: str) -> TableColumn:
    """Categories, which are values or values with a mask, and no categories themselves."""
    column = zarr_column(hierarchy, path)
    if isinstance(column, Categorical):
        raise StoreError(f"{column.where} holds categories of categories; the store is damaged")
    return column


def _values(hierarchy: Hierarchy, path: str) -> TableColumn:
    where = hierarchy.folder.path(path)
    header = find_header(hierarchy.root, hierarchy.folder.location)
    for known, values in [] if header is None else header.category_arrays:
        if known.name == path:
            return HeldColumn(np.array(values, object if isinstance(known, Texts) else known.dtype), where)
    for own in [] if header is None else header.arrays():
        if own.name == path:
            return ZarrValues(OwnArray(hierarchy.folder, own), where)
    array = ForeignArray(hierarchy, path, text=True)
    if len(array.shape) != 1:
        raise StoreError(f"{where} has {len(array.shape)} dimensions; a column has one")
    return ZarrValues(array, where)
