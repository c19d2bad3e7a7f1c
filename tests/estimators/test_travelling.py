"""Fitted estimators go through pickles, joblib, copies, skops and dask-ml, and hold nothing twice."""

from __future__ import annotations

import copy
import pickle
import warnings

import dask.array as da
import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

import nfs_dask as nfs
from nfs_dask import (
    ErrorRateSelector,
    HybridNB,
    SparseBernoulliNB,
    SparseCentroid,
    SparseMultinomialNB,
    StoreError,
    TextVectorizer,
    load_model,
)
from nfs_dask.estimators.plain import KIND, plain, restored

ESTIMATORS = {
    "multinomial": SparseMultinomialNB(3),
    "bernoulli": SparseBernoulliNB(3, binarize=0.0),
    "centroid": SparseCentroid(3, metric="mahalanobis"),
    "whitened": SparseCentroid(3, metric="mahalanobis", covariance="full"),
    "medians": SparseCentroid(3, metric="manhattan"),
    "hybrid": HybridNB(k=3),
    "error": ErrorRateSelector(3, search="forward"),
}
ALWAYS = {
    "classes_",
    "class_count_",
    "n_features_in_",
    "objective_",
    "upper_bound_",
    "dual_gap_",
    "certified_",
    "n_iter_",
    "provenance_",
    "model_",
}
OTHERS = {
    "multinomial": {"class_log_prior_", "feature_log_prob_", "dual_point_", "second_dual_"},
    "bernoulli": {"class_log_prior_", "feature_log_prob_"},
    "centroid": {"centers_", "common_center_"},
    "whitened": {"centers_", "common_center_"},
    "medians": {"centers_", "common_center_"},
    "hybrid": {"theta_", "n_regions_", "feature_log_prob_"},
    "error": {"class_log_prior_", "feature_log_prob_", "error_", "errors_", "order_", "estimate_"},
}
RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.poisson(2, (90, 6)), columns=list("abcdef"))
Y = np.array(["ham", "spam", "eggs"])[RNG.integers(3, size=90)]

each = pytest.mark.parametrize("name", ESTIMATORS)


def through_pickle(estimator, path):
    return pickle.loads(pickle.dumps(estimator))


def through_joblib(estimator, path):
    joblib.dump(estimator, path / "estimator.joblib")
    return joblib.load(path / "estimator.joblib", mmap_mode="r")


def through_skops(estimator, path):
    io = pytest.importorskip("skops.io", reason="skops is not installed")
    content = io.dumps(estimator)
    ours = type(estimator)
    unknown = io.get_untrusted_types(data=content)
    assert unknown == [f"{ours.__module__}.{ours.__qualname__}"]
    return io.loads(content, trusted=unknown)


each_way = pytest.mark.parametrize(
    "way", [through_pickle, through_joblib, lambda one, path: copy.deepcopy(one), through_skops]
)


def assert_same(found, expected, rows):
    for method in ("predict", "decision_function", "transform"):
        np.testing.assert_array_equal(getattr(found, method)(rows), getattr(expected, method)(rows))
    assert found.get_feature_names_out().tolist() == expected.get_feature_names_out().tolist()
    assert found.top_features(2) == expected.top_features(2)
    assert found.get_params() == expected.get_params()
    assert vars(found).keys() == vars(expected).keys()
    for attribute in (one for one in vars(expected) if one.endswith("_") and one not in ("reader_", "provenance_")):
        ours, theirs = plain(getattr(found, attribute)), plain(getattr(expected, attribute))
        if attribute == "model_":  # which knows how long it took
            ours, theirs = ours | {"provenance": {}}, theirs | {"provenance": {}}
        np.testing.assert_equal(ours, theirs)


