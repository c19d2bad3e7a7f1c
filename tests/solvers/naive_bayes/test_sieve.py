"""Bounds from a table of shares hold, and what a sample suggests is proved on all columns or not used."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfs_dask.solvers.naive_bayes import sieve
from nfs_dask.solvers.naive_bayes.cuts import point_at
from nfs_dask.solvers.naive_bayes.gains import gains
from nfs_dask.solvers.naive_bayes.multinomial import count, posed, solve
from nfs_dask.solvers.naive_bayes.shares import ShareTable
from nfs_dask.solvers.naive_bayes.topk import kth_largest, top


def heavy_tailed(m, seed=0):
    """Totals of both classes over many orders of magnitude, some of them of one class or of none."""
    rng = np.random.default_rng(seed)
    return rng.gamma(0.3, 2, (2, m)) * rng.pareto(1.2, m) * (rng.random((2, m)) < 0.7)


@given(
    t=st.floats(-30, 30),
    width=st.sampled_from([0.0, 1e-9, 1e-3, 0.3, 5.0]),
    parts=st.sampled_from([16, 128]),
    seed=st.integers(0, 99),
)
def test_a_table_bounds_gains_between_its_points(t, width, parts, seed):
    rng = np.random.default_rng(seed)
    F = heavy_tailed(300, seed)
    a = point_at(t + rng.uniform(0, width))  # shares at and beside a point, where gains are 0
    F = np.concatenate(
        (F, a[:, None] * rng.pareto(1, 100), np.ldexp([[1.0], [3.0]], rng.integers(-90, 90, 50))), axis=1
    )
    low, high = point_at(t), point_at(t + width)
    least, most = ShareTable.over(low, high, parts).of(F)
    for u in (t, t + width, *(t + rng.uniform(0, width, 3))):
        h = gains(F, point_at(min(u, t + width)))
        assert (least <= h).all() and (h <= most).all()


@given(seed=st.integers(0, 99), share=st.sampled_from([0.01, 0.05, 0.5]), width=st.sampled_from([1e-6, 0.01, 0.2]))
def test_what_is_left_out_is_in_no_best_set_and_what_is_sure_in_each(seed, share, width):
    F = heavy_tailed(2000, seed)
    sizes = np.random.default_rng(seed).integers(1, 4, F.shape[1])
    t, k = 0.1, int(share * sizes.sum())
    table = ShareTable.over(point_at(t), point_at(t + width), 128)
    last = kth_largest(gains(F, point_at(t)), sizes, k)
    for floor, ceiling in ((last * 0.7, last * 1.4), (last * 0.99, last * 1.01), (last * 1.2, last * 2)):
        sifted = table.sift(F, sizes, k, floor, ceiling)
        if sifted is None:
            continue
        maybe, sure = sifted
        for u in np.linspace(t, t + width, 4):
            h = gains(F, point_at(u))
            chosen, last_now = top(h, sizes, k), kth_largest(h, sizes, k)
            assert set(chosen.cells) <= {*maybe, *sure}
            assert (h[sure] >= last_now).all()


def test_a_floor_that_too_few_reach_is_refused():
    F = heavy_tailed(2000)
    low, high = point_at(-0.1), point_at(0.1)
    table, sizes = ShareTable.over(low, high, 16), np.ones(2000, np.int64)
    least, _ = table.of(F)
    assert table.sift(F, sizes, 50, np.sort(least)[-50], math.inf) is not None
    assert table.sift(F, sizes, 50, np.nextafter(np.sort(least)[-50], np.inf), math.inf) is None


@pytest.mark.parametrize("k", [1, 7, 60, 900, 9_000, 30_000])
@pytest.mark.parametrize("order", ["any", "ascending", "periodic"])
def test_samples_of_any_order_lead_to_the_same_answer(k, order, monkeypatch):
    F = heavy_tailed(60_000, seed=3)
    if order == "ascending":
        F = F[:, np.argsort(F.sum(axis=0))]
    if order == "periodic":  # what the sample sees of the light columns is unlike all others
        F[:, ::15] *= 0.01
    sieved = solve(count(F), k)
    monkeypatch.setattr(sieve, "WIDE", 10**9)
    plain = solve(count(F), k)
    assert sieved.bound == pytest.approx(plain.bound, rel=1e-12)
    assert sieved.value == pytest.approx(plain.value, rel=1e-12)
    assert (sieved.gap == 0) == (plain.gap == 0) or sieved.gap == pytest.approx(plain.gap, rel=1e-3, abs=1e-12)
    if plain.gap == 0:
        np.testing.assert_array_equal(sieved.support, plain.support)


def test_a_sieve_is_used_and_leaves_most_columns_out():
    problem = posed(count(heavy_tailed(60_000)), 3000)
    evaluate = sieve.evaluator(problem, 3000, problem.start)
    assert isinstance(evaluate, sieve.Sieved)
    assert len(evaluate.between.columns) < 10_000


def test_points_beyond_the_sieve_are_looked_at_plainly():
    problem = posed(count(heavy_tailed(60_000)), 3000)
    sieved, plain = sieve.evaluator(problem, 3000, problem.start), sieve.Plain(problem, 3000, problem.start)
    for t in (-3.0, 2.0):
        point = point_at(t)
        assert not sieved.between.holds(t)
        np.testing.assert_array_equal(sieved(point, None, None).choice.cells, plain(point, None, None).choice.cells)


@given(st.integers(0, 99), st.integers(1, 60_000))
def test_the_kth_largest_of_many(seed, k):
    rng = np.random.default_rng(seed)
    values = np.concatenate((rng.lognormal(0, 3, 8000), np.zeros(500), np.repeat(rng.random(50), 30), [np.inf]))
    sizes = rng.integers(1, 6, len(values))
    expanded = np.sort(np.repeat(values, sizes))[::-1]
    assert kth_largest(values, sizes, k) == (expanded[k - 1] if k <= len(expanded) else -np.inf)
