"""Writing a dataset: a survey of the source, then its shards, then the root metadata that makes them a store.

Nothing is visible before the root metadata is; `nfs_dask.store.publish` says how.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Any, TypeVar

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import DataWarning, InputError, warn
from nfs_dask.files.claims import Claim
from nfs_dask.files.folder import Folder
from nfs_dask.store.columns import ColumnsTask, check_text, write_columns
from nfs_dask.store.header import INDEX_NAMES, NARROW, ROOT, Header, index_type, read_header
from nfs_dask.store.layout import Json, Layout, Numbers, Texts, check_label_name
from nfs_dask.store.names import (
    Names,
    check_same_names,
    given_names,
    names_of,
)
from nfs_dask.store.plain_values import plain_classes, write_categories
from nfs_dask.store.publish import claimed, new_store, remove_other_editions, scratch_folder
from nfs_dask.store.receipts import (
    Receipts,
    TaskMap,
    fingerprint,
    read_receipts,
    serial_map,
    total_nbytes,
    write_receipts,
)
from nfs_dask.store.row_columns import appended_columns, is_named, new_columns
from nfs_dask.store.shard_tasks import (
    EntriesTask,
    RowsTask,
    WideningTask,
    WrittenRows,
    entries_tasks,
    rows_tasks,
    widening_tasks,
    write_entries,
    write_rows,
    write_wider,
)
from nfs_dask.store.shards import ShardReader, write_numbers
from nfs_dask.store.survey import Survey, SurveyedRows, SurveyTask, Values, survey
from nfs_dask.store.text_facts import TextFacts, check_same_text
from nfs_dask.units import MiB

Progress = Callable[[str, int, int], None]  # what is being done, tasks done, tasks in all
T = TypeVar("T")

RUN_NBYTES = 128 * MiB  # of the source, for one task


def write_store(
    source: SurveyedRows,
    location: str | os.PathLike[str],
    *,
    label_name: str = "label",
    names: Names | None = None,
    append: bool = False,
    overwrite: bool = False,
    map: TaskMap = serial_map,  # noqa: A002
    progress: Progress | None = None,
    layout: Layout | None = None,
    runs: int | None = None,
    text: TextFacts | None = None,
) -> None:
    """Write the rows of ``source`` as a new store, or after the rows of one that is there.

    Parameters
    ----------
    source
        Where rows come from. It is read twice, and must give the same rows both times. One of texts may have names as
        bytes, ``strings(start, stop)`` of columns, in order if it says ``names_sorted``; and document frequencies,
        ``frequencies(start, stop)`` of the terms of its vocabulary.
    location
        A local path or an fsspec URL. Must not exist, unless ``append`` or ``overwrite``.
    label_name
        Name of the label column. When appending, the store's own name of it is kept.
    names
        Names of all columns, one by one or in lists; without them those of the source, if it has any.
    append
        Add the rows to the store at ``location``. Readers that opened it before go on reading what it held.
    map
        ``map(function, items)`` returns ``[function(item) for item in items]``, computed wherever it likes and as
        often as it likes: functions are importable, items small, and a repeated task writes the same bytes.
    progress
        Called with what is being done, how many of its tasks are done, and how many there are.
    layout
        Where arrays are cut, for a new store.
    runs
        How many tasks survey the source, and how many write entries, at most; by default one for each 128 MiB that
        the source reads. The result does not depend on it.
    text
        How texts became these rows. When appending, settings must be those of the store; its vocabulary and document
        frequencies stay those of the first ingest, so that new rows and old ones mean the same, and reports add up.
    """
    folder = Folder.of(location)
    if source.n_features < 1:
        raise InputError("the data have no columns; give documents with at least one feature")
    work = _Work(source, map, progress or _quiet, runs or -(-source.read_nbytes // RUN_NBYTES))
    if text is not None:
        check_text(text, source, new=not append)
    if append:
        read_header(folder)  # before a claim is left in a place that is no store
        with claimed(folder) as claim:
            _append(work, folder, names, text, claim)
    else:
        check_label_name(label_name)
        with new_store(folder, overwrite=overwrite) as building:
            building.publish(_create(work, building.folder, label_name, names, layout or Layout(), text))


def add_labels(location: str | os.PathLike[str], classes: Array, codes: Array, label_name: str = "label") -> None:
    """Give the rows of a store without labels a class each, as a new generation of it; nothing else is read.

    Parameters
    ----------
    location
        Of the store.
    classes, codes
        The sorted labels, and for each row the position of its own.
    label_name
        Name of the label column.
    """
    folder = Folder.of(location)
    read_header(folder)  # before a claim is left in a place that is no store
    with claimed(folder) as claim:
        old = read_header(folder)
        if old.label is not None:
            raise InputError(f"{folder.location} has labels already ({old.label}); ingest again with other ones")
        if len(codes) != old.n_rows:
            raise InputError(
                f"{folder.location} has {old.n_rows} rows but {len(codes)} labels were given; give one for each row"
            )
        receipts = read_receipts(folder, old)
        class_type, values = plain_classes(classes)
        header = replace(old, generation=old.generation + 1, label=label_name, class_type=class_type, classes=values)
        header.check_columns()
        assert header.codes is not None
        receipts[header.codes.name] = write_numbers(folder, header.codes, [codes.astype(np.int32)])
        header = _finished(folder, header, receipts)
        claim.check()
        folder.write(ROOT, header.root())


@dataclass(frozen=True)
class _Work:
    """What to write, and how its tasks are run."""

    source: SurveyedRows
    map: TaskMap
    progress: Progress
    runs: int

    def run(self, what: str, function: Callable[[Any], T], items: list[Any]) -> list[T]:
        self.progress(what, 0, len(items))
        results = self.map(function, items)
        self.progress(what, len(items), len(items))
        return results


def _quiet(what: str, done: int, total: int) -> None:
    """No progress wanted."""


# A new store, and an old one with more rows.


def _create(
    work: _Work, folder: Folder, label: str, names: Names | None, layout: Layout, text: TextFacts | None
) -> bytes:
    """Write everything of a new store but its root metadata; the content of that."""
    source = work.source
    class_type, classes = plain_classes(source.classes)
    with scratch_folder(folder) as scratch:
        codes = None if source.classes is None else np.arange(len(classes))
        surveys = _survey(work, scratch, codes, text)
        values = _values_of(surveys)
        n_rows = sum(found.n_rows for found in surveys)
        if n_rows == 0:
            raise InputError("the data have no rows; give at least one document")
        nnz = sum(found.nnz for found in surveys)
        numbered = index_type(source.n_features, nnz)
        header = Header(
            generation=1,
            n_rows=n_rows,
            n_features=int(source.n_features),
            nnz=nnz,
            kind=values.kind(),
            value_type=values.dtype(),
            narrow_type=values.narrow_dtype(),
            index_type=numbered,
            pointer_type=numbered,
            n_blocks=0,
            block_entries=0,
            block_nbytes=0,
            read_nbytes=0,
            label=label if source.classes is not None else None,
            class_type=class_type,
            classes=classes,
            weight_type=_weight_type(surveys) if source.weighted else None,
            names_nbytes=None,
            text_ids=n_rows <= INDEX_NAMES or is_named(source.annotations),
            named=is_named(source.annotations),
            fingerprint="",
            layout=layout,
            text=text,
        )
        header = replace(header, annotations=new_columns(source.annotations, n_rows, header.own_columns))
        header.check_columns()
        columns = ColumnsTask(source, folder.location, header, names)
        if names is None and source.strings(0, 0) is not None:  # many, and ready: a task beside those of the rows
            header = _write_generation(work, folder, scratch, header, None, surveys, {}, columns)
        else:
            header, receipts = write_columns(columns)
            header = _write_generation(work, folder, scratch, header, None, surveys, receipts)
    return header.root()


def _append(work: _Work, folder: Folder, names: Names | None, text: TextFacts | None, claim: Claim) -> None:
    old = read_header(folder)
    source = work.source
    check_same_text(old.text, text, folder.location)
    _check_same_shape(old, source, folder.location)
    given = None if names is None else given_names(names, old.layout.row_chunk)
    hashed = text is not None and text.settings.hashed is not None  # then names only tell what the first ingest found
    if given is None and old.names_nbytes is not None and not hashed:
        given = names_of(source, old.layout.row_chunk)
    if given is not None:
        check_same_names(folder, old, given)
    classes, codes = _merged_classes(old, source.classes)
    with scratch_folder(folder) as scratch:
        surveys = _survey(work, scratch, codes, old.text)
        values = _values_of(surveys)
        value_type = values.widened(old.value_type)
        if not values.fits(value_type):
            raise InputError(
                f"the rows to append hold values from {values.low} to {values.high} ({values.kind()}), and "
                f"{folder.location} stores {old.value_type} ({old.kind}); no type holds all of them exactly"
            )
        added = sum(found.n_rows for found in surveys)
        if added == 0:
            return
        nnz = old.nnz + sum(found.nnz for found in surveys)
        wide = nnz > NARROW  # then both are of 64 bits, also in stores that had one of them so
        header = replace(
            old,
            generation=old.generation + 1,
            checks=None,
            n_rows=old.n_rows + added,
            nnz=nnz,
            kind=_wider(old.kind, values),
            value_type=value_type,
            narrow_type=_narrow_type(old, values, value_type),
            index_type="int64" if wide and old.pointer_type == "int32" else old.index_type,
            pointer_type="int64" if wide else old.pointer_type,
            weight_type=old.weight_type if old.weight_type is None else _weight_type(surveys, old.weight_type),
            classes=classes,
            text=None if old.text is None else old.text.appended(text),
            annotations=appended_columns(old.annotations, source.annotations, old.own_columns),
            named=old.named or (old.text_ids and is_named(source.annotations)),
        ).widened_from(old)
        if header.editions != old.editions:
            remove_other_editions(folder, old)
        header = _write_generation(work, folder, scratch, header, old, surveys, read_receipts(folder, old))
    claim.check()
    folder.write(ROOT, header.root())


def _write_generation(
    work: _Work,
    folder: Folder,
    scratch: str,
    header: Header,
    old: Header | None,
    surveys: list[Survey],
    receipts: Receipts,
    columns: ColumnsTask | None = None,
) -> Header:
    """Write the shards that are new or no longer complete, and all metadata but the root; the finished header."""
    old_rows, old_nnz = (old.n_rows, old.nnz) if old is not None else (0, 0)
    first_shard, first_row_shard = old_nnz // header.layout.shard, old_rows // header.layout.row_shard
    entries = entries_tasks(work.source, work.runs, folder.location, header, old, surveys)
    rows = rows_tasks(folder.location, scratch, header, old, surveys, work.source.annotations)
    wider = widening_tasks(folder.location, header, old, work.runs)
    named = [] if columns is None else [columns]
    written = iter(work.run("writing", write_shards, [*named, *entries, *wider, *rows]))  # those first that take long
    if columns is not None:
        header, receipts = next(written)
    written_entries = list(islice(written, len(entries)))
    for name in {task.new.name for task in wider}:
        receipts[name] = []
    for name, new in islice(written, len(wider)):
        receipts[name] += new
    written_rows = list(written)

    data, indices = header.data.name, header.indices.name
    receipts[data] = receipts.get(data, [])[:first_shard] + [one for parts, _ in written_entries for one in parts]
    receipts[indices] = receipts.get(indices, [])[:first_shard] + [one for _, parts in written_entries for one in parts]
    of_rows: list[Numbers | Texts] = [header.indptr, *header.row_columns.values()]
    for array in [*of_rows, *header.annotation_numbers.values(), *header.row_texts()]:
        new = [part.receipts[array.name] for part in written_rows if array.name in part.receipts]
        receipts[array.name] = receipts.get(array.name, [])[:first_row_shard] + new

    header, cut_rows = _with_blocks(folder, header, old, first_row_shard * header.layout.row_shard, written_rows)
    receipts[header.cuts.name] = write_numbers(folder, header.cuts, [cut_rows])
    return _finished(folder, header, receipts)


def _finished(folder: Folder, header: Header, receipts: Receipts) -> Header:
    """Write categories, receipts, and metadata but the root's of a generation; its header with the fingerprint."""
    header = replace(header, read_nbytes=total_nbytes(receipts, [*header.content(), header.cuts]))
    header = header.with_fingerprint(fingerprint(header, receipts))
    for array, values in header.category_arrays:
        write_categories(folder, array, values)
    header = write_receipts(folder, header, receipts)
    for path, metadata in (header.nodes() | header.own_nodes()).items():
        folder.write(f"{path}/zarr.json", _json(metadata))
    return header


