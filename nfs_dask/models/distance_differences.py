"""How much nearer rows are to the centre of each class than to a common one: loops over the entries of CSR rows.

Distances are never subtracted. The squares ``(x - pooled)^2 - (x - center)^2`` are the product of ``center - pooled``
and ``(x - center) + (x - pooled)``, and the absolute values take one of three forms; both are as exact for values
around a million as for values around zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numba
import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.arrays.compiling import kernel
from nfs_dask.arrays.kernels import read_only


class CsrEntries(NamedTuple):
    """Entries of rows, as CSR: pointers, the position of each entry among the features (-1: skip it), and values."""

    indptr: Array
    positions: Array
    data: Array


class CenterTables(NamedTuple):
    """What distances depend on, by feature, so that what an entry adds lies together."""

    plain: bool  # whether distances are absolute differences, rather than squares
    centers: Array  # (k, C)
    pooled: Array  # (k,)
    slopes: Array  # (k, C) centers less pooled, over the variances


def advantages(entries: CsrEntries, centers: CenterTables, at_zero: Array) -> Array:
    """Sums over all features of the distance to ``pooled`` less that to the centre of each class, (n, C)."""
    everything = np.arange(len(at_zero))
    uses = np.ones(len(at_zero), np.int64)
    return nested_advantages(entries, centers, at_zero, at_zero.sum(axis=0)[None], uses, [everything])[:, 0]


def advantages_of_matrix(matrix: Array, columns: Array, centers: CenterTables, at_zero: Array) -> Array:
    """The same, to the bit, of rows whose features are some columns of a dense array."""
    out = np.empty((len(matrix), at_zero.shape[1]))
    _add_matrix(read_only(matrix), read_only(columns), *centers, at_zero, at_zero.sum(axis=0), out)
    return out


def nested_advantages(
    entries: CsrEntries, centers: CenterTables, at_zero: Array, empty: Array, uses: Array, places: Sequence[Array]
) -> Array:
    """The same sums over parts of the features, each of which has those that follow, (n, P, C).

    Parameters
    ----------
    empty : (P, C)
        What the features of each part add where they are 0.
    uses : (k,) int64
        In how many of the parts a feature is: in the first ones.
    places
        The features of each part, ascending.
    """
    out = np.empty((len(entries.indptr) - 1, *empty.shape[::-1]))
    ends = np.cumsum([0, *map(len, places)])
    row, present = np.zeros(len(at_zero)), np.zeros(len(places) + 1, np.int64)
    start = np.ascontiguousarray(empty.T)
    _add_rows(*entries, *centers, at_zero, start, uses, ends, np.concatenate(places), row, present, out)
    return out.transpose(0, 2, 1)


def advantages_at_zero(centers: CenterTables) -> Array:
    """What each feature adds where it is 0, (k, C)."""
    return parts_at_zero(centers, np.zeros(len(centers.pooled), np.int64), 0)[0]


def parts_at_zero(centers: CenterTables, uses: Array, n_parts: int) -> tuple[Array, Array]:
    """The same, and what the features of each part add then, (P, C): added up in their order, as numpy does."""
    out, sums = np.empty(centers.centers.shape), np.zeros((n_parts, centers.centers.shape[1]))
    _fill_at_zero(*centers, uses, out, sums)
    return out, sums


def beside(centers: CenterTables, rows: Array, row: Array) -> tuple[Array, Array]:
    """What values of rows, (n, k), change beside those of another row, (n, k, C), and the advantages of that, (k, C).

    An absolute value counts as far as it lies between the two centres, which makes its advantage linear too.
    """
    middles, pooled, weights = centers.centers, centers.pooled[:, None], centers.slopes
    values, row = rows[..., None], row[:, None]
    if centers.plain:
        ends = np.minimum(middles, pooled), np.maximum(middles, pooled)
        values, row, weights = np.clip(values, *ends), np.clip(row, *ends), np.sign(weights)
    return 2 * weights * (values - row), weights * ((row - middles) + (row - pooled))


def mismatches(entries: CsrEntries, centers: Array, exact: Array) -> Array:
    """In how many of the ``exact`` features each row differs from the centre of each class, (n, C) int64."""
    out = np.tile((centers[exact] != 0).sum(axis=0), (len(entries.indptr) - 1, 1))
    _count_mismatches(*entries, centers, exact, out)
    return out


@numba.njit(nogil=True, inline="always")
def _advantage(plain, x, center, pooled, slope):
    """The distance of x to the common centre less that to the centre of a class."""
    both = (x - center) + (x - pooled)
    if not plain:
        return slope * both
    most = abs(slope)  # which is reached where x lies beyond both centres
    both = both if slope >= 0 else -both
    both = most if both > most else both
    return -most if both < -most else both


@kernel
def _fill_at_zero(plain, centers, pooled, slopes, uses, out, sums):
    """out[feature, class] = the advantage of a value of 0; sums[part, class] += that of every feature of the part."""
    for p in range(centers.shape[0]):
        for c in range(centers.shape[1]):
            out[p, c] = _advantage(plain, 0.0, centers[p, c], pooled[p], slopes[p, c])
        for part in range(uses[p]):
            for c in range(centers.shape[1]):
                sums[part, c] += out[p, c]


@kernel
def _add_rows(
    indptr, positions, data, plain, centers, pooled, slopes, at_zero, empty, uses, ends, places, row, present, out
):
    """out[row, class, part] = the advantage of every feature of the part.

    A row that has at least half of the features of a part is laid out in ``row``, which is all 0 between rows, and they
    are added one by one. Of another one, the features it has take the place of what ``empty`` counts for them, so that
    it costs what it has. A stored 0 is none of those: the way a row is stored changes nothing.
    """
    n_classes, n_parts = empty.shape
    for i in range(len(indptr) - 1):
        present[:] = 0
        for j in range(indptr[i], indptr[i + 1]):
            if positions[j] >= 0 and data[j] != 0:
                present[uses[positions[j]]] += 1
        dense = 0
        for part in range(n_parts - 1, -1, -1):
            present[part] += present[part + 1]
            dense += int(2 * present[part + 1] >= ends[part + 1] - ends[part])
        if dense < n_parts:
            out[i] = empty
            for j in range(indptr[i], indptr[i + 1]):
                p = positions[j]
                if p >= 0 and data[j] != 0:
                    x = np.float64(data[j])
                    for c in range(n_classes):
                        more = _advantage(plain, x, centers[p, c], pooled[p], slopes[p, c]) - at_zero[p, c]
                        sums = out[i, c]
                        for part in range(uses[p]):
                            sums[part] += more
        if dense > 0:
            for j in range(indptr[i], indptr[i + 1]):
                if positions[j] >= 0:
                    row[positions[j]] = np.float64(data[j])
            for part in range(n_parts):
                if 2 * present[part + 1] >= ends[part + 1] - ends[part]:
                    out[i, :, part] = 0
                    for place in range(ends[part], ends[part + 1]):
                        p = places[place]
                        for c in range(n_classes):
                            out[i, c, part] += _advantage(plain, row[p], centers[p, c], pooled[p], slopes[p, c])
            for j in range(indptr[i], indptr[i + 1]):
                if positions[j] >= 0:
                    row[positions[j]] = 0


@kernel
def _add_matrix(matrix, columns, plain, centers, pooled, slopes, at_zero, empty, out):
    """out[row, class] = the advantage of every feature, as `_add_rows` adds them up: a 0 adds nothing to ``empty``."""
    n_classes, nothing = len(empty), np.zeros(at_zero.shape)
    for i in range(len(matrix)):
        present = 0
        for p in range(len(columns)):
            present += int(matrix[i, np.uint64(columns[p])] != 0)
        few = 2 * present < len(columns)
        counted = at_zero if few else nothing
        for c in range(n_classes):
            out[i, c] = empty[c] if few else 0.0
        for p in range(len(columns)):
            x = np.float64(matrix[i, np.uint64(columns[p])])
            for c in range(n_classes):
                out[i, c] += _advantage(plain, x, centers[p, c], pooled[p], slopes[p, c]) - counted[p, c]


@kernel
def _count_mismatches(indptr, positions, data, centers, exact, out):
    """out[row, class] += 1 for each exact feature that is not at the centre, -1 for one that was only without it."""
    for i in range(len(indptr) - 1):
        for j in range(indptr[i], indptr[i + 1]):
            p = positions[j]
            if p >= 0 and exact[p]:
                x = np.float64(data[j])
                for c in range(centers.shape[1]):
                    if x != centers[p, c]:
                        out[i, c] += 1
                    if centers[p, c] != 0:
                        out[i, c] -= 1
