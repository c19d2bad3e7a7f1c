"""What estimators select is taken by what comes after them: other people's estimators, from any kind of input."""

from __future__ import annotations

import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import sparse as pydata
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

import nfs_dask as nfs
from nfs_dask import ErrorRateSelector, HybridNB, SparseBernoulliNB, SparseCentroid, SparseMultinomialNB, TextVectorizer
from nfs_dask.prediction.counted_rows import as_scipy
from tests.helpers.grids import each_once

SELECTORS = {
    "multinomial": SparseMultinomialNB(3),
    "bernoulli": SparseBernoulliNB(3, binarize=0.0),
    "centroid": SparseCentroid(3),
    "medians": SparseCentroid(3, metric="manhattan"),
    "hybrid": HybridNB(k=3),
    "error": ErrorRateSelector(3),
}
NEIGHBOURS = {
    "LinearSVC": LinearSVC(),
    "SVC": SVC(),
    "SGD": SGDClassifier(random_state=0),
    "tree": DecisionTreeClassifier(random_state=0),
    "forest": RandomForestClassifier(3, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=3, random_state=0),
    "k-means": KMeans(2, n_init=1, random_state=0),
    "logistic": LogisticRegression(),
    "k neighbors": KNeighborsClassifier(),
}
KINDS = {
    "csr_matrix": sparse.csr_matrix,
    "csr_array": sparse.csr_array,
    "csc": sparse.csc_array,
    "coo": sparse.coo_array,
    "wide numbers": lambda X: wide_numbers(sparse.csr_array(X)),
    "sparse frame": lambda X: pd.DataFrame.sparse.from_spmatrix(sparse.csr_matrix(X)),
}

each_selector = pytest.mark.parametrize("selector", SELECTORS)


def wide_numbers(X):
    """The same matrix, with 64-bit numbers of columns."""
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def assert_narrow(X):
    """Numbers of columns and row pointers are of 32 bits, both."""
    if isinstance(X, pydata.COO):
        assert X.coords.dtype == np.int32
    else:
        assert X.indices.dtype == X.indptr.dtype == np.int32


@pytest.fixture(scope="module")
def corpus():
    rng = np.random.default_rng(0)
    y = np.append([0, 1], rng.integers(2, size=78))
    rates = np.full((2, 12), 0.5)
    rates[0, :3], rates[1, 3:6] = 3, 3
    return rng.poisson(rates[y]), np.array(["ham", "spam"])[y]


@pytest.fixture(scope="module")
def fitted(corpus):
    return {name: clone(selector).fit(*corpus) for name, selector in SELECTORS.items()}


@pytest.mark.parametrize(("neighbour", "selector"), each_once(NEIGHBOURS, SELECTORS))
def test_neighbours_take_the_selected_columns(selector, neighbour, corpus):
    X, y = corpus
    for kind in (sparse.csr_array, sparse.csr_matrix):
        pipeline = make_pipeline(clone(SELECTORS[selector]), clone(NEIGHBOURS[neighbour])).fit(kind(X), y)
        by_hand = kind(X[:, pipeline[0].get_support(indices=True)])
        expected = clone(NEIGHBOURS[neighbour]).fit(by_hand, y).predict(by_hand)
        np.testing.assert_array_equal(pipeline.predict(kind(X)), expected)


@each_selector
def test_neighbours_that_take_dense_rows_only(selector, corpus):
    X, y = corpus
    boosting = HistGradientBoostingClassifier(max_iter=2)
    for kind in (np.asarray, pd.DataFrame):
        assert make_pipeline(clone(SELECTORS[selector]), boosting).fit(kind(X), y).score(kind(X), y) > 0.5


@each_selector
@pytest.mark.parametrize("kind", KINDS)
def test_selected_columns_have_narrow_numbers(selector, kind, corpus, fitted):
    selected = fitted[selector].transform(KINDS[kind](corpus[0]))
    assert_narrow(selected)
    assert_narrow(fitted[selector].inverse_transform(selected))
    assert LinearSVC().fit(selected, corpus[1]).n_features_in_ == selected.shape[1]


@each_selector
def test_selected_columns_of_pydata_have_narrow_numbers(selector, corpus, fitted):
    for X in (pydata.COO(corpus[0]), pydata.GCXS(pydata.COO(corpus[0]), compressed_axes=[0])):
        selected = fitted[selector].transform(X)
        assert_narrow(selected)
        assert_narrow(fitted[selector].inverse_transform(selected))
        assert_narrow(selected.to_scipy_sparse().tocsr())


@each_selector
def test_selected_chunks_and_stores_have_narrow_numbers(selector, corpus, fitted, tmp_path):
    X, y = corpus
    model = fitted[selector]
    chunks = da.from_array(X, chunks=(30, -1))
    cut = da.from_array(X, chunks=(30, 5))
    for lazy in (chunks.map_blocks(sparse.csr_matrix), chunks.map_blocks(pydata.COO), cut.map_blocks(sparse.csr_array)):
        selected = model.transform(lazy)
        assert_narrow(selected.blocks[0].compute(scheduler="sync"))
        assert_narrow(model.inverse_transform(selected).blocks[0].compute(scheduler="sync"))
    dataset = nfs.ingest(sparse.csr_array(X), tmp_path / "store.zarr", labels=y)
    assert_narrow(model.transform(dataset))
    pipeline = make_pipeline(clone(model), LinearSVC()).fit(dataset, y)
    np.testing.assert_array_equal(pipeline.predict(dataset), pipeline.predict(X))


def test_selected_columns_of_texts_have_narrow_numbers(tmp_path):
    texts, y = ["green tea", "black tea", "black coffee", "more coffee"], ["tea", "tea", "coffee", "coffee"]
    vectors = TextVectorizer().fit_transform(texts)
    assert_narrow(vectors)
    model = SparseMultinomialNB(2).fit(nfs.ingest(texts, tmp_path / "texts.zarr", labels=y))
    assert_narrow(model.transform(texts))
    assert (
        make_pipeline(TextVectorizer(), SparseMultinomialNB(2), LinearSVC()).fit(texts, y).predict(texts).tolist() == y
    )


@each_selector
def test_weights_have_narrow_numbers(selector, corpus, fitted):
    if selector in ("hybrid", "medians"):
        assert not hasattr(fitted[selector], "coef_")
    else:
        assert_narrow(clone(fitted[selector]).fit(*corpus).sparsify().coef_)


def test_numbers_are_wide_where_they_must_be():
    rows = np.array([0, 1]), np.array([2**31], np.int64), np.array([1.0])
    wide = as_scipy(rows, 2**31 + 1)
    assert wide.indices.dtype == wide.indptr.dtype == np.int64
    assert wide.indices.tolist() == [2**31]
    narrow = as_scipy((rows[0], rows[1] - 2, rows[2]), 2**31 - 1)
    assert narrow.indices.dtype == narrow.indptr.dtype == np.int32
    assert narrow.indices.tolist() == [2**31 - 2]


@each_selector
def test_dask_ml_takes_the_selected_columns(selector, corpus, fitted):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what it imports
        linear = pytest.importorskip("dask_ml.linear_model", reason="dask-ml is not installed")
    X, y = da.from_array(corpus[0], chunks=(40, -1)), da.from_array((corpus[1] == "spam").astype(int), chunks=40)
    selected = fitted[selector].transform(X).rechunk((40, -1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = linear.LogisticRegression(solver="newton").fit(selected, y)
        assert (model.predict(selected).compute() == y.compute()).mean() > 0.7
