"""Some columns, blocks or classes of a source, as a source of its own.

A view reads what its source reads and hands out less of it. Its fingerprint is its own; `origin` is the data that it
is taken from in the end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import groupby
from typing import Any

import numba
import numpy as np

from nfs_dask.arrays.block import (
    UNLABELLED,
    Array,
    Block,
    canonical,
    check_structure,
    column_type,
    full_rows,
    some_rows,
    without_zeros,
)
from nfs_dask.arrays.compiling import kernel
from nfs_dask.errors import InputError
from nfs_dask.graphs import lazy_tasks, lazy_value
from nfs_dask.sources.source import Sizes, Source

_WORD = 64  # columns that one word of a `ColumnChoice` has a bit for


def some_columns(source: Source, columns: Array) -> Source:
    """The source with these columns alone, ascending numbers; the source itself where they are all of its columns."""
    columns = _ascending(columns, source.n_features, "columns")
    if len(columns) == source.n_features:
        return source
    return _Columns(source, ColumnChoice(columns, source.n_features))


def some_blocks(source: Source, numbers: Array) -> Source:
    """The source with these blocks alone, ascending numbers; the source itself where they are all of its blocks.

    Blocks keep their numbers and the numbers of their rows, so that messages name the data as users know them.
    """
    numbers = _ascending(numbers, source.n_blocks, "blocks")
    if len(numbers) == source.n_blocks:
        return source
    return _Blocks(source, numbers)


def some_classes(source: Source, positions: Array) -> Source:
    """The source with the documents of these classes alone, ascending positions among its own, numbered anew."""
    assert source.classes is not None, "only documents with labels have classes"
    codes = np.full(len(source.classes), UNLABELLED, np.int32)
    codes[positions] = np.arange(len(positions), dtype=np.int32)
    step = partial(_of_classes, codes=codes)
    return View(source, "classes", positions, step, n_rows=-1, classes=source.classes[positions])


def _of_classes(block: Block, codes: Array) -> Block:
    """The rows of a block that have a code of their own; rows without a label stay, so that they are refused."""
    renumbered = np.append(codes, np.int32(UNLABELLED))[block.codes]  # the code -1 finds the last entry
    return some_rows(replace(block, codes=renumbered), (renumbered != UNLABELLED) | (block.codes == UNLABELLED))


@dataclass(frozen=True)
class ColumnChoice:
    """Some of the columns of a matrix, and how to take them out of a block."""

    columns: Array  # (U,) int64, ascending
    n_features: int

    @property
    def nbytes(self) -> int:
        """Bytes of the columns, and of the bits by which they are found."""
        return int(self.columns.nbytes + 3 * self.n_features // 16)

    def of(self, block: Block) -> Block:
        """The block with these columns alone, under their new numbers. It must have passed `check_structure`."""
        if block.full:
            matrix = block.data.reshape(block.n_rows, block.n_features)
            indptr, indices, data, full = full_rows(np.take(matrix, self.columns, axis=1))
        else:
            words, ranks = self._bits
            indptr = np.zeros(block.n_rows + 1, np.int64)
            _count(block.indptr, block.indices, words, indptr)
            indices, data = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], block.data.dtype)
            _take(block.indptr, block.indices, block.data, words, ranks, indices, data)
            full = False
        return replace(block, indptr=indptr, indices=indices, data=data, n_features=len(self.columns), full=full)

    @cached_property
    def _bits(self) -> tuple[Array, Array]:
        """A bit for each column that says whether it is among these, and how many are before each word of bits."""
        words = np.zeros(-(-self.n_features // _WORD), np.uint64)
        bits = np.uint64(1) << (self.columns % _WORD).astype(np.uint64)
        np.bitwise_or.at(words, self.columns // _WORD, bits)
        starts = np.arange(len(words), dtype=np.int64) * _WORD
        return words, np.searchsorted(self.columns, starts).astype(np.int32)

    def __getstate__(self) -> dict[str, Any]:
        return {"columns": self.columns, "n_features": self.n_features}


Step = Callable[[Block], Block]


class View(Source):
    """Another source, of which something becomes block by block.

    Parameters
    ----------
    source
        What this is a view of, which may be a view itself.
    what, chosen
        A word and numbers that tell the view from others of the source: for its fingerprint, and names of tasks.
    step
        What becomes of each block, once it has been checked; None: nothing.
    changed
        Facts that are others than those of the source. Entries are not counted where nobody says how many there are.
    """

    numbers: Array | None = None  # which blocks of the underlying source there are; None: all of them
    column_choice: ColumnChoice | None = None  # which of its columns; None: all of them

    def __init__(self, source: Source, what: str, chosen: Array, step: Step | None = None, **changed: Any) -> None:
        self.underlying, self.step = source, step
        fingerprint = None if source.fingerprint is None else _digest(source.fingerprint, what, chosen)
        self._facts = replace(source.facts, **{"nnz": None, "fingerprint": fingerprint, **changed})
        self.delayed = source.delayed
        if source.delayed is not None and step is not None:
            shared = lazy_value(f"{what}-step", step)
            tasks = [(self._stepped, block, shared) for block in source.delayed]
            self.delayed = lazy_tasks(what, tasks, [source.delayed[0], shared])

    @property
    def sizes(self) -> Sizes:
        return self.underlying.sizes

    @property
    def origin(self) -> Source:
        return self.underlying.origin

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        for block in self.underlying.blocks(start, stop):
            yield block if self.step is None else self._stepped(block, self.step, self.trusted)

    def rows_of_blocks(self) -> Array | None:
        rows = self.underlying.rows_of_blocks()
        return rows if rows is None or self.numbers is None else rows[self.numbers]

    def names(self, columns: Array) -> list[str] | None:
        return self.underlying.names(columns)

    @staticmethod
    def _stepped(block: Block, step: Step, trusted: bool = False) -> Block:
        if not trusted:
            check_structure(block)
        return step(block)


class _Columns(View):
    """Some columns of a source."""

    def __init__(self, source: Source, choice: ColumnChoice) -> None:
        width, carried = len(choice.columns), source.import_nbytes + choice.nbytes
        super().__init__(source, "columns", choice.columns, choice.of, n_features=width, import_nbytes=carried)
        self.column_choice = choice

    def names(self, columns: Array) -> list[str] | None:
        assert self.column_choice is not None
        return self.underlying.names(self.column_choice.columns[columns])


class _Blocks(View):
    """Some blocks of a source, of which nobody knows how many rows they have."""

    def __init__(self, source: Source, numbers: Array) -> None:
        super().__init__(source, "blocks", numbers, n_blocks=len(numbers), n_rows=-1)
        self.numbers = numbers
        if source.delayed is not None:
            self.delayed = [source.delayed[number] for number in numbers.tolist()]

    @property
    def sizes(self) -> Sizes:
        whole = self.underlying
        return replace(whole.sizes, read_nbytes=whole.read_nbytes * self.n_blocks // whole.n_blocks)

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        assert self.numbers is not None
        for first, last in _ranges(self.numbers[start:stop].tolist()):
            yield from self.underlying.blocks(first, last)


class Renumbered(View):
    """A source whose columns have other numbers, among columns that are empty.

    Parameters
    ----------
    source
    numbers : (n_features of the source,) of its columns, in any order
    names
        Of columns by their new numbers.
    n_features
        How many columns there are then.
    """

    def __init__(self, source: Source, numbers: Array, names: Mapping[int, str], n_features: int) -> None:
        step = partial(_renumbered, numbers=numbers, n_features=n_features)
        super().__init__(source, "numbers", np.append(numbers, n_features), step, n_features=n_features)
        self._called = names

    def names(self, columns: Array) -> list[str] | None:
        return [self._called.get(column, "") for column in columns.tolist()]


def _renumbered(block: Block, numbers: Array, n_features: int) -> Block:
    block = without_zeros(block)
    indices = numbers[block.indices].astype(column_type(n_features))
    return canonical(replace(block, indices=indices, n_features=n_features))[0]


def _ranges(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Runs of neighbours among ascending numbers, half-open."""
    for _, group in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        run = [number for _, number in group]
        yield run[0], run[-1] + 1


