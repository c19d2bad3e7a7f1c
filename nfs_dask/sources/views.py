"""Some columns or some blocks of a source, as a source of its own.

A view reads what its source reads and hands out less of it. Its fingerprint is its own; `origin` is the data that it
is taken from in the end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any

import numba
import numpy as np

from nfs_dask.arrays.block import Array, Block, Kind, check_structure, full_rows
from nfs_dask.arrays.kernels import kernel
from nfs_dask.errors import InputError
from nfs_dask.graphs import lazy_tasks, lazy_value
from nfs_dask.sources.source import Source, is_delayed, origin_of

_WORD = 64  # columns that one word of a `ColumnChoice` has a bit for


def some_columns(source: Source, columns: Array) -> Source:
    """The source with these columns alone, ascending numbers; the source itself where they are all of its columns."""
    columns = _ascending(columns, source.n_features, "columns")
    if len(columns) == source.n_features:
        return source
    view: Any = _Columns(source, ColumnChoice(columns, source.n_features))  # some of its sizes are read-only
    return view


def some_blocks(source: Source, numbers: Array) -> Source:
    """The source with these blocks alone, ascending numbers; the source itself where they are all of its blocks.

    Blocks keep their numbers and the numbers of their rows, so that messages name the data as users know them.
    """
    numbers = _ascending(numbers, source.n_blocks, "blocks")
    if len(numbers) == source.n_blocks:
        return source
    view: Any = _Blocks(source, numbers)
    return view


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


class View:
    """What all views take over from their source."""

    def __init__(self, source: Source, kind: str, chosen: Array) -> None:
        self._source = source
        self.n_rows, self.n_features, self.n_blocks = source.n_rows, source.n_features, source.n_blocks
        self.kind: Kind | None = source.kind
        self.nnz: int | None = None
        self.classes = source.classes
        self.weighted, self.in_memory, self.trusted = source.weighted, source.in_memory, source.trusted
        self.import_nbytes = source.import_nbytes
        self.fingerprint = None if source.fingerprint is None else _digest(source.fingerprint, kind, chosen)

    @property
    def origin(self) -> Source:
        """The data that this is a view of."""
        return origin_of(self._source)

    @property
    def underlying(self) -> Source:
        """What this is a view of, which may be a view itself."""
        return self._source

    @property
    def step(self) -> Step | None:
        """What becomes of each block of the underlying source, once it has been checked; None: nothing."""
        return None

    @property
    def numbers(self) -> Array | None:
        """Which blocks of the underlying source there are; None: all of them."""
        return None

    @property
    def block_entries(self) -> int:
        return self._source.block_entries

    @property
    def block_nbytes(self) -> int:
        return self._source.block_nbytes

    @property
    def read_nbytes(self) -> int:
        return self._source.read_nbytes


class _Columns(View):
    """Some columns of a source."""

    def __init__(self, source: Source, choice: ColumnChoice) -> None:
        super().__init__(source, "columns", choice.columns)
        self._choice = choice
        self.n_features = len(choice.columns)
        self.import_nbytes += choice.nbytes
        if is_delayed(source):
            shared = lazy_value("choice", choice)
            tasks = [(_chosen, block, shared) for block in source.delayed]
            self.delayed = lazy_tasks("columns", tasks, [source.delayed[0], shared])

    @property
    def step(self) -> Step | None:
        return self._choice.of

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        for block in self._source.blocks(start, stop):
            yield self._choice.of(block) if self.trusted else _chosen(block, self._choice)

    def names(self, columns: Array) -> list[str] | None:
        return self._source.names(self._choice.columns[columns])


class _Blocks(View):
    """Some blocks of a source."""

    def __init__(self, source: Source, numbers: Array) -> None:
        super().__init__(source, "blocks", numbers)
        self._numbers = numbers
        self.n_blocks = len(numbers)
        self.n_rows = -1  # not known before they are read
        if is_delayed(source):
            self.delayed = [source.delayed[number] for number in numbers.tolist()]

    @property
    def numbers(self) -> Array | None:
        return self._numbers

    @property
    def read_nbytes(self) -> int:
        return self._source.read_nbytes * self.n_blocks // self._source.n_blocks

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        for first, last in _ranges(self._numbers[start:stop].tolist()):
            yield from self._source.blocks(first, last)

    def names(self, columns: Array) -> list[str] | None:
        return self._source.names(columns)


def _chosen(block: Block, choice: ColumnChoice) -> Block:
    check_structure(block)
    return choice.of(block)


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
