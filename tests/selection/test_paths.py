"""Paths over k: against enumeration, reference vectors, and estimators fitted at each k."""

from __future__ import annotations

import itertools
import json
import pickle
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import nfs_dask as nfs
from nfs_dask import DataWarning, InputError, SparseBernoulliNB, SparseMultinomialNB
from nfs_dask.arrays.block import Array
from nfs_dask.cli.corpus import GeneratedCorpus
from nfs_dask.estimators.loading import make_estimator
from nfs_dask.selection.make_path import _wanted
from tests.helpers.places import GOLDEN

LABELS = {2: ["ham", "spam"], 3: ["<b>a</b>", "b", "c"]}
METHODS: dict[str, dict[str, Any]] = {"bernoulli": {"binarize": 0.0}, "multinomial": {}}
ESTIMATORS = {"bernoulli": SparseBernoulliNB, "multinomial": SparseMultinomialNB}


def data(n_classes: int = 2, n_features: int = 9, n_rows: int = 60, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = np.arange(n_rows) % n_classes
    X = rng.poisson(rng.gamma(0.5, size=(n_classes, n_features))[y])
    return sp.csr_array(X), np.array(LABELS[n_classes])[y]


def log_likelihood(method: str, X: Any, y: Any, support: Any, alpha: float) -> float:
    """Of the documents and the smoothing, by definition: one set of parameters for what is not in the support."""
    dense = X.toarray() > 0 if method == "bernoulli" else X.toarray()
    f = np.array([dense[y == c].sum(axis=0) for c in np.unique(y)]) + alpha
    inside = np.isin(np.arange(X.shape[1]), support)
    if method == "bernoulli":
        n = np.array([(y == c).sum() for c in np.unique(y)])[:, None] + 2 * alpha
        rates = np.where(inside, f / n, f.sum(axis=0) / n.sum())
        return float((f * np.log(rates) + (n - f) * np.log(1 - rates)).sum())
    pooled = f.sum(axis=0) / f.sum()
    own = f[:, inside]
    rates = np.tile(pooled, (len(f), 1))
    rates[:, inside] = own / own.sum(axis=1, keepdims=True) * own.sum() / f.sum()
    return float((f * np.log(rates)).sum())


def best(method: str, X: Any, y: Any, k: int, alpha: float) -> float:
    supports = itertools.combinations(range(X.shape[1]), k)
    return max(log_likelihood(method, X, y, support, alpha) for support in supports)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("seed", [0, 1])
def test_bounds_hold_the_best_support_of_every_k(method: str, n_classes: int, seed: int) -> None:
    X, y = data(n_classes, seed=seed)
    path = nfs.path(X, method, y=y, alpha=0.5, **METHODS[method])
    assert path.ks.tolist() == list(range(1, 10))
    phi = np.array([best(method, X, y, k, 0.5) for k in path.ks]) - path.null_objective
    assert path.null_objective == pytest.approx(log_likelihood(method, X, y, [], 0.5))
    noise = 1e-9 * phi[-1]
    assert (path.guaranteed <= phi + noise).all()
    assert (path.value <= phi + noise).all()
    assert (phi <= path.bound + noise).all()
    np.testing.assert_allclose(phi[path.close], path.value[path.close], rtol=2e-6)
    np.testing.assert_allclose(phi[path.certified], path.value[path.certified], rtol=1e-10)
    assert path.close[path.certified].all()
    assert (path.bound[: -n_classes + 1] <= phi[n_classes - 1 :] + 1e-6 * phi[-1]).all()
    for k, value in zip(path.ks, path.value, strict=True):
        support = path.support(k)
        assert len(support) == k
        found = log_likelihood(method, X, y, support, 0.5) - path.null_objective
        assert found == pytest.approx(value, abs=noise)
    if method == "bernoulli":
        np.testing.assert_allclose(path.value, phi, rtol=1e-9)
        assert path.certified.all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_laws_of_a_path(method: str, n_classes: int) -> None:
    X, y = data(n_classes, n_features=120, n_rows=200)
    path = nfs.path(X, method, range(1, 121), y=y, **METHODS[method])
    little = 2e-6 * path.bound.max()
    assert (np.diff(path.bound) >= -little).all()
    assert (np.diff(path.bound, 2) <= 2 * little).all()
    assert (path.gap >= 0).all()
    assert (path.guaranteed <= path.bound).all()
    assert (path.gap[path.ks > 1] <= path.bound[path.ks > 1] / path.ks[path.ks > 1] * (n_classes - 1) + little).all()
    np.testing.assert_allclose(path.relative_gap * path.bound, path.gap, rtol=1e-12)
    if method == "multinomial" and n_classes == 2:
        np.testing.assert_allclose(path.guaranteed[1:], path.bound[:-1], rtol=3e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_what_is_guaranteed_does_not_need_every_k(n_classes: int) -> None:
    X, y = data(n_classes, n_features=9)
    few = nfs.path(X, "multinomial", [2, 4, 9], y=y)
    phi = [best("multinomial", X, y, k, 1.0) - few.null_objective for k in few.ks.tolist()]
    assert (few.guaranteed <= np.array(phi) * (1 + 1e-9)).all()
    assert (few.guaranteed[1:] > few.bound[1:] / 3).all(), "it is no idle promise"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_estimators_agree_at_every_k(method: str, n_classes: int) -> None:
    X, y = data(n_classes, n_features=40)
    path = nfs.path(X, method, [2, 7, 0.5, "all"], y=y, alpha=0.1, **METHODS[method])
    assert path.ks.tolist() == [2, 7, 20, 40]
    for k, value, bound in zip(path.ks, path.value, path.bound, strict=True):
        fitted = ESTIMATORS[method](int(k), alpha=0.1, **METHODS[method]).fit(X, y)
        gain, limit = (o - path.null_objective for o in (fitted.objective_, fitted.upper_bound_))
        assert limit == pytest.approx(bound, rel=2e-6, abs=1e-9)
        assert value <= limit + 1e-6 * bound
        assert gain <= bound + 1e-9 * bound
        assert gain >= value - 1e-6 * bound, "an estimator tries at least as much"
        if fitted.certified_ and gain - value < 1e-9 * bound:
            assert path.support(k).tolist() == fitted.get_support(indices=True).tolist()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_certified_means_what_it_means_of_a_fit(n_classes: int) -> None:
    X, y = data(n_classes, n_features=60)
    path = nfs.path(X, "multinomial", y=y)
    assert path.certified.any() and not path.certified.all()
    assert n_classes > 2 or path.close.sum() > path.certified.sum()
    for k, value in zip(path.ks[path.certified].tolist(), path.value[path.certified], strict=True):
        fitted = nfs.SparseMultinomialNB(k).fit(X, y)
        assert fitted.certified_
        assert fitted.objective_ - path.null_objective == pytest.approx(value, abs=1e-11 * -fitted.objective_)
    words = {row[0]: row[-1] for row in path.cells()[1:]}
    for row in path.records():
        if (said := words.get(str(row["k"]))) is not None:
            assert said == ("yes" if row["certified"] else "close" if row["close"] else "no")


@pytest.mark.parametrize("name", ["uniform", "zipf", "dup", "big"])
def test_reference_paths(name: str) -> None:
    file = np.load(GOLDEN / "multinomial_path.npz")
    psi, walked = file[f"{name}_psi_gain"], file[f"{name}_tie_walk"]
    ks = file["big_k"] if name == "big" else np.arange(201)
    psi, walked, ks = psi[ks > 0], walked[ks > 0], ks[ks > 0]
    X = sp.csr_array(np.stack([file[f"{name}_fp"], file[f"{name}_fm"]]))
    path = nfs.path(X, "multinomial", ks, y=[0, 1], alpha=0.0)
    np.testing.assert_allclose(path.bound, psi, rtol=1.01e-6)
    assert (path.value <= psi * (1 + 1e-12)).all()
    assert (path.value >= walked - 1e-6 * psi).all()


# What it reads, and what it takes.


def test_one_pass_and_none_when_the_counts_are_kept(tmp_path: Path) -> None:
    corpus = GeneratedCorpus(800, 200, words_per_document=20, block_rows=100)
    dataset = nfs.ingest(corpus, tmp_path / "mail.zarr")
    first = nfs.path(dataset, "multinomial", [5, 20])
    assert not first.reused
    again = nfs.path(dataset, "multinomial", [10], alpha=0.1)
    assert again.reused
    assert SparseMultinomialNB(10).fit(dataset).provenance_["reused"]
    assert not nfs.path(dataset, "bernoulli", [5], binarize=0.0).reused
    assert not nfs.path(nfs.open_dataset(tmp_path / "mail.zarr", reuse=False), "multinomial", [5]).reused
    names = dataset.names(np.arange(200))
    assert names is not None
    assert first.names(20) == [names[i] for i in first.support(20)]
    assert first.n_rows == 800


@pytest.mark.parametrize("method", METHODS)
def test_counts_too_wide_for_memory_have_the_same_path(
    tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = nfs.ingest(GeneratedCorpus(800, 200, words_per_document=20, block_rows=100), tmp_path / "mail.zarr")
    whole = nfs.path(dataset, method, engine=nfs.SerialEngine(panels=1), **METHODS[method])
    monkeypatch.setattr("nfs_dask.estimators.classifier.MOST_COUNTS", 1)
    again = nfs.open_dataset(tmp_path / "mail.zarr", reuse=False)
    panels = nfs.path(again, method, engine=nfs.SerialEngine(panels=5), **METHODS[method])
    assert not panels.reused
    np.testing.assert_array_equal(panels.value, whole.value)
    np.testing.assert_array_equal(panels.bound, whole.bound)
    assert panels.null_objective == whole.null_objective
    for k in (1, 20, 199, 200):
        assert panels.names(k) == whole.names(k)


def test_every_input_has_the_same_path() -> None:
    X, y = data(n_features=30)
    path = nfs.path(X, "multinomial", [3, 9], y=y)
    names = [f"word{i}" for i in range(30)]
    frame = pd.DataFrame(X.toarray(), columns=names)
    lazy = da.from_array(X.toarray(), chunks=(20, 30))
    for other in (X.toarray(), X.toarray().astype(object), frame, lazy):
        same = nfs.path(other, "multinomial", [3, 9], y=y)
        np.testing.assert_array_equal(same.value, path.value)
        np.testing.assert_array_equal(same.support(9), path.support(9))
        expected = "word" if other is frame else "x"
        assert same.names(9) == [f"{expected}{i}" for i in path.support(9)]


def test_weights_are_documents_over_and_over() -> None:
    X, y = data()
    weights = np.arange(60) % 4
    repeated = nfs.path(X[np.repeat(np.arange(60), weights)], "multinomial", y=np.repeat(y, weights))
    np.testing.assert_array_equal(nfs.path(X, "multinomial", y=y, sample_weight=weights).value, repeated.value)


def test_default_k_of_narrow_and_wide_data() -> None:
    def wanted(method: str, n_classes: int, m: int) -> Array:
        return _wanted(None, make_estimator(method).solves_each_k(n_classes), m)

    assert wanted("multinomial", 2, 3000).tolist() == list(range(1, 3001))
    assert wanted("multinomial", 3, 100).tolist() == list(range(1, 101))
    for method, n_classes, m, most in (
        ("multinomial", 2, 3001, 200),
        ("bernoulli", 5, 10**7, 200),
        ("multinomial", 3, 101, 50),
    ):
        ks = wanted(method, n_classes, m)
        assert 0.6 * most < len(ks) <= most
        assert (ks[0], ks[-1]) == (1, m)
    assert len(wanted("bernoulli", 5, 3000)) == 3000


def test_features_that_never_occur_are_not_chosen() -> None:
    X = sp.csr_array(np.array([[2, 0, 1, 0], [0, 0, 2, 0], [1, 0, 3, 0]]))
    path = nfs.path(X, "multinomial", [3, 4], y=[0, 1, 1])
    assert path.support(3).tolist() == [0, 2]
    assert path.support(4).tolist() == [0, 1, 2, 3]


def test_refusals_say_what_to_do() -> None:
    X, y = data()
    for wrong, message in (
        (lambda: nfs.path(X, "magic", y=y), "'multinomial', 'bernoulli'"),
        (lambda: nfs.path(X, "hybrid", y=y), "does not rank features.*cross_validate"),
        (lambda: nfs.path(X, "error", y=y), "does not rank features"),
        (lambda: nfs.path(X, "multinomial", y=y, binarize=0.0), "bernoulli"),
        (lambda: nfs.path(X, "multinomial", "all", y=y), "not a list"),
        (lambda: nfs.path(X, "multinomial", 10, y=y), "not a list"),
        (lambda: nfs.path(X, "multinomial", [], y=y), "empty"),
        (lambda: nfs.path(X, "multinomial", [0], y=y), "keeps no feature"),
        (lambda: nfs.path(X, "multinomial", [1.0], y=y), '"all"'),
        (lambda: nfs.path(X, "multinomial", y=y, alpha=-1), "alpha"),
        (lambda: nfs.path(X, "multinomial"), "y"),
        (lambda: nfs.path(X, "multinomial", [2, 5], y=y).support(4), "near it are 2 and 5"),
        (lambda: nfs.path(X, "multinomial", [2, 5], y=y).names(9), "near it are 5"),
        (lambda: nfs.path(X, "multinomial", y=y, sample_weight=0), "all documents have weight zero"),
    ):
        with pytest.raises(InputError, match=message):
            wrong()
    with pytest.warns(DataWarning, match="all are kept"):
        assert nfs.path(X, "multinomial", [3, 100], y=y).ks.tolist() == [3, 9]


# What it shows.


def test_it_prints_about_twenty_rows_and_all_as_json() -> None:
    X, y = data(n_features=300)
    path = nfs.path(X, "multinomial", y=y)
    lines = str(path).splitlines()
    assert 15 <= len(lines) <= 22
    assert [lines[2].split()[0], lines[-1].split()[0]] == ["1", "300"]
    assert len({len(line) for line in lines[1:]}) == 1, "columns are aligned"
    values = json.loads(json.dumps(path.to_json(), allow_nan=False))
    assert [row["k"] for row in values["path"]] == path.ks.tolist()
    assert [row["bound"] for row in values["path"]] == path.bound.tolist()
    assert values["path"][0]["certified"] is bool(path.certified[0])
    assert "300 values of k" in repr(path)


def test_samples_hold_both_ends_in_equal_ratios() -> None:
    X, y = data(n_features=300)
    path = nfs.path(X, "bernoulli", [*range(1, 20), 290, 300], y=y, binarize=0.0)
    assert path.ks[path.sample(3)].tolist() == [1, 17, 300]
    assert path.sample(100).tolist() == list(range(21))


def test_a_path_travels_without_the_data() -> None:
    X, y = data(n_features=300, n_rows=3000)
    path = nfs.path(X, "multinomial", [5, 20], y=y)
    content = pickle.dumps(path)
    assert len(content) < X.data.nbytes / 4
    there = pickle.loads(content)
    assert there.names(20) == path.names(20)
    assert str(there) == str(path)
    many = pickle.loads(pickle.dumps(nfs.path(X, "multinomial", [5, 20, 100], y=y)))
    assert many.choose("elbow") in (5, 20, 100)
    with pytest.raises(InputError, match="did not travel"):
        many.choose("cv")


def test_a_path_of_a_store_knows_where_its_data_are(tmp_path: Path) -> None:
    X, y = data()
    path = pickle.loads(pickle.dumps(nfs.path(nfs.ingest(X, tmp_path / "s.zarr", labels=y), "multinomial", [2, 5, 9])))
    assert path.choose("cv", folds=3) in (2, 5, 9)


def test_html_is_a_table_and_nothing_else() -> None:
    X, y = data(3)
    text = nfs.path(X, "multinomial", y=y)._repr_html_()
    assert text.count("<tr>") == 10
    assert "<b>" not in text


def test_a_path_of_three_classes_has_what_fits_have() -> None:
    X, y = data(3, 12)
    X = sp.hstack([X] * 8, format="csr")
    ks = [2, 10, 49, 50, 51, 70, 95]
    path = nfs.path(X, "multinomial", y=y, ks=ks, alpha=0.5)
    for i, k in enumerate(ks):
        model = SparseMultinomialNB(k=k, alpha=0.5).fit(X, y)
        assert path.objective[i] == pytest.approx(model.objective_, rel=1e-13)
        assert path.bound[i] - path.value[i] == pytest.approx(model.dual_gap_, rel=1e-6, abs=1e-12 * path.bound[i])
        np.testing.assert_array_equal(path.support(k), model.get_support(indices=True))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_path_tells_how_far_it_is(
    n_classes: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("nfs_dask.progress.PATIENCE", 0.0)
    caplog.set_level("INFO", logger="nfs_dask")
    X, y = data(n_classes, 9)
    nfs.path(X, "multinomial", y=y)
    told = [message for message in caplog.messages if message.startswith("solving: ")]
    assert len(told) > 1 and told[-1].startswith("solving: 9 of 9 values of k")


def test_one_order_for_paths_and_cross_validation() -> None:
    X, y = data(2, n_features=20)
    expected = nfs.path(X, "multinomial", [2, 5], y=y)
    for found in (
        nfs.path(X, y, "multinomial", [2, 5]),
        nfs.path(X, y, method="multinomial", ks=[2, 5]),
        nfs.path(X, y.tolist(), method="multinomial", ks=[2, 5]),
        nfs.path(X, method="multinomial", ks=[2, 5], y=y),
        nfs.path(X, "multinomial", y=y, ks=[2, 5]),
    ):
        assert found.records() == expected.records()
    for wrong, message in (
        (lambda: nfs.path(X, "multinomial", y), r"labels of X are missing; write path\(X, y, method="),
        (lambda: nfs.path(X, "multinomial", method="l2", y=y), "method was given twice"),
        (lambda: nfs.path(X, y, "multinomial", y=y), "y was given twice"),
        (lambda: nfs.path(X, "multinomial", [2], y), "4 values were given without names, of which 3"),
        (lambda: nfs.path(X, y), "method=None; give one of"),
    ):
        with pytest.raises(InputError, match=message):
            wrong()
