"""The task that counts the terms of one piece of the documents."""

from __future__ import annotations

import csv
import importlib
import io
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.documents.document_source import Batch, DocumentSource
from nfs_dask.errors import InputError
from nfs_dask.files.folder import Folder
from nfs_dask.files.sealed import MOST_JSON, sealed, unsealed
from nfs_dask.ingestion.ingest_report import Seen
from nfs_dask.ingestion.kept_columns import KeptTexts
from nfs_dask.ingestion.segments import Segment, read_manifest, write_segment
from nfs_dask.sources.labels import encode, merge_classes, sample_weights
from nfs_dask.text.counting import TermCounter
from nfs_dask.text.settings import TextSettings, Tokenizer
from nfs_dask.text.stemming import other_version

logger = logging.getLogger("nfs_dask")


@dataclass(frozen=True)
class CountTask:
    """Some pieces of the documents, and where to leave what was counted."""

    documents: DocumentSource
    folder: str
    number: int
    pieces: range
    settings: TextSettings
    segment_nbytes: int
    note_skipped: bool = False  # which documents were left out, for who has a label for each
    tokenizer: Tokenizer | str | None = None  # a callable for tasks that run here; else where to import it from

    @property
    def manifest(self) -> str:
        return f"task-{self.number:08d}.json"

    @property
    def rejects(self) -> str:
        return f"task-{self.number:08d}.rejects.csv"


@dataclass
class CountedPieces:
    """What became of the pieces of a task."""

    segments: list[Segment] = field(default_factory=list)
    seen: Seen = field(default_factory=Seen)
    skipped: Array = field(default_factory=lambda: np.zeros(0, np.int64))  # documents left out, of those seen here
    rejects: str | None = None  # the file that lists the bad ones among them, if there are any


def count_texts(task: CountTask) -> CountedPieces:
    """Count some pieces of the documents, unless an earlier try has."""
    return _count(task, chain.from_iterable(map(task.documents.batches, task.pieces)))


def count_partition(partition: Any, task: CountTask) -> CountedPieces:
    """As `count_texts`, of a partition of a Dask collection."""
    return _count(task, task.documents.batches(partition))


def _count(task: CountTask, batches: Iterable[Batch]) -> CountedPieces:
    folder = Folder(task.folder)
    if folder.exists(task.manifest):
        finished = _finished(folder, task)
        if finished is not None and (not finished.seen.left_out or task.documents.columns.on_error == "skip"):
            return finished
        # An earlier try was allowed to leave documents out, and this one is not: reading them again names the first.
    if told := other_version(task.settings):  # of the client: its settings are what the store will say
        raise InputError(f"on a worker, {told}")
    piece = CountedPieces()
    counter = TermCounter(task.settings, tokenizer=find_tokenizer(task.tokenizer), in_order=True)
    held = _Held(task, counter)
    skipped, rejects = [], io.StringIO()
    for batch in batches:
        problems = ((one.where, one.kind, one.what) for one in batch.problems)
        csv.writer(rejects, lineterminator="\n").writerows(problems)
        if task.note_skipped:
            skipped.append(batch.skipped + piece.seen.seen)
        piece.seen.note(batch)
        counter.add(batch.document_by_document())
        held.note(batch)
        if counter.nbytes + held.nbytes >= task.segment_nbytes:
            piece.segments.append(held.write(folder, len(piece.segments)))
    if held.n_documents:
        piece.segments.append(held.write(folder, len(piece.segments)))
    piece.seen.collisions = held.collisions
    piece.skipped = np.concatenate(skipped) if skipped else piece.skipped
    if piece.seen.left_out:
        piece.rejects = task.rejects
        folder.write(task.rejects, rejects.getvalue().encode())
    folder.write(task.manifest, sealed(_to_json(piece, task)))
    return piece


def find_tokenizer(tokenizer: Tokenizer | str | None) -> Tokenizer | None:
    """The callable itself, imported from where the caller has it."""
    if not isinstance(tokenizer, str):
        return tokenizer
    module, _, name = tokenizer.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"workers cannot import the tokenizer {tokenizer} ({error}); install it there, or leave the engine out"
        ) from error
    return found


class _Held:
    """Labels, weights and further columns of the documents that the counter holds."""

    def __init__(self, task: CountTask, counter: TermCounter) -> None:
        self._task = task
        self._counter = counter
        self._labels: list[Any] = []
        self._weights: list[Array] = []
        self._kept = {name: KeptTexts() for name in task.documents.columns.kept}
        self.n_documents = 0
        self.collisions = 0  # of all segments

    @property
    def nbytes(self) -> int:
        return 16 * self.n_documents + sum(column.nbytes for column in self._kept.values())

    def note(self, batch: Batch) -> None:
        self.n_documents += batch.n_documents
        if batch.labels is not None:
            self._labels.append(encode(batch.labels, batch.n_documents))
        if batch.weights is not None:
            self._weights.append(sample_weights(batch.weights, batch.n_documents))
        for name, column in self._kept.items():
            column.add(batch.others[name], batch.n_documents)

    def write(self, folder: Folder, number: int) -> Segment:
        """Write what is held as a segment, and hold nothing."""
        classes, codes = _together(self._labels)
        weights = np.concatenate(self._weights) if self._weights else None
        name = f"task-{self._task.number:08d}-{number:04d}.terms"
        regions = self._task.documents.columns.n_regions
        counted = self._counter.finish()
        self.collisions += counted.collisions
        settings = self._task.settings
        segment = write_segment(folder, name, counted, settings, regions, codes, weights, classes, kept=self._kept)
        self._labels, self._weights, self.n_documents = [], [], 0
        self._kept = {name: KeptTexts() for name in self._kept}
        return segment


def _together(parts: list[tuple[Array, Array]]) -> tuple[Array | None, Array | None]:
    """Labels that were encoded batch by batch, under classes of their own, as codes of one set of classes."""
    if not parts:
        return None, None
    classes = merge_classes([own for own, _ in parts])
    codes = [np.searchsorted(classes, own).astype(np.int32)[codes] for own, codes in parts]
    return classes, np.concatenate(codes)


def _to_json(piece: CountedPieces, task: CountTask) -> dict[str, Any]:
    return {
        "task": task.number,
        "segments": [segment.name for segment in piece.segments],
        "seen": piece.seen.to_json(),
        "found": piece.seen.found,
        "skipped": piece.skipped.tolist(),
        "rejects": piece.rejects,
    }


def _finished(folder: Folder, task: CountTask) -> CountedPieces | None:
    """What an earlier try has left; None where it is not whole, and has to be made again."""
    try:
        found = unsealed(folder.read(task.manifest, 0, MOST_JSON))
        if found["task"] != task.number:
            raise ValueError(f"it is that of task {found['task']}")
        segments = [read_manifest(folder, name) for name in found["segments"]]
        seen, skipped = Seen.from_json(found["seen"]), np.array(found["skipped"], np.int64)
        seen.found = [tuple(values) for values in found.get("found", [])]
    except (LookupError, TypeError, ValueError) as error:
        logger.warning("%s is damaged (%s); its documents are counted again", folder.path(task.manifest), error)
        return None
    whole = [segment for segment in segments if segment is not None]
    rejects = found.get("rejects")
    return CountedPieces(whole, seen, skipped, rejects) if len(whole) == len(segments) else None
