"""Counts of words in two classes as numbers of pairs: two bytes a word, where the counts take eight or sixteen.

Most words are rare, and what pairs of small counts there are is known beforehand: the number of such a pair follows
from the counts themselves. Every other word has a number of its own. So a table of eight million words fits a cache,
and what its numbers stand for a smaller one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nfs_dask.arrays.block import Array

FEW = 1 << 7  # two counts below this make a number together
OWN = FEW * FEW  # the first number that is a word's own
NARROW = 1 << 16  # numbers there are of two bytes


@dataclass(frozen=True)
class WordPairs:
    """The counts (2, tables, words) of some words.

    >>> pairs = WordPairs.of(np.array([[[3, 0, 500]], [[1, 0, 2]]]))
    >>> pairs.numbers.tolist(), pairs.pairs[pairs.numbers[0, 2]].tolist()
    ([[385, 0, 16384]], [500, 2])
    """

    least_nbytes: ClassVar[int] = 2  # of a word

    numbers: Array  # (tables, words) uint16, or uint32 where these are too few
    pairs: Array  # (n, 2) int64, what the numbers stand for

    @classmethod
    def of(cls, counts: Array) -> WordPairs:
        """Of whole numbers of any type."""
        unsigned = counts.view(f"u{counts.itemsize}")  # one that is negative has no place among the few
        many = (unsigned[0] >= FEW) | (unsigned[1] >= FEW)
        n_own = int(np.count_nonzero(many))
        numbers = np.empty(counts.shape[1:], np.uint16 if OWN + n_own <= NARROW else np.uint32)
        np.multiply(unsigned[0], FEW, out=numbers, dtype=numbers.dtype, casting="unsafe")
        np.add(numbers, unsigned[1], out=numbers, dtype=numbers.dtype, casting="unsafe")
        numbers[many] = np.arange(OWN, OWN + n_own, dtype=numbers.dtype)
        own = np.empty((n_own, 2), np.int64)
        for c in (0, 1):
            own[:, c] = counts[c, many]
        return cls.of_own(numbers, own)

    @classmethod
    def of_own(cls, numbers: Array, own: Array) -> WordPairs:
        """Of numbers, and the counts (n, 2) of the words that have one of their own."""
        pairs = np.empty((OWN + len(own), 2), np.int64)
        pairs[:OWN, 0], pairs[:OWN, 1] = np.divmod(np.arange(OWN), FEW)
        pairs[OWN:] = own
        return cls(numbers, pairs)

    @property
    def n_words(self) -> int:
        return int(self.numbers.shape[1])

    @property
    def own(self) -> Array:
        """The counts of the words that have a number of their own."""
        return self.pairs[OWN:]

    def counts(self) -> Array:
        """(2, tables, words) int64."""
        return np.moveaxis(self.pairs[self.numbers], -1, 0)


def fit_together(parts: Sequence[WordPairs], nbytes: int) -> bool:
    """Return True if these words side by side have numbers of two bytes, too, and take at most so many together."""
    n_own, total = sum(len(part.own) for part in parts), sum(part.numbers.nbytes for part in parts)
    return OWN + n_own <= NARROW and total <= nbytes


def side_by_side(parts: Sequence[WordPairs]) -> WordPairs:
    """Words that follow one another, of parts that fit together."""
    if len(parts) == 1:
        return parts[0]
    numbers = np.empty((len(parts[0].numbers), sum(part.n_words for part in parts)), np.uint16)
    first, n_own = 0, 0
    for part in parts:
        there = numbers[:, first : first + part.n_words]
        there[...] = part.numbers
        if n_own and len(part.own):
            there[there >= OWN] += np.uint16(n_own)
        first, n_own = first + part.n_words, n_own + len(part.own)
    return WordPairs(numbers, np.concatenate([parts[0].pairs, *(part.own for part in parts[1:])]))
