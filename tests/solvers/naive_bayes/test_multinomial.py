"""The multinomial solvers against enumeration of all supports, and at the edges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nfs_dask.errors import InputError
from nfs_dask.solvers.naive_bayes import bisection
from nfs_dask.solvers.naive_bayes.gains import set_gain
from nfs_dask.solvers.naive_bayes.multinomial import count, solve
from nfs_dask.solvers.naive_bayes.path_grid import guaranteed, solve_path
from tests.helpers.enumeration import best_gain, dual_height, lowest_height, support_gain, tables


def noise(F):
    """What the textbook formulas lose: they subtract numbers of the size of the counts' logarithms."""
    return 1e-14 * float(np.sum(F)) * 40 + 1e-9


@given(tables())
def test_the_laws(F):
    m, C = F.shape[1], len(F)
    counted, slack = count(F), noise(F)
    solutions = [solve(counted, k) for k in range(m + 1)]
    bounds = np.array([s.bound for s in solutions])
    for k, s in enumerate(solutions):
        phi = best_gain(F, k)
        there = k if k == m else min(k, np.count_nonzero(F.any(axis=0)))
        assert len(set(s.support.tolist())) == len(s.support) and (len(s.support) == there or not s.value)
        assert s.gap >= 0
        assert s.value == pytest.approx(support_gain(F, s.support), abs=slack)
        assert s.value <= phi + slack
        assert bounds[max(k - (C - 1), 0)] - slack <= phi <= s.bound + slack  # psi(k - C + 1) <= phi(k) <= psi(k)
        if k:
            assert s.bound == pytest.approx(min(s.bound, dual_height(F, k, s.point)), abs=slack)  # reached at its point
    slack += 1e-10 * bounds[-1]
    assert (np.diff(bounds) >= -slack).all()
    assert (np.diff(bounds, 2) <= slack).all()


@given(tables(classes=(2,)))
def test_two_class_supports_are_nearly_best(F):
    counted = count(F)
    for k in range(2, F.shape[1] + 1):
        s = solve(counted, k)
        assert s.value >= 0.9 * best_gain(F, k) - noise(F)  # trials lost at most 4 %


@given(tables(classes=(2, 3), most=6), st.integers(1, 5))
def test_the_bound_is_the_lowest(F, k):
    s = solve(count(F), k)
    assert s.bound <= lowest_height(F, min(k, F.shape[1])) * (1 + 1e-9) + noise(F)


@given(tables(), st.integers(1, 8))
@example(np.array([[0, 10**6], [1, 0], [0, 1]]), 1)  # gains of a few counts beside a million others
@example(np.array([[10, 0, 0], [0, 10**6, 0], [10**6, 0, 10]]), 2)
def test_certificates(F, k):
    s = solve(count(F), k)
    features, weights = s.second_dual
    tolerance = 1e-9 * s.bound + 1e-13 * F.sum()
    assert set_gain(F[:, features].astype(float), weights) == pytest.approx(s.bound, abs=tolerance)
    assert len(features) <= min(k, F.shape[1]) + len(F) - 1
    assert ((weights > 0) & (weights <= 1)).all() and np.count_nonzero(weights < 1) <= len(F)
    assert weights.sum() == pytest.approx(len(s.support))


@given(tables(most=7), st.data())
def test_forced_features(F, data):
    m = F.shape[1]
    k = data.draw(st.integers(1, m))
    always = data.draw(st.lists(st.integers(0, m - 1), unique=True, max_size=k))
    s = solve(count(F), k, always=always)
    assert set(always) <= set(s.support.tolist()) and len(s.support) == k
    phi = best_gain(F, k, tuple(always))
    assert s.value == pytest.approx(support_gain(F, s.support), abs=noise(F))
    assert s.value <= phi + noise(F) and phi <= s.bound + noise(F)


@given(tables(), st.sampled_from([0.5, 1.0]))
def test_smoothing_leaves_absent_features_out_unless_all_are_kept(F, alpha):
    m = F.shape[1]
    present = np.flatnonzero(F.any(axis=0))
    for k in range(m):
        s = solve(count(F, alpha), k)
        assert len(s.support) == min(k, len(present)) and set(s.support.tolist()) <= set(present.tolist())
        assert s.value == pytest.approx(support_gain(F + alpha, s.support), abs=noise(F))
    assert solve(count(F, alpha), m).value == pytest.approx(support_gain(F + alpha, range(m)), abs=noise(F))


@given(tables(), st.integers(1, 8))
def test_integers_and_reals_agree(F, k):
    whole, real = (solve(count(F.astype(t)), k) for t in (np.int64, float)) if F.dtype.kind == "i" else (None, None)
    if whole is not None:
        assert whole.bound == pytest.approx(real.bound, rel=1e-11, abs=1e-15 * F.sum())
        assert whole.value == pytest.approx(real.value, rel=0.1, abs=noise(F))


