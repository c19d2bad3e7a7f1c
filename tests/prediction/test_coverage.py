"""Accuracy over coverage and calibration against reference vectors, enumeration and plain loops."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfs_dask.errors import InputError
from nfs_dask.prediction.coverage import N_BINS, CoverageCounts, Reliability, accuracy_coverage, class_numbers, judge

EXACT = {"rtol": 0, "atol": 1e-15}


def test_reference_vectors(golden: Any) -> None:
    for case in golden("accuracy_coverage.json"):
        curve = accuracy_coverage(case["inputs"]["score"], case["inputs"]["y"])
        np.testing.assert_allclose(curve.coverage, case["expected"]["coverage"], **EXACT, err_msg=case["id"])
        np.testing.assert_allclose(curve.accuracy, case["expected"]["accuracy"], **EXACT, err_msg=case["id"])


def test_reference_vectors_of_the_hybrid(golden: Any) -> None:
    for case in golden("hybrid.json"):
        for answer in case["expected"].values():
            for fit in answer["fits"]:
                if "theta" in fit:
                    # Features of documents that are told apart by rounding alone are ties.
                    odds = (np.array(answer["loo_b"]) @ fit["theta"]).round(12)
                    curve = accuracy_coverage(odds, case["inputs"]["y"])
                    np.testing.assert_allclose(curve.coverage, fit["loo_coverage"], **EXACT)
                    np.testing.assert_allclose(curve.accuracy, fit["loo_accuracy"], **EXACT)


@given(st.lists(st.tuples(st.integers(-2, 2), st.booleans()), min_size=1, max_size=6), st.integers(0, 1))
def test_ties_are_the_mean_over_all_orders(documents: list[tuple[int, bool]], at_zero: int) -> None:
    hits = [(abs(score), (score > 0 or (score == 0 and at_zero == 1)) == y) for score, y in documents]
    orders = [
        [right for _, right in order]
        for order in itertools.permutations(hits)
        if all(a[0] >= b[0] for a, b in itertools.pairwise(order))
    ]
    curve = accuracy_coverage(*map(np.array, zip(*documents, strict=True)), at_zero=at_zero, classes=[0, 1])
    for j in range(1, len(hits) + 1):
        mean = Fraction(sum(sum(order[:j]) for order in orders), len(orders) * j)
        assert curve.accuracy[j - 1] == pytest.approx(float(mean), abs=1e-15)


@given(st.integers(0, 2**32 - 1))
def test_the_order_of_documents_is_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, y = rng.integers(-3, 4, 30), rng.integers(0, 2, 30)
    order = rng.permutation(30)
    left, right = accuracy_coverage(scores, y), accuracy_coverage(scores[order], y[order])
    np.testing.assert_array_equal(left.accuracy, right.accuracy)


def test_scores_of_each_class_are_ordered_by_log_odds() -> None:
    rng = np.random.default_rng(1)
    scores, y = rng.normal(size=(40, 2)) * 5, rng.integers(0, 2, 40)
    two = accuracy_coverage(scores, y)
    np.testing.assert_array_equal(two.accuracy, accuracy_coverage(scores[:, 1] - scores[:, 0], y).accuracy)

    scores, y = rng.normal(size=(40, 4)) * 5, rng.integers(0, 4, 40)
    posteriors = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    confidence, right = judge(scores, y)
    best = posteriors.max(axis=1)
    np.testing.assert_allclose(confidence, np.log(best / (1 - best)), rtol=1e-9)
    np.testing.assert_array_equal(right, posteriors.argmax(axis=1) == y)


def test_certainties_are_told_apart() -> None:
    """Posteriors of all three are 1.0 in floating point; only the least certain is wrong."""
    curve = accuracy_coverage(np.array([[0, 50.0, 0], [0, 40.0, 0], [0, 900.0, -np.inf]]), [1, 0, 1], classes=[0, 1, 2])
    np.testing.assert_allclose(curve.accuracy, [1, 1, 2 / 3])
    confidence, _ = judge(np.array([[-np.inf, 3.0, -np.inf], [1.0, 1.0, -np.inf]]), np.array([1, 0]))
    assert confidence.tolist() == [np.inf, 0.0]


def test_labels_are_matched_with_classes() -> None:
    assert class_numbers(["b", "a", "b"], 2).tolist() == [1, 0, 1]
    assert class_numbers([7, 3, 3], 2).tolist() == [1, 0, 0]
    assert class_numbers([True, True], 2).tolist() == [1, 1]
    assert class_numbers([2, 0], 3).tolist() == [2, 0]
    assert class_numbers(["z", "b", "a"], 3, ["b", "z", "c"]).tolist() == [1, 0, -1]
    assert class_numbers([-1, 1], 2, np.array([-1, 1])).tolist() == [0, 1]
    for y, classes, message in (
        (["a"], None, "1 labels, the scores are of 2 classes"),
        ([5, 5], None, "1 labels"),
        ([0, 1, 2], None, "3 labels"),
        ([0, 1], [0, 1, 2], "3 classes, but scores of 2"),
        (["0", "1"], [0, 1], "no label would agree"),
    ):
        with pytest.raises(InputError, match=message):
            class_numbers(y, 2, classes)


def test_reading_a_curve() -> None:
    curve = accuracy_coverage([4.0, -3, 2, 1, 0.5], [1, 0, 0, 1, 0])
    np.testing.assert_allclose(curve.accuracy, [1, 1, 2 / 3, 3 / 4, 3 / 5])
    assert (curve.at_accuracy(0.9), curve.at_accuracy(0.75), curve.at_accuracy(0.1)) == (0.4, 0.8, 1.0)
    assert accuracy_coverage([1.0], [0]).at_accuracy(0.5) == 0.0
    assert (curve.at_coverage(0), curve.at_coverage(0.4), curve.at_coverage(1)) == (1, 1, pytest.approx(0.6))
    assert curve.at_coverage(0.5) == pytest.approx(2 / 2.5)
    with pytest.raises(InputError, match="coverage 1.5"):
        curve.at_coverage(1.5)
    found = json.loads(json.dumps(curve.to_json(points=5)))
    assert found["n"] == 5 and found["at_accuracy"] == {"0.9": 0.4, "0.95": 0.4, "0.99": 0.4}
    np.testing.assert_allclose(found["accuracy"], curve.accuracy)
    np.testing.assert_allclose(found["coverage"], curve.coverage)


def histogram(scores: np.ndarray, codes: np.ndarray) -> CoverageCounts:
    return CoverageCounts.of(*judge(scores, codes))


def test_histograms_add_up_and_their_points_are_exact() -> None:
    rng = np.random.default_rng(2)
    scores, y = rng.standard_cauchy(20_000) * 3, rng.integers(0, 2, 20_000)
    y[np.abs(scores) > 2] = scores[np.abs(scores) > 2] > 0
    pieces = np.split(np.arange(20_000), [0, 10, 9_000])
    counts = reduce(add, [histogram(scores[piece], y[piece]) for piece in pieces])
    whole = histogram(scores, y)
    np.testing.assert_array_equal(counts.documents, whole.documents)
    np.testing.assert_array_equal(counts.right, whole.right)
    curve, exact = counts.curve(), accuracy_coverage(scores, y)
    assert curve.n == exact.n and curve.coverage[-1] == 1
    at = (curve.coverage * 20_000).round().astype(int) - 1
    np.testing.assert_array_equal(curve.accuracy, exact.accuracy[at])
    for accuracy in (0.7, 0.9, 0.95):
        assert exact.at_accuracy(accuracy) - 0.005 <= curve.at_accuracy(accuracy) <= exact.at_accuracy(accuracy)
    for coverage in (0.001, 0.2, 0.7, 1.0):
        assert curve.at_coverage(coverage) == pytest.approx(exact.at_coverage(coverage), abs=0.005)


def test_bins_keep_the_order_of_log_odds_and_are_narrow() -> None:
    inner = np.geomspace(2.0**-16, 2.0**24, 1_000)
    odds = np.concatenate([[0.0, 5e-324, 1e-9], inner, inner * 1.0015, [1e30, np.inf]])
    odds.sort()
    alone = [CoverageCounts.of(odds[i : i + 1], np.array([True])).right for i in range(len(odds))]
    bins = np.array([int(right.argmax()) for right in alone])
    assert np.all(np.diff(bins) >= 0)
    assert (bins[:3] == 0).all() and (bins[-2:] == N_BINS - 1).all()
    apart = odds[1:] > odds[:-1] * (1 + 1 / 512)
    assert np.all(np.diff(bins)[apart][3:-2] > 0)


def by_hand(posteriors: np.ndarray, codes: np.ndarray, bins: int) -> float:
    """The expected calibration error, bin by bin."""
    total, best = 0.0, posteriors.max(axis=1)
    right = posteriors.argmax(axis=1) == codes
    for b in range(bins):
        inside = (best * bins >= b) & ((best * bins < b + 1) | (b == bins - 1))
        if inside.any():
            total += inside.sum() * abs(right[inside].mean() - best[inside].mean())
    return total / len(codes)


@given(st.integers(0, 2**32 - 1))
def test_calibration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, n_classes, bins = int(rng.integers(1, 200)), int(rng.integers(2, 5)), int(rng.integers(1, 20))
    posteriors, codes = rng.dirichlet(np.full(n_classes, 0.4), n), rng.integers(0, n_classes, n)
    classes = range(n_classes)
    whole = Reliability.of(posteriors, codes, classes=classes, bins=bins)
    assert whole.expected_error == pytest.approx(by_hand(posteriors, codes, bins), abs=1e-8)
    order, cut = rng.permutation(n), int(rng.integers(0, n + 1))
    parts = [
        Reliability.of(posteriors[part], codes[part], classes=classes, bins=bins) for part in (order[:cut], order[cut:])
    ]
    for left, right in zip(vars(parts[1] + parts[0]).values(), vars(whole).values(), strict=True):
        np.testing.assert_array_equal(left, right)
    if n_classes == 2:
        ratio = Reliability.of(posteriors[:, 1], codes, classes=classes, bins=bins)
        assert ratio.expected_error == pytest.approx(whole.expected_error, abs=1e-8)


def test_a_table_of_reliability() -> None:
    found = Reliability.of([0.9, 0.95, 1.0, 0.25], ["yes", "no", "yes", "no"], classes=["no", "yes"], bins=4)
    assert found.to_json() == {
        "expected_calibration_error": pytest.approx(0.9 - 0.75, abs=1e-8),
        "reliability": [{"from": 0.75, "to": 1.0, "n": 4, "posterior": pytest.approx(0.9), "accuracy": 0.75}],
    }


def test_what_cannot_be_judged_is_refused() -> None:
    for call, message in (
        (lambda: accuracy_coverage([], [], classes=[0, 1]), "no documents"),
        (lambda: CoverageCounts.of(np.zeros(0), np.zeros(0, bool)).curve(), "no documents"),
        (lambda: accuracy_coverage([1.0, 2.0], [1], classes=[0, 1]), "2 scores but 1"),
        (lambda: accuracy_coverage([[0.0, 1.0], [np.nan, 1.0]], [0, 1]), "document 1 are NaN"),
        (lambda: accuracy_coverage([[0.0, 1.0], [-np.inf, -np.inf]], [0, 1]), "document 1 has a largest score of -inf"),
        (lambda: accuracy_coverage([[[1.0]]], [0]), "shape"),
        (lambda: Reliability.of([0.5, 1.5], [0, 1]), "document 1 has a posterior of 1.5"),
        (lambda: Reliability.of([0.5, np.nan], [0, 1]), "document 1 has a posterior of nan"),
        (lambda: Reliability.of([0.5], [0], classes=[0, 1], bins=0), "0 bins"),
        (lambda: Reliability.of([0.5], [0, 1]), "1 posteriors but 2"),
        (lambda: Reliability.of([0.5], [0], bins=2) + Reliability.of([0.5], [0], bins=3), "2 bins do not add to 3"),
        (lambda: Reliability.of([0.5], [0], classes=[0, 1]).__add__(_endless()), "exact for fewer"),
    ):
        with pytest.raises(InputError, match=message):
            call()


def _endless() -> Reliability:
    return Reliability(np.full(10, 1 << 40), np.zeros(10, np.int64), np.zeros(10, np.int64))
