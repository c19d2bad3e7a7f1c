"""The predicted error against reference vectors, enumeration, decimals of many digits, and simulation."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfs_dask.errors import InputError
from nfs_dask.solvers.predicted_error.estimate import VARIANCES, ErrorProblem, Lengths, estimate, token_moments
from nfs_dask.solvers.predicted_error.prefixes import prefix_errors, prefix_moments

NAMES = {"exact": "exact", "uncorrelated": "uncorrelated", "fixed26": "compensated"}


def shares(counts: Any) -> np.ndarray:
    counts = np.asarray(counts, float)
    return counts / counts.sum(axis=1, keepdims=True)


@st.composite
def problems(draw: Any, classes: int = 3, features: int = 7) -> ErrorProblem:
    n, d = draw(st.integers(2, classes)), draw(st.integers(1, features))
    counts = draw(st.lists(st.integers(1, 9), min_size=n * d, max_size=n * d))
    prior = draw(st.none() | st.lists(st.integers(1, 5), min_size=n, max_size=n))
    lengths = draw(st.sampled_from([0, 1, 7, 100, [3, 3, 9], {2: 1.5, 30: 0.5}]))
    return ErrorProblem.of(
        shares(np.reshape(counts, (n, d))), lengths, None if prior is None else np.divide(prior, sum(prior))
    )


def enumerated(problem: ErrorProblem, kept: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of L_ik under j, over every sequence of tokens of every length."""
    others = [d for d in range(problem.n_features) if d not in kept]
    P = np.concatenate((problem.P[:, kept], problem.P[:, others].sum(axis=1, keepdims=True)), axis=1)
    P = P if others else P[:, :-1]
    n, logs = len(P), np.log(P)
    first, second = np.zeros((n, n, n)), np.zeros((n, n, n))
    for m, share in zip(problem.lengths.values, problem.lengths.shares, strict=True):
        for tokens in itertools.product(range(P.shape[1]), repeat=int(m)):
            chance = share * P[:, list(tokens)].prod(axis=1)
            score = logs[:, list(tokens)].sum(axis=1)
            ahead = (score[:, None] - score[None, :])[:, :, None]
            first += ahead * chance
            second += ahead**2 * chance
    return first, second - first**2


def test_reference_vectors(golden: Any) -> None:
    for case in golden("error_estimate.json"):
        inputs, expected = case["inputs"], case["expected"]
        if "P" not in inputs:
            for name in VARIANCES:
                mean, variance = token_moments(np.array([inputs["p"]]), np.zeros(1), np.array(inputs["a"]), 0.0, name)
                np.testing.assert_allclose(inputs["m"] * np.append(mean, variance), expected[name], rtol=1e-12)
            continue
        problem = ErrorProblem.of(inputs["P"], inputs["m"], inputs["prior"])
        prior = problem.prior
        for mode, name in NAMES.items():
            found, answer = estimate(problem, np.array(inputs["subset"]), name), expected["modes"][mode]
            np.testing.assert_allclose(found.detection, answer["detect"], rtol=1e-10, atol=1e-13, err_msg=case["id"])
            for pair in answer["pairs"]:
                where = pair["i"], pair["k"], pair["j"]
                assert found.mean[where] == pytest.approx(pair["mean"], rel=1e-12, abs=1e-12)
                assert found.variance[where] == pytest.approx(pair["var"], rel=1e-12)
                assert found.pairwise[where] == pytest.approx(pair["prob"], rel=1e-12, abs=1e-15)
            right = prior @ np.diag(found.detection)
            assert 1 - right / (found.detection @ prior).sum() == pytest.approx(answer["error_eq34"], rel=1e-12)
            if problem.n_classes == 2:
                assert found.error == pytest.approx(answer["error_eq34"], rel=1e-12)
            else:
                assert found.error == pytest.approx(1 - right, rel=1e-12)


def test_leaving_out_the_normalisation_is_nearer_to_the_truth(golden: Any) -> None:
    off = []
    for case in golden("error_estimate.json"):
        inputs = case["inputs"]
        if len(inputs.get("P", ())) > 2:
            found = estimate(ErrorProblem.of(inputs["P"], inputs["m"], inputs["prior"]), np.array(inputs["subset"]))
            truth = case["expected"]["exact_error_enumerated"]
            off.append((abs(found.error - truth), abs(case["expected"]["modes"]["exact"]["error_eq34"] - truth)))
    assert len(off) == 3
    assert np.mean(off, axis=0)[0] < np.mean(off, axis=0)[1]


