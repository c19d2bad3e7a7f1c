"""The tasks that write shards. Each shard has one writer, and writing it again leaves the same bytes.

A task reads the source from the block in which its first shard begins, and goes on into the blocks of the next task
until its last shard is complete. When rows are appended, the first shard starts with what it held before.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError
from nfs_dask.files.folder import Folder
from nfs_dask.store.header import Header
from nfs_dask.store.layout import INDEX, Numbers, Texts
from nfs_dask.store.row_columns import Annotations, RowColumn
from nfs_dask.store.shards import ArrayWriter, Receipt, ShardReader
from nfs_dask.store.string_arrays import decimal, read_texts, write_ids, write_row_texts
from nfs_dask.store.survey import Survey, SurveyedRows, checked_blocks, read_scratch


@dataclass(frozen=True, slots=True)
class EntriesTask:
    """Shards ``first .. stop - 1`` of X/data and X/indices."""

    source: SurveyedRows
    location: str
    header: Header  # of the generation being written
    old: Header | None  # of the generation whose entries are there already
    first: int
    stop: int
    block: int  # of the source, in which the first new entry of these shards lies
    skip: int  # entries of that block that belong to the shard before


@dataclass(frozen=True, slots=True)
class RunRows:
    """Where the rows of one surveyed run stand in the store."""

    number: int
    first_row: int
    n_rows: int
    first_entry: int


@dataclass(frozen=True, slots=True)
class RowsTask:
    """Shard ``shard`` of the arrays that have a value for each row."""

    location: str
    scratch: str
    header: Header
    old: Header | None  # of the generation whose rows are there already
    shard: int
    runs: tuple[RunRows, ...]  # those with rows in this shard
    table: Annotations | None  # of the new rows
    given: frozenset[str]  # which of the store's columns it has


@dataclass(frozen=True, slots=True)
class WideningTask:
    """Shards ``first .. stop - 1`` of an array, all of them full, that are written anew in a wider type."""

    location: str
    old: Numbers
    new: Numbers
    first: int
    stop: int


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """Receipts by array, and where the blocks of these rows begin."""

    receipts: dict[str, Receipt]
    cut_rows: Array
    cut_entries: Array


def entries_tasks(
    source: SurveyedRows, runs: int, location: str, header: Header, old: Header | None, surveys: list[Survey]
) -> list[EntriesTask]:
    """At most ``runs`` tasks that write the entries which ``surveys`` found, behind the old ones."""
    shard, old_nnz = header.layout.shard, 0 if old is None else old.nnz
    first, stop = old_nnz // shard, header.data.n_shards
    ends = np.cumsum([n for found in surveys for n in found.entries])  # of each block of the source
    tasks = max(1, min(runs, stop - first))
    edges = [first + (stop - first) * i // tasks for i in range(tasks + 1)]
    cut = []
    for low, high in pairwise(edges):
        if high > low:
            begin = max(0, low * shard - old_nnz)
            block = int(np.searchsorted(ends, begin, side="right"))
            skip = begin - (int(ends[block - 1]) if block else 0)
            cut.append(EntriesTask(source, location, header, old, low, high, block, skip))
    return cut


def rows_tasks(
    location: str,
    scratch: str,
    header: Header,
    old: Header | None,
    surveys: list[Survey],
    table: Annotations | None,
) -> list[RowsTask]:
    """A task for each shard of rows that is new or was not full."""
    old_rows, old_nnz = (0, 0) if old is None else (old.n_rows, old.nnz)
    runs, row, entry = [], old_rows, old_nnz
    for found in surveys:
        runs.append(RunRows(found.number, row, found.n_rows, entry))
        row, entry = row + found.n_rows, entry + found.nnz
    size = header.layout.row_shard
    given = frozenset() if table is None else frozenset(column.name for column in table.columns())
    tasks = []
    for shard in range(old_rows // size, header.indptr.n_shards):
        low, high = shard * size, (shard + 1) * size
        here = tuple(run for run in runs if run.first_row < high and run.first_row + run.n_rows > low and run.n_rows)
        tasks.append(RowsTask(location, scratch, header, old, shard, here, table, given))
    return tasks


def write_entries(task: EntriesTask) -> tuple[list[Receipt], list[Receipt]]:
    """Write the entries of some shards; receipts of X/data and of X/indices."""
    folder, header = Folder(task.location), task.header
    before = min(task.first * header.layout.shard, header.nnz)
    left = min(task.stop * header.layout.shard, header.nnz) - before
    # Read before the writers open: they replace the objects only when all is written.
    kept = [_kept(task, numbers, before) for numbers in (header.data, header.indices)]
    with (
        ArrayWriter(folder, header.data, task.first) as data,
        ArrayWriter(folder, header.indices, task.first) as indices,
    ):
        data.add(kept[0])
        indices.add(kept[1])
        left -= len(kept[0])
        skip = task.skip
        blocks = checked_blocks(task.source, task.source.blocks(task.block, task.source.n_blocks))
        while left:
            block, _ = next(blocks, (None, False))
            if block is None:
                raise InputError(
                    "the source has fewer entries than when it was first read; ingest data that do not change"
                )
            part = slice(min(skip, block.nnz), min(block.nnz, skip + left))
            data.add(block.data[part])
            indices.add(block.indices[part])
            skip -= part.start
            left -= part.stop - part.start
    return data.receipts, indices.receipts


def widening_tasks(location: str, header: Header, old: Header | None, runs: int) -> list[WideningTask]:
    """Tasks that write the full shards of an older generation anew, of arrays that have a wider type now."""
    before = {} if old is None else {numbers.name: numbers for numbers in old.typed()}
    tasks = []
    for new in header.typed():
        one = before.get(new.name)
        if one is not None and one.edition != new.edition:
            full = (one.length - (one.name == header.indptr.name)) // one.shard  # no shard of rows ends with a pointer
            edges = sorted({full * i // max(1, runs) for i in range(max(1, runs) + 1)})
            tasks += [WideningTask(location, one, new, first, stop) for first, stop in pairwise(edges)]
    return tasks


def write_wider(task: WideningTask) -> tuple[str, list[Receipt]]:
    """The array's name, and receipts of the shards that were written anew."""
    folder, old = Folder(task.location), task.old
    reader = ShardReader(folder, old)
    with ArrayWriter(folder, task.new, task.first) as writer:
        for low in range(task.first * old.shard, task.stop * old.shard, old.chunk):
            writer.add(exactly(reader.read(low, low + old.chunk), task.new.dtype, folder.path(old.name)))
    return old.name, writer.receipts


