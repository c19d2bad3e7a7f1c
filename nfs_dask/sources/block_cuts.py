"""Where to cut rows into blocks of bounded memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError
from nfs_dask.sources.source import BLOCK_NBYTES, Sizes

ROW_NBYTES = 8 + 4 + 8  # a row pointer, a class code and a weight
_PIECE = 1 << 20  # row pointers looked at together


@dataclass(frozen=True)
class Cuts:
    """Block b holds rows ``rows[b] .. rows[b + 1] - 1`` and, at most, entries ``entries[b] .. entries[b + 1] - 1``."""

    rows: Array  # (n_blocks + 1,) int64
    entries: Array  # (n_blocks + 1,) int64

    @property
    def n_blocks(self) -> int:
        return len(self.rows) - 1

    @property
    def n_rows(self) -> int:
        return int(self.rows[-1])

    @property
    def block_entries(self) -> int:
        return int(np.diff(self.entries).max(initial=0))

    def block_nbytes(self, entry_nbytes: int) -> int:
        """Bytes of the largest block whose entries take that much each."""
        sizes = np.diff(self.entries) * entry_nbytes + np.diff(self.rows) * ROW_NBYTES
        return int(sizes.max(initial=0)) + 8

    def sizes(self, entry_nbytes: int, read_nbytes: int) -> Sizes:
        """Of these blocks, whose entries take that much each and which are read from so many bytes."""
        return Sizes(self.block_nbytes(entry_nbytes), self.block_entries, read_nbytes)


def in_pieces(indptr: Array) -> Iterable[Array]:
    """Row ends of a CSR matrix in memory, a bounded number at a time."""
    return (indptr[at : at + _PIECE] for at in range(1, len(indptr), _PIECE))


def cut_by_entries(ends: Iterable[Array], entry_nbytes: int, what: str = "X") -> Cuts:
    """Cut by what the rows really hold, as long rows and short ones may lie together.

    ``ends`` are consecutive pieces of the row pointers without the leading 0. A row that is larger than a block makes
    a block of its own.
    """
    rows, entries = [0], [0]
    seen, last = 0, 0  # rows seen so far, and where the last of them ends
    for piece in ends:
        end = piece.astype(np.int64)
        if len(end) and (end[0] < last or np.any(end[1:] < end[:-1])):
            raise InputError(f"{what}: the row pointers go backwards; the data are damaged")
        cost = end * entry_nbytes + np.arange(seen + 1, seen + 1 + len(end)) * ROW_NBYTES
        while (row := int(np.searchsorted(cost, _budget(rows, entries, entry_nbytes), side="right"))) < len(end):
            if seen + row == rows[-1]:
                row += 1
            rows.append(seen + row)
            entries.append(int(end[row - 1]) if row else last)
        seen += len(end)
        last = int(end[-1]) if len(end) else last
    if rows[-1] < seen:
        rows.append(seen)
        entries.append(last)
    return Cuts(np.array(rows, np.int64), np.array(entries, np.int64))


def _budget(rows: list[int], entries: list[int], entry_nbytes: int) -> int:
    """The cost at which the block that begins at the last cut is full."""
    return entries[-1] * entry_nbytes + rows[-1] * ROW_NBYTES + BLOCK_NBYTES


def cut_evenly(n_rows: int, row_entries: int, entry_nbytes: int, chunk_rows: int = 1) -> Cuts:
    """Cut rows that may hold ``row_entries`` entries each, all of them; between chunks where they are small enough."""
    step = max(1, BLOCK_NBYTES // (row_entries * entry_nbytes + ROW_NBYTES))
    if step > chunk_rows:
        step -= step % chunk_rows  # a chunk that two blocks share would be unpacked for both
    rows = np.append(np.arange(0, n_rows, step, dtype=np.int64), np.int64(n_rows))
    return Cuts(rows, rows * row_entries)
