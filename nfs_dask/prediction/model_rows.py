"""What a model is asked about, cut into tasks: rows of any source, or documents that a reader makes rows of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, Literal, TypeAlias

from nfs_dask.arrays.block import Array, Block
from nfs_dask.dataset import Dataset
from nfs_dask.documents.document_source import Batch, DocumentSource, shares
from nfs_dask.engine.choose import choose_engine
from nfs_dask.engine.engine import Engine, Mapping
from nfs_dask.models.model import Model
from nfs_dask.prediction.reader import Reader, TextSource
from nfs_dask.sources.source import Source

TOGETHER = 64  # tasks whose results are held at once

What = Literal[
    "predict", "predict_proba", "predict_log_proba", "decision_function", "scores", "joint_log_likelihood", "whiten"
]


@dataclass(frozen=True)
class ReadDocuments:
    """Documents and who reads them, as rows over the columns of a model: a block for each piece. Travels to workers."""

    documents: DocumentSource
    reader: Reader

    trusted: ClassVar[bool] = True
    classes: ClassVar[Array | None] = None

    @property
    def n_features(self) -> int:
        return self.reader.model.n_features

    @property
    def n_blocks(self) -> int:
        return self.documents.n_pieces

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        """Rows of some pieces: at least one block, also of no documents."""
        block = None
        for block, _ in self.read(start, stop):
            yield block
        if block is None:
            yield self.reader.block(self.reader.counter().finish())

    def read(self, start: int, stop: int) -> Iterator[tuple[Block, Batch]]:
        """Rows, and the batch they come from, which has their labels: nobody knows all classes before the end."""
        counter = self.reader.counter()
        for batch in chain.from_iterable(map(self.documents.batches, range(start, stop))):
            counter.add(batch.document_by_document())
            yield self.reader.block(counter.finish(), weights=batch.weights), batch


ModelRows: TypeAlias = Source | TextSource | ReadDocuments
Asked: TypeAlias = Dataset | ReadDocuments


@dataclass(frozen=True, slots=True)
class ModelTask:
    """Blocks that one task asks a model about."""

    rows: ModelRows
    start: int
    stop: int
    model: Model
    what: What = "scores"
    keep: int = 0  # so many of the hardest documents

    @property
    def trusted(self) -> bool:
        """Whether models need not look at values; stored negative ones are not for each of them."""
        return self.rows.trusted_for("real") if isinstance(self.rows, Source) else self.rows.trusted

    def read(self) -> Iterator[tuple[Block, Batch | None]]:
        """The rows, and the batch of documents they come from; None for rows of numbers."""
        if isinstance(self.rows, ReadDocuments):
            yield from self.rows.read(self.start, self.stop)
        else:
            yield from ((block, None) for block in self.rows.blocks(self.start, self.stop))


def asked_in_turn(
    function: Callable[[ModelTask], Any],
    asked: Asked,
    model: Model,
    engine: Engine | None,
    what: What = "scores",
    *,
    together: int | None = None,
    keep: int = 0,
) -> Iterator[Any]:
    """What a function finds in each task, in order; the results of so many tasks, or of all, are held at once."""
    with mapping_over(asked, engine) as mapping:
        tasks = [ModelTask(*part, model, what, keep) for part in parts_of(asked, mapping)]
        step = together or max(1, len(tasks))
        for first in range(0, len(tasks), step):
            yield from mapping(function, tasks[first : first + step])


def parts_of(asked: Asked, mapping: Mapping) -> Iterator[tuple[ModelRows, int, int]]:
    """What each task reads: rows, and which of their blocks."""
    if isinstance(asked, ReadDocuments):
        for own, pieces in shares(asked.documents, mapping):
            yield ReadDocuments(own, asked.reader), pieces.start, pieces.stop
    else:
        yield from ((asked.source, block, block + 1) for block in range(asked.source.n_blocks))


@contextmanager
def mapping_over(asked: Asked, engine: Engine | None) -> Iterator[Mapping]:
    """A plain ``map(function, items)`` where rows are read; without an engine, where one would be chosen."""
    if isinstance(asked, ReadDocuments):
        with choose_engine(engine, asked.documents).executor() as executor:
            yield executor.map_items
    else:
        with choose_engine(engine, asked.source).mapping(asked.source) as mapping:
            yield mapping
