"""From texts to counted terms: scikit-learn's terms, by compiled code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError
from nfs_dask.text import text_kernels as kernels
from nfs_dask.text.analysis import Analysis, Slices, frozen, runs_of, spared
from nfs_dask.text.ordering import order
from nfs_dask.text.settings import TextSettings, Tokenizer
from nfs_dask.text.strings import Strings, TermCounts, TermIndex, check_numbers, grown, invalid_utf8
from nfs_dask.text.word_tally import WordTally, counts_by_sorting

__all__ = ["TermCounter", "TermCounts", "hash_strings"]

BATCH_NBYTES = 128 << 10  # of texts, which fit the cache of a core together with what becomes of them
BATCH_TEXTS = 8192
SLICES = 8192  # terms that are counted together
CAPACITY = 1024  # to begin with
MOST_NBYTES = 1 << 30  # of one text, so that no count passes 32 bits


def hash_strings(strings: Strings) -> Array:
    """The 64-bit hash of each string, uint64: a function of its bytes alone, the same everywhere and in every version.

    With B = 0x9E3779B97F4A7C15, modulo 2**64: ``h = h * B + byte + 1`` over the bytes and a space, from 0; then the
    finaliser of Murmur3. The module `kernels` says why.
    """
    hashes = np.empty(len(strings), np.uint64)
    kernels.hash_texts(frozen(strings.text), frozen(strings.offsets, np.int64), hashes)
    return hashes


class TermCounter:
    """Counts the terms of texts, a row for each, until `finish`. For one thread at a time.

    With ``known`` these terms, which must be distinct, are counted and no others. With ``in_order`` terms come out
    ascending, and the entries of each row. ``hash_bits``, ``capacity``: how much of a hash is used and what there is
    room for at first, for tests of what follows from little.
    """

    def __init__(
        self,
        settings: TextSettings,
        *,
        known: Strings | None = None,
        tokenizer: Tokenizer | None = None,
        in_order: bool = False,
        hash_bits: int = 64,
        capacity: int = CAPACITY,
    ) -> None:
        if known is not None and tokenizer is None:
            settings = _no_longer_than(known, settings)
        self._in_order = in_order
        by_sorting = in_order and known is None and counts_by_sorting(settings)
        sliced = replace(settings, ngrams=(1, 1)) if by_sorting else settings
        self._analysis = Analysis(sliced, tokenizer, hash_bits=hash_bits, n_slices=min(SLICES, 8 * capacity))
        self._tally = WordTally(settings.ngrams, capacity) if by_sorting else Tally(capacity)
        if known is not None:
            self._tally = Tally(capacity)
            self._tally.fix(_as_slices(known, hash_bits))

    @property
    def nbytes(self) -> int:
        """Memory held now, or half of what `finish` takes if that is more. Tables of characters are not counted."""
        return self._analysis.nbytes + self._tally.nbytes

    @property
    def n_rows(self) -> int:
        """Texts since the last `finish`."""
        return self._tally.n_rows

    @property
    def collisions(self) -> int:
        """Terms whose 64-bit hash an earlier one has. They are told apart by their bytes."""
        return self._tally.collisions

    def add(self, texts: Strings) -> None:
        """Count the terms of each text, in a row of its own."""
        text, offsets = _checked(texts)
        for first, stop in _batches(offsets):
            folded = self._analysis.fold(text, offsets[first : stop + 1])
            _refuse_long(folded.offsets)
            for slices in self._analysis.slices(folded):
                self._tally.count(slices)

    def finish(self) -> TermCounts:
        """What was counted; the counter starts afresh, with the known terms if there are any."""
        self._analysis.clear()
        counted = self._tally.take()
        return order(counted) if self._in_order and isinstance(self._tally, Tally) else counted


def _checked(texts: Strings) -> tuple[Array, Array]:
    """Bytes and offsets as kernels take them; texts that are no UTF-8 are refused."""
    text, offsets = frozen(texts.text), frozen(texts.offsets, np.int64)
    if offsets[0] < 0 or offsets[-1] > len(text) or np.any(np.diff(offsets) < 0):
        raise InputError("offsets of texts leave the bytes, or go back, so that what they say is not valid UTF-8")
    for i in invalid_utf8(texts)[:1]:
        raise InputError(
            f"text {i} is not valid UTF-8: it begins with {texts[i][:60]!r}; decode it by its encoding first"
        )
    return text, offsets


def _as_slices(terms: Strings, hash_bits: int) -> Slices:
    text, offsets = _checked(terms)
    keys = hash_strings(terms) >> np.uint64(64 - hash_bits)
    nbytes = int(offsets[-1] - offsets[0])
    return Slices(spared(text), offsets[:-1].copy(), offsets[1:].copy(), keys, len(terms), nbytes)


def _no_longer_than(known: Strings, settings: TextSettings) -> TextSettings:
    """Settings without the n-grams that have more or fewer words than any known term, where words hold no spaces."""
    if settings.analyzer != "word" or settings.tokenizer or not runs_of(settings.token_pattern) or not len(known):
        return settings
    through = np.concatenate([np.zeros(1, np.int64), np.cumsum(known.text == kernels.SPACE)])
    words = 1 + through[known.offsets[1:]] - through[known.offsets[:-1]]
    lowest, highest = np.clip([words.min(), words.max()], *settings.ngrams).tolist()
    return replace(settings, ngrams=(lowest, highest))


def _refuse_long(offsets: Array) -> None:
    longest = int(np.diff(offsets).max(initial=0))
    if longest > MOST_NBYTES:
        raise InputError(f"a text of {longest:,} bytes; at most {MOST_NBYTES:,} are allowed, so cut it into several")


def _batches(offsets: Array) -> Iterator[tuple[int, int]]:
    """Stretches of texts: each one text, or texts of some thousand bytes together."""
    first, n = 0, len(offsets) - 1
    while first < n:
        full = int(np.searchsorted(offsets, offsets[first] + BATCH_NBYTES, side="right")) - 1
        stop = min(max(full, first + 1), first + BATCH_TEXTS, n)
        yield first, stop
        first = stop


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
