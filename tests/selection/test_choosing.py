"""Rules that choose k: what they choose follows from the table they show, which follows from the data."""

from __future__ import annotations

import pickle
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.model_selection import StratifiedKFold, cross_val_score

import nfs_dask as nfs
from nfs_dask.errors import InputError
from nfs_dask.methods.model_errors import overall_error
from nfs_dask.selection.chosen import Chosen
from nfs_dask.selection.rules import by_elbow, by_error
from tests.helpers.commands import as_json, run

KS = [2, 5, 10, 30, 60]
MADE: dict[str, Any] = {
    "multinomial": lambda k: nfs.SparseMultinomialNB(k),
    "bernoulli": lambda k: nfs.SparseBernoulliNB(k, binarize=0.0),
    "l2": lambda k: nfs.SparseCentroid(k),
    "mahalanobis": lambda k: nfs.SparseCentroid(k, metric="mahalanobis"),
}


def counts(n: int, n_classes: int = 2, m: int = 60, seed: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Documents whose classes have words of their own, and share most."""
    rng = np.random.default_rng(seed)
    rates = np.full((n_classes, m), 0.25)
    for c in range(n_classes):
        rates[c, 4 * c : 4 * c + 4] += 0.25 if n_classes == 2 else 0.7
    y = rng.integers(n_classes, size=n)
    return rng.poisson(rates[y]), y


def path_of(method: str, X: np.ndarray, y: np.ndarray, ks: Any = KS) -> Any:
    return nfs.path(X, method, ks, y=y, **({"binarize": 0.0} if method == "bernoulli" else {}))


def test_a_chosen_number_is_an_int_that_says_why() -> None:
    chosen = Chosen(7, rule="elbow", why="because", table=[{"k": 7}], interval=(5, 9), alpha=0.5)
    assert chosen == 7 and chosen + 1 == 8 and isinstance(chosen, int)
    again = pickle.loads(pickle.dumps(chosen))
    assert again.to_json() == chosen.to_json() == {
        "k": 7, "rule": "elbow", "why": "because", "interval": [5, 9], "alpha": 0.5, "table": [{"k": 7}],
    }  # fmt: skip
    X, y = counts(50)
    assert len(nfs.SparseMultinomialNB(chosen).fit(X, y).get_support(indices=True)) == 7


@pytest.mark.parametrize("method", MADE)
def test_the_elbow_is_farthest_above_the_chord(method: str) -> None:
    X, y = counts(400)
    path = path_of(method, X, y, None)
    chosen = path.choose("elbow")
    x, v = np.log(path.ks), path.value
    height = v[0] + (v[-1] - v[0]) * (x - x[0]) / (x[-1] - x[0])
    assert int(chosen) == path.ks[np.argmax(v - height)]
    assert chosen.interval[0] <= chosen <= chosen.interval[1]
    assert f"{int(chosen)}" in chosen.why_ and [row["k"] for row in chosen.table] == path.ks.tolist()
    with pytest.raises(InputError, match="three"):
        path_of(method, X, y, [2, 3]).choose("elbow")


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("method", MADE)
def test_predicted_errors_are_near_those_of_many_new_documents(method: str, n_classes: int) -> None:
    X, y = counts(6000, n_classes)
    new, truth = counts(20000, n_classes, seed=6)
    chosen = path_of(method, X, y).choose("error")
    assert [row["k"] for row in chosen.table] == KS
    predicted = np.array([row["error"] for row in chosen.table])
    assert int(chosen) == KS[int(np.argmin(predicted))]
    real = np.array([1 - MADE[method](k).fit(X, y).score(new, truth) for k in KS])
    # With a handful of rare words the odds are far from normal, and ties have to be broken. Comparisons with several
    # other classes are not independent: being ahead of one makes it likelier to be ahead of another.
    np.testing.assert_allclose(predicted[2:], real[2:], atol=0.035 if n_classes == 2 else 0.06)


def test_shares_and_all_are_looked_at_too() -> None:
    X, y = counts(120)
    path = path_of("multinomial", X, y)
    for rule in ("error", "cv"):
        chosen = path.choose(rule, ks=["all", 0.1, 2])
        assert [row["k"] for row in chosen.table] == [2, 6, 60]
        for wrong in (10, "all", []):
            with pytest.raises(InputError, match="ks"):
                path.choose(rule, ks=wrong)


def test_a_curve_without_a_bend_says_so() -> None:
    ks = np.array([1, 2, 4, 8, 16])
    gains = {"bent": np.array([1.0, 6.0, 8.0, 9.0, 9.5]), "even": np.log2(ks) + 1.0, "late": ks.astype(float)}
    said = {name: by_elbow(None, made_up_path(ks, gain), {}).why_ for name, gain in gains.items()}
    assert "hardly bends" not in said["bent"]
    assert "hardly bends" in said["even"] and "hardly bends" in said["late"]


def made_up_path(ks: np.ndarray, gains: np.ndarray) -> Any:
    class MadeUp:
        value = gains

    MadeUp.ks = ks  # type: ignore[attr-defined]
    return MadeUp


def test_predicted_errors_of_weights_and_alpha() -> None:
    X, y = counts(600)
    weights = np.random.default_rng(1).integers(1, 4, 600)
    weighted = nfs.path(X, "bernoulli", KS, y=y, sample_weight=weights, alpha=0.3, binarize=0.0).choose("error")
    rows = np.repeat(np.arange(600), weights)
    repeated = nfs.path(X[rows], "bernoulli", KS, y=y[rows], alpha=0.3, binarize=0.0).choose("error")
    assert [row["error"] for row in weighted.table] == pytest.approx([row["error"] for row in repeated.table], rel=1e-9)


def test_a_normal_error_by_hand() -> None:
    means = np.zeros((2, 2, 2))
    means[0, 1], means[1, 0] = [1.0, -2.0], [-1.0, 2.0]
    variances = np.full((2, 2, 2), 4.0)
    prior = np.log([0.25, 0.75])
    ahead = np.log(1 / 3)
    wrong = 0.25 * norm.cdf(-(1.0 + ahead) / 2) + 0.75 * norm.cdf(-(2.0 - ahead) / 2)
    assert overall_error(means, variances, prior) == pytest.approx(wrong, rel=1e-12)
    nothing = np.zeros((2, 2, 2))
    assert overall_error(nothing, nothing, np.log([0.5, 0.5])) == 0.5  # the first of equal classes is said
    three = np.zeros((3, 3, 3))
    assert overall_error(three, three + 1.0, np.zeros(3)) == pytest.approx(0.75)


def test_the_smallest_of_equal_errors() -> None:
    errors = np.array([0.5, 0.2004, 0.2, 0.2])
    estimator = SimpleNamespace(engine=None, predicted_errors=lambda *_: errors)
    data: Any = SimpleNamespace(method="l2", estimator=estimator, dataset=estimator)
    path: Any = SimpleNamespace(n_features=16)
    chosen = by_error(data, path, {"ks": [1, 4, 9, 16]})
    assert (int(chosen), chosen.interval) == (9, (4, 16))


@pytest.mark.parametrize("method", MADE)
def test_cross_validation_is_that_of_scikit_learn(method: str) -> None:
    X, y = counts(300)
    path = path_of(method, X, y)
    scores = np.array([cross_val_score(MADE[method](k), X, y, cv=StratifiedKFold(5)) for k in KS])
    chosen = path.choose("cv", ks=KS)
    best = int(np.argmax(scores.mean(axis=1)))
    assert int(chosen) == KS[best]
    np.testing.assert_allclose([row["accuracy"] for row in chosen.table], scores.mean(axis=1), rtol=1e-12)
    error = scores[best].std(ddof=1) / np.sqrt(5)
    within = np.flatnonzero(scores.mean(axis=1) >= scores[best].mean() - error)
    assert int(path.choose("1se", ks=KS)) == KS[within[0]]


@pytest.mark.parametrize("by", ["accuracy", "balanced", "log_loss"])
@pytest.mark.parametrize("within", [None, 0.0, 0.002, 0.05, 0.5])
def test_near_is_the_smallest_k_that_loses_no_more_than_a_share(by: Any, within: float | None) -> None:
    X, y = counts(2000)
    path = path_of("multinomial", X, y)
    chosen = path.choose("near", ks=KS, by=by, within=within)
    table = nfs.cross_validate(X, y, method="multinomial", ks=KS)
    mean, share = table.mean(by)[0], 0.01 if within is None else within
    fine = mean <= mean.min() * (1 + share) if by == "log_loss" else mean >= mean.max() * (1 - share)
    assert int(chosen) == KS[int(np.argmax(fine))] == chosen.interval[0]
    assert chosen.rule == "near" and f"within {100 * share:.3g} % of the best" in chosen.why_
    assert int(table.choose("near", by, within)) == int(chosen)


def test_rules_of_cross_validation_go_by_what_is_asked_for() -> None:
    X, y = counts(300)
    path, table = path_of("multinomial", X, y), nfs.cross_validate(X, y, method="multinomial", ks=KS)
    for rule in ("cv", "1se"):
        for by in ("balanced", "log_loss"):
            assert path.choose(rule, ks=KS, by=by).why_ == table.choose(rule, by).why_  # type: ignore[arg-type]


def test_of_gains_that_grow_ever_faster_the_elbow_is_over_k() -> None:
    """As of a million words that all say a little: nearly all is gained in the last doubling."""
    X, y = counts(50)
    path = path_of("bernoulli", X, y, None)
    ks = np.unique(np.geomspace(1, 1_600_000, 200).astype(int))
    gains = ks**0.7
    many = replace(path, ks=ks, solved=replace(path.solved, value=gains, bound=gains))
    chosen = many.choose("elbow")
    height, along = (gains - gains[0]) / (gains[-1] - gains[0]), (ks - 1) / (ks[-1] - 1)
    assert int(chosen) == ks[np.argmax(height - along)] > 1000
    assert "over log k it has no elbow" in chosen.why_ and '"near"' in chosen.why_


def test_refusals_say_what_to_do() -> None:
    X, y = counts(60)
    path = path_of("multinomial", X, y)
    one = np.column_stack([X, y])  # its last column is in documents of one class only
    for wrong, message in (
        (lambda: path.choose("best"), "'elbow', 'error', '1se', 'cv', 'near'"),
        (lambda: path.choose("cv", within=0.1), "within is for others \\('near'\\)"),
        (lambda: path.choose("elbow", by="balanced"), "by is for cross-validation \\('1se', 'cv', 'near'\\)"),
        (lambda: path.choose("near", ks=[2], within=1), "within=1; give a share of the best"),
        (lambda: path.choose("elbow", folds=3), "folds is for cross-validation"),
        (lambda: path.choose("elbow", ks=[3]), "whole path"),
        (lambda: nfs.path(X, "l1", [2, 5], y=y).choose("error"), '"cv" or "1se"'),
        (lambda: nfs.path(one, "bernoulli", [3], y=y, alpha=0.0, binarize=0.0).choose("error"), "alpha above 0"),
    ):
        with pytest.raises(InputError, match=message):
            wrong()


def test_from_the_command_line(tmp_path: Any) -> None:
    X, y = counts(300)
    store = tmp_path / "counts.zarr"
    dataset = nfs.ingest(X, store, labels=y)
    for rule in ("elbow", "error", "cv", "1se", "near"):
        values = as_json("path", store, "--ks", "2,5,10,30", "--choose", rule)
        assert values["chosen"] == nfs.path(dataset, "multinomial", [2, 5, 10, 30]).choose(rule).to_json()
        assert len(values["path"]) == 4
        shown = run("path", store, "--ks", "2,5,10,30", "--choose", rule).stdout
        assert f"k = {values['chosen']['k']}" in shown and f"by {rule}" in " ".join(shown.split())
    both = as_json("path", store, "--ks", "5,10", "--choose", "cv", "--folds", 3, "--alphas", "0.1,1")["chosen"]
    assert both["alpha"] in (0.1, 1.0) and len(both["table"]) == 4
    assert "--choose 1se and cv" in run("path", store, "--folds", 3, code=2).stderr
    run("path", store, "--choose", "luck", code=2)
    assert '"cv"' in run("path", store, "--method", "l1", "--choose", "error", code=3).stderr
