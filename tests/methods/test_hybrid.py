"""The hybrid fit against a plain one by numpy and scipy, wherever the data are, however they are read, and resumed."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, replace
from functools import partialmethod
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from scipy import optimize, sparse

from nfs_dask.cluster.resources import Resources
from nfs_dask.dataset import Dataset, open_dataset
from nfs_dask.engine.distributed import DaskEngine
from nfs_dask.engine.serial import SerialEngine, SerialExecutor
from nfs_dask.errors import InputError, PlanError
from nfs_dask.methods import slopes
from nfs_dask.methods import word_tables as regions
from nfs_dask.methods.hybrid import HybridFit, HybridSettings, fit_hybrid, hybrid_plans
from nfs_dask.methods.naive_bayes import Counts, Settings, fit_multinomial
from nfs_dask.methods.procedure import Passes
from nfs_dask.solvers.logistic.likelihood import class_scores
from nfs_dask.sources.open_source import open_source
from nfs_dask.statistics.counts import ClassCounts
from nfs_dask.store.layout import Layout
from nfs_dask.store.writer import write_store
from tests.helpers.grids import each_once
from tests.helpers.region_features import region_features

N, R, V = 120, 2, 30
SMALL = Layout(chunk=64, shard=256, row_chunk=8, row_shard=32, block=150)


@dataclass
class Corpus:
    """Documents (n, R, V), their classes and weights."""

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None = None

    @property
    def matrix(self) -> sparse.csr_matrix:
        return sparse.csr_matrix(self.X.reshape(len(self.X), -1))

    @property
    def dataset(self) -> Dataset:
        return Dataset(open_source(self.matrix, self.y, sample_weight=self.weights))

    def stored(self, path: Path) -> Dataset:
        """In many blocks."""
        if not path.exists():
            write_store(open_source(self.matrix, self.y, sample_weight=self.weights), path, layout=SMALL)
        return open_dataset(path)

    def lazy(self) -> Dataset:
        """Of a dask array in chunks of its own."""
        chunks = da.from_array(self.X.reshape(len(self.X), -1), chunks=(25, -1))
        weights = None if self.weights is None else da.from_array(self.weights, chunks=25)
        return Dataset(open_source(chunks, da.from_array(self.y, chunks=25), sample_weight=weights))


def corpus(n_classes: int = 2, weights: str | None = None, seed: int = 0) -> Corpus:
    """Classes that overlap; some regions are empty."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=N)
    rates = rng.gamma(0.5, 1.0, (n_classes, R, V)) + 0.3
    X = rng.poisson(0.25 * rates[y]) * (rng.random((N, R, 1)) < 0.9)
    drawn = {None: None, "whole": rng.integers(0, 4, N), "real": rng.choice([0.0, 0.25, 1.0, 1.5], N)}
    return Corpus(X, np.array(["a", "b", "c", "d"])[y], drawn[weights])


# The truth


def features_of(c: Corpus, settings: HybridSettings, words: np.ndarray) -> np.ndarray:
    """(n, R, C) features, each by a table counted without the document."""
    classes, codes = np.unique(c.y, return_inverse=True)
    w = np.ones(len(c.X)) if c.weights is None else np.asarray(c.weights, float)
    F = np.stack([np.tensordot(w * (codes == k), c.X, 1) for k in range(len(classes))])  # (C, R, V)
    out = np.zeros((len(c.X), c.X.shape[1], len(classes)))
    for i, x in enumerate(c.X):
        G = F.copy()
        G[codes[i]] -= min(w[i], 1) * x
        if settings.tables == "shared":
            G = np.repeat(G.sum(axis=1, keepdims=True), G.shape[1], axis=1)
        P = (G + settings.alpha) / (G.sum(axis=2, keepdims=True) + settings.alpha * G.shape[2])
        tokens = x[:, words].sum(axis=1)
        logs = np.einsum("rw,crw->rc", x[:, words], np.log(P[:, :, words]))
        out[i] = logs / np.where(tokens > 0, tokens, 1)[:, None] if settings.normalize else logs
    return out


