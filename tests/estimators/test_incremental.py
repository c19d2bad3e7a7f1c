"""Adding documents and taking them away, in any order and any split."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from nfs_dask import InputError, SparseBernoulliNB, SparseMultinomialNB, ingest
from nfs_dask.cli.corpus import GeneratedCorpus

ESTIMATORS = [
    SparseBernoulliNB(5, binarize=0.0),
    SparseMultinomialNB(5),
    SparseBernoulliNB("all", binarize=1.0, alpha=0.0),
    SparseMultinomialNB("all", alpha=0.1),
]
either = pytest.mark.parametrize("estimator", ESTIMATORS)


def documents(n_classes=3, seed=0, n_rows=60):
    rng = np.random.default_rng(seed)
    y = np.append(np.arange(n_classes), rng.integers(n_classes, size=n_rows - n_classes))
    return sparse.csr_array(rng.poisson(rng.gamma(0.5, size=(n_classes, 20))[y])), np.array(["a", "b", "c"])[y]


def new(estimator, **parameters):
    return type(estimator)(**{**estimator.get_params(), **parameters})


def assert_same(one, other):
    """To the bit."""
    for name in ("support", "present", "absent", "class_log_prior", "class_count"):
        np.testing.assert_array_equal(getattr(one.model_, name), getattr(other.model_, name), err_msg=name)
    assert one.model_.evidence.objective == other.model_.evidence.objective
    assert one.model_.evidence.gap == other.model_.evidence.gap
    np.testing.assert_array_equal(one.scores_, other.scores_)


@either
@given(cuts=st.lists(st.integers(1, 59), max_size=4, unique=True).map(sorted), seed=st.integers(0, 3))
def test_any_split_gives_the_same_model(estimator, cuts, seed):
    X, y = documents(seed=seed)
    weights = np.random.default_rng(seed).integers(1, 4, 60) if seed % 2 else None
    whole = new(estimator).fit(X, y, weights)
    parts = new(estimator)
    order = np.random.default_rng(seed).permutation(60)
    for rows in np.split(order, cuts):
        parts.partial_fit(X[rows], y[rows], ["c", "a", "b"], None if weights is None else weights[rows])
    assert_same(parts, whole)


@either
@given(first=st.integers(4, 50), seed=st.integers(0, 3))
def test_forgetting_gives_the_model_of_the_rest(estimator, first, seed):
    X, y = documents(seed=seed)
    weights = np.random.default_rng(seed).integers(1, 4, 60)
    rest = new(estimator).fit(X[:first], y[:first], weights[:first])
    forgetful = new(estimator).fit(X, y, weights).forget(X[first:], y[first:], weights[first:])
    assert_same(forgetful, rest)


@either
def test_adding_and_forgetting_changes_nothing(estimator):
    X, y = documents()
    X = (X * 0.3).tocsr()  # reals: equal but for rounding
    model = new(estimator).fit(X[:40], y[:40])
    before = model.model_
    model.partial_fit(X[40:], y[40:]).forget(X[40:], y[40:])
    np.testing.assert_array_equal(model.model_.support, before.support)
    np.testing.assert_allclose(model.model_.present, before.present, rtol=1e-9)


def test_a_feature_of_forgotten_reals_is_absent_again():
    X = sparse.csr_array([[0.3, 0.1, 0.0], [0.1, 0.7, 0.0], [0.1, 0.2, 0.6]])
    model = SparseMultinomialNB(2).fit(X, [0, 1, 1]).forget(X[2:], [1])
    assert model.scores_[2] == 0
    assert_same(model, SparseMultinomialNB(2).fit(X[:2], [0, 1]))


def test_whole_numbers_are_forgotten_from_a_sum_of_reals():
    X = sparse.csr_array([[0.5, 1.0], [2.0, 0.25], [3.0, 1.0]])
    model = SparseMultinomialNB("all").fit(X, [0, 1, 1]).forget(X[2:], [1])
    assert_same(model, SparseMultinomialNB("all").fit(X[:2], [0, 1]))


@either
def test_documents_that_were_never_there_cannot_be_forgotten(estimator):
    X, y = documents()
    model = new(estimator).fit(X[:40], y[:40])
    before = model.model_
    with pytest.raises(InputError, match="not among those the model was fitted on"):
        model.forget(X, y)
    assert model.model_ is before
    with pytest.raises(InputError, match="no document would be left"):
        model.forget(X[:40], y[:40])


@either
def test_a_declared_class_without_documents_is_never_predicted(estimator):
    X, y = documents()
    some = y != "c"
    model = new(estimator, fit_prior=False).partial_fit(X[some], y[some], classes=["a", "b", "c"])
    two = new(estimator, fit_prior=False).fit(X[some], y[some])
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.class_count_[2] == 0
    np.testing.assert_array_equal(model.predict(X), two.predict(X))
    np.testing.assert_allclose(model.predict_proba(X)[:, :2], two.predict_proba(X), rtol=1e-12)
    assert (model.predict_proba(X)[:, 2] == 0).all()
    np.testing.assert_array_equal(model.get_support(), two.get_support())
    assert model.partial_fit(X[~some], y[~some]).objective_ == new(estimator).fit(X, y).objective_


@either
def test_one_class_so_far_is_what_is_predicted(estimator):
    X, y = documents()
    model = new(estimator).partial_fit(X[y == "b"], y[y == "b"], classes=["a", "b"])
    assert set(model.predict(X)) == {"b"}
    assert model.dual_gap_ == 0
    np.testing.assert_array_equal(model.predict_proba(X), np.tile([0.0, 1.0], (60, 1)))


@either
def test_fit_starts_from_nothing_and_partial_fit_goes_on(estimator):
    X, y = documents()
    model = new(estimator).fit(X[:30], y[:30]).partial_fit(X[30:], y[30:])
    assert_same(model, new(estimator).fit(X, y))
    assert_same(model.fit(X[:30], y[:30]), new(estimator).fit(X[:30], y[:30]))


@either
def test_classes_are_declared_once(estimator):
    X, y = documents()
    with pytest.raises(InputError, match="classes must be passed on the first call to partial_fit"):
        new(estimator).partial_fit(X, y)
    model = new(estimator).partial_fit(X, y, classes=["a", "b", "c"])
    with pytest.raises(InputError, match=r"not the same as on last call to partial_fit, \['a', 'b', 'c'\]"):
        model.partial_fit(X, y, classes=["a", "b"])
    with pytest.raises(InputError, match="label 'd'"):
        model.partial_fit(X, np.where(y == "a", "d", y))
    with pytest.raises(InputError, match="requires y to be passed"):
        model.partial_fit(X)


def test_names_outlive_documents_without_any(tmp_path):
    corpus = GeneratedCorpus(600, 200, 2, planted=5)
    named = ingest(corpus, tmp_path / "named.zarr")
    block = next(corpus.blocks(0, 1))
    X = sparse.csr_matrix((block.data, block.indices, block.indptr), shape=(block.n_rows, 200))
    y = corpus.classes[block.codes]
    model = SparseMultinomialNB(k=10).fit(named)
    want = model.get_feature_names_out().tolist()
    model.partial_fit(X, y)
    assert model.get_feature_names_out().tolist() == want
    assert pickle.loads(pickle.dumps(model)).forget(X, y).get_feature_names_out().tolist() == want
    model.fit(X, y)
    assert model.get_feature_names_out()[0].startswith("x")
