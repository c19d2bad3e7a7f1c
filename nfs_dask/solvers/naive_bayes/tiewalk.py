"""Features tied at the dual point: the best way to choose among them, for two classes.

Every set of the sure features and r of the tied ones is a best set at the dual point, but their gains differ. Sorted
by slope, the r lowest, the r highest and all mixtures "r - j lowest, j highest" are looked at: along a stretch where
both cuts stay inside one cell the gain is concave in j, so that its top is found by bisection.

References: NFS section 3.5, where ties at alpha* are left open: docs/mathematics.md 3.5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nfs_dask.arrays.compiling import inlined_part, kernel, kernel_part
from nfs_dask.solvers.naive_bayes.gains import divergence
from nfs_dask.solvers.naive_bayes.topk import TIED, TopFeatures
from nfs_dask.solvers.solution import Array


@dataclass(frozen=True)
class Ties:
    """Cells tied with the last one chosen, and the sure rest."""

    sure: TopFeatures
    cells: Array  # (n, ) of the tied, ascending
    sizes: Array  # (n, )
    need: int  # how many tied features complete the set

    @property
    def n(self) -> int:
        """Tied features; 0 if there is no choice among them."""
        total = int(self.sizes.sum())
        return total if total > self.need else 0


def within(gain: Array, last: float) -> Array:
    """Which gains count as equal to the last one."""
    return np.asarray(np.abs(gain - last) <= TIED * last)


def find_ties(
    gain: Array, sizes: Array, n_forced: int, k: int, choice: TopFeatures, low: TopFeatures, high: TopFeatures
) -> Ties:
    """What is tied where ``choice`` is a best set under ``gain``; so are cells that ``low`` and ``high`` differ in."""
    n_free = len(gain) - n_forced
    if n_forced:
        gain = gain.copy()
        gain[n_free:] = np.inf
    last = gain[choice.cells].min()
    if last == np.inf:  # all of them forced: no place is left
        return Ties(choice, choice.cells[:0], sizes[:0], 0)
    apart = low.spread(len(gain))
    apart[high.cells] -= high.counts
    near = (apart != 0) | (np.abs(gain - last) <= TIED * last)
    near[n_free:] = False
    tied, sure = near.nonzero()[0], (~near & (gain > last)).nonzero()[0]
    taken = sizes[sure]
    return Ties(TopFeatures(sure, taken), tied, sizes[tied], k - int(taken.sum()))


def walk(ties: Ties, gain: Array, totals: Array, point: Array) -> TopFeatures:
    """The best mixture of the lowest and the highest tied features."""
    a, b = point.tolist()
    order = (a * totals[1].take(ties.cells) - b * totals[0].take(ties.cells)).argsort(kind="stable")
    tied, sizes, sure = ties.cells[order], ties.sizes[order], ties.sure
    weighed = np.empty((3, len(sure.cells)))
    weighed[0] = gain.take(sure.cells)
    weighed[1:] = totals.take(sure.cells, axis=1)
    weighed *= sure.counts
    most = 6 * len(tied) + 12
    each, sums, at = np.empty((3, len(tied))), np.empty((3, len(tied) + 1)), np.empty((3, most))
    ends, found = np.empty(len(tied) + 1, np.int64), np.empty(most, np.int64)
    n = _candidates(gain, totals, point, tied, sizes, ties.need, weighed.sum(axis=1), each, ends, sums, found, at)
    values = at[0, :n] - divergence(at[1:, :n], point)
    j = int(found[:n][values == values.max()].min())
    lowest = np.minimum(np.maximum(ties.need - j - ends[:-1], 0), sizes)
    counts = lowest + np.minimum(np.maximum(j - ends[-1] + ends[1:], 0), sizes)
    taken = counts.nonzero()[0]
    return TopFeatures(np.concatenate((sure.cells, tied[taken])), np.concatenate((sure.counts, counts[taken])))


@kernel
def _candidates(gain, totals, point, tied, sizes, need, sure, each, ends, sums, found, at):
    """Writes j for which the j highest and the need - j lowest of tied features may gain most, and sums of these sets.

    These are where either cut passes from one cell to the next, and the two around the top in between. Returns how
    many they are. ``each``, ``ends`` and ``sums`` are memory for what the tied ones add, one by one and together.
    """
    ends[0] = sums[0, 0] = sums[1, 0] = sums[2, 0] = 0
    for i in range(len(tied)):
        ends[i + 1] = ends[i] + sizes[i]
        each[0, i] = gain[tied[i]]
        each[1, i] = totals[0, tied[i]]
        each[2, i] = totals[1, tied[i]]
        for row in range(3):
            sums[row, i + 1] = sums[row, i] + each[row, i] * sizes[i]
    i = j = len(ends) - 1
    n = last = np.int64(0)  # whose type is known at once: parts would also be compiled for a literal 0
    while i >= 0 or j >= 0:  # both ascend as i and j descend
        corner = need + 1
        if i >= 0:
            corner = need - ends[i]
        if j >= 0 and ends[-1] - ends[j] <= corner:
            if ends[-1] - ends[j] == corner:
                i -= 1
            corner = ends[-1] - ends[j]
            j -= 1
        else:
            i -= 1
        if corner > need:
            break
        if corner < 0 or (n > 0 and corner == found[last]):
            continue
        here = n
        found[here] = corner
        _sums_at(corner, each, ends, sums, sure, need, here, at)
        n += 1
        if here > 0 and corner - found[last] > 1:
            n = _tops(point, each, ends, sums, sure, need, last, here, found, at)
        last = here
    return n


@inlined_part
def _tops(point, each, ends, sums, sure, need, before, after, found, at):
    """Appends the two j around the top between two corners; where sums are in between tells on which side it is."""
    low, high = found[before], found[after]
    n, width = after + 1, high - low
    while high - low > 1:
        middle = (low + high) >> 1
        _sums_at(middle, each, ends, sums, sure, need, n, at)
        mass, loss = at[1, n] + at[2, n], 0.0
        for c in range(1, 3):
            step = (at[c, after] - at[c, before]) / width
            if step != 0:
                loss += step * (math.log(at[c, n] / mass / point[c - 1]) if mass > 0 else np.nan)
        if (at[0, after] - at[0, before]) / width - loss > 0:
            low = middle
        else:
            high = middle
    found[n] = low
    found[n + 1] = high
    for i in range(n, n + 2):
        _sums_at(found[i], each, ends, sums, sure, need, i, at)
    return n + 2


@kernel_part
def _sums_at(j, each, ends, sums, sure, need, place, at):
    """Gain at the point, B+ and B- of the set of ``j`` highest."""
    n = len(ends) - 1
    a = _cell_of(ends, need - j)
    b = _cell_of(ends, ends[n] - j)
    for row in range(3):
        lowest = sums[row, a] + each[row, a] * (need - j - ends[a])
        at[row, place] = sure[row] + lowest + sums[row, n] - (sums[row, b] + each[row, b] * (ends[n] - j - ends[b]))


@kernel_part
def _cell_of(ends, n):
    """The last cell that begins at ``n`` or before."""
    low, high = 0, len(ends) - 1
    while high - low > 1:
        middle = (low + high) >> 1
        if ends[middle] <= n:
            low = middle
        else:
            high = middle
    return low
