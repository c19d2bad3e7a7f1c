"""Columns of AnnData's tables of rows and columns, whatever kind of file holds them, read by row ranges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError, StoreError


class TableColumn(Protocol):
    """Values of rows: numbers as they are stored, else objects; text as str, and what is missing as None."""

    @property
    def length(self) -> int: ...

    @property
    def where(self) -> str:
        """What messages call it."""
        ...

    def read(self, start: int, stop: int) -> Array:
        """Values ``start .. stop - 1``."""
        ...


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
    """What to say of a column in an encoding that is not known."""
    return InputError(
        f"{where} is encoded as {encoding or 'nothing known'!r}; text, categories, numbers and booleans are read. "
        "Convert it in Python, such as a.obs[name] = a.obs[name].astype(str), and write it again"
    )


def names_at(index: TableColumn, rows: Array, step: int) -> list[str]:
    """Some entries of a table's index as text, of which only the parts are read that hold one of them."""
    wanted = np.asarray(rows, np.int64)
    names = [""] * len(wanted)
    for low, positions in _by_part(wanted, step):
        values = index.read(low, min(low + step, index.length))
        for position in positions:
            name = values[int(wanted[position]) - low]
            if name is None:
                raise InputError(f"{index.where} has no name at {wanted[position]}; give each a name of its own")
            names[position] = str(name)
    return names


def _by_part(wanted: Array, step: int) -> Iterator[tuple[int, Array]]:
    """First entry of each part that is needed, and the positions of what is wanted from it."""
    order = np.argsort(wanted, kind="stable")
    parts = wanted[order] // step
    for group in np.split(order, np.flatnonzero(np.diff(parts)) + 1):
        if len(group):
            yield int(wanted[group[0]]) // step * step, group


def as_text(values: Array, where: str) -> Array:
    """Text as str; bytes are UTF-8."""
    out = np.empty(len(values), object)
    try:
        out[:] = [_plain(value) for value in values.tolist()]
    except UnicodeDecodeError as error:
        raise StoreError(f"{where} is not valid text ({error}); it is damaged, or has another encoding") from None
    return out


def _plain(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value
