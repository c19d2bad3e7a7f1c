"""Distinct columns of class totals: whole-number counts leave few, and solvers work on these and their sizes.

All scores depend on the tuple (f_1, ..., f_C) of a feature alone. Distinct columns are ordered by their lowest feature,
which is the same for any cut into panels. Reals are not grouped: their columns are the features.

References: docs/mathematics.md 3.10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from nfs_dask.arrays.compiling import kernel, kernel_part
from nfs_dask.arrays.hashes import GOLDEN
from nfs_dask.arrays.kernels import read_only
from nfs_dask.solvers.solution import Array

_FIRST_CAPACITY = (1 << 12) - 1
_STRETCH = 1 << 14  # columns that are numbered at a time

Parts = Callable[[], Iterable[tuple[int, Array]]]  # first feature of each panel, and an array of its columns, in order


@dataclass(frozen=True)
class DistinctColumns:
    """Distinct columns of class totals, and how many features share each."""

    totals: Array  # (C, M) int64 as counted, or float64
    sizes: Array  # (M, ) int64
    firsts: Array  # (M, ) int64, ascending: the lowest feature of each column

    @property
    def n_features(self) -> int:
        return int(self.sizes.sum()) if self.grouped else self.totals.shape[1]

    @property
    def grouped(self) -> bool:
        """Whether columns stand for groups of features; columns of reals are the features themselves."""
        return bool(self.totals.dtype.kind != "f")


def group(totals: Array) -> tuple[DistinctColumns, FeatureIndex | None]:
    """Return the distinct columns of ``totals`` (C, m), and which features have each; None for reals.

    >>> distinct, index = group(np.array([[1, 0, 1, 1], [2, 0, 2, 3]]))
    >>> distinct.totals.tolist(), distinct.sizes.tolist(), distinct.firsts.tolist(), index.columns_of(np.arange(4))
    ([[1, 0, 1], [2, 0, 3]], [2, 1, 1], [0, 1, 3], array([0, 1, 0, 2], dtype=int32))
    """
    if totals.dtype.kind == "f":
        n = totals.shape[1]
        return DistinctColumns(np.asarray(totals, np.float64), np.ones(n, np.int64), np.arange(n)), None
    numbering = ColumnNumbering(len(totals), totals.shape[1])
    codes = numbering.codes(totals)
    return numbering.distinct, FeatureIndex.listed(codes)


class FeatureIndex:
    """The features of each distinct column: in memory, or found panel by panel, of which one is held at a time.

    >>> distinct = DistinctColumns(np.array([[3, 0], [1, 1]]), np.array([3, 1]), np.array([0, 1]))
    >>> panels = [(0, np.array([[3, 0], [1, 1]])), (2, np.array([[3, 3], [1, 1]]))]
    >>> FeatureIndex.of_panels(lambda: panels, distinct).members(np.array([2, 0]), np.array([0]))[0].tolist()
    [2, 3]
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts  # the distinct column of each feature

    @classmethod
    def listed(cls, codes: Array) -> FeatureIndex:
        """Make one of the distinct column of every feature, (m, )."""
        return cls(partial(list, [(0, codes)]))  # which can be pickled

    @classmethod
    def of_panels(cls, panels: Parts, distinct: DistinctColumns) -> FeatureIndex:
        """Make one that reads panels of class totals, (C, width), each time it is asked, as far as is needed."""

        def parts() -> Iterator[tuple[int, Array]]:
            known = ColumnNumbering(len(distinct.totals))
            known.add(distinct.totals)
            for first, totals in panels():
                codes = known.places(totals)
                assert len(known) == len(distinct.sizes) and codes.min(initial=0) >= 0, "a column is not known"
                yield first, codes

        return cls(parts)

    def columns_of(self, features: Array) -> Array:
        """Return the distinct column of each of some features, ascending."""
        if not len(features):
            return np.zeros(0, np.int64)
        return np.concatenate([codes[_inside(features, first, len(codes))] for first, codes in self._parts()])

    def members(self, wanted: Array, forced: Array) -> tuple[Array, Array]:
        """Return the ``wanted[c]`` lowest features of each column c but ``forced``, ascending, and their columns."""
        left, features, columns = wanted.copy(), [np.zeros(0, np.int64)], [np.zeros(0, np.int32)]
        for first, codes in self._parts():
            found = np.empty(min(int(left.sum()), len(codes)), np.int64)
            found = found[: _take_members(codes, left, _inside(forced, first, len(codes)), found)]
            features.append(first + found)
            columns.append(codes[found])
            if not left.any():
                break
        return np.concatenate(features), np.concatenate(columns)

    def lowest(self, columns: Array, forced: Array, n: int) -> Array:
        """Return the ``n`` lowest features that have one of some columns and are not forced."""
        found, left = [np.zeros(0, np.int64)], n
        for first, codes in self._parts():
            there = first + np.flatnonzero(np.isin(codes, columns))
            found.append(np.setdiff1d(there, forced, assume_unique=True)[:left])
            left -= len(found[-1])
            if left == 0:
                break
        return np.concatenate(found)

    def spread(self, values: Array) -> Array:
        """Return a value of each distinct column as one of each feature, (m, )."""
        return np.concatenate([values[codes] for _, codes in self._parts()])


