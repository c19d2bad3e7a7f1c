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
from typing import Any

import numba
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
from nfs_dask.arrays.compiling import kernel
from nfs_dask.arrays.kernels import read_only
from nfs_dask.arrays.lookup import Lookup
from nfs_dask.arrays.spare import spare
from nfs_dask.errors import InputError

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
        """Where the words of the support are among the columns of all regions."""
        assert self.support is not None
        starts = np.arange(self.n_regions, dtype=np.int64)[:, None] * self.n_words
        return Lookup.of((starts + self.support).ravel().astype(np.int64), self.n_regions * self.n_words)


class RegionSums:
    """What panels of words have added to the documents of a block so far.

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
        self.table = table
        self.codes = block.entries.codes
        self.removed = _removed(block, table.n_classes, leave_out)
        self.in_parts = not np.array_equal(self.removed, np.floor(self.removed))  # some leave a part of them behind
        self.nothing = np.float64(0) if block.data.dtype.kind == "f" else np.int64(0)  # of the type values add up in
        self.lengths = np.full((block.n_rows, table.n_regions), self.nothing)
        _add_lengths(*block.entries[:3], table.n_words, self.lengths)
        whole = table.support is None
        self.entries = block.entries[:3] if whole else tuple(map(read_only, table.columns.take(block)))
        self.tokens = self.lengths
        if not whole:
            self.tokens = np.zeros_like(self.lengths)
            _add_lengths(*self.entries, table.n_kept, self.tokens)
        self.logs = np.zeros((block.n_rows, table.n_regions, table.n_classes))
        self.places = np.zeros((block.n_rows, table.n_regions), np.int64)
        _find_regions(self.entries[0], self.entries[1], table.n_kept, self.places)
        self.shared = np.zeros(len(self.entries[1]) if leave_out else 0, np.uint8)
        together = table.n_regions // table.n_tables
        if leave_out and together > 1:
            _mark_shared(self.entries[0], self.entries[1], table.n_kept, together, self.places, self.shared)

    def add(self, counts: Array, first: int = 0) -> None:
        """Add what the words ``first ..`` (of the support, if there is one) contribute. Panels come in their order.

        Parameters
        ----------
        counts
            (C, words) of a table that all regions share, (C, R, words) of a table for each; int64 or float64.
        first
            Number of the first word.
        """
        table = self.table
        counts = np.asarray(counts)
        if table.totals.ndim == 1 and counts.ndim == 2:
            counts = counts[:, None, :]
        if counts.ndim != 3 or counts.shape[:2] != (table.n_classes, table.n_tables):
            raise InputError(
                f"counts of shape {counts.shape} for {table.n_classes} classes and {table.n_tables} table(s) of words"
            )
        if first < 0 or first + counts.shape[2] > table.n_kept:
            raise InputError(f"words {first} to {first + counts.shape[2] - 1}; there are {table.n_kept}")
        counts = np.ascontiguousarray(np.moveaxis(counts, 0, -1))  # as `by_word` has laid it out, if it has
        entries = *self.entries, self.codes, self.removed, self.shared
        logarithms = float(table.smoothing), _logs_of_few(table.smoothing)
        whole = not self.in_parts and counts.dtype.kind != "f" and self.entries[2].dtype.kind != "f"
        if whole and table.n_classes == 2:
            _add_whole_logs(*entries, table.n_kept, first, counts, *logarithms, self.places, self.logs)
        else:
            exactness = _residue(counts), self.nothing
            _add_logs(*entries, table.n_kept, first, counts, *logarithms, *exactness, self.places, self.logs)

    def features(self, *, normalize: bool) -> Array:
        """The features of each document once all words are added: (n, R) for two classes, (n, R, C) for more."""
        table = self.table
        totals = np.ascontiguousarray(table.totals.reshape(table.n_classes, table.n_tables))
        lengths = self.lengths if table.n_tables > 1 else self.lengths.sum(axis=1, keepdims=True)
        features = np.empty_like(self.logs)
        mass = float(table.smoothing * table.n_words)
        left_out = (self.removed, lengths, totals, _residue(totals))
        _finish(self.logs, self.tokens, self.codes, *left_out, mass, normalize, features)
        return features[:, :, 1] - features[:, :, 0] if table.n_classes == 2 else features


def by_word(counts: Array) -> Array:
    """The same counts, laid out so that what all classes have of a word is in one place of memory.

    Whole numbers take 32 bits where these hold all of them, so that twice as many words are in a cache.
    """
    dtype = counts.dtype
    if dtype.kind != "f":
        narrow = np.can_cast(dtype, np.int32) or counts.max(initial=0) <= _MOST_NARROW
        dtype = np.dtype(np.int32 if narrow else np.int64)
    words = np.moveaxis(counts, 0, -1)
    laid = spare(words.shape, dtype)
    laid[...] = words
    return np.moveaxis(laid, -1, 0)


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
    """The block with sorted columns, and whole numbers as integers."""
    if block.n_features != table.n_regions * table.n_words:
        raise InputError(
            f"{block.n_features} columns are not {table.n_regions} regions of {table.n_words} words each; "
            "give all regions the columns of one vocabulary, side by side"
        )
    check_structure(block)
    if not trusted:
        check_values(block, "real")
    return integers_as_integers(canonical(block)[0])


def _removed(block: Block, n_classes: int, leave_out: bool) -> Array:
    """How much of each document leaves the table, (n,)."""
    if not leave_out:
        return np.zeros(block.n_rows)
    check_labels(block, n_classes)
    return np.ones(block.n_rows) if block.weights is None else np.minimum(block.weights.astype(np.float64), 1.0)


@kernel
def _add_lengths(indptr: Array, indices: Array, data: Array, n_words: int, lengths: Array) -> None:
    """lengths[row, region] += value, in the type of the lengths; columns ascend."""
    for i in range(len(indptr) - 1):
        region, end = 0, np.int64(n_words)
        for j in range(indptr[i], indptr[i + 1]):
            while np.int64(indices[j]) >= end:
                region += 1
                end += n_words
            lengths[i, region] += data[j]


@numba.njit(nogil=True, inline="always")
def _reach(indices: Array, low: Any, high: Any, column: Any) -> Any:
    """The first of the ascending entries ``low .. high - 1`` that is not before a column."""
    while low < high:
        middle = (low + high) >> 1
        if np.int64(indices[middle]) < column:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _find_regions(indptr: Array, indices: Array, n_words: int, places: Array) -> None:
    """places[row, region] = where the entries of each region begin."""
    for i in range(len(indptr) - 1):
        low, high = np.int64(indptr[i]), np.int64(indptr[i + 1])
        for r in range(places.shape[1]):
            low = _reach(indices, low, high, r * n_words)
            places[i, r] = low


@kernel
def _mark_shared(indptr: Array, indices: Array, n_words: int, together: int, places: Array, shared: Array) -> None:
    """Mark the entries whose word a row has in another region that shares its table, too."""
    n_regions = places.shape[1]
    for i in range(len(indptr) - 1):
        for r in range(n_regions):
            j_end = places[i, r + 1] if r + 1 < n_regions else indptr[i + 1]
            for q in range(r + 1, r - r % together + together):
                j, k = places[i, r], places[i, q]
                k_end = places[i, q + 1] if q + 1 < n_regions else indptr[i + 1]
                apart = np.int64(q - r) * n_words
                while j < j_end and k < k_end:  # both ascend; the steps of the one and the other have no branch
                    here, there = np.int64(indices[j]), np.int64(indices[k]) - apart
                    if here == there:
                        shared[j], shared[k] = 1, 1
                    j += np.int64(here <= there)
                    k += np.int64(there <= here)


@numba.njit(nogil=True)
def _in_regions(
    indices: Any, data: Any, low: Any, high: Any, word: Any, n_words: Any, first: Any, last: Any, nothing: Any
) -> Any:
    """How often a row has a word in regions ``first .. last - 1``."""
    own = nothing
    for q in range(first, last):
        column = q * n_words + word
        low = _reach(indices, low, high, column)
        if low < high and np.int64(indices[low]) == column:
            own += data[low]
    return own


@kernel
def _add_logs(
    indptr: Array,
    indices: Array,
    data: Array,
    codes: Array,
    removed: Array,
    shared: Array,
    n_words: int,
    first: int,
    counts: Array,
    smoothing: float,
    few: Array,
    residue: float,
    nothing: Any,
    places: Array,
    logs: Array,
) -> None:
    """logs[row, region, class] += value * log(count + smoothing) of each entry, without the row's own counts.

    A row's own count of a word is what the regions that share the table have of it; ``shared`` marks the entries where
    that is more than one. ``places`` say how far each region has been walked by earlier panels, and then by this one.
    ``few`` are the smoothed logarithms of 0, 1, 2, ... Below a ``residue`` of a count, what is left of it is 0.
    ``nothing`` is a zero of the type that values add up in.
    """
    n_tables, width, n_classes = counts.shape
    n_regions, n_few = logs.shape[1], len(few)
    together = n_regions // n_tables
    tables = np.arange(n_regions) // together
    for i in range(len(indptr) - 1):
        end, share = np.int64(indptr[i + 1]), removed[i]
        own_class = np.int64(codes[i]) if share > 0 else np.int64(-1)
        for r in range(n_regions):
            t, start = tables[r], np.int64(r) * n_words
            limit = start + min(first + width, n_words)
            j = places[i, r]
            while j < end:
                column = np.int64(indices[j])
                if column >= limit:
                    break
                word = column - start
                if word >= first:
                    own = nothing + data[j]
                    if own_class >= 0 and shared[j]:
                        regions = t * together, (t + 1) * together
                        own = _in_regions(indices, data, np.int64(indptr[i]), end, word, n_words, *regions, nothing)
                    value = np.float64(data[j])
                    for c in range(n_classes):
                        count = nothing + counts[t, word - first, c]
                        if c == own_class and share != 1.0:
                            part = np.float64(count) - share * own
                            part = part if part > residue * count else 0.0
                            whole = np.int64(part)
                            is_few = 0 <= whole < n_few and whole == part
                            log = few[whole] if is_few else np.log(part + smoothing)
                        else:  # whole numbers are subtracted as such
                            left = count - (own if c == own_class else nothing)
                            left = left if left > residue * count else nothing
                            whole = np.int64(left)
                            is_few = 0 <= whole < n_few and whole == left
                            log = few[whole] if is_few else np.log(left + smoothing)
                        logs[i, r, c] += value * log
                j += 1
            places[i, r] = j


@kernel
def _add_whole_logs(
    indptr: Array,
    indices: Array,
    data: Array,
    codes: Array,
    removed: Array,
    shared: Array,
    n_words: int,
    first: int,
    counts: Array,
    smoothing: float,
    few: Array,
    places: Array,
    logs: Array,
) -> None:
    """As `_add_logs`, to the bit, for whole numbers in two classes, where documents leave the table whole or not."""
    n_tables, width, _ = counts.shape
    n_regions, n_few = logs.shape[1], np.int64(len(few))
    together = n_regions // n_tables
    nothing = np.int64(0)
    for i in range(len(indptr) - 1):
        end = np.int64(indptr[i + 1])
        leaves = removed[i] > 0
        is_first, is_second = leaves and codes[i] == 0, leaves and codes[i] == 1
        for r in range(n_regions):
            t, start = r // together, np.int64(r) * n_words
            low, limit = start + first, start + min(first + width, n_words)
            j = places[i, r]
            log_first, log_second = logs[i, r, 0], logs[i, r, 1]
            while j < end:
                column = np.int64(indices[j])
                if column >= limit:
                    break
                if column >= low:
                    word, own = np.uint64(column - low), np.int64(data[j])
                    value = np.float64(own)
                    if leaves and shared[j]:
                        regions = t * together, (t + 1) * together
                        row = np.int64(indptr[i]), end
                        own = _in_regions(indices, data, *row, column - start, n_words, *regions, nothing)
                    left = max(np.int64(counts[t, word, 0]) - (own if is_first else nothing), nothing)
                    log = few[np.uint64(left)] if left < n_few else np.log(left + smoothing)
                    log_first += value * log
                    left = max(np.int64(counts[t, word, 1]) - (own if is_second else nothing), nothing)
                    log = few[np.uint64(left)] if left < n_few else np.log(left + smoothing)
                    log_second += value * log
                j += 1
            places[i, r] = j
            logs[i, r, 0], logs[i, r, 1] = log_first, log_second


@kernel
def _finish(
    logs: Array,
    tokens: Array,
    codes: Array,
    removed: Array,
    lengths: Array,
    totals: Array,
    residue: float,
    mass: float,
    normalize: bool,
    features: Array,
) -> None:
    """Write (logs - tokens * log(total + mass)) / tokens to features; a row's own length leaves the total."""
    n, n_regions, n_classes = logs.shape
    together = n_regions // totals.shape[1]
    worth = np.empty((totals.shape[1], n_classes))
    for t in range(totals.shape[1]):
        for c in range(n_classes):
            worth[t, c] = np.log(totals[c, t] + mass)
    for i in range(n):
        own_class = np.int64(codes[i]) if removed[i] > 0 else np.int64(-1)
        for r in range(n_regions):
            t = r // together
            by = tokens[i, r] if normalize and tokens[i, r] > 0 else 1.0
            for c in range(n_classes):
                log = worth[t, c]
                if c == own_class:
                    share, total = removed[i], np.float64(totals[c, t])
                    left = np.float64(totals[c, t] - lengths[i, t]) if share == 1.0 else total - share * lengths[i, t]
                    log = np.log((left if left > residue * total else 0.0) + mass)
                features[i, r, c] = (logs[i, r, c] - tokens[i, r] * log) / by
