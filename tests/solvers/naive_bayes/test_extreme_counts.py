"""Three classes and more, with counts from the smallest doubles to the largest: an answer that holds, or a refusal."""

from __future__ import annotations

import numpy as np
import pytest

from nfs_dask.errors import InputError
from nfs_dask.methods.naive_bayes import Counts, Settings, fit_bernoulli, fit_multinomial
from nfs_dask.solvers.naive_bayes.multinomial import count, solve
from nfs_dask.solvers.naive_bayes.path_grid import solve_path
from nfs_dask.statistics.class_totals import ArrayTotals
from tests.helpers.panels_by_hand import streamed

SMOOTHINGS = [0.0, 0.0, 0.0, 5e-324, 1e-300, 1e-10, 1.0, 1e10, 1e290]


def tables(n, seed):
    """Tables of 3 to 20 classes whose magnitudes differ by cell, feature, class or not at all; smoothing, and k."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        shape = C, m = int(rng.integers(3, 21)), int(rng.integers(1, 9))
        low, high = sorted(rng.uniform(-323, 299, 2))
        near = rng.uniform(-2, 2, shape)
        exponents = [
            rng.uniform(low, high, shape),
            rng.uniform(low, high, (1, m)) + near,
            rng.uniform(low, high, (C, 1)) + near,
            rng.choice([-320, -308, -160, 150, 154, 160, 299]) + rng.uniform(-3, 0, shape),
            rng.choice([low, high], shape),
        ][rng.integers(5)]
        F = 10.0 ** np.clip(exponents, -323, 299) * (rng.random(shape) < rng.uniform(0.2, 1.5))
        if rng.random() < 0.2:
            F[rng.integers(C)] = 0
        if rng.random() < 0.3:
            F = F[:, rng.integers(0, m, m)]
        yield F, float(rng.choice(SMOOTHINGS)), int(rng.integers(1, m + 1))


@pytest.mark.parametrize("seed", range(4))
def test_an_answer_that_holds(seed, capfd):
    for F, alpha, k in tables(150, seed):
        s = solve(count(F, alpha), k)
        assert len(s.support) <= k
        assert 0 <= s.value <= s.bound < np.inf
        assert np.isfinite(s.point).all()
    assert capfd.readouterr() == ("", "")  # of a library below


@pytest.mark.parametrize("power", [-1000, -700, -350, 350, 700, 980])
def test_a_power_of_two_changes_nothing(power):
    rng = np.random.default_rng(3)
    F = rng.gamma(0.5, 3, (4, 30)).round(3)
    for k in (1, 2, 7, 20, 30):
        s, scaled = solve(count(F), k), solve(count(F * 2.0**power), k)
        np.testing.assert_array_equal(scaled.support, s.support)
        np.testing.assert_array_equal(scaled.point, s.point)
        assert scaled.value == np.ldexp(s.value, power)
        assert scaled.bound == pytest.approx(np.ldexp(s.bound, power), rel=1e-15, abs=5e-324)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("alpha", [0.0, 1e308])
@pytest.mark.parametrize("wrapped", [ArrayTotals, streamed])
def test_counts_that_leave_no_room_are_refused(n_classes, alpha, wrapped):
    F = np.full((n_classes, 4), 1e304) * [[1, 2, 3, 4], [4, 3, 2, 1], [1, 1, 5, 1]][:n_classes]
    counts = Counts(np.arange(n_classes), np.ones(n_classes), wrapped(F))
    with pytest.raises(InputError, match="scale them down"):
        fit_multinomial(counts, Settings(k=2, alpha=alpha))
    with pytest.raises(InputError, match="scale them down"):
        solve_path(count(F, alpha))


@pytest.mark.parametrize("wrapped", [ArrayTotals, streamed])
def test_a_share_too_small_for_a_double_has_a_logarithm(wrapped):
    F = np.array([[0.0, 1e170, 0.0], [1e-200, 0.0, 1e160]])
    model = fit_multinomial(Counts(np.arange(2), np.ones(2), wrapped(F)), Settings(k=1, alpha=1e-300, always=[0]))
    assert model.support.tolist() == [0]
    assert model.present.ravel() == pytest.approx([np.log(1e-200) - np.log(1e170)] * 2)


def test_a_set_of_next_to_nothing_is_weighed():
    F = np.array([[0, 1e-2, 1e21, 0, 7], [4e-24, 1e28, 9e-14, 0, 0], [2e-25, 1e-24, 0, 0, 3e21]])
    model = fit_multinomial(Counts.of(np.arange(3), np.ones(3), F), Settings(k=1, alpha=1e-315, always=[3]))
    assert model.support.tolist() == [3] and np.isfinite(model.present).all()


def test_a_class_with_next_to_nothing():
    F = np.array([[5.0, 1, 3, 0], [1, 6, 2, 0], [0, 0, 0, 1e-290]])
    s, without = solve(count(F), 2), solve(count(F[:2]), 2)
    assert s.value == pytest.approx(without.value, rel=1e-12) and s.bound == pytest.approx(without.bound, rel=1e-9)


@pytest.mark.parametrize("wrapped", [ArrayTotals, streamed])
@pytest.mark.parametrize("power", [-1000, -700, 500, 960])
def test_bernoulli_choices_of_documents_of_any_weight(power, wrapped):
    F, n = np.array([[3, 5, 1, 4, 0], [3, 2, 3, 1, 2.5]]), np.array([5.5, 3.75])
    here = fit_bernoulli(Counts(np.arange(2), n, wrapped(F)), Settings(k=2, alpha=0.5))
    n, F, alpha = (np.ldexp(x, power) for x in (n, F, 0.5))
    there = fit_bernoulli(Counts(np.arange(2), n, wrapped(F)), Settings(k=2, alpha=float(alpha)))
    np.testing.assert_array_equal(there.support, here.support)
    assert there.evidence.objective == pytest.approx(np.ldexp(here.evidence.objective, power), rel=1e-14)
    with pytest.raises(InputError, match="scale them down"):
        fit_bernoulli(Counts(np.arange(2), np.full(2, 1e305), wrapped(np.full((2, 3), 2e304))), Settings(k=2))
