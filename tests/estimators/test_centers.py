"""Sparse centers against plain numpy: what is chosen, where the centers are, and what is said of documents."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import NearestCentroid

import nfs_dask as nfs
from nfs_dask import SparseCentroid
from tests.helpers.centers_by_hand import HIDDEN, METHODS, M, Truth, data, each_method, each_of_columns

# What is fitted


@each_of_columns
@pytest.mark.parametrize("weights", ["none", "whole", "real"])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_centers_and_gains_are_numpys(method, weights, n_classes):
    X, y = data(n_classes, seed=n_classes)
    rng = np.random.default_rng(n_classes)
    w = {"none": None, "whole": rng.integers(0, 4, len(y)), "real": rng.gamma(1.0, size=len(y))}[weights]
    if w is not None:
        w[: len(np.unique(y))] = 1
    truth = Truth(X, y, method, w)
    for k in (1, 4, M):
        model = SparseCentroid(k, **METHODS[method]).fit(X, y, sample_weight=w)
        support = truth.support(k)
        np.testing.assert_array_equal(model.get_support(indices=True), support)
        np.testing.assert_allclose(model.centers_, truth.centers[:, support], rtol=1e-13, atol=1e-14)
        np.testing.assert_allclose(model.common_center_, truth.pooled[support], rtol=1e-13, atol=1e-14)
        np.testing.assert_allclose(model.scores_, truth.gains, rtol=1e-10, atol=1e-12)
        assert model.objective_ == pytest.approx(truth.objective(support), rel=1e-12)
        assert (model.dual_gap_, model.certified_, model.upper_bound_) == (0, True, model.objective_)
        np.testing.assert_allclose(model.class_count_, np.bincount(truth.codes, w), rtol=1e-15)


@each_of_columns
def test_no_other_choice_costs_less(method):
    X, y = data(3, seed=8, n=30, m=7)
    truth = Truth(X, y, method)
    for k in range(1, 8):
        costs = [truth.objective(support) for support in itertools.combinations(range(7), k)]
        assert SparseCentroid(k, **METHODS[method]).fit(X, y).objective_ == pytest.approx(min(costs), rel=1e-12)


def test_all_means_are_those_of_nearest_centroid():
    X, y = data(4)
    theirs = NearestCentroid().fit(X, y)
    ours = SparseCentroid("all").fit(X, y)
    np.testing.assert_allclose(ours.centers_, theirs.centroids_, rtol=1e-13)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_all_medians_are_numpys_to_the_bit():
    X, y = data(3, seed=3)
    model = SparseCentroid("all", metric="manhattan").fit(X, y)
    np.testing.assert_array_equal(model.centers_, [np.median(X[y == c], axis=0) for c in model.classes_])


def test_whitened_features_are_those_of_the_symmetric_root():
    X, y = data(3, seed=4)
    values, vectors = np.linalg.eigh(np.cov(X.T, bias=True))
    root = (vectors / np.sqrt(values)) @ vectors.T
    whitened = X @ root
    truth = Truth(whitened, y, "l2")
    model = SparseCentroid(4, **METHODS["full"]).fit(X, y)
    support = truth.support(4)
    np.testing.assert_array_equal(model.get_support(indices=True), support)
    np.testing.assert_allclose(model.scores_, truth.gains, rtol=1e-9, atol=1e-12)
    assert model.objective_ == pytest.approx(truth.objective(support) - truth.objective([]), rel=1e-9)
    np.testing.assert_array_equal(model.predict(X), truth.classes[truth.distances(whitened, support).argmin(axis=1)])
    shift = truth.pooled[support]
    for given_as in (X, sparse.csr_array(X)):
        np.testing.assert_allclose(model.transform(given_as), whitened[:, support] - shift, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(model.centers_, truth.centers[:, support] - shift, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(model.common_center_, 0, atol=1e-10)


@each_of_columns
def test_ties_go_to_the_lower_feature(method):
    X, y = data(2, m=3)
    doubled = np.hstack([X, X[:, ::-1], X])  # features 0, 5 and 6 are the same, and so on
    model = SparseCentroid(4, **METHODS[method]).fit(doubled, y)
    best, second = np.argsort(-Truth(X, y, method).gains)[:2]
    alike = {i: sorted([i, 5 - i, 6 + i]) for i in range(3)}
    assert model.get_support(indices=True).tolist() == sorted([*alike[best], alike[second][0]])


@each_method
def test_a_path_has_the_support_of_every_k(method):
    X, y = data(3, seed=9)
    name = "mahalanobis" if "covariance" in METHODS[method] or method == "within" else method
    covariance = {"total": "total", "full": "full"}.get(method)
    path = nfs.path(X, name, y=y, **({} if covariance is None else {"covariance": covariance}))
    assert path.ks.tolist() == list(range(1, M + 1))
    assert path.certified.all() and not path.gap.any()
    for k, value, objective in zip(path.ks, path.value, path.objective, strict=True):
        model = SparseCentroid(int(k), **METHODS[method]).fit(X, y)
        np.testing.assert_array_equal(path.support(k), model.get_support(indices=True))
        assert objective == pytest.approx(model.objective_, rel=1e-12, abs=1e-12)
        assert value == pytest.approx(np.sort(model.scores_)[-k:].sum(), rel=1e-12)


# What it says of documents


@each_of_columns
@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_nearest_center_is_predicted(method, n_classes):
    X, y = data(n_classes, seed=5)
    truth = Truth(X, y, method)
    for k in (2, 9):
        model = SparseCentroid(k, **METHODS[method]).fit(X, y)
        distances = truth.distances(X, truth.support(k))
        np.testing.assert_array_equal(model.predict(X), truth.classes[distances.argmin(axis=1)])
        decision = model.decision_function(X)
        if n_classes == 2:
            np.testing.assert_allclose(decision, distances[:, 0] - distances[:, 1], rtol=1e-10, atol=1e-11)
            np.testing.assert_array_equal(model.predict(X) == "b", decision > 0)
        else:
            np.testing.assert_allclose(decision - decision[:, :1], distances[:, :1] - distances, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("method", ["l2", "within", "l1"])
def test_of_equal_distances_the_first_class_is_predicted(method):
    X, y = np.array([[-3.0], [-1.0], [1.0], [3.0]]), ["no", "no", "yes", "yes"]
    model = SparseCentroid(1, **METHODS[method]).fit(X, y)
    assert model.decision_function([[0.0], [0.5], [-0.5]]).tolist()[0] == 0
    assert model.predict([[0.0], [0.5], [-0.5]]).tolist() == ["no", "yes", "no"]


def test_probabilities_are_those_of_linear_discriminant_analysis():
    """Of features that are not correlated there, with equal priors, which is the same rule."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 40)
    X = rng.normal(size=(120, 5))
    for c in range(3):  # uncorrelated within each class, so that the shared covariance is diagonal
        X[y == c] = np.linalg.qr(X[y == c] - X[y == c].mean(axis=0))[0] * np.sqrt(40) * [1, 2, 0.5, 1, 3]
    X += np.array([[0, 0, 0, 0, 0], [1, 1, 0, 0.2, -1], [2, -1, 0.3, 0, 1]])[y]
    theirs = LinearDiscriminantAnalysis(solver="lsqr", priors=[1 / 3] * 3).fit(X, y)
    np.testing.assert_allclose(theirs.covariance_, np.diag(np.diag(theirs.covariance_)), atol=1e-10)
    ours = SparseCentroid("all", metric="mahalanobis").fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(ours.predict_log_proba(X), theirs.predict_log_proba(X), rtol=1e-8, atol=1e-9)