def _inside(features: Array, first: int, width: int) -> Array:
    """Those of ascending features that lie in a panel, as its own columns."""
    return features[np.searchsorted(features, first) : np.searchsorted(features, first + width)] - first


@kernel
def _take_members(codes, wanted, forced, out):
    """Write positions whose column is still wanted, which is counted down; returns how many."""
    n, f = 0, 0
    for i in range(len(codes)):
        if n == len(out):
            break
        if f < len(forced) and forced[f] == i:
            f += 1
        elif wanted[codes[i]] > 0:
            wanted[codes[i]] -= 1
            out[n] = i
            n += 1
    return n


def bits(totals: Array) -> Array:
    """Return reals of 0 and more as whole numbers that are equal where they are."""
    return np.ascontiguousarray(totals, np.float64).view(np.int64)


class ColumnNumbering:
    """Numbers distinct columns that come one panel after another.

    Pairs are numbered, then pairs of such a number and the next class, so that one kernel serves any number of classes.

    >>> numbering = ColumnNumbering(2)
    >>> for panel in ([[1, 2], [0, 0]], [[2, 1, 3], [0, 0, 0]]):
    ...     numbering.add(np.array(panel))
    >>> distinct = numbering.distinct
    >>> distinct.totals[0].tolist(), distinct.sizes.tolist(), distinct.firsts.tolist()
    ([1, 2, 3], [2, 2, 1], [0, 1, 4])
    """

    def __init__(self, n_classes: int, most: int = _FIRST_CAPACITY) -> None:
        """For columns of so many classes, about ``most`` of which are distinct."""
        self._tables = [_PairTable(min(most, _FIRST_CAPACITY)) for _ in range(max(1, n_classes - 1))]
        self._n_classes, self._n_seen = n_classes, 0

    def __len__(self) -> int:
        return self._tables[-1].n

    @property
    def distinct(self) -> DistinctColumns:
        """All there are so far, by their lowest feature."""
        last, rows = self._tables[-1], []
        codes = np.arange(last.n)
        for table in reversed(self._tables):
            codes, row = table.pairs[codes].T
            rows.append(row)
        totals = np.stack([codes, *reversed(rows)])[: self._n_classes]
        return DistinctColumns(totals, last.sizes[: last.n].copy(), last.firsts[: last.n].copy())

    def add(self, totals: Array) -> None:
        """Number columns (C, m) of whole numbers."""
        if self._are_bytes(totals):
            self._tables[0].number_bytes(totals[0], totals[-1], self._n_seen)
            self._n_seen += totals.shape[1]
        else:
            self._number(totals)

    def codes(self, totals: Array) -> Array:
        """As `add`; return the number of each column."""
        if not self._are_bytes(totals):
            return self._number(totals)
        self.add(totals)
        return self.places(totals)

    def places(self, totals: Array) -> Array:
        """Return the number of each column, of columns that are all known."""
        if not self._are_bytes(totals):
            return self._number(totals)
        table = self._tables[0]
        small = np.flatnonzero((table.pairs[: table.n] < 256).all(axis=1))
        code_of, out = np.full(1 << 16, -1, np.int32), np.empty(totals.shape[1], np.int32)
        code_of[table.pairs[small, 0] << 8 | table.pairs[small, 1]] = small
        _look_up_bytes(read_only(totals[0]), read_only(totals[-1]), code_of, out)
        return out

    def _are_bytes(self, totals: Array) -> bool:
        """Whether pairs index a table without hashing, as those of most panels do."""
        return totals.dtype == np.uint8 and self._n_classes <= 2

    def _number(self, totals: Array) -> Array:
        """Number columns, which are made 64 bits wide where they stay in cache."""
        out = np.empty(totals.shape[1], np.int32)
        for start in range(0, totals.shape[1], _STRETCH):
            wide = totals[:, start : start + _STRETCH].astype(np.int64, order="C")
            codes = self._tables[0].number(wide[0], wide[min(1, len(wide) - 1)], self._n_seen)
            for row, table in zip(wide[2:], self._tables[1:], strict=True):
                codes = table.number(codes, row, self._n_seen)
            out[start : start + _STRETCH] = codes
            self._n_seen += len(codes)
        return out


