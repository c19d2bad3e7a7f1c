"""Equal columns of class totals, put together: whole-number counts give few distinct ones.

All scores depend on the tuple (f_1, ..., f_C) of a feature alone, so solvers work on distinct tuples and their sizes.
Cells are ordered by their lowest feature, which is the same for any cut into panels; reals are not grouped.

References: docs/mathematics.md 3.10.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nfs_dask.arrays.compiling import kernel, kernel_part
from nfs_dask.arrays.hashes import GOLDEN
from nfs_dask.arrays.kernels import read_only
from nfs_dask.solvers.solution import Array

_FIRST_CAPACITY = (1 << 12) - 1
_STRETCH = 1 << 14  # columns that are numbered at a time


@dataclass(frozen=True)
class Cells:
    """Distinct columns of class totals, and how many features share each."""

    totals: Array  # (C, M) int64 as counted, or float64
    sizes: Array  # (M, ) int64
    firsts: Array  # (M, ) int64, ascending: the lowest feature of each cell

    @property
    def n_features(self) -> int:
        return int(self.sizes.sum()) if self.grouped else self.totals.shape[1]

    @property
    def grouped(self) -> bool:
        """Whether cells stand for groups; cells of reals are the features themselves."""
        return bool(self.totals.dtype.kind != "f")


def group(totals: Array) -> tuple[Cells, Array | None]:
    """Cells of the columns of ``totals`` (C, m), and the cell of each feature, (m, ) int32; None if ungrouped.

    >>> cells, codes = group(np.array([[1, 0, 1, 1], [2, 0, 2, 3]]))
    >>> cells.totals.tolist(), cells.sizes.tolist(), cells.firsts.tolist(), codes.tolist()
    ([[1, 0, 1], [2, 0, 3]], [2, 1, 1], [0, 1, 3], [0, 1, 0, 2])
    """
    n_features = totals.shape[1]
    if totals.dtype.kind == "f":
        index = np.arange(n_features)
        return Cells(np.asarray(totals, np.float64), np.ones(n_features, np.int64), index), None
    numbering = Numbering(len(totals), n_features)
    codes = numbering.codes(totals)
    return numbering.cells, codes


class Numbering:
    """Cells of columns that come one panel after another, and the numbers of these cells.

    Pairs are numbered, then pairs of such a number and the next class, so that one kernel serves any number of classes.

    >>> numbering = Numbering(2)
    >>> for panel in ([[1, 2], [0, 0]], [[2, 1, 3], [0, 0, 0]]):
    ...     numbering.add(np.array(panel))
    >>> cells = numbering.cells
    >>> cells.totals[0].tolist(), cells.sizes.tolist(), cells.firsts.tolist()
    ([1, 2, 3], [2, 2, 1], [0, 1, 4])
    >>> Numbering.of(cells).codes(np.array([[3, 1], [0, 0]])).tolist()
    [2, 0]
    """

    def __init__(self, n_classes: int, most: int = _FIRST_CAPACITY) -> None:
        """For columns of so many classes, about ``most`` of which are distinct."""
        self._tables = [_Pairs(min(most, _FIRST_CAPACITY)) for _ in range(max(1, n_classes - 1))]
        self._n_classes, self._n_seen = n_classes, 0

    @classmethod
    def of(cls, cells: Cells) -> Numbering:
        """One that knows some cells by their places."""
        known = cls(len(cells.totals))
        known.add(cells.totals)
        return known

    def __len__(self) -> int:
        return self._tables[-1].n

    @property
    def cells(self) -> Cells:
        """All there are so far, by their lowest feature."""
        last, rows = self._tables[-1], []
        codes = np.arange(last.n)
        for table in reversed(self._tables):
            codes, row = table.pairs[codes].T
            rows.append(row)
        totals = np.stack([codes, *reversed(rows)])[: self._n_classes]
        return Cells(totals, last.sizes[: last.n].copy(), last.firsts[: last.n].copy())

    def add(self, totals: Array) -> None:
        """Take in columns (C, m) of whole numbers."""
        if self._are_bytes(totals):
            self._tables[0].number_bytes(totals[0], totals[-1], self._n_seen)
            self._n_seen += totals.shape[1]
            return
        for _ in self._number(totals):
            pass

    def codes(self, totals: Array) -> Array:
        """As `add`; the cell of each column."""
        if self._are_bytes(totals):
            self.add(totals)
            return self.places(totals)
        out, done = np.empty(totals.shape[1], np.int32), 0
        for found in self._number(totals):
            out[done : done + len(found)] = found
            done += len(found)
        return out

    def places(self, totals: Array) -> Array:
        """The cell of each column, of columns that are all known."""
        if not self._are_bytes(totals):
            return self.codes(totals)
        table = self._tables[0]
        small = np.flatnonzero((table.pairs[: table.n] < 256).all(axis=1))
        code_of, out = np.full(1 << 16, -1, np.int32), np.empty(totals.shape[1], np.int32)
        code_of[table.pairs[small, 0] << 8 | table.pairs[small, 1]] = small
        _look_up_bytes(read_only(totals[0]), read_only(totals[-1]), code_of, out)
        return out

    def _are_bytes(self, totals: Array) -> bool:
        """Whether each column has a place of its own in a table, and none is looked for: most panels are like that."""
        return totals.dtype == np.uint8 and self._n_classes <= 2

    def _number(self, totals: Array) -> Iterator[Array]:
        """The cells of some columns after others, which are made 64 bits wide where they stay in cache."""
        for start in range(0, totals.shape[1], _STRETCH):
            wide = totals[:, start : start + _STRETCH].astype(np.int64, order="C")
            codes = self._tables[0].number(wide[0], wide[min(1, len(wide) - 1)], self._n_seen)
            for row, table in zip(wide[2:], self._tables[1:], strict=True):
                codes = table.number(codes, row, self._n_seen)
            self._n_seen += len(codes)
            yield codes


def members(codes: Array, wanted: Array, forced: Array) -> Array:
    """The ``wanted[c]`` lowest features of each cell c, ascending, leaving out the ``forced`` ones (ascending).

    ``wanted`` is counted down in place, so that the next panel goes on where this one ends.
    """
    out = np.empty(min(int(wanted.sum()), len(codes)), np.int64)
    return out[: _take_members(codes, wanted, forced, out)]


def has_equal(totals: Array) -> bool:
    """Whether any two columns of reals are equal.

    >>> has_equal(np.array([[0.5, 2.0, 0.5], [1.0, 1.0, 1.0]]))
    True
    """
    numbering = Numbering(len(totals))
    numbering.add(bits(totals))
    return len(numbering) < totals.shape[1]


def bits(totals: Array) -> Array:
    """Reals of 0 and more as whole numbers that are equal where they are."""
    return np.ascontiguousarray(totals, np.float64).view(np.int64)


class _Pairs:
    """Pairs of whole numbers and their codes, by an open-addressing table that grows."""

    def __init__(self, most: int) -> None:
        self.n = 0
        capacity = 1 << max(most, 16).bit_length()  # a power of two, so that a mask of bits finds a slot
        self.pairs = np.zeros((capacity, 2), np.int64)
        self.sizes, self.firsts = np.zeros((2, capacity), np.int64)
        self._slots = np.full(4 * capacity, -1, np.int32)

    def number(self, left: Array, right: Array, first: int) -> Array:
        """The codes of some pairs, the first of which is that of feature ``first``."""
        codes, done = np.empty(len(left), np.int32), 0
        while True:
            table = self._slots, self.pairs, self.n, self.sizes, self.firsts
            done, self.n = _intern(left, right, first, done, *table, codes)
            if done == len(codes):
                return codes
            self._grow()

    def number_bytes(self, left: Array, right: Array, first: int) -> None:
        """As `number`, of pairs of bytes."""
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


@kernel
def _take_members(codes, wanted, forced, out):
    """Write positions whose cell is still wanted; returns how many."""
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
