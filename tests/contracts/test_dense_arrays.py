"""Dense arrays: the same models as of sparse ones, at the price of a few looks at the values."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import NearestCentroid

import nfs_dask as nfs

RNG = np.random.default_rng(0)
Y = RNG.integers(0, 3, 400)
COUNTS = RNG.poisson(0.5 + (np.arange(40) % 3 == Y[:, None]), (400, 40))
WEIGHTS = RNG.integers(1, 5, 400)
MODELS = [
    nfs.SparseMultinomialNB(k=7),
    nfs.SparseBernoulliNB(k=7, binarize=0.0),
    nfs.SparseCentroid(k=7),
    nfs.SparseCentroid(k=7, metric="mahalanobis"),
    nfs.SparseCentroid(k=7, metric="manhattan"),
]


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["", "weighted"])
def test_counts_are_the_same_to_the_bit_however_they_lie(model: Any, weights: Any) -> None:
    wanted = model.fit(sparse.csr_array(COUNTS), Y, sample_weight=weights).scores_.copy()
    for dtype in ("float64", "float32", "uint8", "int16", "uint64"):
        for X in (COUNTS.astype(dtype), np.asfortranarray(COUNTS.astype(dtype)), pd.DataFrame(COUNTS.astype(dtype))):
            np.testing.assert_array_equal(model.fit(X, Y, sample_weight=weights).scores_, wanted)


@pytest.mark.parametrize("weights", [None, RNG.random(400)], ids=["", "weighted"])
def test_real_values_give_the_sums_of_numpy(weights: Any) -> None:
    X = COUNTS * RNG.random(COUNTS.shape)
    reference = MultinomialNB().fit(X, Y, sample_weight=weights)
    found = nfs.SparseMultinomialNB(k="all").fit(X, Y, sample_weight=weights)
    np.testing.assert_allclose(found.predict_log_proba(X), reference.predict_log_proba(X), rtol=1e-9, atol=1e-12)
    w = np.ones(len(X)) if weights is None else weights
    means = np.stack([np.average(X[c == Y], axis=0, weights=w[c == Y]) for c in range(3)])
    variances = np.stack([np.average((X[c == Y] - means[c]) ** 2, axis=0, weights=w[c == Y]) for c in range(3)])
    found = nfs.SparseCentroid(k="all").fit(X, Y, sample_weight=weights)
    np.testing.assert_allclose(found.centers_, means, rtol=1e-12)
    scaled = nfs.SparseCentroid(k="all", metric="mahalanobis").fit(X + 1e6, Y, sample_weight=weights)
    assert (variances > 0).all()
    np.testing.assert_allclose(scaled.centers_, means + 1e6, rtol=1e-12)
    same = nfs.SparseCentroid(k="all", metric="mahalanobis").fit(X, Y, sample_weight=weights)
    np.testing.assert_allclose(scaled.scores_, same.scores_, rtol=1e-6)  # 1e6 takes six digits of X


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_named_where_it_lies(model: Any, bad: float) -> None:
    for X in (COUNTS.astype(float), COUNTS * 0.5):
        X[123, 17] = bad
        with pytest.raises(nfs.errors.InputError, match="row 123, column 17"):
            model.fit(X, Y)


def test_negative_values_are_named_by_naive_bayes_only() -> None:
    for X in (COUNTS.astype(float), COUNTS * 0.5, COUNTS.astype("int8")):
        X[123, 17] = -1
        with pytest.raises(nfs.errors.InputError, match="negative value .*row 123, column 17"):
            nfs.SparseMultinomialNB(k=7).fit(X, Y)
        nfs.SparseCentroid(k=7).fit(X, Y)


def test_whole_numbers_of_any_size_are_counted_exactly() -> None:
    X = np.array([[2**52, 1, 2], [1, 1, 0], [1, 1, 3], [2**52, 1, 5], [1, 1, 5], [3, 1, 5]])
    y = [0, 0, 0, 1, 1, 1]
    found = nfs.SparseMultinomialNB(k=2).fit(X.astype(float), y)
    wanted = nfs.SparseMultinomialNB(k=2).fit(sparse.csr_array(X), y)
    np.testing.assert_array_equal(found.scores_, wanted.scores_)


def seconds(work: Callable[[], Any]) -> float:
    """Processor seconds of the fastest of a few runs."""
    work()
    found = []
    for _ in range(4):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


@pytest.mark.parametrize("values", ["counts", "real"])
def test_a_fit_costs_about_as_much_as_scikit_learns(values: str) -> None:
    X, y = RNG.poisson(0.3, (100_000, 100)).astype(float), RNG.integers(0, 2, 100_000)
    if values == "real":
        X *= RNG.random(X.shape)
    pairs = [
        (nfs.SparseMultinomialNB(k=20), MultinomialNB()),
        (nfs.SparseCentroid(k=20), NearestCentroid()),
        (nfs.SparseCentroid(k=20, metric="manhattan"), NearestCentroid(metric="manhattan")),
    ]
    for ours, theirs in pairs:
        assert seconds(lambda model=ours: model.fit(X, y)) < 2 * seconds(lambda model=theirs: model.fit(X, y)), ours


def test_a_warm_cluster_is_asked_for_sums_only(cluster: Any) -> None:
    from distributed import get_task_stream, wait

    def fitted(X: Any, y: Any) -> tuple[Any, set[str]]:
        with get_task_stream(cluster) as stream:
            model = nfs.SparseMultinomialNB(k=7).fit(X, y)
        return model, {str(task["key"]) for task in stream.data}

    X, y = da.from_array(COUNTS.astype(float), chunks=(50, 40)), da.from_array(Y, chunks=50)
    X, y, others = cluster.persist([X, y, (y + 1) % 3])
    wait([X, y, others])
    wanted = nfs.SparseMultinomialNB(k=7).fit(COUNTS, Y)
    found, tasks = fitted(X, y)
    assert any("classes" in key for key in tasks)
    again, tasks = fitted(X, y)
    assert not any("classes" in key or "warm" in key for key in tasks)
    assert len(tasks) <= 8 + 2  # chunks, and merges
    for model in (found, again):
        np.testing.assert_array_equal(model.scores_, wanted.scores_)
    moved, tasks = fitted(X, others)
    assert any("classes" in key for key in tasks)
    np.testing.assert_array_equal(moved.class_count_, np.roll(wanted.class_count_, 1))