@given(tables(classes=(2,)))
def test_paths(F):
    counted = count(F)
    path = solve_path(counted, tolerance=1e-9)
    for k in path.ks:
        s = solve(counted, k)
        assert path.bound[k] == pytest.approx(s.bound, rel=2e-9, abs=1e-15 * F.sum())
        there = k if k == F.shape[1] else min(k, np.count_nonzero(F.any(axis=0)))
        assert len(path.support(k)) == there or not path.value[k]
        assert path.value[k] == pytest.approx(support_gain(F, path.support(k)), abs=noise(F))
    assert (guaranteed(counted, path.ks, loss=4) <= path.value + path.bound * 1e-6 + noise(F))[path.ks > 4].all()


@given(tables(classes=(2,)), st.integers(1, 8))
def test_bisection_agrees(F, k):
    s, reference = solve(count(F), k), bisection.solve(F, k)
    assert reference.bound == pytest.approx(s.bound, rel=1e-6, abs=noise(F) + 1e-9 * F.sum())
    assert reference.value <= s.bound + noise(F)
    assert reference.value == pytest.approx(support_gain(F, reference.support), abs=noise(F))


@pytest.mark.parametrize(
    ("totals", "n_chosen"),
    [(np.zeros((2, 4)), 0), (np.array([[3, 0, 5, 1], [0, 0, 0, 0]]), 2), (np.zeros((3, 2), int), 2)],
)
def test_without_two_classes_there_is_nothing_to_gain(totals, n_chosen):
    s = solve(count(totals), 2)
    assert len(s.support) == n_chosen and s.value == s.bound == 0
    assert n_chosen == totals.shape[1] or totals[:, s.support].any(axis=0).all()


def test_equal_shares_gain_nothing():
    s = solve(count(np.array([[1, 2, 4, 8], [3, 6, 12, 24]])), 3)
    assert s.value == pytest.approx(0, abs=1e-15) and s.bound == pytest.approx(0, abs=1e-15)
    assert s.point[0] == pytest.approx(0.25) and len(s.support) == 3


def test_sizes_are_clipped():
    counted = count(np.array([[4, 1], [1, 5]]))
    assert solve(counted, 0).support.tolist() == [] and solve(counted, -3).bound == 0
    assert solve(counted, 99).support.tolist() == [0, 1] and solve(counted, 99).gap == 0
    assert solve(counted, 1).value == pytest.approx(0, abs=1e-15)  # its mass must be the same in both


@given(tables(classes=(2,), most=9), st.integers(2, 5), st.sampled_from([1e-9, 1e-3, 1e6]))
def test_scale_changes_gains_and_nothing_else(F, k, scale):
    s, scaled = solve(count(F.astype(float)), k), solve(count(F * scale), k)
    assert scaled.bound == pytest.approx(s.bound * scale, rel=1e-9, abs=1e-15 * F.sum() * scale)


def test_copies_are_taken_from_the_lowest():
    F = np.tile([[2, 6, 3, 0], [8, 6, 9, 4]], 10)
    for k in range(1, 40):
        support = solve(count(F), k).support
        for column in range(4):
            of_it = support[support % 4 == column]
            assert of_it.tolist() == list(range(column, column + 4 * len(of_it), 4))


@pytest.mark.parametrize(
    ("always", "message"), [([7], "features 0 to 3"), ([-1], "feature -1"), ([0, 1, 2], "raise k")]
)
def test_impossible_wishes_are_refused(always, message):
    with pytest.raises(InputError, match=message):
        solve(count(np.ones((2, 4))), 2, always=always)


@pytest.mark.parametrize("k", [1, 30, 3000, 150_000, 250_000])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_screening_changes_nothing(k, n_classes, monkeypatch):
    rng = np.random.default_rng(0)
    shape = n_classes, 300_000
    F = rng.gamma(0.3, 2, shape) * rng.pareto(1.5, 300_000) * (rng.random(shape) < 0.6)
    F[0, ::64] *= 0.01  # what the sample sees is unlike all others
    screened = solve(count(F), k)
    monkeypatch.setattr("nfs_dask.solvers.naive_bayes.multinomial.WORTHWHILE", 10**9)
    plain = solve(count(F), k)
    assert (screened.bound, screened.ties) == (pytest.approx(plain.bound, rel=1e-15), plain.ties)
    np.testing.assert_array_equal(screened.support, plain.support)


@pytest.mark.parametrize("spread", [1, 15])
def test_reals_over_many_orders_of_magnitude(spread):
    rng = np.random.default_rng(2)
    F = np.exp(rng.normal(0, spread, (2, 2000)))
    counted = count(F)
    for k in (1, 10, 500, 1999):
        s = solve(counted, k)
        assert s.n_evaluations <= 15
        assert s.bound == pytest.approx(dual_height(F, k, s.point), rel=1e-9)
        assert s.gap <= s.bound / k * (1 + 1e-9)  # psi(k) - phi(k) <= (psi(k) - K) / k
