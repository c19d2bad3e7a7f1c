"""The table of rows of AnnData, wherever it lies, as a store keeps it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import DataWarning, InputError, NfsDaskError, StoreError, warn
from nfs_dask.sources.anndata_files import AnnDataFile, Categorical, HeldColumn, Nullable, TableColumn, unreadable
from nfs_dask.store.layout import INDEX
from nfs_dask.store.row_columns import MOST_CATEGORIES, TEXT, RowColumn, is_keepable
from nfs_dask.store.shard_tasks import exactly

_PIECE = 1 << 18  # values looked at together


class RowTable(ABC):
    """Columns of a table of rows; those that a store cannot keep are left out, and it is said which and why.

    Subclasses say where the columns are.
    """

    n_rows: int
    labels: str | None  # the column that the labels of the source are
    named = True

    def opened(self) -> AbstractContextManager[Any]:
        """What columns are found in."""
        return nullcontext()

    @abstractmethod
    def names(self, place: Any) -> Iterable[Any]:
        """What the columns are called, in order."""

    @abstractmethod
    def column(self, place: Any, name: str) -> TableColumn:
        """The column, or the index where the name is INDEX."""

    def columns(self) -> list[RowColumn]:
        found, without = [], []
        with self.opened() as place:
            for name in self.names(place):
                try:
                    if not isinstance(name, str) or not is_keepable(name):
                        raise InputError("its name cannot be that of a folder")
                    found.append(_described(name, self.column(place, name)))
                except NfsDaskError as error:
                    if isinstance(error, StoreError):
                        raise
                    without.append(f"{name!r} ({error})")
        if without:
            warn(f"columns of obs that are not kept: {'; '.join(without)}", DataWarning)
        return found

    def read(self, name: str, start: int, stop: int) -> Array:
        with self.opened() as place:
            column = self.column(place, name)
            values = column.read(start, stop)
            if name == INDEX:
                return _as_names(values, column.where, start)
            return _numbers(values, column.where) if _is_number(column) else values


@dataclass(frozen=True)
class StoredRows(RowTable):
    """Of a file of AnnData, which is opened for each piece."""

    open: Callable[[], AbstractContextManager[AnnDataFile]]
    n_rows: int
    labels: str | None

    def opened(self) -> AbstractContextManager[AnnDataFile]:
        return self.open()

    def names(self, place: AnnDataFile) -> Iterable[Any]:
        return place.columns()

    def column(self, place: AnnDataFile, name: str) -> TableColumn:
        column = place.index("obs", self.n_rows) if name == INDEX else place.column(name, self.n_rows)
        assert column is not None
        return column


class FrameRowTable(RowTable):
    """Of AnnData in memory: a DataFrame."""

    def __init__(self, frame: Any, labels: str | None) -> None:
        self.n_rows, self.labels = len(frame), labels
        self._frame = frame

    def names(self, place: Any) -> Iterable[Any]:
        return list(self._frame.columns)

    def column(self, place: Any, name: str) -> TableColumn:
        if name != INDEX and name not in self._frame:
            raise InputError(f"the AnnData has no column {name!r} in obs; it has {', '.join(map(str, self._frame))}")
        where = f"obs[{name!r}]" if name != INDEX else "obs_names"
        return _held(self._frame.index.to_series() if name == INDEX else self._frame[name], where)


def _held(values: Any, where: str) -> TableColumn:
    """A column of pandas."""
    kind = values.dtype.kind if isinstance(values.dtype, np.dtype) else ""
    if kind and kind in "biuf":
        return HeldColumn(values.to_numpy(), where)
    if hasattr(values, "cat"):
        categories = HeldColumn(np.asarray(values.cat.categories), where)
        return Categorical(HeldColumn(values.cat.codes.to_numpy(), where), categories, where, bool(values.cat.ordered))
    missing = values.isna().to_numpy()
    numbers = getattr(values.dtype, "numpy_dtype", None)
    if numbers is not None and numbers.kind in "biuf":
        return Nullable(HeldColumn(values.fillna(0).to_numpy(numbers), where), HeldColumn(missing, where), where)
    texts = values.to_numpy(object, na_value=None)
    if not all(isinstance(value, str) for value in texts[~missing]):
        raise unreadable(where, str(values.dtype))
    return HeldColumn(texts, where)


def _described(name: str, column: TableColumn) -> RowColumn:
    """What kind of column a store makes of it."""
    if isinstance(column, Categorical) and column.categories.length <= MOST_CATEGORIES:
        categories = column.categories.read(0, column.categories.length)
        return RowColumn.of_categories(name, categories.tolist(), column.ordered)
    if _is_number(column):
        missing = isinstance(column, Nullable) and any(column.mask.read(*piece).any() for piece in _pieces(column))
        return RowColumn(name, "float64" if missing else column.read(0, 0).dtype.name)
    distinct = _distinct(column)
    return RowColumn(name, TEXT) if distinct is None else RowColumn.of_categories(name, distinct)


def _distinct(column: TableColumn) -> list[str] | None:
    """The texts of a column in order; None where there are too many for categories."""
    found: set[Any] = set()
    for piece in _pieces(column):
        found.update(column.read(*piece).tolist())
    texts = found - {None}
    if not all(isinstance(value, str) for value in texts):
        raise unreadable(column.where, "objects")
    if len(texts) <= MOST_CATEGORIES:
        return sorted(texts)
    if None in found:
        raise InputError(f"some of its more than {MOST_CATEGORIES:,} texts are missing; fill them in")
    return None


def _is_number(column: TableColumn) -> bool:
    return not isinstance(column, Categorical) and column.read(0, 0).dtype.kind in "biuf"


def _pieces(column: TableColumn) -> Iterator[tuple[int, int]]:
    for start in range(0, column.length, _PIECE):
        yield start, min(start + _PIECE, column.length)


def _numbers(values: Array, where: str) -> Array:
    """Numbers, with NaN where they are missing."""
    if values.dtype != object:
        return values
    present = np.array([value is not None for value in values], bool)
    numbers = np.full(len(values), np.nan)
    numbers[present] = exactly(np.array(values[present].tolist()), "float64", where)
    return numbers


def _as_names(values: Array, where: str, start: int) -> Array:
    if (missing := [i for i, value in enumerate(values.tolist()) if value is None]) != []:
        raise InputError(f"{where} has no name at {start + missing[0]}; give each row a name of its own")
    return np.array([str(value) for value in values.tolist()], object)
