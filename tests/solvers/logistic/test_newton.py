"""The convex fit against reference vectors, scikit-learn, other optimisers, and linear programs of separability."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression

from nfs_dask.errors import InputError, NfsDaskError
from nfs_dask.solvers.logistic.likelihood import Derivatives, class_scores, derivatives, prior_offsets
from nfs_dask.solvers.logistic.newton import LogisticFit, newton_steps, solve


def fit(features: Any, codes: Any, weights: np.ndarray | None = None, **options: Any) -> LogisticFit:
    """A fit to documents in memory."""
    features, codes = np.asarray(features, float), np.asarray(codes)
    offsets = options.pop("offsets", None)
    evaluate = partial(derivatives, features, codes, weights=weights, offsets=offsets)
    n_classes = 2 if features.ndim == 2 else features.shape[2]
    return solve(newton_steps(np.bincount(codes, weights, n_classes), features.shape[1], **options), evaluate)


def by_class(features: np.ndarray) -> np.ndarray:
    """(n, R, 2) features of two classes as those of classes each."""
    return np.stack([np.zeros_like(features), features], axis=2)


def log_likelihood(
    theta: np.ndarray, features: np.ndarray, codes: np.ndarray, weights: np.ndarray, offsets: Any = 0.0
) -> float:
    """As it is written on paper."""
    n, _, n_classes = features.shape
    scores = np.append(0, theta[: n_classes - 1]) + np.tensordot(features, theta[n_classes - 1 :], ([1], [0])) + offsets
    return float(weights @ (scores[np.arange(n), codes] - logsumexp(scores, axis=1)))


def documents(
    rng: Any, n: int = 50, n_regions: int = 2, n_classes: int = 3
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    features = rng.normal(size=(n, n_regions, n_classes)) * rng.uniform(0.1, 10, n_regions)[:, None]
    codes = rng.integers(0, n_classes, n)
    codes[:n_classes] = np.arange(n_classes)
    return features, codes, rng.uniform(0, 3, n)


@pytest.mark.parametrize("name", ["normalised", "unnormalised"])
@pytest.mark.parametrize("view", [lambda b: b, by_class], ids=["ratios", "classes"])
def test_reference_vectors(golden: Any, view: Callable[[np.ndarray], np.ndarray], name: str) -> None:
    for case in golden("hybrid.json"):
        codes, expected = np.array(case["inputs"]["y"]), case["expected"][name]
        features = np.array(expected["loo_b"])[:, 1:]
        for answer in expected["fits"]:
            if "error" in answer:
                with pytest.raises(InputError, match="separable.*ridge > 0"):
                    fit(view(features), codes, ridge=answer["ridge"])
                continue
            found = fit(view(features), codes, ridge=answer["ridge"])
            np.testing.assert_allclose(found.theta, answer["theta"], rtol=1e-9, err_msg=case["id"])
            assert found.objective == pytest.approx(answer["objective"], abs=1e-10)
            if "loo_posterior" in answer:
                scores = class_scores(features, found.theta)[:, 1]
                np.testing.assert_allclose(1 / (1 + np.exp(-scores)), answer["loo_posterior"], rtol=1e-9)
            if "test_posterior" in answer:
                scores = class_scores(view(np.array(expected["test_b"])[:, 1:]), found.theta)
                odds = np.exp(scores[:, 1] - scores[:, 0])
                np.testing.assert_allclose(odds / (1 + odds), answer["test_posterior"], rtol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_derivatives_are_those_of_the_formula(n_classes: int) -> None:
    rng = np.random.default_rng(1)
    features, codes, weights = documents(rng, n_classes=n_classes)
    offsets = rng.normal(size=(50, n_classes))
    theta = rng.normal(size=n_classes + 1)
    found = derivatives(features, codes, theta, weights=weights, offsets=offsets)
    formula = partial(log_likelihood, features=features, codes=codes, weights=weights, offsets=offsets)
    assert found.log_likelihood == pytest.approx(formula(theta), rel=1e-13)
    for i, step in enumerate(np.eye(len(theta)) * 1e-5):
        assert found.gradient[i] == pytest.approx((formula(theta + step) - formula(theta - step)) / 2e-5, rel=1e-6)
        ahead, behind = (
            derivatives(features, codes, theta + s, weights=weights, offsets=offsets) for s in (step, -step)
        )
        np.testing.assert_allclose(found.hessian[i], (ahead.gradient - behind.gradient) / 2e-5, rtol=1e-6, atol=1e-6)


def test_two_classes_are_the_same_either_way() -> None:
    rng = np.random.default_rng(2)
    features, codes, weights = documents(rng, n_classes=2)
    theta, step, offsets = rng.normal(size=3), rng.normal(size=3), rng.normal(size=50)
    both = features, features[:, :, 1] - features[:, :, 0]
    wide = np.stack([np.zeros(50), offsets], axis=1)
    many, two = (
        derivatives(b, codes, theta, step, weights=weights, offsets=a)
        for b, a in zip(both, (wide, offsets), strict=True)
    )
    for left, right in zip(vars(many).values(), vars(two).values(), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-12)
    scores, ratios = (class_scores(b, theta, a) for b, a in zip(both, (wide, offsets), strict=True))
    np.testing.assert_allclose(scores[:, 1] - scores[:, 0], ratios[:, 1], rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_parts_add_up_to_the_whole(n_classes: int) -> None:
    rng = np.random.default_rng(4)
    features, codes, weights = documents(rng, n_classes=n_classes)
    theta, step = rng.normal(size=(2, n_classes + 1))
    whole = derivatives(features, codes, theta, step, weights=weights)
    parts = [
        derivatives(features[i:j], codes[i:j], theta, step, weights=weights[i:j])
        for i, j in itertools.pairwise([0, 7, 7, 30, 50])
    ]
    together = reduce(add, parts, Derivatives.zero(n_classes + 1))
    for left, right in zip(vars(together).values(), vars(whole).values(), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-12)
    scores = class_scores(features, step)
    margins = np.delete((scores[np.arange(50), codes][:, None] - scores).ravel(), np.arange(50) * n_classes + codes)
    assert whole.step_margin == pytest.approx(margins.min())
    assert whole.step_spread == pytest.approx(np.ptp(scores, axis=1).max())


@pytest.mark.parametrize("margin", [30.0, 200.0, 740.0, 5000.0, -30.0, -200.0, -740.0, -5000.0])
@pytest.mark.parametrize("view", [lambda b: b, by_class], ids=["ratios", "classes"])
def test_large_margins_keep_all_digits(view: Callable[[np.ndarray], np.ndarray], margin: float) -> None:
    """Far out, the log likelihood is -exp(-m) or m, and so are its derivatives: small, but not 0."""
    found = derivatives(view(np.array([[1.0]])), np.array([1]), np.array([0.0, margin]))
    tail = np.exp(-abs(margin))
    assert found.log_likelihood == pytest.approx(-tail if margin > 0 else margin, rel=1e-12)
    assert found.gradient[1] == pytest.approx(tail if margin > 0 else 1.0, rel=1e-12)
    curvature = -found.hessian[1, 1]
    # The curvature of a document that all but contradicts theta is lost beside 1 where classes are taken one by one.
    assert curvature == pytest.approx(tail, rel=1e-10, abs=0 if margin > 0 else 1e-15)


@pytest.mark.parametrize("ridge", [1e-3, 0.5])
def test_scikit_learn(ridge: float) -> None:
    rng = np.random.default_rng(5)
    features, codes, weights = documents(rng, 200, 3, 2)
    ratios = features[:, :, 1] - features[:, :, 0]
    theirs = LogisticRegression(C=1 / ridge, solver="newton-cholesky", tol=1e-12).fit(ratios, codes, weights)
    found = fit(ratios, codes, weights, ridge=ridge)
    np.testing.assert_allclose(found.theta, np.append(theirs.intercept_, theirs.coef_), rtol=1e-7)
    assert found.intercepts.tolist() == [0.0, found.theta[0]]
    np.testing.assert_allclose(found.slopes, theirs.coef_[0], rtol=1e-7)


@pytest.mark.parametrize("intercepts", [True, False])
@pytest.mark.parametrize("ridge", [0.0, 2.0])
def test_many_classes_against_another_optimiser(ridge: float, intercepts: bool) -> None:
    rng = np.random.default_rng(6)
    features, codes, weights = documents(rng, 80, 2, 4)
    offsets = prior_offsets(np.bincount(codes, weights), codes, np.minimum(weights, 1))
    found = fit(features, codes, weights, ridge=ridge, intercepts=intercepts, offsets=offsets)

    def loss(free: np.ndarray) -> float:
        theta = free if intercepts else np.append(np.zeros(3), free)
        return ridge / 2 * float(theta[3:] @ theta[3:]) - log_likelihood(theta, features, codes, weights, offsets)

    theirs = minimize(loss, np.zeros(5 if intercepts else 2), method="BFGS", options={"gtol": 1e-6})
    np.testing.assert_allclose(found.theta if intercepts else found.slopes, theirs.x, rtol=1e-4, atol=1e-5)
    assert found.objective == pytest.approx(-theirs.fun, rel=1e-9)
    assert intercepts or not found.intercepts.any()
    assert found.gradient <= 1e-10
    total = derivatives(features, codes, found.theta, weights=weights, offsets=offsets)
    np.testing.assert_allclose(
        (total.gradient - [0, 0, 0, *(ridge * found.slopes)])[0 if intercepts else 3 :], 0, atol=1e-8
    )


def is_separable(features: np.ndarray, codes: np.ndarray) -> bool:
    """A linear program: the most that margins add up to in a direction without a negative one."""
    n, _, n_classes = features.shape
    rows = []
    for i, c in itertools.product(range(n), range(n_classes)):
        if c != codes[i]:
            units = np.eye(n_classes)[codes[i]] - np.eye(n_classes)[c]
            rows.append(np.append(units[1:], features[i, :, codes[i]] - features[i, :, c]))
    M = np.array(rows)
    found = linprog(-M.sum(axis=0), -M, np.zeros(len(M)), bounds=(-1, 1), method="highs")
    assert found.status == 0
    return -found.fun > 1e-9


@settings(max_examples=150)
@given(st.integers(0, 2**32 - 1))
def test_separable_is_what_the_linear_program_says(seed: int) -> None:
    """Few documents on a coarse grid: separable, quasi-separable and overlapping ones are all frequent."""
    rng = np.random.default_rng(seed)
    n_classes, n_regions = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    n = int(rng.integers(n_classes, 14 * n_classes))
    features = rng.integers(-2, 3, (n, n_regions, n_classes)) * float(rng.choice([1e-3, 1.0, 1e3]))
    codes = rng.permutation(np.append(np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)))
    if rng.random() < 0.5:  # mostly right, so that many are separable with some on the border
        features[np.arange(n), :, codes] += features.max() / 2
    view = features[:, :, 1] - features[:, :, 0] if n_classes == 2 else features
    if is_separable(features, codes):
        with pytest.raises(InputError, match="separable"):
            fit(view, codes)
    else:
        assert fit(view, codes).gradient <= 1e-10


def test_quasi_separable_on_the_border() -> None:
    """Documents at 0 are of both classes: without them all others would be told apart, with them in the limit."""
    x = np.array([[-2.0], [-1], [0], [0], [0], [1], [3]])
    y = np.array([0, 0, 0, 1, 1, 1, 1])
    with pytest.raises(InputError, match="separable"):
        fit(x, y)
    y[-1] = 0
    assert np.isfinite(fit(x, y).theta).all()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("offset", [1e3, 1e5, 1e6, 1e7, 1e8, 1e10])
def test_separable_documents_are_refused_however_far_they_are_from_zero(n_classes: int, offset: float) -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        codes = np.append(np.arange(n_classes), rng.integers(0, n_classes, 20 - n_classes))
        features = np.zeros((20, 2, n_classes))
        features[np.arange(20), 0, codes] = 1 + rng.random(20)
        features += rng.permutation([offset, 0])[:, None] * rng.random(n_classes)
        view = features[:, :, 1] - features[:, :, 0] if n_classes == 2 else features
        with pytest.raises(InputError, match="ridge > 0"):
            fit(view, codes)
        assert np.isfinite(fit(view, codes, ridge=0.1).theta).all()


def test_one_document_among_many_makes_the_difference() -> None:
    rng = np.random.default_rng(7)
    x = rng.normal(size=(5000, 1))
    y = (x[:, 0] > 0).astype(int)
    with pytest.raises(InputError, match="separable"):
        fit(x, y)
    y[np.argmax(x)] = 0
    found = fit(x, y)
    assert found.gradient <= 1e-10 and found.theta[1] > 0


def test_nearly_separable_is_fitted() -> None:
    """The classes overlap by a billionth of their distance."""
    x, y = np.array([[-1.0], [1e-9], [-1e-9], [1.0]]), np.array([0, 0, 1, 1])
    found = fit(x, y)
    assert found.theta[0] == pytest.approx(0, abs=1e-6)
    # Slope t solves 2 / (1 + exp(t)) = 2e-9 / (1 + exp(-1e-9 t)), so exp(t) + 1 = 2e9.
    assert found.theta[1] == pytest.approx(np.log(2e9 - 1), rel=1e-6)


def test_units_and_order_of_features_do_not_matter() -> None:
    rng = np.random.default_rng(8)
    features, codes, weights = documents(rng)
    plain = fit(features, codes, weights)
    units = np.array([1e-7, 1e6])
    scaled = fit(features[:, ::-1] * units[:, None], codes, weights)
    np.testing.assert_allclose(scaled.slopes[::-1] * units[::-1], plain.slopes, rtol=1e-9)
    assert scaled.n_evaluations == plain.n_evaluations


@pytest.mark.parametrize("extra", ["zero", "constant", "twice", "sum"])
def test_features_that_say_nothing_new_change_nothing(extra: str) -> None:
    rng = np.random.default_rng(9)
    features, codes = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    more = {"zero": 0 * features[:, 0], "constant": 0 * features[:, 0] + 3, "twice": 2 * features[:, 0]}
    column = more.get(extra, features.sum(axis=1))
    plain, wider = fit(features, codes), fit(np.column_stack([features, column]), codes)
    assert plain.rank == wider.rank == 3
    assert wider.log_likelihood == pytest.approx(plain.log_likelihood, rel=1e-12)
    scores = class_scores(np.column_stack([features, column]), wider.theta)
    np.testing.assert_allclose(scores, class_scores(features, plain.theta), atol=1e-9)
    assert extra != "zero" or wider.theta[-1] == 0
    assert fit(np.column_stack([features, column]), codes, ridge=0.1).rank == (3 if extra == "zero" else 4) + (
        extra == "zero"
    )


def test_weights_are_repetitions_and_those_of_zero_are_not_there() -> None:
    rng = np.random.default_rng(10)
    features, codes, _ = documents(rng)
    weights = rng.integers(0, 4, 50)
    weights[:3] = 1
    features[weights == 0] = 1e6  # would make the fit another, were they there
    repeated = fit(np.repeat(features, weights, axis=0), np.repeat(codes, weights), ridge=0.3)
    np.testing.assert_allclose(fit(features, codes, weights, ridge=0.3).theta, repeated.theta, rtol=1e-9)


def test_heavy_tails_do_not_throw_it_off() -> None:
    rng = np.random.default_rng(11)
    features = rng.standard_cauchy(size=(300, 2)) * 100
    codes = (rng.random(300) < 0.4 + 0.2 * (features[:, 0] > 0)).astype(int)
    found = fit(features, codes)
    assert found.gradient <= 1e-10 and found.n_evaluations < 40


def test_the_prior_leaves_documents_out() -> None:
    codes, removed = np.array([0, 1, 1]), np.array([1.0, 0.5, 0.0])
    odds = np.log([3.0 / 2, 2.5 / 3, 3.0 / 3])
    np.testing.assert_allclose(prior_offsets(np.array([3, 3]), codes, removed), odds)
    np.testing.assert_allclose(prior_offsets(np.array([3, 3, 1]), codes[:1], removed[:1]), np.log([[2, 3, 1]]))
    with pytest.raises(InputError, match="class 1 has no documents, or a single one"):
        prior_offsets(np.array([3, 1]), codes, np.ones(3))


def test_what_cannot_be_fitted_is_refused() -> None:
    x, y = np.array([[0.0], [1.0], [0.5]]), np.array([0, 1, 1])
    for classes in (np.array([3]), np.array([3, 0]), np.array([0, 2, 1])):
        with pytest.raises(InputError, match="two classes or more"):
            solve(newton_steps(classes, 1), partial(derivatives, x, y))
    for ridge in (-1.0, np.nan, np.inf):
        with pytest.raises(InputError, match="ridge="):
            fit(x, y, ridge=ridge)
    with pytest.raises(InputError, match="not finite"):
        fit(np.array([[0.0], [np.inf], [1.0]]), y, ridge=1.0)
    with pytest.raises(InputError, match="3 parameters"):
        derivatives(x, y, np.zeros(3))


def test_separable_documents_are_refused_under_any_offset() -> None:
    """Two labels share a value at the border, so that likelihoods end where gradients are nothing but rounding."""
    for seed in range(300):
        rng = np.random.default_rng(seed)
        values = np.append(rng.integers(-2, 3, 10), [-1, 0, 0, 1])
        codes = np.append(values[:10] > 0, [0, 0, 1, 1]).astype(np.int64)
        offset = 10.0 ** rng.integers(0, 13) * rng.normal()
        features = (values[:, None] + offset) * 10.0 ** rng.integers(-6, 7)
        with pytest.raises((InputError, NfsDaskError), match="ridge"):
            solve(newton_steps(np.bincount(codes), 1), partial(derivatives, features, codes))
