"""tf-idf, to the bit as scikit-learn's transformer computes it from the same counts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer

from nfs_dask.text.settings import TextSettings
from nfs_dask.text.tfidf import inverse_document_frequencies, weigh


@pytest.fixture(scope="module")
def counts():
    random = np.random.default_rng(11)
    X = sparse.random(300, 200, 0.1, "csr", random_state=random, data_rvs=lambda n: random.geometric(0.3, n))
    X = sparse.vstack([X, sparse.csr_matrix((2, 200)), X[:20] * 1000]).tocsr().astype(np.uint16)
    X.sort_indices()
    return X


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("sublinear", [False, True])
@pytest.mark.parametrize("norm", ["l2", "l1", None])
@pytest.mark.parametrize("use_idf", [True, False])
def test_tfidf_is_that_of_sklearn(counts, binary, sublinear, norm, use_idf):
    settings = TextSettings(tfidf=True, binary=binary, sublinear_tf=sublinear, norm=norm)
    n_documents, df = counts.shape[0], counts.getnnz(axis=0)
    idf = inverse_document_frequencies(df, n_documents) if use_idf else None
    values = weigh(counts.indptr, counts.indices, counts.data, settings, idf)

    X = counts.astype(np.float64)
    if binary:
        X.data[:] = 1
    theirs = TfidfTransformer(norm=norm, sublinear_tf=sublinear, use_idf=use_idf).fit(X)
    if use_idf:
        np.testing.assert_array_equal(idf, theirs.idf_)
    np.testing.assert_array_equal(values, theirs.transform(X).data)
    assert values.dtype == np.float64


def test_counts_stay_as_they_are_without_tfidf(counts):
    assert weigh(counts.indptr, counts.indices, counts.data, TextSettings()) is counts.data
    ones = weigh(counts.indptr, counts.indices, counts.data, TextSettings(binary=True))
    assert ones.dtype == np.uint16 and np.all(ones == 1) and counts.data.max() > 1


def test_frequencies_computed_in_parts_are_those_of_the_whole():
    df = np.random.default_rng(2).integers(0, 5000, 1001)
    whole = inverse_document_frequencies(df, 5000)
    for size in (1, 3, 7, 100):
        parts = [inverse_document_frequencies(df[i : i + size], 5000) for i in range(0, len(df), size)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_a_row_of_zeros_stays():
    values = weigh(np.array([0, 2, 2]), np.array([0, 1]), np.array([0, 0]), TextSettings(tfidf=True), np.ones(2))
    assert values.tolist() == [0.0, 0.0]
