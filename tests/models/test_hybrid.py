"""The hybrid model against its definition, word by word, and against naive Bayes."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from nfs_dask.arrays.block import Block, full_rows
from nfs_dask.errors import InputError
from nfs_dask.models.hybrid import HybridModel
from nfs_dask.models.model import Evidence
from nfs_dask.models.naive_bayes import NaiveBayesModel
from nfs_dask.statistics.leave_one_out import RegionTable
from tests.helpers.region_features import region_features

EVIDENCE = Evidence(0.0, 0.0, True, None, 1)


def make(
    n_classes: int = 2, n_regions: int = 2, n_words: int = 12, words: Any = None, seed: int = 0, **changes: Any
) -> HybridModel:
    rng = np.random.default_rng(seed)
    words = np.arange(n_words) if words is None else np.asarray(words)
    separate = changes.pop("separate", False)
    table = rng.dirichlet(np.ones(n_words), (n_classes, n_regions) if separate else n_classes)
    model = HybridModel(
        method="hybrid",
        classes=np.arange(n_classes),
        class_count=np.ones(n_classes),
        n_features=n_regions * n_words,
        support=(np.arange(n_regions)[:, None] * n_words + words).ravel(),
        evidence=EVIDENCE,
        theta=rng.normal(size=n_classes - 1 + n_regions),
        log_probabilities=np.ascontiguousarray(np.log(table)[..., words]),
        n_regions=n_regions,
        normalize=True,
        alpha=1.0,
    )
    return replace(model, **changes)


def documents(model: HybridModel, seed: int = 0, n_rows: int = 9) -> np.ndarray:
    """Counts, in the first row none, in the second none of the first region."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.7, (n_rows, model.n_features))
    X[0] = 0
    X[1, : model.n_words] = 0
    return X


def block_of(X: Any) -> Block:
    rows = sparse.csr_array(X)
    codes = np.full(rows.shape[0], -1)
    return Block(rows.indptr.astype(np.int64), rows.indices, rows.data, codes, rows.shape[1])


def by_definition(model: HybridModel, X: np.ndarray) -> np.ndarray:
    """Scores of the documents, one word of one region after the other."""
    scores = np.tile(np.concatenate([[0.0], model.theta[: model.n_classes - 1]]), (len(X), 1))
    for i, row in enumerate(X):
        for r in range(model.n_regions):
            counts = row[r * model.n_words + model.words]
            logs = model.log_probabilities if model.log_probabilities.ndim == 2 else model.log_probabilities[:, r]
            b = logs @ counts
            if model.normalize and counts.sum() > 0:
                b = b / counts.sum()
            scores[i] += model.theta[model.n_classes - 1 + r] * b
    return scores - scores[:, :1]


@given(data=st.data())
def test_scores_are_those_of_the_definition(data: st.DataObject) -> None:
    n_words = 12
    words = data.draw(st.none() | st.lists(st.integers(0, n_words - 1), min_size=1, unique=True).map(sorted))
    model = make(
        data.draw(st.integers(2, 4)),
        data.draw(st.integers(1, 3)),
        n_words,
        words,
        data.draw(st.integers(0, 99)),
        separate=data.draw(st.booleans()),
        normalize=data.draw(st.booleans()),
    )
    X = documents(model, data.draw(st.integers(0, 99))) * data.draw(st.sampled_from([1, 0.37]))
    expected = by_definition(model, X)
    scores = model.scores(block_of(X))
    np.testing.assert_allclose(scores - scores[:, :1], expected, rtol=1e-12, atol=1e-10)
    p = np.exp(expected) / np.exp(expected).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(block_of(X)), p, rtol=1e-9)
    np.testing.assert_array_equal(model.predict(block_of(X)), expected.argmax(axis=1))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("words", [None, [0, 3, 7]])
def test_features_are_those_that_a_fit_sees_of_new_documents(n_classes: int, words: list[int] | None) -> None:
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 9, (n_classes, 12))
    totals = counts.sum(axis=1)
    kept = np.arange(12) if words is None else np.array(words)
    table = RegionTable(2, 12, totals, 0.5, None if words is None else kept)
    logs = np.log(counts[:, kept] + 0.5) - np.log(totals + 6.0)[:, None]
    model = make(n_classes, words=words, log_probabilities=logs)
    block = block_of(documents(model))
    for normalize in (True, False):
        expected = region_features(block, table, counts[:, kept], normalize=normalize, leave_out=False)
        found = replace(model, normalize=normalize).features(block)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_sums_of_unit_weight_are_naive_bayes(n_classes: int) -> None:
    prior = np.random.default_rng(0).dirichlet(np.ones(n_classes))
    theta = np.concatenate([np.log(prior[1:] / prior[0]), np.ones(2)])
    hybrid = make(n_classes, theta=theta, normalize=False)
    bayes = NaiveBayesModel(
        method="multinomial",
        classes=hybrid.classes,
        class_count=hybrid.class_count,
        n_features=hybrid.n_features,
        support=hybrid.support,
        evidence=EVIDENCE,
        class_log_prior=np.log(prior),
        alpha=1.0,
        present=np.tile(hybrid.log_probabilities, 2),
    )
    block = block_of(documents(hybrid))
    np.testing.assert_allclose(hybrid.predict_proba(block), bayes.predict_proba(block), rtol=1e-11)
    if n_classes == 2:
        np.testing.assert_allclose(hybrid.decision_function(block), bayes.decision_function(block), atol=1e-11)


