"""What is compiled for problems of few columns does what numpy does for many, to the bit."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfs_dask.arrays.compiling import WorthCompiling, kernel
from nfs_dask.solvers.naive_bayes import found, sieve, swaps, tiewalk
from nfs_dask.solvers.naive_bayes.climbing import Climb
from nfs_dask.solvers.naive_bayes.cuts import minimise, point_at
from nfs_dask.solvers.naive_bayes.found import value_of
from nfs_dask.solvers.naive_bayes.gains import gains, set_gain
from nfs_dask.solvers.naive_bayes.multinomial import count, posed, solve
from nfs_dask.solvers.naive_bayes.outward import TWO
from nfs_dask.solvers.naive_bayes.set_kernels import LONGEST, kth, pairwise
from nfs_dask.solvers.naive_bayes.sieve import Few, Plain
from nfs_dask.solvers.naive_bayes.topk import TopFeatures, kth_largest


@kernel
def sum_of(values, sums, rights):
    return pairwise(values, len(values), sums, rights)


@kernel
def kth_of(values, sizes, k):
    return kth(values, sizes, len(values), k)


def problem(seed, k, n_forced=0):
    """Of counts or of reals, with many equal columns and mirror images, or with few."""
    rng = np.random.default_rng(seed)
    m = k + 1 + int(rng.integers(1, 60))
    half = rng.poisson(rng.choice([1, 5, 50]), (2, m)) + (rng.random((2, m)) if seed % 2 else 0)
    totals = np.concatenate((half, half[::-1], half), axis=1)[:, rng.permutation(3 * m)[: max(m, k + 2)]]
    counted = count(totals, float(rng.choice([0.0, 0.1, 1.0])))
    return posed(counted, k, np.arange(n_forced) if n_forced else None)


@pytest.mark.parametrize("n", [*range(300), 1000, 4096, 5001, LONGEST])
def test_sums_are_those_of_numpy_to_the_bit(n):
    values = np.random.default_rng(n).random(n) * 10.0 ** np.random.default_rng(n + 1).integers(-9, 9, n)
    assert sum_of(values, np.empty(64), np.empty(64, np.int64)) == values.sum()


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4)), min_size=1, max_size=40), st.data())
def test_the_kth_largest(pairs, data):
    values, sizes = np.array(pairs, float).T[0].copy(), np.array(pairs)[:, 1].copy()
    k = data.draw(st.integers(1, int(sizes.sum())))
    assert kth_of(values.copy(), sizes.copy(), k) == np.sort(np.repeat(values, sizes))[::-1][k - 1]
    assert kth_of(values.copy(), sizes.copy(), k) == kth_largest(values, sizes, k)


@pytest.mark.parametrize("seed", range(40))
def test_cuts_of_few_columns(seed):
    k = 2 + 3 * (seed % 20)
    few = problem(seed, k, seed % 3)
    if k >= few.size:
        return
    for t in (-2.0, -0.1, 0.0, 0.3):
        point = point_at(t)
        one, other = Few(few, k, few.start), Plain(few, k, few.start)
        a, b = one(point, None, None), other(point, None, None)
        for mine, truth in zip(
            (a.curve, a.choice.cells, a.choice.counts, one.gains(a)),
            (b.curve, b.choice.cells, b.choice.counts, few.gains(point)),
            strict=True,
        ):
            np.testing.assert_array_equal(mine, truth)
        assert value_of(few, a.choice) == set_gain(few.totals[:, a.choice.cells], a.choice.counts)


@pytest.mark.parametrize("k", [1, 20, 300, 2500])
@pytest.mark.parametrize("kind", ["reals", "counts"])
def test_leaving_columns_out_changes_no_bit(k, kind, monkeypatch):
    rng = np.random.default_rng(k)
    totals = rng.gamma(0.3, 2, (2, 6000)) * rng.pareto(1.5, 6000)
    many = posed(count(np.ceil(totals).astype(np.int64) if kind == "counts" else totals), k)
    left_out = Plain(many, k, many.start)
    mine = minimise(left_out, many.start)
    assert len(left_out._columns) < len(many.sizes)
    assert mine.n_evaluations <= 3 or len(left_out._columns) > 0
    monkeypatch.setattr(sieve, "WIDE", 0)  # nothing is remembered, so that nothing can be left out
    truth = minimise(Plain(many, k, many.start), many.start)
    assert mine.n_evaluations == truth.n_evaluations
    for one, other in ((mine.best, truth.best), (mine.low, truth.low), (mine.high, truth.high)):
        np.testing.assert_array_equal(one.point, other.point)
        np.testing.assert_array_equal(one.curve, other.curve)
        np.testing.assert_array_equal(one.choice.cells, other.choice.cells)
        np.testing.assert_array_equal(one.choice.counts, other.choice.counts)


@pytest.mark.parametrize("seed", range(40))
def test_the_walk_finds_the_best_of_all_mixtures(seed):
    k = 2 + seed % 25
    walked = problem(seed, k, seed % 2)
    if k >= walked.size:
        return
    minimum = minimise(Few(walked, k, walked.start), walked.start)
    point, sets = minimum.best.point, [cut.choice for cut in (minimum.best, minimum.low, minimum.high)]
    gain = walked.gains(point)
    ties = tiewalk.find_ties(gain, walked.sizes, walked.n_forced, k, *sets)
    if not ties.n:
        return
    slope = point[0] * walked.totals[1, ties.cells] - point[1] * walked.totals[0, ties.cells]
    tied = np.repeat(ties.cells[np.argsort(slope, kind="stable")], ties.sizes[np.argsort(slope, kind="stable")])
    values = []
    for j in range(ties.need + 1):
        cells, counts = np.unique(np.concatenate((tied[: ties.need - j], tied[len(tied) - j :])), return_counts=True)
        choice = TopFeatures(np.concatenate((ties.sure.cells, cells)), np.concatenate((ties.sure.counts, counts)))
        assert choice.counts.sum() == k
        values.append(value_of(walked, choice))
    best = tiewalk.walk(ties, gain, walked.totals, point)
    assert best.counts.sum() == k
    assert value_of(walked, best) == pytest.approx(max(values), rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("seed", range(40))
def test_the_compiled_climb_takes_the_same_steps(seed):
    k = 2 + seed % 40
    climbed = problem(seed, k, seed % 3)
    if k >= climbed.size:
        return
    rng, point = np.random.default_rng(seed), climbed.start
    starts = [climbed.top(climbed.gains(point_at(t)), k) for t in (-0.3, 0.0, 0.4)]
    starts += [climbed.top(rng.random(len(climbed.sizes)), k) for _ in range(3)]
    climber, met = Climb(climbed, point, len(starts) * swaps.ROUNDS), set()
    for start in starts:
        one, other = climber.from_set(start, swaps.ROUNDS), swaps._followed(climbed, start, point, met)
        np.testing.assert_array_equal(one.cells, other.cells)
        np.testing.assert_array_equal(one.counts, other.counts)


def test_more_come_in_than_are_tried():
    """Of 300 candidates the best 70 are tried, of equal ones the lower."""
    rng = np.random.default_rng(5)
    totals = np.concatenate((rng.integers(5, 30, (2, 300)), [[1, 1], [1, 1]]), axis=1).astype(float)
    many = posed(count(totals), 2)
    start = TopFeatures(np.array([300, 301]), np.array([1, 1]))
    one = Climb(many, many.start, swaps.ROUNDS).from_set(start, swaps.ROUNDS)
    other = swaps._followed(many, start, many.start, set())
    assert one.cells.tolist() == other.cells.tolist() != [300, 301]


def test_ascents_are_the_same_before_and_after_the_loop_is_compiled(monkeypatch):
    rng = np.random.default_rng(3)
    many = posed(count(rng.random((2, 80))), 6)
    starts = [many.top(rng.random(80), 6) for _ in range(4)]
    both = []
    for looped in (True, False):
        monkeypatch.setattr(swaps, "_in_a_loop", lambda looped=looped: looped)
        both.append(swaps.ascend(many, starts, many.start))
    for one, other in itertools.zip_longest(*both):
        np.testing.assert_array_equal(one.cells, other.cells)


def test_solutions_are_the_same_with_numpy_and_with_loops(monkeypatch):
    rng = np.random.default_rng(4)
    for seed in range(30):
        counted, k = count(rng.poisson(3, (2, 90)) * (rng.random() if seed % 2 else 1)), 2 + seed
        both = []
        for looped in (True, False):
            for module in (swaps, sieve, found):
                monkeypatch.setattr(module, "_in_a_loop", lambda looped=looped: looped)
            one = solve(counted, k)
            both.append((one.support.tolist(), one.value, one.bound, one.gap, one.ties, one.point.tolist()))
        assert both[0] == both[1]


def test_a_kernel_is_compiled_when_it_pays():
    nothing_kept = SimpleNamespace(dispatcher=SimpleNamespace(stats=SimpleNamespace(cache_path=None)))
    worth = WorthCompiling(nothing_kept, 3)
    assert [worth() for _ in range(5)] == [False, False, False, True, True]


@given(st.floats(0, 1e6), st.floats(1, 1e12))
def test_one_number_is_rounded_as_many_are(gain, mass):
    assert TWO.above_one(gain, mass) == TWO.above(gain, mass)
    assert TWO.below_one(gain, mass) == TWO.below(gain, mass)


def test_gains_are_those_of_each_column_by_itself():
    totals = np.random.default_rng(0).random((2, 50))
    point = np.array([0.3, 0.7])
    np.testing.assert_array_equal(gains(totals, point), [gains(totals[:, i : i + 1], point)[0] for i in range(50)])
