"""Centers against reference vectors, fractions, and the enumeration of all supports."""

from __future__ import annotations

import itertools
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfs_dask.arrays.doubles import Pair
from nfs_dask.errors import InputError
from nfs_dask.solvers.centers.best_features import Best, Cost, best, choose, narrowed, rank, scaled, symmetric_root
from nfs_dask.solvers.centers.separation import add_squares, add_up, prefix_sums, separate


def pairs(exact):
    """Fractions as doubles and what those leave out."""
    high = np.vectorize(float, otypes=[float])(exact)
    return Pair(high, np.vectorize(lambda a, b: float(a - Fraction(b)), otypes=[float])(exact, high))


def fractions(X):
    return np.vectorize(Fraction, otypes=[object])(np.asarray(X, float))


class Exact:
    """Means, gains and costs of a small problem in fractions."""

    def __init__(self, X, y, C):
        self.X, self.y, self.C = fractions(X), np.asarray(y), C
        self.n = np.bincount(self.y, minlength=C)
        self.sums = np.array([self.X[self.y == c].sum(axis=0) for c in range(C)])
        self.means = self.sums / np.array([[Fraction(int(n))] for n in self.n])
        self.pooled = self.means.sum(axis=0) / C
        self.gains = ((self.means - self.pooled) ** 2).sum(axis=0)
        self.around = self.X - self.means[self.y]
        self.within = (self.around**2).sum(axis=0) / len(self.y)
        self.total = ((self.X - self.X.sum(axis=0) / len(self.y)) ** 2).sum(axis=0) / len(self.y)

    def cost(self, support, scale=None):
        """The objective with class centers on the support and the pooled ones elsewhere."""
        centers = np.tile(self.pooled, (self.C, 1))
        centers[:, list(support)] = self.means[:, list(support)]
        squares = (self.X - centers[self.y]) ** 2
        if scale is not None:
            squares = squares[:, scale != 0] / scale[scale != 0]
        return sum(squares[self.y == c].sum() / int(self.n[c]) for c in range(self.C))

    def separate(self):
        return separate(pairs(self.sums), Pair.of(self.n))


def agrees(support, answer):
    chosen = set(support.tolist())
    extra = chosen - set(answer["sure"])
    return chosen >= set(answer["sure"]) and extra <= set(answer["tied"]) and len(extra) == answer["need"]


def numbers(values):
    return np.array([float(v) for v in values])


def check(expected, gains, base, tolerance, where):
    """Gains, and the support and the objective of every k."""
    np.testing.assert_allclose(gains, numbers(expected["gain"]), 1e-12, tolerance, err_msg=str(where))
    ranked = rank(gains, cost=Cost(base))
    assert base == pytest.approx(expected["base"], rel=1e-12), where
    for answer in expected["at_k"]:
        k = answer["k"]
        assert agrees(ranked.support(k), answer), (where, k)
        if answer["objective"] is not None:
            assert ranked.cost[k] == pytest.approx(answer["objective"], rel=1e-12, abs=tolerance), (where, k)


def test_golden_squares(golden):
    for case in golden("centers.json"):
        X, expected = np.array(case["inputs"]["X"], float), case["expected"]
        exact = Exact(X, case["inputs"]["y"], case["inputs"]["C"])
        far, tolerance = exact.separate(), 1e-14 * np.abs(X).max() ** 2
        check(expected["l2"], far.gain, float(exact.cost([])), 1e-14 * tolerance, case["id"])
        np.testing.assert_allclose(far.pooled, expected["l2"]["pooled"], 1e-15)
        for name in ("within", "total", "balanced"):
            variance = numbers(expected["variances"][name])
            gains, _ = scaled(far, variance, exact.within == 0)
            base = float(exact.cost([], fractions(variance)))
            check(expected[f"l2_{name}"], gains, base, 1e-12, (case["id"], name))


def test_golden_absolute_values(golden):
    for case in golden("centers.json"):
        expected = case["expected"]["l1"]
        pooled = numbers(expected["pooled_dispersion"])
        gains = pooled - np.array(expected["class_dispersion"]).sum(axis=0)
        check(expected, np.maximum(gains, 0), pooled.sum(), 1e-12 * max(1.0, pooled.sum()), case["id"])


