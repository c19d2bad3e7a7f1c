"""Selection by predicted error: enumeration, direct searches, simulation, and every way to give it documents."""

from __future__ import annotations

import itertools
import json
import logging
import pickle
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from distributed import Client
from scipy import sparse
from sklearn.base import clone
from sklearn.naive_bayes import MultinomialNB

import nfs_dask as nfs
from nfs_dask import DaskEngine, ErrorRateSelector, InputError, PlanError, SerialEngine, StoreError
from nfs_dask.files.sealed import sealed
from nfs_dask.solvers.predicted_error.bounded import bounded
from nfs_dask.solvers.predicted_error.estimate import ErrorProblem
from nfs_dask.solvers.predicted_error.searches import best_individual, floating, forward, plus_minus
from nfs_dask.sources.open_source import open_source
from nfs_dask.store.layout import Layout
from nfs_dask.store.writer import write_store
from tests.helpers.grids import each_once

HEURISTICS = ("ranked", "best-individual", "forward", "plus-minus", "floating")
SEARCHES = (*HEURISTICS, "bounded")
each_search = pytest.mark.parametrize("search", SEARCHES)


def corpus(n_classes: int = 2, n_features: int = 12, n_rows: int = 300, seed: int = 0) -> tuple[Any, Any]:
    """Documents of about 15 tokens; the last feature is in none of them."""
    rng = np.random.default_rng(seed)
    y = np.append(np.arange(n_classes), rng.integers(n_classes, size=n_rows - n_classes))
    rates = rng.gamma(1.0, size=(n_classes, n_features))
    rates *= 15 / rates.sum(axis=1, keepdims=True)
    rates[:, -1] = 0
    return rng.poisson(rates[y]), np.array(["a", "b", "c", "d"])[y]


def wide_corpus(n_rows: int = 200, n_features: int = 3000, length: float = 40, spread: float = 0.7) -> tuple[Any, Any]:
    """Most features are rare, and many are equal."""
    rng = np.random.default_rng(3)
    y = np.append([0, 1], rng.integers(2, size=n_rows - 2))
    frequencies = 1 / np.arange(1, n_features + 1)
    shares = frequencies * np.exp(rng.normal(0, spread, (2, n_features)))
    shares *= length / shares.sum(axis=1, keepdims=True)
    return sparse.csr_array(rng.poisson(shares[y])[:, rng.permutation(n_features)]), y


def shares_of(X: Any, y: Any, alpha: float = 1.0) -> Any:
    """Smoothed probabilities of all features, by class."""
    f = np.array([np.asarray(X[y == label].sum(axis=0)).ravel() for label in np.unique(y)]) + alpha
    return f / f.sum(axis=1, keepdims=True)


def lengths_of(X: Any) -> Any:
    return np.asarray(X.sum(axis=1)).ravel()


def prior_of(y: Any) -> Any:
    return np.unique(y, return_counts=True)[1] / len(y)


def error_with(X: Any, y: Any, features: Any, alpha: float = 1.0) -> float:
    return nfs.predict_error(shares_of(X, y, alpha), n_tokens=lengths_of(X), features=features).error


# What is selected


@pytest.mark.parametrize(("n_classes", "search"), each_once([3, 2], SEARCHES))
def test_the_error_is_predicted_of_the_features_it_selects(search: str, n_classes: int) -> None:
    X, y = corpus(n_classes)
    selector = ErrorRateSelector(4, search=search, alpha=0.5).fit(X, y)
    support = selector.get_support(indices=True)
    assert len(support) == 4
    assert selector.error_ == pytest.approx(error_with(X, y, support, 0.5), rel=1e-12)
    assert selector.estimate_.error == selector.objective_ == selector.error_
    assert selector.errors_[4] <= selector.error_ * (1 + 1e-9)
    of_model = nfs.predict_error(selector, n_tokens=lengths_of(X), prior=np.full(n_classes, 1 / n_classes))
    assert of_model.error == pytest.approx(selector.error_, rel=1e-12)
    np.testing.assert_allclose(of_model.mean, selector.estimate_.mean, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("n_classes", "k"), [*itertools.product([2, 3], [1, 3, 5])])
