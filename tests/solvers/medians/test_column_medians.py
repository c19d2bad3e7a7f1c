"""Medians, dispersions and gains, to the bit, against numpy and fractions, straight from all rows and by passes."""

from __future__ import annotations

import time

import numpy as np
import pytest

from nfs_dask.errors import InputError, NfsDaskError
from nfs_dask.solvers.medians.column_medians import assemble, from_pinned, from_sample
from nfs_dask.solvers.medians.edges import (
    Brackets,
    find_brackets,
    float_keys,
    float_values,
    refined_edges,
    sample_edges,
)
from nfs_dask.statistics.medians.cells import ClassCells
from nfs_dask.statistics.medians.pinned import Pinned
from nfs_dask.statistics.medians.sample import RowSample, is_complete
from nfs_dask.statistics.medians.signs import ClassSigns, unsettled_columns
from nfs_dask.statistics.panels import MemoryPanels
from nfs_dask.testing import fold
from tests.helpers.medians_by_hand import (
    assert_exact,
    blocks_of,
    full_block,
    some_columns,
    sparse_block,
)

TINY, HUGE = 5e-324, np.finfo(float).max


def at_once(blocks, n_classes, **_):
    state = fold(RowSample(n_classes, sum(b.n_rows for b in blocks)), blocks)
    assert is_complete(state.totals)
    return from_sample(state.arrays, state.totals)


def by_passes(blocks, n_classes, *, sampled=5, n_edges=5, most=4, rounds=200, absolute=False):
    """As it is done for data that are too large to be held: a sample, cells until brackets are narrow, and values."""
    sample = fold(RowSample(n_classes, sampled), blocks)
    edges = sample_edges(sample.arrays, sample.totals, n_edges)
    cells = fold(ClassCells(n_classes, edges), blocks)
    brackets = find_brackets(cells.arrays, cells.totals, edges)
    while brackets.open(most).any() and rounds:
        some, rounds = np.flatnonzero(brackets.open(most)), rounds - 1
        edges = refined_edges(brackets.take(some), n_edges)
        cells = fold(ClassCells(n_classes, edges), some_columns(blocks, some))
        brackets = brackets.put(some, find_brackets(cells.arrays, cells.totals, edges))
    assert not brackets.open(most).any()
    pinned = fold(Pinned(n_classes, brackets.lows, brackets.highs, brackets.capacities, absolute), blocks)
    return from_pinned(pinned.arrays, pinned.totals, brackets)


WAYS = {"at once": at_once, "by passes": by_passes}


def data(rng, kind, n, m):
    if kind == "normal":
        return rng.standard_normal((n, m))
    if kind == "float32":
        return rng.standard_normal((n, m)).astype(np.float32)
    if kind == "ties":
        return rng.integers(-2, 3, (n, m)).astype(np.int8)
    if kind == "masses":
        return np.where(rng.random((n, m)) < 0.6, 0.1, rng.standard_normal((n, m)))
    if kind == "sparse":
        return rng.integers(-3, 4, (n, m)) * (rng.random((n, m)) < 0.3) * 0.7
    if kind == "zeros":
        return np.array([-0.0, 0.0, TINY, -TINY, 2.0**-1030])[rng.integers(0, 5, (n, m))]
    return rng.standard_normal((n, m)) * 10.0 ** rng.integers(-12, 13, (n, m))