def by_scipy(c: Corpus, settings: HybridSettings, words: np.ndarray) -> tuple[np.ndarray, float]:
    """Theta, with the intercepts of a fixed prior, and the objective."""
    classes, codes = np.unique(c.y, return_inverse=True)
    n_classes, n = len(classes), len(c.X)
    w = np.ones(n) if c.weights is None else np.asarray(c.weights, float)
    b = features_of(c, settings, words)
    A = np.zeros((n, n_classes, n_classes - 1 + b.shape[1]))  # scores are A @ theta + offsets
    for k in range(1, n_classes):
        A[:, k, k - 1] = 1
    A[:, :, n_classes - 1 :] = b.transpose(0, 2, 1)
    mass = np.array([w[codes == k].sum() for k in range(n_classes)])
    offsets, free = np.zeros((n, n_classes)), np.ones(A.shape[2], bool)
    if settings.prior == "fixed":
        offsets = np.log(mass - np.eye(n_classes)[codes] * np.minimum(w, 1)[:, None])
        free[: n_classes - 1] = False
    A = A[:, :, free]
    ridge = np.where(np.arange(len(free)) >= n_classes - 1, settings.ridge, 0.0)[free]

    def posteriors(theta: Any) -> Any:
        scores = A @ theta + offsets
        scores -= scores.max(axis=1, keepdims=True)
        return scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))

    def cost(theta: Any) -> float:
        return float(-w @ posteriors(theta)[np.arange(n), codes] + ridge @ theta**2 / 2)

    def slope(theta: Any) -> Any:
        left = np.eye(n_classes)[codes] - np.exp(posteriors(theta))
        return -np.einsum("i,ic,icp->p", w, left, A) + ridge * theta

    def bend(theta: Any) -> Any:
        p = np.exp(posteriors(theta))
        mean = np.einsum("ic,icp->ip", p, A)
        return np.einsum("i,ic,icp,icq->pq", w, p, A, A) - np.einsum("i,ip,iq->pq", w, mean, mean) + np.diag(ridge)

    start = np.zeros(A.shape[2])
    found = optimize.minimize(cost, start, jac=slope, hess=bend, method="trust-exact", options={"gtol": 1e-9})
    theta = np.zeros(len(free))
    theta[free] = found.x - np.linalg.solve(bend(found.x), slope(found.x))
    if settings.prior == "fixed":
        theta[: n_classes - 1] = np.log(mass[1:] / mass[0])
    return theta, -float(found.fun)


# One machine, data in memory

SETTINGS = HybridSettings(R, ridge=0.1)


CHANGES: list[dict[str, Any]] = [
    {},
    {"normalize": False},
    {"prior": "fixed", "alpha": 0.3},
    {"tables": "separate", "ridge": 0.0},
    {"k": 12},
    {"k": 12, "tables": "separate", "prior": "fixed"},
    {"n_regions": 1},
]


@pytest.mark.parametrize(("changes", "weights", "n_classes"), each_once(CHANGES, [None, "whole", "real"], [2, 3]))
def test_theta_is_that_of_a_plain_fit(n_classes: int, weights: str | None, changes: dict[str, Any]) -> None:
    c, settings = corpus(n_classes, weights), replace(SETTINGS, **changes)
    fit = fit_hybrid(c.dataset, settings)
    c.X = c.X.reshape(N, settings.n_regions, -1)
    theta, objective = by_scipy(c, settings, fit.words)
    np.testing.assert_allclose(fit.theta, theta, rtol=1e-7, atol=1e-8)
    assert fit.logistic.objective == pytest.approx(objective, rel=1e-10)
    np.testing.assert_array_equal(fit.classes, np.unique(c.y))
    assert fit.rows == N
    assert len(fit.words) == (settings.k or c.X.shape[2])


def test_reference_vectors(golden: Any) -> None:
    for case in golden("hybrid.json"):
        given = case["inputs"]
        X = np.zeros((len(given["docs"]), len(given["docs"][0]), given["vocabulary_size"]))
        for i, r, word, count in (
            (i, r, word, count)
            for i, document in enumerate(given["docs"])
            for r, region in enumerate(document)
            for word, count in region.items()
        ):
            X[i, r, int(word)] = count
        c = Corpus(X, np.array(given["y"]))
        for normalize in (True, False):
            for wanted in case["expected"]["normalised" if normalize else "unnormalised"]["fits"]:
                settings = HybridSettings(X.shape[1], normalize, given["smooth"], wanted["ridge"])
                if "error" in wanted:
                    with pytest.raises(InputError, match="ridge > 0"):
                        fit_hybrid(c.dataset, settings)
                    continue
                fit = fit_hybrid(c.dataset, settings)
                np.testing.assert_allclose(fit.theta, wanted["theta"], rtol=1e-6, atol=1e-9, err_msg=case["id"])
                assert fit.logistic.objective == pytest.approx(wanted["objective"], rel=1e-10)
                assert_predictions(fit, given, case["expected"]["normalised" if normalize else "unnormalised"], wanted)