def test_bounded_is_the_best_of_all_sets_and_no_search_is_better(n_classes: int, k: int) -> None:
    X, y = corpus(n_classes, n_features=9, seed=k)
    errors = {kept: error_with(X, y, list(kept)) for kept in itertools.combinations(range(8), k)}
    best = min(errors, key=lambda kept: errors[kept])
    found = ErrorRateSelector(k, search="bounded").fit(X, y)
    assert tuple(found.get_support(indices=True)) == best
    assert (found.certified_, found.dual_gap_, found.upper_bound_) == (True, 0, found.error_)
    for search in HEURISTICS:
        other = ErrorRateSelector(k, search=search).fit(X, y)
        assert other.error_ >= found.error_ * (1 - 1e-12)
        assert (other.certified_, other.dual_gap_, other.upper_bound_) == (False, other.error_, 0)


def test_ranked_takes_the_features_of_the_sparse_multinomial_by_their_gains() -> None:
    X, y = corpus(3)
    selector, multinomial = ErrorRateSelector(6).fit(X, y), nfs.SparseMultinomialNB(6).fit(X, y)
    np.testing.assert_array_equal(selector.get_support(), multinomial.get_support())
    assert selector.order_ is not None
    gains = multinomial.scores_[selector.order_]
    assert (np.diff(gains) <= 0).all()
    assert list(selector.errors_) == list(range(7))
    for n, error in selector.errors_.items():
        assert error == pytest.approx(error_with(X, y, selector.order_[:n]), rel=1e-9)


@pytest.mark.parametrize("search", ["best-individual", "forward"])
def test_nested_searches_say_the_order_and_the_error_of_each_size(search: str) -> None:
    X, y = corpus(3)
    selector = ErrorRateSelector(6, search=search).fit(X, y)
    assert selector.order_ is not None
    for n, error in selector.errors_.items():
        assert error == pytest.approx(error_with(X, y, selector.order_[:n]), rel=1e-9)
    fewer = ErrorRateSelector(3, search=search).fit(X, y)
    assert fewer.order_ is not None and fewer.order_.tolist() == selector.order_[:3].tolist()
    first = {d: error_with(X, y, [d]) for d in range(11)}
    assert selector.order_[0] == min(first, key=lambda d: first[d])


@pytest.mark.parametrize("values", ["counts", "reals"])
def test_searches_through_distinct_features_find_what_searches_through_all_find(values: str) -> None:
    """Of equal features only as many are looked at as a set can hold."""
    X, y = wide_corpus(n_features=600)
    X = X if values == "counts" else X * 0.37
    problem = ErrorProblem.of(shares_of(X, y), 40)
    present = np.flatnonzero(np.asarray(X.sum(axis=0)).ravel())
    searches: dict[str, Any] = {
        "best-individual": (best_individual(problem, 20, present), {}),
        "forward": (forward(problem, 20, present), {}),
        "floating": (floating(problem, 20, present), {}),
        "plus-minus": (plus_minus(problem, 20, 3, 2, present), {"add": 3, "drop": 2}),
    }
    for search, (direct, parameters) in searches.items():
        found = ErrorRateSelector(20, search=search, n_tokens=40, **parameters).fit(X, y)
        assert found.get_support(indices=True).tolist() == direct.features.tolist(), search
        assert found.error_ == pytest.approx(direct.error, rel=1e-10)


def test_taking_away_starts_with_all_features() -> None:
    X, y = corpus(n_features=20)
    problem = ErrorProblem.of(shares_of(X, y), 15)
    direct = plus_minus(problem, 5, 1, 2, np.arange(19))
    found = ErrorRateSelector(5, search="plus-minus", add=1, drop=2, n_tokens=15).fit(X, y)
    assert found.get_support(indices=True).tolist() == direct.features.tolist()
    assert found.order_ is None and max(found.errors_) == 19


