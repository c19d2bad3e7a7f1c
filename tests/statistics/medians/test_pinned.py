"""What lies around brackets against numpy and fractions, and the laws."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from nfs_dask.errors import InputError, NfsDaskError
from nfs_dask.statistics.medians.bracket_kernels import TILE
from nfs_dask.statistics.medians.pinned import Pinned
from nfs_dask.testing import check_statistic, fold
from tests.helpers.medians_by_hand import blocks_of, full_block, sparse_block


def some_data(kind, m=7, n=60, seed=0):
    """Values, and brackets that many of them lie in or equal an end of; some brackets are one value."""
    rng = np.random.default_rng(seed)
    X = (rng.integers(-9, 10, (n, m)) / 8).astype(kind)
    ends = np.sort(rng.integers(-9, 10, (2, 4, m)) / 8, axis=0)
    codes = rng.integers(3, size=n)
    return X, codes, ends[0], ends[1], rng


def capacities(X, codes, lows, highs, w):
    out = np.zeros((2, len(lows) - 1, X.shape[1]), np.int64)
    for c in range(len(lows) - 1):
        rows = X[(codes == c) & (w > 0)]
        for view, target in ((0, c), (1, -1)):
            out[view, c] = ((rows > lows[target]) & (rows < highs[target]) & (rows != 0)).sum(axis=0)
    return out


def check_by_fractions(state, statistic, X, codes, w):
    weights = state.arrays.get("weights", state.arrays["counts"])
    for view, c, u in np.ndindex(2, statistic.n_classes, X.shape[1]):
        target = -1 if view else c
        low, high = statistic.lows[target, u], statistic.highs[target, u]
        here = (codes == c) & (w > 0) & (X[:, u] != 0)
        x, v = X[here, u].astype(float), w[here]
        sides = [x < low, x == low, (x > low) & (x < high), (x == high) & (x > low), x > high]
        np.testing.assert_array_equal(state.arrays["counts"][view, c, :, u], [side.sum() for side in sides])
        np.testing.assert_allclose(weights[view, c, :, u], [v[side].sum() for side in sides], rtol=1e-15)
        for name, side in (("sums_below", sides[0]), ("sums_above", sides[4])):
            exact = sum(
                (Fraction(a) * Fraction(b) for a, b in zip(x[side].tolist(), v[side].tolist(), strict=True)),
                Fraction(0),
            )
            assert state.arrays[name][view, c, u] == float(exact)
        assert state.arrays["next"][view, c, u] == x[sides[4]].min(initial=np.inf)
        start, n = statistic.starts[view, c, u], sides[2].sum()
        order = np.lexsort((v[sides[2]], x[sides[2]]))
        np.testing.assert_array_equal(state.arrays["values"][start : start + n, u], x[sides[2]][order])
        if "value_weights" in state.arrays:
            np.testing.assert_array_equal(state.arrays["value_weights"][start : start + n, u], v[sides[2]][order])


@pytest.mark.parametrize("make", [full_block, sparse_block])
@pytest.mark.parametrize("weights", [None, "whole", "real"])
@pytest.mark.parametrize("kind", ["f4", "f8", "i1"])
def test_laws_and_fractions(kind, weights, make):
    X, codes, lows, highs, rng = some_data(kind)
    w = np.ones(60) if weights is None else rng.integers(0, 4, 60) if weights == "whole" else rng.random(60)
    statistic = Pinned(3, lows, highs, 2 * capacities(X, codes, lows, highs, w), absolute=True)
    blocks = blocks_of(X, codes, None if weights is None else w, make=make)
    # Law and bound are checked with room for each row twice, as one law folds all blocks again.
    check_statistic(statistic, blocks, exact=weights != "real")
    tight = Pinned(3, lows, highs, capacities(X, codes, lows, highs, w), absolute=True)
    state = fold(tight, blocks)
    check_by_fractions(state, tight, X, codes, w)
    absolute = [np.abs(X[codes == c].astype(float)).sum(axis=1) @ w[codes == c] for c in range(3)]
    np.testing.assert_allclose(state.totals["absolute"], absolute, rtol=1e-15)


def test_more_columns_than_a_tile_and_many_values_inside():
    rng = np.random.default_rng(1)
    m = 2 * TILE + 5
    X, codes = rng.standard_normal((300, m)).astype(np.float32), rng.integers(2, size=300)
    lows, highs = np.full((3, m), -0.3), rng.random((3, m))
    counted = capacities(X, codes, lows, highs, np.ones(300))
    statistic = Pinned(2, lows, highs, counted)
    state = fold(statistic, blocks_of(X, codes, rows=70))
    assert_values_sorted(state, statistic, counted)
    merged = statistic.merge(
        *(fold(statistic, blocks_of(X[rows], codes[rows])) for rows in (slice(90), slice(90, 300)))
    )
    for name, array in state.arrays.items():
        np.testing.assert_array_equal(merged.arrays[name], array, err_msg=name)


def assert_values_sorted(state, statistic, counted):
    for view, c in np.ndindex(2, 2):
        for u in range(0, counted.shape[2], 50):
            start = statistic.starts[view, c, u]
            values = state.arrays["values"][start : start + counted[view, c, u], u]
            assert len(values) == counted[view, c, u] and (np.diff(values) >= 0).all()


def test_sums_lose_no_digits():
    rng = np.random.default_rng(2)
    X = (1e9 + rng.standard_normal((500, 2))) * np.where(rng.random((500, 2)) < 0.5, 1e-9, -1e9)
    codes = np.zeros(500, int)
    statistic = Pinned(1, np.full((2, 2), 0.5), np.full((2, 2), 0.5), np.zeros((2, 1, 2), np.int64))
    for make in (full_block, sparse_block):
        for w in (None, rng.integers(1, 9, 500)):
            state = fold(statistic, blocks_of(X, codes, w, make=make))
            check_by_fractions(state, statistic, X, codes, np.ones(500) if w is None else w)


def test_zeros_are_nobodys_entries_even_where_they_are_stored():
    X = np.array([[0.0, -0.0, 0.0, 2.0]])
    lows, highs = np.array([[-1.0, 0, 1, 1]] * 2), np.array([[1.0, 0, 2, 2]] * 2)
    state = fold(Pinned(1, lows, highs, np.zeros((2, 1, 4), np.int64)), [full_block(X, np.zeros(1))])
    assert state.arrays["counts"][0, 0].sum(axis=0).tolist() == [0, 0, 0, 1]
    assert np.isinf(state.arrays["next"]).all()


def test_what_does_not_fit_is_refused():
    X, codes, lows, highs, _ = some_data("f8")
    counted = capacities(X, codes, lows, highs, np.ones(60))
    less = counted.copy()
    less[tuple(np.argwhere(counted > 0)[0])] -= 1
    blocks = blocks_of(X, codes)
    for make in (full_block, sparse_block):
        with pytest.raises(NfsDaskError, match="the data changed"):
            fold(Pinned(3, lows, highs, less), blocks_of(X, codes, make=make))
    statistic = Pinned(3, lows, highs, counted)
    with pytest.raises(NfsDaskError, match="the data changed"):
        statistic.merge(fold(statistic, blocks), fold(statistic, blocks))
    with pytest.raises(NfsDaskError, match="some blocks have sample weights"):
        statistic.merge(fold(statistic, blocks[:2]), fold(statistic, blocks_of(X, codes, codes + 1)[2:]))
    with pytest.raises(InputError, match="finite"):
        Pinned(3, lows - np.inf, highs, counted)
    with pytest.raises(InputError, match="for 2 classes"):
        Pinned(2, lows, highs, counted)
    huge = np.full((2, 1), 1.7e308)
    for make in (full_block, sparse_block):
        with pytest.raises(InputError, match="column 0 add up beyond the largest double"):
            fold(Pinned(1, np.zeros((2, 1)), np.ones((2, 1)), np.zeros((2, 1, 1), int)), [make(huge, np.zeros(2))])
