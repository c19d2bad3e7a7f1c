"""Rows of a source that columns of its table of rows choose."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nfs_dask.arrays.block import Array, Block, some_rows
from nfs_dask.errors import InputError
from nfs_dask.sources.conditions import Condition, conditions
from nfs_dask.sources.source import Source
from nfs_dask.sources.views import View
from nfs_dask.store.row_columns import Annotations, RowColumn

if TYPE_CHECKING:
    from nfs_dask.store.term_table import TermTable
    from nfs_dask.text.strings import Strings

_PIECE = 1 << 18  # rows looked at together


def rows_where(source: Source, where: Any) -> Source:
    """The rows that meet all conditions of a mapping of columns to values; the source itself where there are none."""
    if not (wanted := conditions(where)):
        return source
    table = source.annotations
    if table is None or source.n_rows < 0:
        raise InputError(
            f"where={where!r} names columns of a table of rows, and these data have none; give a store, an AnnData, or "
            "documents with columns"
        )
    return ChosenRows(source, table, _rows_of(table, source.n_rows, wanted))


def _rows_of(table: Annotations, n_rows: int, wanted: tuple[Condition, ...]) -> Array:
    """Numbers of the rows, ascending."""
    chosen = np.ones(n_rows, bool)
    for one in wanted:
        there: set[str] = set()
        for start in range(0, n_rows, _PIECE):
            values = table.read(one.column, start, min(start + _PIECE, n_rows)).tolist()
            chosen[start : start + _PIECE] &= one.holds(values)
            there.update(one.found(values))
        one.check(one.bounded(there), "the data")
    if not chosen.any():
        raise InputError(f"no row meets all of {', '.join(map(str, wanted))}; leave one of them out")
    return np.flatnonzero(chosen)


@dataclass(frozen=True)
class RowChoice:
    """Which rows of a block stay."""

    rows: Array  # ascending numbers among all rows

    def of(self, block: Block) -> Block:
        """The block with those rows alone, numbered among those that stay."""
        first, last = np.searchsorted(self.rows, [block.first_row, block.first_row + block.n_rows])
        mask = np.zeros(block.n_rows, bool)
        mask[self.rows[first:last] - block.first_row] = True
        return replace(some_rows(block, mask), first_row=int(first))


class ChosenRows(View):
    """Some rows of a source, with their own table of rows."""

    def __init__(self, source: Source, table: Annotations, rows: Array) -> None:
        super().__init__(source, "rows", rows, RowChoice(rows).of, n_rows=len(rows))
        self.rows = rows
        self._table = ChosenTable(table, rows)
        self.location, self.text, self.names_sorted = source.location, source.text, source.names_sorted

    @property
    def annotations(self) -> ChosenTable:
        return self._table

    def strings(self, start: int, stop: int) -> Strings | None:
        return self.underlying.strings(start, stop)

    def frequencies(self, start: int, stop: int) -> Array | None:
        return self.underlying.frequencies(start, stop)

    def table(self) -> TermTable | None:
        return self.underlying.table()


@dataclass(frozen=True)
class ChosenTable:
    """Some rows of a table of rows."""

    whole: Annotations
    rows: Array

    @property
    def labels(self) -> str | None:
        return self.whole.labels

    @property
    def named(self) -> bool:
        return self.whole.named

    def columns(self) -> list[RowColumn]:
        return self.whole.columns()

    def read(self, name: str, start: int, stop: int) -> Array:
        wanted = self.rows[start:stop]
        parts = [self.whole.read(name, first, last)[inside] for first, last, inside in _runs(wanted)]
        return np.concatenate(parts) if parts else self.whole.read(name, 0, 0)


def _runs(rows: Array) -> Iterator[tuple[int, int, Array]]:
    """Ranges to read, of bounded length, and which of their rows are wanted."""
    for piece in np.unique(rows // _PIECE).tolist():
        here = rows[rows // _PIECE == piece]
        yield int(here[0]), int(here[-1]) + 1, here - here[0]