def exactly(values: Array, dtype: str, where: str) -> Array:
    """The same values in another type; refused where that has no place for one of them."""
    wider = values.astype(dtype, copy=False)
    if not np.array_equal(wider.astype(values.dtype, copy=False), values, equal_nan=values.dtype.kind == "f"):
        raise InputError(
            f"{where} holds numbers beyond 2^53, which {dtype} cannot hold beside fractions; ingest all rows together"
        )
    return wider


def _kept(task: EntriesTask, new: Numbers, first: int) -> Array:
    """Entries of the old generation from ``first`` on, in the type of the new one."""
    if task.old is None or first >= task.old.nnz:
        return np.zeros(0, new.dtype)
    old = next(numbers for numbers in task.old.content() if numbers.name == new.name)
    folder = Folder(task.location)
    return exactly(ShardReader(folder, old).read(first, old.length), new.dtype, folder.path(old.name))


def write_rows(task: RowsTask) -> WrittenRows:
    """Write one shard of row pointers, row ids and columns of obs, and find where its blocks begin."""
    folder, header = Folder(task.location), task.header
    receipts: dict[str, Receipt] = {}
    first = task.shard * header.layout.row_shard
    stop = min(first + header.layout.row_shard, header.n_rows)
    starts = _row_values(task, "starts", first, stop)
    columns = {header.indptr: np.append(starts, header.nnz) if stop < first + header.layout.row_shard else starts}
    for name, numbers in header.row_columns.items():
        columns[numbers] = _row_values(task, name, first, stop)
    for annotated in header.annotations:
        if annotated.name in header.annotation_numbers:
            columns[header.annotation_numbers[annotated.name]] = _annotations(task, annotated, first, stop)
        elif stop > first:
            texts = header.annotation_texts[annotated.name]
            values = _annotations(task, annotated, first, stop).tolist()
            receipts[texts.name] = write_row_texts(folder, texts, first, values)
    for numbers, values in columns.items():
        with ArrayWriter(folder, numbers, task.shard) as writer:
            writer.add(values.astype(numbers.dtype, copy=False))
        if len(values):
            receipts[numbers.name] = writer.receipts[0]
    ids = _write_row_ids(task, first, stop)
    if ids is not None:
        receipts[header.row_ids.name] = ids
    cuts = block_cuts(starts, header.layout.block)
    return WrittenRows(receipts, first + cuts, starts[cuts])


