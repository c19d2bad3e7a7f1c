"""Distances to centres, against numpy, exact fractions and the normal distribution."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from scipy.stats import multivariate_normal

from nfs_dask.arrays.block import Array, Block, empty_block
from nfs_dask.errors import InputError
from nfs_dask.models import centers as module
from nfs_dask.models.centers import CentersModel
from nfs_dask.models.model import Evidence
from nfs_dask.prediction.reader import Reader
from nfs_dask.sources.matrix_source import MatrixSource
from nfs_dask.text.features import TextFeatures
from nfs_dask.text.settings import TextSettings

METHODS = ("l2", "mahalanobis", "l1")


def make(method: str, centers: Any, n_features: int | None = None, **changes: Any) -> CentersModel:
    """A model of the given centres, (C, k); of the first k features, unless told otherwise."""
    centers = np.asarray(centers, np.float64)
    n_classes, k = centers.shape
    values: dict[str, Any] = {
        "method": method,
        "classes": np.arange(n_classes),
        "class_count": np.full(n_classes, 5.0),
        "n_features": n_features or k,
        "support": np.arange(k),
        "evidence": Evidence(1.0, 0.0, True, None, 1),
        "centers": centers,
        "pooled": np.median(centers, axis=0) if method == "l1" else centers.mean(axis=0),
    }
    if method == "mahalanobis":
        values |= {"covariance": "within", "variances": np.linspace(0.5, 3, k)}
    return CentersModel(**(values | changes))


def block_of(X: Any) -> Block:
    return next(iter(MatrixSource(X).blocks(0, 1)))


def scores(model: CentersModel, X: Any) -> Array:
    return model.scores(block_of(X))


def distances(model: CentersModel, X: Array) -> Array:
    """Plain numpy, (n, C)."""
    apart = X[:, None, model.support] - model.centers
    if model.method == "l1":
        return np.abs(apart).sum(axis=2)
    return (apart**2 / (1 if model.variances is None else model.variances)).sum(axis=2)


def assert_are_distances(model: CentersModel, X: Array, found: Array) -> None:
    """The scores are minus the distances, up to a number for each row."""
    expected = -distances(model, X)
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(found - found[:, :1], expected - expected[:, :1], rtol=0, atol=1e-13 * scale)


def with_stored_zeros(X: Array) -> Any:
    """A CSR array that stores every cell."""
    n, m = X.shape
    return sparse.csr_array((X.ravel(), np.tile(np.arange(m), n), np.arange(n + 1) * m), shape=X.shape)


def shuffled(X: Array) -> Any:
    """A CSR array with unsorted columns, some of them in two halves."""
    rows, columns = np.nonzero(X)
    order = np.lexsort((np.random.default_rng(0).random(len(rows)), rows))
    rows, columns = rows[order].repeat(2), columns[order].repeat(2)
    return sparse.csr_array(
        (X[rows, columns] / 2, columns, np.searchsorted(rows, np.arange(len(X) + 1))), shape=X.shape
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("share", [1.0, 0.6, 0.05])
def test_scores_are_distances_in_any_container(method: str, share: float) -> None:
    rng = np.random.default_rng(7)
    support = np.sort(rng.choice(40, 13, replace=False))
    model = make(method, rng.normal(size=(4, 13)) * 3, 40, support=support)
    X = rng.normal(size=(60, 40)) * 4 * (rng.random((60, 40)) < share)
    found = scores(model, X)
    assert_are_distances(model, X, found)
    for other in (sparse.csr_array(X), sparse.csc_array(X), with_stored_zeros(X), X[:, ::-1][:, ::-1]):
        np.testing.assert_array_equal(scores(model, other), found)
    np.testing.assert_allclose(scores(model, shuffled(X)), found, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(model.predict(block_of(X)), distances(model, X).argmin(axis=1))


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int16, np.int64, np.uint64, np.float32])
def test_values_of_any_type_count_as_they_are(dtype: Any) -> None:
    rng = np.random.default_rng(1)
    X = rng.integers(0, 2 if dtype is bool else 90, (30, 9)).astype(dtype)
    model = make("l2", rng.normal(size=(3, 9)))
    assert_are_distances(model, X.astype(np.float64), scores(model, X))
    np.testing.assert_array_equal(scores(model, sparse.csr_array(X)), scores(model, X))


@given(
    arrays(np.int64, (5, 4), elements=st.integers(-3, 3)),
    arrays(np.int64, (3, 4), elements=st.integers(-3, 3)),
    arrays(np.int64, 4, elements=st.integers(-3, 3)),
)
def test_whole_numbers_are_exact(X: Array, centers: Array, pooled: Array) -> None:
    for method in ("l1", "l2"):
        model = make(method, centers, pooled=pooled.astype(np.float64))
        to_pooled = distances(replace(model, centers=model.pooled[None]), X)
        for given_as in (X, sparse.csr_array(X)):
            np.testing.assert_array_equal(scores(model, given_as), to_pooled - distances(model, X))
            np.testing.assert_array_equal(model.predict(block_of(given_as)), distances(model, X).argmin(axis=1))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sparsely", [False, True])
def test_an_offset_costs_no_digits(method: str, sparsely: bool) -> None:
    rng = np.random.default_rng(3)
    model = make(method, 1e6 + rng.normal(size=(2, 10)))
    X = 1e6 + rng.normal(size=(40, 10))
    found = model.decision_function(block_of(sparse.csr_array(X) if sparsely else X))
    variances = [1.0] * 10 if model.variances is None else model.variances
    for row, score in zip(X, found, strict=True):
        exact = Fraction(0)
        for x, a, b, s in zip(map(Fraction, row), *map(list, model.centers), variances, strict=True):
            near, far = abs(x - Fraction(b)), abs(x - Fraction(a))
            exact += far - near if method == "l1" else (far**2 - near**2) / Fraction(s)
        assert score == pytest.approx(float(exact), rel=1e-12)


def test_classes_without_documents_are_never_predicted() -> None:
    centers = np.array([[0.0, 0.0], [1.0, 2.0], [0.0, 0.0], [-1.0, 1.0]])
    model = make("l2", centers, class_count=np.array([0.0, 3.0, 0.0, 2.0]), pooled=np.array([0.0, 1.5]))
    X = np.random.default_rng(0).normal(size=(50, 2))
    found = scores(model, X)
    assert np.isneginf(found[:, [0, 2]]).all()
    assert_are_distances(replace(model, centers=centers[[1, 3]]), X, found[:, [1, 3]])
    assert set(model.predict(block_of(X)).tolist()) == {1, 3}
    np.testing.assert_array_equal(model.margins()[[0, 2]], 0)
    one = make("l1", centers[:2], class_count=np.array([0.0, 4.0]))
    assert (one.decision_function(block_of(X)) == np.inf).all()
    assert (one.predict(block_of(X)) == 1).all()
    np.testing.assert_array_equal(one.margins(), 0)


def test_of_equal_distances_the_first_class_is_taken() -> None:
    model = make("l1", [[0.0], [2.0], [2.0]])
    assert model.predict(block_of(np.array([[1.0], [1.5]]))).tolist() == [0, 1]


@pytest.mark.parametrize("method", METHODS)
def test_many_classes(method: str) -> None:
    rng = np.random.default_rng(5)
    model = make(method, rng.normal(size=(300, 20)), 500, support=np.sort(rng.choice(500, 20, replace=False)))
    X = sparse.random_array((40, 500), density=0.3, rng=rng, format="csr")
    assert_are_distances(model, X.toarray(), scores(model, X))


def test_features_of_no_variance_are_compared_first() -> None:
    """By how many of them a class does not agree in; only among the classes that agree in most do distances count."""
    rng = np.random.default_rng(11)
    centers = rng.integers(0, 3, (3, 6)).astype(np.float64)
    centers[:, 5] = 1.0  # as in all classes: it says nothing, whatever x is
    variances = np.array([0.0, 1.0, 0.0, 2.0, 0.0, 0.0])
    model = make("mahalanobis", centers, variances=variances)
    X = rng.integers(0, 3, (200, 6)).astype(np.float64)
    missed = (X[:, None, [0, 2, 4]] != centers[:, [0, 2, 4]]).sum(axis=2)
    rest = ((X[:, None, [1, 3]] - centers[:, [1, 3]]) ** 2 / variances[[1, 3]]).sum(axis=2)
    for given_as in (X, sparse.csr_array(X), with_stored_zeros(X)):
        found = scores(model, given_as)
        for i in range(len(X)):
            left = missed[i] == missed[i].min()
            np.testing.assert_array_equal(np.isneginf(found[i]), ~left)
            np.testing.assert_allclose(np.diff(found[i, left]), -np.diff(rest[i, left]), atol=1e-12)
        np.testing.assert_array_equal(model.predict(block_of(given_as)), np.lexsort((rest.T, missed.T), axis=0)[0])
    assert not model.is_linear
    chances = model.predict_proba(block_of(X))
    np.testing.assert_array_equal(chances == 0, missed > missed.min(axis=1, keepdims=True))
    np.testing.assert_array_equal(np.isinf(model.margins()), (variances == 0) & (np.abs(margins_of(centers)) > 0))


def margins_of(centers: Array) -> Array:
    return np.array([row - np.delete(centers, c, axis=0).mean(axis=0) for c, row in enumerate(centers)])


def test_probabilities_are_those_of_normal_classes() -> None:
    rng = np.random.default_rng(2)
    model = make("mahalanobis", rng.normal(size=(3, 4)) * 2, 9, support=np.array([1, 4, 5, 8]))
    assert model.variances is not None
    X = rng.normal(size=(30, 9)) * 2
    densities = np.array(
        [multivariate_normal(c, np.diag(model.variances)).pdf(X[:, model.support]) for c in model.centers]
    )
    expected = (densities / densities.sum(axis=0)).T
    np.testing.assert_allclose(model.predict_proba(block_of(X)), expected, rtol=1e-11)
    np.testing.assert_allclose(model.predict_log_proba(block_of(X)), np.log(expected), rtol=1e-11, atol=1e-12)
    # Two classes, by the formula of linear discriminant analysis.
    two = make("mahalanobis", model.centers[:2])
    a, b, s = *two.centers, two.variances
    log_odds = X[:, :4] @ ((b - a) / s) - ((b**2 - a**2) / s).sum() / 2
    chances = two.predict_proba(block_of(X[:, :4]))
    np.testing.assert_allclose(chances[:, 1], 1 / (1 + np.exp(-log_odds)), rtol=1e-11)


@pytest.mark.parametrize("model", [make("l1", [[0.0], [1.0]]), make("l2", [[0.0], [1.0]])])
def test_distances_alone_are_no_probabilities(model: CentersModel) -> None:
    assert not model.has_probabilities
    with pytest.raises(InputError, match=r"no probabilities; take predict or decision_function"):
        model.predict_proba(block_of(np.ones((1, 1))))
    assert not make("mahalanobis", [[0.0], [1.0]], covariance="total").has_probabilities


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("method", ["l2", "mahalanobis", "full"])
def test_the_linear_rule(method: str, n_classes: int) -> None:
    rng = np.random.default_rng(4)
    centers = rng.normal(size=(n_classes, 5))
    if method == "full":
        changes: dict[str, Any] = {"variances": None, "covariance": "full", "support": np.array([0, 2, 3, 5, 6])}
        changes |= {"root": rng.normal(size=(7, 5)), "shift": rng.normal(size=7)}
        model = make("mahalanobis", centers, 7, **changes)
    else:
        model = make(method, centers, 7, support=np.array([0, 2, 3, 5, 6]))
    X = rng.normal(size=(20, 7))
    weights, intercepts = model.coefficients()
    rule = X[:, model.inputs] @ weights.T + intercepts
    found = model.decision_function(block_of(X))
    np.testing.assert_allclose(rule[:, 0] if n_classes == 2 else rule, found, rtol=1e-10, atol=1e-12)


def test_what_is_not_linear_has_no_weights() -> None:
    for model in (make("l1", [[0.0], [1.0]]), make("mahalanobis", [[0.0], [1.0]], variances=np.zeros(1))):
        with pytest.raises(InputError, match="no linear functions"):
            model.coefficients()
    assert make("mahalanobis", [[1.0], [1.0]], variances=np.zeros(1)).coefficients()[0].tolist() == [[0.0]]


def whitening(k: int, offset: float = 0.0) -> tuple[CentersModel, Array, Array, Array]:
    """A model with a full covariance of k whitened features, the class means, the covariance, and rows."""
    rng = np.random.default_rng(k)
    m = 8
    mixing = rng.normal(size=(m, m))
    S = mixing @ mixing.T + np.eye(m)
    values, vectors = np.linalg.eigh(S)
    root = (vectors / np.sqrt(values)) @ vectors.T
    support = np.sort(rng.choice(m, k, replace=False))
    means = offset + rng.normal(size=(3, m)) * 3
    shift = means.mean(axis=0)
    centers = (means - shift) @ root[:, support]
    changes: dict[str, Any] = {"support": support, "covariance": "full", "variances": None}
    changes |= {"root": root[:, support], "shift": shift, "pooled": np.zeros(k)}
    return make("mahalanobis", centers, m, **changes), means, S, offset + rng.normal(size=(50, m)) * 4


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_all_whitened_features_give_mahalanobis_distances(offset: float) -> None:
    model, means, S, X = whitening(8, offset)
    inverse = np.linalg.inv(S)
    apart = X[:, None, :] - means
    expected = -np.einsum("ncm,mk,nck->nc", apart, inverse, apart)
    found = scores(model, X)
    np.testing.assert_allclose(found - found[:, :1], expected - expected[:, :1], atol=1e-9 if offset else 1e-11)


@pytest.mark.parametrize("limit", [1, 8 * 8 * 7, 1 << 20])
def test_rows_are_whitened_a_few_at_a_time(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model, _, _, X = whitening(3)
    X[np.abs(X) < 3] = 0
    assert model.root is not None
    Z = (X - model.shift) @ model.root
    expected = -((Z[:, None, :] - model.centers) ** 2).sum(axis=2)
    monkeypatch.setattr(module, "WHITENED_BYTES", limit)
    for given_as in (X, sparse.csr_array(X), with_stored_zeros(X), shuffled(X)):
        np.testing.assert_allclose(model.whiten(block_of(given_as)), Z, atol=1e-12)
        found = scores(model, given_as)
        np.testing.assert_allclose(found - found[:, :1], expected - expected[:, :1], atol=1e-11)
    assert model.whiten(empty_block(8)).shape == model.scores(empty_block(8)).shape == (0, 3)
    assert model.inputs.tolist() == list(range(8))


def test_raw_text_is_scored_as_its_counts() -> None:
    words = ["cup", "milk", "tea"]
    features = TextFeatures(TextSettings(), n_terms=6, n_documents=9, terms=tuple(words))
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice([*words, "coffee", "the"], rng.integers(0, 9))) for _ in range(30)]
    counts = np.zeros((30, 6))
    counts[:, [1, 3, 4]] = [[text.split().count(word) for word in words] for text in texts]
    for method in METHODS:
        model = make(method, rng.random((3, 3)) * 2, 6, support=np.array([1, 3, 4]), names=tuple(words), text=features)
        found = np.concatenate([model.scores(block, trusted=True) for block in Reader(model).blocks(texts)])
        np.testing.assert_array_equal(found, scores(model, sparse.csr_array(counts)))
        assert_are_distances(model, counts, found)
    with pytest.raises(InputError, match="raw text"):
        replace(whitening(2)[0], text=features)


def test_top_features_are_those_whose_centre_is_above_the_others() -> None:
    centers = np.array([[4.0, 0.0, 1.0], [0.0, 0.0, 5.0], [-1.0, 3.0, 0.0]])
    model = make("l1", centers, names=("a", "b", "c"))
    np.testing.assert_allclose(model.margins(), margins_of(centers))
    assert model.top_features(1) == {0: [("a", 4.5)], 1: [("c", 4.5)], 2: [("b", 3.0)]}
    scaled = make("mahalanobis", centers, variances=np.array([4.0, 1.0, 9.0]))
    np.testing.assert_allclose(scaled.margins(), margins_of(centers) / [2, 1, 3])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_no_numbers_are_refused(bad: float) -> None:
    X = np.zeros((3, 2))
    X[1, 1] = bad
    for given_as in (X, sparse.csr_array(X)):
        with pytest.raises(InputError, match=r"row 1, column 1"):
            scores(make("l1", [[0.0, 1.0], [1.0, 1.0]]), given_as)


def test_distances_beyond_numbers_are_refused() -> None:
    model = make("l2", [[-1e100, 1.0], [1e100, 2.0]])
    with pytest.raises(InputError, match=r"row 2: its distance .* scale the data down"):
        scores(model, np.array([[0.0, 1.0], [1.0, 3.0], [1e250, 0.0]]))
    assert np.isfinite(scores(make("l1", [[-1e200], [1e200]]), np.array([[1e300]]))).all()
