"""Scoring documents with a model: a map over blocks, wherever they lie.

In memory the result is an array; of a Dask collection, a lazy one with a chunk for each row of chunks, or where rows
have an index, a lazy Series or data frame; of a dataset, an array in memory, made by the engine block by block. Texts
are rows like others, as soon as a reader is beside them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from nfs_dask.arrays.block import Array, Block
from nfs_dask.containers import is_collection
from nfs_dask.dataset import Dataset
from nfs_dask.documents.document_source import DocumentProblem
from nfs_dask.engine.engine import Engine
from nfs_dask.ingestion.ingest_report import Seen
from nfs_dask.models.model import Model
from nfs_dask.prediction.lazy_chunks import heights, map_chunks, partitions
from nfs_dask.prediction.lazy_frames import has_index, with_index_of
from nfs_dask.prediction.model_rows import TOGETHER, Asked, ModelTask, ReadDocuments, What, asked_in_turn
from nfs_dask.prediction.reader import Reader, TextSource, partition_source
from nfs_dask.sources.dask_matrices import CollectionSource
from nfs_dask.sources.matrix_source import MatrixSource


def score(X: Any, model: Model, what: What, engine: Engine | None = None) -> Any:
    """What a model says of each row of X, by the name of one of its methods.

    Parameters
    ----------
    X : matrix in memory, dask array or DataFrame, Dataset, TextSource or ReadDocuments
    what
        Which method of `Model`.
    engine
        Where the blocks of a dataset, and documents, are read.

    Returns
    -------
    (n_rows,), (n_rows, C), or for "whiten" (n_rows, k)
        Of a Dask data frame or Series, but for "whiten", a Dask Series, or a data frame with a column for each class,
        which have its index and divisions. Of other Dask collections a dask array, of texts with unknown row chunks;
        else numpy.
    """
    if isinstance(X, (Dataset, ReadDocuments)):
        return _together(list(asked_in_turn(score_run, X, model, engine, what)))
    texts = isinstance(X, TextSource)
    if is_collection(X.given if texts else X):
        return _score_lazily(X, model, what)
    rows = X if texts else MatrixSource(X)
    return score_run(ModelTask(rows, 0, rows.n_blocks, model, what))


def score_run(task: ModelTask) -> Array:
    """One task: the scores of some blocks, put together."""
    blocks = task.rows.blocks(task.start, task.stop)
    return _together([score_block(task.model, block, task.what, task.trusted) for block in blocks])


def score_block(model: Model, block: Block, what: What, trusted: bool = False) -> Array:
    """What a model says of some rows."""
    return np.asarray(getattr(model, what)(block, trusted))


def score_chunk(shared: Model | Reader, chunk: Any, number: int, what: What) -> Array:
    """One lazy chunk: a block for a model, or texts of a partition for a reader."""
    if isinstance(shared, Model):
        return score_block(shared, chunk, what)
    return score_run(ModelTask(partition_source(shared, chunk, number), 0, 1, shared.model, what))


def _score_lazily(X: Any, model: Model, what: What) -> Any:
    texts, width = isinstance(X, TextSource), _width(model, what)
    if texts:
        given, parts = X.given, partitions(X.given)
        chunks, shared, rows = parts, X.reader, None
    else:
        source = CollectionSource(X)
        given, parts, chunks, shared, rows = X, source.first_chunks, source.delayed, model, heights(X)
    task, label = partial(score_chunk, what=what), what.replace("_", "-")
    meta = np.empty((0,) if width is None else (0, 0), _type_of(model, what))
    scores = map_chunks(chunks, task, shared.for_tasks(), label, rows=rows, meta=meta, width=width)
    if what == "whiten" or not has_index(given):
        return scores
    return with_index_of(given, parts, scores, model.classes.tolist())


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The class of some documents."""

    rows: Array  # (n,) int64, which documents of those seen
    best: Array  # (n,) int32, position among the classes of the model
    chances: Array | None  # (n,) float64, posterior probability; None for models without probabilities
    seen: int  # documents, those left out among them
    left_out: int
    first: DocumentProblem | None  # of those left out
    margins: Array | None = None  # (n,) float64, score above that of the second best class; inf where none is possible
    met: Seen = field(default_factory=Seen)  # what was read of documents
    others: dict[str, list[Any]] = field(default_factory=dict)  # values of their further columns
    posteriors: Array | None = None  # (n, C) float64, where they were asked for


def verdicts(
    asked: Asked, model: Model, engine: Engine | None = None, *, posteriors: bool = False
) -> Iterator[Verdicts]:
    """The class of each row or document, task by task; rows are numbered within their task.

    Parameters
    ----------
    asked
        A dataset, of which all verdicts are held; or documents that are read piece by piece, of which those of some
        tasks are.
    model
        That which reads the documents.
    engine
        Where they are read; None chooses as for a pass, or for an ingest.
    posteriors
        Whether to have the probabilities of all classes, of a model that has probabilities.
    """
    together = TOGETHER if isinstance(asked, ReadDocuments) else None
    what: What = "predict_proba" if posteriors else "scores"
    return asked_in_turn(classify, asked, model, engine, what, together=together)


def classify(task: ModelTask) -> Verdicts:
    """The verdicts of one task."""
    rows, parts = [np.zeros(0, np.int64)], [_judged(task, np.zeros((0, task.model.n_classes)))]
    seen, left_out, first, met = 0, 0, None, Seen()
    others: dict[str, list[Any]] = {}
    for block, batch in task.read():
        parts.append(_judged(task, task.model.scores(block, task.trusted)))
        rows.append(seen + (np.arange(block.n_rows) if batch is None else batch.rows))
        seen += block.n_rows if batch is None else batch.seen
        problems = () if batch is None else batch.problems
        if batch is not None:
            met.note(batch)
            for name, values in batch.others.items():
                others.setdefault(name, []).extend(values)
        left_out += len(problems)
        first = first or next(iter(problems), None)
    judged: list[Any] = [None if some[0] is None else np.concatenate(some) for some in zip(*parts, strict=True)]
    best, chances, margins, posteriors = judged
    return Verdicts(np.concatenate(rows), best, chances, seen, left_out, first, margins, met, others, posteriors)


class _Judged(NamedTuple):
    """What `Verdicts` have of the scores of some rows."""

    best: Array
    chances: Array | None
    margins: Array
    posteriors: Array | None


def _judged(task: ModelTask, scores: Array) -> _Judged:
    posteriors = np.exp(task.model.log_posterior(scores)) if task.what == "predict_proba" else None
    return _Judged(*_best(task.model, scores), posteriors)


def _best(model: Model, scores: Array) -> tuple[Array, Array | None, Array]:
    """Of each row the best class, its probability where there is one, and how far its score is above the next."""
    best = scores.argmax(axis=1).astype(np.int32)
    chances = model.chance_of_best(scores) if model.has_probabilities else None
    if scores.shape[1] == 1:
        return best, chances, np.full(len(scores), np.inf)
    if scores.shape[1] == 2:
        return best, chances, np.abs(scores[:, 1] - scores[:, 0])
    leading = np.partition(scores, -2, axis=1)[:, -2:]
    return best, chances, leading[:, 1] - leading[:, 0]


def _together(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _width(model: Model, what: What) -> int | None:
    """How many values a row gets; None where it gets a single one, without an axis for it."""
    if what == "whiten":
        return len(model.support)
    flat = what == "predict" or (what == "decision_function" and model.n_classes == 2)
    return None if flat else model.n_classes


def _type_of(model: Model, what: What) -> np.dtype[Any]:
    return model.classes.dtype if what == "predict" else np.dtype(np.float64)
