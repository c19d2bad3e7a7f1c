"""How good a classifier is on documents with known labels, counted block by block."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from nfs_dask.block import Array
from nfs_dask.dataset import Dataset
from nfs_dask.documents.base import DocumentSource, shares
from nfs_dask.engine.base import Engine
from nfs_dask.engine.choose import choose_engine, choose_for_documents
from nfs_dask.errors import DataWarning, InputError, warn
from nfs_dask.ingesting.report import Seen
from nfs_dask.models.base import Model
from nfs_dask.reading.reader import Reader
from nfs_dask.sources.base import Source
from nfs_dask.sources.labels import encode, merge_classes

NORMAL_95 = 1.959963984540054


@dataclass(frozen=True)
class Evaluation:
    """What was predicted of documents of each class."""

    labels: Array  # (L,) the labels of the documents
    classes: Array  # (C,) the classes of the model
    confusion: Array  # (L, C) int64, documents with a label that were given a class
    left_out: int = 0  # bad documents, which nothing was predicted of

    @property
    def n(self) -> int:
        return int(self.confusion.sum())

    @property
    def right(self) -> Array:
        """Documents of each label that were given it, (L,); none of a label that the model does not know."""
        same = self.labels[:, None] == self.classes[None, :]
        hits: Array = (self.confusion * same).sum(axis=1)
        return hits

    @property
    def accuracy(self) -> float:
        return float(self.right.sum() / self.n)

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval of the accuracy, at 95 %."""
        return wilson(int(self.right.sum()), self.n)

    @property
    def recall(self) -> Array:
        """Share of the documents of each label that were given it; NaN for a label without documents."""
        return _share(self.right, self.confusion.sum(axis=1))

    @property
    def precision(self) -> Array:
        """Share of what was given a label that has it, (L,); NaN where nothing was."""
        given = dict(zip(self.classes.tolist(), self.confusion.sum(axis=0).tolist(), strict=True))
        return _share(self.right, np.array([given.get(label, 0) for label in self.labels.tolist()]))

    @property
    def balanced_accuracy(self) -> float:
        """Mean recall of the labels that have documents."""
        return float(np.nanmean(self.recall))

    def to_json(self) -> dict[str, Any]:
        """All of it, as JSON values."""
        low, high = self.interval
        per_class = zip(self.labels.tolist(), self.confusion.sum(axis=1), self.precision, self.recall, strict=True)
        return {
            "n": self.n,
            "left_out": self.left_out,
            "accuracy": self.accuracy,
            "interval": [low, high],
            "balanced_accuracy": self.balanced_accuracy,
            "labels": self.labels,
            "classes": self.classes,
            "confusion": self.confusion,
            "per_class": [
                {"label": label, "n": int(n), "precision": _number(p), "recall": _number(r)}
                for label, n, p, r in per_class
            ],
        }