def test_golden_medium(golden):
    file = golden("centers_medium.npz")
    exact = Exact(file["X"], file["y"], 2)
    far = exact.separate()
    for name, scale in (("l2", None), ("l2_within", exact.within)):
        gains = far.gain if scale is None else scaled(far, scale.astype(float), scale == 0)[0]
        np.testing.assert_allclose(gains, file[f"{name}_gain"], 1e-12)
        ranked = rank(gains, cost=Cost(float(file[f"{name}_base"])))
        assert ranked.null == pytest.approx(float(exact.cost([], scale)), rel=1e-12)
        for k in range(41):
            assert ranked.support(k).tolist() == sorted(file[f"{name}_path"][:k].tolist())
        for k in (1, 17, 40):
            cost = float(exact.cost(ranked.support(k), scale))
            assert ranked.cost[k] == pytest.approx(cost, rel=1e-12)
    ranked = rank(file["l1_gain"], cost=Cost(float(file["l1_base"])))
    assert all(ranked.support(k).tolist() == sorted(file["l1_path"][:k].tolist()) for k in range(41))


def test_golden_full_covariance(golden):
    for case in golden("centers_full_covariance.json"):
        X, y = np.array(case["inputs"]["X"]), np.array(case["inputs"]["y"])
        root = symmetric_root(np.array(case["inputs"]["S"]))
        np.testing.assert_allclose(root, case["expected"]["root"], atol=1e-12)
        means = np.array([X[y == c].mean(axis=0) for c in range(2)]) @ root
        np.testing.assert_allclose(means, case["expected"]["omega"], atol=1e-12)
        gains = separate(Pair.of(means), Pair.of(np.ones(2))).gain
        np.testing.assert_allclose(gains, case["expected"]["gain"], atol=1e-12)
        assert [choose(gains, k).tolist() for k in range(5)] == [sorted(case["expected"]["path"][:k]) for k in range(5)]


@st.composite
def samples(draw, most_classes=4, most_features=5):
    """Rows of small whole numbers, some with an offset, with two rows or more of each class."""
    C = draw(st.integers(2, most_classes))
    m = draw(st.integers(1, most_features))
    sizes = [draw(st.integers(1, 3)) for _ in range(C)]
    y = np.repeat(np.arange(C), sizes)
    values = st.integers(-3, 3)
    X = np.array([draw(st.lists(values, min_size=m, max_size=m)) for _ in y])
    return X + draw(st.sampled_from([0, 10**6])), y, C


@given(samples(), st.data())
def test_supports_are_the_best_there_are(case, data):
    X, y, C = case
    exact, m = Exact(X, y, C), X.shape[1]
    gains = exact.separate().gain
    always = data.draw(st.lists(st.integers(0, m - 1), unique=True, max_size=m))
    base = exact.cost([])
    ranked = rank(gains, cost=Cost(float(base), float(base - Fraction(float(base)))), always=always)
    assert ranked.ks.tolist() == list(range(len(always), m + 1))
    for k, cost in zip(ranked.ks, ranked.cost, strict=True):
        costs = {s: exact.cost(s) for s in itertools.combinations(range(m), k) if {*always} <= {*s}}
        least = min(costs.values())
        lowest = next(s for s, c in costs.items() if c == least)  # combinations come in the order of their indices
        assert tuple(ranked.support(k).tolist()) == lowest
        assert cost == pytest.approx(float(least), rel=1e-14, abs=1e-14)


@given(samples(most_classes=2))
def test_the_cost_has_a_closed_form(case):
    X, y, _ = case
    exact = Exact(X, y, 2)
    plus, minus = exact.means
    power = sum((exact.X[y == c] ** 2).sum() / int(exact.n[c]) for c in range(2))
    for k in range(X.shape[1] + 1):
        D = choose(exact.separate().gain, k)
        closed = power - (((plus + minus) ** 2).sum() + ((plus - minus)[D] ** 2).sum()) * Fraction(1, 2)
        assert closed == exact.cost(D)


@given(samples(most_classes=2))
def test_variances_within_and_in_total_rank_two_classes_alike(case):
    X, y, _ = case
    exact = Exact(X, y, 2)
    far = exact.separate()
    within, total = (scaled(far, v.astype(float), exact.within == 0)[0] for v in (exact.within, exact.total))
    order = np.argsort(within, kind="stable")
    assert (np.diff(total[order]) >= -1e-12 * total[order][1:]).all()


