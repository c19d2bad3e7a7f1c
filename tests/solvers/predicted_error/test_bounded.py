"""Branch and bound against every set there is, where bounds are tightest: few tokens, rare classes, absent features."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.special import erfc

import nfs_dask as nfs
from nfs_dask.solvers.predicted_error.bounded import bounded
from nfs_dask.solvers.predicted_error.error_kernels import ALIKE
from nfs_dask.solvers.predicted_error.estimate import ErrorProblem
from nfs_dask.solvers.predicted_error.searches import best_individual, floating, forward

Long = np.longdouble  # of more digits than what is tested, where the machine has such


def log_ratios(p: Any, q: Any) -> Any:
    apart = np.abs(p - q) > ALIKE * np.maximum(p, q)
    near = np.log1p(np.maximum((p - q) / q, -0.5))
    return np.where(apart, np.where(p > q / 2, near, np.log(p / q)), 0)


def errors_of_sets(problem: ErrorProblem, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """All sets of k of the first n features, and their predicted errors by the textbook formula."""
    sets = np.array(list(itertools.combinations(range(n), k)), int).reshape(-1, k)
    kept = np.zeros((len(sets), n), bool)
    np.put_along_axis(kept, sets, True, axis=1)
    P = problem.P.astype(Long)
    rest = ~kept @ P[:, :n].T + P[:, n:].sum(axis=1)
    some, classes = (rest > 0).all(axis=1), range(len(P))
    errors = np.zeros(len(sets))
    for j, (m, share) in itertools.product(classes, zip(problem.lengths.values, problem.lengths.shares, strict=True)):
        right = np.ones(len(sets))
        for i in set(classes) - {j}:
            a = log_ratios(P[j, :n], P[i, :n])
            a_rest = np.where(some, log_ratios(*np.where(some, rest[:, [j, i]].T, 1)), 0)
            mean = kept @ (P[j, :n] * a) + rest[:, j] * a_rest
            variance = (kept * (a - mean[:, None]) ** 2) @ P[j, :n] + rest[:, j] * (a_rest - mean) ** 2
            ahead = m * mean - problem.thresholds[j, i]
            certain = (ahead < 0) | ((ahead == 0) & (j > i))
            spread = np.where(m * variance > 0, m * variance, 1)
            wrong = np.where(m * variance > 0, erfc((ahead / np.sqrt(2 * spread)).astype(float)) / 2, certain)
            right *= 1 - wrong
        errors += share * problem.prior[j] * (1 - right)
    return sets, errors


def smoothed(counts: Any, alpha: float, absent: int, lengths: Any, prior: Any) -> ErrorProblem:
    counts = counts + alpha
    if absent:  # what was never seen is one more feature, and no candidate
        counts = np.append(counts, np.full((len(counts), 1), alpha * absent), axis=1)
    return ErrorProblem.of(counts / counts.sum(axis=1, keepdims=True), lengths, prior)


def rare_classes(rng: np.random.Generator) -> tuple[ErrorProblem, int]:
    """Priors decide nearly alone, and what was never seen speaks for a rare class."""
    n_classes, n = int(rng.choice([2, 2, 3])), int(rng.integers(4, 9))
    counts = rng.integers(0, 6, (n_classes, n))
    counts[0] = rng.integers(20, 200, n)
    others = rng.uniform(0.01, 0.2, n_classes - 1) / (n_classes - 1)
    lengths = float(rng.choice([1, 2, 3, 4, 6, 10]))
    alpha = float(10 ** rng.uniform(-0.5, 1.3))
    return smoothed(counts, alpha, int(rng.integers(1, 9)), lengths, np.append(1 - others.sum(), others)), n


def any_kind(rng: np.random.Generator) -> tuple[ErrorProblem, int]:
    n_classes = int(rng.choice([2, 2, 2, 3, 4]))
    n = int(rng.integers(2, 9 if n_classes == 2 else 7))
    counts = [
        lambda: rng.poisson(10 ** rng.uniform(-0.5, 2.5) * n * rng.dirichlet(np.full(n, 0.5), n_classes)),
        lambda: rng.integers(0, 7, (n_classes, n)),
        lambda: np.outer(rng.integers(1, 40, n_classes), rng.integers(1, 200, n)) + rng.integers(0, 3, (n_classes, n)),
        lambda: rng.integers(0, 2, (n_classes, n)) * np.round(10 ** rng.uniform(0, 6, (n_classes, n))),
        lambda: np.outer(rng.integers(1, 4, n_classes), rng.integers(1, 9, n)) + (rng.random((n_classes, n)) < 0.2),
    ][rng.integers(5)]()
    alpha = float(rng.choice([0.1, 1, 5, 10 ** rng.uniform(-9, 2.5)]))  # below, rounding is all that tells some apart
    prior = [None, rng.dirichlet(np.ones(n_classes)), rng.dirichlet(np.full(n_classes, 0.15))][rng.integers(3)]
    if prior is not None:
        prior = np.maximum(prior, 1e-12) / np.maximum(prior, 1e-12).sum()
    lengths = [0, 1, 3, 10, 100, 10**4, 10**6, {1: 1, 30: 2}, float(10 ** rng.uniform(-1, 6))][rng.integers(9)]
    return smoothed(counts, alpha, int(rng.choice([0, 0, 1, 5, 1000])), lengths, prior), n


def worst_excess(cases: range, kind: Any) -> float:
    """By how much what was found and said to be the best is worse than the best, relative to it.

    Of classes that are all but equal, rounding is felt in the eighth digit; of errors below 1e-9, here in the seventh.
    """
    worst = 0.0
    for case in cases:
        rng = np.random.default_rng(case)
        problem, n = kind(rng)
        found = bounded(problem, int(rng.integers(1, n + 1)), np.arange(n))
        sets, errors = errors_of_sets(problem, n, len(found.features))
        error = float(errors[(sets == found.features).all(axis=1)][0])
        assert found.optimal and found.error == pytest.approx(error, rel=1e-7, abs=1e-15)
        if error > 1e-9:
            worst = max(worst, error / float(errors.min()) - 1)
    return worst


@pytest.mark.parametrize("kind", [rare_classes, any_kind])
def test_no_set_is_better_than_the_one_that_is_said_to_be_best(kind: Any) -> None:
    assert worst_excess(range(250), kind) < 1e-7


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 19_000, 3000))
@pytest.mark.parametrize("kind", [rare_classes, any_kind])
def test_no_set_of_tens_of_thousands_of_problems_is_better(kind: Any, first: int) -> None:
    assert worst_excess(range(first, first + 3000), kind) < 1e-7


def test_features_that_are_absent_from_training_bound_the_variance_too() -> None:
    X = np.array([[114, 69, 172, 108, 43, 147, 142, 77] + [0] * 5, [3, 4, 2, 3, 0, 3, 3, 1] + [0] * 5])
    found = nfs.ErrorRateSelector(
        k=6, search="bounded", n_tokens=3, alpha=5.0, balanced=False, class_prior=[0.94, 0.06]
    ).fit(X, [0, 1])
    assert found.get_support(indices=True).tolist() == [0, 2, 3, 5, 6, 7]
    assert found.error_ == pytest.approx(0.05601, abs=1e-5) and found.certified_


@pytest.mark.parametrize("alpha", [1e-20, 1e-30, 1e-100, 1e-290])
def test_what_is_left_of_nearly_everything_is_never_less_than_a_feature(alpha: float) -> None:
    """Subtracted from 1, the rest of a class may come out as nothing, or as less."""
    rng = np.random.default_rng(7)
    for _ in range(30):
        n_classes, n = int(rng.integers(2, 4)), int(rng.integers(2, 7))
        counts = rng.poisson(2, (n_classes, n)) * (rng.random((n_classes, n)) < 0.5)
        problem = smoothed(counts, alpha, 0, int(rng.integers(1, 20)), None)
        least = errors_of_sets(problem, n, n - 1)[1].min()
        for search in (best_individual, forward, floating, bounded):
            assert search(problem, n - 1).error >= least * (1 - 1e-9) - 1e-15
        assert bounded(problem, n - 1).error == pytest.approx(least, rel=1e-9, abs=1e-15)