def wilson(right: int, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share.

    >>> [round(end, 4) for end in wilson(8, 10)]
    [0.4902, 0.9433]
    """
    z2 = NORMAL_95**2
    center, width = right + z2 / 2, NORMAL_95 * math.sqrt(right * (n - right) / n + z2 / 4)
    return max(0.0, (center - width) / (n + z2)), min(1.0, (center + width) / (n + z2))


def evaluate(model: Model, dataset: Dataset, engine: Engine | None = None) -> Evaluation:
    """Compare what a model says of documents with their labels. Nothing grows with the documents.

    Parameters
    ----------
    model
        Of as many features as the dataset has.
    dataset
        With labels; those the model does not know count as mistakes.
    engine
        Where the blocks are read.
    """
    if dataset.classes is None:
        raise InputError(f"{dataset!r} has no labels to compare with; name the column that holds them")
    if dataset.n_features != model.n_features:
        raise InputError(
            f"{dataset!r} has {dataset.n_features} features, the model was fitted to {model.n_features}; documents "
            "need the features of the training data, in the same order"
        )
    _check_comparable(dataset.classes, model.classes)
    source = dataset.source
    runs = [Judging(source, model, block, block + 1) for block in range(source.n_blocks)]
    with choose_engine(engine, source).mapping(source) as mapping:
        parts = mapping(judge, runs)
    return Evaluation(dataset.classes, model.classes, np.sum(parts, axis=0))


def evaluate_documents(documents: DocumentSource, reader: Reader, engine: Engine | None = None) -> Evaluation:
    """As `evaluate`, for documents that are read piece by piece."""
    if not documents.labelled:
        raise InputError("the documents have no labels to compare with; name the column that holds them")
    tasks = [JudgedPieces(own, pieces, reader) for own, pieces in shares(documents)]
    with choose_for_documents(engine, documents).executor() as executor:
        found = executor.map_items(judge_pieces, tasks)
    labels = merge_classes([labels for labels, _, _ in found])
    if not len(labels):
        raise InputError("there are no documents to compare with; give at least one")
    _check_comparable(labels, reader.model.classes)
    confusion, seen = np.zeros((len(labels), reader.model.n_classes), np.int64), Seen()
    for own, counts, met in found:
        confusion[np.searchsorted(labels, own)] += counts
        seen.add(met)
    if seen.left_out:
        warn(str(seen), DataWarning)
    return Evaluation(labels, reader.model.classes, confusion, seen.left_out.total())


def _kind(labels: Array) -> str:
    return "texts" if labels.dtype.kind == "U" else "numbers"


def _check_comparable(labels: Array, classes: Array) -> None:
    """Refuse texts beside numbers: no label would agree with a class, however alike they look."""
    if _kind(labels) != _kind(classes):
        given, known = (f"{_kind(values)} such as {values.tolist()[0]!r}" for values in (labels, classes))
        raise InputError(
            f"the labels of the documents are {given}, the classes of the model {known}; give labels of the same "
            "kind (a column of CSV holds texts, one of Parquet or JSON what was written)"
        )


@dataclass(frozen=True, slots=True)
class JudgedPieces:
    """Pieces of documents that one task reads, predicts and compares."""

    documents: DocumentSource
    pieces: range
    reader: Reader


def judge_pieces(task: JudgedPieces) -> tuple[Array, Array, Seen]:
    """The labels of some pieces, (L,), their confusion counts, (L, C), and what was left out."""
    labels, given, seen = [], [np.zeros(0, np.int64)], Seen()
    for batch in chain.from_iterable(map(task.documents.batches, task.pieces)):
        seen.seen += batch.seen
        seen.note(batch.problems)
        labels.append(encode(batch.labels, batch.n_documents))
        for block in task.reader.blocks_of([batch.document_by_document()]):
            given.append(np.argmax(task.reader.model.scores(block, trusted=True), axis=1))
    classes = merge_classes([own for own, _ in labels])
    counts = np.zeros((len(classes), task.reader.model.n_classes), np.int64)
    codes = [np.searchsorted(classes, own)[codes] for own, codes in labels]
    np.add.at(counts, (np.concatenate([np.zeros(0, np.int64), *codes]), np.concatenate(given)), 1)
    return classes, counts, seen


@dataclass(frozen=True, slots=True)
class Judging:
    """Blocks that one task predicts and compares."""

    source: Source
    model: Model
    start: int
    stop: int


def judge(task: Judging) -> Array:
    """The confusion counts of some blocks, (L, C)."""
    assert task.source.classes is not None
    shape = len(task.source.classes), task.model.n_classes
    counts = np.zeros(shape, np.int64)
    for block in task.source.blocks(task.start, task.stop):
        labelled = np.asarray(block.codes) >= 0
        given = np.argmax(task.model.scores(block, task.source.trusted), axis=1)
        np.add.at(counts, (block.codes[labelled], given[labelled]), 1)
    return counts


def _share(part: Array, whole: Array) -> Array:
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
