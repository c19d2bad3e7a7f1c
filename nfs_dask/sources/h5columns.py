"""Columns of the tables in an AnnData ``.h5ad`` file, in the encodings it has had over the years, read by row ranges.

A table was one compound dataset at first, then a group of datasets with the categories kept aside, and is now a group
whose categorical columns are groups of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from nfs_dask.block import Array
from nfs_dask.errors import InputError, StoreError


class Column(Protocol):
    """Values of rows, text as str and what is missing as None."""

    @property
    def length(self) -> int: ...

    def read(self, start: int, stop: int) -> Array:
        """Values ``start .. stop - 1``."""
        ...


@dataclass(frozen=True)
class Plain:
    """Numbers, booleans or text."""

    dataset: Any
    field: str | None = None  # of a compound dataset

    @property
    def length(self) -> int:
        return int(self.dataset.shape[0])

    def read(self, start: int, stop: int) -> Array:
        values = (self.dataset if self.field is None else self.dataset.fields(self.field))[start:stop]
        return _text(values) if values.dtype.kind in "OS" else np.asarray(values)


@dataclass(frozen=True)
class Categorical:
    """Codes, and the categories that they number; -1 is missing."""

    codes: Plain
    categories: Array
    where: str

    @property
    def length(self) -> int:
        return self.codes.length

    def read(self, start: int, stop: int) -> Array:
        codes = self.codes.read(start, stop).astype(np.int64)
        if len(codes) and not (codes.min() >= -1 and codes.max() < len(self.categories)):
            raise StoreError(f"{self.where} is damaged: it holds a code that stands for no category")
        values = np.full(len(self.categories) + 1, None, object)  # -1 finds the last
        values[:-1] = self.categories
        return values[codes]


@dataclass(frozen=True)
class Nullable:
    """Values, and a mask of those that are missing."""

    values: Plain
    mask: Plain

    @property
    def length(self) -> int:
        return self.values.length

    def read(self, start: int, stop: int) -> Array:
        values = self.values.read(start, stop).astype(object)
        values[self.mask.read(start, stop).astype(bool)] = None
        return values


def open_column(file: Any, name: str, path: str) -> Column:
    """A column of ``obs``."""
    table = file.get("obs", {})
    names = _columns(table)
    if name not in names:
        raise InputError(f"{path} has no column {name!r} in obs; it has {', '.join(names) or 'none'}")
    where = f"{path}: obs/{name}"
    if hasattr(table, "shape"):
        return _with_categories(Plain(table, name), file.get(f"uns/{name}_categories"), where)
    node = table[name]
    if hasattr(node, "shape"):
        return _with_categories(Plain(node), table.get(f"__categories/{name}"), where)
    encoding = str(node.attrs.get("encoding-type", "nothing known"))
    if encoding == "categorical":
        return _with_categories(Plain(node["codes"]), node["categories"], where)
    if encoding.startswith("nullable"):
        return Nullable(Plain(node["values"]), Plain(node["mask"]))
    raise InputError(f"{where} is encoded as {encoding!r}; labels are categories, text, whole numbers or booleans")


def index_of(file: Any, name: str) -> Column | None:
    """The index of a table, if it has one."""
    if name not in file:
        return None
    table = file[name]
    if hasattr(table, "shape"):
        found = [field for field in ("index", "_index") if field in table.dtype.names]
        return Plain(table, found[0]) if found else None
    key = table.attrs.get("_index", "_index")
    return Plain(table[key]) if key in table and hasattr(table[key], "shape") else None


def _columns(table: Any) -> list[str]:
    if hasattr(table, "shape"):
        return list(table.dtype.names or ())
    return [name for name in table if not name.startswith("__")]


def _with_categories(column: Plain, categories: Any, where: str) -> Column:
    if categories is None:
        return column
    values = Plain(categories)
    return Categorical(column, values.read(0, values.length), where)


def _text(values: Array) -> Array:
    out = np.empty(len(values), object)
    out[:] = [v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in values.tolist()]
    return out
