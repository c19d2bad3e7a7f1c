"""The rows that are to be explained, out of all: chosen ones are found by their numbers, and no others are kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from nfs_dask.arrays.block import Array, Block, some_rows
from nfs_dask.containers import is_collection
from nfs_dask.documents.document_source import DocumentProblem, shares
from nfs_dask.documents.in_memory import batches
from nfs_dask.engine.engine import Engine
from nfs_dask.errors import InputError
from nfs_dask.prediction.model_rows import ReadDocuments, mapping_over
from nfs_dask.prediction.reader import TextSource
from nfs_dask.sources.source import Source
from nfs_dask.text.ordering import take
from nfs_dask.text.strings import Strings

MOST_DOCUMENTS = 100_000

Explainable: TypeAlias = Source | TextSource | ReadDocuments


class Rows(NamedTuple):
    """Some of the rows."""

    numbers: Array  # (n,) int64
    block: Block
    trusted: bool
    texts: list[tuple[str, ...]] | None = None  # of each document one for each region; None of rows of numbers


@dataclass(frozen=True)
class Choice:
    """Which rows to look at."""

    given: Array | None  # in the order wanted; None: all
    numbers: Array | None  # the same, ascending and distinct
    first: int | None = None  # in place of these: only the first ones that are there

    @classmethod
    def of(cls, documents: Any, first: int | None = None) -> Choice:
        """Numbers as a user gives them."""
        if documents is None:
            return cls(None, None, first)
        advice = "give the numbers of documents from 0 on, such as [3, 17]"
        if isinstance(documents, (str, bytes)) or not isinstance(documents, Iterable):
            raise InputError(f"documents={documents!r}; {advice}")
        given = np.asarray(documents if hasattr(documents, "dtype") else list(documents))
        if given.size and (given.ndim != 1 or given.dtype.kind not in "iu" or int(given.min()) < 0):
            raise InputError(f"documents={documents!s:.60}; {advice}")
        given = given.astype(np.int64)
        _refuse_many(len(given))
        return cls(given, np.unique(given))

    def among(self, rows: Array, n_before: int) -> Array:
        """Which of some rows are chosen, by their positions; of the rows before them so many were."""
        if self.numbers is not None:
            return np.flatnonzero(np.isin(rows, self.numbers))
        if self.first is None:
            _refuse_many(n_before + len(rows))
            return np.arange(len(rows))
        return np.arange(min(len(rows), self.first - n_before))

    def next_from(self, row: int) -> int | None:
        """The first chosen number from a row on; None without one, or without numbers."""
        place = 0 if self.numbers is None else int(np.searchsorted(self.numbers, row))
        return None if self.numbers is None or place == len(self.numbers) else int(self.numbers[place])

    def ends_before(self, row: int, n_before: int) -> bool:
        """Whether neither this row nor a later one is chosen; of the rows before it so many were."""
        if self.numbers is None:
            return self.first is not None and n_before >= self.first
        return self.next_from(row) is None

    def check(self, found: Array, n_rows: int, problems: dict[int, DocumentProblem]) -> None:
        """Refuse numbers that were not found among so many rows."""
        missing = [] if self.numbers is None else np.setdiff1d(self.numbers, found).tolist()
        if not missing:
            return
        if (problem := problems.get(missing[0])) is not None:
            raise InputError(f"document {missing[0]} was left out, {problem.where}: {problem.what}; name another one")
        if missing[0] < n_rows:
            raise InputError(f"document {missing[0]} is not one of those that were asked for; name another one")
        there = f"there are {n_rows:,}, numbered from 0" if n_rows else "there are none"
        raise InputError(f"document {missing[0]} is not there: {there}; name others")


def _refuse_many(n: int) -> None:
    if n > MOST_DOCUMENTS:
        raise InputError(
            f"more than {MOST_DOCUMENTS:,} documents are to be explained; choose fewer, such as documents=[3, 17] or "
            "documents=range(100)"
        )


def chosen_rows(X: Explainable, choice: Choice, engine: Engine | None) -> Iterator[Rows]:
    """The chosen rows in order, lot by lot; at the end, chosen ones that are nowhere are refused."""
    found, n_rows, problems = np.zeros(0, np.int64), 0, dict[int, DocumentProblem]()
    read = _rows_of_source(X, choice) if isinstance(X, Source) else _rows_of_texts(X, choice, engine)
    for rows, seen, left_out in read:
        n_rows = seen
        problems |= {number: one for number, one in left_out.items() if choice.next_from(number) == number}
        if rows is not None:
            found = np.concatenate([found, rows.numbers])
            yield rows
    choice.check(found, n_rows, problems)


_Lots: TypeAlias = Iterator[tuple[Rows | None, int, dict[int, DocumentProblem]]]  # rows, how many were seen, left out


def _rows_of_texts(X: TextSource | ReadDocuments, choice: Choice, engine: Engine | None) -> _Lots:
    reader, n = X.reader, 0
    counter = reader.counter()
    for read in _read_documents(X, engine) if isinstance(X, ReadDocuments) else _read_texts(X):
        kept, rows = choice.among(read.numbers, n), None
        if len(kept):
            own = _some_texts(read.texts, kept, reader.features.n_regions)
            counter.add(own)
            rows = Rows(
                read.numbers[kept], reader.block(counter.finish()), True, _grouped(own, reader.features.n_regions)
            )
            n += len(kept)
        yield rows, read.stop, read.left_out
        if choice.ends_before(read.stop, n):
            break


class _Read(NamedTuple):
    """Some documents, one after another."""

    numbers: Array  # (n,) int64
    stop: int  # the number of the next document, whether or not it is read
    texts: Strings  # of all regions, document after document
    left_out: dict[int, DocumentProblem]


def _read_texts(X: TextSource) -> Iterator[_Read]:
    """Documents in memory."""
    if is_collection(X.given):
        raise InputError(
            "X is a Dask collection, and an explanation is of documents at hand; compute some of them, such as "
            "X.partitions[0].compute(), or X.take(5) of a bag"
        )
    first, n_regions = 0, X.reader.features.n_regions
    for texts in batches(X.given, X.reader.features.regions, X.where):
        stop = first + len(texts) // n_regions
        yield _Read(np.arange(first, stop), stop, texts, {})
        first = stop


def _read_documents(X: ReadDocuments, engine: Engine | None) -> Iterator[_Read]:
    """Documents in files; those that were left out are numbered, too."""
    first = 0
    with mapping_over(X, engine) as mapping:
        for own, pieces in shares(X.documents, mapping):
            for batch in (batch for piece in pieces for batch in own.batches(piece)):
                skipped = (batch.skipped + first).tolist()
                problems = (
                    dict(zip(skipped, batch.problems, strict=False)) if len(skipped) == len(batch.problems) else {}
                )
                stop = first + batch.seen
                yield _Read(batch.rows + first, stop, batch.document_by_document(), problems)
                first = stop


def texts_of(texts: Strings, documents: Array, n_regions: int) -> list[tuple[str, ...]]:
    """The texts of some documents, of each one for each region, out of those of all, document after document."""
    return _grouped(_some_texts(texts, documents, n_regions), n_regions)


def _some_texts(texts: Strings, documents: Array, n_regions: int) -> Strings:
    return take(texts, (documents[:, None] * n_regions + np.arange(n_regions)).ravel())


def _grouped(texts: Strings, n_regions: int) -> list[tuple[str, ...]]:
    listed = texts.to_list()
    return [tuple(listed[i : i + n_regions]) for i in range(0, len(listed), n_regions)]


def _rows_of_source(source: Source, choice: Choice) -> _Lots:
    """Rows of numbers, from the blocks that have them."""
    if choice.numbers is None and choice.first is None:
        _refuse_many(source.n_rows)
    if choice.numbers is not None and source.n_rows >= 0:
        choice.check(choice.numbers[choice.numbers < source.n_rows], source.n_rows, {})  # before anything is read
    trusted, number, seen, n = source.trusted_for("real"), 0, 0, 0
    while number < source.n_blocks and not choice.ends_before(seen, n):
        following = choice.next_from(seen)
        if following is not None and following > 0 and source.n_rows > 0:
            number = _block_of(source, following, number)
        for block in source.blocks(number, number + 1):
            first = block.first_row if source.n_rows >= 0 else seen
            rows = np.arange(first, first + block.n_rows)
            kept, seen = choice.among(rows, n), first + block.n_rows
            mask = np.zeros(block.n_rows, bool)
            mask[kept] = True
            yield Rows(rows[kept], some_rows(block, mask), trusted) if len(kept) else None, max(seen, source.n_rows), {}
            n += len(kept)
        number += 1


def _block_of(source: Source, row: int, low: int) -> int:
    """The block that has a row, from ``low`` on: a look at where some begin."""
    high = source.n_blocks - 1
    middle = row * source.n_blocks // source.n_rows  # where it is if all are alike
    while low < high:
        middle = min(high, max(low + 1, middle))
        first = next(iter(source.blocks(middle, middle + 1)))
        if first.first_row <= row < first.first_row + first.n_rows:
            return middle
        if first.first_row <= row:
            low = middle
        else:
            high = middle - 1
        middle = (low + high + 1) // 2
    return low
