"""Prediction and selection of matrices: as quick as scikit-learn's, and the same however the rows are stored."""

from __future__ import annotations

import time
from contextlib import nullcontext

import dask
import dask.array as da
import numpy as np
import pytest
from scipy import sparse
from sklearn.naive_bayes import BernoulliNB, MultinomialNB
from sklearn.neighbors import NearestCentroid

import nfs_dask
from nfs_dask.errors import InputError

ESTIMATORS = {
    "multinomial": nfs_dask.SparseMultinomialNB(k=7),
    "impossible words": nfs_dask.SparseMultinomialNB(k=7, alpha=0),
    "bernoulli": nfs_dask.SparseBernoulliNB(k=7, binarize=1.0),
    "impossible presences": nfs_dask.SparseBernoulliNB(k=7, binarize=1.0, alpha=0),
    "hybrid": nfs_dask.HybridNB(k=7),
    "two regions": nfs_dask.HybridNB(k=7, regions=2),
    "two regions, not normalised": nfs_dask.HybridNB(regions=2, normalize=False),
    "l2": nfs_dask.SparseCentroid(k=7),
    "l1": nfs_dask.SparseCentroid(k=7, metric="manhattan"),
    "mahalanobis": nfs_dask.SparseCentroid(k=7, metric="mahalanobis"),
}


