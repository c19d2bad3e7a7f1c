"""Sparse centers of documents that come and go: the model of those that are there."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from scipy import sparse

from nfs_dask import InputError
from tests.helpers.centers_by_hand import METHODS, assert_same, data, new

of_sums = pytest.mark.parametrize("method", [name for name in METHODS if name != "l1"])


@pytest.mark.parametrize("whole", [True, False])
@of_sums
def test_any_split_is_the_whole(method, whole):
    X, y = data(3, seed=2, whole=whole)
    fitted = new(method).fit(X, y)
    for bounds in ([0, 45, 90], [0, 1, 2, 90], [0, 30, 31, 60, 90]):
        model, reverse = new(method), new(method)
        for start, stop in itertools.pairwise(bounds):
            model.partial_fit(X[start:stop], y[start:stop], classes=["a", "b", "c"])
        for start, stop in reversed(list(itertools.pairwise(bounds))):
            reverse.partial_fit(sparse.csr_array(X[start:stop]), y[start:stop], classes=["a", "b", "c"])
        for one in (model, reverse):
            assert_same(one, fitted, method)


@of_sums
def test_weights_go_along(method):
    X, y = data(3, seed=3)
    weights = np.random.default_rng(0).gamma(1.0, size=len(y))
    model = (
        new(method)
        .partial_fit(X[:50], y[:50], ["a", "b", "c"], weights[:50])
        .partial_fit(X[50:], y[50:], sample_weight=weights[50:])
    )
    fitted = new(method).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(model.get_support(), fitted.get_support())
    np.testing.assert_allclose(model.scores_, fitted.scores_, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(model.centers_, fitted.centers_, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("method", ["l2", "within", "total"])
def test_forgetting_is_the_inverse(method):
    X, y = data(3, seed=4, whole=True)
    model = new(method).fit(X, y).forget(X[60:], y[60:])
    assert_same(model, new(method).fit(X[:60], y[:60]), method)
    X = X / 3
    model = new(method).fit(X[:60], y[:60]).partial_fit(X[60:], y[60:]).forget(X[60:], y[60:])
    rest = new(method).fit(X[:60], y[:60])
    np.testing.assert_array_equal(model.get_support(), rest.get_support())
    np.testing.assert_allclose(model.scores_, rest.scores_, rtol=1e-12)


@pytest.mark.parametrize("method", ["l2", "within", "total"])
def test_documents_that_were_never_there_cannot_be_forgotten(method):
    X, y = data(3, seed=5)
    model = new(method).fit(X[:40], y[:40])
    before = model.model_
    with pytest.raises(InputError, match="not among those the model was fitted on"):
        model.forget(X, y)
    with pytest.raises(InputError, match="no document would be left"):
        model.forget(X[:40], y[:40])
    assert model.model_ is before


@of_sums
def test_a_declared_class_without_documents_is_never_predicted(method):
    X, y = data(3, seed=6)
    some = y != "b"
    model = new(method).partial_fit(X[some], y[some], classes=["a", "b", "c"])
    two = new(method).fit(X[some], y[some])
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.class_count_[1] == 0
    np.testing.assert_array_equal(model.get_support(), two.get_support())
    assert model.objective_ == pytest.approx(two.objective_, rel=1e-12)
    np.testing.assert_array_equal(model.predict(X), two.predict(X))
    assert np.isneginf(model.decision_function(X)[:, 1]).all()
    if method == "within":
        assert not model.predict_proba(X)[:, 1].any()
        np.testing.assert_allclose(model.predict_proba(X)[:, ::2], two.predict_proba(X), rtol=1e-9)
    whole = model.partial_fit(X[~some], y[~some])
    assert_same(whole, new(method).fit(X, y), method)
    one = new(method).partial_fit(X[~some], y[~some], classes=["a", "b"])
    assert set(one.predict(X)) == {"b"}
    assert one.objective_ >= 0 or method == "full"


@of_sums
def test_fit_starts_from_nothing_and_partial_fit_goes_on(method):
    X, y = data(3, seed=7)
    model = new(method).fit(X[:30], y[:30]).partial_fit(X[30:], y[30:])
    assert_same(model, new(method).fit(X, y), method)
    assert_same(model.fit(X[:30], y[:30]), new(method).fit(X[:30], y[:30]), method)
    again = pickle.loads(pickle.dumps(model)).partial_fit(X[30:], y[30:])
    assert_same(again, new(method).fit(X, y), method)


@of_sums
def test_classes_are_declared_once(method):
    X, y = data(3)
    with pytest.raises(InputError, match="classes must be passed on the first call to partial_fit"):
        new(method).partial_fit(X, y)
    model = new(method).partial_fit(X, y, classes=["a", "b", "c"])
    with pytest.raises(InputError, match=r"not the same as on last call to partial_fit, \['a', 'b', 'c'\]"):
        model.partial_fit(X, y, classes=["a", "b"])
    with pytest.raises(InputError, match="label 'd'"):
        model.partial_fit(X, np.where(y == "a", "d", y))


def test_sums_of_another_kind_are_not_added_to():
    X, y = data(3)
    for have, want in itertools.permutations(["l2", "within", "full"], 2):
        model = new(have).fit(X, y)
        before = model.model_
        model.set_params(**{"covariance": "within", **METHODS[want]})
        with pytest.raises(InputError, match="documents so far were summed up for metric="):
            model.partial_fit(X, y)
        assert model.model_ is before
    model = new("within").fit(X, y).set_params(covariance="total")  # of the same sums
    assert_same(model.partial_fit(X, y), new("total").fit(np.vstack([X, X]), np.append(y, y)), "total")


def test_medians_are_forgotten_when_means_are_fitted():
    X, y = data(3)
    model = new("l1").fit(X, y)
    assert_same(model.set_params(metric="euclidean").fit(X, y), new("l2").fit(X, y), "l2")
    assert_same(model.set_params(metric="manhattan").fit(X, y), new("l1").fit(X, y), "l1")
    with pytest.raises(InputError, match="no sums"):
        model.set_params(metric="euclidean").partial_fit(X, y)
