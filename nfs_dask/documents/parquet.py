"""Documents that are the rows of Parquet files, some thousand at a time, over Arrow's own buffers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.documents.arrow import check_schema, labels_of, texts_of, weights_of
from nfs_dask.documents.checking import Checker, TextColumn
from nfs_dask.documents.document_source import BATCH_NBYTES, PIECE_NBYTES, Batch, TextColumns
from nfs_dask.documents.lines import ARROW_NBYTES, EXPANSION, FileDocuments, split_compression
from nfs_dask.errors import InputError
from nfs_dask.files.data_files import open_binary
from nfs_dask.text.strings import Strings
from nfs_dask.units import MiB

MOST_ROWS = 4096  # read together: texts that repeat are small in the file, and nothing tells how long they are
JOINED_NBYTES = 2 * MiB  # what was read is put together up to here: a batch costs a millisecond, however small it is
STREAM_NBYTES = MiB  # of a compressed column held while it is read

_opening = Lock()
_defaults: list[Any] = []  # what Arrow took memory from before files were opened, once for each that is being opened


@dataclass(frozen=True, slots=True)
class RowGroups:
    """Some row groups of a file, one after another."""

    path: str
    start: int = 0
    stop: int | None = None  # None: all of them


class ParquetDocuments(FileDocuments):
    """Each row is a document; rows are numbered from 0, as in a DataFrame.

    Columns of text may be strings or bytes, which are read as ``encoding`` says. Labels are the values of their column.
    """

    format = "parquet"
    import_nbytes = ARROW_NBYTES

    def __init__(self, paths: tuple[str, ...], columns: TextColumns) -> None:
        if named := [path for path in paths if split_compression(path)[1]]:
            raise InputError(f"{named[0]} is compressed as a whole; Parquet files are so inside, unpack it")
        super().__init__(paths, columns)
        with _opened(paths[0]) as file:
            self.there = check_schema(paths[0], file.schema_arrow, columns)

    @staticmethod
    def names_in(path: str, _columns: TextColumns) -> list[str]:
        """The columns of a file."""
        with _opened(path) as file:
            there: list[str] = file.schema_arrow.names
            return there

    def _parts(self, paths: tuple[str, ...], sizes: list[int]) -> Iterator[tuple[RowGroups, int]]:
        """Of small files the size alone is asked, so that thousands of them are quick to open."""
        for path, size in zip(paths, sizes, strict=True):
            if size * EXPANSION <= PIECE_NBYTES and not self.columns.numbers:
                yield RowGroups(path), size * EXPANSION
                continue
            with _opened(path) as file:
                metadata = file.metadata
            start, filled = 0, 0
            for group in range(metadata.num_row_groups):
                nbytes = _text_nbytes(metadata, group, self.columns)
                if filled and filled + nbytes > PIECE_NBYTES:
                    yield RowGroups(path, start, group), filled
                    start, filled = group, 0
                filled += nbytes
            yield RowGroups(path, start, metadata.num_row_groups), filled

    def _whole(self, path: str) -> RowGroups:
        return RowGroups(path)

    def _read(self, part: RowGroups) -> Iterator[Batch]:
        columns = self.columns
        wanted = dict.fromkeys([*columns.text, *filter(None, (columns.label, columns.weight)), *columns.others])
        with _opened(part.path) as file:
            check_schema(part.path, file.schema_arrow, columns)
            groups = range(file.metadata.num_row_groups)[part.start : part.stop]
            if not groups:
                return  # older releases of Arrow take no groups for damage
            row = sum(file.metadata.row_group(group).num_rows for group in range(part.start))
            rows = _rows_at_a_time(file.metadata, groups, columns)
            for found in _joined(file.iter_batches(rows, list(groups), list(wanted), use_threads=False)):
                yield from self._batches(found, part.path, row)
                row += found.num_rows

    def _batches(self, found: Any, path: str, row: int) -> Iterator[Batch]:
        """The rows of a RecordBatch, in several batches if they turn out to be large."""
        columns, checker = self.columns, Checker(self.columns)
        texts = [texts_of(found.column(name), columns.encoding) for name in columns.text]
        labels = None if columns.label is None else labels_of(found.column(columns.label), path)
        weights = None if columns.weight is None else weights_of(found.column(columns.weight))
        others = {name: found.column(name).to_pylist() for name in columns.others if name not in columns.numbers}
        others |= {name: found.column(name).to_numpy(zero_copy_only=False) for name in columns.numbers}
        edges = _edges([column.values for column in texts]) if texts else [0, found.num_rows]
        for start, stop in pairwise(edges):
            where = partial(_row, path, row + start)
            some = [TextColumn(values.part(start, stop), _part(present, start, stop)) for values, present in texts]
            side = {name: values[start:stop] for name, values in others.items()}
            yield checker.batch(some, _some(labels, start, stop), _some(weights, start, stop), where, others=side)


def _joined(read: Iterator[Any]) -> Iterator[Any]:
    """The same rows, in RecordBatches of about so many bytes where those that were read are small."""
    held: list[Any] = []
    nbytes = 0
    for found in read:
        held.append(found)
        nbytes += found.get_total_buffer_size()
        if nbytes >= JOINED_NBYTES:
            yield from _concatenated(held, nbytes)
            held, nbytes = [], 0
    yield from _concatenated(held, nbytes)


def _concatenated(batches: list[Any], nbytes: int) -> list[Any]:
    """One of several; a large one that came last stays as it is, rather than be held twice."""
    if len(batches) < 2 or nbytes > 2 * JOINED_NBYTES:
        return batches
    import pyarrow as pa

    joined: list[Any] = pa.Table.from_batches(batches).combine_chunks(pa.system_memory_pool()).to_batches()
    return joined


def _row(path: str, first: int, i: int) -> str:
    return f"{path}, row {first + i}"


def _edges(texts: list[Strings]) -> list[int]:
    """Rows at which to cut, so that about BATCH_NBYTES are between them; from 0 to the number of rows."""
    if sum(int(strings.offsets[-1] - strings.offsets[0]) for strings in texts) <= BATCH_NBYTES:
        return [0, len(texts[0])] if len(texts[0]) else [0]
    before = np.sum([strings.offsets - strings.offsets[0] for strings in texts], axis=0)
    inner = np.searchsorted(before, np.arange(BATCH_NBYTES, before[-1], BATCH_NBYTES))
    return np.unique([0, *inner, len(before) - 1]).tolist()


def _some(column: TextColumn | None, start: int, stop: int) -> TextColumn | None:
    return None if column is None else TextColumn(column.values[start:stop], _part(column.present, start, stop))


def _part(present: Array | None, start: int, stop: int) -> Array | None:
    return None if present is None else present[start:stop]


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    """A Parquet file; whatever is wrong with its bytes is an InputError that names it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with open_binary(path) as raw:
        try:
            # Without buffer_size and pre_buffer=False the chunks of all row groups asked for would be read ahead.
            with _memory_of_the_system():
                file = pq.ParquetFile(raw, buffer_size=STREAM_NBYTES, pre_buffer=False)
            with file:
                yield file
        except (pa.ArrowException, OSError) as error:
            raise InputError(
                f"{path} cannot be read as Parquet ({error}); it is another kind of file, or damaged"
            ) from error


