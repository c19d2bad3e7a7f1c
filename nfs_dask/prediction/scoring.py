"""Scoring documents with a model: a map over blocks, wherever they lie.

In memory the result is an array; of a Dask collection, a lazy one with a chunk for each row of chunks; of a dataset, an
array in memory, made by the engine block by block.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Literal

import numpy as np

from nfs_dask.arrays.block import Array, Block
from nfs_dask.containers import is_collection
from nfs_dask.dataset import Dataset
from nfs_dask.documents.document_source import DocumentProblem, DocumentSource, shares
from nfs_dask.engine.choose import choose_engine, choose_for_documents
from nfs_dask.engine.engine import Engine
from nfs_dask.graphs import lazy_array, lazy_value
from nfs_dask.models.model import Model
from nfs_dask.prediction.lazy_texts import map_partitions
from nfs_dask.prediction.reader import Reader
from nfs_dask.sources.dask_matrices import CollectionSource
from nfs_dask.sources.matrix_source import MatrixSource
from nfs_dask.sources.source import Source

TOGETHER = 64  # tasks whose verdicts are held at once

What = Literal[
    "predict", "predict_proba", "predict_log_proba", "decision_function", "scores", "joint_log_likelihood", "whiten"
]


@dataclass(frozen=True, slots=True)
class ScoringRun:
    """Blocks of a source that one task scores."""

    source: Source
    model: Model
    what: What
    start: int
    stop: int


def score(X: Any, model: Model, what: What, engine: Engine | None = None) -> Any:
    """What a model says of each row of X, by the name of one of its methods.

    Parameters
    ----------
    X : matrix in memory, dask array or DataFrame, or Dataset
    what
        Which method of `Model`.
    engine
        Where the blocks of a dataset are read.

    Returns
    -------
    (n_rows,), (n_rows, C), or for "whiten" (n_rows, k)
        A dask array for a Dask collection, else numpy.
    """
    if isinstance(X, Dataset):
        return _score_dataset(X, model, what, engine)
    if is_collection(X):
        return _score_lazily(X, model, what)
    source = MatrixSource(X)
    return score_run(ScoringRun(source, model, what, 0, source.n_blocks))


def score_texts(texts: Any, reader: Reader, what: What) -> Any:
    """What a model says of each of some texts, by the name of one of its methods.

    Parameters
    ----------
    texts
        Documents as `nfs_dask.documents.at_hand` knows them.
    reader
        Reads them for the model.
    what
        Which method of `Model`.

    Returns
    -------
    (n_documents,) or (n_documents, C)
        A dask array of unknown row chunks for a Dask collection, else numpy.
    """
    if not is_collection(texts):
        return _together([score_block(reader.model, block, what, trusted=True) for block in reader.blocks(texts)])
    model = reader.model
    width = _width(model, what)
    meta = np.empty((0,) if width is None else (0, 0), _type_of(model, what))
    task = partial(score_partition, what=what)
    return map_partitions(texts, task, reader.for_tasks(), what.replace("_", "-"), meta=meta, width=width)


def score_partition(reader: Reader, partition: Any, number: int, what: What) -> Array:
    """One lazy chunk: texts of a Dask collection."""
    blocks = reader.blocks(partition, f"partition {number:,}, document")
    return _together([score_block(reader.model, block, what, trusted=True) for block in blocks])


def score_run(run: ScoringRun) -> Array:
    """One task: the scores of some blocks, put together."""
    return _together(list(_scores(run)))


def score_block(model: Model, block: Block, what: What, trusted: bool = False) -> Array:
    """What a model says of some rows."""
    return np.asarray(getattr(model, what)(block, trusted))


@dataclass(frozen=True, slots=True)
class ReadPieces:
    """Pieces of documents that one task reads and scores."""

    documents: DocumentSource
    pieces: range
    reader: Reader


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


def classify_documents(documents: DocumentSource, reader: Reader, engine: Engine | None = None) -> Iterator[Verdicts]:
    """The class of documents that are read piece by piece; never those of all pieces at once.

    Parameters
    ----------
    documents
        Files, or whatever else `nfs_dask.documents.open_documents` opens.
    reader
        Reads them for its model.
    engine
        Where pieces are read; None chooses as for an ingest.

    Yields
    ------
    Verdicts
        Of some pieces after others.
    """
    with choose_for_documents(engine, documents).executor() as executor:
        tasks = [ReadPieces(own, pieces, reader) for own, pieces in shares(documents)]
        for first in range(0, len(tasks), TOGETHER):
            yield from executor.map_items(classify, tasks[first : first + TOGETHER])


def classify(task: ReadPieces) -> Verdicts:
    """The verdicts of some pieces."""
    model = task.reader.model
    rows, found = [np.zeros(0, np.int64)], [np.zeros((0, model.n_classes))]
    left_out, problem = 0, None
    seen = 0
    for batch in chain.from_iterable(map(task.documents.batches, task.pieces)):
        for block in task.reader.blocks_of([batch.document_by_document()]):
            found.append(model.scores(block, trusted=True))
        rows.append(batch.rows + seen)
        seen += batch.seen
        left_out += len(batch.problems)
        problem = problem or next(iter(batch.problems), None)
    best, chances, margins = _best(model, np.concatenate(found))
    return Verdicts(np.concatenate(rows), best, chances, seen, left_out, problem, margins)


def classify_rows(dataset: Dataset, model: Model, engine: Engine | None = None) -> list[Verdicts]:
    """The class of each row of a dataset, block by block; rows are numbered within their block."""
    source = dataset.source
    runs = [ScoringRun(source, model, "scores", block, block + 1) for block in range(source.n_blocks)]
    with choose_engine(engine, source).mapping(source) as mapping:
        return list(mapping(classify_run, runs))


def classify_run(run: ScoringRun) -> Verdicts:
    """The verdicts of some blocks."""
    best, chances, margins = _best(run.model, score_run(run))
    return Verdicts(np.arange(len(best)), best, chances, len(best), 0, None, margins)


def _best(model: Model, scores: Array) -> tuple[Array, Array | None, Array]:
    """Of each row the best class, its probability where there is one, and how far its score is above the next."""
    best = scores.argmax(axis=1).astype(np.int32)
    chances = np.exp(model.log_posterior(scores).max(axis=1)) if model.has_probabilities else None
    if scores.shape[1] == 1:
        return best, chances, np.full(len(scores), np.inf)
    leading = np.partition(scores, -2, axis=1)[:, -2:]
    return best, chances, leading[:, 1] - leading[:, 0]


def _scores(run: ScoringRun) -> Iterator[Array]:
    for block in run.source.blocks(run.start, run.stop):
        yield score_block(run.model, block, run.what, run.source.trusted)


def _together(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _score_dataset(dataset: Dataset, model: Model, what: What, engine: Engine | None) -> Array:
    source = dataset.source
    runs = [ScoringRun(source, model, what, block, block + 1) for block in range(source.n_blocks)]
    with choose_engine(engine, source).mapping(source) as mapping:
        return _together(mapping(score_run, runs))


def _score_lazily(X: Any, model: Model, what: What) -> Any:
    blocks = CollectionSource(X).delayed
    shared = lazy_value("model", model.for_tasks())
    tasks = [(score_block, shared, block, what) for block in blocks]
    width = _width(model, what)
    chunks = (heights(X),) if width is None else (heights(X), (width,))
    meta = np.empty((0,) * len(chunks), _type_of(model, what))
    return lazy_array(what.replace("_", "-"), tasks, [blocks[0], shared], chunks, meta)


def _width(model: Model, what: What) -> int | None:
    """How many values a row gets; None where it gets a single one, without an axis for it."""
    if what == "whiten":
        return len(model.support)
    flat = what == "predict" or (what == "decision_function" and model.n_classes == 2)
    return None if flat else model.n_classes


def _type_of(model: Model, what: What) -> np.dtype[Any]:
    return model.classes.dtype if what == "predict" else np.dtype(np.float64)


def heights(X: Any) -> tuple[float, ...]:
    """Rows of each chunk of a Dask collection; NaN where they are not known."""
    return tuple(X.chunks[0]) if hasattr(X, "chunks") else (math.nan,) * X.npartitions
