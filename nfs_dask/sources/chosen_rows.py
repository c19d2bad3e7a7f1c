"""Rows of a source that columns of its table of rows choose.

Nobody holds the numbers of all chosen rows, of which there may be billions. How many there are in each piece of the
table is counted once; which they are is found again where a piece is needed, by whoever reads its blocks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nfs_dask.arrays.block import Array, Block, some_rows
from nfs_dask.errors import InputError
from nfs_dask.progress import Progress
from nfs_dask.sources.conditions import Condition, conditions
from nfs_dask.sources.source import Source
from nfs_dask.sources.views import View
from nfs_dask.store.row_columns import Annotations, RowColumn

if TYPE_CHECKING:
    from nfs_dask.store.term_table import TermTable
    from nfs_dask.text.strings import Strings

_PIECE = 1 << 18  # rows looked at together
_HELD = 64 * _PIECE  # bytes that the values of a piece may take


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
    return ChosenRows(source, RowChoice(table, source.n_rows, wanted))


class RowChoice:
    """Which rows of a table meet conditions. It travels with tasks.

    Parameters
    ----------
    table, n_rows
        Of which rows are chosen. All of it is read once, in pieces.
    wanted
        Conditions, all of which a row has to meet. Refused if none does, or if a value is nowhere.
    """

    def __init__(self, table: Annotations, n_rows: int, wanted: tuple[Condition, ...]) -> None:
        self.table, self.wanted, self._n_rows = table, wanted, n_rows
        self._last: tuple[int, Array] | None = None  # number of a piece, and its rows
        counts, self.digest = self._looked_at()
        self._before = np.concatenate(([0], np.cumsum(counts)))
        if not self.n_rows:
            raise InputError(f"no row meets all of {', '.join(map(str, wanted))}; leave one of them out")

    @property
    def n_rows(self) -> int:
        """How many rows are chosen."""
        return int(self._before[-1])

    def of(self, block: Block) -> Block:
        """The block with its chosen rows alone, numbered among all that are chosen."""
        start, stop = block.first_row, block.first_row + block.n_rows
        rows = [self._rows_in(piece) for piece in range(start // _PIECE, -(-stop // _PIECE))]
        mask = np.zeros(block.n_rows, bool)
        for there in rows:
            mask[there[(there >= start) & (there < stop)] - start] = True
        first = int(self._before[start // _PIECE]) + (int(np.searchsorted(rows[0], start)) if rows else 0)
        return replace(some_rows(block, mask), first_row=first)

    def rows(self, start: int, stop: int) -> Array:
        """Numbers, in the table, of the chosen rows ``start .. stop - 1``."""
        parts = list(self.pieces(start, stop))
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def pieces(self, start: int, stop: int) -> Iterator[Array]:
        """The same, a piece of the table at a time."""
        piece = int(np.searchsorted(self._before, start, "right")) - 1
        while start < stop:
            first = int(self._before[piece])
            rows = self._rows_in(piece)[start - first : stop - first]
            if len(rows):
                yield rows
            start, piece = start + len(rows), piece + 1

    def _rows_in(self, piece: int) -> Array:
        """The chosen rows of a piece, ascending. Neighbouring blocks need the same one."""
        last = self._last
        if last is None or last[0] != piece:
            self._last = last = piece, self._chosen(piece * _PIECE)[0]
        return last[1]

    def _chosen(self, start: int) -> tuple[Array, list[Array]]:
        """The chosen rows of the piece that begins there, and the values that each condition looked at."""
        stop = min(start + _PIECE, self._n_rows)
        values = [self.table.read(one.column, start, stop) for one in self.wanted]
        held = [one.holds(seen) for one, seen in zip(self.wanted, values, strict=True)]
        return start + np.flatnonzero(np.logical_and.reduce(held)), values

    def _looked_at(self) -> tuple[list[int], bytes]:
        """How many rows of each piece are chosen, and a digest of their numbers."""
        there: list[set[str]] = [set() for _ in self.wanted]
        counts, digest = [], hashlib.blake2b(digest_size=16)
        with Progress(self._n_rows, "looking for rows", "rows") as progress:
            for start in range(0, self._n_rows, _PIECE):
                rows, values = self._chosen(start)
                for one, found, seen in zip(self.wanted, there, values, strict=True):
                    found.update(one.found(seen))
                counts.append(len(rows))
                digest.update(rows.astype("<i8").tobytes())
                progress.advance(min(_PIECE, self._n_rows - start))
        for one, found in zip(self.wanted, there, strict=True):
            one.check(one.bounded(found), "the data")
        return counts, digest.digest()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_last": None}


class ChosenRows(View):
    """Some rows of a source, with their own table of rows."""

    def __init__(self, source: Source, choice: RowChoice) -> None:
        told = np.frombuffer(choice.digest, "<i8")
        held = source.import_nbytes + _HELD
        super().__init__(source, "rows", told, choice.of, n_rows=choice.n_rows, import_nbytes=held)
        self.choice = choice
        self.location, self.text, self.names_sorted = source.location, source.text, source.names_sorted

    @property
    def annotations(self) -> ChosenTable:
        return ChosenTable(self.choice)

    def strings(self, start: int, stop: int) -> Strings | None:
        return self.underlying.strings(start, stop)

    def frequencies(self, start: int, stop: int) -> Array | None:
        return self.underlying.frequencies(start, stop)

    def table(self) -> TermTable | None:
        return self.underlying.table()


@dataclass(frozen=True)
class ChosenTable:
    """Some rows of a table of rows."""

    choice: RowChoice

    @property
    def _whole(self) -> Annotations:
        return self.choice.table

    @property
    def labels(self) -> str | None:
        return self._whole.labels

    @property
    def named(self) -> bool:
        return self._whole.named

    def columns(self) -> list[RowColumn]:
        return self._whole.columns()

    def read(self, name: str, start: int, stop: int) -> Array:
        parts = [
            self._whole.read(name, int(rows[0]), int(rows[-1]) + 1)[rows - rows[0]]
            for rows in self.choice.pieces(start, stop)
        ]
        return np.concatenate(parts) if parts else self._whole.read(name, 0, 0)
