"""The k features of largest gain, where columns may stand for several equal features."""

from __future__ import annotations

import numpy as np

from nfs_dask.arrays.compiling import kernel, kernel_part
from nfs_dask.arrays.exact_kernels import gather
from nfs_dask.solvers.solution import Array, FeatureSet

_SORTED = 5_000  # values that are sorted at once


def top(gain: Array, sizes: Array, k: int) -> FeatureSet:
    """Return the k features of largest gain, of equal ones those of the lower column; all if there are fewer.

    ``sizes`` are at least 1.

    >>> top(np.array([1.0, 3.0, 1.0, 2.0]), np.array([2, 1, 1, 1]), 3)
    FeatureSet(columns=array([0, 1, 3]), counts=array([1, 1, 1]))
    """
    if k >= len(gain) + int(sizes.sum()) - len(sizes):
        return FeatureSet(np.arange(len(gain)), sizes)
    if k == 0:
        return FeatureSet(np.zeros(0, np.intp), np.zeros(0, np.int64))
    last = kth_largest(gain, sizes, k)
    counts = np.where(gain > last, sizes, 0)
    equal = np.flatnonzero(gain == last)
    before = np.cumsum(sizes[equal]) - sizes[equal]
    counts[equal] = np.minimum(np.maximum(k - int(counts.sum()) - before, 0), sizes[equal])
    return FeatureSet.of(counts)


def kth_largest(values: Array, sizes: Array, k: int) -> float:
    """Return the k-th largest value, each counted ``sizes`` times; -inf if there are fewer than k."""
    n, total = len(values), int(sizes.sum())
    if k > total:
        return -np.inf
    if k <= 0:
        return np.inf
    if n > _SORTED:
        weights, near = np.zeros(1 << 15, np.int64), np.empty(n + 1, np.int64)
        n, before = _find_near(np.ascontiguousarray(values), sizes, k, weights, near)
        values, sizes, k = values[near[:n]], sizes[near[:n]], k - before
        total = int(sizes.sum())
    if total == n:
        return float(np.partition(values, n - k)[n - k])
    order = np.argsort(-values, kind="stable")
    return float(values[order[np.searchsorted(np.cumsum(sizes[order]), k)]])


def union(*ascending: Array) -> Array:
    """Return the values of some ascending arrays, ascending, each once."""
    values = np.sort(np.concatenate(ascending), kind="stable")  # which merges runs; np.unique would hash
    return values[np.append(True, values[1:] != values[:-1])[: len(values)]]


@kernel_part
def _leading(bits):
    """The leading 16 bits, which are in order where values are not negative; 0 for those that are."""
    return max(bits >> 48, 0)


@kernel
def _find_near(values, sizes, k, weights, near):
    """Write which values share their leading bits with the k-th largest; ``weights``, all 0, has a place for each."""
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
    """Return sums of each row of ``columns`` (n, M) over the first k features, (n, len(ks)); ``ks`` ascend.

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