@given(st.integers(2, 40), st.integers(0, 2**32 - 1), st.sampled_from([1.0, 1e-7, 1e8]))
def test_separations_are_rounded_once(C, seed, offset):
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 10**6, C)
    sums = fractions(rng.normal(offset, 1, (C, 6))) * n[:, None]
    means = sums / n[:, None]
    far = separate(pairs(sums), Pair.of(n))
    pooled = means.sum(axis=0) / C
    assert far.pooled.tolist() == [float(v) for v in pooled]
    for gain, exact in zip(far.gain.tolist(), ((means - pooled) ** 2).sum(axis=0), strict=True):
        # From twice the digits: of a number halfway between two doubles, to a millionth, it may be either.
        assert abs(Fraction(gain) - exact) <= (Fraction(1, 2) + Fraction(1, 2**20)) * Fraction(np.spacing(gain))


def test_equal_gains_are_equal_to_the_bit():
    n = np.array([7, 10, 10, 3])
    steps = np.array([3, -5, 11, 2])
    thirds = np.array([steps + shift * n for shift in (0, 1, 10**9)] + [-steps, 0 * n, 5 * n], float).T
    gains = separate(Pair.of(thirds), Pair.of(n)).gain
    assert len(set(gains[:4])) == 1 and gains[0] > 0
    assert gains[4:].tolist() == [0.0, 0.0]
    assert choose(gains, 2).tolist() == [0, 1]


def test_running_sums_do_not_depend_on_the_cut():
    rng = np.random.default_rng(0)
    values = rng.lognormal(0, 20, 1000)
    for cuts in ([], [1], [10, 11, 500]):
        running = np.zeros(2)
        for part in np.split(values, cuts):
            add_up(part, running)
        assert sum(Fraction(v) for v in running) == pytest.approx(sum(map(Fraction, values)), rel=1e-28)
        assert running.tolist() == prefix_sums(values, np.array([1000]))[:, 0].tolist()
    sums = rng.lognormal(0, 20, (3, 50)) * np.array([1, -1e-17])[:, None, None]  # of pairs
    found = []
    for cuts in ([], [7], [1, 49]):
        running = np.zeros((3, 3))
        for part in np.split(sums, cuts, axis=2):
            add_squares(Pair(*part), running)
        found.append(running)
        exact = (fractions(sums[0]) + fractions(sums[1])) ** 2
        for total, squares in zip(running.T, exact, strict=True):
            assert abs(sum(map(Fraction, total)) / squares.sum() - 1) < Fraction(1, 10**44)
    assert all(np.array_equal(found[0], one) for one in found)


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.5, np.inf]), min_size=1, max_size=30), st.data())
def test_smaller_choices_are_parts_of_larger_ones(values, data):
    gains = np.array(values)
    m = len(gains)
    forced = np.array(sorted(data.draw(st.sets(st.integers(0, m - 1), max_size=3))), np.int64)
    ks = data.draw(st.lists(st.integers(len(forced), m), min_size=1, max_size=5))
    for k, found in zip(ks, narrowed(gains, ks, forced), strict=True):
        assert found.tolist() == choose(gains, k, forced).tolist()


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.5, np.inf]), min_size=1, max_size=30), st.data())
def test_gains_that_go_by_are_ranked_as_in_one_piece(values, data):
    gains = np.array(values)
    m = len(gains)
    forced = np.array(sorted(data.draw(st.sets(st.integers(0, m - 1), max_size=3))), np.int64)
    k = data.draw(st.integers(len(forced), m))
    best = Best(k, forced)
    cuts = sorted(data.draw(st.sets(st.integers(0, m), max_size=4)))
    for first, stop in itertools.pairwise([0, *cuts, m]):
        best.add(first, gains[first:stop])
    support, gained = best.result()
    assert support.tolist() == choose(gains, k, forced).tolist()
    assert gained.tolist() == gains[support].tolist()


def test_what_is_held_while_gains_go_by_does_not_grow():
    rng = np.random.default_rng(0)
    best, pieces = Best(10, np.array([3])), [rng.random(40_000) + i / 100 for i in range(20)]
    held = []
    for i, gains in enumerate(pieces):
        best.add(40_000 * i, gains)
        held.append(sum(map(len, best._features)))
    assert max(held) <= 2 * 10 + 2**16
    assert best.result()[0].tolist() == choose(np.concatenate(pieces), 10, np.array([3])).tolist()


