"""Predicted errors as users ask for them: of arrays, and of fitted classifiers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import nfs_dask as nfs
from nfs_dask.errors import InputError
from nfs_dask.solvers.predicted_error.estimate import ErrorProblem, estimate

P = np.array([[0.6, 0.1, 0.2, 0.1], [0.2, 0.5, 0.1, 0.2], [0.1, 0.2, 0.3, 0.4]])


def documents(n: int = 600, n_classes: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    rates = rng.dirichlet(np.ones(40), size=n_classes)
    y = rng.choice(n_classes, n, p=np.arange(1, n_classes + 1) / np.arange(1, n_classes + 1).sum())
    return np.stack([rng.multinomial(12, rates[c]) for c in y]), y


@pytest.fixture(scope="module")
def fitted() -> Any:
    return nfs.SparseMultinomialNB(k=8).fit(*documents())


def test_probabilities_and_their_logarithms() -> None:
    expected = estimate(ErrorProblem.of(P, 5))
    for given in (P, P.tolist(), np.log(P), np.log(P).tolist()):
        found = nfs.predict_error(given, n_tokens=5)
        assert found.error == pytest.approx(expected.error, rel=1e-13)
        np.testing.assert_allclose(found.detection, expected.detection, rtol=1e-12)
    assert found.detection.shape == found.class_mean.shape == found.class_variance.shape == (3, 3)
    assert found.mean.shape == found.variance.shape == found.pairwise.shape == (3, 3, 3)
    assert found.class_mean[1, 2] == pytest.approx(5 * np.log(P[1]) @ P[2])


def test_features_priors_lengths_and_variances() -> None:
    prior = [0.5, 0.3, 0.2]
    found = nfs.predict_error(P, n_tokens=[2, 8], prior=prior, features=[2, 0], variance="compensated")
    expected = estimate(ErrorProblem.of(P, [8, 2], prior), np.array([0, 2]), "compensated")
    assert found.error == pytest.approx(expected.error, rel=1e-12)
    merged = np.stack([P[:, 0], P[:, 2], P[:, 1] + P[:, 3]], axis=1)
    assert nfs.predict_error(P, n_tokens=8, features=[2, 0]).error == pytest.approx(
        nfs.predict_error(merged, n_tokens=8).error, rel=1e-12
    )
    assert nfs.predict_error(P, n_tokens=8, features=[]).error == pytest.approx(2 / 3)


def test_a_fitted_classifier_is_its_probabilities(fitted: Any) -> None:
    model = fitted.model_
    kept = np.exp(model.present)
    whole = np.append(kept, 1 - kept.sum(axis=1, keepdims=True), axis=1)
    expected = nfs.predict_error(whole, n_tokens=12, prior=np.exp(fitted.class_log_prior_))
    for given in (fitted, model):
        found = nfs.predict_error(given, n_tokens=12)
        assert found.error == pytest.approx(expected.error, rel=1e-12)
        np.testing.assert_allclose(found.variance, expected.variance, rtol=1e-10)
    some = nfs.predict_error(fitted, n_tokens=12, features=model.support[[5, 1]])
    expected = nfs.predict_error(whole, n_tokens=12, prior=np.exp(fitted.class_log_prior_), features=[1, 5])
    assert some.error == pytest.approx(expected.error, rel=1e-12)
    assert nfs.predict_error(fitted, n_tokens=12, prior=[0.5, 0.5]).error != found.error


def test_a_classifier_of_all_features_has_no_rest() -> None:
    X, y = documents(n_classes=3)
    full = nfs.SparseMultinomialNB(k="all").fit(X, y)
    shares = np.stack([X[y == c].sum(axis=0) + 1.0 for c in range(3)])
    expected = nfs.predict_error(
        shares / shares.sum(axis=1, keepdims=True), n_tokens={12: 1}, prior=np.bincount(y) / len(y)
    )
    assert nfs.predict_error(full, n_tokens=12).error == pytest.approx(expected.error, rel=1e-11)


def test_documents_the_model_would_expect(fitted: Any) -> None:
    """Its own classifier is wrong about as often as it says; documents are drawn from its probabilities."""
    rng, model, n = np.random.default_rng(1), fitted.model_, 20_000
    tokens, wrong = 60, 0.0
    outside = np.setdiff1d(np.arange(40), model.support)[:1]
    for c, prior in enumerate(np.exp(fitted.class_log_prior_)):
        kept = np.exp(model.present[c])
        X = np.zeros((n, 40), np.int64)
        X[:, np.append(model.support, outside)] = rng.multinomial(tokens, np.append(kept, 1 - kept.sum()), size=n)
        wrong += prior * np.mean(fitted.predict(X) != model.classes[c])
    found = nfs.predict_error(fitted, n_tokens=tokens).error
    assert abs(found - wrong) < 4 * math.sqrt(wrong / n) + 0.1 * wrong


def test_features_that_no_document_has_say_nothing() -> None:
    X, y = documents()
    wider = np.insert(X, [3, 20], 0, axis=1)
    narrow, wide = (nfs.SparseMultinomialNB(k="all", alpha=0.0) for _ in range(2))
    X[:2], wider[:2] = 1, 1  # every other feature is in both classes
    wider[:, [3, 21]] = 0
    y[:2] = 0, 1
    narrow.fit(X, y)
    wide.fit(wider, y)
    expected = nfs.predict_error(narrow, n_tokens=9).error
    assert nfs.predict_error(wide, n_tokens=9).error == pytest.approx(expected, rel=1e-12)
    everything = np.arange(42)
    assert nfs.predict_error(wide, n_tokens=9, features=everything).error == pytest.approx(expected, rel=1e-12)
    some = nfs.predict_error(wide, n_tokens=9, features=[3, 4, 30]).error
    assert some == pytest.approx(nfs.predict_error(narrow, n_tokens=9, features=[3, 28]).error, rel=1e-12)


def test_what_is_refused(fitted: Any) -> None:
    X, y = documents()
    cases: list[tuple[Any, dict[str, Any], str]] = [
        (nfs.SparseMultinomialNB(), {}, "not fitted"),
        (nfs.SparseBernoulliNB(k=3).fit(X > 0, y), {}, "method 'bernoulli' is not of multinomial documents"),
        (nfs.SparseCentroid(k=3).fit(X, y), {}, "method 'l2'"),
        ("probabilities", {}, "P is a str and no array of numbers"),
        ([[0.5, 0.5], [1.0, 0.0]], {}, "feature 1 in class 1 is 0.0"),
        ([[-0.7, -np.inf], [-0.7, -0.7]], {}, "feature 1 in class 0 is 0.0"),
        ([[0.5, -0.5], [0.5, 0.5]], {}, "feature 1 in class 0 is -0.5"),
        (P, {"features": [4]}, "indices from 0 to 3"),
        (P, {"features": [0.5]}, "indices from 0 to 3"),
        (P, {"variance": "printed"}, "'printed' is none of"),
        (fitted, {"features": [int(np.setdiff1d(np.arange(40), fitted.get_support(True))[0])]}, "not among the 8"),
        (nfs.SparseMultinomialNB(k="all", alpha=0).fit([[1, 1], [0, 2]], [0, 1]), {}, "'x0' is impossible in one"),
    ]
    for given, options, message in cases:
        with pytest.raises(InputError, match=message):
            nfs.predict_error(given, n_tokens=5, **options)
    partial = nfs.SparseMultinomialNB(k=2).partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(InputError, match=r"no documents of \[2\]"):
        nfs.predict_error(partial, n_tokens=5)
