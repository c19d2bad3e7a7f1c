"""Documents: where they come from, and what is wrong with some of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol, Self

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.documents.parameters import DocumentParameters, OnError
from nfs_dask.sources.conditions import Condition
from nfs_dask.sources.source import Mapping as Tasks
from nfs_dask.text.ordering import take
from nfs_dask.text.strings import Strings

ProblemKind = Literal["undecodable", "missing", "label", "weight", "broken"]

BATCH_NBYTES = 4 << 20  # of text that a batch aims at: large enough for kernels, small beside any budget
PIECE_NBYTES = 4 << 20  # of text that a piece aims at, where files can be cut: enough to keep two workers busy
FEWEST_TASKS = 16  # where there are as many pieces
MOST_PIECES = 16  # of a task


@dataclass(frozen=True, slots=True)
class DocumentProblem:
    """One document, line or file that was not as it should be, and was left out."""

    kind: ProblemKind
    where: str  # file and line, or file and row, or the document's number
    what: str


@dataclass(frozen=True, slots=True)
class Batch:
    """Some documents, one after another. Problems are only those of documents left out under ``on_error="skip"``.

    Documents that were not asked for are among the seen and the skipped, and are no problems.
    """

    texts: tuple[Strings, ...]  # one for each region, each of n_documents
    labels: Any = (
        None  # (n_documents,) as they came: array or list without missing ones; None: no labels were asked for
    )
    weights: Array | None = None  # (n_documents,)
    seen: int = 0  # documents looked at, those left out among them
    skipped: Array = field(default_factory=lambda: np.zeros(0, np.int64))  # those of the seen not here, ascending
    problems: tuple[DocumentProblem, ...] = ()  # of those among the skipped that were bad
    empty: int = 0  # documents of nothing but white space, in all their regions
    others: Mapping[str, Any] = field(default_factory=dict)  # values of further columns that were asked for
    found: tuple[tuple[str, ...], ...] = ()  # for each condition, values of its column among the seen

    @property
    def n_documents(self) -> int:
        return len(self.texts[0]) if self.texts else self.seen - len(self.skipped)

    @property
    def rows(self) -> Array:
        """Which of the documents seen these are."""
        seen = np.arange(self.seen)
        return np.delete(seen, self.skipped) if len(self.skipped) else seen

    def document_by_document(self) -> Strings:
        """The texts of all regions, those of one document after another."""
        if len(self.texts) == 1:
            return self.texts[0]
        n, regions = self.n_documents, len(self.texts)
        return take(Strings.joined(self.texts), np.arange(n * regions).reshape(regions, n).T.ravel())


@dataclass(frozen=True)
class TextColumns:
    """What to read of each document, and what to do about a bad one."""

    text: tuple[str, ...] = ()  # columns of texts, one for each region; empty: documents are texts themselves
    label: str | None = None  # column
    weight: str | None = None  # column
    encoding: str = DocumentParameters.encoding
    on_error: OnError = DocumentParameters.on_error
    where: tuple[Condition, ...] = ()  # of which all have to hold
    kept: tuple[str, ...] = ()  # further columns, whose values batches have
    delimiter: str | None = None  # of CSV; None: as the name of the file says
    numbers: tuple[str, ...] = ()  # columns that are features, of rows without texts

    @property
    def others(self) -> tuple[str, ...]:
        """Columns that are read beside texts, labels and weights."""
        return tuple(dict.fromkeys([*(one.column for one in self.where), *self.kept, *self.numbers]))

    @property
    def names(self) -> list[str]:
        """All columns that are read."""
        beside = [name for name in (self.label, self.weight) if name is not None]
        return list(dict.fromkeys([*self.text, *beside, *self.others]))

    @property
    def n_regions(self) -> int:
        return len(self.text) if self.numbers else max(1, len(self.text))

    def to_json(self) -> dict[str, Any]:
        """What decides how a good document is read; what is done about bad ones is no part of that."""
        facts = asdict(self)
        del facts["on_error"]
        return {
            name: value
            for name, value in facts.items()
            if value or name not in ("where", "kept", "delimiter", "numbers")
        }


class DocumentSource(Protocol):
    """Documents in pieces, each read by one task, in order.

    Travels to workers: holds paths and small facts. Sources of what the caller has in memory say so with ``in_memory``
    and stay here; those whose pieces are Dask tasks have them in ``delayed``.
    """

    columns: TextColumns
    region_names: Sequence[str]  # one for each text of a document; none where a document is one text
    labelled: bool  # whether batches carry labels
    weighted: bool
    in_memory: bool
    delayed: Sequence[Any] | None  # one lazy value for each piece, which `batches` takes in place of its number
    nbytes: int | None  # about what is read, where known
    import_nbytes: int  # memory of libraries that only this source needs
    fingerprint: str | None  # changes when the documents do; None: cannot be told

    @property
    def n_pieces(self) -> int: ...

    def batches(self, piece: Any) -> Iterator[Batch]:
        """The documents of one piece, some megabytes at a time; bad ones raise InputError, or are left out."""
        ...


class ListedPieces:
    """A source that lists its pieces, so that a task can take along those it reads, and leave the others."""

    region_names: Sequence[str] = ()
    there: Sequence[str] = ()  # names of all columns, where the documents have any
    pieces: Sequence[Any]
    in_memory = False
    weighted = False
    delayed: Sequence[Any] | None = None
    import_nbytes = 0
    nbytes: int | None = None
    fingerprint: str | None = None

    @property
    def n_pieces(self) -> int:
        return len(self.pieces)

    def look(self, mapping: Tasks) -> None:
        """Find out as tasks, ``mapping(function, items)``, where pieces begin; most tell that from sizes and names."""
        return

    def only(self, start: int, stop: int) -> Self:
        """The same source with pieces ``start .. stop - 1``, numbered from 0."""
        some = copy(self)
        some.pieces = self.pieces[start:stop]
        return some


def shares(documents: DocumentSource, mapping: Tasks) -> Iterator[tuple[Any, range]]:
    """Pieces for one task after another, with what it needs of their source.

    They follow from the documents alone, so that work that goes on elsewhere has the same tasks. Where they begin may
    take tasks to find out, which ``mapping`` runs.
    """
    if isinstance(documents, ListedPieces):
        documents.look(mapping)
    if documents.delayed is not None:
        lean: Any = copy(documents)  # each task gets its own partition, and not the graph of all
        lean.delayed = None
        yield from ((lean, range(1)) for _ in range(documents.n_pieces))
        return
    step = max(1, min(MOST_PIECES, documents.n_pieces // FEWEST_TASKS))
    for start in range(0, documents.n_pieces, step):
        stop = min(start + step, documents.n_pieces)
        if isinstance(documents, ListedPieces):
            yield documents.only(start, stop), range(stop - start)
        else:
            yield documents, range(start, stop)
