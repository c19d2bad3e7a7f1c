"""The rows that are to be explained, out of all: chosen ones are found by their numbers, and no others are kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from nfs_dask.arrays.block import Array, Block, some_rows
from nfs_dask.containers import is_collection
from nfs_dask.documents.at_hand import batches
from nfs_dask.documents.document_source import DocumentProblem, shares
from nfs_dask.engine.engine import Engine
from nfs_dask.errors import InputError
from nfs_dask.prediction.model_rows import ReadDocuments, mapping_over
from nfs_dask.prediction.reader import Reader, TextSource
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

    @classmethod
    def of(cls, documents: Any) -> Choice:
        """Numbers as a user gives them."""
        if documents is None:
            return cls(None, None)
        advice = "give the numbers of documents from 0 on, such as [3, 17]"
        if isinstance(documents, (str, bytes)) or not isinstance(documents, Iterable):
            raise InputError(f"documents={documents!r}; {advice}")
        given = np.asarray(documents if hasattr(documents, "dtype") else list(documents))
        if given.size and (given.ndim != 1 or given.dtype.kind not in "iu" or int(given.min()) < 0):
            raise InputError(f"documents={documents!s:.60}; {advice}")
        given = given.astype(np.int64)
        _refuse_many(len(given))
        return cls(given, np.unique(given))

    def within(self, first: int, stop: int) -> Array:
        """The chosen ones of the rows ``first .. stop - 1``."""
        if self.numbers is None:
            _refuse_many(stop)
            return np.arange(first, stop)
        low, high = np.searchsorted(self.numbers, [first, stop])
        return self.numbers[low:high]

    def ends_before(self, row: int) -> bool:
        """Whether neither this row nor a later one is chosen."""
        return self.numbers is not None and (not len(self.numbers) or int(self.numbers[-1]) < row)

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
        raise InputError(f"documents={missing[0]} is not there: {there}; name others")


def _refuse_many(n: int) -> None:
    if n > MOST_DOCUMENTS:
        raise InputError(
            f"more than {MOST_DOCUMENTS:,} documents are to be explained; choose fewer, such as documents=[3, 17] or "
            "documents=range(100)"
        )


def chosen_rows(X: Explainable, choice: Choice, engine: Engine | None) -> Iterator[Rows]:
    """The chosen rows in order, lot by lot; at the end, chosen ones that are nowhere are refused."""
    found, seen, problems = [np.zeros(0, np.int64)], 0, dict[int, DocumentProblem]()
    if isinstance(X, Source):
        if choice.numbers is None:
            _refuse_many(X.n_rows)
        lots, seen = _rows_of_source(X, choice), max(0, X.n_rows)
        for rows in lots:
            found.append(rows.numbers)
            yield rows
    else:
        read = _read_documents(X, engine) if isinstance(X, ReadDocuments) else _read_texts(X)
        reader = X.reader
        counter = reader.counter()
        for numbers, stop, texts, left_out in read:
            kept = np.flatnonzero(np.isin(numbers, choice.within(seen, stop)))
            problems |= left_out
            seen = stop
            if len(kept):
                own = _some_texts(texts, kept, reader)
                counter.add(own)
                found.append(numbers[kept])
                yield Rows(numbers[kept], reader.block(counter.finish()), True, _grouped(own, reader))
            if choice.ends_before(stop):
                break
    choice.check(np.concatenate(found), seen, problems)


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


def _some_texts(texts: Strings, documents: Array, reader: Reader) -> Strings:
    n_regions = reader.features.n_regions
    return take(texts, (documents[:, None] * n_regions + np.arange(n_regions)).ravel())


def _grouped(texts: Strings, reader: Reader) -> list[tuple[str, ...]]:
    listed, n = texts.to_list(), reader.features.n_regions
    return [tuple(listed[i : i + n]) for i in range(0, len(listed), n)]


def _rows_of_source(source: Source, choice: Choice) -> Iterator[Rows]:
    """Rows of numbers, from the blocks that have them."""
    trusted, number, seen = source.trusted_for("real"), 0, 0
    while number < source.n_blocks and not choice.ends_before(seen):
        if choice.numbers is not None and source.n_rows > 0:
            number = _block_of(source, choice.within(seen, source.n_rows)[:1], number)
        for block in source.blocks(number, number + 1):
            first = block.first_row if source.n_rows >= 0 else seen
            rows, seen = choice.within(first, first + block.n_rows), first + block.n_rows
            if len(rows):
                mask = np.zeros(block.n_rows, bool)
                mask[rows - first] = True
                yield Rows(rows, some_rows(block, mask), trusted)
        number += 1


def _block_of(source: Source, row: Array, low: int) -> int:
    """The block that has a row, from ``low`` on: a look at where some begin. Without a row, behind the last."""
    high = source.n_blocks - 1
    if not len(row):
        return high
    middle = int(row[0]) * source.n_blocks // source.n_rows  # where it is if all are alike
    while low < high:
        middle = min(high, max(low + 1, middle))
        first = next(iter(source.blocks(middle, middle + 1)))
        if first.first_row <= row[0] < first.first_row + first.n_rows:
            return middle
        if first.first_row <= row[0]:
            low = middle
        else:
            high = middle - 1
        middle = (low + high + 1) // 2
    return low
