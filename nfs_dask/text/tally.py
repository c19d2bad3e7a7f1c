"""The terms met so far and how often each text has them, in arrays that grow."""

from __future__ import annotations

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError
from nfs_dask.text import text_kernels as kernels
from nfs_dask.text.analysis import Slices, grown
from nfs_dask.text.strings import Strings, TermCounts

MOST = (1 << 31) - 1  # terms, and entries: they are numbered in 32 bits


class TermIndex:
    """An open-addressing table of distinct terms, which are numbered as they come.

    A slice whose hash is in the table is compared with the name there, byte by byte: terms are told apart exactly.
    """

    def __init__(self, capacity: int) -> None:
        self._slots = np.zeros(kernels.n_slots(capacity), np.uint64)
        self._hashes = np.empty(capacity, np.uint64)
        self._offsets = np.zeros(capacity + 1, np.int64)
        self._names = np.empty(capacity + kernels.SPARE, np.uint8)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays)

    @property
    def arrays(self) -> tuple[Array, Array, Array, Array]:
        """As kernels take them."""
        return self._slots, self._hashes, self._offsets, self._names

    def terms(self, n: int) -> Strings:
        """The first ``n`` terms; shares memory."""
        offsets = self._offsets[: n + 1]
        return Strings(offsets, self._names[: offsets[-1]])

    def reserve(self, n_terms: int, n: int, nbytes: int) -> None:
        """Room for ``n`` terms of so many bytes beside the ``n_terms`` that are there."""
        self._names = grown(self._names, int(self._offsets[n_terms]) + nbytes + kernels.SPARE)
        self._hashes = grown(self._hashes, n_terms + n)
        self._offsets = grown(self._offsets, n_terms + n + 1)
        if kernels.n_slots(n_terms + n) > len(self._slots):
            self._slots = np.zeros(kernels.n_slots(n_terms + n), np.uint64)
            kernels.fill_slots(self._slots, self._hashes, 0, n_terms)


class Tally:
    """A table of terms, and rows of entries."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._fixed = False  # terms that are not in the table are left out
        self._start()

    @property
    def nbytes(self) -> int:
        """Of all arrays, whether filled or not."""
        arrays = (self._places, self._indptr, self._ids, self._counts, self._state)
        return self._table.nbytes + sum(array.nbytes for array in arrays)

    @property
    def n_rows(self) -> int:
        return int(self._state[2])

    @property
    def collisions(self) -> int:
        """Terms whose hash an earlier one has."""
        return int(self._state[3])

    def count(self, slices: Slices) -> None:
        """Add some slices to the last row, and to rows after it."""
        self._reserve(slices.n, slices.nbytes)
        kernels.count_slices(
            slices.text, slices.starts, slices.stops, slices.keys, slices.n,
            *self._table.arrays, self._places, self._indptr, self._ids, self._counts, self._state, self._fixed,
        )  # fmt: skip

    def fix(self, terms: Slices) -> None:
        """From now on, count these terms only; they must be distinct."""
        self.count(terms)
        repeated = self._counts[: self._state[1]] > 1
        if repeated.any():
            term = self._terms()[int(repeated.argmax())]
            raise InputError(f"the term {term.decode()!r} is given more than once; give distinct terms")
        self._fixed = True
        self.take()

    def take(self) -> TermCounts:
        """What was counted. Starts afresh, but for fixed terms."""
        _, n_entries, n_rows, collisions = self._state.tolist()
        counted = TermCounts(
            self._terms(), self._indptr[: n_rows + 1], self._ids[:n_entries], self._counts[:n_entries], collisions
        )
        if self._fixed:
            self._places[:] = -1
            self._start_rows()
        else:
            self._start()
        return counted

    def _terms(self) -> Strings:
        return self._table.terms(int(self._state[0]))

    def _start(self) -> None:
        self._state = np.zeros(4, np.int64)  # terms, entries, rows, collisions
        self._table = TermIndex(self._capacity)
        self._places = np.empty(self._capacity, np.int32)
        self._start_rows()

    def _start_rows(self) -> None:
        self._state[1:3] = 0
        self._indptr = np.zeros(self._capacity + 1, np.int64)
        self._ids = np.empty(self._capacity, np.int32)
        self._counts = np.empty(self._capacity, np.int32)

    def _reserve(self, n: int, nbytes: int) -> None:
        """Room for ``n`` more slices of so many bytes."""
        n_terms, n_entries, n_rows, _ = self._state.tolist()
        check_numbers(n_terms, n_entries, n)
        self._indptr = grown(self._indptr, n_rows + n + 1)
        self._ids = grown(self._ids, n_entries + n)
        self._counts = grown(self._counts, n_entries + n)
        if not self._fixed:
            self._table.reserve(n_terms, n, nbytes)
            self._places = grown(self._places, n_terms + n)


def check_numbers(n_terms: int, n_entries: int, n: int) -> None:
    """Refuse ``n`` more where they could not be numbered."""
    if max(n_terms, n_entries) + n > MOST:
        raise InputError(f"{n_entries:,} entries of {n_terms:,} terms; finish before either reaches 2**31")