def write_shards(task: ColumnsTask | RowsTask | WideningTask | EntriesTask) -> Any:
    """Whatever there is to write."""
    if isinstance(task, ColumnsTask):
        return write_columns(task)
    if isinstance(task, WideningTask):
        return write_wider(task)
    return write_rows(task) if isinstance(task, RowsTask) else write_entries(task)


def _with_blocks(
    folder: Folder, header: Header, old: Header | None, first_row: int, written: list[WrittenRows]
) -> tuple[Header, Array]:
    """The header with what is known of the blocks, and the first row of each.

    Blocks before ``first_row`` are those of the old generation, and no larger than it said.
    """
    rows = np.concatenate([part.cut_rows for part in written])
    starts = np.concatenate([part.cut_entries for part in written])
    entries = np.diff(np.append(starts, header.nnz))
    weights = 0 if header.weights is None else header.weights.itemsize
    per_entry = np.dtype(header.narrow_type).itemsize + header.indices.itemsize
    nbytes = entries * per_entry + np.diff(np.append(rows, header.n_rows)) * (8 + 4 + weights) + 8
    block_entries, block_nbytes = int(entries.max()), int(nbytes.max())
    if old is not None:
        before = ShardReader(folder, old.cuts).read(0, old.n_blocks)
        rows = np.concatenate([before[before < first_row], rows])
        wider = per_entry - np.dtype(old.narrow_type).itemsize - old.indices.itemsize
        block_nbytes = max(block_nbytes, old.block_nbytes + wider * old.block_entries)
        block_entries = max(block_entries, old.block_entries)
    return replace(header, n_blocks=len(rows), block_entries=block_entries, block_nbytes=block_nbytes), rows


