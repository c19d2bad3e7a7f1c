"""What features contribute: with the base the decision itself, and what the decision loses without the feature."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from nfs_dask.arrays.block import Block, full_rows
from nfs_dask.estimators.scikit_learn import (
    ErrorRateSelector,
    HybridNB,
    SparseBernoulliNB,
    SparseCentroid,
    SparseMultinomialNB,
)
from nfs_dask.models.contributions import Contributions
from nfs_dask.models.model import Model

WIDTH, ULPS = 24, 4

MAKERS: dict[str, Any] = {
    "multinomial": lambda: SparseMultinomialNB(8),
    "bernoulli": lambda: SparseBernoulliNB(8, binarize=1.0),
    "l2": lambda: SparseCentroid(8, metric="euclidean"),
    "l1": lambda: SparseCentroid(8, metric="manhattan"),
    "mahalanobis": lambda: SparseCentroid(8, metric="mahalanobis"),
    "full": lambda: SparseCentroid(8, metric="mahalanobis", covariance="full"),
    "hybrid": lambda: HybridNB(k=8, regions=2),
    "hybrid of sums": lambda: HybridNB(k=8, regions=2, normalize=False),
    "hybrid of tables": lambda: HybridNB(k=8, regions=2, tables="separate"),
    "error": lambda: ErrorRateSelector(8),
}
CASES = [(name, n_classes) for name in MAKERS for n_classes in (2, 3) if (name, n_classes) != ("error", 3)]
CENTERS = ("l1", "l2", "mahalanobis")  # contributions of which are beside their mean
NORMED = ("full", "hybrid", "hybrid of tables")  # a whitened feature is of all columns, a word of a region a share


def rows(n_classes: int, seed: int = 0, n: int = 120) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    rates = rng.gamma(0.6, 1.0, (n_classes, WIDTH))
    X = rng.poisson(rates[y])
    X[0] = 0
    return X, y


def block_of(X: np.ndarray, full: bool = False) -> Block:
    codes = np.full(len(X), -1)
    if full:
        indptr, indices, data, _ = full_rows(X)
        return Block(indptr, indices, data, codes, X.shape[1], full=True)
    csr = sparse.csr_array(X)
    return Block(csr.indptr.astype(np.int64), csr.indices, csr.data, codes, X.shape[1])


def assert_adds_up(model: Model, block: Block, found: Contributions | None = None) -> Contributions:
    """The decision is the sum; the error is below a few ulp of what the scores add up, whose sum it is not."""
    found = model.contributions(block) if found is None else found
    decision = model.decision_function(block).reshape(block.n_rows, -1)
    base, parts = found.base.reshape(decision.shape), found.parts.reshape(-1, decision.shape[1])
    scores = np.where(np.isfinite(model.scores(block)), model.scores(block), 0)
    for i, (start, stop) in enumerate(zip(found.entries.indptr, found.entries.indptr[1:], strict=False)):
        for c in range(decision.shape[1]):
            terms = [base[i, c], *parts[start:stop, c]]
            if not np.isfinite(decision[i, c]):
                assert sum(terms) == decision[i, c]
                continue
            largest = np.abs(scores[i]).max() + sum(map(abs, terms))
            assert abs(math.fsum(terms) - decision[i, c]) <= ULPS * math.ulp(largest)
    return found


@pytest.mark.parametrize(("name", "n_classes"), CASES)
def test_base_and_contributions_are_the_decision(name: str, n_classes: int) -> None:
    X, y = rows(n_classes)
    model = MAKERS[name]().fit(X, y).model_
    sparse_rows = assert_adds_up(model, block_of(X))
    dense_rows = assert_adds_up(model, block_of(X, full=True))
    np.testing.assert_array_equal(sparse_rows.entries.positions, dense_rows.entries.positions)
    np.testing.assert_array_equal(sparse_rows.parts, dense_rows.parts)
    if name in ("l1", "l2", "mahalanobis", "full"):
        assert sparse_rows.entries.n == len(X) * len(model.support)
    else:
        assert sparse_rows.entries.n == np.count_nonzero(X[:, model.support] > (getattr(model, "threshold", 0) or 0))
    assert sparse_rows.base.shape == ((len(X),) if n_classes == 2 else (len(X), n_classes))


@pytest.mark.parametrize(("name", "n_classes"), [case for case in CASES if case[0] not in (*NORMED, *CENTERS)])
def test_a_contribution_is_what_the_decision_loses_without_the_feature(name: str, n_classes: int) -> None:
    X, y = rows(n_classes)
    model = MAKERS[name]().fit(X, y).model_
    found = model.contributions(block_of(X))
    rng = np.random.default_rng(1)
    for entry in rng.choice(found.entries.n, 30, replace=False):
        row, column = found.entries.rows[entry], model.support[found.entries.positions[entry]]
        assert found.entries.values[entry] == X[row, column]
        without = X[[row, row]]
        without[1, column] = 0
        decisions = model.decision_function(block_of(without))
        np.testing.assert_allclose(found.parts[entry], decisions[0] - decisions[1], rtol=1e-9, atol=1e-9)
    empty = model.decision_function(block_of(np.zeros((1, WIDTH))))[0]
    if name != "error":  # which counts what is not selected as one more feature
        np.testing.assert_allclose(found.base, np.broadcast_to(empty, found.base.shape), rtol=1e-13)
    else:
        assert model.rest is not None
        others = X.copy()
        others[:, model.support] = 0
        np.testing.assert_allclose(found.base, model.decision_function(block_of(others)), rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_words_of_a_normed_region_have_their_shares(n_classes: int) -> None:
    X, y = rows(n_classes)
    model = HybridNB(k=8, regions=2).fit(X, y).model_
    found = model.contributions(block_of(X))
    for entry in range(0, found.entries.n, 7):
        row, column = int(found.entries.rows[entry]), int(model.support[found.entries.positions[entry]])
        region, word = divmod(column, WIDTH // 2)
        tokens = X[row, region * (WIDTH // 2) + model.words].sum()
        logs = model.log_probabilities[:, model.words.tolist().index(word)]
        expected = model.slopes[region] * X[row, column] / tokens * (logs[1] - logs[0] if n_classes == 2 else logs)
        np.testing.assert_allclose(found.parts[entry], expected, rtol=1e-13)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", ["multinomial", "bernoulli"])
def test_impossible_features_are_infinite_and_never_of_both_signs(name: str, n_classes: int) -> None:
    """Without smoothing some classes are ruled out by what is there, and some by what is not."""
    X, y = rows(n_classes)
    X = (X > 1).astype(int)
    X[y == 0, 0], X[y == 1, 1], X[y == 1, 2] = 1, 1, 0
    model = (SparseMultinomialNB if name == "multinomial" else SparseBernoulliNB)(12, alpha=0).fit(X, y).model_
    seen = np.unique(np.random.default_rng(2).integers(0, 2, (200, WIDTH)), axis=0)
    block = block_of(np.concatenate([X, seen]))
    found = assert_adds_up(model, block)
    assert np.isinf(found.parts).any()
    if name == "bernoulli":
        assert np.isinf(found.base).any()
        ruled_out = np.isneginf(model.scores(block)) & (model.class_count > 0)
        assert not ruled_out.all(axis=1).any()  # what all rule out is left to the priors


@pytest.mark.parametrize("n_classes", [2, 3])
def test_what_never_varies_rules_classes_out(n_classes: int) -> None:
    X, y = rows(n_classes)
    X[:, 0], X[:, 1] = np.where(y == 0, 2, 0), np.where(y == 1, 3, 1)
    model = SparseCentroid(8, metric="mahalanobis", always=[0, 1]).fit(X, y).model_
    assert model.exact.sum() == 2
    rng = np.random.default_rng(3)
    others = X.copy()
    others[:, 0], others[:, 1] = rng.choice([0, 1, 2], len(X)), rng.choice([0, 1, 3], len(X))
    found = assert_adds_up(model, block_of(others))
    assert np.isinf(found.parts).any() and np.isfinite(found.base).all()


@pytest.mark.parametrize("name", ["multinomial", "l2", "hybrid"])
def test_a_class_without_documents_is_out_from_the_start(name: str) -> None:
    X, y = rows(3)
    fitted = MAKERS[name]().fit(X, y).model_
    counts = fitted.class_count.copy()
    counts[1] = 0
    changes: dict[str, Any] = {"class_count": counts}
    if name == "multinomial":
        changes["class_log_prior"] = np.where(counts > 0, fitted.class_log_prior, -np.inf)
    found = assert_adds_up(replace(fitted, **changes), block_of(X))
    assert np.isneginf(found.base[:, 1]).all() and np.isfinite(found.parts).all()


@pytest.mark.parametrize("name", ["multinomial", "l1", "hybrid of sums"])
def test_the_way_rows_are_stored_changes_nothing(name: str) -> None:
    X, y = rows(2)
    model = MAKERS[name]().fit(X, y).model_
    expected = model.contributions(block_of(X))
    csr = sparse.coo_array(X)
    order = np.argsort(csr.row, kind="stable")
    twice = np.repeat(order, 2)  # each entry in two halves, out of order within the row
    flipped = np.concatenate([twice[csr.row[twice] == i][::-1] for i in range(len(X))])
    indptr = np.concatenate([[0], np.cumsum(np.bincount(csr.row[flipped], minlength=len(X)))])
    block = Block(indptr, csr.col[flipped].astype(np.int32), csr.data[flipped] / 2, np.full(len(X), -1), WIDTH)
    found = model.contributions(block)
    np.testing.assert_array_equal(found.entries.positions, expected.entries.positions)
    np.testing.assert_array_equal(found.parts, expected.parts)


def test_rows_are_taken_and_joined() -> None:
    X, y = rows(3)
    model = MAKERS["multinomial"]().fit(X, y).model_
    whole = model.contributions(block_of(X))
    parts = [model.contributions(block_of(X[:50])), model.contributions(block_of(X[50:]))]
    joined = Contributions.joined(parts)
    chosen = np.array([7, 3, 3, 119])
    for one, other in ((joined, whole), (joined.of_rows(chosen), model.contributions(block_of(X[chosen])))):
        for name in ("indptr", "positions", "values"):
            np.testing.assert_array_equal(getattr(one.entries, name), getattr(other.entries, name))
        np.testing.assert_array_equal(one.base, other.base)
        np.testing.assert_array_equal(one.parts, other.parts)