def assert_predictions(fit: HybridFit, given: Any, features: Any, wanted: Any) -> None:
    """Features and posteriors of documents that the table was not counted from."""
    if not given["test"]:
        return
    X = np.zeros((len(given["test"]), fit.settings.n_regions, fit.n_words))
    for i, document in enumerate(given["test"]):
        for r, region in enumerate(document):
            for word, count in region.items():
                X[i, r, int(word)] = count
    (block,) = open_source(sparse.csr_matrix(X.reshape(len(X), -1))).blocks(0, 1)
    b = region_features(block, fit.table, fit.counts, normalize=fit.settings.normalize, leave_out=False)
    np.testing.assert_allclose(b, np.array(features["test_b"])[:, 1:], rtol=1e-11, atol=1e-11)
    scores = class_scores(b, fit.theta)[:, 1]
    np.testing.assert_allclose(1 / (1 + np.exp(-scores)), wanted["test_posterior"], rtol=1e-6)


def test_log_probabilities_are_those_of_the_table() -> None:
    c = corpus(3)
    for changes in ({}, {"tables": "separate"}, {"k": 5}):
        fit = fit_hybrid(c.dataset, replace(SETTINGS, **changes))
        F = np.stack([c.X[c.y == label].sum(axis=0) for label in fit.classes])  # (C, R, V)
        F = F if changes.get("tables") else F.sum(axis=1)
        logs = np.log((F + 1) / (F.sum(axis=-1, keepdims=True) + V))
        np.testing.assert_allclose(fit.log_probabilities, logs[..., fit.words], rtol=1e-13)
        np.testing.assert_array_equal(fit.counts, F[..., fit.words])
        assert fit.counts.dtype == np.int64


def test_the_words_are_those_of_the_sparse_multinomial() -> None:
    c = corpus(2)
    fit = fit_hybrid(c.dataset, replace(SETTINGS, k=7, alpha=0.5))
    F = np.stack([c.X[c.y == label].sum(axis=(0, 1)) for label in fit.classes])
    documents = np.array([np.count_nonzero(c.y == label) for label in fit.classes], float)
    model = fit_multinomial(Counts.of(fit.classes, documents, F), Settings(7, 0.5))
    np.testing.assert_array_equal(fit.words, model.support)
    assert fit.evidence is not None
    assert fit.evidence.objective == model.evidence.objective
    assert fit_hybrid(c.dataset, replace(SETTINGS, k=V)).evidence is None


# Any engine, workers, blocks

TOGETHER = replace(SETTINGS, ridge=1e-3)


def same(fit: HybridFit, other: HybridFit) -> None:
    np.testing.assert_array_equal(fit.counts, other.counts)
    np.testing.assert_array_equal(fit.totals, other.totals)
    np.testing.assert_array_equal(fit.words, other.words)
    np.testing.assert_allclose(fit.theta, other.theta, rtol=1e-10, atol=1e-12)


def no_folder(*_: Any, **__: Any) -> Resources:
    return Resources(1, 1, 8 << 30, 200 << 20, None)