def test_reference_curve(golden: Any) -> None:
    file = golden("error_curve.npz")
    problem, order = ErrorProblem.of([file["p1"], file["p2"]], int(file["m"])), np.arange(500)
    for name, key in (("exact", "error"), ("uncorrelated", "error_unc"), ("compensated", "error_fixed26")):
        np.testing.assert_allclose(prefix_errors(problem, order, name)[file["sizes"]], file[key], rtol=1e-12)
    for j in (0, 1):
        mean, variance = prefix_moments(problem, order, 0, 1, j)
        np.testing.assert_allclose(mean[file["sizes"]], file[f"mean{j + 1}"], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(variance[file["sizes"]], file[f"var{j + 1}"], rtol=1e-12, atol=1e-14)


@given(problems(features=3), st.data())
def test_moments_are_those_of_all_documents_there_can_be(problem: ErrorProblem, data: Any) -> None:
    kept = data.draw(st.lists(st.integers(0, problem.n_features - 1), unique=True))
    lengths = data.draw(st.sampled_from([4, {0: 1, 2: 3, 5: 2}]))
    problem = ErrorProblem.of(problem.P, lengths, problem.prior)
    found = estimate(problem, np.array(kept, int))
    mean, variance = enumerated(problem, kept)
    np.testing.assert_allclose(found.mean, mean, atol=1e-12)
    np.testing.assert_allclose(found.variance, variance, atol=1e-11)


@given(problems())
def test_moments_follow_from_the_covariance_of_tokens(problem: ErrorProblem) -> None:
    """Equation (10), in O(D^2); and every L_ik is a difference of two class likelihoods."""
    problem = ErrorProblem.of(problem.P, 7, problem.prior)
    found, logs = estimate(problem), np.log(problem.P)
    for j, p in enumerate(problem.P):
        covariance = 7 * (np.diag(p) - np.outer(p, p))
        np.testing.assert_allclose(found.class_mean[:, j], 7 * logs @ p, rtol=1e-12)
        expected = [a @ covariance @ a for a in logs]
        np.testing.assert_allclose(found.class_variance[:, j], expected, atol=1e-11)
        for i, k in itertools.permutations(range(len(logs)), 2):
            a = logs[i] - logs[k]
            assert found.variance[i, k, j] == pytest.approx(a @ covariance @ a, abs=1e-11)
            assert found.mean[i, k, j] == pytest.approx(found.class_mean[i, j] - found.class_mean[k, j], abs=1e-11)


def test_the_compensated_variance_is_exact_where_all_kept_features_are_worth_the_same() -> None:
    p, rest = np.array([[0.1, 0.2, 0.05], [0.3, 0.1, 0.3]]), np.array([0.65, 0.3])
    for worth in (0.7, -2.0):
        exact, made_up = (token_moments(p, rest, np.full(3, worth), 0.3, name) for name in ("exact", "compensated"))
        np.testing.assert_allclose(made_up, exact, rtol=1e-13)
    for name in ("uncorrelated", "compensated"):
        mean, variance = token_moments(p[:, :0], np.ones(2), np.zeros(0), 0.0, name)
        assert not mean.any() and not variance.any()


def paper_problem(n_documents: int) -> tuple[ErrorProblem, list[np.ndarray]]:
    """Two classes over 500 features that differ on the first 150, ten tokens; and tokens of documents of each class."""
    rng = np.random.default_rng(7)
    first = 1 + 0.8 * np.sin(np.arange(500) / 15)
    second = first.copy()
    second[:150] = (1 + 0.9 * np.cos(np.arange(150) / 20)) * first[:150].sum() / 170
    P = shares([first, second * (first.sum() / second.sum())])
    P[1, 150:] *= P[0, 150:].sum() / P[1, 150:].sum()
    problem = ErrorProblem.of(shares(P), 10)
    return problem, [rng.choice(500, (n_documents, 10), p=p) for p in problem.P]


def test_simulated_documents() -> None:
    n = 40_000
    problem, documents = paper_problem(n)
    errors = prefix_errors(problem, np.arange(500))
    curves = [prefix_moments(problem, np.arange(500), 0, 1, j) for j in (0, 1)]
    for size in (5, 50, 100, 150, 200, 500):
        worth = np.log(problem.P[0] / problem.P[1])
        worth[size:] = np.log(problem.P[0, size:].sum() / problem.P[1, size:].sum()) if size < 500 else 0.0
        wrong = []
        for j, tokens in enumerate(documents):
            ahead = worth[tokens].sum(axis=1)
            mean, variance = curves[j][0][size], curves[j][1][size]
            squares = (ahead - mean) ** 2
            assert abs(ahead.mean() - mean) < 4 * math.sqrt(variance / n), (size, j)
            assert abs(squares.mean() - variance) < 4 * squares.std() / math.sqrt(n), (size, j)
            wrong.append(np.mean(ahead < 0 if j == 0 else ahead > 0) + np.mean(ahead == 0) / 2)
        if size >= 150:  # with fewer features the normal distribution is what errs
            assert abs(np.mean(wrong) - errors[size]) < 4 * math.sqrt(errors[size] / (2 * n)), size
    np.testing.assert_allclose(errors[150:], errors[150], rtol=1e-6)  # the others tell nothing apart


@given(problems(), st.data())
def test_prefixes_are_sets(problem: ErrorProblem, data: Any) -> None:
    order = np.array(data.draw(st.permutations(range(problem.n_features))))
    name = data.draw(st.sampled_from(list(VARIANCES)))
    i, k, j = (data.draw(st.integers(0, problem.n_classes - 1)) for _ in range(3))
    errors, (means, variances) = prefix_errors(problem, order, name), prefix_moments(problem, order, i, k, j, name)
    for size in range(len(order) + 1):
        found = estimate(problem, order[:size], name)
        assert errors[size] == pytest.approx(found.error, rel=1e-9, abs=1e-12)
        assert means[size] == pytest.approx(found.mean[i, k, j], rel=1e-12, abs=1e-12)
        assert variances[size] == pytest.approx(found.variance[i, k, j], rel=1e-11, abs=1e-11)


@given(problems(), st.data())
def test_more_features_never_speak_less_for_the_true_class(problem: ErrorProblem, data: Any) -> None:
    order = np.array(data.draw(st.permutations(range(problem.n_features))))
    for j, k in itertools.permutations(range(problem.n_classes), 2):
        means, _ = prefix_moments(problem, order, j, k, j)
        assert (np.diff(means) >= -1e-13 * problem.lengths.mean).all() and means[0] == 0


@given(problems())
def test_lengths_are_averaged(problem: ErrorProblem) -> None:
    lengths = [3, 3, 9, 0]
    mixed = estimate(ErrorProblem.of(problem.P, lengths, problem.prior))
    assert mixed.error == pytest.approx(estimate(ErrorProblem.of(problem.P, {3: 4, 9: 2, 0: 2}, problem.prior)).error)
    alone = [estimate(ErrorProblem.of(problem.P, m, problem.prior)) for m in lengths]
    assert mixed.error == pytest.approx(np.mean([one.error for one in alone]))
    np.testing.assert_allclose(mixed.detection, np.mean([one.detection for one in alone], axis=0), atol=1e-14)
    np.testing.assert_allclose(mixed.mean, np.mean([one.mean for one in alone], axis=0), atol=1e-12)
    second = np.mean([one.variance + one.mean**2 for one in alone], axis=0)
    np.testing.assert_allclose(mixed.variance, second - mixed.mean**2, atol=1e-11)


@pytest.mark.parametrize("prior", [[0.5, 0.5], [0.3, 0.7], [0.7, 0.3], [0.2, 0.2, 0.6], [1 / 3, 1 / 3, 1 / 3]])
def test_equal_classes_leave_the_prior_to_decide(prior: list[float]) -> None:
    p = np.array([0.1, 0.2, 0.7])
    equal = [p, p * (1 + 2e-16), p * (1 - 2e-16)][: len(prior)]  # but for rounding, which is no evidence
    problem = ErrorProblem.of(equal, 12, prior)
    assert estimate(problem).error == pytest.approx(1 - max(prior), rel=1e-12)
    assert prefix_errors(problem, np.arange(3)) == pytest.approx(1 - max(prior), rel=1e-12)
    assert estimate(ErrorProblem.of([[0.1, 0.9], [0.8, 0.2]], 0, [0.4, 0.6])).error == pytest.approx(0.4)


def test_a_class_without_a_prior_is_never_said() -> None:
    P = shares([[3, 1, 1], [1, 3, 1], [1, 1, 3]])
    found = estimate(ErrorProblem.of(P, 5, [0.5, 0.5, 0.0]))
    two = estimate(ErrorProblem.of(P[:2], 5))
    assert not found.detection[2].any()
    assert found.error == pytest.approx(two.error)
    assert estimate(ErrorProblem.of(P, 5, [0.0, 0.0, 1.0])).error == 0.0


def test_hardly_any_variance_and_hardly_any_error() -> None:
    """Where sums of squares cancel, and where 1 - probability would."""
    rare = 1e-9
    found = estimate(ErrorProblem.of([[1 - rare, rare], [rare, 1 - rare]], 1))
    with localcontext() as context:
        context.prec = 60
        p = Decimal(rare)
        a = ((1 - p) / p).ln()
        variance = (1 - p) * a**2 + p * a**2 - (a - 2 * p * a) ** 2
    assert found.variance[0, 1, 0] == pytest.approx(float(variance), rel=1e-12)
    problem = ErrorProblem.of([[0.9, 0.1], [0.1, 0.9]], 300)
    found = estimate(problem)
    expected = 0.5 * math.erfc(found.mean[0, 1, 0] / math.sqrt(2 * found.variance[0, 1, 0]))
    assert 0 < expected < 1e-80
    assert found.error == pytest.approx(expected, rel=1e-9)
    assert prefix_errors(problem, np.arange(2))[2] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0.5, 0.5], [0.0, 1.0]], 3), "feature 0 in class 1 is 0.0; all have to be positive, so smooth"),
        (([[0.5, 0.5], [np.nan, 1.0]], 3), "is nan"),
        (([[0.5, 0.5], [0.5, 0.6]], 3), "class 1 add up to 1.1 instead of 1"),
        (([[0.5, 0.5]], 3), "two or more classes"),
        ((np.full((2, 2, 2), 0.5), 3), r"shape \(2, 2, 2\)"),
        (([[0.5, 0.5]] * 2, 3, [0.5, 0.6]), "add up to 1"),
        (([[0.5, 0.5]] * 2, 3, [1.5, -0.5]), "prior="),
        (([[0.5, 0.5]] * 2, 3, [1.0]), "each of 2 classes"),
        (([[0.5, 0.5]] * 2, -1), "n_tokens=-1 is not a document length"),
        (([[0.5, 0.5]] * 2, []), "n_tokens="),
        (([[0.5, 0.5]] * 2, "ten"), "n_tokens='ten'"),
        (([[0.5, 0.5]] * 2, {3: 0}), "n_tokens="),
        (([[0.5, 0.5]] * 2, [1, np.inf]), "n_tokens="),
    ],
)
def test_what_is_no_problem_is_refused(arguments: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ErrorProblem.of(*arguments)


def test_features_and_variances_are_checked() -> None:
    problem = ErrorProblem.of([[0.5, 0.5]] * 2, 3)
    with pytest.raises(InputError, match="feature 1 is given twice"):
        prefix_errors(problem, np.array([1, 0, 1]))
    with pytest.raises(InputError, match="indices from 0 to 1"):
        prefix_errors(problem, np.array([2]))
    for call in (lambda: prefix_errors(problem, np.arange(2), "none"), lambda: estimate(problem, None, "none")):
        with pytest.raises(InputError, match="'none' is none of 'exact', 'uncorrelated', 'compensated'"):
            call()


def test_lengths() -> None:
    lengths = Lengths.of([5, 1, 5, 2])
    assert lengths.values.tolist() == [1, 2, 5] and lengths.shares.tolist() == [0.25, 0.25, 0.5]
    assert (lengths.mean, lengths.variance) == (3.25, pytest.approx(3.1875))
    assert Lengths.of({1: 0, 4: 1e300, 2: 1e300}).shares.tolist() == [0.5, 0.5]
