"""Numbers of numpy's are numbers, and one weight is the weight of each document."""

from __future__ import annotations

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.naive_bayes import BernoulliNB, MultinomialNB

import nfs_dask as nfs
from nfs_dask import (
    ErrorRateSelector,
    HybridNB,
    InputError,
    SerialEngine,
    SparseBernoulliNB,
    SparseCentroid,
    SparseMultinomialNB,
    TextVectorizer,
    load_model,
)
from tests.helpers.grids import each_once

RNG = np.random.default_rng(0)
Y = np.arange(40) % 2
X = RNG.poisson(RNG.gamma(1.0, size=(2, 8))[Y])
TEXTS = ["green tea", "black tea", "black coffee", "more coffee", "green tea tea"]

ESTIMATORS = {
    "multinomial": SparseMultinomialNB(4),
    "bernoulli": SparseBernoulliNB(4, binarize=0.0),
    "centroid": SparseCentroid(4, metric="mahalanobis"),
    "medians": SparseCentroid(4, metric="manhattan"),
    "hybrid": HybridNB(k=4),
    "error": ErrorRateSelector(4),
}
each = pytest.mark.parametrize("name", ESTIMATORS)


KS = [np.int32(4), np.uint8(4), np.int64(4), np.float64(0.5), np.float32(0.5), np.float16(0.5), np.str_("all")]


@pytest.mark.parametrize(("k", "name"), each_once(KS, ESTIMATORS))
def test_k_is_any_number(name, k, tmp_path):
    model = clone(ESTIMATORS[name]).set_params(k=k).fit(X, Y)
    expected = clone(ESTIMATORS[name]).set_params(k="all" if isinstance(k, str) else 4).fit(X, Y)
    np.testing.assert_array_equal(model.get_support(), expected.get_support())
    model.save(tmp_path / "model")
    assert load_model(tmp_path / "model").k == k


@pytest.mark.parametrize("k", [np.bool_(True), np.float64(1.0), np.float64("nan"), np.int64(0)])
def test_k_that_is_no_number_of_features(k):
    with pytest.raises(InputError, match="k="):
        SparseMultinomialNB(k).fit(X, Y)


@pytest.mark.parametrize(
    ("estimator", "parameters"),
    [
        (
            SparseMultinomialNB(4),
            {"alpha": np.float32(0.5), "always": [np.int64(1)], "class_prior": [np.float64(0.5)] * 2},
        ),
        (SparseMultinomialNB(4), {"alpha": np.int64(1), "always": np.array([1]), "fit_prior": np.bool_(False)}),
        (SparseBernoulliNB(4, binarize=0.0), {"binarize": np.float32(1), "always": (np.uint8(1),)}),
        (SparseCentroid(4, metric="mahalanobis"), {"variance_floor": np.float32(0.5)}),
        (HybridNB(), {"regions": np.int64(2), "ridge": np.float32(0.5), "normalize": np.bool_(False)}),
        (ErrorRateSelector(4), {"n_tokens": [np.int64(3), np.float32(5)], "balanced": np.bool_(False)}),
        (ErrorRateSelector(4, search="plus-minus"), {"add": np.int64(2), "drop": np.int8(1), "n_tokens": np.int64(9)}),
        (ErrorRateSelector(4), {"n_tokens": {np.int64(3): np.float32(2)}}),
    ],
)
def test_other_parameters_are_any_numbers(estimator, parameters, tmp_path):
    python = {name: tolist(value) for name, value in parameters.items()}
    model = clone(estimator).set_params(**parameters).fit(X, Y)
    expected = clone(estimator).set_params(**python).fit(X, Y)
    np.testing.assert_array_equal(model.decision_function(X), expected.decision_function(X))
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").predict(X), model.predict(X))