def test_probabilities_of_few_features_are_a_softmax_of_half_distances():
    X, y = data(4, seed=6)
    truth = Truth(X, y, "within")
    model = SparseCentroid(3, metric="mahalanobis").fit(X, y)
    odds = np.exp(-truth.distances(X, truth.support(3)) / 2)
    np.testing.assert_allclose(model.predict_proba(X), odds / odds.sum(axis=1, keepdims=True), rtol=1e-9)


@pytest.mark.parametrize("method", ["l2", "within", "total", "full"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_coefficients_say_the_same_as_distances(method, n_classes):
    X, y = data(n_classes, seed=7)
    model = SparseCentroid(5, **METHODS[method]).fit(X, y)
    rule = X @ model.coef_.T + model.intercept_
    expected = model.decision_function(X)
    np.testing.assert_allclose(rule[:, 0] if n_classes == 2 else rule, expected, rtol=1e-9, atol=1e-9)
    assert model.coef_.shape == (1 if n_classes == 2 else n_classes, M)
    used = np.flatnonzero(model.coef_.any(axis=0))
    np.testing.assert_array_equal(used, np.arange(M) if method == "full" else model.get_support(indices=True))


def test_absolute_distances_are_no_linear_rule():
    model = SparseCentroid(3, metric="manhattan").fit(*data())
    for name in ("coef_", "intercept_"):
        with pytest.raises(AttributeError, match="'l1' is no linear rule"):
            getattr(model, name)
        assert not hasattr(model, name)


@each_method
def test_what_a_method_cannot_do_it_does_not_have(method):
    model = SparseCentroid(3, **METHODS[method])
    for estimator in (model, model.fit(*data())):
        for name in set().union(*HIDDEN.values()) | {"fit", "predict", "transform", "decision_function"}:
            assert hasattr(estimator, name) == (name not in HIDDEN[method]), name


@each_method
def test_what_speaks_for_a_class(method):
    X, y = data(3)
    names = [f"w{i}" for i in range(M)]
    model = SparseCentroid(4, **METHODS[method]).fit(pd.DataFrame(X, columns=names), y)
    support = model.get_support(indices=True)
    tops = model.top_features(2)
    scale = Truth(X, y, method).scale if method in ("within", "total") else np.ones(M)
    for c, (label, top) in enumerate(tops.items()):
        others = np.average(
            np.delete(model.centers_, c, axis=0), axis=0, weights=np.delete(np.unique(y, return_counts=True)[1], c)
        )
        above = model.centers_[c] - others
        expected = {names[i]: v / np.sqrt(scale[i]) for i, v in zip(support, above, strict=True) if v > 0}
        assert label == model.classes_[c]
        assert [v for _, v in top] == pytest.approx(sorted(expected.values(), reverse=True)[:2])
        assert all(expected[name] == pytest.approx(v) for name, v in top)
    assert model.get_feature_names_out().tolist() == [names[i] for i in support]


# Features without variance


def test_a_constant_feature_gains_nothing_and_one_that_tells_classes_apart_everything():
    X, y = data(3, m=4)
    codes = np.unique(y, return_inverse=True)[1]
    X = np.column_stack([X, np.full(len(y), 0.1), codes * 0.1, X[:, 0]])
    for covariance in ("within", "total"):
        model = SparseCentroid(1, metric="mahalanobis", covariance=covariance).fit(X, y)
        assert model.scores_[4] == 0
        assert np.isinf(model.scores_[5]) == (covariance == "within")
    model = SparseCentroid(2, metric="mahalanobis").fit(X, y)
    assert 5 in model.get_support(indices=True)
    np.testing.assert_array_equal(model.predict(X), y)
    assert np.isfinite(model.objective_)
    assert set(model.predict_proba(X).max(axis=1)) == {1.0}
    assert not hasattr(model, "coef_")
    elsewhere = X.copy()
    elsewhere[:, 5] = 7  # on nobody's center: the other features decide
    other = next(i for i in model.get_support(indices=True) if i != 5)
    truth = Truth(X[:, [other]], y, "within")
    nearest = truth.classes[truth.distances(X[:, [other]], [0]).argmin(axis=1)]
    np.testing.assert_array_equal(model.predict(elsewhere), nearest)
    assert np.isfinite(model.decision_function(elsewhere)).all()


def test_a_floor_is_the_least_variance():
    X, y = data(2)
    truth = Truth(X, y, "within")
    floor = float(np.median(truth.scale))
    raised = Truth(X, y, "within", floor=floor)
    model = SparseCentroid(3, metric="mahalanobis", variance_floor=floor).fit(X, y)
    np.testing.assert_allclose(model.scores_, raised.gains, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(model.get_support(indices=True), raised.support(3))
    constant = np.column_stack([X, np.unique(y, return_inverse=True)[1]])
    fitted = SparseCentroid("all", metric="mahalanobis", variance_floor=1e-3).fit(constant, y)
    assert fitted.scores_[-1] == pytest.approx(0.5 / 1e-3)
    assert hasattr(fitted, "coef_")


def test_a_singular_covariance_has_a_pseudo_inverse():
    X, y = data(2, m=4)
    model = SparseCentroid("all", **METHODS["full"]).fit(np.hstack([X, X]), y)
    whitened = model.transform(np.hstack([X, X]))
    assert np.isfinite(whitened).all()
    single = SparseCentroid("all", **METHODS["full"]).fit(X, y)
    np.testing.assert_allclose(
        model.decision_function(np.hstack([X, X])), single.decision_function(X), rtol=1e-6, atol=1e-8
    )


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_provenance_is_text_that_an_anndata_takes(metric, tmp_path):
    anndata = pytest.importorskip("anndata")
    rows = np.random.default_rng(0).normal(size=(20, 3))
    model = SparseCentroid(2, metric=metric).fit(rows, np.arange(20) % 2)
    adata = anndata.AnnData(rows, uns={"model": json.dumps(model.provenance_)})
    adata.write_h5ad(tmp_path / "a.h5ad")
    assert json.loads(anndata.read_h5ad(tmp_path / "a.h5ad").uns["model"]) == model.provenance_