def counts(n: int, m: int, classes: int = 3, share: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.arange(n) % classes
    X = (rng.random((n, m)) < share) * rng.integers(1, 4, (n, m)).astype(float)
    X[y == 0, : m // 3] += rng.random((int((y == 0).sum()), m // 3)) < 0.3
    X[y == 1, 1] = 0  # impossible there
    return X, y


def ratio(theirs, ours, repeats: int = 7) -> float:
    """Processor seconds of ours beside scikit-learn's, of the best of some calls that take turns."""
    seconds: dict = {theirs: [], ours: []}
    ours()  # which compiles
    for _ in range(repeats):
        for call, found in seconds.items():
            start = time.process_time()
            call()
            found.append(time.process_time() - start)
    return min(seconds[ours]) / min(seconds[theirs])


@pytest.fixture(scope="module")
def ordinary():
    return counts(30_000, 300, classes=2, share=0.26)


@pytest.mark.slow  # other jobs of the machine take from its caches
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(
    ("sparser", "other"),
    [
        (nfs_dask.SparseMultinomialNB(k=30), MultinomialNB()),
        (nfs_dask.HybridNB(k=30), MultinomialNB()),
        (nfs_dask.SparseCentroid(k=30), NearestCentroid()),
        (nfs_dask.SparseCentroid(k=30, metric="manhattan"), NearestCentroid(metric="manhattan")),
    ],
)
def test_predictions_take_no_longer_than_those_of_all_features(ordinary, form, sparser, other):
    X, y = form(ordinary[0]), ordinary[1]
    sparser.fit(X, y)
    other.fit(X, y)
    assert ratio(lambda: other.predict(X), lambda: sparser.predict(X)) < 2  # 3 to 11 when they were compressed first


@pytest.mark.slow  # as above
@pytest.mark.parametrize(("form", "most"), [(np.asarray, 6), (sparse.csr_array, 3)])
def test_a_selection_is_a_slice_of_values_that_were_checked(ordinary, form, most):
    X, y = form(ordinary[0]), ordinary[1]
    model = nfs_dask.SparseMultinomialNB(k=30).fit(X, y)
    support = model.get_support(indices=True)
    found = model.transform(X)
    assert abs(found - X[:, support]).max() == 0
    assert ratio(lambda: X[:, support], lambda: model.transform(X)) < most


@pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS)
def test_rows_are_worth_the_same_to_the_bit_however_they_are_stored(estimator):
    X, y = counts(200, 24)
    estimator.fit(X, y)
    expected = estimator.decision_function(X)
    forms = [
        np.asfortranarray(X),
        X.astype(np.float32),
        X.astype(np.uint8),
        sparse.csr_array(X),
        sparse.csc_array(X),
        sparse.coo_array(X),
        sparse.csr_array((np.ravel(X), np.tile(np.arange(24), 200), np.arange(201) * 24), shape=X.shape),  # with zeros
    ]
    for form in forms:
        np.testing.assert_array_equal(estimator.decision_function(form), expected)
        assert abs(estimator.transform(form) - X[:, estimator.get_support()]).max() == 0
    lazy = da.from_array(X, chunks=(33, 24))
    for form in (lazy, da.from_array(X, chunks=(33, 10)), lazy.map_blocks(sparse.csr_array)):
        np.testing.assert_array_equal(estimator.decision_function(form).compute(), expected)
    one_by_one = [estimator.decision_function(X[i : i + 1]) for i in range(len(X))]
    np.testing.assert_array_equal(np.concatenate(one_by_one), expected)


@pytest.mark.parametrize(
    ("estimator", "other"),
    [
        (nfs_dask.SparseMultinomialNB(k="all"), MultinomialNB()),
        (nfs_dask.SparseBernoulliNB(k="all", binarize=1.0), BernoulliNB(binarize=1.0)),
    ],
)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_of_all_features_probabilities_are_scikit_learns(estimator, other, form):
    X, y = counts(201, 24)
    found = estimator.fit(X, y).predict_proba(form(X))
    np.testing.assert_allclose(found, other.fit(X, y).predict_proba(X), rtol=1e-9)


@pytest.mark.parametrize(("metric", "power"), [("euclidean", 2), ("manhattan", 1)])
@pytest.mark.parametrize("shift", [0, 1e6])
def test_scores_of_centers_are_differences_of_distances(metric, power, shift):
    X, y = counts(201, 24)
    X = X + shift
    model = nfs_dask.SparseCentroid(k=7, metric=metric).fit(X, y)
    near = X[:, model.get_support(indices=True), None] - model.centers_.T
    distances = (np.abs(near) ** power).sum(axis=1)
    found = model.decision_function(X)
    np.testing.assert_allclose(found - found[:, :1], distances[:, :1] - distances, atol=1e-7)


@pytest.mark.parametrize("width", [5_000, 3_000_000])
def test_a_few_columns_of_many(width):
    X, y = counts(60, 30)
    columns = np.linspace(0, width - 1, 30).astype(int)
    rows, places = np.nonzero(X)
    wide = sparse.csr_array((X[rows, places], (rows, columns[places])), shape=(60, width))
    few, many = (nfs_dask.SparseMultinomialNB(k=8).fit(matrix, y) for matrix in (X, wide))
    np.testing.assert_array_equal(columns[few.get_support(indices=True)], many.get_support(indices=True))
    np.testing.assert_allclose(many.predict_proba(wide), few.predict_proba(X), rtol=1e-12)
    np.testing.assert_array_equal(many.transform(wide).toarray(), few.transform(X))


@pytest.mark.parametrize(
    "form",
    [np.asarray, np.asfortranarray, sparse.csr_array, sparse.csc_array, lambda X: da.from_array(X, chunks=(50, 24))],
)
@pytest.mark.parametrize("estimator", [nfs_dask.SparseMultinomialNB(k=3), nfs_dask.SparseCentroid(k=3)])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0])
def test_what_is_wrong_in_columns_that_were_not_selected_is_named(form, estimator, bad):
    X, y = counts(200, 24)
    model = estimator.fit(X, y)
    column = int(np.flatnonzero(~model.get_support())[-1])
    X[137, column] = bad
    negative = bad == -1 and isinstance(estimator, nfs_dask.SparseMultinomialNB)
    for take, refuses in ((model.predict, bad != -1 or negative), (model.transform, bad != -1)):
        with pytest.raises(InputError, match=rf"row 1?37, column {column}") if refuses else nullcontext():
            dask.compute(take(form(X)))
    with pytest.raises(ValueError, match="X has 23 features, but"):
        model.predict(form(X[:, 1:]))