def tolist(value):
    """The same in Python's own numbers."""
    if isinstance(value, dict):
        return {tolist(key): tolist(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [tolist(one) for one in value]
    return value.tolist() if hasattr(value, "tolist") else value


@pytest.mark.parametrize(
    ("numpys", "pythons"),
    [
        ({"min_df": np.int64(2)}, {"min_df": 2}),
        ({"min_df": np.float32(0.5), "max_df": np.float64(0.9)}, {"min_df": 0.5, "max_df": 0.9}),
        ({"max_df": np.int16(3)}, {"max_df": 3}),
        ({"max_features": np.int32(3)}, {"max_features": 3}),
        ({"ngrams": (np.int64(1), np.int64(2))}, {"ngrams": (1, 2)}),
        ({"ngrams": np.array([1, 2])}, {"ngrams": (1, 2)}),
        ({"hashed": np.int64(5), "binary": np.bool_(True)}, {"hashed": 5, "binary": True}),
        ({"vocabulary": np.array(["tea", "coffee"])}, {"vocabulary": ["tea", "coffee"]}),
        ({"vocabulary": {"tea": np.int64(1), "coffee": np.int64(0)}}, {"vocabulary": {"tea": 1, "coffee": 0}}),
    ],
)
def test_parameters_of_texts_are_any_numbers(numpys, pythons, tmp_path):
    found, expected = TextVectorizer(**numpys).fit(TEXTS), TextVectorizer(**pythons).fit(TEXTS)
    np.testing.assert_array_equal(found.transform(TEXTS).toarray(), expected.transform(TEXTS).toarray())
    store = nfs.ingest(TEXTS, tmp_path / "numpy.zarr", **numpys)
    assert store.text.settings == nfs.ingest(TEXTS, tmp_path / "python.zarr", **pythons).text.settings
    assert nfs.open_dataset(tmp_path / "numpy.zarr").n_features == found.transform(TEXTS).shape[1]


# Weights


@pytest.mark.parametrize(("weight", "name"), each_once([2, 2.0, 0.5, np.int64(3), np.float32(1.5)], ESTIMATORS))
def test_one_weight_is_that_of_each_document(name, weight):
    found = clone(ESTIMATORS[name]).fit(X, Y, sample_weight=weight)
    expected = clone(ESTIMATORS[name]).fit(X, Y, sample_weight=np.full(40, weight))
    assert found.objective_ == expected.objective_
    np.testing.assert_array_equal(found.class_count_, np.full(2, 20 * weight))
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))
    assert found.score(X, Y, sample_weight=None) == expected.score(X, Y)


def test_one_weight_for_all_is_as_scikit_learn_takes_it():
    ours, theirs = SparseMultinomialNB("all").fit(X, Y, 2.5), MultinomialNB().fit(X, Y, 2.5)
    np.testing.assert_allclose(ours.feature_log_prob_, theirs.feature_log_prob_, rtol=1e-12)
    ours, theirs = SparseBernoulliNB("all", binarize=0.0).fit(X, Y, 2.5), BernoulliNB().fit(X, Y, 2.5)
    np.testing.assert_allclose(ours.feature_log_prob_, theirs.feature_log_prob_, rtol=1e-12)


def test_one_weight_for_documents_that_are_added_and_taken_away():
    model = SparseMultinomialNB(4).partial_fit(X[:30], Y[:30], classes=[0, 1], sample_weight=2)
    model.partial_fit(X[30:], Y[30:], sample_weight=3.0).forget(X[:10], Y[:10], sample_weight=2)
    expected = SparseMultinomialNB(4).fit(X[10:], Y[10:], np.repeat([2, 3], [20, 10]))
    np.testing.assert_array_equal(model.decision_function(X), expected.decision_function(X))


def test_one_weight_for_stores_and_chunks(tmp_path):
    expected = SparseMultinomialNB(4).fit(X, Y, 2).class_count_.tolist()
    store = nfs.ingest(X, tmp_path / "store.zarr", labels=Y)
    unknown = dd.from_pandas(pd.DataFrame(X), npartitions=3).to_dask_array()
    serial = SerialEngine()
    for rows, labels in ((store, None), (store, Y), (da.from_array(X, chunks=(15, -1)), Y), (unknown, Y)):
        assert SparseMultinomialNB(4, engine=serial).fit(rows, labels, 2).class_count_.tolist() == expected
    lazy = da.from_array(Y, chunks=15)
    assert SparseMultinomialNB(4, engine=serial).fit(da.from_array(X, chunks=(15, -1)), lazy, 2).class_count_.tolist()


@each
@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (-1, "give finite weights of zero or more"),
        (np.nan, "give finite weights"),
        (0, "all documents have weight zero"),
    ],
)
def test_one_weight_that_is_none(name, weight, message):
    with pytest.raises(InputError, match=message):
        clone(ESTIMATORS[name]).fit(X, Y, sample_weight=weight)