@contextmanager
def _memory_of_the_system() -> Iterator[None]:
    """For opening files: what is read of them will lie where arrays of numpy do, and their memory be used again.

    A reader keeps to what is the default while it is made; threads that open files at once share the change of it.
    Arrow's own allocator takes 39 MiB to read pieces of 4 MiB, and would keep 55; C's takes 17.
    """
    import pyarrow as pa

    with _opening:
        _defaults.append(_defaults[0] if _defaults else pa.default_memory_pool())
        pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        with _opening:
            default = _defaults.pop()
            if not _defaults:
                pa.set_memory_pool(default)


def _text_nbytes(metadata: Any, group: int, columns: TextColumns) -> int:
    """Bytes of the columns of text, before they are compressed, or of columns of numbers."""
    chunks = metadata.row_group(group)
    if columns.numbers:
        return int(8 * chunks.num_rows * len(columns.numbers))
    found = map(chunks.column, range(chunks.num_columns))
    return sum(chunk.total_uncompressed_size for chunk in found if chunk.path_in_schema in columns.text)


def _rows_at_a_time(metadata: Any, groups: range, columns: TextColumns) -> int:
    rows = sum(metadata.row_group(group).num_rows for group in groups)
    nbytes = sum(_text_nbytes(metadata, group, columns) for group in groups)
    return max(1, min(MOST_ROWS, BATCH_NBYTES * rows // max(nbytes, 1)))
