"""Counting words and pairs of words by sorting their occurrences: numbers only, and terms come out in order.

A word is looked up once for each occurrence, and from then on is a number. When all is read, words are sorted, and an
occurrence becomes one number of 64 bits: the rank of its first word, that of its second plus one or zero for a word
alone, and its row. Sorting these by their words, digit by digit, puts terms in order, equal ones side by side, and
leaves the rows of each in order: no pair is looked up, no name of one compared, and entries fall into their rows in the
order of terms.

That is the order of names because words have no byte as low as the space between them: "a b" comes before "ab", as the
pair (a, b) does before the word ab.
"""

from __future__ import annotations

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.arrays.kernels import kernel
from nfs_dask.arrays.radix import COUNTERS_NBYTES, sort_by_bits
from nfs_dask.text import text_kernels as kernels
from nfs_dask.text.analysis import Slices, runs_of, spared
from nfs_dask.text.ordering import sort_strings, take
from nfs_dask.text.settings import TextSettings
from nfs_dask.text.strings import Strings, TermCounts, TermIndex, check_numbers, grown
from nfs_dask.text.unicode import WORD

MOST_WORDS = 2  # of a term

_BITS = 64
_SORTING = 32  # bytes of a word while words are sorted, and of an occurrence while it is sorted or written, as an entry


def counts_by_sorting(settings: TextSettings) -> bool:
    """Whether terms are words and pairs of words whose bytes all come after the space."""
    if settings.analyzer != "word" or settings.tokenizer is not None or settings.ngrams[1] > MOST_WORDS:
        return False
    runs = runs_of(settings.token_pattern)
    return runs is not None and runs[0] == WORD


