"""Numbers at the edges of what doubles hold: solved as exactly as others, or refused in words."""

from __future__ import annotations

import itertools
import logging

import numpy as np
import pytest
from scipy import sparse

import nfs_dask as nfs

K = 3


def words(n_classes, seed):
    """Few words in few documents, so that classes lack many of them, and one has none."""
    rng = np.random.default_rng(seed)
    y = np.arange(6 * n_classes) % n_classes
    X = rng.poisson(rng.gamma(0.1, 3, (n_classes, 9))[y])
    X[y == 0] = X[:, 4] = 0
    return X, y


def xlogx(x):
    return float(np.sum(x * np.log(np.where(x > 0, x, 1))))


def best_by_enumeration(X, y):
    """The largest log likelihood of K features without smoothing: mathematics.md 3.1."""
    totals = np.array([X[y == c].sum(axis=0) for c in np.unique(y)], float)
    g = totals.sum(axis=0)
    best = 0.0
    for support in itertools.combinations(np.flatnonzero(g), min(K, np.count_nonzero(g))):
        f = totals[:, list(support)]
        best = max(best, xlogx(f) - xlogx(f.sum(axis=0)) - xlogx(f.sum(axis=1)) + xlogx(f.sum()))
    return xlogx(g) - xlogx(g.sum()) + best


@pytest.mark.parametrize("alpha", [0, 5e-324, 1e-310, 1e-200])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_least_smoothing_there_is_finds_what_enumeration_finds(n_classes, alpha, caplog):
    caplog.set_level(logging.WARNING, "nfs_dask")
    for seed in range(25):
        X, y = words(n_classes, seed)
        if np.count_nonzero(X.any(axis=0)) <= K:
            continue
        model = nfs.SparseMultinomialNB(K, alpha=alpha).fit(X, y)
        expected = best_by_enumeration(X, y)
        assert model.objective_ <= expected + 1e-9
        assert model.upper_bound_ >= expected - 1e-9
        assert np.isfinite(model.predict_proba(X)).all()
    assert not caplog.records, "compiled code was taken for damaged"


@pytest.mark.parametrize("alpha", [0, 1e-3, 1.0])
@pytest.mark.parametrize(
    "estimator",
    [nfs.SparseMultinomialNB(), nfs.SparseBernoulliNB(binarize=0.0), nfs.SparseMultinomialNB(solver="bisection")],
)
def test_features_that_occur_nowhere_are_never_chosen(estimator, alpha):
    X, y = words(3 if getattr(estimator, "solver", "") != "bisection" else 2, 1)
    present = np.flatnonzero(X.any(axis=0))
    for k in (len(present) - 1, len(present), len(present) + 1, X.shape[1] - 1):
        model = estimator.set_params(k=k, alpha=alpha).fit(X, y)
        chosen = model.get_support(indices=True)
        assert np.isin(chosen, present).all()
        assert len(chosen) == min(k, len(present))
    assert estimator.set_params(k="all").fit(X, y).get_support().all()


@pytest.mark.parametrize("estimator", [nfs.SparseMultinomialNB, nfs.SparseBernoulliNB])
@pytest.mark.parametrize("weight", [1, 0.3])
def test_where_one_class_alone_has_counts_only_features_that_occur_are_chosen(estimator, weight):
    X = np.array([[0, 3, 0, 1, 0, 2], [0, 1, 0, 1, 0, 0], [0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]]) * weight
    for y in ([0, 0, 1, 1], [1, 1, 0, 0], [0, 0, 1, 2]):
        for k in (2, 3, 5):
            for data in (X, sparse.csr_array(X)):
                model = estimator(k=k, alpha=0).fit(data, y)
                assert np.isin(model.get_support(indices=True), [1, 3, 5]).all()
                assert model.get_support().sum() == min(k, 3)
            best = max(log_likelihood(X, np.array(y), s) for s in itertools.combinations(range(6), k))
            if estimator is nfs.SparseMultinomialNB:
                assert model.objective_ == pytest.approx(best, abs=1e-9)
        method = "multinomial" if estimator is nfs.SparseMultinomialNB else "bernoulli"
        assert np.isin(nfs.path(X, method, [2, 3], y=y, alpha=0).support(2), [1, 3, 5]).all()


def log_likelihood(X, y, support):
    """Of counts without smoothing: mathematics.md 3.1."""
    inside = np.isin(np.arange(X.shape[1]), support)
    totals = np.array([X[y == c].sum(axis=0) for c in np.unique(y)], float)
    shared, f = totals.sum(axis=0), totals[:, inside]
    free = xlogx(f) - xlogx(f.sum(axis=1)) + xlogx(np.array([f.sum()]))
    return free + xlogx(shared[~inside]) - xlogx(np.array([shared.sum()]))


WEIGHTS = np.random.default_rng(0).random(60)
Y = np.arange(60) % 2


def far_off(offset):
    X = np.random.default_rng(1).normal(size=(60, 4))
    X[:, 0] += 3 * Y
    return X + offset


@pytest.mark.parametrize("covariance", ["within", "total"])
def test_variances_that_rounding_hides_are_refused(covariance):
    model = nfs.SparseCentroid(2, metric="mahalanobis", covariance=covariance)
    with pytest.raises(nfs.InputError, match=r"feature 0 are around 1e\+15.*subtract a constant"):
        model.fit(far_off(1e15), Y, sample_weight=WEIGHTS)
    model.fit(far_off(1e10), Y, sample_weight=WEIGHTS)
    assert model.certified_ and np.isfinite(model.scores_).all()
    expected = model.fit(far_off(0), Y, sample_weight=WEIGHTS).scores_
    np.testing.assert_allclose(model.fit(far_off(1e8), Y, sample_weight=WEIGHTS).scores_, expected, rtol=1e-5)


def test_constants_have_no_variance_wherever_they_are():
    X = np.column_stack([far_off(0)[:, 0], np.where(Y, 3.1, 2.7), np.full(60, 1e15 + 0.5), np.full(60, 0.1)])
    scores = nfs.SparseCentroid(2, metric="mahalanobis").fit(X, Y, sample_weight=WEIGHTS).scores_
    assert np.isfinite(scores[0]) and scores[1:].tolist() == [np.inf, 0, 0]
