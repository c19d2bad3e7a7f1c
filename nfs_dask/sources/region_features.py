"""Documents as the few numbers that a hybrid naive Bayes is fitted to: views of a source over a table of words.

Features are made as blocks are read. A table in one piece is read once for all of them; one in panels goes by for as
many documents at a time as there is room for. The features have the same bits either way.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from nfs_dask.arrays.block import Array, Block, check_structure, full_rows, row_range
from nfs_dask.sources.source import Sizes, Source
from nfs_dask.sources.views import View
from nfs_dask.sources.word_table_files import COUNTS, TableFiles
from nfs_dask.statistics.leave_one_out import LaidOut, RegionSums, RegionTable, laid_out
from nfs_dask.statistics.panels import Panels
from nfs_dask.statistics.word_pairs import WordPairs, fit_together, side_by_side
from nfs_dask.units import MiB

PIECE_ROWS = 1 << 16  # documents whose features are made together
PANEL_NBYTES = 16 * MiB  # of a table: a part of it that fits the caches of processors, and that is worth a look
BATCH_NBYTES = 128 * MiB  # of documents that a table in panels goes by for
KERNELS_NBYTES = 16 * MiB  # measured: what the compiled code of features and of their sums takes
_LEAST_ROW_NBYTES = 9  # of a block: a pointer and a code


def n_columns(table: RegionTable) -> int:
    """Columns of features: one for each region, for more than two classes one for each of these and region."""
    return table.n_regions * (1 if table.n_classes == 2 else table.n_classes)


def table_nbytes(table: RegionTable, n_words: int) -> int:
    """Bytes of the counts of some words."""
    return table.n_classes * table.n_tables * n_words * 8


def cut(n_words: int, word_nbytes: int, panel_nbytes: int) -> tuple[int, ...]:
    """First word of each of the panels of a table, of about so many bytes at most, and the end."""
    n = min(n_words, max(1, -(-n_words * word_nbytes // panel_nbytes)))
    return tuple(n_words * i // n for i in range(n + 1))


class TablePanels(Panels):
    """A table that is in memory, in panels: what fits a processor's cache is looked up in half the time."""

    def __init__(self, counts: Array, bounds: tuple[int, ...] | None = None) -> None:
        self._counts = counts
        self.totals = {}
        self.bounds = bounds or cut(counts.shape[-1], counts[..., :1].nbytes, PANEL_NBYTES)

    @property
    def nbytes(self) -> int:
        """Bytes of the table."""
        return self._counts.nbytes

    def arrays(self, panel: int) -> dict[str, Array]:
        first, last = self.bounds[panel : panel + 2]
        return {COUNTS: self._counts[..., first:last]}

    def laid_out(self, panel: int) -> LaidOut:
        """One panel as `RegionSums.add` takes it."""
        return laid_out(self.arrays(panel)[COUNTS])


Table = TablePanels | TableFiles


