"""Looking up terms in a vocabulary on disk: their columns, and in how many documents they were.

Terms are sorted by name. The first one of each chunk says which chunks can hold a wanted term, and only these are read,
some of them at a time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.arrays.compiling import kernel
from nfs_dask.files.folder import Folder
from nfs_dask.store.header import Header
from nfs_dask.store.shards import ShardReader
from nfs_dask.store.stored_strings import StringsReader
from nfs_dask.store.stored_terms import PIECE, StoredTerms, checked_numbers
from nfs_dask.text.hashed_columns import hash_columns
from nfs_dask.text.ordering import find, take
from nfs_dask.text.strings import Strings

HELD_NBYTES = 32 << 20  # names of a vocabulary up to this size are kept, once they were read


class TermTable:
    """A vocabulary at rest. Travels to workers: holds places, sizes and the first term of each chunk.

    Besides, look-ups hold the wanted terms and those of `PIECE` columns, or of one chunk if that has more.
    """

    def __init__(self, terms: StoredTerms) -> None:
        self.terms = terms
        self.n_terms, self.n_documents = terms.n_terms, terms.n_documents
        self._frequencies = ShardReader(terms.folder, terms.frequencies)
        self._columns = None if terms.columns is None else ShardReader(terms.folder, terms.columns)
        self._names = terms.reader()
        self._firsts: Strings | None = None
        self._held: Strings | None = None

    @classmethod
    def of_store(cls, folder: Folder, header: Header) -> TermTable:
        """The vocabulary of a store that was made of texts."""
        return cls(StoredTerms.of_store(folder, header))

    @classmethod
    def open(cls, location: str | os.PathLike[str]) -> TermTable:
        """The vocabulary of the store at a path or URL, or the copy of one that `copy_to` made there."""
        return cls(StoredTerms.of(os.fspath(location)))

    def copy_to(self, folder: Folder) -> TermTable:
        """Write the same into a folder of its own, some terms at a time."""
        return TermTable(self.terms.copy(folder))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_held": None}

    def look_up(self, wanted: Strings) -> tuple[Array, Array]:
        """Column of each term, -1 where it is none of the vocabulary, and document frequency, 0 there; int64.

        Columns are those of the first region. Where columns are hashes, every term has one, and the frequency is that
        of all terms of the column.
        """
        if self.terms.bits is not None:
            columns = hash_columns(wanted, self.terms.bits)
            return columns, self.frequencies(columns)
        positions = self._positions(wanted)
        known = np.flatnonzero(positions >= 0)
        columns, frequencies = positions, np.zeros(len(wanted), np.int64)
        if self._columns is not None:
            columns[known] = self._gathered(self._columns, positions[known], self.n_terms)
        frequencies[known] = self.frequencies(columns[known])
        return columns, frequencies

    def frequencies(self, columns: Array) -> Array:
        """In how many documents the terms of some columns of the first region were."""
        return self._gathered(self._frequencies, columns, self.n_documents + 1)

    def _positions(self, wanted: Strings) -> Array:
        """Where each term is among the sorted ones; -1 where it is not."""
        if self.terms.prefix:
            wanted = wanted.after(self.terms.prefix.encode())
        positions = np.full(len(wanted), -1, np.int64)
        for start, stop, group in self._groups(self._chunks_of(wanted)):
            found = find(self._read_names(start, stop), take(wanted, group))
            positions[group] = np.where(found < 0, -1, start + found)
        return positions

    def _gathered(self, reader: ShardReader, positions: Array, below: int) -> Array:
        """The values at some positions, in their order."""
        values = np.empty(len(positions), np.int64)
        for start, stop, group in self._groups(positions // self.terms.chunk):
            values[group] = checked_numbers(reader, start, stop, below)[positions[group] - start]
        return values

    def _groups(self, chunks: Array) -> Iterator[tuple[int, int, Array]]:
        """Terms to be read together, from chunks that were asked for one after another, and who asked for them."""
        size, most = self.terms.chunk, max(1, PIECE // self.terms.chunk)
        order = np.argsort(chunks, kind="stable")
        asked = chunks[order]
        at = int(np.searchsorted(asked, 0))  # what is before the first chunk is nowhere
        while at < len(order):
            first = last = int(asked[at])
            stop = int(np.searchsorted(asked, first, side="right"))
            while stop < len(order) and asked[stop] == last + 1 < first + most:
                last += 1
                stop = int(np.searchsorted(asked, last, side="right"))
            yield first * size, min((last + 1) * size, self.n_terms), order[at:stop]
            at = stop

    def _chunks_of(self, wanted: Strings) -> Array:
        """The chunk that holds each term, if any does; -1 for those before all."""
        if self._firsts is None:
            self._firsts = self._read_firsts()
        chunks = np.empty(len(wanted), np.int64)
        _last_not_after(self._firsts.offsets, self._firsts.text, wanted.offsets, wanted.text, chunks)
        return chunks

    def _read_firsts(self) -> Strings:
        terms = self.terms
        if terms.firsts is not None:
            return StringsReader(terms.folder, *terms.firsts).read(0, -(-self.n_terms // terms.chunk))
        assert self._names is not None
        return Strings.joined([self._names.read(at, at + 1) for at in range(0, self.n_terms, terms.chunk)])

    def _read_names(self, start: int, stop: int) -> Strings:
        names = self._names
        assert names is not None, "columns that are no hashes have names"
        if self._held is None:
            nbytes = names.offsets.numbers.length * names.offsets.numbers.itemsize + names.text.numbers.length
            if nbytes > HELD_NBYTES:
                return names.read(start, stop)
            self._held = names.read(0, self.n_terms)
        return self._held.part(start, stop)


@kernel
def _last_not_after(offsets, text, wanted_offsets, wanted_text, found):
    """The last of the sorted strings that is the wanted one or comes before it; -1 where all come after."""
    for i in range(len(found)):
        stop = wanted_offsets[i + 1]
        low, high = np.int64(0), np.int64(len(offsets) - 1)
        while low < high:
            middle = (low + high) >> 1
            a, b = offsets[middle], wanted_offsets[i]
            while a < offsets[middle + 1] and b < stop and text[a] == wanted_text[b]:
                a += 1
                b += 1
            if a == offsets[middle + 1] or (b < stop and text[a] < wanted_text[b]):
                low = middle + 1
            else:
                high = middle
        found[i] = low - 1
