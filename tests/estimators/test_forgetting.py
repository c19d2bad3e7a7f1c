"""Documents that are forgotten against a fit that never saw them: the same model, or a refusal, never another one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfs_dask as nfs
from nfs_dask.errors import InputError
from tests.helpers.grids import each_once

MODELS = {
    "multinomial": lambda: nfs.SparseMultinomialNB(k=3),
    "error": lambda: nfs.ErrorRateSelector(k=3, n_tokens=10),
    "bernoulli": lambda: nfs.SparseBernoulliNB(k=3, binarize=0.5),
    "l2": lambda: nfs.SparseCentroid(k=3),
    "within": lambda: nfs.SparseCentroid(k=3, metric="mahalanobis"),
    "total": lambda: nfs.SparseCentroid(k=3, metric="mahalanobis", covariance="total"),
}
OF_MOMENTS = {"l2", "within", "total"}


def rows(seed: int, signed: bool) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.gamma(1, 1, (30, 6)) * (rng.random((30, 6)) < 0.7)
    return (X * rng.choice([-1, 1], X.shape) if signed else X), np.arange(30) % 2


def without(name: str, parts: list[tuple[Any, ...]], forgotten: int) -> tuple[Any, str]:
    """Fitted to all parts one by one, one of which it then forgets, or why not. A part is rows, labels and weights."""
    model = MODELS[name]()
    for X, y, *weights in parts:
        model.partial_fit(X, y, [0, 1], *weights)
    X, y, *weights = parts[forgotten]
    try:
        return model.forget(X, y, *weights), ""
    except InputError as error:
        return None, str(error)


def assert_like(model: Any, name: str, X: np.ndarray, y: np.ndarray) -> None:
    alone = MODELS[name]().fit(X, y)
    np.testing.assert_array_equal(model.get_support(), alone.get_support())
    assert model.objective_ == pytest.approx(alone.objective_, rel=1e-7)
    np.testing.assert_allclose(model.scores_, alone.scores_, rtol=1e-5, atol=1e-9 * np.max(alone.scores_))


@pytest.mark.parametrize(("name", "place"), each_once(MODELS, [0, 1]))
def test_values_of_any_size_are_forgotten_or_not_at_all(name: str, place: int) -> None:
    refused = []
    for seed, power in enumerate([0, 3, 5, 7, 8, 9, 12, 16, 20, 30, 60, 140]):
        X, y = rows(seed, name in OF_MOMENTS)
        huge = np.zeros((1, 6))
        huge[0, seed % 3 :: 2] = 1.5 * 10.0**power
        parts = [(X, y), (np.append(huge, X[:1], axis=0), np.array([1, 0]))]
        if name == "error" and not place:  # it needs documents of both classes to begin with
            parts[1] = (np.append(huge, X[:1], axis=0), np.array([0, 1]))
        parts = parts[::-1] if place == 0 else parts
        model, why = without(name, parts, place)
        if model is None:
            assert "lost the digits" in why and "anew" in why
            refused.append(power)
        else:
            assert_like(model, name, X, y)
    assert not refused or min(refused) > (16 if name in OF_MOMENTS else 5)
    assert (140 in refused) == (name != "bernoulli")


@pytest.mark.parametrize("name", MODELS)
def test_weights_of_any_size_are_forgotten_or_not_at_all(name: str) -> None:
    for power in (0, 4, 9, 15, 25, 40, 100):
        X, y = rows(power, name in OF_MOMENTS)
        model, why = without(name, [(X, y, np.ones(30)), (X[:3], y[:3], np.full(3, 1.5 * 10.0**power))], 1)
        assert (model is None) == ("lost the digits" in why)
        if model is not None:
            assert_like(model, name, X, y)


@pytest.mark.parametrize("name", MODELS)
def test_what_only_forgotten_documents_had_is_gone(name: str) -> None:
    X, y = rows(1, name in OF_MOMENTS)
    X[:, 4:] = 0
    more = np.linspace(0.1, 3.7, 60).reshape(10, 6) / 7  # of which the others have nothing in two columns
    assert_like(without(name, [(X, y), (more, np.arange(10) % 2)], 1)[0], name, X, y)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the predicted error")
@pytest.mark.parametrize("name", MODELS)
def test_many_sizes_and_splits(name: str) -> None:
    refused = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        X, y = rows(seed, name in OF_MOMENTS)
        X *= 10.0 ** rng.integers(-3, 4, 6) if rng.random() < 0.3 else 1
        more = 10 ** rng.uniform(0, rng.choice([3, 10, 20, 40, 100])) * rng.random((4, 6)) * (rng.random((4, 6)) < 0.6)
        parts = [(X, y), (more, np.array([0, 1, 1, 0]))]
        place = int(rng.integers(2))
        model, why = without(name, parts if place else parts[::-1], place)
        if model is None:
            assert "lost the digits" in why or "scale" in why
            refused += 1
        else:
            assert_like(model, name, X, y)
    assert refused < 300
