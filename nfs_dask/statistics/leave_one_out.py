"""Documents as the few numbers a hybrid naive Bayes is fitted to, each seen by a table that never saw the document.

Columns ``r * V .. (r + 1) * V - 1`` are region r of a document, over one vocabulary of V words. With the counts
``F_c[w]`` of a word and ``N_c`` of all words in class c, and smoothing s,

    log P(w|c) = log(F_c[w] + s) - log(N_c + s V)
    b_rc = sum over the tokens w of region r of log P(w|c), divided by their number if normalised

For two classes only ``b_r = b_r1 - b_r0`` matters. Where the table was counted from the document itself, its own counts
of all its regions leave the table of its class first, and its whole length leaves N: what remains is what counting
without the document would have given. A document of weight w takes min(w, 1) of itself away. A region without words
is 0.

Counts may come in panels of words: what the words of a panel add to each document is summed up in ascending order, so
features have the same bits for any number of panels.

References: HYB (Raina et al. 2003) (3), (8), (11).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from nfs_dask.arrays.block import (
    Array,
    Block,
    canonical,
    check_labels,
    check_structure,
    check_values,
    integers_as_integers,
)
from nfs_dask.arrays.kernels import read_only
from nfs_dask.arrays.lookup import Lookup
from nfs_dask.errors import InputError
from nfs_dask.statistics import region_kernels as kernels
from nfs_dask.statistics.word_pairs import WordPairs

LaidOut = Array | WordPairs  # the counts of some words

FEW = 1 << 16  # counts below this have their logarithms looked up
_MOST_NARROW = np.iinfo(np.int32).max
_RESIDUE = 1e-12  # of a real sum: what may be left of it when all its terms have been taken away


@dataclass(frozen=True)
class RegionTable:
    """All there is to know of the table P(w|c) besides the counts of words."""

    n_regions: int
    n_words: int  # V: of the vocabulary, and of the smoothing
    totals: Array  # (C,) N of a table that all regions share; (C, R) of a table for each region
    smoothing: float = 1.0
    support: Array | None = None  # (k,) ascending words; others are in the table, but no document is seen to have them

    def __post_init__(self) -> None:
        if self.n_regions < 1 or self.n_words < 1:
            raise InputError(f"{self.n_regions} regions over {self.n_words} words; there is at least one of each")
        if not (np.isfinite(self.smoothing) and self.smoothing > 0):
            raise InputError(
                f"alpha={self.smoothing} is not possible here: a word that only one document has would be impossible "
                "without that document; give a number above 0, such as 1.0"
            )
        if self.totals.ndim not in (1, 2) or (self.totals.ndim == 2 and self.totals.shape[1] != self.n_regions):
            raise InputError(
                f"totals of shape {self.totals.shape}; give one for each class, or one for each class and each of the "
                f"{self.n_regions} regions"
            )
        words = self.support
        if words is not None and len(words):
            if words[0] < 0 or words[-1] >= self.n_words or np.any(words[1:] <= words[:-1]):
                raise InputError(f"the words of a support ascend from 0 to at most {self.n_words - 1}; sort them")

    @property
    def n_classes(self) -> int:
        return len(self.totals)

    @property
    def n_tables(self) -> int:
        """One that all regions share, or one for each."""
        return 1 if self.totals.ndim == 1 else self.n_regions

    @property
    def n_kept(self) -> int:
        """Words that documents are seen to have."""
        return self.n_words if self.support is None else len(self.support)

    @cached_property
    def columns(self) -> Lookup:
        """Positions of the words of the support among the columns of all regions."""
        assert self.support is not None
        starts = np.arange(self.n_regions, dtype=np.int64)[:, None] * self.n_words
        return Lookup.of((starts + self.support).ravel().astype(np.int64), self.n_regions * self.n_words)


class RegionSums:
    """Sums that panels of words have added to the documents of a block so far.

    >>> block = Block(np.array([0, 2]), np.array([0, 3]), np.array([2, 1]), np.array([0]), 4)
    >>> table = RegionTable(n_regions=2, n_words=2, totals=np.array([3, 4]))
    >>> sums = RegionSums(block, table, leave_out=True)
    >>> sums.add(np.array([[2, 1], [1, 3]]))
    >>> np.exp(sums.features(normalize=True)).round(6).tolist()  # (2/6) / (1/2) and (4/6) / (1/2)
    [[0.666667, 1.333333]]
    """

    def __init__(self, block: Block, table: RegionTable, *, leave_out: bool, trusted: bool = False) -> None:
        """Of the documents of a block; ``trusted`` values were checked when the data were written."""
        block = _checked(block, table, trusted)
        # Where regions share a table, a word of several of them leaves it at once.
        whole, looks = table.support is None, leave_out and table.n_regions > table.n_tables
        regions = _Regions.of(block.entries[:3], table.n_regions, table.n_words, looks and whole)
        if not regions.ascend:
            block = integers_as_integers(canonical(block)[0])
            regions = _Regions.of(block.entries[:3], table.n_regions, table.n_words, looks and whole)
        self.table = table
        self.codes = block.entries.codes
        self.removed = _removed(block, table.n_classes, leave_out)
        self.in_parts = not np.array_equal(self.removed, np.floor(self.removed))  # some leave a part of them behind
        self.lengths, self.nothing = regions.lengths, regions.lengths.dtype.type(0)
        self.entries = block.entries[:3]
        if not whole:
            self.entries = table.columns.take(block).entries[:3]
            regions = _Regions.of(self.entries, table.n_regions, table.n_kept, looks)
        self.tokens, self.places, self.shared = regions.lengths, regions.places, regions.shared
        self.logs = np.zeros((block.n_rows, table.n_regions, table.n_classes))

    def add(self, counts: LaidOut, first: int = 0) -> None:
        """Add what the words ``first ..`` (of the support, if there is one) contribute. Panels come in their order.

        Parameters
        ----------
        counts
            (C, words) of a table that all regions share, (C, R, words) of a table for each; int64 or float64. Or what
            `laid_out` has made of them, where many blocks take the same ones.
        first
            Number of the first word.
        """
        table = self.table
        found = counts if isinstance(counts, WordPairs) else laid_out(counts)
        shape = _shape(found)
        if len(shape) != 3 or shape[:2] != (table.n_classes, table.n_tables):
            raise InputError(
                f"counts of shape {shape} for {table.n_classes} classes and {table.n_tables} table(s) of words"
            )
        if first < 0 or first + shape[2] > table.n_kept:
            raise InputError(f"words {first} to {first + shape[2] - 1}; there are {table.n_kept}")
        if isinstance(found, WordPairs) and not self.in_parts and self.nothing.dtype.kind != "f":
            self._add_pairs(found, first)
        else:
            self._add_any(found.counts() if isinstance(found, WordPairs) else found, first)

    def _add_pairs(self, counts: WordPairs, first: int) -> None:
        (indptr, indices, _), n_words = self.entries, self.table.n_kept
        numbers, ends = read_only(counts.numbers), np.empty_like(self.places)
        gathered = np.empty(len(indices), numbers.dtype)
        kernels.gather_numbers(indptr, indices, n_words, first, numbers, self.places, ends, gathered)
        tables = n_words, len(numbers), gathered, counts.pairs
        kernels.add_pair_logs(*self._documents, *tables, *self._logarithms, self.places, ends, self.logs)
        self.places = ends

    def _add_any(self, counts: Array, first: int) -> None:
        by_word = np.ascontiguousarray(np.moveaxis(counts, 0, -1))  # as `laid_out` has laid it out, if it has
        tables = self.table.n_kept, first, by_word
        exactness = _residue(by_word), self.nothing
        kernels.add_logs(*self._documents, *tables, *self._logarithms, *exactness, self.places, self.logs)

    @property
    def _documents(self) -> tuple[Array, ...]:
        return *self.entries, self.codes, self.removed, self.shared

    @property
    def _logarithms(self) -> tuple[float, Array]:
        return float(self.table.smoothing), _logs_of_few(self.table.smoothing)

    def features(self, *, normalize: bool) -> Array:
        """The features of each document once all words are added: (n, R) for two classes, (n, R, C) for more."""
        table = self.table
        totals = np.ascontiguousarray(table.totals.reshape(table.n_classes, table.n_tables))
        lengths = self.lengths if table.n_tables > 1 else self.lengths.sum(axis=1, keepdims=True)
        features = np.empty_like(self.logs)
        mass = float(table.smoothing * table.n_words)
        left_out = (self.removed, lengths, totals, _residue(totals))
        kernels.finish(self.logs, self.tokens, self.codes, *left_out, mass, normalize, features)
        return features[:, :, 1] - features[:, :, 0] if table.n_classes == 2 else features


@dataclass(frozen=True)
class _Regions:
    """Positions of the entries of documents in their regions."""

    places: Array  # (n, R) where those of each region begin
    lengths: Array  # (n, R) the sums of their values, of the type that these add up in
    shared: Array  # (nnz,) uint8 whether a document has the word in other regions, too; empty if that was not asked for
    ascend: bool  # whether the columns of each document do; else the others say nothing

    @classmethod
    def of(cls, entries: tuple[Array, ...], n_regions: int, n_words: int, looks: bool) -> _Regions:
        indptr, indices, data = entries
        places = np.empty((len(indptr) - 1, n_regions), np.int64)
        lengths = np.empty(places.shape, np.float64 if data.dtype.kind == "f" else np.int64)
        shared = np.zeros(len(indices) if looks else 0, np.uint8)
        ascend = kernels.split_regions(indptr, indices, data, n_words, places, lengths, shared)
        return cls(places, lengths, shared, bool(ascend))


def laid_out(counts: Array) -> LaidOut:
    """The same counts so that they are found fast: whole numbers of two classes as pairs, others (C, tables, words).

    What all classes have of a word is in one place of memory. Whole numbers of more classes take 32 bits where these
    hold all of them, so that twice as many words are in a cache.
    """
    counts = np.asarray(counts)
    counts = counts[:, None] if counts.ndim == 2 else counts
    dtype = counts.dtype
    if dtype.kind != "f" and len(counts) == 2 and counts.ndim == 3:
        return WordPairs.of(counts)
    if dtype.kind != "f":
        narrow = np.can_cast(dtype, np.int32) or counts.max(initial=0) <= _MOST_NARROW
        dtype = np.dtype(np.int32 if narrow else np.int64)
    words = np.moveaxis(counts, 0, -1)
    laid = np.empty(words.shape, dtype)
    laid[...] = words
    return np.moveaxis(laid, -1, 0)


def _shape(found: LaidOut) -> tuple[int, ...]:
    """(C, tables, words)."""
    return (2, *found.numbers.shape) if isinstance(found, WordPairs) else found.shape


@lru_cache(maxsize=4)
def _logs_of_few(smoothing: float) -> Array:
    """log(k + smoothing) for k = 0, 1, ...: most counts are among them, and looking one up costs less than a log."""
    with np.errstate(divide="ignore"):
        logs: Array = np.log(np.arange(FEW) + smoothing)
    return logs


def _residue(sums: Array) -> float:
    """The share of a sum below which what a document leaves of it is nothing but rounding; of whole numbers, none."""
    return _RESIDUE if sums.dtype.kind == "f" else 0


def _checked(block: Block, table: RegionTable, trusted: bool) -> Block:
    """The block with whole numbers as integers."""
    if block.n_features != table.n_regions * table.n_words:
        raise InputError(
            f"{block.n_features} columns are not {table.n_regions} regions of {table.n_words} words each; "
            "give all regions the columns of one vocabulary, side by side"
        )
    check_structure(block)
    if not trusted:
        check_values(block, "real")
    return integers_as_integers(block)


def _removed(block: Block, n_classes: int, leave_out: bool) -> Array:
    """Return the share of each document that leaves the table, (n,)."""
    if not leave_out:
        return np.zeros(block.n_rows)
    check_labels(block, n_classes)
    return np.ones(block.n_rows) if block.weights is None else np.minimum(block.weights.astype(np.float64), 1.0)
