"""The k features of largest gain, where cells stand for groups of equal ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nfs_dask.arrays.compiling import kernel, kernel_part
from nfs_dask.arrays.exact_kernels import gather
from nfs_dask.solvers.solution import Array

_SORTED = 5_000  # values that are sorted at once
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
    TopFeatures(cells=array([0, 1, 3]), counts=array([1, 1, 1]))
    """
    if k >= len(gain) + int(sizes.sum()) - len(sizes):
        return TopFeatures(np.arange(len(gain)), sizes)
    if k == 0:
        return TopFeatures(np.zeros(0, np.intp), np.zeros(0, np.int64))
    if int(sizes.sum()) == len(sizes):
        return _top_single(gain, k)
    last = kth_largest(gain, sizes, k)
    counts = np.where(gain > last, sizes, 0)
    equal = np.flatnonzero(gain == last)
    before = np.cumsum(sizes[equal]) - sizes[equal]
    counts[equal] = np.clip(k - int(counts.sum()) - before, 0, sizes[equal])
    cells = np.flatnonzero(counts)
    return TopFeatures(cells, counts[cells])


def _top_single(gain: Array, k: int) -> TopFeatures:
    """As `top`, where every cell is one feature: no sort is needed."""
    last = np.partition(gain, len(gain) - k)[len(gain) - k]
    above = gain > last
    equal = np.flatnonzero(gain == last)[: k - np.count_nonzero(above)]
    above[equal] = True
    cells = np.flatnonzero(above)
    return TopFeatures(cells, np.ones(len(cells), np.int64))


def kth_largest(values: Array, sizes: Array, k: int) -> float:
    """The k-th largest value, each counted ``sizes`` times; -inf if there are fewer than k."""
    n = len(values)
    total = int(sizes.sum())
    if k > total:
        return -np.inf
    if k <= 0:
        return np.inf
    if total == n:
        return float(np.partition(values, n - k)[n - k])
    before = 0
    if n > _SORTED:
        values, sizes, before = _near_kth(values, sizes, k)
    order = np.argsort(-values, kind="stable")
    return float(values[order[np.searchsorted(np.cumsum(sizes[order]), k - before)]])


def _near_kth(values: Array, sizes: Array, k: int) -> tuple[Array, Array, int]:
    """Those with the leading bits of the k-th largest, their sizes, and how many features have larger ones."""
    weights, near = np.zeros(1 << 15, np.int64), np.empty(len(values) + 1, np.int64)
    n, before = _find_near(np.ascontiguousarray(values), sizes, k, weights, near)
    return values[near[:n]], sizes[near[:n]], before


@kernel_part
def _leading(bits):
    """The leading 16 bits, which are in order where values are not negative; 0 for those that are."""
    return max(bits >> 48, 0)


@kernel
def _find_near(values, sizes, k, weights, near):
    """Writes which values share their leading bits with the k-th largest; ``weights``, all 0, has a place for each."""
    bits = values.view(np.int64)
    place = 0
    for i in range(len(bits)):
        leading = _leading(bits[i])
        weights[leading] += sizes[i]
        place = max(place, leading)
    before, n = 0, 0
    while before + weights[place] < k:
        before += weights[place]
        place -= 1
    for i in range(len(bits)):
        near[n] = i
        n += int(_leading(bits[i]) == place)
    return n, before


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