def test_paths_of_some_sizes_equal_those_of_all():
    rng = np.random.default_rng(0)
    gains = rng.integers(0, 50, 300).astype(float)
    ks = np.array([1, 2, 17, 299, 300])
    for always in (None, [250]):
        some, every = rank(gains, ks, cost=Cost(1e5), always=always), rank(gains, cost=Cost(1e5), always=always)
        at = np.searchsorted(every.ks, ks)
        assert some.value.tolist() == every.value[at].tolist() == some.bound.tolist()
        assert some.cost.tolist() == every.cost[at].tolist() == (1e5 - some.value).tolist()
        assert [gains[some.support(k)].sum() for k in ks] == some.value.tolist()
    assert rank(gains).null == 0 and rank(np.zeros(0)).value.tolist() == [0.0]


def test_features_that_tell_classes_apart_alone_come_first():
    far = separate(Pair.of(np.array([[1.0, 0.0, 5.0, 8.0], [1.0, 3.0, 6.0, 8.5]])), Pair.of(np.ones(2)))
    variance = np.array([0.0, 0.5, 0.0, 0.0])
    gains, used = scaled(far, variance, variance == 0)
    assert gains.tolist() == [0.0, 9.0, np.inf, np.inf] and used.tolist() == variance.tolist()
    ranked = rank(gains, cost=Cost(10.0))
    assert [ranked.support(k).tolist() for k in range(1, 5)] == [[2], [2, 3], [1, 2, 3], [0, 1, 2, 3]]
    assert ranked.value.tolist() == [0.0, *[np.inf] * 4] and ranked.cost.tolist() == [10.0, 10.0, 10.0, 1.0, 1.0]
    assert rank(gains, always=[1]).value.tolist() == [9.0, np.inf, np.inf, np.inf]
    gains, used = scaled(far, variance, variance == 0, 0.25)
    assert gains.tolist() == [0.0, 9.0, 2.0, 0.5] and used.tolist() == [0.25, 0.5, 0.25, 0.25]


def test_roots_of_singular_covariances_leave_out_what_does_not_vary():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(50, 3)) @ rng.normal(size=(3, 6))
    S = np.cov(Z.T)
    root = symmetric_root(S)
    assert (root == root.T).all()
    np.testing.assert_allclose(root @ root, np.linalg.pinv(S, rcond=1e-12, hermitian=True), atol=1e-9)
    projection = root @ S @ root
    np.testing.assert_allclose(projection @ projection, projection, atol=1e-9)
    assert np.trace(projection) == pytest.approx(3)
    floored = symmetric_root(S, floor=0.5)
    values, directions = np.linalg.eigh(S)
    np.testing.assert_allclose(floored @ floored, directions / np.maximum(values, 0.5) @ directions.T, atol=1e-9)
    assert symmetric_root(np.zeros((2, 2))).tolist() == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("apart", [0, 10, 45])
def test_roots_keep_their_digits_in_any_units(apart):
    """Against 80 digits, in units of the features: what a root makes of rows that vary by as much as they do."""
    rng = np.random.default_rng(apart)
    with mpmath.workdps(80):
        for _ in range(5):
            S = np.cov(rng.normal(size=(5, 40)) * 2.0 ** rng.integers(-apart, apart + 1, (5, 1)))
            values, directions = mpmath.eigsy(mpmath.matrix(S.tolist()))
            exact = directions * mpmath.diag([1 / mpmath.sqrt(value) for value in values]) * directions.T
            off = symmetric_root(S) - np.array(exact.tolist(), float)
            assert np.abs(off * np.sqrt(np.diag(S))[:, None]).max() < 1e-7  # few units apart: half of all digits
            assert apart < 45 or np.abs(off * np.sqrt(np.diag(S))[:, None]).max() < 1e-13


def test_what_cannot_be_forced_or_inverted_is_refused():
    with pytest.raises(InputError, match="always forces 2 features into a support of k=1"):
        rank(np.ones(3), np.array([1]), always=[0, 2])
    with pytest.raises(InputError, match="always names feature 3"):
        rank(np.ones(3), always=[3])
    with pytest.raises(InputError, match="scale the features down"):
        symmetric_root(np.array([[np.inf]]))


@given(st.lists(st.integers(0, 3), max_size=10), st.integers(-1, 12))
def test_the_best_features_keep_the_lower_of_equals(scores, k):
    truth = sorted(sorted(range(len(scores)), key=lambda i: (-scores[i], i))[: max(k, 0)])
    assert best(np.array(scores, float), k).tolist() == truth
