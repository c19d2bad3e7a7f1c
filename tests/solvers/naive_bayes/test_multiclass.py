"""Three classes and more: supports against enumeration, of single features and of groups of equal ones."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from nfs_dask.methods.naive_bayes import Counts, Settings, fit_multinomial
from nfs_dask.solvers.naive_bayes import panel_columns
from nfs_dask.solvers.naive_bayes.multinomial import count, solve
from nfs_dask.solvers.naive_bayes.path_grid import solve_path
from tests.helpers.eighty_digits import Multinomial
from tests.helpers.enumeration import best_gain, best_gain_of_groups, support_gain, tables

THREE_KINDS = np.repeat([[3, 0, 0], [0, 3, 0], [0, 0, 3]], 200, axis=1)


class Cut:
    """A table of reals that is read panel by panel."""

    def __init__(self, table, bounds):
        self.table, self.bounds, self.n_features = table, bounds, table.shape[1]

    def parts(self):
        for first, stop in itertools.pairwise(self.bounds):
            yield first, self.table[:, first:stop]

    def at(self, columns):
        return self.table[:, columns]


def kinds(support):
    """How many features of each of the three kinds a support has."""
    return np.bincount(np.asarray(support) // 200, minlength=3).tolist()


def grouped_tables(n, n_classes, seed=0):
    """Tables of a few kinds of columns, many of each and shuffled, and a k: (distinct, sizes, table, k)."""
    rng = np.random.default_rng(seed)
    made = []
    while len(made) < n:
        n_kinds = int(rng.integers(3, 6))
        draw = [
            lambda shape: rng.integers(0, 4, shape),
            lambda shape: rng.poisson(3, shape),
            lambda shape: 3 * np.eye(*shape, dtype=int) + rng.integers(0, 2, shape),
            lambda shape: rng.integers(0, 30, shape),
        ][rng.integers(4)]
        distinct = np.unique(draw((n_classes, n_kinds)), axis=1)
        sizes = rng.integers(5, {3: 60, 4: 40, 5: 18}[n_kinds], distinct.shape[1])
        table = np.repeat(distinct, sizes, axis=1)[:, rng.permutation(sizes.sum())]
        if len(sizes) > 2 and table.any(axis=1).sum() > 2:
            made.append((distinct, sizes, table, int(rng.integers(2, table.shape[1]))))
    return made


@pytest.mark.parametrize("kind", [int, float])
@pytest.mark.parametrize("k", [51, 300, 597])
def test_as_many_of_each_kind_by_symmetry(kind, k):
    s = solve(count(THREE_KINDS.astype(kind)), k)
    assert kinds(s.support) == [k // 3] * 3
    assert s.value == pytest.approx(3 * k * np.log(3), rel=1e-14) and s.certified()


@pytest.mark.parametrize("kind", [int, float])
@pytest.mark.parametrize("k", [50, 52, 599])
def test_one_more_or_less_than_as_many_of_each_kind(kind, k):
    s = solve(count(THREE_KINDS.astype(kind)), k)
    assert sorted(kinds(s.support)) == sorted([k // 3, (k + 1) // 3, (k + 2) // 3])
    assert 0 < s.gap < 1e-3 * s.bound


def test_a_model_of_equal_columns_tells_classes_apart():
    counts = Counts.of(np.arange(3), np.full(3, 9.0), THREE_KINDS)
    model = fit_multinomial(counts, Settings(k=60, alpha=1e-3))
    assert model.evidence.gap < 1e-6 * -model.evidence.objective
    assert kinds(model.support) == [20, 20, 20]


@pytest.mark.parametrize("n_classes", [3, 4, 5])
@pytest.mark.parametrize("kind", [int, float])
def test_equal_columns_against_enumeration(n_classes, kind):
    losses = []
    for distinct, sizes, table, k in grouped_tables(25, n_classes):
        s, phi = solve(count(table.astype(kind)), k), best_gain_of_groups(distinct, sizes, k)
        assert s.value == pytest.approx(support_gain(table, s.support), rel=1e-10)
        assert phi <= s.bound * (1 + 1e-11)
        losses.append((phi - s.value) / phi)
    assert np.mean(np.array(losses) <= 1e-11) >= 0.95  # trials: 99.9 % of 1,200
    assert max(losses) <= 0.02


@given(tables(classes=(3, 4, 5), most=7))
def test_supports_are_nearly_best(F):
    counted, noise = count(F), 1e-12 * float(F.sum()) + 1e-9
    for k in range(2, F.shape[1] + 1):
        assert solve(counted, k).value >= 0.95 * best_gain(F, k) - noise  # trials: best in 99.9 % of 1,500


@given(tables(classes=(3, 4, 5), most=6), st.integers(1, 6), st.sampled_from([0.0, 0.1, 1.0, 1e-9]))
def test_bounds_and_gaps_hold_to_the_last_digit(F, k, alpha):
    k = min(k, F.shape[1])
    s, truth = solve(count(F, alpha), k), Multinomial(F, alpha, k)
    noise = 1e-70 * truth.mass  # of eighty digits
    assert truth.best - truth.null <= s.bound + noise
    assert truth.loss(s.support) <= s.gap + noise


@given(tables(classes=(3, 4), most=7), st.integers(3, 60), st.data())
def test_forced_features_among_equal_ones(F, k, data):
    table = np.tile(F, 10)
    k = min(k, table.shape[1])
    always = data.draw(st.lists(st.integers(0, table.shape[1] - 1), unique=True, max_size=k))
    s = solve(count(table), k, always=always)
    present = np.union1d(always, np.flatnonzero(table.any(axis=0)))
    assert len(s.support) == (k if k == table.shape[1] else min(k, len(present)))
    assert set(always) <= set(s.support.tolist())
    noise = 1e-12 * float(table.sum()) + 1e-9
    assert s.value == pytest.approx(support_gain(table, s.support), abs=noise)
    assert 0 <= s.gap <= s.bound


@given(tables(classes=(3, 4)), st.booleans(), st.sampled_from([0.0, 0.5]))
def test_a_path_has_what_fits_have(F, tiled, alpha):
    assume(np.count_nonzero(F.any(axis=1)) > 2)
    counted = count(np.tile(F, 12) if tiled else F, alpha)
    ks = np.unique([0, 1, 2, 3, 5, 8, 49, 50, 51, 60, counted.n_features - 1, counted.n_features])
    path = solve_path(counted, ks)
    for i, k in enumerate(path.ks):
        s = solve(counted, int(k))
        assert (path.value[i], path.bound[i]) == (s.value, s.bound)
        np.testing.assert_array_equal(path.support(k), s.support)


@given(st.data())
def test_panels_of_reals_give_the_same_bits(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    n_classes, m = int(rng.integers(3, 6)), int(rng.integers(3, 400))
    table = rng.gamma(0.5, 3.0, (n_classes, m)) * (rng.random((n_classes, m)) < 0.7)
    table = table[:, rng.integers(0, max(2, m // data.draw(st.sampled_from([1, 10]))), m)]
    assume(np.count_nonzero(table.any(axis=1)) > 2)  # two classes are solved otherwise
    k, alpha = int(rng.integers(1, m)), data.draw(st.sampled_from([0.0, 1.0]))
    always = rng.integers(0, m, data.draw(st.integers(0, 2)))[:k]
    parts = Cut(table, sorted({0, m, *rng.integers(1, m, 3).tolist()}))
    one = solve(count(table, alpha), k, always=always)
    many = panel_columns.solve(parts, panel_columns.TotalsSums.of(parts, alpha), k, always)
    np.testing.assert_array_equal(one.support, many.support)
    assert (one.value, one.bound, one.ties) == (many.value, many.bound, many.ties)


@given(tables(classes=(3, 4)), st.integers(2, 8), st.data())
def test_names_of_classes_and_features_do_not_matter(F, k, data):
    rows, columns = data.draw(st.permutations(range(len(F)))), data.draw(st.permutations(range(F.shape[1])))
    s, permuted = solve(count(F), k), solve(count(F[rows][:, columns]), k)
    noise = 1e-13 * float(F.sum())
    assert permuted.bound == pytest.approx(s.bound, rel=1e-11, abs=noise)
    assert permuted.value == pytest.approx(s.value, rel=0.05, abs=noise)  # ties may be broken otherwise


@given(tables(classes=(3, 4)), st.integers(2, 8))
@example(np.array([[2, 2, 0, 0, 0, 0], [0] * 6, [0, 0, 2, 2, 2, 2], [0] * 6]), 3)  # two classes in fact, with ties
def test_twice_the_documents_gain_twice_as_much(F, k):
    s, doubled = solve(count(F), k), solve(count(2 * F), k)
    assert (doubled.value, doubled.bound) == (2 * s.value, 2 * s.bound)
    np.testing.assert_array_equal(doubled.support, s.support)


@pytest.mark.parametrize("n_classes", [3, 20])
def test_more_features_gain_no_less(n_classes):
    rng = np.random.default_rng(n_classes)
    F = rng.poisson(rng.gamma(0.5, 2, (n_classes, 200)))
    path = solve_path(count(F), [*range(1, 12), 40, 41, 49, 50, 51, 52, 120, 199, 200])
    assert (np.diff(path.value) >= 0).all() and (path.value <= path.bound).all()
    assert path.gap[-1] == 0


def test_a_hundred_classes():
    rng = np.random.default_rng(1)
    F = np.repeat(rng.poisson(0.1, (100, 120)) + 5 * np.eye(100, 120, dtype=int), 3, axis=1)
    for k in (60, 200, 358):
        s = solve(count(F), k)
        assert len(s.support) == k and s.gap <= 0.02 * s.bound
        assert s.value == pytest.approx(support_gain(F, s.support), rel=1e-10)