def test_branch_and_bound_counts_equal_features_once() -> None:
    X, y = corpus(n_features=9)
    X = np.hstack([X, np.repeat(X[:, :1], 80, axis=1)])
    found = ErrorRateSelector(3, search="bounded", n_tokens=15).fit(X, y)
    some = np.append(np.arange(8), [9, 10])
    rest = ErrorProblem.of(shares_of(X, y), 15)
    assert found.error_ == pytest.approx(bounded(rest, 3, some).error, rel=1e-12)
    assert found.certified_


@each_search
def test_what_is_in_no_document_is_not_selected_unless_all_are(search: str) -> None:
    X, y = corpus(n_features=6)
    X[:, 2] = 0
    fewer = ErrorRateSelector(5, search=search).fit(X, y)
    assert fewer.get_support(indices=True).tolist() == [0, 1, 3, 4]
    assert fewer.certified_ and fewer.dual_gap_ == 0
    whole = ErrorRateSelector("all", search=search).fit(X, y)
    assert whole.get_support().all() and whole.certified_
    np.testing.assert_allclose(whole.predict_proba(X), MultinomialNB().fit(X, y).predict_proba(X), rtol=1e-11)
    empty = ErrorRateSelector(2, search=search).fit(np.zeros_like(X), y)
    assert len(empty.get_support(indices=True)) == 2
    assert empty.error_ == pytest.approx(0.5)


@each_search
def test_priors_and_lengths_count(search: str) -> None:
    X, y = corpus(3, n_features=10)
    P = shares_of(X, y)
    for lengths in (3, [2, 9], {2: 1.0, 30: 3.0}):
        priors: dict[str, Any] = {"balanced": False, "class_prior": [3.0, 1.0, 1.0]}
        given = ErrorRateSelector(3, search=search, n_tokens=lengths, **priors).fit(X, y)
        support = given.get_support(indices=True)
        expected = nfs.predict_error(P, n_tokens=lengths, prior=[0.6, 0.2, 0.2], features=support)
        assert given.error_ == pytest.approx(expected.error, rel=1e-12)
    fitted = ErrorRateSelector(3, search=search, balanced=False).fit(X, y)
    assert nfs.predict_error(fitted, n_tokens=lengths_of(X)).error == pytest.approx(fitted.error_, rel=1e-12)
    equal = ErrorRateSelector(3, search=search, balanced=False, fit_prior=False).fit(X, y)
    assert equal.error_ == pytest.approx(ErrorRateSelector(3, search=search).fit(X, y).error_, rel=1e-12)


def test_scores_are_what_a_feature_alone_takes_off_the_error() -> None:
    for n_classes, scale, balanced in ((2, 1, True), (3, 1, False), (2, 0.7, True)):
        X, y = corpus(n_classes, n_features=8)
        selector = ErrorRateSelector(3, n_tokens=12, balanced=balanced).fit(X * scale, y)
        prior, P = None if balanced else prior_of(y), shares_of(X * scale, y)
        none = nfs.predict_error(P, n_tokens=12, prior=prior, features=[]).error
        alone = [nfs.predict_error(P, n_tokens=12, prior=prior, features=[d]).error for d in range(7)]
        np.testing.assert_allclose(selector.scores_, [*(none - np.array(alone)), 0.0], atol=1e-12)


def test_whoever_waits_for_a_search_sees_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("nfs_dask.progress.PATIENCE", 0)
    X, y = corpus()
    with caplog.at_level(logging.INFO, "nfs_dask"):
        ErrorRateSelector(5, search="forward").fit(X, y)
        ErrorRateSelector(5, search="bounded").fit(X, y)
    lines = [record.message for record in caplog.records if "search" in record.message]
    assert any(line.startswith("forward search: 5 of 5 features") for line in lines)
    assert any(line.startswith("bounded search: ") and "parts" in line for line in lines)


# How it classifies


