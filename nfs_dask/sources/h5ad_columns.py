"""Columns of the tables in an AnnData ``.h5ad`` file, in the encodings it has had over the years, read by row ranges.

A table was one compound dataset at first, then a group of datasets with the categories kept aside, and is now a group
whose categorical columns are groups of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError, StoreError
from nfs_dask.sources.anndata_tables import Categorical, Nullable, TableColumn, as_text, unreadable


@dataclass(frozen=True)
class H5Values:
    """Numbers, booleans or text of an open file."""

    dataset: Any
    where: str
    field: str | None = None  # of a compound dataset

    @property
    def length(self) -> int:
        return int(self.dataset.shape[0])

    def read(self, start: int, stop: int) -> Array:
        values = (self.dataset if self.field is None else self.dataset.fields(self.field))[start:stop]
        return as_text(values, self.where) if values.dtype.kind in "OS" else np.asarray(values)


def obs_column(file: Any, name: str, path: str) -> TableColumn:
    """A column of ``obs``."""
    table = file.get("obs", {})
    names = _columns(table)
    if name not in names:
        raise InputError(f"{path} has no column {name!r} in obs; it has {', '.join(names) or 'none'}")
    where = f"{path}: obs/{name}"
    if hasattr(table, "shape"):
        return _with_categories(H5Values(table, where, name), file.get(f"uns/{name}_categories"), where)
    return _column(table, name, where)


def names_of_obs(file: Any) -> list[str]:
    """The columns of ``obs`` besides its index, in order."""
    table = file["obs"]
    if hasattr(table, "shape"):
        return [name for name in _columns(table) if name != _index_field(table)]
    names = _columns(table)
    index, order = table.attrs.get("_index", "_index"), [str(name) for name in table.attrs.get("column-order", names)]
    return [name for name in order if name in names and name != index]


def index_of(file: Any, name: str, path: str) -> TableColumn | None:
    """The index of a table; None where there is no table."""
    if name not in file:
        return None
    table = file[name]
    if hasattr(table, "shape"):
        if not table.dtype.names:
            raise StoreError(f"{path}: {name} is an array of numbers where a table must be; the file is damaged")
        field = _index_field(table)
        return H5Values(table, f"{path}: {name}/{field}", field)
    key = str(table.attrs.get("_index", "_index"))
    if key not in table:
        raise StoreError(f"{path}: {name} has no index {key!r}; the file is damaged")
    return _column(table, key, f"{path}: {name}/{key}")


def _index_field(table: Any) -> str:
    """The field of a compound dataset that is its index."""
    fields = table.dtype.names
    return next((one for one in ("index", "_index") if one in fields), str(fields[0]))


def check_names(file: Any, n_features: int, path: str) -> None:
    """Refuse an index of the columns that cannot be read, or is of another length."""
    index = index_of(file, "var", path)
    if index is not None and index.length != n_features:
        raise StoreError(f"{index.where} has {index.length} names for {n_features} columns; the file is damaged")


def _column(table: Any, name: str, where: str) -> TableColumn:
    node = table[name]
    if hasattr(node, "shape"):
        return _with_categories(_values(node, where), table.get(f"__categories/{name}"), where)
    encoding = str(node.attrs.get("encoding-type", ""))
    try:
        if encoding == "categorical":
            ordered = bool(node.attrs.get("ordered", False))
            return Categorical(_values(node["codes"], where), _categories(node, where), where, ordered)
        if encoding.startswith("nullable-"):
            return Nullable(_values(node["values"], where), _values(node["mask"], where), where)
    except KeyError as error:
        raise StoreError(f"{where} is damaged: {error}") from None
    raise unreadable(where, encoding)


def _categories(node: Any, where: str) -> TableColumn:
    """Categories, which are values or values with a mask."""
    categories = node["categories"]
    if hasattr(categories, "shape"):
        return _values(categories, where)
    return Nullable(_values(categories["values"], where), _values(categories["mask"], where), where)


def _columns(table: Any) -> list[str]:
    if hasattr(table, "shape"):
        return list(table.dtype.names or ())
    return [name for name in table if not name.startswith("__")]


def _values(dataset: Any, where: str) -> H5Values:
    if not hasattr(dataset, "shape") or len(dataset.shape) != 1 or dataset.dtype.names:
        raise StoreError(f"{where} is damaged: a column is an array of one dimension")
    return H5Values(dataset, where)


def _with_categories(column: H5Values, categories: Any, where: str) -> TableColumn:
    return column if categories is None else Categorical(column, _values(categories, where), where)