@pytest.mark.parametrize("way", ["collected", "stored", "seen"])
@pytest.mark.parametrize("kind", ["memory", "store", "delayed"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_way_of_reading_gives_the_same(
    n_classes: int, kind: str, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    c = corpus(n_classes, "real")
    settings = replace(TOGETHER, prior="fixed" if n_classes == 3 else "fitted")
    want = fit_hybrid(c.dataset, settings)
    assert [one.name for one in want.passes] == ["counts", "features"]
    monkeypatch.setattr("nfs_dask.sources.region_features.PIECE_ROWS", 17)
    if way != "collected":
        monkeypatch.setattr(slopes, "HELD", 0)
    if way == "seen":
        monkeypatch.setattr(SerialExecutor, "resources", no_folder)
    dataset = {"memory": lambda: c.dataset, "store": lambda: c.stored(tmp_path / "d.zarr"), "delayed": c.lazy}[kind]()
    found = fit_hybrid(dataset, settings, SerialEngine(spool=str(tmp_path / "spool")))
    same(found, want)
    steps = sum(one.name.startswith("fit") for one in found.passes)
    assert steps == (0 if way == "collected" else found.logistic.n_evaluations)
    assert [one.name for one in found.passes][1] == ("fit" if way == "seen" else "features")
    assert not list((tmp_path / "spool").glob(".nfs-*"))


PLACES = [("memory", "whole"), *itertools.product(("store", "delayed"), ("whole", "panels", "shipped"))]


@pytest.mark.parametrize(("place", "held"), each_once(PLACES, [True, False]))
def test_workers_give_the_same(
    cluster: Any, place: tuple[str, str], held: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, cut = place
    c = corpus(3, "whole")
    settings = replace(TOGETHER, tables="separate")
    want = fit_hybrid(c.dataset, settings)
    monkeypatch.setattr(slopes, "SHIPPED", slopes.SHIPPED if cut == "shipped" else 0)
    if cut == "panels":
        monkeypatch.setattr(slopes, "CUTS", ((300, 2000),))
    if not held:
        monkeypatch.setattr(slopes, "HELD", 0)
    dataset = {"memory": lambda: c.dataset, "store": lambda: c.stored(tmp_path / "d.zarr"), "delayed": c.lazy}[kind]()
    found = fit_hybrid(dataset, settings, DaskEngine(spool=str(tmp_path / "spool")))
    same(found, want)
    assert all(one.plan is None or one.plan.fits for one in found.passes)
    assert not list((tmp_path / "spool").glob(".nfs-*"))


@pytest.mark.parametrize(("weights", "tables", "k"), each_once([None, "real"], ["shared", "separate"], [9, None]))
def test_counts_in_panels_give_the_same(
    weights: str | None, tables: Any, k: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    c = corpus(2, weights)
    settings = replace(TOGETHER, k=k, tables=tables)
    want = fit_hybrid(c.dataset, settings)
    monkeypatch.setattr(regions, "PANEL_NBYTES", 100)
    found = fit_hybrid(c.stored(tmp_path / "d.zarr"), settings, SerialEngine(panels=7))
    np.testing.assert_array_equal(found.words, want.words)
    np.testing.assert_allclose(found.counts, want.counts, rtol=1e-14)
    np.testing.assert_allclose(found.theta, want.theta, rtol=1e-10)
    if k is not None:
        monkeypatch.setattr(regions, "MOST_COUNTS", 100)  # the choice too is made panel by panel
        streamed = fit_hybrid(c.stored(tmp_path / "d.zarr"), settings, SerialEngine(panels=7))
        np.testing.assert_array_equal(streamed.words, want.words)
        np.testing.assert_allclose(streamed.theta, want.theta, rtol=1e-10)


def test_the_counts_are_those_of_the_multinomial_and_kept(tmp_path: Path) -> None:
    dataset = corpus().stored(tmp_path / "d.zarr")
    dataset.reduce(ClassCounts(2))
    fit = fit_hybrid(dataset, SETTINGS)
    counts, features = fit.passes
    assert (counts.plan, counts.share) == (None, 0.0)
    assert features.plan is not None
    assert fit.reads == pytest.approx(1.0)
    json.dumps(fit.to_json())


# Runs


@pytest.mark.parametrize("held", [True, False])
def test_a_run_goes_on_where_it_stopped(held: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    c = corpus()
    dataset, engine = c.stored(tmp_path / "d.zarr"), SerialEngine(run=str(tmp_path / "run"))
    if not held:
        monkeypatch.setattr(slopes, "HELD", 0)
    want = fit_hybrid(c.stored(tmp_path / "other.zarr"), TOGETHER)
    last = "features" if held else "fit 3"
    with monkeypatch.context() as patch:
        patch.setattr(Passes, "record", partialmethod(_stops_at, last))
        with pytest.raises(KeyboardInterrupt):
            fit_hybrid(dataset, TOGETHER, engine)
    found = fit_hybrid(dataset, TOGETHER, engine)
    same(found, want)
    done = [one.name for one in found.passes if one.share == 0.0]
    assert done == (["counts", "features"] if held else ["counts", "features", "fit", "fit 2", "fit 3"])
    again = fit_hybrid(dataset, TOGETHER, engine)
    assert again.theta.tobytes() == found.theta.tobytes()
    assert again.reads == 0.0
    other = fit_hybrid(dataset, replace(TOGETHER, normalize=False), engine)  # the same run, other features
    same(other, fit_hybrid(c.dataset, replace(TOGETHER, normalize=False)))


def _stops_at(passes: Passes, name: str, *args: Any) -> None:
    _RECORD(passes, *args)
    if passes.done[-1].name == name:
        raise KeyboardInterrupt


_RECORD = Passes.record


# Plans and refusals


@pytest.mark.parametrize("held", [True, False])
def test_plans_are_those_of_the_passes(held: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not held:
        monkeypatch.setattr(slopes, "HELD", 0)
        monkeypatch.setattr(SerialExecutor, "resources", no_folder)
    dataset = corpus().stored(tmp_path / "d.zarr")
    engine = SerialEngine()
    counts, features = hybrid_plans(dataset, SETTINGS, engine)
    fit = fit_hybrid(dataset, SETTINGS, engine)
    for planned, one in zip((counts, features), fit.passes, strict=False):
        assert one.plan is not None
        assert planned.statistic == one.plan.statistic
        assert planned.task_nbytes == one.plan.task_nbytes
        assert planned.runs == one.plan.runs


def test_tables_are_cut_to_what_workers_have() -> None:
    """Of a wide vocabulary: smaller panels for smaller workers, and refused for tiny ones."""
    words = 20_000_000
    matrix = sparse.csr_matrix((np.ones(2), ([0, 1], [0, 2 * words - 1])), shape=(2, 2 * words))
    dataset = Dataset(open_source(matrix, ["a", "b"]))
    dataset.source._facts = replace(dataset.source.facts, in_memory=False)  # as if workers could read it

    def peak(gib: float) -> tuple[int, bool]:
        resources = Resources(2, 1, int(gib * 2**30), 200 << 20, "/nowhere", remote=True)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SerialExecutor, "resources", lambda *_, **__: resources)
            plan = hybrid_plans(dataset, SETTINGS, SerialEngine())[1]
        return plan.peak_nbytes, plan.fits

    sizes = {gib: peak(gib) for gib in (1.0, 0.6, 0.45, 0.35)}
    assert sizes[1.0][0] > sizes[0.6][0] > sizes[0.45][0]
    assert [fits for _, fits in sizes.values()] == [True, True, True, False]


def test_what_cannot_be_fitted_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    c = corpus()
    with pytest.raises(InputError, match="60 columns are not 7 regions"):
        fit_hybrid(c.dataset, replace(SETTINGS, n_regions=7))
    with pytest.raises(InputError, match="k=31 of 30 words"):
        fit_hybrid(c.dataset, replace(SETTINGS, k=31))
    with pytest.raises(InputError, match="all documents have weight zero"):
        fit_hybrid(Corpus(c.X, c.y, np.zeros(N)).dataset, SETTINGS)
    with pytest.raises(InputError, match="negative value"):
        fit_hybrid(Corpus(-c.X, c.y).dataset, SETTINGS)
    with pytest.raises(InputError, match="no labels"):
        fit_hybrid(Dataset(open_source(c.matrix)), SETTINGS)
    monkeypatch.setattr(regions, "MOST_COUNTS", 100)
    with pytest.raises(PlanError, match="give k"):
        fit_hybrid(c.dataset, SETTINGS)


@pytest.mark.parametrize(
    "wrong", [{"n_regions": 0}, {"alpha": 0.0}, {"ridge": -1.0}, {"prior": "flat"}, {"tables": "both"}, {"k": 0}]
)
def test_settings_check_themselves(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong)).replace("n_", "")):
        replace(SETTINGS, **wrong)


@pytest.mark.parametrize("held", [True, False])
def test_separable_documents_need_a_ridge(held: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not held:
        monkeypatch.setattr(slopes, "HELD", 0)
    y = np.arange(20) % 2
    X = np.zeros((20, 1, 4))
    X[np.arange(20), 0, y] = 3
    c = Corpus(X, y)
    with pytest.raises(InputError, match="separable.*ridge > 0"):
        fit_hybrid(c.dataset, HybridSettings(1, ridge=0.0))
    theta, _ = by_scipy(c, HybridSettings(1), np.arange(4))
    np.testing.assert_allclose(fit_hybrid(c.dataset, HybridSettings(1)).theta, theta, rtol=1e-6, atol=1e-9)


def test_a_class_of_one_document_has_no_fixed_prior() -> None:
    c = corpus()
    y = np.where(np.arange(N) == 5, "z", "a")
    with pytest.raises(InputError, match="single one"):
        fit_hybrid(Corpus(c.X, y).dataset, replace(SETTINGS, prior="fixed"))