@pytest.mark.parametrize("n_classes", [2, 3])
def test_all_other_features_count_as_one(n_classes: int) -> None:
    X, y = corpus(n_classes, n_features=15)
    selector = ErrorRateSelector(4, search="forward", alpha=0.3).fit(X, y)
    support = selector.get_support(indices=True)
    P = shares_of(X, y, 0.3)
    logs = np.log(np.append(P[:, support], 1 - P[:, support].sum(axis=1, keepdims=True), axis=1))
    rows = np.append(X[:, support], X.sum(axis=1, keepdims=True) - X[:, support].sum(axis=1, keepdims=True), axis=1)
    joint = np.log(prior_of(y)) + rows @ logs.T
    np.testing.assert_allclose(selector.predict_joint_log_proba(X), joint, rtol=1e-11)
    np.testing.assert_array_equal(selector.predict(X), selector.classes_[joint.argmax(axis=1)])
    linear = selector.coef_ @ X.T + selector.intercept_[:, None]
    decision = selector.decision_function(X)
    if n_classes > 2:  # the same for all classes of a row may be added
        linear, decision = linear - linear[0], (decision - decision[:, :1])
    np.testing.assert_allclose(linear.T if n_classes > 2 else linear[0], decision, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("search", ["ranked", "forward"])
def test_it_is_wrong_as_often_as_predicted_if_documents_are_as_those_of_the_fit(search: str) -> None:
    X, y = corpus(n_features=40, n_rows=4000, seed=2)
    selector = ErrorRateSelector(12, search=search, n_tokens=100, alpha=3000, fit_prior=False).fit(X, y)
    rng, n = np.random.default_rng(0), 100_000
    P = shares_of(X, y, alpha=3000)  # much the same in both classes
    wrong = [np.mean(selector.predict(rng.multinomial(100, P[c], n)) != selector.classes_[c]) for c in range(2)]
    error = np.mean(wrong)
    assert 0.05 < selector.error_ < 0.3
    assert abs(error - selector.error_) < 4 * np.sqrt(error / (2 * n))


def test_what_forward_search_finds_needs_the_count_of_all_others() -> None:
    """It may take features of one class only, which say nothing without how many other tokens there are."""
    X, y = corpus(n_features=40, n_rows=4000, seed=2)
    for k in (1, 2, 5):
        selector = ErrorRateSelector(k, search="forward").fit(X, y)
        assert 1 - selector.score(X, y) == pytest.approx(selector.error_, abs=0.03)


def test_unequal_priors_reward_features_that_hardly_occur_and_that_is_said() -> None:
    X, y = wide_corpus(2000, 1000, length=15, spread=0.3)
    keep = (y == 0) | (np.arange(2000) % 10 > 0)
    X, y = X[keep], y[keep]
    with pytest.warns(nfs.DataWarning, match=r"of all documents have none of .*; take balanced=True, a larger k"):
        fooled = ErrorRateSelector(10, search="forward", balanced=False).fit(X, y)
    selector = ErrorRateSelector(10, search="forward").fit(X, y)
    assert 1 - selector.score(X, y) == pytest.approx(selector.error_, abs=0.03)
    assert 1 - fooled.score(X, y) > fooled.error_ + 0.1
    frequencies = np.asarray((X > 0).mean(axis=0)).ravel()
    assert frequencies[fooled.get_support()].max() < 0.02 < frequencies[selector.get_support()].min()


# What it takes


KINDS = {
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
    "lists": lambda X: X.tolist(),
    "frame": lambda X: pd.DataFrame(X, columns=[f"w{i}" for i in range(X.shape[1])]),
    "dask": lambda X: da.from_array(X, chunks=(70, -1)),
}


def assert_same(one: ErrorRateSelector, other: ErrorRateSelector) -> None:
    assert one.get_support(indices=True).tolist() == other.get_support(indices=True).tolist()
    assert one.error_ == other.error_ and one.errors_ == other.errors_
    np.testing.assert_array_equal(one.model_.present, other.model_.present)
    assert one.model_.rest is not None and other.model_.rest is not None
    np.testing.assert_array_equal(one.model_.rest, other.model_.rest)
    orders = [None if order is None else order.tolist() for order in (one.order_, other.order_)]
    assert orders[0] == orders[1]


def stored(X: Any, y: Any, path: Path) -> nfs.Dataset:
    layout = Layout(chunk=256, shard=1024, row_chunk=8, row_shard=32, block=600)
    write_store(open_source(X, y), path, layout=layout)
    return nfs.open_dataset(path, reuse=False)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("search", ["ranked", "floating"])
def test_every_kind_of_input_gives_the_same(kind: str, search: str) -> None:
    X, y = corpus(3, 25)
    expected = ErrorRateSelector(6, search=search).fit(X, y)
    given = KINDS[kind](X)
    found = ErrorRateSelector(6, search=search, engine=SerialEngine()).fit(given, y)
    assert_same(found, expected)
    chances, selected = found.predict_proba(given), found.transform(given)
    if kind == "dask":
        chances, selected = chances.compute(scheduler="sync"), selected.compute(scheduler="sync")
    np.testing.assert_array_equal(chances, expected.predict_proba(X))
    selected = selected.toarray() if sparse.issparse(selected) else selected
    np.testing.assert_array_equal(selected, X[:, expected.get_support(indices=True)])


def test_a_dataset_on_a_cluster_and_in_panels(cluster: Client, tmp_path: Path) -> None:
    X, y = wide_corpus()
    dataset = stored(X, y, tmp_path / "store")
    assert dataset.source.n_blocks > 3
    for search in ("ranked", "forward"):
        expected = ErrorRateSelector(15, search=search).fit(X, y)
        for engine in (SerialEngine(), DaskEngine(), DaskEngine(panels=3)):
            found = ErrorRateSelector(15, search=search, engine=engine).fit(dataset)
            assert_same(found, expected)
            np.testing.assert_array_equal(found.predict(dataset), expected.predict(X))


def test_lengths_are_kept_with_the_counts_beside_a_dataset(tmp_path: Path) -> None:
    X, y = corpus(3)
    stored(X, y, tmp_path / "store")
    dataset = nfs.open_dataset(tmp_path / "store")
    first, again = (ErrorRateSelector(k, search="forward").fit(dataset) for k in (3, 5))
    assert (first.provenance_["reused"], again.provenance_["reused"]) == (False, True)
    assert_same(again, ErrorRateSelector(5, search="forward").fit(X, y))
    assert nfs.SparseMultinomialNB(3).fit(dataset).provenance_["reused"]  # they are among these
    assert [plan.n_blocks for plan in first.plans(dataset, None)] == [dataset.source.n_blocks]


@pytest.mark.parametrize("search", ["ranked", "best-individual", "forward", "floating"])
def test_counts_too_wide_to_hold_stay_in_panels(search: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = wide_corpus()
    expected = ErrorRateSelector(15, search=search).fit(X, y)
    dataset = stored(X, y, tmp_path / "store")
    monkeypatch.setattr("nfs_dask.estimators.classifier.MOST_COUNTS", 1)
    engine = DaskEngine(panels=3, workers=1)
    found = ErrorRateSelector(15, search=search, engine=engine).fit(dataset)
    assert_same(found, expected)
    with pytest.raises(InputError, match="too many features"):
        found.partial_fit(X, y)


def test_reals_too_wide_to_hold_can_be_ranked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = wide_corpus()
    X = X * 0.3
    expected = ErrorRateSelector(15).fit(X, y)
    dataset = stored(X, y, tmp_path / "store")
    monkeypatch.setattr("nfs_dask.estimators.classifier.MOST_COUNTS", 1)
    engine = DaskEngine(panels=3, workers=1)
    found = ErrorRateSelector(15, engine=engine).fit(dataset)
    assert found.get_support(indices=True).tolist() == expected.get_support(indices=True).tolist()
    assert found.error_ == pytest.approx(expected.error_, rel=1e-9)
    with pytest.raises(PlanError, match="too many to search through; take search='ranked'"):
        ErrorRateSelector(15, search="forward", engine=engine).fit(dataset)


def test_candidates_too_many_to_hold_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = wide_corpus()
    monkeypatch.setattr("nfs_dask.estimators.feature_search.MOST_COUNTS", 1000)
    with pytest.raises(PlanError, match="too many to hold and search through; take search='ranked'"):
        ErrorRateSelector(15, search="forward").fit(X, y)
    assert len(ErrorRateSelector(15).fit(X, y).get_support(indices=True)) == 15


# More documents, and fewer


@pytest.mark.parametrize("search", ["ranked", "forward"])
def test_documents_come_and_go(search: str) -> None:
    X, y = corpus(3, n_features=20)
    whole = ErrorRateSelector(5, search=search).fit(X, y)
    selector = ErrorRateSelector(5, search=search)
    for first in range(0, 300, 100):
        selector.partial_fit(X[first : first + 100], y[first : first + 100], classes=["a", "b", "c"])
    assert_same(selector, whole)
    selector.forget(X[:100], y[:100])
    assert_same(selector, ErrorRateSelector(5, search=search).fit(X[100:], y[100:]))


def test_a_class_without_documents_yet_takes_no_part() -> None:
    X, y = corpus(2)
    found = ErrorRateSelector(4, search="floating").partial_fit(X, y, classes=["a", "b", "z"])
    expected = ErrorRateSelector(4, search="floating").fit(X, y)
    assert found.error_ == expected.error_
    assert found.get_support(indices=True).tolist() == expected.get_support(indices=True).tolist()
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))
    np.testing.assert_allclose(found.predict_proba(X)[:, :2], expected.predict_proba(X), rtol=1e-12)


