"""Weights of the linear rules, and what scikit-learn's selectors make of them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.naive_bayes import BernoulliNB, MultinomialNB

from nfs_dask import ErrorRateSelector, HybridNB, SparseBernoulliNB, SparseCentroid, SparseMultinomialNB
from tests.helpers.grids import each_once

LINEAR = {
    "multinomial": SparseMultinomialNB("all"),
    "few": SparseMultinomialNB(5),
    "bernoulli": SparseBernoulliNB("all", binarize=0.0),
    "euclidean": SparseCentroid("all"),
    "within": SparseCentroid("all", metric="mahalanobis", variance_floor=1e-3),
    "full": SparseCentroid("all", metric="mahalanobis", covariance="full", variance_floor=1e-3),
    "hybrid": HybridNB(normalize=False),
    "hybrid regions": HybridNB(normalize=False, regions=2, tables="separate"),
    "error": ErrorRateSelector(5),
}
FREQUENT, RARE = 10, 40
TELLING = np.arange(6)


def corpus(n_classes, n_rows=600):
    """Frequent words of which the first tell the classes apart, and rare ones that say nothing; classes are unequal."""
    rng = np.random.default_rng(n_classes)
    shares = np.arange(2 * n_classes, n_classes, -1)
    y = np.append(np.arange(n_classes), rng.choice(n_classes, n_rows - n_classes, p=shares / shares.sum()))
    rates = np.full((n_classes, FREQUENT + RARE), 2.0)
    rates[:, FREQUENT:] = 0.4
    for word in TELLING:
        rates[word % n_classes, word] = 8.0
    return rng.poisson(rates[y]), y


each = pytest.mark.parametrize("name", LINEAR)


def binary(name, X):
    return (X > 0).astype(float) if name == "bernoulli" else X


CASES = [(n_classes, without) for n_classes in (1, 2, 3, 5) for without in (None, 0, 1)[: 3 if n_classes > 1 else 1]]


@pytest.mark.filterwarnings("ignore:all labels are:nfs_dask.errors.DataWarning")
@pytest.mark.parametrize(("case", "name"), each_once(CASES, LINEAR))
def test_rows_differ_between_classes_as_their_scores_do(name, case):
    n_classes, without = case
    X, y = corpus(n_classes, n_rows=200)
    model = clone(LINEAR[name]).fit(X, y, sample_weight=None if without is None else (y != without) * 1.0)
    scores = binary(name, X) @ model.coef_.T + model.intercept_
    decision = model.decision_function(X)
    if n_classes == 2:
        np.testing.assert_allclose(scores[:, 0], decision, atol=1e-7)
    else:
        there = np.setdiff1d(np.arange(n_classes), [without])
        assert np.isneginf(np.delete(scores, there, axis=1)).all()
        first = there[0]
        np.testing.assert_allclose(
            scores[:, there] - scores[:, [first]], decision[:, there] - decision[:, [first]], atol=1e-7
        )


@pytest.mark.parametrize("name", ["multinomial", "few", "bernoulli", "hybrid", "error"])
def test_weights_are_beside_the_average_of_the_documents(name):
    X, y = corpus(4)
    model = clone(LINEAR[name]).fit(X, y)
    np.testing.assert_allclose(np.bincount(y) @ model.coef_, 0, atol=1e-9 * len(y))


# "full" weighs features of less variance more.
@pytest.mark.parametrize(("n_classes", "name"), each_once([2, 3, 5], sorted(set(LINEAR) - {"full"})))
def test_selectors_of_scikit_learn_take_the_features_that_tell(name, n_classes):
    X, y = corpus(n_classes)
    k = np.count_nonzero(LINEAR[name].fit(X, y).coef_.any(axis=0))
    most = min(k, len(TELLING))
    for kind in (np.asarray, sparse.csr_array):
        chosen = SelectFromModel(clone(LINEAR[name]), max_features=most, threshold=-np.inf).fit(kind(X), y)
        assert np.isin(np.flatnonzero(chosen.get_support()), TELLING).all()
        estimator = clone(LINEAR[name])
        if name == "hybrid regions":
            estimator.set_params(regions=1)  # of fewer columns there need not be two
        if estimator.get_params().get("k") == 5:
            estimator.set_params(k=0.9)
        ranked = RFE(estimator, n_features_to_select=6, step=0.25).fit(kind(X), y)
        np.testing.assert_array_equal(np.flatnonzero(ranked.support_), TELLING)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("without", [None, 1])
def test_logarithms_of_probabilities_are_those_of_scikit_learn(n_classes, without):
    X, y = corpus(n_classes)
    weights = None if without is None else (y != without) * 1.0
    ours, theirs = SparseMultinomialNB("all"), MultinomialNB()
    for model in (ours, theirs):
        model.fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(ours.feature_log_prob_, theirs.feature_log_prob_, rtol=1e-12)
    ours, theirs = SparseBernoulliNB("all", binarize=0.0), BernoulliNB()
    for model in (ours, theirs):
        model.fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(ours.feature_log_prob_, theirs.feature_log_prob_, rtol=1e-12)
    few = SparseMultinomialNB(5).fit(X, y, sample_weight=weights)
    by_hand = np.exp(few.feature_log_prob_)
    np.testing.assert_allclose(by_hand.sum(axis=1), by_hand.sum(axis=1)[0])
