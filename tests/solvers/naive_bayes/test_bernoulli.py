"""Bernoulli supports against enumeration and scipy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import xlogy
from sklearn.feature_selection import mutual_info_classif

from nfs_dask.errors import InputError
from nfs_dask.solvers.naive_bayes import bernoulli


@st.composite
def document_counts(draw):
    C, m = draw(st.sampled_from([2, 3])), draw(st.integers(1, 8))
    n = np.array(draw(st.lists(st.integers(1, 9), min_size=C, max_size=C)))
    F = np.array([[draw(st.integers(0, int(size))) for _ in range(m)] for size in n])
    return F, n


def log_likelihood(F, n):
    """Of each feature by class, with its best rates."""
    return (xlogy(F, F) + xlogy(n - F, n - F) - xlogy(n, n)).sum(axis=0)


def plain_gains(F, n):
    pooled = log_likelihood(F.sum(axis=0, keepdims=True), np.array([[n.sum()]]))
    return log_likelihood(F, n[:, None]) - pooled


@given(document_counts(), st.sampled_from([0.0, 0.5, 1.0]), st.data())
def test_supports_are_the_best(case, alpha, data):
    F, n = case
    m = F.shape[1]
    gains = plain_gains(F + alpha, n + 2 * alpha)
    present = np.flatnonzero(F.any(axis=0)).tolist()
    always = data.draw(st.lists(st.integers(0, m - 1), unique=True, max_size=m))
    for k in range(len(always), m + 1):
        solution = bernoulli.solve(bernoulli.score(F, n, alpha), k, always=always)
        allowed = set(range(m)) if k == m else {*present, *always}
        size = min(k, len(allowed))
        supports = [s for s in itertools.combinations(sorted(allowed), size) if {*always} <= {*s}]
        best = max(sum(gains[list(s)]) for s in supports)
        assert len(solution.support) == size and {*always} <= set(solution.support.tolist()) <= allowed
        assert solution.value == pytest.approx(best, abs=1e-10) and solution.gap == 0
        assert solution.value <= solution.bound <= solution.value * (1 + 1e-12) + 1e-25
        assert gains[solution.support].sum() == pytest.approx(best, abs=1e-10)


@given(document_counts())
def test_whole_numbers_and_reals_choose_alike(case):
    F, n = case
    whole, real = bernoulli.score(F, n), bernoulli.score(F.astype(float), n)
    np.testing.assert_array_equal(whole.scores, real.scores)
    for k in range(F.shape[1] + 1):
        assert bernoulli.solve(whole, k).support.tolist() == bernoulli.solve(real, k).support.tolist()


def test_equal_gains_go_to_the_lower_feature():
    F, n = np.array([[1, 4, 2, 3, 1, 4], [4, 1, 3, 2, 4, 1]]), np.array([5, 5])  # columns 0, 1, 4, 5 are as good
    assert bernoulli.solve(bernoulli.score(F, n), 3).support.tolist() == [0, 1, 4]
    assert bernoulli.solve(bernoulli.score(F, n), 3).ties == 4
    assert bernoulli.solve(bernoulli.score(F, n), 3, always=[3]).support.tolist() == [0, 1, 3]


def test_scores_are_mutual_information():
    rng = np.random.default_rng(0)
    X, y = (rng.random((200, 6)) < rng.random(6)).astype(int), rng.integers(3, size=200)
    F = np.array([X[y == c].sum(axis=0) for c in range(3)])
    scores = bernoulli.score(F, np.bincount(y)).scores
    np.testing.assert_allclose(scores, 200 * mutual_info_classif(X, y, discrete_features=True), atol=1e-9)


def test_absent_features_score_nothing_under_smoothing():
    scored = bernoulli.score(np.array([[0, 3], [0, 1]]), np.array([4, 9]), alpha=1.0)
    assert scored.scores[0] == 0 and scored.scores[1] > 0
    assert bernoulli.solve(scored, 1).support.tolist() == [1]
    assert bernoulli.path(scored)[-1] == pytest.approx(bernoulli.solve(scored, 2).value)


def test_too_many_forced_features_are_refused():
    with pytest.raises(InputError, match="they count in k"):
        bernoulli.solve(bernoulli.score(np.ones((2, 3), int), np.array([2, 2])), 1, always=[0, 1])