@each
@each_way
@pytest.mark.parametrize("kind", [lambda X: X, lambda X: X.to_numpy(), lambda X: sparse.csr_array(X.to_numpy())])
def test_a_fitted_estimator_goes_on_where_it_was(name, way, kind, tmp_path):
    rows = kind(X)
    model = clone(ESTIMATORS[name]).fit(rows, Y)
    again = way(model, tmp_path)
    dense = X if isinstance(rows, pd.DataFrame) else X.to_numpy()
    assert_same(again, model, dense)
    if hasattr(model, "scores_"):
        np.testing.assert_array_equal(again.scores_, model.scores_)
    if hasattr(model, "partial_fit"):
        assert_same(again.partial_fit(dense[:40], Y[:40]), model.partial_fit(dense[:40], Y[:40]), dense)


@each
@each_way
def test_an_estimator_that_is_not_fitted_stays_so(name, way, tmp_path):
    again = way(clone(ESTIMATORS[name]), tmp_path)
    with pytest.raises(NotFittedError):
        again.predict(X)
    assert again.fit(X, Y).predict(X).tolist() == clone(ESTIMATORS[name]).fit(X, Y).predict(X).tolist()


@each_way
def test_an_estimator_of_texts_reads_texts_wherever_it_goes(way, tmp_path):
    texts, labels = ["green tea", "black tea", "black coffee", "more coffee"], ["tea", "tea", "coffee", "coffee"]
    for i, given in enumerate(({}, {"tfidf": True}, {"hashed": 6})):
        store = nfs.ingest(texts, tmp_path / f"{i}.zarr", labels=labels, **given)
        model = SparseMultinomialNB(2).fit(store)
        again = way(model, tmp_path)
        assert again.predict(texts).tolist() == model.predict(texts).tolist()
        assert again.transform(texts).toarray().tolist() == model.transform(texts).toarray().tolist()
        rows = nfs.open_dataset(store.location)
        assert again.predict(rows).tolist() == model.predict(rows).tolist()
        more = np.eye(4, store.n_features)
        found, expected = again.partial_fit(more, labels), model.partial_fit(more, labels)
        assert found.get_feature_names_out().tolist() == expected.get_feature_names_out().tolist()
        assert found.predict(texts).tolist() == expected.predict(texts).tolist()


@each_way
def test_a_loaded_model_travels_too(way, tmp_path):
    SparseMultinomialNB(3).fit(X, Y).save(tmp_path / "model")
    model = load_model(tmp_path / "model")
    assert_same(way(model, tmp_path), model, X)


@each_way
@pytest.mark.parametrize("given", [{}, {"tfidf": True}, {"hashed": 4}, {"vocabulary": ["tea", "coffee"]}])
def test_a_vectorizer_travels(way, given, tmp_path):
    texts = ["green tea", "black coffee"]
    for vectorizer in (TextVectorizer(**given), TextVectorizer(**given).fit(texts)):
        again = way(vectorizer, tmp_path)
        assert (
            again.fit(texts).transform(texts).toarray().tolist() == vectorizer.fit_transform(texts).toarray().tolist()
        )


def test_a_pipeline_goes_through_skops(tmp_path):
    io = pytest.importorskip("skops.io", reason="skops is not installed")
    texts, labels = ["green tea", "black tea", "black coffee", "more coffee"], ["tea", "tea", "coffee", "coffee"]
    pipeline = make_pipeline(TextVectorizer(), SparseMultinomialNB(2)).fit(texts, labels)
    content = io.dumps(pipeline)
    unknown = io.get_untrusted_types(data=content)
    assert [kind.rpartition(".")[2] for kind in unknown] == ["SparseMultinomialNB", "TextVectorizer"]
    assert io.loads(content, trusted=unknown).predict(texts).tolist() == labels


def test_a_store_that_is_another_one_now_is_not_asked_for_names(tmp_path):
    texts, labels = ["green tea", "black coffee"], ["tea", "coffee"]
    model = SparseMultinomialNB(2).fit(nfs.ingest(texts, tmp_path / "a.zarr", labels=labels))
    again = pickle.loads(pickle.dumps(model))
    nfs.ingest(["one two three four five six"], tmp_path / "b.zarr", labels=["tea"])
    (tmp_path / "a.zarr").rename(tmp_path / "c.zarr")
    (tmp_path / "b.zarr").rename(tmp_path / "a.zarr")
    assert again.predict(texts).tolist() == labels
    with pytest.raises(StoreError, match="has 6 features, and the model was fitted to 4: it was made anew since"):
        again.partial_fit(np.eye(2, 4), labels)


