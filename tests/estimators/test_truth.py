"""Fitted models against scikit-learn, reference vectors, and enumeration by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse
from scipy.special import xlogy
from sklearn.naive_bayes import BernoulliNB, MultinomialNB

from nfs_dask import InputError, SparseBernoulliNB, SparseMultinomialNB
from nfs_dask.methods.naive_bayes import Counts, Settings, fit_bernoulli, fit_multinomial

LABELS = {2: ["ham", "spam"], 4: ["a", "b", "c", "d"]}


def documents(n_classes, seed=0, n_rows=80, n_features=30):
    rng = np.random.default_rng(seed)
    y = np.append(np.arange(n_classes), rng.integers(n_classes, size=n_rows - n_classes))
    rates = rng.gamma(0.4, size=(n_classes, n_features))
    rates[:, -1] = 0  # a feature that is in no document
    X = rng.poisson(rates[y])
    X[:n_classes] = 0  # a feature in all documents of a class makes scikit-learn subtract nearly equal numbers
    return sparse.csr_array(X), np.array(LABELS[n_classes])[y]


def ours_and_theirs(method, **parameters):
    if method == "bernoulli":
        return SparseBernoulliNB("all", binarize=0.0, **parameters), BernoulliNB(**parameters)
    return SparseMultinomialNB("all", **parameters), MultinomialNB(**parameters)


def assert_same_model(ours, theirs, X):
    np.testing.assert_allclose(ours.predict_joint_log_proba(X), theirs.predict_joint_log_proba(X), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours.predict_log_proba(X), theirs.predict_log_proba(X), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    np.testing.assert_array_equal(ours.class_count_, theirs.class_count_)


@pytest.mark.parametrize("method", ["bernoulli", "multinomial"])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("alpha", [0.5, 1, 1e-10])
def test_all_features_are_scikit_learns_model(method, n_classes, alpha):
    X, y = documents(n_classes)
    ours, theirs = ours_and_theirs(method, alpha=alpha)
    assert_same_model(ours.fit(X[:60], y[:60]), theirs.fit(X[:60], y[:60]), X)


def test_a_feature_in_all_documents_keeps_its_digits_under_tiny_smoothing():
    X, y = np.array([[1, 0], [1, 1], [0, 1], [1, 0]]), [0, 0, 1, 1]
    model = SparseBernoulliNB("all", alpha=1e-10).fit(X, y)
    smooth = 1e-10
    expected = [np.log(smooth / (2 + 2 * smooth)) + 2 * np.log(0.5), 3 * np.log(0.5)]  # of an empty document
    np.testing.assert_allclose(model.predict_joint_log_proba([[0, 0]])[0], expected, rtol=1e-14)


@pytest.mark.parametrize("method", ["bernoulli", "multinomial"])
@pytest.mark.parametrize("weights", ["whole", "real"])
@pytest.mark.parametrize("priors", [{"fit_prior": False}, {"class_prior": [0.1, 0.2, 0.3, 0.4]}, {}])
def test_weights_and_priors_are_scikit_learns(method, weights, priors):
    X, y = documents(4, seed=1)
    rng = np.random.default_rng(1)
    w = rng.integers(0, 4, len(y)) if weights == "whole" else rng.gamma(1.0, size=len(y))
    ours, theirs = ours_and_theirs(method, **priors)
    assert_same_model(ours.fit(X, y, sample_weight=w), theirs.fit(X, y, sample_weight=w), X)


@pytest.mark.parametrize("method", ["bernoulli", "multinomial"])
def test_real_values_and_other_thresholds_are_scikit_learns(method):
    X, y = documents(2, seed=2)
    X = X * 0.37
    ours, theirs = ours_and_theirs(method)
    if method == "bernoulli":
        ours.set_params(binarize=0.5)
        theirs.set_params(binarize=0.5)
    assert_same_model(ours.fit(X, y), theirs.fit(X, y), X)


@pytest.mark.parametrize("estimator", [SparseBernoulliNB(5, binarize=0.0), SparseMultinomialNB(5)])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_linear_rule_says_the_same_as_the_scores(estimator, n_classes):
    X, y = documents(n_classes, seed=3)
    estimator.fit(X, y)
    values = (X > 0).astype(float) if isinstance(estimator, SparseBernoulliNB) else X
    linear = values @ estimator.coef_.T + estimator.intercept_
    decision = estimator.decision_function(X)
    if n_classes == 2:
        np.testing.assert_allclose(linear[:, 0], decision, atol=1e-10)
    else:  # the same for all classes of a row may be added
        np.testing.assert_allclose(linear - linear[:, :1], decision - decision[:, :1], atol=1e-10)
    assert estimator.coef_.shape == (1 if n_classes == 2 else n_classes, 30)
    np.testing.assert_array_equal(np.flatnonzero(estimator.coef_.any(axis=0)), estimator.get_support(indices=True))
    if n_classes == 2:
        np.testing.assert_array_equal(estimator.predict(X) == "spam", decision > 0)
        np.testing.assert_allclose(estimator.predict_proba(X)[:, 1], 1 / (1 + np.exp(-decision)), atol=1e-12)


def bernoulli_objective(X, codes, support, alpha):
    """Log likelihood of pooled and split features, from the definition."""
    total = 0.0
    n = np.bincount(codes) + 2 * alpha
    f = np.array([X[codes == c].sum(axis=0) for c in range(len(n))]) + alpha
    for i in range(X.shape[1]):
        split = i in support
        for c in range(len(n)):
            theta = f[c, i] / n[c] if split else f[:, i].sum() / n.sum()
            total += f[c, i] * np.log(theta) + (n[c] - f[c, i]) * np.log1p(-theta)
    return total


def multinomial_objective(f, support):
    """Log likelihood where all classes have the same total share on the support."""
    g, inside = f.sum(axis=0), np.isin(np.arange(f.shape[1]), support)
    theta = np.tile(g / g.sum(), (len(f), 1))
    for c in range(len(f)):
        theta[c, inside] = g[inside].sum() / g.sum() * f[c, inside] / f[c, inside].sum()
    return (f * np.log(theta)).sum()


@pytest.mark.parametrize("k", [1, 2, 4])
def test_bernoulli_chooses_the_best_of_all_supports(k):
    rng = np.random.default_rng(k)
    codes = np.append([0, 1, 2], rng.integers(3, size=27))
    X = (rng.random((30, 7)) < rng.random((3, 7))[codes]).astype(int)
    model = SparseBernoulliNB(k).fit(X, codes)
    values = [bernoulli_objective(X, codes, s, 1.0) for s in itertools.combinations(range(7), k)]
    assert model.objective_ == pytest.approx(max(values), rel=1e-12)
    assert model.dual_gap_ == 0
    assert model.certified_
    assert model.dual_gap_ == 0
    assert model.objective_ <= model.upper_bound_ == pytest.approx(model.objective_, rel=1e-12)


@pytest.mark.parametrize(("k", "n_classes"), [(2, 2), (3, 2), (5, 2), (3, 3)])
def test_multinomial_is_as_good_as_it_says(k, n_classes):
    rng = np.random.default_rng(k)
    y = np.append(np.arange(n_classes), rng.integers(n_classes, size=20))
    X = rng.poisson(rng.gamma(1, size=(n_classes, 8))[y]) + (np.arange(len(y)) == 0)[:, None]
    model = SparseMultinomialNB(k).fit(X, y)
    f = np.array([X[y == c].sum(axis=0) for c in range(n_classes)]) + 1
    assert model.objective_ == pytest.approx(multinomial_objective(f, model.get_support(indices=True)), rel=1e-12)
    best = max(multinomial_objective(f, s) for s in itertools.combinations(range(8), k))
    assert model.objective_ <= best + 1e-9 <= model.upper_bound_ + 2e-9
    assert model.dual_gap_ == pytest.approx(model.upper_bound_ - model.objective_, abs=1e-9)
    point = model.dual_point_
    assert isinstance(point, float) if n_classes == 2 else point.sum() == pytest.approx(1)
    features, weights = model.second_dual_
    assert k <= len(features) <= k + n_classes - 1 and ((weights > 0) & (weights <= 1)).all()
    assert weights.sum() == pytest.approx(k)
    # its value: with B_c the weighed totals, sum x (f log f - g log g) + B log B - sum B_c log B_c, beside none at all
    g, B = f.sum(axis=0), f[:, features] @ weights
    own = (xlogy(f, f).sum(axis=0) - xlogy(g, g))[features] @ weights
    gain = own + xlogy(B.sum(), B.sum()) - xlogy(B, B).sum()
    assert xlogy(g, g / g.sum()).sum() + gain == pytest.approx(model.upper_bound_, rel=1e-12)


def test_the_printed_algorithm_agrees():
    X, y = documents(2, seed=5)
    cuts, bisection = (SparseMultinomialNB(6, solver=solver).fit(X, y) for solver in ("cuts", "bisection"))
    assert bisection.upper_bound_ == pytest.approx(cuts.upper_bound_, rel=1e-9)
    assert bisection.objective_ <= cuts.objective_ + 1e-9
    assert bisection.dual_point_ == pytest.approx(cuts.dual_point_, abs=1e-6)
    with pytest.raises(InputError, match=r"bisection.*two classes.*here are 4 classes.*cuts"):
        SparseMultinomialNB(6, solver="bisection").fit(*documents(4))
    with pytest.raises(InputError, match="solver='newton'; give one of 'cuts', 'bisection'"):
        SparseMultinomialNB(6, solver="newton").fit(X, y)


def test_scores_are_the_gains_that_were_ranked():
    X, y = documents(2, seed=6)
    bernoulli = SparseBernoulliNB(6, binarize=0.0).fit(X, y)
    assert set(np.argsort(-bernoulli.scores_)[:6]) == set(bernoulli.get_support(indices=True))
    multinomial = SparseMultinomialNB(6).fit(X, y)
    scores = multinomial.scores_
    assert scores.shape == (30,)
    assert scores[-1] == 0  # absent from the documents
    inside = multinomial.get_support()
    assert scores[inside].min() >= scores[~inside].max() * (1 - 1e-9)
    g = np.array([X[y == c].sum(axis=0) for c in ("ham", "spam")]).sum(axis=0) + 2
    pooled = (g * np.log(g / g.sum())).sum()
    assert np.sort(scores)[-6:].sum() == pytest.approx(multinomial.upper_bound_ - pooled, rel=1e-9)


# The reference vectors.


def number(x):
    return float(x)  # also "inf" and "-inf"


def test_bernoulli_rules_equal_the_reference(golden):
    """Class 0 is the positive one there, so that the signs are those of ``-coef_``."""
    checked = 0
    for case in golden("bernoulli.json"):
        F, n = np.array(case["inputs"]["F"]), np.array(case["inputs"]["n"], float)
        if len(n) != 2 or (n == 0).any():
            continue
        for expected in case["expected"]["at_k"]:
            if not 1 <= expected["k"] <= F.shape[1] or expected["tied"]:
                continue
            model = fit_bernoulli(Counts.of(np.arange(2), n, F), Settings(k=expected["k"], alpha=0.0))
            np.testing.assert_array_equal(model.support, sorted(expected["support"]))
            assert model.evidence.objective == pytest.approx(number(expected["value"]), rel=1e-12)
            weights, intercept = model.coefficients()
            w = np.zeros(F.shape[1])
            w[model.support] = -weights[0]
            np.testing.assert_allclose(w, [number(x) for x in expected["w"]], rtol=1e-9, atol=1e-12, err_msg=case["id"])
            if not np.isnan(number(expected["v"])):  # infinities that cancel, which the reference does not
                assert -intercept[0] == pytest.approx(number(expected["v"]), rel=1e-9, abs=1e-9), case["id"]
            checked += 1
    assert checked > 10


def test_multinomial_weights_equal_the_reference(golden):
    checked = 0
    for case in golden("multinomial.json"):
        F = np.array(case["inputs"]["F"])
        for expected in case["expected"]["at_k"]:
            if not 2 <= expected["k"] <= F.shape[1]:
                continue
            model = fit_multinomial(Counts.of(np.arange(2), np.ones(2), F), Settings(k=expected["k"], alpha=0.0))
            if "theta" not in expected or model.support.tolist() != sorted(expected["tie_walk_support"]):
                continue
            checked += 1
            with np.errstate(divide="ignore"):
                theta = np.log(np.array(expected["theta"], float)[:, model.support])
            possible = ~np.isneginf(theta).all(axis=0)
            np.testing.assert_allclose(
                model.present[:, possible], theta[:, possible], rtol=1e-9, atol=1e-9, err_msg=case["id"]
            )
            assert model.evidence.objective == pytest.approx(number(expected["loglik"]), rel=1e-12, abs=1e-9)
    assert checked > 10
