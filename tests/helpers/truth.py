"""Class counts of a source, and of numpy."""

from __future__ import annotations

import numpy as np

from nfs_dask.arrays.block import canonical, check_labels, check_structure, check_values, integers_as_integers
from nfs_dask.statistics.counts import ClassCounts, documents, sums


def count(source, blocks=None):
    """(sums, document frequencies) by class, folded from the blocks a source hands out."""
    statistic = ClassCounts(len(source.classes), with_documents=True)
    state = statistic.zero()
    for block in source.blocks(0, source.n_blocks) if blocks is None else blocks:
        check_structure(block)
        check_labels(block, statistic.n_classes)
        check_values(block, "real")
        assert block.indptr.dtype == np.int64
        assert block.nbytes <= source.block_nbytes
        assert block.nnz <= source.block_entries
        statistic.update(state, integers_as_integers(canonical(block)[0]))
    return sums(state.arrays), documents(state.arrays)


def dense_counts(X, y, weights=None):
    """The same from a dense array, by numpy."""
    X = np.asarray(X)
    X = X.astype(np.int64) if X.dtype.kind in "biu" or not (X % 1).any() else X
    weights = np.ones(len(X), np.int64) if weights is None else np.asarray(weights)
    classes = np.unique(y)
    rows = [(np.asarray(y) == c)[:, None] * weights[:, None] for c in classes]
    return np.array([(X * r).sum(axis=0) for r in rows]), np.array([((X > 0) * r).sum(axis=0) for r in rows])


def assert_counts(source, X, y, weights=None, blocks=None):
    """Integers to the bit, reals to rounding."""
    for got, expected in zip(count(source, blocks), dense_counts(X, y, weights), strict=True):
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(got, expected, rtol=1e-12)
        else:
            np.testing.assert_array_equal(got, expected)
