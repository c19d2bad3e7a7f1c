"""Equal columns of class totals, put together: whole-number counts give few distinct ones.

All scores depend on the tuple (f_1, ..., f_C) of a feature alone, so solvers work on distinct tuples and their sizes.
Cells are ordered by their lowest feature, which is the same for any cut into panels; reals are not grouped.

References: docs/mathematics.md 3.10.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numba
import numpy as np

from nfs_dask.arrays.compiling import kernel
from nfs_dask.arrays.hashes import GOLDEN
from nfs_dask.solvers.solution import Array

_FIRST_CAPACITY = 1 << 12


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
    codes, sizes, firsts = _number(totals)
    return Cells(np.asarray(totals[:, firsts], np.int64), sizes, firsts), codes


def merge(parts: Sequence[Cells], offsets: Sequence[int]) -> Cells:
    """Cells of a whole from those of its panels; ``offsets`` is the first feature of each panel, in any order.

    >>> left, right = (group(np.array(t))[0] for t in ([[1, 2], [0, 0]], [[2, 1, 3], [0, 0, 0]]))
    >>> whole = merge([right, left], [2, 0])
    >>> whole.totals[0].tolist(), whole.sizes.tolist(), whole.firsts.tolist()
    ([1, 2, 3], [2, 2, 1], [0, 1, 4])
    """
    firsts = np.concatenate([part.firsts + offset for part, offset in zip(parts, offsets, strict=True)])
    order = np.argsort(firsts)
    totals = np.concatenate([part.totals for part in parts], axis=1)[:, order]
    sizes = np.concatenate([part.sizes for part in parts])[order]
    if totals.dtype.kind == "f":
        return Cells(totals, sizes, firsts[order])
    codes, pieces, leaders = _number(totals)
    together = np.zeros(len(pieces), np.int64)
    np.add.at(together, codes, sizes)
    return Cells(totals[:, leaders], together, firsts[order][leaders])


def lookup(totals: Array, cells: Cells) -> Array:
    """The cell of each column of a panel, for a panel that did not keep them; all must be in ``cells``.

    >>> cells, codes = group(np.array([[1, 0, 1, 1], [2, 0, 2, 3]]))
    >>> lookup(np.array([[1, 1], [3, 2]]), cells).tolist()
    [2, 0]
    """
    n = cells.totals.shape[1]
    codes, sizes, _ = _number(np.concatenate((cells.totals, totals), axis=1))
    assert len(sizes) == n, "a panel has columns that are in no cell"
    return codes[n:]


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
    return len(_number(bits(totals))[1]) < totals.shape[1]


def bits(totals: Array) -> Array:
    """Reals of 0 and more as whole numbers that are equal where they are."""
    return np.ascontiguousarray(totals, np.float64).view(np.int64)


def _number(totals: Array) -> tuple[Array, Array, Array]:
    """Codes of the columns in order of first appearance, how many share each code, and the first that does.

    Pairs are numbered, then pairs of such a number and the next class, so that one kernel serves any number of classes.
    """
    totals = np.ascontiguousarray(totals, np.int64)
    codes, sizes, firsts = _number_pairs(totals[0], totals[min(1, len(totals) - 1)])
    for row in totals[2:]:
        codes, sizes, firsts = _number_pairs(codes, row)
    return codes, sizes, firsts


def _number_pairs(left: Array, right: Array) -> tuple[Array, Array, Array]:
    """`_number` of two rows, by an open-addressing table that grows."""
    codes = np.empty(len(left), np.int32)
    pairs = np.zeros((_FIRST_CAPACITY, 2), np.int64)
    sizes, firsts = np.zeros(_FIRST_CAPACITY, np.int64), np.zeros(_FIRST_CAPACITY, np.int64)
    done, n = 0, 0
    while True:
        slots = np.full(4 * len(pairs), -1, np.int32)
        _fill(slots, pairs[:n])
        done, n = _intern(left, right, done, slots, pairs, n, sizes, firsts, codes)
        if done == len(codes):
            return codes, sizes[:n].copy(), firsts[:n].copy()
        room = 3 * len(pairs)
        pairs = np.concatenate((pairs, np.zeros((room, 2), np.int64)))
        sizes, firsts = (np.concatenate((x, np.zeros(room, np.int64))) for x in (sizes, firsts))


@numba.njit(nogil=True)
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
def _intern(left, right, start, slots, pairs, n, sizes, firsts, codes):
    """Number pairs from ``start`` on; returns where it stopped (the end, or a full table) and how many there are."""
    mask = np.uint64(len(slots) - 1)
    for i in range(start, len(codes)):
        a, b = np.int64(left[i]), np.int64(right[i])
        place = _hash(a, b) & mask
        while True:
            code = slots[place]
            if code < 0:
                if n == len(pairs):
                    return i, n
                slots[place] = n
                pairs[n, 0] = a
                pairs[n, 1] = b
                firsts[n] = i
                code = n
                n += 1
                break
            if pairs[code, 0] == a and pairs[code, 1] == b:
                break
            place = (place + np.uint64(1)) & mask
        sizes[code] += 1
        codes[i] = code
    return len(codes), n


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
