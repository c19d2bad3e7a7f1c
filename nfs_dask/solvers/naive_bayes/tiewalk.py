"""Features tied at the dual point: the best way to choose among them, for two classes.

Every set of the sure features and r of the tied ones is a best set at the dual point, but their gains differ. Sorted
by slope, the r lowest, the r highest and all mixtures "r - j lowest, j highest" are looked at: along a stretch where
both cuts stay inside one cell the gain is concave in j, so that its top is found by bisection.

References: NFS section 3.5, where ties at alpha* are left open: docs/mathematics.md 3.5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nfs_dask.solvers.naive_bayes.gains import divergence
from nfs_dask.solvers.naive_bayes.topk import TIED, TopFeatures
from nfs_dask.solvers.solution import Array


@dataclass(frozen=True)
class Ties:
    """Cells tied with the last one chosen, in order of slope, and the sure rest."""

    sure: TopFeatures
    cells: Array  # (n, ) of the tied, ascending slope
    sizes: Array  # (n, )
    need: int  # how many tied features complete the set

    @property
    def n(self) -> int:
        """Tied features; 0 if there is no choice among them."""
        total = int(self.sizes.sum())
        return total if total > self.need else 0

    def choice(self, j: int) -> TopFeatures:
        """The sure features, the j highest tied ones and the need - j lowest."""
        ends = np.concatenate(([0], np.cumsum(self.sizes)))
        low = np.clip(self.need - j - ends[:-1], 0, self.sizes)
        high = np.clip(j - (ends[-1] - ends[1:]), 0, self.sizes)
        counts = low + high
        taken = counts > 0
        return TopFeatures(
            np.concatenate((self.sure.cells, self.cells[taken])), np.concatenate((self.sure.counts, counts[taken]))
        )


def within(gain: Array, last: float) -> Array:
    """Which gains count as equal to the last one."""
    return np.asarray(np.abs(gain - last) <= TIED * last)


def find_ties(gain: Array, totals: Array, sizes: Array, point: Array, k: int, choice: TopFeatures, also: Array) -> Ties:
    """What is tied at ``point``, where ``choice`` is a best set under ``gain``; ``also`` are cells known to be tied."""
    last = gain[choice.cells].min()
    if not np.isfinite(last):  # all of them forced: no place is left
        nothing = np.zeros(0, np.intp)
        return Ties(choice, nothing, sizes[nothing], 0)
    free = np.isfinite(gain)  # forced columns are not
    tied = np.flatnonzero(free & within(np.where(free, gain, 0.0), last))
    tied = np.union1d(also[free[also]], tied)
    sure = np.flatnonzero(gain > last)
    sure = sure[~np.isin(sure, tied)]
    slope = point[0] * totals[1, tied] - point[1] * totals[0, tied]
    tied = tied[np.argsort(slope, kind="stable")]
    return Ties(TopFeatures(sure, sizes[sure]), tied, sizes[tied], k - int(sizes[sure].sum()))


def walk(ties: Ties, gain: Array, totals: Array, point: Array) -> TopFeatures:
    """The best mixture of the lowest and the highest tied features."""
    path = _Path(ties, gain, totals, point)
    corners = path.corners()
    tops = path.tops(corners)
    candidates = np.unique(np.concatenate((corners, tops)))
    return ties.choice(int(candidates[np.argmax(path.value(candidates))]))


class _Path:
    """Sums along the walk: gains at the point and masses, as functions of j."""

    def __init__(self, ties: Ties, gain: Array, totals: Array, point: Array) -> None:
        columns = np.vstack((gain, totals))
        steps = columns[:, ties.cells] * ties.sizes
        self.need = ties.need
        self.ends = np.concatenate(([0], np.cumsum(ties.sizes)))
        self.sums = np.concatenate((np.zeros((len(steps), 1)), np.cumsum(steps, axis=1)), axis=1)
        self.each = columns[:, ties.cells]
        self.sure = ties.sure.sum(columns)[:, None]
        self.point = point

    def corners(self) -> Array:
        """The j where either cut passes from one cell to the next."""
        j = np.concatenate((self.need - self.ends, self.ends[-1] - self.ends, [0, self.need]))
        return np.unique(j[(j >= 0) & (j <= self.need)])

    def tops(self, corners: Array) -> Array:
        """The two whole j around the top of each stretch between corners."""
        low, high = corners[:-1].copy(), corners[1:].copy()
        direction = self.at(high) - self.at(low)
        direction /= np.maximum(high - low, 1)
        while (wide := high - low > 1).any():
            middle = (low + high) // 2
            rising = self._rises(middle, direction)
            low = np.where(wide & rising, middle, low)
            high = np.where(wide & ~rising, middle, high)
        return np.concatenate((low, high))

    def _rises(self, j: Array, direction: Array) -> Array:
        masses = self.at(j)[1:]
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(masses / masses.sum(axis=0) / self.point[:, None])
            loss = np.where(direction[1:] != 0, direction[1:] * logs, 0.0).sum(axis=0)
        return np.asarray(direction[0] - loss > 0)

    def at(self, j: Array) -> Array:
        """(gain at the point, B+, B-) of the set of each j, (3, len(j))."""
        return self.sure + self._lowest(self.need - j) + self.sums[:, -1:] - self._lowest(self.ends[-1] - j)

    def value(self, j: Array) -> Array:
        """Gain of the set of each j."""
        sums = self.at(j)
        return np.asarray(sums[0] - divergence(sums[1:], self.point))

    def _lowest(self, n: Array) -> Array:
        """Sums over the n tied features of lowest slope."""
        cell = np.clip(np.searchsorted(self.ends, n, side="right") - 1, 0, len(self.ends) - 2)
        return self.sums[:, cell] + self.each[:, cell] * (n - self.ends[cell])
