"""Sparse centers: parameters, refusals, weights, labels, and models that were saved."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import nfs_dask as nfs
from nfs_dask import DataWarning, InputError, PlanError, SparseCentroid
from tests.helpers.centers_by_hand import HIDDEN, METHODS, M, Truth, data, each_method

# Parameters


@each_method
@pytest.mark.parametrize(("k", "n"), [(1, 1), (5, 5), (0.25, 3), (0.001, 1), ("all", M), (np.int64(3), 3)])
def test_k_counts_features(method, k, n):
    model = SparseCentroid(k, **METHODS[method]).fit(*data())
    assert len(model.get_support(indices=True)) == n == model.centers_.shape[1]


@each_method
def test_k_beyond_all_features_warns_and_is_all(method):
    with pytest.warns(DataWarning, match="k=13 is more than the 12 features") as caught:
        model = SparseCentroid(13, **METHODS[method]).fit(*data())
    assert caught[0].filename == __file__
    assert model.get_support().all()


@each_method
def test_forced_features_count_in_k(method):
    X, y = data()
    free = SparseCentroid(3, **METHODS[method]).fit(X, y)
    worst = [int(i) for i in np.argsort(free.scores_)[:2]]
    model = SparseCentroid(3, always=worst, **METHODS[method]).fit(X, y)
    support = model.get_support(indices=True)
    assert set(worst) < set(support) and len(support) == 3
    assert model.objective_ > free.objective_
    frame = pd.DataFrame(X, columns=[f"w{i}" for i in range(M)])
    named = SparseCentroid(3, always=[f"w{i}" for i in worst], **METHODS[method]).fit(frame, y)
    np.testing.assert_array_equal(named.get_support(indices=True), support)


BAD = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])


@each_method
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"k": 0}, "k=0 keeps no feature"),
        ({"k": 1.0}, 'write k="all"'),
        ({"k": "some"}, "k='some' is not understood"),
        ({"variance_floor": -1}, "variance_floor=-1; give one finite number of 0 or more"),
        ({"variance_floor": np.nan}, "variance_floor=nan"),
        ({"variance_floor": "much"}, "variance_floor='much'"),
        ({"covariance": "diagonal"}, "covariance='diagonal'; give one of 'within', 'total', 'full'"),
        ({"always": ["w1"]}, "have no names, they are called 'x0' to"),
        ({"always": "w1"}, "give a list"),
        ({"always": [2]}, "always names feature 2, but there are features 0 to 1"),
        ({"always": [0, 1], "k": 1}, "always forces 2 features into a support of k=1"),
    ],
)
def test_wrong_parameters_are_refused(method, parameters, message):
    with pytest.raises(InputError, match=message):
        SparseCentroid(**{"k": 1, **METHODS[method], **parameters}).fit(BAD, [0, 0, 1, 1])


def test_metrics_have_names():
    for wrong in ("cosine", None, 2, ["euclidean"]):
        with pytest.raises(InputError, match="metric=.*give one of 'euclidean', 'mahalanobis', 'manhattan'"):
            SparseCentroid(1, metric=wrong).fit(BAD, [0, 0, 1, 1])


@each_method
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_no_numbers_are_refused(method, bad):
    model = SparseCentroid(1, **METHODS[method]).fit(BAD, [0, 0, 1, 1])
    before, X = model.model_, BAD.copy()
    X[2, 1] = bad
    for given_as in (X, sparse.csr_array(X), X.astype(np.float32)):
        with pytest.raises(InputError, match=r"(NaN|inf)[^,]*in row 2, column 1"):
            model.fit(given_as, [0, 0, 1, 1])
        with pytest.raises(InputError, match=r"(NaN|inf)[^,]*in row 2, column 1"):
            model.predict(given_as)
    assert model.model_ is before, "an estimator that refused is as it was"


@each_method
def test_objects_that_are_no_numbers_are_refused(method):
    with pytest.raises(InputError, match="objects that are no numbers: could not convert string to float: 'x'"):
        SparseCentroid(1, **METHODS[method]).fit(np.array([[1, "x"], [2, 3]] * 2, dtype=object), [0, 0, 1, 1])


@each_method
@pytest.mark.parametrize("as_sparse", [False, True])
def test_weights_beyond_doubles_are_refused(method, as_sparse):
    X = np.eye(20) * 1e-300
    with pytest.raises(InputError, match="weights.*down"):
        SparseCentroid(1, **METHODS[method]).fit(
            sparse.csr_array(X) if as_sparse else X, np.arange(20) % 2, sample_weight=np.full(20, 1.5e308)
        )


@each_method
def test_a_fit_needs_documents(method):
    estimator = SparseCentroid(1, **METHODS[method])
    with pytest.raises(InputError, match="requires y to be passed"):
        estimator.fit(BAD)
    with pytest.raises(ValueError, match="0 sample"):
        estimator.fit(np.zeros((0, 2)), [])
    with pytest.raises(ValueError, match="0 feature"):
        estimator.fit(np.zeros((4, 0)), [0, 0, 1, 1])


@each_method
@pytest.mark.parametrize(
    ("weights", "message"),
    [([1, 1, 1], "3"), ([1, 1, 1, -1], "-1"), ([1, 1, 1, np.nan], "nan|NaN"), ([1, 1, 1, np.inf], "inf")],
)
def test_weights_are_finite_and_not_negative(method, weights, message):
    with pytest.raises(InputError, match=message):
        SparseCentroid(1, **METHODS[method]).fit(BAD, [0, 0, 1, 1], sample_weight=weights)


@each_method
def test_distances_beyond_numbers_are_refused(method):
    X = BAD * (2e307 if method == "l1" else 1e200)
    with np.errstate(all="ignore"), pytest.raises(InputError, match="scale the (data|values)"):
        SparseCentroid(1, **METHODS[method]).fit(X, [0, 0, 1, 1]).predict(-X)


def test_the_covariance_of_too_many_features_is_refused_with_the_number_that_is_not(tmp_path):
    X = sparse.csr_array(([1.0, 2.0], ([0, 1], [5, 19_999])), shape=(2, 20_000))
    estimator = SparseCentroid(3, **METHODS["full"])
    message = "covariances of 20,000 features take 3.0 GiB.*give at most 11,585 features"
    with pytest.raises(PlanError, match=message):
        estimator.fit(X, [0, 1])
    with pytest.raises(PlanError, match=message):
        estimator.partial_fit(X, [0, 1], classes=[0, 1])
    with pytest.raises(PlanError, match=message):
        nfs.plan(nfs.ingest(X, tmp_path / "wide.zarr", labels=[0, 1]), estimator)


# Weights and labels


@each_method
def test_whole_weights_are_repetitions(method):
    X, y = data(whole=True)
    weights = np.random.default_rng(1).integers(0, 4, len(y))
    weights[:3] = 1
    repeated = SparseCentroid(4, **METHODS[method]).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    weighted = SparseCentroid(4, **METHODS[method]).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(weighted.get_support(), repeated.get_support())
    if method == "full":  # sums of products in another order
        np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), rtol=1e-9, atol=1e-9)
    else:
        np.testing.assert_array_equal(weighted.centers_, repeated.centers_)
        np.testing.assert_array_equal(weighted.scores_, repeated.scores_)
        assert weighted.objective_ == repeated.objective_


@each_method
@pytest.mark.parametrize("labels", [["ham", "spam"], [False, True], [-1, 7], [1.0, 2.0]])
def test_labels_of_any_type_come_back(method, labels):
    X, y = data(2)
    own = np.array(labels)[(y == "b").astype(int)]
    model = SparseCentroid(4, **METHODS[method]).fit(X, own)
    assert model.classes_.tolist() == sorted(labels)
    predicted = model.predict(X)
    assert predicted.dtype == own.dtype
    np.testing.assert_array_equal(
        predicted == labels[1], SparseCentroid(4, **METHODS[method]).fit(X, y).predict(X) == "b"
    )


@pytest.mark.filterwarnings("ignore:there are 200 classes:nfs_dask.errors.DataWarning")
@each_method
def test_many_classes(method):
    rng = np.random.default_rng(0)
    y = np.arange(400) % 200
    X = np.rint(10 * rng.normal(size=(200, 20)))[y] + rng.integers(-1, 2, size=(400, 20))
    model = SparseCentroid(15, **METHODS[method]).fit(X, y)
    assert model.centers_.shape == (200, 15)
    assert model.score(X, y) > 0.95
    assert model.decision_function(X[:3]).shape == (3, 200)
    if method != "full":
        np.testing.assert_array_equal(model.get_support(indices=True), Truth(X, y, method).support(15))


# Saved models


@each_method
def test_a_saved_model_says_the_same(method, tmp_path):
    X, y = data(3)
    fitted = SparseCentroid(4, always=[7], variance_floor=0.25, **METHODS[method]).fit(X, y)
    fitted.save(tmp_path / "m")
    loaded = nfs.load_model(tmp_path / "m")
    assert isinstance(loaded, SparseCentroid)
    assert loaded.get_params() == fitted.get_params()
    for name in ("predict", "decision_function", "transform", "predict_proba"):
        if name not in HIDDEN[method]:
            np.testing.assert_array_equal(getattr(loaded, name)(X), getattr(fitted, name)(X), err_msg=name)
        assert hasattr(loaded, name) == (name not in HIDDEN[method])
    for name in ("centers_", "common_center_", "class_count_", "classes_", "objective_", "n_features_in_"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(fitted, name), err_msg=name)
    assert loaded.top_features() == fitted.top_features()
    assert loaded.provenance_["rows"] == len(y)
    with pytest.raises(InputError, match="loaded from a file"):
        _ = loaded.scores_
    if method != "l1":
        with pytest.raises(InputError, match="loaded from a file"):
            loaded.partial_fit(X, y)
    assert loaded.fit(X, y).scores_.shape == (M,)
