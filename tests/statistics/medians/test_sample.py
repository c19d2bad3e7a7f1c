"""Samples of rows: the same for any partition into runs and any order of merging, and as even as chance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nfs_dask.errors import InputError
from nfs_dask.statistics.medians.sample import RowSample, is_complete, row_keys
from nfs_dask.testing import assert_same, fold
from tests.helpers.medians_by_hand import blocks_of, full_block, sparse_block


def some_data(n=90, m=5, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, m)), rng.integers(3, size=n), rng


@pytest.mark.parametrize("make", [full_block, sparse_block])
@pytest.mark.parametrize("size", [1, 4, 200])
def test_merging_is_associative_and_commutes_to_the_bit(size, make):
    X, codes, rng = some_data()
    blocks = blocks_of(X, codes, rng.integers(0, 3, 90), make=make)
    blocks[2] = replace(blocks[2], data=blocks[2].data.astype(np.float32))
    statistic = RowSample(3, size)
    whole = fold(statistic, blocks)
    assert_same(fold(statistic, blocks[::-1]), whole, exact=True)
    assert_same(statistic.merge(statistic.zero(), whole), whole, exact=True)
    assert_same(statistic.merge(whole, statistic.zero()), whole, exact=True)
    for _ in range(20):
        order = rng.permutation(len(blocks))
        states = [fold(statistic, [blocks[i]]) for i in order]
        while len(states) > 1:
            i = int(rng.integers(len(states) - 1))
            left, right = states[i : i + 2]
            merged = statistic.merge(left, right)
            for side in (left, right):
                assert not np.shares_memory(side.arrays["sample"], merged.arrays["sample"])
            states[i : i + 2] = [merged]
        assert_same(states[0], whole, exact=True)
    assert sum(a.nbytes for a in whole.arrays.values()) <= statistic.array_nbytes(5, None, True)
    assert is_complete(whole.totals) == (size == 200)


@pytest.mark.parametrize("make", [full_block, sparse_block])
def test_rows_come_whole_with_their_weights(make):
    X, codes, rng = some_data()
    X[rng.random(X.shape) < 0.5] = 0
    weights = rng.integers(0, 3, 90)
    state = fold(RowSample(3, 7), blocks_of(X, codes, weights, make=make))
    for c in range(3):
        rows = {(*row, w) for row, w in zip(X[(codes == c)].tolist(), weights[codes == c].tolist(), strict=True) if w}
        drawn = state.totals["sample_weights"][c]
        sample = {(*row, w) for row, w in zip(state.arrays["sample"][c].tolist(), drawn.tolist(), strict=True)}
        assert sample <= rows
        assert (drawn > 0).all() and (np.diff(state.totals["keys"][c].astype(float)) > 0).all()
    assert not is_complete(state.totals)
    everyone = fold(RowSample(3, 60), blocks_of(X, codes, weights, make=make))
    assert is_complete(everyone.totals)
    for c in range(3):
        taken = everyone.totals["sample_weights"][c] > 0
        rows = X[(codes == c) & (weights > 0)]
        np.testing.assert_array_equal(np.sort(everyone.arrays["sample"][c][taken], axis=0), np.sort(rows, axis=0))


def test_small_types_are_held_in_float32_and_others_in_full():
    rng = np.random.default_rng(1)
    for dtype, held in (("u1", "f4"), ("i2", "f4"), ("f4", "f4"), ("u4", "f8"), ("i8", "f8"), ("f8", "f8")):
        X = rng.integers(0, 100, (20, 3)).astype(dtype)
        state = fold(RowSample(2, 50), [full_block(X, np.zeros(20))])
        assert state.arrays["sample"].dtype == held
        np.testing.assert_array_equal(np.sort(state.arrays["sample"][0, :20], axis=0), np.sort(X, axis=0))
    with pytest.raises(InputError, match=r"value 9007199254740993 in row 0, column 0"):
        fold(RowSample(1, 2), [full_block(np.array([[2**53 + 1]]), np.zeros(1))])


def test_keys_look_like_chance():
    """Rows are drawn evenly over blocks, and over places within blocks."""
    n_blocks, n_rows = 400, 500
    blocks = [full_block(np.zeros((n_rows, 1)), np.zeros(n_rows), number=b) for b in range(n_blocks)]
    keys = np.stack([row_keys(block) for block in blocks])
    assert len(np.unique(keys)) == keys.size
    drawn = keys < np.quantile(keys.astype(float), 0.1)
    for axis in (0, 1):
        counts = drawn.sum(axis=axis)
        expected = drawn.sum() / len(counts)
        squares = ((counts - expected) ** 2).sum() / (expected * 0.9)
        assert abs(squares - len(counts)) < 5 * np.sqrt(2 * len(counts))
    share = keys.ravel() / 2.0**64
    assert abs(share.mean() - 0.5) < 5 / np.sqrt(12 * keys.size)


def test_nothing_of_a_block_is_kept_but_copies():
    X, codes, _ = some_data()
    (block,) = blocks_of(X, codes, rows=90)
    state = fold(RowSample(3, 5), [block])
    before = state.arrays["sample"].copy()
    block.data[...] = 7
    np.testing.assert_array_equal(state.arrays["sample"], before)
