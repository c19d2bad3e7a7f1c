"""A source cut as a test wants it, a layout with several shards in a few hundred entries, and what a store holds."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from nfs_dask.arrays.block import UNLABELLED, Block
from nfs_dask.sources.source import Facts, Sizes, Source
from nfs_dask.sources.zarr import ZarrSource
from nfs_dask.store.layout import Layout

SMALL = Layout(chunk=32, shard=128, row_chunk=8, row_shard=32, block=64)


class ToySource(Source):
    """Rows of a CSR matrix in ``n_blocks`` equal blocks, handed out in two pieces each."""

    def __init__(self, X, codes=None, classes=None, weights=None, names=None, n_blocks=7):
        self.X, self.codes, self.given_weights, self.given_names = X, codes, weights, names
        classes = None if classes is None else np.asarray(classes)
        self._facts = Facts(*X.shape, n_blocks, classes=classes, weighted=weights is not None)
        self._sizes = Sizes(1, 1, 1)

    def blocks(self, start, stop):
        for number in range(start, stop):
            first, last = (self.n_rows * i // self.n_blocks for i in (number, number + 1))
            middle = (first + last) // 2
            yield from (self.piece(a, b, number) for a, b in ((first, middle), (middle, last)) if a < b)

    def piece(self, first, last, number):
        indptr = self.X.indptr[first : last + 1].astype(np.int64)
        entries = slice(indptr[0], indptr[-1])
        codes = np.full(last - first, UNLABELLED) if self.codes is None else self.codes[first:last]
        weights = None if self.given_weights is None else self.given_weights[first:last]
        parts = (indptr - indptr[0], self.X.indices[entries], self.X.data[entries])
        return Block(*parts, codes, self.n_features, weights, first, number)

    def names(self, columns):
        return None if self.given_names is None else [self.given_names[c] for c in columns]

    def part(self, first, last, n_blocks=3):
        """Some of the rows, as a source of its own."""
        cut = [None if a is None else a[first:last] for a in (self.codes, self.given_weights)]
        return ToySource(self.X[first:last], cut[0], self.classes, cut[1], self.given_names, n_blocks)


def example(n_rows=200, n_features=40, *, density=0.1, dtype="uint8", high=5, seed=0, **options):
    """Counts with labels, some rows without one, and some rows without entries."""
    rng = np.random.default_rng(seed)
    dense = rng.integers(1, high + 1, (n_rows, n_features)) * (rng.random((n_rows, n_features)) < density)
    dense[rng.random(n_rows) < 0.1] = 0
    X = sparse.csr_matrix(dense.astype(dtype))
    options.setdefault("codes", rng.integers(-1, 3, n_rows))
    options.setdefault("classes", ["eggs", "ham", "spam"])
    return ToySource(X, **options)


def contents(location, **options):
    """The matrix, codes and weights of a store, put together from its blocks."""
    source = ZarrSource(location, **options)
    blocks = list(source.blocks(0, source.n_blocks))
    assert [block.number for block in blocks] == list(range(source.n_blocks))
    for block in blocks:
        assert block.nbytes <= source.block_nbytes
        assert block.nnz <= source.block_entries
    return joined(blocks, source.n_features)


def joined(blocks, n_features):
    rows = [sparse.csr_matrix((b.data, b.indices, b.indptr), shape=(b.n_rows, n_features)) for b in blocks]
    weights = None if blocks[0].weights is None else np.concatenate([block.weights for block in blocks])
    return sparse.vstack(rows, format="csr"), np.concatenate([block.codes for block in blocks]), weights


def assert_same_matrix(got, expected):
    """Same entries in the same places, stored zeros too."""
    np.testing.assert_array_equal(got.indptr, expected.indptr)
    np.testing.assert_array_equal(got.indices, expected.indices)
    np.testing.assert_array_equal(got.data, expected.data)
