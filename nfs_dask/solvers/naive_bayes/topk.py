"""The k features of largest gain, where cells stand for groups of equal ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nfs_dask.arrays.exact_kernels import gather
from nfs_dask.arrays.kernels import kernel
from nfs_dask.solvers.solution import Array

TIED = 1e-9  # relative: gains this close to the k-th one at the dual point count as tied


@dataclass(frozen=True)
class TopFeatures:
    """A set of features: how many it takes of which cells."""

    cells: Array  # (n, ) intp, distinct
    counts: Array  # (n, ) int64, each at least 1

    def spread(self, n_cells: int) -> Array:
        """Counts as (n_cells, ) int64."""
        out = np.zeros(n_cells, np.int64)
        out[self.cells] = self.counts
        return out

    def map(self, column: Callable[[Array], Array]) -> TopFeatures:
        """The same set with other numbers for the cells."""
        return TopFeatures(column(self.cells), self.counts)

    def sum(self, values: Array) -> Array:
        """Sum over the features of ``values``, (M, ) or (n, M), of which rows are taken one after another."""
        return np.asarray((values.take(self.cells, axis=-1) * self.counts).sum(axis=-1))


def top(gain: Array, sizes: Array, k: int) -> TopFeatures:
    """The k features of largest gain; of equal ones those of the lower cell. Takes all if there are fewer.

    ``sizes`` are at least 1.

    >>> top(np.array([1.0, 3.0, 1.0, 2.0]), np.array([2, 1, 1, 1]), 3)
    TopFeatures(cells=array([1, 3, 0]), counts=array([1, 1, 1]))
    """
    if k >= len(gain) + int(sizes.sum()) - len(sizes):
        return TopFeatures(np.arange(len(gain)), sizes)
    if k == 0:
        return TopFeatures(np.zeros(0, np.intp), np.zeros(0, np.int64))
    if int(sizes.sum()) == len(sizes):
        return _top_single(gain, k)
    kept = np.arange(len(gain))
    if len(gain) > 4 * k + 1000:  # every cell holds a feature or more, so that the k best cells are enough
        kept = np.flatnonzero(gain >= np.partition(gain, len(gain) - k)[len(gain) - k])
    order = kept[np.argsort(-gain[kept], kind="stable")]
    through = np.cumsum(sizes[order])
    n = int(np.searchsorted(through, k))  # cells before this one are taken whole
    counts = sizes[order[: n + 1]].copy()
    counts[n] -= through[n] - k
    return TopFeatures(order[: n + 1], counts)


def _top_single(gain: Array, k: int) -> TopFeatures:
    """As `top`, where every cell is one feature: no sort is needed."""
    last = np.partition(gain, len(gain) - k)[len(gain) - k]
    above = gain > last
    equal = np.flatnonzero(gain == last)[: k - np.count_nonzero(above)]
    above[equal] = True
    cells = np.flatnonzero(above)
    return TopFeatures(cells, np.ones(len(cells), np.int64))


def sums_of_first(columns: Array, sizes: Array, ks: Array) -> Array:
    """Sums of each row of ``columns`` (n, M) over the first k features, (n, len(ks)); ``ks`` ascend.

    >>> sums_of_first(np.array([[5.0, 3.0, 1.0]]), np.array([1, 2, 1]), np.array([1, 2, 4])).tolist()
    [[5.0, 8.0, 12.0]]
    """
    out = np.zeros((len(columns), len(ks)))
    _sum_first(columns, sizes, ks, out)
    return out


@kernel
def _sum_first(columns, sizes, ks, out):
    """Sums of each row over the first k features, where what additions round off is added up too."""
    for row in range(len(columns)):
        total, rest, through, j = 0.0, 0.0, 0, 0
        for i in range(len(sizes)):
            while j < len(ks) and ks[j] <= through + sizes[i]:
                out[row, j] = total + (rest + columns[row, i] * (ks[j] - through))
                j += 1
            if j == len(ks):
                break
            total, rest = gather(total, rest, columns[row, i] * sizes[i])
            through += sizes[i]