def test_lengths_that_were_not_counted_cannot_be_asked_for_later() -> None:
    X, y = corpus()
    given = ErrorRateSelector(3, n_tokens=10).fit(X[:150], y[:150])
    given.partial_fit(X[150:], y[150:])
    assert_same(given, ErrorRateSelector(3, n_tokens=10).fit(X, y))
    with pytest.raises(InputError, match="those of the fit were not counted; fit anew"):
        given.set_params(n_tokens="training").partial_fit(X, y)
    first = ErrorRateSelector(3, n_tokens=10).partial_fit(X[:150], y[:150], classes=["a", "b"])
    first.set_params(n_tokens="training").partial_fit(X[150:], y[150:])
    assert_same(first, ErrorRateSelector(3).fit(X, y))


def test_weights_count_documents_that_often() -> None:
    X, y = corpus()
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    weighted = ErrorRateSelector(4, search="forward", n_tokens=15).fit(X, y, sample_weight=weights)
    repeated = ErrorRateSelector(4, search="forward", n_tokens=15).fit(np.repeat(X, weights, axis=0), y.repeat(weights))
    assert_same(weighted, repeated)


# What is kept


@pytest.mark.parametrize("n_tokens", ["training", 7, [3, 5], {3: 1, np.int64(8): np.float32(2)}], ids=str)
def test_saved_and_loaded(n_tokens: Any, tmp_path: Path) -> None:
    X, y = corpus(3)
    selector = ErrorRateSelector(4, search="floating", n_tokens=n_tokens).fit(X, y)
    selector.save(tmp_path / "model")
    loaded = nfs.load_model(tmp_path / "model")
    assert isinstance(loaded, ErrorRateSelector)
    np.testing.assert_array_equal(loaded.predict_proba(X), selector.predict_proba(X))
    np.testing.assert_array_equal(loaded.transform(X), selector.transform(X))
    assert loaded.error_ == selector.error_ and loaded.dual_gap_ == selector.dual_gap_
    assert nfs.predict_error(loaded, n_tokens=9).error == nfs.predict_error(selector, n_tokens=9).error
    assert not hasattr(loaded, "order_") and not hasattr(loaded, "estimate_")
    assert_same(clone(loaded).fit(X, y), selector)
    assert_same(pickle.loads(pickle.dumps(selector)), selector)


