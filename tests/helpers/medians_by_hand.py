"""Medians, dispersions and gains by Python's fractions, and blocks of matrices to compute them from."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from nfs_dask.arrays.block import Block, full_rows
from nfs_dask.testing import columns_of, rows_of


def sparse_block(X, codes, weights=None, **more):
    """A matrix without its zeros, but for a few of them."""
    kept = (X != 0) | (np.add.outer(np.arange(len(X)), np.arange(X.shape[1])) % 11 == 3)
    rows, columns = np.nonzero(kept)
    indptr = np.searchsorted(rows, np.arange(len(X) + 1)).astype(np.int64)
    return Block(indptr, columns.astype(np.int32), X[rows, columns], codes.astype(np.int8), X.shape[1], weights, **more)


def full_block(X, codes, weights=None, **more):
    csr = full_rows(X)
    return Block(csr.indptr, csr.indices, csr.data, codes.astype(np.int8), X.shape[1], weights, full=True, **more)


def blocks_of(X, codes, weights=None, rows=7, make=full_block):
    """A matrix in blocks of some rows."""
    return [
        make(
            X[i : i + rows],
            codes[i : i + rows],
            None if weights is None else weights[i : i + rows],
            first_row=i,
            number=i // rows,
        )
        for i in range(0, len(X), rows)
    ]


def some_columns(blocks, columns):
    """Blocks of a few columns, each by itself and then side by side."""
    out = []
    for block in blocks:
        X = np.zeros((block.n_rows, len(columns)), block.data.dtype)
        for j, column in enumerate(columns):
            part = columns_of(block, int(column), int(column) + 1)
            X[np.repeat(np.arange(block.n_rows), np.diff(part.indptr)), j] = part.data
        out.append(full_block(X, block.codes, block.weights, first_row=block.first_row, number=block.number))
    return out


def medians_by_fractions(X, codes, n_classes, weights=None):
    """Centers, pooled medians, dispersions, pooled dispersions and gains of each column, each rounded once."""
    w = np.ones(len(X), np.int64) if weights is None else weights
    shape = (n_classes, X.shape[1])
    centers, dispersions = np.zeros(shape), np.zeros(shape)
    pooled, common, gains = np.zeros((3, shape[1]))
    for u in range(shape[1]):
        classes = {}
        for c in range(n_classes):
            points = [
                (Fraction(x), Fraction(v))
                for x, v in zip(X[codes == c, u].tolist(), w[codes == c].tolist(), strict=True)
                if v
            ]
            total = sum(v for _, v in points)
            if total:
                classes[c] = [(x, v / total) for x, v in points]
        apart = Fraction(0)
        for c, points in classes.items():
            centers[c, u] = median_by_fractions(points)
            spread = spread_by_fractions(points, centers[c, u])
            dispersions[c, u] = float(spread)
            apart += spread
        every = [point for points in classes.values() for point in points]
        if every:
            pooled[u] = median_by_fractions(every)
            spread = spread_by_fractions(every, pooled[u])
            common[u], gains[u] = float(spread), float(spread - apart)
    return {
        "centers": centers,
        "pooled": pooled,
        "dispersions": dispersions,
        "pooled_dispersions": common,
        "gains": gains,
    }


def median_by_fractions(points):
    """The smallest value at which weights reach half, or the midpoint of it and the next if they are half."""
    total, values = sum(v for _, v in points), sorted({x for x, _ in points})
    for i, value in enumerate(values):
        below = sum(v for x, v in points if x <= value)
        if 2 * below == total:
            return float((value + values[i + 1]) / 2)
        if 2 * below > total:
            return float(value)
    raise AssertionError


def spread_by_fractions(points, middle):
    return sum((v * abs(x - Fraction(middle)) for x, v in points), Fraction(0))


def assert_exact(found, X, codes, weights=None, gains=0.0):
    """To the bit; gains to a relative tolerance, where values differ so much in size that pairs lose digits."""
    for name, values in medians_by_fractions(X, codes, len(found.weight), weights).items():
        if name == "gains" and gains:
            np.testing.assert_allclose(found.gains, values, rtol=gains, atol=0)
        else:
            np.testing.assert_array_equal(getattr(found, name), values, err_msg=name)


__all__ = ["assert_exact", "blocks_of", "full_block", "medians_by_fractions", "rows_of", "some_columns", "sparse_block"]