class WordTally:
    """The words of texts, one after another, as numbers."""

    def __init__(self, ngrams: tuple[int, int], capacity: int) -> None:
        self._ngrams, self._capacity = ngrams, capacity
        self._start()

    def _start(self) -> None:
        self._state = np.zeros(4, np.int64)  # words, their occurrences, rows, collisions
        self._table = TermIndex(self._capacity)
        self._indptr = np.zeros(self._capacity + 1, np.int64)
        self._ids = np.empty(self._capacity, np.int32)
        self._names_nbytes = 0  # of all occurrences of terms

    @property
    def nbytes(self) -> int:
        """What is held now, or half of what is held when `take` gives it out, whichever is more."""
        held = self._table.nbytes + self._ids.nbytes + self._indptr.nbytes + self._state.nbytes
        shortest, longest = self._ngrams
        making = _SORTING * ((longest - shortest + 1) * int(self._state[1]) + int(self._state[0])) + COUNTERS_NBYTES
        return max(held, (held + making + self._names_nbytes) // 2)

    @property
    def n_rows(self) -> int:
        return int(self._state[2])

    @property
    def collisions(self) -> int:
        """Words whose hash an earlier one has."""
        return int(self._state[3])

    def count(self, slices: Slices) -> None:
        """Add some words to the last row, and to rows after it."""
        n_words, n_tokens, n_rows, _ = self._state.tolist()
        check_numbers(n_words, MOST_WORDS * n_tokens, MOST_WORDS * slices.n)
        self._table.reserve(n_words, slices.n, slices.nbytes)
        self._indptr = grown(self._indptr, n_rows + slices.n + 1)
        self._ids = grown(self._ids, n_tokens + slices.n)
        kernels.number_slices(
            slices.text, slices.starts, slices.stops, slices.keys, slices.n,
            *self._table.arrays, self._indptr, self._ids, self._state,
        )  # fmt: skip
        shortest, longest = self._ngrams
        self._names_nbytes += (shortest == 1) * slices.nbytes + (longest == MOST_WORDS) * (2 * slices.nbytes + slices.n)

    def take(self) -> TermCounts:
        """What was counted, in order. Starts afresh."""
        n_words, n_tokens, n_rows, collisions = self._state.tolist()
        words, tokens, indptr = self._table.terms(n_words), self._ids[:n_tokens], self._indptr[: n_rows + 1]
        self._start()
        return counted_words(words, tokens, indptr, self._ngrams, collisions)


def counted_words(words: Strings, tokens: Array, indptr: Array, ngrams: tuple[int, int], collisions: int) -> TermCounts:
    """Terms in order, of words in any order and the numbers of those of each row."""
    places = sort_strings(words)
    ranks = np.empty(len(places), np.uint64)
    ranks[places] = np.arange(len(places), dtype=np.uint64)
    words = take(words, places)
    word_bits, row_bits = len(words).bit_length(), (len(indptr) - 1).bit_length()
    codes, rows = _sorted_occurrences(tokens, indptr, ranks, ngrams, word_bits, row_bits)
    row_bits = 0 if len(rows) else row_bits
    ends = np.zeros(len(indptr), np.int64)
    n_terms = _measure(codes, rows, np.uint64(row_bits), ends)
    np.cumsum(ends, out=ends)
    terms = np.empty(n_terms, np.uint64)
    ids, counts = np.empty(int(ends[-1]), np.int32), np.ones(int(ends[-1]), np.int32)
    totals = np.empty(n_terms, np.int64), np.empty(n_terms, np.int32)
    _fill(codes, rows, np.uint64(row_bits), ends[:-1].copy(), terms, ids, counts, *totals)
    del codes, rows
    return TermCounts(_named(terms, words, word_bits), ends, ids, counts, collisions, totals)


def _sorted_occurrences(
    tokens: Array, indptr: Array, ranks: Array, ngrams: tuple[int, int], word_bits: int, row_bits: int
) -> tuple[Array, Array]:
    """All occurrences of terms, sorted: numbers that have their rows in the lowest bits, or beside them."""
    shortest, longest = ngrams
    codes, n_words = np.empty(len(tokens) * (1 + longest - shortest), np.uint64), len(tokens) * (shortest == 1)
    rows = np.zeros(0, np.int32)
    if 2 * word_bits + row_bits <= _BITS:
        n = _number(tokens, indptr, ranks, n_words, longest, np.uint64(word_bits), np.uint64(row_bits), rows, codes)
        middle, pairs = row_bits + word_bits, codes[n_words:n]  # a word alone has nothing to be sorted by below
        if (ordered := sort_by_bits(pairs, row_bits, middle)) is not pairs:
            pairs[:] = ordered
        return sort_by_bits(codes[:n], middle, middle + word_bits), rows
    rows = np.empty(len(codes), np.int32)
    n = _number(tokens, indptr, ranks, n_words, longest, np.uint64(word_bits), np.uint64(0), rows, codes)
    order = np.argsort(codes[:n], kind="stable")
    return codes[order], rows[order]


def _named(terms: Array, words: Strings, word_bits: int) -> Strings:
    """The names of words and pairs of words."""
    offsets = np.zeros(len(terms) + 1, np.int64)
    bits = np.uint64(word_bits)
    _measure_names(terms, bits, words.offsets, offsets)
    names = np.empty(int(offsets[-1]) + kernels.SPARE, np.uint8)
    _write_names(terms, bits, words.offsets, spared(words.text), offsets, names)
    return Strings(offsets, names[: offsets[-1]])


@kernel
def _number(tokens, indptr, ranks, n_words, longest, word_bits, row_bits, rows, codes):
    """The number of each occurrence of a term: of ``n_words`` words, if any, then of pairs, row by row; how many.

    Rows go beside them if they have no bits.
    """
    word, pair = 0, n_words
    for row in range(len(indptr) - 1):
        end = indptr[row + 1]
        own = np.uint64(row) if row_bits else np.uint64(0)
        for j in range(indptr[row], end):
            first = ranks[tokens[j]] << word_bits
            if n_words:
                codes[word] = (first << row_bits) | own
                if not row_bits:
                    rows[word] = row
                word += 1
            if longest == 2 and j + 1 < end:
                codes[pair] = ((first | (ranks[tokens[j + 1]] + np.uint64(1))) << row_bits) | own
                if not row_bits:
                    rows[pair] = row
                pair += 1
    return pair


@kernel
def _measure(codes, rows, row_bits, ends):
    """ends[row + 1] = how many distinct terms the row has; how many there are in all."""
    n_terms = 0
    mask = (np.uint64(1) << row_bits) - np.uint64(1)
    for i in range(len(codes)):
        another = i == 0 or codes[i] >> row_bits != codes[i - 1] >> row_bits
        row = np.int64(codes[i] & mask) if row_bits else np.int64(rows[i])
        n_terms += another
        if another or (codes[i] != codes[i - 1] if row_bits else rows[i] != rows[i - 1]):
            ends[row + 1] += 1
    return n_terms


@kernel
def _fill(codes, rows, row_bits, at, terms, ids, counts, occurrences, rows_with):
    """Distinct terms, how often each occurs and in how many rows; entries of each row from ``at[row]`` on, which moves.

    ``counts`` are ones: most entries occur once, and each is a place far from the one before.
    """
    term, found, with_it = -1, 0, 0
    mask = (np.uint64(1) << row_bits) - np.uint64(1)
    for i in range(len(codes)):
        code = codes[i]
        row = np.int64(code & mask) if row_bits else np.int64(rows[i])
        another = i == 0 or code >> row_bits != terms[term]
        if another:
            if term >= 0:
                occurrences[term], rows_with[term] = found, with_it
            term += 1
            terms[term] = code >> row_bits
            found, with_it = 0, 0
        found += 1
        if another or (code != codes[i - 1] if row_bits else rows[i] != rows[i - 1]):
            with_it += 1
            ids[at[row]] = term
            at[row] += 1
        else:
            counts[at[row] - 1] += 1
    if term >= 0:
        occurrences[term], rows_with[term] = found, with_it


@kernel
def _measure_names(terms, word_bits, word_offsets, offsets):
    """Where the name of each term begins, and the last one ends."""
    mask = (np.uint64(1) << word_bits) - np.uint64(1)
    end = 0
    for i in range(len(terms)):
        first, second = np.int64(terms[i] >> word_bits), np.int64(terms[i] & mask)
        end += word_offsets[first + 1] - word_offsets[first]
        if second:
            end += 1 + word_offsets[second] - word_offsets[second - 1]
        offsets[i + 1] = end


@kernel
def _write_names(terms, word_bits, word_offsets, text, offsets, names):
    """Words are copied eight bytes at a time: what is too much is overwritten by what follows, and then is room."""
    mask = (np.uint64(1) << word_bits) - np.uint64(1)
    for i in range(len(terms)):
        first, second = np.int64(terms[i] >> word_bits), np.int64(terms[i] & mask)
        at, start = offsets[i], word_offsets[first]
        n = word_offsets[first + 1] - start
        for j in range(0, n, 8):
            kernels.store_eight(kernels.load_eight(text, start + j), names, at + j)
        if second:
            names[at + n] = kernels.SPACE
            at, start = at + n + 1, word_offsets[second - 1]
            for j in range(0, word_offsets[second] - start, 8):
                kernels.store_eight(kernels.load_eight(text, start + j), names, at + j)