KINDS = ["normal", "float32", "ties", "masses", "sparse", "zeros", "wide"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make", [full_block, sparse_block])
@pytest.mark.parametrize("kind", KINDS)
def test_exact_for_any_data_and_weights(kind, make, way):
    rng = np.random.default_rng(KINDS.index(kind))
    for n, m, n_classes in ((1, 3, 1), (6, 4, 2), (37, 6, 3), (60, 5, 5)):
        X, codes = data(rng, kind, n, m), rng.integers(n_classes, size=n)
        for weights in (None, rng.integers(0, 4, n), np.full(n, 0.1), rng.random(n)):
            if kind == "zeros" and weights is not None and weights.dtype.kind == "f":
                continue  # their products with the smallest doubles have no digits to be exact in
            blocks = blocks_of(X, codes, weights, make=make)
            assert_exact(WAYS[way](blocks, n_classes), X, codes, weights, gains=1e-9 if kind == "wide" else 0)


@pytest.mark.parametrize("way", WAYS)
def test_plain_medians_are_numpys(way):
    rng = np.random.default_rng(1)
    X, codes = rng.standard_normal((200, 9)).astype(np.float32), rng.integers(3, size=200)
    found = WAYS[way](blocks_of(X, codes, rows=50), 3)
    for c in range(3):
        middle = np.median(X[codes == c].astype(float), axis=0)
        np.testing.assert_array_equal(found.centers[c], middle)
        np.testing.assert_allclose(found.dispersions[c], np.abs(X[codes == c] - middle).mean(axis=0), rtol=1e-14)
    assert found.rows == 200
    np.testing.assert_array_equal(found.weight, np.bincount(codes))


@pytest.mark.parametrize("way", WAYS)
def test_six_times_a_sixth_is_one(way):
    """Sums of 1/6 in floats are below 1: a tie decided there would not give the midpoint."""
    for n in (6, 49, 93):
        X = np.arange(2.0 * n)[:, None]
        codes = (np.arange(2 * n) >= n).astype(int)
        found = WAYS[way](blocks_of(X, codes, rows=n), 2)
        assert found.pooled[0] == n - 0.5
        assert_exact(found, X, codes)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("real", [False, True])
def test_ties_of_classes_whose_common_multiple_is_beyond_int64(way, real):
    """Sizes are primes, so only fractions can tell that weights are half: each class lies half below and half above."""
    rng = np.random.default_rng(2)
    sizes = 2 * np.array([101, 103, 107, 109, 113, 127, 131, 137, 139, 149])
    codes = np.repeat(np.arange(10), sizes)
    half = np.concatenate([np.arange(n) % 2 for n in sizes])
    X = np.where(half[:, None], 1.0, -1.0) * rng.integers(1, 9, (len(codes), 3))
    X[codes == 3, 2] += 1  # and one column without a tie
    order = rng.permutation(len(codes))
    weights = (0.1 * (1 + codes))[order] if real else None
    blocks = blocks_of(X[order], codes[order], weights, rows=500)
    found = WAYS[way](blocks, 10, most=200) if way == "by passes" else WAYS[way](blocks, 10)
    assert found.pooled[:2].tolist() == [0.0, 0.0]
    assert_exact(found, X[order], codes[order], weights)


def test_a_weight_just_short_of_half_is_not_half():
    """Two columns whose pooled weights differ by less than floats can tell, on either side of one half."""
    n = 3_000_017
    big = np.zeros(5, np.int64)
    values = np.array([-1.0, 1.0, -1.0, 1.0, 0.0])
    codes = np.array([0, 0, 1, 1, 2])
    for step in (-1, 0, 1):
        big[:] = [n // 2 + step, n - n // 2 - step, n // 3, n - n // 3, 1]
        small = [big[0] * 10**9 + 1, big[1] * 10**9, 10**8 + 1, 10**8 - 1, 1]
        weights = np.array(small, np.int64)
        for way in WAYS.values():
            assert_exact(way([full_block(values[:, None], codes, weights)], 3), values[:, None], codes, weights)


@pytest.mark.parametrize("way", WAYS)
def test_one_row_per_class_and_classes_without_documents(way):
    X = np.array([[1.0, -3.0, 0.0], [2.0, 5.0, 0.0], [4.0, 5.0, 7.0]])
    codes = np.array([0, 3, 4])
    found = WAYS[way](blocks_of(X, codes, rows=1), 6)
    assert_exact(found, X, codes)
    assert not found.centers[[1, 2, 5]].any() and not found.dispersions.any()
    nobody = WAYS[way](blocks_of(X, codes, np.zeros(3, np.int64)), 6)
    assert not nobody.pooled.any() and not nobody.gains.any()


def test_midpoints_of_huge_and_of_tiny_values():
    X = np.array([[HUGE, TINY], [HUGE, 3 * TINY]])
    found = at_once([full_block(X, np.array([0, 1]))], 2)
    assert found.pooled.tolist() == [HUGE, 2 * TINY] and found.gains.tolist() == [0.0, 2 * TINY]
    with pytest.raises(InputError, match="beyond the largest double"):
        at_once([full_block(np.array([[HUGE], [-HUGE], [HUGE]]), np.zeros(3, int))], 1)


def test_weighted_median(golden):
    for case in golden("weighted_median.json"):
        values, weights = (np.array(case["inputs"][name]) for name in "zw")
        expected = case["expected"]
        found = at_once([full_block(values[:, None], np.zeros(len(values)), weights)], 1)
        assert found.centers[0, 0] == found.pooled[0] == expected["median"], case["id"]
        assert found.dispersions[0, 0] == expected["dispersion"] / weights.sum(), case["id"]


def test_equal_columns_have_equal_gains_whatever_the_order_of_rows():
    rng = np.random.default_rng(3)
    column, codes = rng.standard_normal(90) * 10.0 ** rng.integers(-6, 7, 90), rng.integers(2, size=90)
    X = np.stack([column] * 4, axis=1)
    for c in range(2):
        for u in range(1, 4):
            X[codes == c, u] = rng.permutation(X[codes == c, 0])
    for way in WAYS.values():
        assert len(set(way(blocks_of(X, codes), 2).gains.tolist())) == 1


def test_what_signs_settle_and_what_is_left_come_together():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((80, 40)) * (rng.random((80, 40)) < np.linspace(0.1, 1, 40))
    codes = rng.integers(3, size=80)
    for weights in (None, rng.integers(0, 3, 80), rng.random(80)):
        blocks = blocks_of(X, codes, weights, make=sparse_block)
        signs = fold(ClassSigns(3), blocks)
        rest = unsettled_columns(MemoryPanels(signs, 40))
        assert 0 < len(rest) < 40
        whole = at_once(blocks, 3)
        for way in WAYS.values():
            groups = [rest[: len(rest) // 2], rest[len(rest) // 2 :]]
            parts = [(group, way(some_columns(blocks, group), 3, absolute=True)) for group in groups[::-1]]
            medians = assemble(40, parts, signs.totals)
            np.testing.assert_array_equal(medians.columns, rest)
            for name in ("centers", "pooled", "dispersions", "pooled_dispersions", "gains"):
                np.testing.assert_array_equal(getattr(medians, name), getattr(whole, name)[..., rest])
            settled = np.setdiff1d(np.arange(40), rest)
            assert not whole.centers[:, settled].any() and not whole.gains[settled].any()
            assert medians.settled == pytest.approx(whole.dispersions[:, settled].sum(), rel=1e-15)
    everything = assemble(40, [(np.arange(40), whole)], None)
    assert everything.settled == 0 and len(everything.columns) == 40
    nothing = fold(ClassSigns(2), blocks_of(np.zeros((4, 5)), np.array([0, 1, 0, 1]), make=sparse_block))
    empty = assemble(5, [], nothing.totals)
    assert empty.centers.shape == (2, 0) and empty.settled == 0 and empty.rows == 4


def test_keys_keep_the_order_of_doubles():
    values = np.array([-HUGE, -1.0, np.nextafter(-1.0, 0), -TINY, -0.0, 0.0, TINY, 1.0, np.nextafter(1.0, 2), HUGE])
    keys = float_keys(values)
    assert keys[4] == keys[5] == 0 and keys[3] == -1 and keys[6] == 1 and keys[2] - keys[1] == 1
    assert (np.diff(keys)[[0, 1, 2, 3, 5, 6, 7, 8]] > 0).all()
    np.testing.assert_array_equal(float_values(keys), values)


def test_any_value_is_found_from_nothing_in_a_bounded_number_of_passes():
    """Edges that know nothing, and values all over the doubles: each pass leaves a third of the doubles or less."""
    rng = np.random.default_rng(5)
    X = float_values(rng.integers(-(2**62), 2**62, (300, 6)))
    X[:, 5] = np.where(rng.random(300) < 0.5, 1e-300, 1.0)
    codes = rng.integers(2, size=300)
    blocks = blocks_of(X, codes, rows=100)
    wide = np.full((3, 6), np.inf)
    brackets = Brackets(-wide, wide, np.full((2, 2, 6), 300))
    passes = 0
    while brackets.open(4).any():
        edges = refined_edges(brackets, 33)
        assert (np.diff(edges, axis=1) >= 0).all() and np.isfinite(edges).all()
        cells = fold(ClassCells(2, edges), blocks)
        brackets, passes = find_brackets(cells.arrays, cells.totals, edges), passes + 1
    assert passes <= 16
    middles = np.stack([np.median(X[codes == c], axis=0) for c in range(2)])
    assert (brackets.lows[:2] <= middles).all()


def test_edges_around_the_median_have_even_ranks():
    rng = np.random.default_rng(6)
    X, codes = rng.standard_normal((4000, 3)), np.repeat([0, 1], [1000, 3000])
    for weights in (None, np.where(codes == 0, 0.3, 0.7)):
        state = fold(RowSample(2, 5000), [full_block(X, codes, weights)])
        edges = sample_edges(state.arrays, state.totals, 11, z=5)
        for c, n in ((0, 1000), (1, 3000)):
            ranks = (X[codes == c][:, None] < edges[c]).mean(axis=0)
            reach = 5 * 0.5 / np.sqrt(n)
            np.testing.assert_allclose(
                ranks, np.linspace(0.5 - reach, 0.5 + reach, 11)[:, None] + np.zeros(3), atol=2 / n
            )


def test_changed_data_are_noticed():
    X, codes = np.arange(40.0)[:, None], np.arange(40) % 2
    blocks = blocks_of(X, codes)
    edges = np.linspace(10, 30, 9)[None, :, None] + np.zeros((3, 1, 1))
    cells = fold(ClassCells(2, edges), blocks)
    brackets = find_brackets(cells.arrays, cells.totals, edges)
    for change in (100.0, -100.0):
        pinned = Pinned(2, brackets.lows, brackets.highs, brackets.capacities)
        state = fold(pinned, blocks_of(X + change, codes))
        with pytest.raises(NfsDaskError, match="the data changed"):
            from_pinned(state.arrays, state.totals, brackets)


def test_few_rows_of_many_columns_take_no_time():
    rng = np.random.default_rng(7)
    X, codes = rng.standard_normal((104, 22_283)), rng.integers(2, size=104)
    state = fold(RowSample(2, 104), blocks_of(X, codes, rows=52))
    times = []
    for _ in range(3):
        start = time.process_time()
        found = from_sample(state.arrays, state.totals)
        times.append(time.process_time() - start)
    np.testing.assert_array_equal(found.centers, [np.median(X[codes == c], axis=0) for c in range(2)])
    assert min(times) < 1.0  # 0.06 s on the machine this was written on