def test_values_of_later_versions_are_refused():
    with pytest.raises(StoreError, match="holds a 'Marvel', unknown to this version"):
        restored({KIND: "Marvel"})


# Fitted attributes


@each
def test_fitted_attributes_are_seen(name):
    model = clone(ESTIMATORS[name]).fit(X, Y)
    assert ALWAYS | OTHERS[name] <= vars(model).keys()
    assert not {one for one in vars(clone(ESTIMATORS[name])) if one.endswith("_")}
    for attribute in ("objective_", "classes_", "feature_log_prob_", "centers_", "theta_"):
        assert not hasattr(clone(ESTIMATORS[name]), attribute)


def arrays_in(value):
    """All arrays among values and their fields."""
    value = plain(value)
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, dict | list | tuple):
        for one in value.values() if isinstance(value, dict) else value:
            yield from arrays_in(one)


@each
@each_way
def test_nothing_is_held_twice(name, way, tmp_path):
    fitted = clone(ESTIMATORS[name]).fit(X, Y)
    for model in (fitted, way(fitted, tmp_path)):
        held = list(arrays_in(model.model_))
        for attribute in OTHERS[name] - {"order_", "estimate_"}:
            for array in arrays_in(getattr(model, attribute)):
                assert any(np.shares_memory(array, one) for one in held), attribute
    content = pickle.dumps(fitted)
    unique = {id(one): one.nbytes for one in arrays_in(fitted.__getstate__())}
    assert len(content) < 8_000 + 1.5 * sum(unique.values())
    names = fitted._names.array
    assert names is fitted.feature_names_in_


@each
def test_who_looks_at_fitted_numbers_cannot_change_the_model(name):
    model = clone(ESTIMATORS[name]).fit(X, Y)
    before = model.decision_function(X)
    for attribute in OTHERS[name] | {"class_count_"}:
        value = getattr(model, attribute)
        if isinstance(value, np.ndarray) and attribute != "order_":
            with pytest.raises(ValueError, match="read-only"):
                value += 1
    model.provenance_.clear()
    np.testing.assert_array_equal(model.decision_function(X), before)


# dask-ml


@pytest.fixture(scope="module")
def wrappers():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what it imports
        return pytest.importorskip("dask_ml.wrappers", reason="dask-ml is not installed")


@pytest.mark.parametrize("name", ["multinomial", "bernoulli", "centroid", "whitened", "error"])
@pytest.mark.filterwarnings("ignore")
def test_incremental_of_dask_ml_shows_what_was_fitted(name, wrappers):
    rows, labels = da.from_array(X.to_numpy(), chunks=(30, -1)), da.from_array(Y, chunks=30)
    model = wrappers.Incremental(clone(ESTIMATORS[name]), scoring="accuracy")
    model.fit(rows, labels, classes=np.unique(Y))
    expected = clone(ESTIMATORS[name]).fit(X.to_numpy(), Y)
    assert ALWAYS | OTHERS[name] <= vars(model).keys()
    assert model.objective_ == pytest.approx(expected.objective_, rel=1e-9)
    np.testing.assert_array_equal(model.predict(rows).compute(), expected.predict(X.to_numpy()))
    model.partial_fit(rows, labels)
    assert model.class_count_.sum() == 180
    assert model.estimator_.class_count_.sum() == 180


@each
@pytest.mark.filterwarnings("ignore")
def test_parallel_post_fit_of_dask_ml_shows_what_was_fitted(name, wrappers):
    model = wrappers.ParallelPostFit(clone(ESTIMATORS[name])).fit(X.to_numpy(), Y)
    assert ALWAYS | OTHERS[name] <= vars(model).keys()
    rows = da.from_array(X.to_numpy(), chunks=(30, -1))
    np.testing.assert_array_equal(model.predict(rows).compute(), model.estimator.predict(X.to_numpy()))