@pytest.mark.parametrize("words", [None, [2, 5]])
@pytest.mark.parametrize("separate", [True, False])
def test_any_layout_of_the_same_rows_scores_alike(words: list[int] | None, separate: bool) -> None:
    model = make(words=words, separate=separate)
    X = documents(model)
    expected = model.scores(block_of(X))
    rng = np.random.default_rng(2)
    indptr, indices, values, full = full_rows(X)
    dense = Block(indptr, indices, values, np.full(len(X), -1), model.n_features, full=full)
    np.testing.assert_allclose(model.scores(dense), expected, rtol=1e-12)
    rows = sparse.csr_array(X)
    for i in range(len(X)):  # out of order
        part = slice(rows.indptr[i], rows.indptr[i + 1])
        order = rng.permutation(part.stop - part.start)
        rows.indices[part], rows.data[part] = rows.indices[part][order], rows.data[part][order]
    wide = Block(rows.indptr.astype(np.int64), rows.indices.astype(np.uint64), rows.data, dense.codes, model.n_features)
    np.testing.assert_allclose(model.scores(wide), expected, rtol=1e-12)
    twice = np.repeat(np.arange(rows.nnz), 2)  # each entry as two halves
    halves = Block(wide.indptr * 2, rows.indices[twice], rows.data[twice] / 2, dense.codes, model.n_features)
    np.testing.assert_allclose(model.scores(halves), expected, rtol=1e-12)


def test_empty_documents_go_to_the_intercepts() -> None:
    for model in (make(2), make(3)):
        scores = model.scores(block_of(documents(model)))
        np.testing.assert_array_equal(scores[0], model.intercepts)
    none = Block(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0), np.zeros(0, np.int32), model.n_features)
    assert model.scores(none).shape == (0, 3)


def test_words_outside_the_support_do_not_count() -> None:
    model = make(words=[1, 4])
    X = documents(model)
    more = X.copy()
    more[:, np.setdiff1d(np.arange(model.n_features), model.support)] += 5
    np.testing.assert_array_equal(model.scores(block_of(more)), model.scores(block_of(X)))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_sums_are_a_linear_rule_and_means_are_none(n_classes: int) -> None:
    model = make(n_classes, words=[0, 2, 11], normalize=False)
    X = documents(model)
    weights, intercepts = model.coefficients()
    linear = X[:, model.support] @ weights.T + intercepts
    decision = model.decision_function(block_of(X))
    linear = linear[:, 0] if n_classes == 2 else linear - linear[:, :1]
    np.testing.assert_allclose(linear, decision if n_classes == 2 else decision - decision[:, :1], atol=1e-10)
    means = replace(model, normalize=True)
    assert model.is_linear
    assert not means.is_linear
    with pytest.raises(InputError, match="no linear functions of the counts; take predict"):
        means.coefficients()


def test_top_features_are_the_words_and_regions_that_weigh_most() -> None:
    model = make(
        n_words=3,
        theta=np.array([0.0, 2.0, 1.0]),
        log_probabilities=np.log([[0.7, 0.2, 0.1], [0.2, 0.2, 0.6]]),
        names=("s:tea", "s:of", "s:milk", "b:tea", "b:of", "b:milk"),
    )
    tea, milk = np.log(3.5), np.log(6)
    tops = model.top_features(2)
    assert [name for name, _ in tops[0]] == ["s:tea", "b:tea"]
    np.testing.assert_allclose([margin for _, margin in tops[1]], [2 * milk, milk])
    np.testing.assert_allclose(model.margins()[0], [2 * tea, 0, -2 * milk, tea, 0, -milk], atol=1e-15)
    assert [name for name, _ in replace(model, names=None).top_features(1)[1]] == ["x2"]


def test_a_negative_weight_turns_a_region_round() -> None:
    model = make(n_regions=1, theta=np.array([0.0, -1.0]))
    block = block_of(documents(model))
    forward = replace(model, theta=-model.theta)
    np.testing.assert_array_equal(model.decision_function(block), -forward.decision_function(block))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[0.0, np.nan]], r"NaN value nan in row 0, column 1"),
        ([[1.0, 0.0], [2.0, -1.0]], r"negative value -1.0 in row 1, column 1"),
        ([[1.0, 0.0], [1e308, 1.7e308]], r"row 1: its values add up to more than a number holds; scale"),
    ],
)
def test_values_that_cannot_be_scored(values: list[list[float]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make(n_regions=1, n_words=2).scores(block_of(np.array(values)))


def test_columns_beyond_the_model_are_refused() -> None:
    model = make(n_regions=1, n_words=2)
    bad = Block(np.array([0, 1]), np.array([2]), np.array([1]), np.array([-1]), 2)
    with pytest.raises(InputError, match="the data have 2 columns"):
        model.scores(bad)
    with pytest.raises(InputError, match="rows of 4 columns for a model of 2"):
        model.scores(block_of(np.ones((1, 4))))


def test_a_model_travels_without_what_it_works_out() -> None:
    model = make(n_words=5000)
    before = len(pickle.dumps(model))
    block = block_of(documents(model))
    scores = model.scores(block)
    again = pickle.loads(pickle.dumps(model))
    assert len(pickle.dumps(model)) == before
    np.testing.assert_array_equal(again.scores(block), scores)