class _PairTable:
    """Pairs of whole numbers and their codes, by an open-addressing table that grows."""

    def __init__(self, most: int) -> None:
        self.n = 0
        capacity = 1 << max(most, 16).bit_length()  # a power of two, so that a mask of bits finds a slot
        self.pairs = np.zeros((capacity, 2), np.int64)
        self.sizes, self.firsts = np.zeros((2, capacity), np.int64)
        self._slots = np.full(4 * capacity, -1, np.int32)

    def number(self, left: Array, right: Array, first: int) -> Array:
        """Return the codes of some pairs, the first of which is that of feature ``first``."""
        codes, done = np.empty(len(left), np.int32), 0
        while True:
            table = self._slots, self.pairs, self.n, self.sizes, self.firsts
            done, self.n = _intern(left, right, first, done, *table, codes)
            if done == len(codes):
                return codes
            self._grow()

    def number_bytes(self, left: Array, right: Array, first: int) -> None:
        """As `number`, of pairs of bytes, which are tallied first."""
        sizes, firsts = np.zeros((1 << 16, 4), np.int64), np.full(1 << 16, -1, np.int64)
        _tally_bytes(read_only(left), read_only(right), first, sizes.reshape(-1), firsts)
        found = np.flatnonzero(firsts >= 0)
        found = found[np.argsort(firsts[found])]
        before = self.n
        codes = self.number(found >> 8, found & 255, 0)
        self.sizes[codes] += sizes[found].sum(axis=1) - 1  # which is what `number` has added
        new = codes >= before
        self.firsts[codes[new]] = firsts[found[new]]

    def _grow(self) -> None:
        room = 3 * len(self.pairs)
        self.pairs = np.concatenate((self.pairs, np.zeros((room, 2), np.int64)))
        self.sizes, self.firsts = (np.concatenate((x, np.zeros(room, np.int64))) for x in (self.sizes, self.firsts))
        self._slots = np.full(4 * len(self.pairs), -1, np.int32)
        _fill(self._slots, self.pairs[: self.n])


@kernel_part
def _hash(a, b):
    x = (np.uint64(a) * GOLDEN) ^ (np.uint64(b) * np.uint64(0xC2B2AE3D27D4EB4F))
    return x ^ (x >> np.uint64(32))


@kernel
def _fill(slots, pairs):
    """Put known pairs, all distinct, into an empty table."""
    mask = np.uint64(len(slots) - 1)
    for code in range(len(pairs)):
        place = _hash(pairs[code, 0], pairs[code, 1]) & mask
        while slots[place] >= 0:
            place = (place + np.uint64(1)) & mask
        slots[place] = code


@kernel
def _intern(left, right, first, start, slots, pairs, n, sizes, firsts, codes):
    """Number pairs from ``start`` on; returns where it stopped (the end, or a full table) and how many there are."""
    mask = np.uint64(len(slots) - 1)
    for i in range(np.uint64(start), np.uint64(len(codes))):  # numba asks of a signed place whether it is negative
        a, b = np.int64(left[i]), np.int64(right[i])
        place = _hash(a, b) & mask
        while True:
            code = slots[place]
            if code < 0:
                if n == len(pairs):
                    return np.int64(i), n
                slots[place] = n
                pairs[n, 0] = a
                pairs[n, 1] = b
                firsts[n] = first + np.int64(i)
                code = np.int32(n)
                n += 1
                break
            if pairs[code, 0] == a and pairs[code, 1] == b:
                break
            place = (place + np.uint64(1)) & mask
        sizes[np.uint64(code)] += 1
        codes[i] = code
    return len(codes), n


@kernel
def _tally_bytes(left, right, first, sizes, firsts):
    """How often each pair of bytes occurs, and where first (-1: not yet).

    In four counters in turn: most pairs are zeros, and to add to one counter again and again is to wait each time.
    """
    for i in range(len(left)):
        pair = (np.uint64(left[i]) << np.uint64(8)) | np.uint64(right[i])
        sizes[(pair << np.uint64(2)) | (np.uint64(i) & np.uint64(3))] += 1
        if firsts[pair] < 0:
            firsts[pair] = first + i


@kernel
def _look_up_bytes(left, right, code_of, codes):
    """The code of each pair of bytes."""
    for i in range(len(left)):
        codes[i] = code_of[(np.uint64(left[i]) << np.uint64(8)) | np.uint64(right[i])]
