"""Frames come out where `set_output` or scikit-learn's configuration asks for them, by every way to transform."""

from __future__ import annotations

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import SelectKBest, chi2
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from nfs_dask import (
    ErrorRateSelector,
    HybridNB,
    InputError,
    SparseBernoulliNB,
    SparseCentroid,
    SparseMultinomialNB,
    TextVectorizer,
)

SELECTORS = {
    "multinomial": SparseMultinomialNB(3),
    "bernoulli": SparseBernoulliNB(3, binarize=0.0),
    "centroid": SparseCentroid(3),
    "medians": SparseCentroid(3, metric="manhattan"),
    "whitened": SparseCentroid(3, metric="mahalanobis", covariance="full"),
    "hybrid": HybridNB(k=3),
    "error": ErrorRateSelector(3),
}
RNG = np.random.default_rng(0)
Y = np.array(["ham", "spam"])[RNG.integers(2, size=40)]
X = pd.DataFrame(RNG.poisson(2, (40, 6)), columns=list("abcdef"), index=np.arange(100, 140))

each = pytest.mark.parametrize("name", SELECTORS)


def ways(estimator, X, y):
    """Every way from rows to selected columns."""
    yield estimator.fit_transform(X, y)
    yield estimator.fit(X, y).transform(X)
    yield make_pipeline(estimator).fit_transform(X, y)
    yield make_pipeline(estimator).fit(X, y).transform(X)


@each
def test_pandas_frames_have_names_and_index(name):
    plain = clone(SELECTORS[name]).fit(X, Y)
    for frame in ways(clone(SELECTORS[name]).set_output(transform="pandas"), X, Y):
        assert isinstance(frame, pd.DataFrame)
        assert frame.columns.tolist() == plain.get_feature_names_out().tolist()
        assert frame.index.tolist() == X.index.tolist()
        np.testing.assert_array_equal(frame.to_numpy(), plain.transform(X))
    with config_context(transform_output="pandas"):
        for found in ways(clone(SELECTORS[name]), X.to_numpy(), Y):
            assert isinstance(found, pd.DataFrame)
    assert isinstance(clone(SELECTORS[name]).set_output(transform="default").fit_transform(X, Y), np.ndarray)
    with config_context(transform_output="pandas"):
        wanted = clone(SELECTORS[name]).set_output(transform="default")
        assert isinstance(wanted.fit(X, Y).transform(X), np.ndarray)


@each
def test_polars_frames_have_names(name):
    pl = pytest.importorskip("polars", reason="polars is not installed")
    plain = clone(SELECTORS[name]).fit(X, Y)
    for given in (X, X.to_numpy()):
        for frame in ways(clone(SELECTORS[name]).set_output(transform="polars"), given, Y):
            assert isinstance(frame, pl.DataFrame)
            np.testing.assert_array_equal(frame.to_numpy(), plain.transform(X))


@pytest.mark.parametrize("name", sorted(set(SELECTORS) - {"whitened"}))
@pytest.mark.parametrize("wanted", ["pandas", "polars"])
def test_sparse_rows_are_no_frame_as_for_scikit_learn(name, wanted):
    if wanted == "polars":
        pytest.importorskip("polars", reason="polars is not installed")
    rows = sparse.csr_array(X.to_numpy())
    selector = clone(SELECTORS[name]).set_output(transform=wanted).fit(rows, Y)
    with pytest.raises(ValueError, match="sparse"):
        SelectKBest(chi2, k=3).set_output(transform=wanted).fit_transform(rows, Y)
    with pytest.raises(InputError, match=r"are sparse, a csr_array.*set_output\(transform='default'\)"):
        selector.transform(rows)
    assert sparse.issparse(selector.set_output(transform="default").transform(rows))


@each
def test_lazy_rows_become_lazy_frames(name):
    def refuse(*args, **keywords):
        raise AssertionError("something lazy was computed")

    plain = clone(SELECTORS[name]).fit(X, Y)
    model = clone(plain).set_output(transform="pandas").fit(X.to_numpy(), Y)
    frames = dd.from_pandas(X, npartitions=3)
    unknown = frames.to_dask_array()
    with dask.config.set(scheduler=refuse):
        found = [model.transform(da.from_array(X.to_numpy(), chunks=(15, 4))), model.transform(unknown)]
    for frame in found:
        assert isinstance(frame, dd.DataFrame)
        computed = frame.compute(scheduler="sync")
        assert computed.columns.tolist() == model.get_feature_names_out().tolist()
        np.testing.assert_allclose(computed.to_numpy(), plain.transform(X), atol=1e-9)
    named = clone(plain).set_output(transform="pandas").fit(X, Y).transform(frames)
    assert isinstance(named, dd.DataFrame)
    assert named.columns.tolist() == plain.get_feature_names_out().tolist()


def test_what_lazy_rows_cannot_become():
    pytest.importorskip("polars", reason="polars is not installed")
    lazy = da.from_array(X.to_numpy(), chunks=(15, -1))
    model = SparseMultinomialNB(3).set_output(transform="polars").fit(X.to_numpy(), Y)
    with pytest.raises(InputError, match="X is a Dask collection, and Dask has no polars frames"):
        model.transform(lazy)


def test_lazy_sparse_rows_are_no_frame():
    lazy = da.from_array(X.to_numpy(), chunks=(15, -1)).map_blocks(sparse.csr_array)
    model = SparseMultinomialNB(3).set_output(transform="pandas").fit(X.to_numpy(), Y)
    with pytest.raises(InputError, match="sparse, chunks of csr_array, and no frame holds them"):
        model.transform(lazy)


@each
def test_a_pipeline_of_frames(name):
    pipeline = make_pipeline(MaxAbsScaler(), clone(SELECTORS[name])).set_output(transform="pandas").fit(X, Y)
    assert pipeline.transform(X).columns.tolist() == pipeline.get_feature_names_out().tolist()
    assert pipeline[-1].feature_names_in_.tolist() == X.columns.tolist()


@pytest.mark.parametrize("wanted", ["pandas", "polars"])
def test_vectors_of_texts_stay_sparse_as_those_of_scikit_learn(wanted):
    texts = ["green tea", "black tea"]
    with config_context(transform_output=wanted):
        for vectorizer in (CountVectorizer(), TextVectorizer(), TextVectorizer(tfidf=True), TextVectorizer(hashed=4)):
            assert sparse.issparse(vectorizer.fit_transform(texts))
            assert sparse.issparse(vectorizer.transform(texts))
        assert make_pipeline(TextVectorizer(), SparseMultinomialNB("all")).fit(texts, [0, 1]).predict(texts).size == 2
    for vectorizer in (CountVectorizer(), TextVectorizer()):
        with pytest.raises(ValueError, match="`set_output` is not available"):
            make_pipeline(vectorizer, SparseMultinomialNB()).set_output(transform=wanted)
