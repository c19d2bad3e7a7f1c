"""What is known of rows beside the matrix, their names and other columns, kept as AnnData's table of rows has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from nfs_dask.arrays.block import UNLABELLED, Array
from nfs_dask.errors import DataWarning, InputError, warn
from nfs_dask.store.layout import WEIGHT, Json, Layout, Numbers, Texts, group_metadata
from nfs_dask.store.plain_values import categories_at, plain_classes

MOST_CATEGORIES = 1 << 16  # a header holds them; text of more values is kept as text
TEXT, CATEGORY = "text", "category"


@dataclass(frozen=True, slots=True)
class RowColumn:
    """A column of the table of rows: numbers of a type, text, or categories."""

    name: str
    dtype: str  # numpy's name of it, TEXT, or CATEGORY
    category_type: str | None = None  # "str", "int", "float" or "bool"
    categories: tuple[Any, ...] = ()  # as the codes number them
    ordered: bool = False

    @classmethod
    def of_categories(cls, name: str, values: Sequence[Any], ordered: bool = False) -> RowColumn:
        kind, categories = plain_classes(values)
        return cls(name, CATEGORY, kind, categories, ordered)

    @classmethod
    def from_json(cls, found: Json) -> RowColumn:
        column = cls(**{**found, "categories": tuple(found["categories"])})
        known = isinstance(column.name, str) and type(column.ordered) is bool
        if column.dtype == CATEGORY:
            known &= plain_classes(column.categories)[0] in (column.category_type, "str")
        elif column.dtype != TEXT:
            known &= np.dtype(column.dtype).kind in "biuf" and np.dtype(column.dtype).name == column.dtype
        if not known or not is_keepable(column.name):
            raise ValueError(f"a column {column.name!r} of rows")
        return column

    @property
    def is_number(self) -> bool:
        return self.dtype not in (TEXT, CATEGORY)

    @property
    def stored_type(self) -> str:
        """The type of what is stored, as numpy calls it."""
        return "object" if self.dtype == TEXT else "int32" if self.dtype == CATEGORY else self.dtype

    def numbers(self, n_rows: int, layout: Layout) -> Numbers | None:
        """Where numbers or codes are stored; None for text."""
        if self.dtype == TEXT:
            return None
        name = f"obs/{self.name}" if self.is_number else f"obs/{self.name}/codes"
        return Numbers(name, self.stored_type, n_rows, layout.row_chunk, layout.row_shard)

    def texts(self, n_rows: int, layout: Layout) -> Texts | None:
        return Texts(f"obs/{self.name}", n_rows, layout.row_chunk) if self.dtype == TEXT else None

    def category_array(self) -> Numbers | Texts | None:
        """Where categories are stored, if it has any."""
        if self.dtype != CATEGORY:
            return None
        return categories_at(f"obs/{self.name}/categories", self.category_type, self.categories)

    def group(self) -> dict[str, Json]:
        """Metadata of the folder that categories and codes are in."""
        if self.dtype != CATEGORY:
            return {}
        return {f"obs/{self.name}": group_metadata("categorical", "0.2.0", ordered=self.ordered)}

    def stored(self, values: Array | None, n: int) -> Array:
        """``n`` values as they are stored; those that are missing, or None of all, as NaN, no category or no text."""
        if self.dtype == TEXT:
            return np.array([""] * n if values is None else ["" if v is None else v for v in values], object)
        if self.dtype == CATEGORY:
            codes = {value: code for code, value in enumerate(self.categories)}
            found = [None] * n if values is None else values.tolist()
            return np.fromiter((codes.get(value, UNLABELLED) for value in found), np.int32, n)
        return np.full(n, np.nan) if values is None else values


class Annotations(Protocol):
    """The table of rows of a source. It travels with tasks."""

    @property
    def labels(self) -> str | None:
        """The column that the labels of the source are, if it is one."""

    @property
    def named(self) -> bool:
        """Whether rows have names, which are read as INDEX."""

    def columns(self) -> list[RowColumn]:
        """What can be kept."""
        ...

    def read(self, name: str, start: int, stop: int) -> Array:
        """Values of rows ``start .. stop - 1``: numbers, NaN if missing; or texts and categories, or None."""
        ...


def is_keepable(name: str) -> bool:
    """Whether a column of that name can have a place in a store."""
    return bool(name) and "/" not in name and not name.startswith((".", "_"))


def new_columns(table: Annotations | None, n_rows: int, taken: Iterable[str]) -> tuple[RowColumn, ...]:
    """The columns that a new store keeps, but those whose names are taken."""
    kept = []
    for column in _columns_of(table, taken):
        distinct = column.category_type == "str" and not column.ordered and len(column.categories) == n_rows
        kept.append(RowColumn(column.name, TEXT) if distinct else column)
    return tuple(kept)


def appended_columns(
    old: Sequence[RowColumn], table: Annotations | None, taken: Iterable[str]
) -> tuple[RowColumn, ...]:
    """The columns of a store with more rows; what only these have is not kept, and what they lack is missing."""
    new = {column.name: column for column in _columns_of(table, taken)}
    if more := [name for name in new if name not in {column.name for column in old}]:
        warn(f"the store has no column {', '.join(more)} of rows; of the rows to append they are not kept", DataWarning)
    if lacking := [column.name for column in old if column.name not in new]:
        warn(f"the rows to append have no column {', '.join(lacking)}; there it is missing, or empty text", DataWarning)
    return tuple(_merged(column, new.get(column.name)) for column in old)


def _columns_of(table: Annotations | None, taken: Iterable[str]) -> list[RowColumn]:
    """What can be kept beside the columns of names that are taken; one that labels come from is kept as these."""
    if table is None:
        return []
    columns, own = table.columns(), set(taken)
    if lost := [column.name for column in columns if column.name in own - {table.labels, WEIGHT}]:
        warn(f"columns {', '.join(lost)} of obs are not kept, as columns of the store have these names", DataWarning)
    return [column for column in columns if column.name not in own]


def is_named(table: Annotations | None) -> bool:
    """Whether the rows have names."""
    return table is not None and table.named


def _merged(old: RowColumn, new: RowColumn | None) -> RowColumn:
    """A column that holds the values of both."""
    if old.is_number and (new is None or new.is_number):
        return replace(old, dtype=np.promote_types(old.dtype, "float64" if new is None else new.dtype).name)
    if new is None:
        return old
    if old.dtype == TEXT and (new.dtype == TEXT or new.category_type == "str"):
        return old
    if old.dtype == new.dtype == CATEGORY and (
        old.category_type == new.category_type or not (old.categories and new.categories)
    ):
        categories = dict.fromkeys((*old.categories, *new.categories))
        if len(categories) <= MOST_CATEGORIES:
            ordered = old.ordered and len(categories) == len(old.categories)
            kind = old.category_type if old.categories else new.category_type
            return replace(old, category_type=kind, categories=tuple(categories), ordered=ordered)
    raise InputError(
        f"column {old.name!r} of obs holds {_shown(old)} in the store, and {_shown(new)} in the rows to append; "
        "convert it before appending, or leave it out"
    )


def _shown(column: RowColumn) -> str:
    kind = column.category_type or "no type"
    return f"{len(column.categories):,} categories ({kind})" if column.dtype == CATEGORY else column.dtype
