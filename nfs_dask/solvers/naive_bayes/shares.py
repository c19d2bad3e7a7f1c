"""Bounds of gains over an interval of points, read from a table by the share and the count of a column.

For two classes. A gain is its count g times a number that depends on the share of the rarer class alone: g KL(p || a).
A table knows the least and the most of that number over an interval of points and a narrow range of shares, so that a
look at all columns takes no logarithm. Divergence is convex in both of its arguments: over a range of shares and an
interval of points its most is at a corner, and so is its least, unless the two overlap, where it is 0.

References: docs/mathematics.md 3.4.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from nfs_dask.arrays.compiling import kernel
from nfs_dask.solvers.naive_bayes.gains import gains
from nfs_dask.solvers.solution import Array

_OCTAVES = 40  # of shares below a half that are told apart; smaller ones are in one range with 0
_WIDENED = 2.0**-20  # relative: more than the rounding of a share, so much that the least is not made of rounding
_SAFE = 1e-9  # relative: more than the rounding of any bound here
_MANTISSA, _HALF = 52, 1022  # bits of a double; its exponent of a half


@dataclass(frozen=True)
class ShareTable:
    """Least and most gain for each count, by ranges of the share of the rarer class."""

    bounds: Array  # (2, ranges, 2): of columns mostly of the second class or of the first; least and most
    shift: int  # what of the bits of a share does not matter

    @classmethod
    def over(cls, low: Array, high: Array, parts: int) -> ShareTable:
        """For all points from ``low`` to ``high``, each (2, ); a power of two ``parts`` of each octave of shares."""
        shift = _MANTISSA - (parts.bit_length() - 1)
        first = (_HALF - _OCTAVES) << (_MANTISSA - shift)
        edges = ((first + np.arange(_OCTAVES * parts + 2)) << shift).view(np.float64)
        rarer = np.concatenate(([0.0], edges[:-1])) * (1 - _WIDENED), edges * (1 + _WIDENED)
        return cls(np.stack((_corners(*rarer, low, high), _corners(*rarer, low[::-1], high[::-1]))), shift)

    def of(self, totals: Array) -> tuple[Array, Array]:
        """Least and most gain of each column, (M, ) each."""
        out = np.empty((2, totals.shape[1]))
        _bounds(totals, self.bounds, self.shift, out)
        return out[0], out[1]

    def sift(self, totals: Array, sizes: Array, k: int, floor: float, ceiling: float) -> tuple[Array, Array] | None:
        """Columns that may be among the k best, and of these the ones that are, at all points of the interval.

        None where k gains are not known to reach ``floor``; none are known to be among the best if gains of more than
        k features may be above ``ceiling``. Both ascend, and are disjoint.
        """
        maybe, sure = np.empty((2, totals.shape[1] + 1), np.int64)
        n, s, reaching, above = _sift(totals, sizes, self.bounds, self.shift, floor, ceiling, maybe, sure)
        if reaching < k:
            return None
        if above > k:
            return np.sort(np.concatenate((maybe[:n], sure[:s]))), sure[:0]
        return maybe[:n].copy(), sure[:s].copy()


def _corners(least: Array, most: Array, low: Array, high: Array) -> Array:
    """Least and most gain of one count, (n, 2), where the first class has a share between ``least`` and ``most``."""
    at = [gains(np.stack((share, 1 - share)), point) for share in (least, most) for point in (low, high)]
    overlap = (least <= max(low[0], high[0])) & (most >= min(low[0], high[0]))
    return np.stack(
        (np.where(overlap, 0.0, np.min(at, axis=0)) * (1 - _SAFE), np.max(at, axis=0) * (1 + _SAFE)), axis=1
    )


@numba.njit(nogil=True)
def _range_of(share, shift):
    """The range of a share: its leading bits, as those of positive doubles are in order."""
    bits = np.int64(np.float64(share).view(np.int64) >> shift)
    return max(np.int64(0), bits - ((_HALF - _OCTAVES) << (_MANTISSA - shift)) + 1)


@kernel
def _bounds(totals, bounds, shift, out):
    for i in range(totals.shape[1]):
        f, e = totals[0, i], totals[1, i]
        g = f + e
        out[0, i], out[1, i] = 0.0, 0.0
        if g > 0:
            side = np.int64(e < f)
            place = _range_of(min(f, e) / g, shift)
            out[0, i], out[1, i] = g * bounds[side, place, 0], g * bounds[side, place, 1]


@kernel
def _sift(totals, sizes, bounds, shift, floor, ceiling, maybe, sure):
    """Writes both kinds of columns; returns how many, and how many features reach the floor and may be above the top.

    Without branches, which processors would mostly guess wrong: each column is written, and kept by going on.
    """
    n, s, reaching, above = 0, 0, 0, 0
    for i in range(totals.shape[1]):
        f, e = totals[0, i], totals[1, i]
        g = f + e
        place = _range_of(min(f, e) / (g if g > 0 else 1.0), shift)
        side = np.int64(e < f)
        least, most = g * bounds[side, place, 0], g * bounds[side, place, 1]
        reaching += sizes[i] * int(least >= floor)
        above += sizes[i] * int(most > ceiling)
        certain = least > ceiling
        maybe[n] = i
        n += int((most >= floor) & ~certain)
        sure[s] = i
        s += int(certain)
    return n, s, reaching, above
