"""Weights are arrays as those of scikit-learn, and pipelines of its own classes are what its tools expect."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import skops.io
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_selection import SelectFromModel
from sklearn.feature_selection._base import SelectorMixin
from sklearn.naive_bayes import MultinomialNB

import nfs_dask as nfs
from tests.helpers.grids import each_once

RNG = np.random.default_rng(0)
Y = np.array(["a", "b", "c"])[RNG.integers(3, size=150)]
X = RNG.poisson(1 + 3 * (np.arange(12) == 4 * (Y[:, None] == "b") + 2 * (Y[:, None] == "c")))
NAMES = [f"word {i}" for i in range(12)]
FRAME = pd.DataFrame(X, columns=NAMES)


def test_weights_are_an_array_of_the_differences_of_log_probabilities():
    two = Y != "c"
    model = nfs.SparseMultinomialNB(4).fit(X[two], Y[two])
    assert isinstance(model.coef_, np.ndarray) and model.coef_.shape == (1, 12)
    theirs = np.diff(MultinomialNB().fit(X[two], Y[two]).feature_log_prob_, axis=0)[0]
    support = model.get_support()
    # Beside weights of all features, those that are selected differ by what the others share.
    np.testing.assert_allclose(np.diff(model.coef_[0, support]), np.diff(theirs[support]), rtol=1e-10)
    assert not model.coef_[:, ~support].any()
    assert set(np.argsort(np.abs(model.coef_[0]))[-4:]) == set(np.flatnonzero(support))
    model.coef_[:] = 0
    assert model.coef_.any(), "each is an array of its own"


@pytest.mark.parametrize(
    "estimator",
    [
        nfs.SparseMultinomialNB(4),
        nfs.SparseBernoulliNB(4, binarize=0.0),
        nfs.SparseCentroid(4),
        nfs.SparseCentroid(4, metric="mahalanobis", covariance="full"),
        nfs.HybridNB(k=4, normalize=False),
        nfs.ErrorRateSelector(4),
    ],
    ids=str,
)
def test_sparsify_and_densify_change_the_container_alone(estimator):
    model = clone(estimator).fit(X, Y)
    dense, size, decisions = model.coef_, len(pickle.dumps(model)), model.decision_function(X)
    assert isinstance(dense, np.ndarray) and dense.shape == (3, 12)
    assert "coef_" not in vars(model)
    assert model.sparsify() is model
    assert sparse.issparse(model.coef_) and model.coef_.format == "csr"
    np.testing.assert_array_equal(model.coef_.toarray(), dense)
    np.testing.assert_array_equal(model.decision_function(X), decisions)
    assert len(pickle.dumps(model)) < size + 100
    assert sparse.issparse(pickle.loads(pickle.dumps(model)).coef_)
    np.testing.assert_array_equal(model.densify().coef_, dense)
    assert isinstance(model.sparsify().fit(X, Y).coef_, np.ndarray)


def test_weights_of_many_columns_are_sparse_until_an_array_is_asked_for():
    wide = (256 << 20) // 8
    for n_features, kind in ((wide, np.ndarray), (wide + 1, sparse.csr_array)):
        rows = sparse.csr_array((np.ones(4), ([0, 1, 2, 3], [5, 5, 7, 9])), shape=(4, n_features))
        model = nfs.SparseMultinomialNB(2).fit(rows, ["a", "a", "b", "b"])
        assert isinstance(model.coef_, kind)
    assert isinstance(model.densify().coef_, np.ndarray)


def test_what_is_no_linear_rule_has_no_weights():
    model = nfs.SparseCentroid(4, metric="manhattan").fit(X, Y)
    assert not any(hasattr(model, name) for name in ("coef_", "sparsify", "densify"))


def test_selectors_take_the_weights_without_a_getter():
    chosen = SelectFromModel(nfs.SparseMultinomialNB("all"), max_features=3, threshold=-np.inf).fit(X, Y)
    assert set(chosen.get_support(indices=True)) == {0, 2, 4}


ESTIMATORS = [
    nfs.SparseMultinomialNB(4),
    nfs.SparseBernoulliNB(4, binarize=0.0),
    nfs.SparseCentroid(4),
    nfs.SparseCentroid(4, metric="mahalanobis"),
    nfs.SparseCentroid(4, metric="manhattan"),
    nfs.HybridNB(k=4),
    nfs.HybridNB(k=4, normalize=False),
    nfs.HybridNB(k=2, regions=2),
]
CONTAINERS = [np.asarray, pd.DataFrame, sparse.csr_matrix, sparse.csc_array]
each = pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
each_container = pytest.mark.parametrize(("container", "estimator"), each_once(CONTAINERS, ESTIMATORS), ids=str)


@each_container
def test_a_pipeline_begins_with_a_selector(estimator, container):
    model = clone(estimator).fit(FRAME, Y)
    pipeline, support = model.to_sklearn(), model.get_support(indices=True)
    assert isinstance(pipeline[0], SelectorMixin)
    assert pipeline[0].get_support(indices=True).tolist() == support.tolist()
    assert pipeline[:-1].get_feature_names_out().tolist() == [NAMES[i] for i in support]
    unnamed = clone(estimator).fit(X, Y).to_sklearn()
    assert unnamed[:-1].get_feature_names_out().tolist() == [f"x{i}" for i in support]
    rows = FRAME if container is pd.DataFrame else container(X)
    one = pipeline if container is pd.DataFrame else unnamed
    np.testing.assert_array_equal(one.predict(rows), model.predict(FRAME))
    with pytest.raises(ValueError, match="feature names"):
        pipeline.predict(FRAME[NAMES[::-1]])


@each
def test_pipelines_are_read_by_skops_without_trust(estimator):
    pipeline = clone(estimator).fit(FRAME, Y).to_sklearn()
    content = skops.io.dumps(pipeline)
    assert skops.io.get_untrusted_types(data=content) == []
    again = skops.io.loads(content)
    np.testing.assert_array_equal(again.predict(FRAME), pipeline.predict(FRAME))
    assert again[:-1].get_feature_names_out().tolist() == pipeline[:-1].get_feature_names_out().tolist()


@each_container
def test_a_pipeline_that_is_fitted_again_has_the_same_features(estimator, container):
    model = clone(estimator).fit(X, Y)
    pipeline = model.to_sklearn()
    rows, others = container(X[:100]), Y[::-1][:100]
    again = clone(pipeline).fit(rows, others)
    assert again[0].get_support(indices=True).tolist() == model.get_support(indices=True).tolist()
    by_hand = pipeline[:-1].transform(rows)
    np.testing.assert_array_equal(again.predict(rows), clone(pipeline[-1]).fit(by_hand, others).predict(by_hand))


@pytest.mark.parametrize("options", [{}, {"tfidf": True, "norm": None}], ids=str)
def test_pipelines_of_texts_have_the_words_for_names(options):
    texts = ["green tea", "black tea", "black coffee", "more coffee"]
    vectorizer = nfs.TextVectorizer(**options)
    model = nfs.SparseMultinomialNB(2).fit(vectorizer.fit_transform(texts), ["tea", "tea", "coffee", "coffee"])
    pipeline = model.to_sklearn(vectorizer=vectorizer)
    assert sorted(pipeline[:-1].get_feature_names_out()) == ["coffee", "tea"]
    assert skops.io.get_untrusted_types(data=skops.io.dumps(pipeline)) == []