def test_a_model_that_says_nothing_of_other_features_is_refused(tmp_path: Path) -> None:
    X, y = corpus(3)
    ErrorRateSelector(4).fit(X, y).save(tmp_path / "model")
    header = json.loads((tmp_path / "model" / "model.json").read_text())
    del header["arrays"]["rest"]
    (tmp_path / "model" / "model.json").write_bytes(sealed(header))
    with pytest.raises(StoreError, match="features that are not selected"):
        nfs.load_model(tmp_path / "model")


WORDS = "the a tea coffee café green black cup cups of and 12 x milk".split()
SETTINGS: dict[str, dict[str, Any]] = {
    "counts": {},
    "bigrams": {"ngrams": (1, 2), "min_df": 2},
    "hashed": {"hashed": 6},
    "weights": {"tfidf": True},
    "weights without norm": {"tfidf": True, "norm": None},
    "hashed weights": {"tfidf": True, "hashed": 5},
    "hashed weights without norm": {"tfidf": True, "norm": None, "hashed": 5},
}


def texts(n: int, seed: int) -> tuple[list[str], Any]:
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    tilted = np.exp(rng.normal(0, 0.8, (2, len(WORDS))))
    tilted /= tilted.sum(axis=1, keepdims=True)
    return [" ".join(rng.choice(WORDS, rng.integers(1, 20), p=tilted[c])) for c in y], np.array(["no", "yes"])[y]


