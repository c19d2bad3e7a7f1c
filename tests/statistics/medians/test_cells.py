"""Cells between edges against numpy, and the laws."""

from __future__ import annotations

import json

import numpy as np
import pytest

from nfs_dask.errors import InputError
from nfs_dask.statistics.medians.cells import TILE, ClassCells
from nfs_dask.testing import check_statistic, fold
from tests.helpers.medians_by_hand import blocks_of, full_block, sparse_block


def by_numpy(X, codes, edges, weights):
    """Weights in cells (4B + 1, C, U), entry by entry, between and at the different ones of own and pooled edges."""
    n_classes, n_edges, m = edges.shape[0] - 1, *edges.shape[1:]
    out = np.zeros((4 * n_edges + 1, n_classes, m))
    for i, u in zip(*np.nonzero(X), strict=True):
        ladder = np.unique(edges[[codes[i], n_classes], :, u])
        j = int(np.searchsorted(ladder, X[i, u]))
        out[2 * j + (j < len(ladder) and ladder[j] == X[i, u]), codes[i], u] += weights[i]
    return out


def some_data(kind, n_edges, m=9, n=50, seed=0):
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((n, m)) * 4).astype(kind)
    edges = np.sort(rng.integers(-4, 5, (4, n_edges, m)), axis=1).astype(float)  # many are equal, or equal a value
    return X, rng.integers(3, size=n), edges, rng


@pytest.mark.parametrize("make", [full_block, sparse_block])
@pytest.mark.parametrize("weights", [None, "whole", "real"])
@pytest.mark.parametrize(("kind", "n_edges"), [("f4", 1), ("f8", 2), ("i1", 5), ("f4", 32), ("f8", 77)])
def test_laws_and_numpy(kind, n_edges, weights, make):
    X, codes, edges, rng = some_data(kind, n_edges)
    w = None if weights is None else rng.integers(0, 4, 50) if weights == "whole" else rng.random(50)
    statistic, blocks = ClassCells(3, edges), blocks_of(X, codes, w, make=make)
    check_statistic(statistic, blocks, exact=weights != "real")
    state = fold(statistic, blocks)
    want = by_numpy(X, codes, edges, np.ones(50) if w is None else w)
    np.testing.assert_allclose(state.arrays["cells" if w is None else "weights"], want, rtol=1e-15)
    if w is not None:
        np.testing.assert_array_equal(state.arrays["entries"], by_numpy(X, codes, edges, w > 0))


def test_more_columns_than_a_tile():
    rng = np.random.default_rng(1)
    m = 2 * TILE + 3
    X, codes = rng.standard_normal((20, m)).astype(np.float32), rng.integers(2, size=20)
    edges = np.sort(rng.standard_normal((3, 6, m)), axis=1)
    want = by_numpy(X, codes, edges, np.ones(20))
    for make in (full_block, sparse_block):
        state = fold(ClassCells(2, edges), blocks_of(X, codes, make=make))
        np.testing.assert_array_equal(state.arrays["cells"], want)


def test_edges_name_a_statistic():
    _, _, edges, _ = some_data("f8", 3)
    first = ClassCells(3, edges).describe()
    assert json.loads(json.dumps(first)) == first == ClassCells(3, edges.copy()).describe()
    other = edges.copy()
    other[3, 2, 0] += 1e-9
    assert ClassCells(3, other).describe() != first
    assert ClassCells(3, edges.reshape(4, 3, -1)[:, :, ::-1]).describe() != first


def test_what_edges_and_blocks_must_be():
    X, codes, edges, _ = some_data("f8", 3)
    with pytest.raises(InputError, match="for 2 classes"):
        ClassCells(2, edges)
    with pytest.raises(InputError, match="ascend"):
        ClassCells(3, -edges + np.arange(3)[:, None] * -1.0)
    with pytest.raises(InputError, match="4 columns, but edges for 9"):
        fold(ClassCells(3, edges), [full_block(X[:, :4], codes)])
    with pytest.raises(InputError, match="2\\^53"):
        fold(ClassCells(1, edges[:2]), [full_block(np.full((1, 9), 2**53 + 1), np.zeros(1))])