def block_cuts(starts: Array, size: int) -> Array:
    """Positions of the rows that begin a block: the first, and each whose entries start in another span of ``size``.

    It looks at a row and the one before, so the cuts depend neither on who looks nor on rows that come later.
    """
    spans = starts // size
    return np.flatnonzero(np.append(True, spans[1:] != spans[:-1])[: len(starts)])


def _row_values(task: RowsTask, name: str, first: int, stop: int) -> Array:
    """Values of rows ``first .. stop - 1``: what the store holds of them, then what the survey found."""
    parts = []
    if task.old is not None and first < task.old.n_rows:
        stored = task.old.indptr if name == "starts" else task.old.row_columns[name]
        parts = [ShardReader(Folder(task.location), stored).read(first, min(task.old.n_rows, stop))]
    for run in task.runs:
        low, high = max(first, run.first_row), min(stop, run.first_row + run.n_rows)
        values = read_scratch(task.scratch, run.number, name, low - run.first_row, high - run.first_row)
        parts.append(values + run.first_entry if name == "starts" else values)
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _kept_of(folder: Folder, header: Header, name: str, first: int, stop: int) -> Array:
    """Rows of a column as a generation stores them; ``first`` is the beginning of a chunk."""
    texts = header.annotation_texts.get(name)
    if texts is not None:
        return np.array(read_texts(folder, texts, first, stop), object)
    return ShardReader(folder, header.annotation_numbers[name]).read(first, stop)


def _annotations(task: RowsTask, column: RowColumn, first: int, stop: int) -> Array:
    """Values of a column that came with the rows, as they are stored: old ones, then those of the source."""
    old_rows = 0 if task.old is None else task.old.n_rows
    middle = min(max(first, old_rows), stop)
    parts = [np.zeros(0, column.stored_type)]
    if task.old is not None and first < middle:
        parts.append(_kept_of(Folder(task.location), task.old, column.name, first, middle))
    if middle < stop:
        given = task.table if column.name in task.given else None
        values = None if given is None else given.read(column.name, middle - old_rows, stop - old_rows)
        parts.append(column.stored(values, stop - middle))
    where = f"column {column.name!r} of obs"
    return np.concatenate([exactly(part, column.stored_type, where) for part in parts])


def _write_row_ids(task: RowsTask, first: int, stop: int) -> Receipt | None:
    """Names of rows where they came with some, which have a receipt, else their numbers."""
    folder, ids, old = Folder(task.location), task.header.row_ids, task.old
    if isinstance(ids, Numbers):
        if stop > first:
            with ArrayWriter(folder, ids, task.shard, wanted=False) as writer:
                writer.add(np.arange(first, stop))
        return None
    if not task.header.named:
        write_ids(folder, ids, first, stop)
        return None
    old_rows = 0 if old is None else old.n_rows
    middle = min(max(first, old_rows), stop)
    names = [] if old is None or not isinstance(old.row_ids, Texts) else read_texts(folder, old.row_ids, first, middle)
    if task.table is not None and task.table.named:
        names += task.table.read(INDEX, middle - old_rows, stop - old_rows).tolist()
    else:
        names += decimal(middle, stop).to_list()
    return write_row_texts(folder, ids, first, names)