@dataclass(frozen=True)
class Featuring:
    """How documents become features."""

    table: RegionTable
    counts: Table  # of the words of the table
    normalize: bool
    leave_out: bool
    trusted: bool
    batch_nbytes: int = BATCH_NBYTES

    def of(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """The features of blocks, in pieces of at most `PIECE_ROWS` documents."""
        whole = self._whole()
        for batch in self._batches(_pieces(blocks), 0 if whole else self.batch_nbytes):
            _add(batch, whole or self._panels())
            for piece, sums in batch:
                yield self._features(piece, sums)

    def of_one(self, block: Block) -> Block:
        """The features of a block, in one piece."""
        pieces = list(self.of(iter([block])))
        values = np.concatenate([piece.data for piece in pieces]).reshape(block.n_rows, -1)
        return _with_values(block, values)

    def _whole(self) -> list[tuple[int, LaidOut]] | None:
        """The table in one piece, if it takes no more room than a panel: then no documents are held for it."""
        least = self.table.n_tables * self.table.n_kept * WordPairs.least_nbytes
        if len(self.counts) > 1 and (self.table.n_classes != 2 or least > self._most_nbytes):
            return None
        panels = self._panels()
        first = next(panels)
        return [first] if next(panels, None) is None else None

    def _panels(self) -> Iterator[tuple[int, LaidOut]]:
        """First words and counts, of as many panels together as take the room of one."""
        first, parts = 0, list[WordPairs]()
        for panel in range(len(self.counts)):
            part = self.counts.laid_out(panel)
            if parts and not (isinstance(part, WordPairs) and fit_together([*parts, part], self._most_nbytes)):
                together, parts = side_by_side(parts), []
                yield first, together
            if not parts:
                first = self.counts.bounds[panel]
            if isinstance(part, WordPairs):
                parts.append(part)
            else:
                yield first, part
        if parts:
            yield first, side_by_side(parts)

    @property
    def _most_nbytes(self) -> int:
        """Bytes of the widest panel."""
        return table_nbytes(self.table, int(np.diff(self.counts.bounds).max()))

    def _batches(self, pieces: Iterator[Block], nbytes: int) -> Iterator[list[tuple[Block, RegionSums]]]:
        """Pieces of about so many bytes together, one at least, with what becomes of them."""
        batch: list[tuple[Block, RegionSums]] = []
        taken = 0
        for piece in pieces:
            sums = RegionSums(piece, self.table, leave_out=self.leave_out, trusted=self.trusted)
            batch.append((piece, sums))
            taken += piece.nbytes + sums.logs.nbytes + sums.lengths.nbytes + sums.shared.nbytes
            if taken >= nbytes:
                yield batch
                batch, taken = [], 0
        if batch:
            yield batch

    def _features(self, piece: Block, sums: RegionSums) -> Block:
        features = sums.features(normalize=self.normalize)
        return _with_values(piece, features.reshape(piece.n_rows, -1))


class FeatureView(View):
    """The features of the documents of a source, as full rows of `n_columns(table)` columns.

    Of two classes, column r is b_r of the second less that of the first; of more, column r * C + c is b_rc.

    Parameters
    ----------
    source
        Documents over ``n_regions * n_words`` columns.
    table
        What is known of the table of words besides their counts.
    counts
        As `RegionSums.add` takes them; or panels of them, so that nobody needs to hold them all. They travel with the
        view, or where they are stored, their place does.
    normalize
        Whether to divide by the number of tokens of a region.
    leave_out
        Whether the table was counted from these documents, so that each has to leave it first.
    batch_nbytes
        About how many bytes of documents to hold while panels go by.
    """

    def __init__(
        self,
        source: Source,
        table: RegionTable,
        counts: Array | Table,
        *,
        normalize: bool,
        leave_out: bool,
        batch_nbytes: int = BATCH_NBYTES,
    ) -> None:
        panels = TablePanels(counts) if isinstance(counts, np.ndarray) else counts
        self._featuring = Featuring(table, panels, normalize, leave_out, source.trusted, batch_nbytes)
        width, rows = n_columns(table), _most_rows(source)
        changed = {
            "n_features": width,
            "nnz": None if source.n_rows < 0 else source.n_rows * width,
            "kind": "signed",
            "trusted": True,
            "import_nbytes": source.import_nbytes + self._working_nbytes(source, rows),
        }
        if not leave_out:
            changed["fingerprint"] = None  # the table may be of any other data
        super().__init__(source, "features", _identity(table, normalize), self._featuring.of_one, **changed)
        row = width * (8 + 4) + 8 + 8 + (8 if source.weighted else 0)
        self._sizes = Sizes(rows * row + 8, rows * width, source.read_nbytes)

    @property
    def sizes(self) -> Sizes:
        return self._sizes

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        return self._featuring.of(self.underlying.blocks(start, stop))

    def names(self, columns: Array) -> list[str] | None:
        return None

    def _working_nbytes(self, source: Source, rows: int) -> int:
        """Memory to make features: blocks as they are read, what becomes of their pieces, and the table."""
        table, counts = self._featuring.table, self._featuring.counts
        held = counts.nbytes if isinstance(counts, TablePanels) else 0
        # A panel, how it was stored, and what is needed to lay it out; or panels as pairs, and these side by side.
        panels = 3 * table_nbytes(table, int(np.diff(counts.bounds).max()))
        piece = min(rows, PIECE_ROWS) * table.n_regions * (table.n_classes + 1) * 8 * 3
        batch = self._featuring.batch_nbytes if len(counts) > 1 else 0
        reading = 0 if source.in_memory else 2 * source.block_nbytes
        return KERNELS_NBYTES + held + panels + piece + batch + reading


def _add(batch: list[tuple[Block, RegionSums]], panels: Iterable[tuple[int, LaidOut]]) -> None:
    """Let panels go by for the documents of a batch."""
    for first, counts in panels:
        for _, sums in batch:
            sums.add(counts, first)


def _identity(table: RegionTable, normalize: bool) -> Array:
    """What features of the same documents differ by, as numbers; their counts follow from the documents."""
    facts = [table.n_regions, table.n_words, table.n_tables, table.smoothing, normalize, table.totals.tolist()]
    digest = hashlib.blake2b(json.dumps(facts).encode(), digest_size=16)
    digest.update(b"all" if table.support is None else np.ascontiguousarray(table.support, "<i8").tobytes())
    return np.frombuffer(digest.digest(), "<i8")


def _most_rows(source: Source) -> int:
    """Most documents in a block that is handed out: of tasks whole blocks, else pieces of them."""
    bound = source.block_nbytes // _LEAST_ROW_NBYTES
    if source.delayed is None:
        return max(1, min(bound, PIECE_ROWS))
    return max(1, bound if source.n_rows < 0 else min(bound, source.n_rows))


def _pieces(blocks: Iterator[Block]) -> Iterator[Block]:
    """The blocks in pieces of at most `PIECE_ROWS` rows."""
    for block in blocks:
        if block.n_rows <= PIECE_ROWS:
            yield block
        else:
            check_structure(block)
            for first in range(0, block.n_rows, PIECE_ROWS):
                yield row_range(block, first, min(first + PIECE_ROWS, block.n_rows))


def _with_values(block: Block, values: Array) -> Block:
    """A block of the same documents with other columns."""
    indptr, indices, data, full = full_rows(np.ascontiguousarray(values))
    return replace(block, indptr=indptr, indices=indices, data=data, n_features=values.shape[1], full=full)