def _ascending(numbers: Array, most: int, what: str) -> Array:
    numbers = np.asarray(numbers, np.int64)
    if not len(numbers) or numbers[0] < 0 or numbers[-1] >= most or np.any(numbers[1:] <= numbers[:-1]):
        raise InputError(f"{what} {numbers} of {most}; give at least one, in ascending order, of 0 to {most - 1}")
    return numbers


def _digest(fingerprint: str, kind: str, chosen: Array) -> str:
    digest = hashlib.blake2b(f"{fingerprint} {kind} ".encode(), digest_size=16)
    digest.update(np.ascontiguousarray(chosen, "<i8").tobytes())
    return digest.hexdigest()


@numba.njit(nogil=True, inline="always")
def _bits_in(word):
    """How many bits of a word are set: counted in pairs, in fours, in bytes, then over the bytes."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@kernel
def _count(indptr, indices, words, out):
    """Row pointers of the entries whose column has its bit set."""
    for i in range(len(indptr) - 1):
        n = np.int64(0)
        for j in range(indptr[i], indptr[i + 1]):
            column = np.int64(indices[j])
            n += np.int64((words[column >> 6] >> np.uint64(column & 63)) & np.uint64(1))
        out[i + 1] = out[i] + n


@kernel
def _take(indptr, indices, data, words, ranks, out_indices, out_data):
    """Those entries in their order, with the number of bits set before theirs as their column."""
    p = np.int64(0)
    for j in range(indptr[0], indptr[len(indptr) - 1]):
        column = np.int64(indices[j])
        bit = np.uint64(column & 63)
        word = words[column >> 6]
        if (word >> bit) & np.uint64(1):
            before = word & ((np.uint64(1) << bit) - np.uint64(1))
            out_indices[p] = ranks[column >> 6] + _bits_in(before)
            out_data[p] = data[j]
            p += 1