def _survey(work: _Work, scratch: str, codes: Array | None, text: TextFacts | None) -> list[Survey]:
    source = work.source
    runs = max(1, min(work.runs, source.n_blocks))
    edges = [source.n_blocks * i // runs for i in range(runs + 1)]
    regions = 0 if text is None else len(text.length_columns)
    tasks = [
        SurveyTask(source, start, stop, scratch, number, codes, source.weighted, regions)
        for number, (start, stop) in enumerate(pairwise(edges))
    ]
    surveys = work.run("reading", survey, tasks)
    mended = sum(found.mended for found in surveys)
    if mended:
        warn(
            f"{mended} of {source.n_blocks} blocks had unsorted or repeated columns within rows; "
            "they were sorted, and the values of repeated ones added up",
            DataWarning,
        )
    return surveys


# Values and shapes.


def _values_of(surveys: list[Survey]) -> Values:
    values = Values()
    for found in surveys:
        values |= found.values
    return values


def _wider(kind: Any, values: Values) -> Any:
    """The kind of old and new values together."""
    order = ["binary", "count", "real", "signed"]
    return max(kind, values.kind(), key=order.index)


def _narrow_type(old: Header, values: Values, value_type: str) -> str:
    """The smallest type that holds what an older generation has, and new values too."""
    narrow = np.promote_types(old.narrow_type, values.narrow_dtype())
    return value_type if np.dtype(value_type).kind == "f" or not np.can_cast(narrow, value_type) else narrow.name


def _weight_type(surveys: list[Survey], old: str = "int64") -> str:
    return "int64" if old == "int64" and all(found.whole_weights for found in surveys) else "float64"


def _check_same_shape(old: Header, source: SurveyedRows, where: str) -> None:
    if source.n_features != old.n_features:
        raise InputError(
            f"the rows to append have {source.n_features} columns and {where} has {old.n_features}; "
            "make them with the store's vocabulary, or ingest everything into a new store"
        )
    if source.weighted != (old.weight_type is not None):
        has, lacks = ("the rows to append", where) if source.weighted else (where, "the rows to append")
        raise InputError(f"{has} have sample weights and {lacks} have none; give a weight to every row or to none")


def _merged_classes(old: Header, classes: Array | None) -> tuple[tuple[Any, ...], Array | None]:
    """The store's classes with new ones at the end, and the stored code of each class of the source."""
    if old.label is None:
        if classes is not None:
            raise InputError(
                "the store has no labels, and the rows to append have; ingest all rows together into a new store"
            )
        return (), None
    if classes is None or len(classes) == 0:
        raise InputError(
            f"the rows of the store have labels ({old.label}), and the rows to append have none; give one label for "
            "each row, as labels= or by the column that holds them"
        )
    class_type, values = plain_classes(classes)
    if old.classes and class_type != old.class_type:
        raise InputError(
            f"the store's labels are of type {old.class_type}, those of the rows to append of type {class_type}; "
            "convert them before appending"
        )
    merged = {value: code for code, value in enumerate(old.classes)}
    codes = np.array([merged.setdefault(value, len(merged)) for value in values])
    return tuple(merged), codes


def _json(metadata: Json) -> bytes:
    return json.dumps(metadata, indent=1).encode()