@pytest.mark.parametrize("name", SETTINGS)
def test_raw_texts_are_read_with_all_of_their_words(name: str, tmp_path: Path) -> None:
    training, labels = texts(150, 0)
    unseen = [*texts(30, 1)[0], "", "words nobody saw", "milk milk words nobody saw"]
    dataset = nfs.ingest(training, tmp_path / "store", labels=labels, **SETTINGS[name])
    rows = nfs.SparseMultinomialNB("all").fit(dataset).transform(unseen)
    selector = ErrorRateSelector(3, search="forward").fit(dataset)
    selector.save(tmp_path / "model")
    expected = selector.predict_proba(rows)
    for one in (selector, nfs.load_model(tmp_path / "model"), pickle.loads(pickle.dumps(selector))):
        np.testing.assert_array_equal(one.predict_proba(unseen), expected)
        np.testing.assert_array_equal(one.transform(unseen).toarray(), one.transform(rows).toarray())
    assert (expected[-1] != expected[-2]).any()
    np.testing.assert_array_equal(selector.predict(training), selector.predict(dataset))


def test_raw_texts_of_several_regions(tmp_path: Path) -> None:
    training, labels = texts(150, 0)
    frame = pd.DataFrame({"subject": training, "body": training[::-1]})
    path = tmp_path / "texts.parquet"
    frame.assign(label=labels).to_parquet(path)
    dataset = nfs.ingest(path, tmp_path / "store", regions=["subject", "body"], label_column="label")
    selector = ErrorRateSelector(5).fit(dataset)
    np.testing.assert_array_equal(selector.predict_proba(frame), selector.predict_proba(dataset))


# What is refused


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"search": "backward"}, "search='backward'; give one of 'ranked', 'best-individual'"),
        ({"search": 3}, "search=3; give one of"),
        ({"alpha": 0}, "alpha=0 makes what was not seen in a class impossible"),
        ({"alpha": -1}, "alpha=-1; give one finite number"),
        ({"add": -1}, "add=-1; give a whole number"),
        ({"drop": 1.5}, "drop=1.5; give a whole number"),
        ({"search": "plus-minus", "add": 2, "drop": 2}, "add=2 and drop=2 get nowhere"),
        ({"n_tokens": "long"}, "n_tokens='long'; give 'training', a number"),
        ({"n_tokens": -3}, "n_tokens=-3 is not a document length"),
        ({"n_tokens": []}, "is not a document length"),
        ({"k": 0}, "k=0 keeps no feature"),
        ({"search": "bounded"}, 'up to 62 features, and there are 79 to choose from; take search="floating"'),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(parameters: dict[str, Any], message: str) -> None:
    X, y = corpus(n_features=80)
    selector = ErrorRateSelector(**{"k": 3, **parameters})
    with pytest.raises(InputError) as caught:
        selector.fit(X, y)
    assert message in str(caught.value)
    assert not hasattr(selector, "model_") and not hasattr(selector, "errors_")


def test_other_uses_say_what_to_do() -> None:
    X, y = corpus()
    with pytest.raises(InputError, match="no path; give one of"):
        nfs.path(X, "error", y=y)
    with pytest.raises(InputError, match="GridSearchCV"):
        nfs.cross_validate(X, y, method="error", ks=[2, 3])
    with pytest.raises(ValueError, match="below zero|negative"):
        ErrorRateSelector(2).fit(-X, y)
