"""Two passes give the scores that fitting each fold, k and alpha anew would give, wherever the data lie."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import anndata
import dask.array as da
import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import balanced_accuracy_score, log_loss
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit, ShuffleSplit, StratifiedKFold, cross_val_score

import nfs_dask as nfs
from nfs_dask.errors import DataWarning, InputError, PlanError
from nfs_dask.methods.centers import CenterSettings, fit_moments
from nfs_dask.methods.naive_bayes import Counts, Settings, fit_bernoulli, fit_multinomial
from nfs_dask.methods.recipes import CountsRecipe, MomentsRecipe, NestedFit
from nfs_dask.models.model import NOT_JUDGED
from nfs_dask.registry import method_named
from nfs_dask.selection.training import TrainingPanels, added_folds
from nfs_dask.selection.validation_table import CrossValidation
from nfs_dask.sources.folds import Folds, by_fold
from nfs_dask.sources.open_source import open_source
from nfs_dask.statistics.counts import ClassCounts, documents, sums
from nfs_dask.statistics.moments import ClassMoments
from nfs_dask.statistics.panels import MemoryPanels
from nfs_dask.statistics.statistic import State
from nfs_dask.store.layout import Layout
from nfs_dask.store.writer import write_store
from nfs_dask.testing import fold
from tests.helpers.grids import each_once


def make_estimator(method: str, **parameters: Any) -> Any:
    """As users have it, for scikit-learn's tools to fit it anew."""
    made = method_named(method)
    return made.estimator_class()(**made.fixed, **parameters)


RNG = np.random.default_rng(7)
ROWS, WIDTH, CLASSES, FOLDS = 200, 60, 2, 4
Y = RNG.choice(np.array(["ale", "bock"]), ROWS, p=[0.6, 0.4])
CODES = np.searchsorted(np.unique(Y), Y)
X = RNG.poisson(0.3 + 0.9 * ((np.arange(WIDTH) % CLASSES == CODES[:, None]) & (np.arange(WIDTH) < 9)))
REAL = np.where(X > 1, X + RNG.normal(size=X.shape) / 9, X) + 0.01 * RNG.random(X.shape)
WEIGHTS = RNG.integers(0, 4, ROWS).astype(float)
KS, ALPHAS = [2, 4, 17, WIDTH], [0.0, 1.0]

METHODS: dict[str, dict[str, Any]] = {
    "multinomial": {},
    "bernoulli": {"binarize": 0.0},
    "l2": {},
    "mahalanobis": {},
    "mahalanobis total": {"covariance": "total", "variance_floor": 0.01},
    "l1": {},
}
EACH = pytest.mark.parametrize("method", METHODS)


def parameters_of(method: str) -> tuple[str, dict[str, Any], list[float]]:
    """Name, parameters and alphas of a method."""
    name = method.split()[0]
    return name, METHODS[method], ALPHAS if name in ("multinomial", "bernoulli") else [1.0]


def validated(X: Any, y: Any, method: str, **options: Any) -> CrossValidation:
    name, parameters, alphas = parameters_of(method)
    return nfs.cross_validate(X, y, method=name, ks=KS, alphas=alphas, **parameters, **options)


def estimators(method: str, table: CrossValidation) -> Any:
    """An estimator for each place of a table."""
    name, parameters, _ = parameters_of(method)
    for alpha in table.alphas:
        smooth = {} if alpha is None else {"alpha": alpha}
        for k in table.ks.tolist():
            yield k, alpha, make_estimator(name, k=k, **smooth, **parameters)


def split_mix_folds(n: int, count: int) -> Any:
    x = (np.arange(n, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (x ^ (x >> np.uint64(31))) % np.uint64(count)


def check_against_refitting(table: CrossValidation, method: str, matrix: Any, found: Any, weights: Any = None) -> None:
    """Fit an estimator for each fold, k and alpha to the other rows, and compare all that the table says."""
    for k, alpha, estimator in estimators(method, table):
        for f in range(table.n_folds):
            inside = found == f
            given = None if weights is None else weights[~inside]
            estimator.fit(matrix[~inside], Y[~inside], sample_weight=given)
            predicted = estimator.predict(matrix[inside])
            cell = {"k": k, "alpha": alpha}
            assert table.scores(**cell)[f] == pytest.approx(np.mean(predicted == Y[inside]), abs=1e-12)
            balanced = balanced_accuracy_score(Y[inside], predicted)
            assert table.scores(**cell, by="balanced")[f] == pytest.approx(balanced, abs=1e-12)
            if table.losses is not None:
                logs = estimator.predict_log_proba(matrix[inside])
                expected = -logs[np.arange(inside.sum()), np.searchsorted(table.classes, Y[inside])].mean()
                np.testing.assert_allclose(table.scores(**cell, by="log_loss")[f], expected, rtol=1e-10)


@pytest.fixture(scope="module")
def store(tmp_path_factory: Any) -> Path:
    folder: Path = tmp_path_factory.mktemp("validated")
    layout = Layout(chunk=256, shard=1024, row_chunk=8, row_shard=32, block=600)
    write_store(open_source(sparse.csr_array(X), Y), folder / "plain.zarr", layout=layout)
    write_store(open_source(sparse.csr_array(X), Y, WEIGHTS), folder / "weighted.zarr", layout=layout)
    return folder


# In memory


@pytest.mark.parametrize(("kind", "method"), each_once(["dense", "sparse", "real"], METHODS))
def test_scores_are_those_of_cross_val_score(method: str, kind: str) -> None:
    matrix = {"dense": X, "sparse": sparse.csr_array(X), "real": REAL}[kind]
    table = validated(matrix, Y, method, folds=FOLDS)
    assert table.reads == 2.0
    for k, alpha, estimator in estimators(method, table):
        expected = cross_val_score(estimator, matrix, Y, cv=FOLDS)
        np.testing.assert_allclose(table.scores(k=k, alpha=alpha), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("weights", "method"), each_once([None, WEIGHTS, WEIGHTS + 0.1 * np.arange(ROWS) % 1], METHODS)
)
def test_each_fold_is_judged_by_a_model_of_the_others(method: str, weights: Any) -> None:
    found = np.arange(ROWS) % 3
    table = validated(X, Y, method, folds=found, sample_weight=weights)
    check_against_refitting(table, method, X, found, weights)


@EACH
def test_three_classes(method: str) -> None:
    labels = np.array(["ale", "bock", "cider"])[(CODES + (np.arange(ROWS) % 3 == 0)) % 3]
    name, parameters, alphas = parameters_of(method)
    table = nfs.cross_validate(X, labels, method=name, ks=[2, 17], alphas=alphas[-1:], folds=3, **parameters)
    for k, alpha, estimator in estimators(method, table):
        expected = cross_val_score(estimator, X, labels, cv=3)
        np.testing.assert_allclose(table.scores(k=k, alpha=alpha), expected, atol=1e-12)


@pytest.mark.parametrize(
    "splitter", [KFold(3), StratifiedKFold(3, shuffle=True, random_state=1), PredefinedSplit(np.arange(ROWS) % 5)]
)
def test_splitters_are_followed(splitter: Any) -> None:
    table = validated(X, Y, "l2", folds=splitter)
    expected = cross_val_score(nfs.SparseCentroid(k=4), X, Y, cv=splitter)
    np.testing.assert_allclose(table.scores(k=4), expected, atol=1e-12)


def test_groups_stay_together_by_labels_or_by_splits() -> None:
    groups = RNG.integers(0, 8, ROWS)
    splits = list(GroupKFold(4).split(X, Y, groups))
    expected = cross_val_score(nfs.SparseCentroid(k=4), X, Y, cv=splits)
    np.testing.assert_allclose(validated(X, Y, "l2", folds=splits).scores(k=4), expected, atol=1e-12)
    names = np.array(list("abcdefgh"))[groups]
    table = validated(X, Y, "l2", folds=names)
    expected = cross_val_score(nfs.SparseCentroid(k=4), X, Y, cv=PredefinedSplit(groups))
    np.testing.assert_allclose(table.scores(k=4), expected, atol=1e-12)


def test_models_in_memory_are_those_of_an_estimator() -> None:
    panels = MemoryPanels(fold(ClassMoments(CLASSES, True), list(open_source(REAL, Y).blocks(0, 1))), WIDTH)
    for metric in ("euclidean", "mahalanobis"):
        for always in (None, np.array([40, 50])):
            settings = CenterSettings(3, metric, always=always)
            fit = MomentsRecipe(settings).fitting(np.unique(Y), panels)
            assert isinstance(fit, NestedFit)
            ks = np.array([2, 3, 17, 40])
            several = fit.many(ks)
            assert len(several.whole.support) == 40
            for k, model in zip(ks.tolist(), several, strict=True):
                expected = fit_moments(np.unique(Y), panels, replace(settings, k=k))
                assert model.evidence is NOT_JUDGED
                for name in ("support", "centers", "pooled", "variances"):
                    np.testing.assert_array_equal(getattr(model, name), getattr(expected, name))
                    np.testing.assert_array_equal(getattr(fit(k, None), name), getattr(expected, name))
            assert [len(one.support) for one in several[:2]] == [2, 3]
            assert len(several[:2].whole.support) == 3


@pytest.mark.parametrize("weights", [None, WEIGHTS, WEIGHTS + RNG.random(ROWS)])
@pytest.mark.parametrize("values", [X, REAL])
def test_what_is_counted_outside_of_a_fold_is_the_sum_over_the_others(values: Any, weights: Any) -> None:
    folds = Folds(FOLDS, np.arange(ROWS) % FOLDS)
    statistic = ClassMoments(FOLDS * CLASSES, True)
    state = fold(statistic, list(by_fold(open_source(values, Y, weights), folds).blocks(0, 1)))
    together, own = added_folds(state, FOLDS), ClassMoments(CLASSES, True)
    assert (together is None) == (values is REAL or (weights is not None and weights is not WEIGHTS))
    for f in range(FOLDS):
        parts = [
            State(*({n: a[g * CLASSES : (g + 1) * CLASSES] for n, a in side.items() if n != "mass"} for side in sides))
            for sides in [(state.arrays, state.totals)]
            for g in range(FOLDS)
            if g != f
        ]
        for one in parts:
            one.totals["mass"] = np.zeros(1, np.int64)
        expected = reduce(own.merge, parts)
        training = TrainingPanels(MemoryPanels(state, WIDTH), own, f, together)
        for found, true in ((training.arrays(0), expected.arrays), (training.totals, expected.totals)):
            assert found.keys() == true.keys()
            for name, array in true.items():
                if name != "mass":
                    np.testing.assert_array_equal(found[name], array)
                    assert found[name].dtype == array.dtype


@pytest.mark.parametrize("values", [X, REAL])
@pytest.mark.parametrize("always", [None, np.array([40, 50])])
@pytest.mark.parametrize("method", ["multinomial", "bernoulli"])
def test_models_that_share_their_counts_are_those_of_an_estimator(method: str, always: Any, values: Any) -> None:
    make, labels = (fit_multinomial if method == "multinomial" else fit_bernoulli), np.array(["ale", "bock", "cider"])
    counting = ClassCounts(3, with_documents=True)
    state = fold(counting, list(open_source(values, Y).blocks(0, 1)))
    settings, pick = Settings(2, always=always, binarize=0.0), sums if method == "multinomial" else documents
    fit = CountsRecipe(counting, settings, pick, make).fitting(labels, MemoryPanels(state, WIDTH))
    counts = Counts.of(labels, np.append(state.totals["weight"][:2], 0.0), pick(state.arrays))
    for alpha, k in ((0.5, 2), (0.5, 17), (0.1, 17), (0.1, WIDTH), (0.5, 17), (0.0, 3)):
        model, expected = fit(k, alpha), make(counts, replace(settings, k=k, alpha=alpha))
        assert model.evidence is NOT_JUDGED
        assert np.isfinite(expected.evidence.objective)
        for name in ("support", "present", "absent", "class_log_prior"):
            np.testing.assert_array_equal(getattr(model, name), getattr(expected, name))


def test_losses_are_those_of_scikit_learn_where_it_does_not_clip() -> None:
    table = validated(X, Y, "multinomial", folds=FOLDS)
    losses = []
    for train, test in StratifiedKFold(FOLDS).split(X, Y):
        fitted = nfs.SparseMultinomialNB(k=17).fit(X[train], Y[train])
        losses.append(log_loss(Y[test], fitted.predict_proba(X[test]), labels=fitted.classes_))
    np.testing.assert_allclose(table.scores(k=17, alpha=1.0, by="log_loss"), losses, rtol=1e-10)


# Stores, Dask, clusters


@pytest.mark.parametrize(("weighted", "method"), each_once([False, True], METHODS))
def test_a_store_is_validated_by_the_hash_of_its_rows(method: str, weighted: bool, store: Path) -> None:
    dataset = nfs.open_dataset(store / ("weighted.zarr" if weighted else "plain.zarr"), reuse=False)
    assert dataset.source.n_blocks > 3
    table = validated(dataset, None, method, folds=FOLDS)
    check_against_refitting(table, method, X, split_mix_folds(ROWS, FOLDS), WEIGHTS if weighted else None)


def test_folds_may_be_a_column_of_a_store(tmp_path: Path) -> None:
    found = RNG.choice(["a", "b", "d"], ROWS)
    table = anndata.AnnData(sparse.csr_matrix(X), obs={"label": Y, "part": found})
    table.obs["part"] = table.obs["part"].astype("category").cat.add_categories("c")
    table.obs["short"] = np.where(np.arange(ROWS) == 7, None, found)
    table.obs["short"] = table.obs["short"].astype("category")
    with anndata.settings.override(zarr_write_format=3), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of anndata, about what Zarr may change
        table.write_zarr(tmp_path / "some.zarr")
    dataset = nfs.open_dataset(tmp_path / "some.zarr", labels="label", reuse=False)
    numbers = np.searchsorted(["a", "b", "d"], found)
    check_against_refitting(validated(dataset, None, "l2", folds="part"), "l2", X, numbers)
    with pytest.raises(InputError, match="row 7 has no fold"):
        validated(dataset, None, "l2", folds="short")
    with pytest.raises(InputError, match="no column 'other' in obs; it has"):
        validated(dataset, None, "l2", folds="other")


def test_folds_may_be_a_dask_array() -> None:
    given = da.from_array(X, chunks=(40, WIDTH)), da.from_array(Y, chunks=40)
    found = np.arange(ROWS) % 3
    table = validated(*given, "l2", folds=da.from_array(found, chunks=40))
    check_against_refitting(table, "l2", X, found)


@pytest.mark.parametrize(("kind", "method"), each_once(["store", "delayed", "in memory"], METHODS))
def test_a_cluster_says_the_same(method: str, kind: str, store: Path, cluster: Any) -> None:
    serial, remote = nfs.SerialEngine(), nfs.DaskEngine()
    if kind == "store":
        given: Any = nfs.open_dataset(store / "weighted.zarr", reuse=False), None
    elif kind == "delayed":
        given = da.from_array(X, chunks=(40, WIDTH)), da.from_array(Y, chunks=40)
    else:
        given = sparse.csr_array(X), Y
    one, other = (validated(*given, method, folds=3, engine=engine) for engine in (serial, remote))
    np.testing.assert_array_equal(one.right, other.right)
    np.testing.assert_array_equal(one.answers, other.answers)
    if one.losses is not None:
        np.testing.assert_allclose(one.losses, other.losses, rtol=1e-12)
    if kind == "delayed":
        check_against_refitting(other, method, X, split_mix_folds(ROWS, 3))


def test_panels_change_nothing(store: Path, tmp_path: Path) -> None:
    dataset = nfs.open_dataset(store / "plain.zarr", reuse=False)
    for method in METHODS:
        whole = validated(dataset, None, method, folds=3, engine=nfs.SerialEngine())
        cut = validated(dataset, None, method, folds=3, engine=nfs.SerialEngine(panels=4, spool=str(tmp_path)))
        np.testing.assert_array_equal(whole.right, cut.right)
        plans = [one.plan for one in cut.passes]
        strategies = [None if plan is None else plan.strategy for plan in plans]
        assert strategies == ["dense" if method == "l1" else "scatter", "dense"]


def test_counts_that_do_not_fit_stay_in_panels(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = nfs.open_dataset(store / "plain.zarr", reuse=False)
    engine = nfs.SerialEngine(panels=4, spool=str(tmp_path))
    for method in METHODS:
        expected = validated(dataset, None, method, folds=3, engine=engine)
        with monkeypatch.context() as patch:
            patch.setattr("nfs_dask.selection.validation_passes.MOST_COUNTS", 100)
            table = validated(dataset, None, method, folds=3, engine=engine)
        np.testing.assert_array_equal(table.right, expected.right)


# Methods that take several passes for a model

LONG: dict[str, tuple[list[float], dict[str, Any]]] = {
    "mahalanobis": ([1.0], {"covariance": "full", "variance_floor": 0.01}),
    "hybrid": ([0.5, 1.0], {"regions": 2, "ridge": 0.01}),
}


@pytest.mark.parametrize("method", LONG)
@pytest.mark.parametrize("kind", ["in memory", "store", "cluster", "delayed"])
def test_long_methods_take_three_passes(method: str, kind: str, store: Path, cluster: Any) -> None:
    alphas, parameters = LONG[method]
    given: Any = (X, Y) if kind == "in memory" else (nfs.open_dataset(store / "plain.zarr", reuse=False), None)
    if kind == "delayed":
        given = da.from_array(X, chunks=(40, WIDTH)), da.from_array(Y, chunks=40)
    engine = nfs.DaskEngine() if kind in ("cluster", "delayed") else nfs.SerialEngine()
    found = split_mix_folds(ROWS, 3)
    folds = found if kind == "in memory" else 3
    table = nfs.cross_validate(
        *given, method=method, ks=[3, "all"], alphas=alphas, folds=folds, engine=engine, **parameters
    )
    assert len(table.passes) == 3
    assert table.reads <= 3
    for alpha in table.alphas:
        for k in table.ks.tolist():
            estimator = make_estimator(method, k=k, **({} if alpha is None else {"alpha": alpha}), **parameters)
            expected = cross_val_score(estimator, X, Y, cv=PredefinedSplit(found))
            np.testing.assert_allclose(table.scores(k=k, alpha=alpha), expected, atol=1e-12)


def test_features_of_all_folds_may_be_in_files(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where they are too many to be held, those of each fold are written once, and every step of a fit reads them."""
    dataset, alphas = nfs.open_dataset(store / "plain.zarr", reuse=False), [0.5, 1.0]
    options: dict[str, Any] = {"method": "hybrid", "ks": [3], "alphas": alphas, "folds": 3, "regions": 2}
    held = nfs.cross_validate(dataset, **options)
    monkeypatch.setattr("nfs_dask.methods.slopes.HELD", 0)
    table = nfs.cross_validate(dataset, **options, engine=nfs.SerialEngine(spool=str(tmp_path / "spool")))
    np.testing.assert_array_equal(table.right, held.right)
    np.testing.assert_allclose(table.losses, held.losses, rtol=1e-9)
    names = [one.name for one in table.passes]
    assert (names[:2], names[-1]) == (["class_counts", "features"], "scores")
    assert "features 6" in names  # of three folds and two alphas
    assert list((tmp_path / "spool").glob(".nfs-*")) == []


def test_regions_may_come_as_matrices() -> None:
    parts = [X[:, : WIDTH // 2], X[:, WIDTH // 2 :]]
    one, other = (
        nfs.cross_validate(given, Y, method="hybrid", ks=[0.2], folds=3, **options)
        for given, options in ((parts, {}), (X, {"regions": 2}))
    )
    assert one.ks.tolist() == [6]
    np.testing.assert_array_equal(one.right, other.right)


def test_a_grid_may_be_learnt_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    ks, alphas = [2, 5], [0.5, 1.0]
    whole = nfs.cross_validate(X, Y, method="hybrid", ks=ks, alphas=alphas, folds=3, regions=2)
    monkeypatch.setattr("nfs_dask.selection.validation_passes.MOST_COUNTS", 2 * 3 * CLASSES * WIDTH * 8 * 3)
    parts = nfs.cross_validate(X, Y, method="hybrid", ks=ks, alphas=alphas, folds=3, regions=2)
    assert (len(whole.passes), len(parts.passes)) == (3, 5)
    np.testing.assert_array_equal(whole.right, parts.right)


def test_the_counts_of_a_hybrid_are_kept_and_shared(tmp_path: Path) -> None:
    write_store(open_source(sparse.csr_array(X), Y), tmp_path / "some.zarr")
    dataset = nfs.open_dataset(tmp_path / "some.zarr")
    nfs.cross_validate(dataset, method="multinomial", ks=[3], folds=3)
    table = nfs.cross_validate(dataset, method="hybrid", ks=[3], folds=3, regions=2)
    assert [one.share for one in table.passes] == [0.0, 1.0, 1.0]


# What is kept


def test_counts_are_kept_by_folds(store: Path, tmp_path: Path) -> None:
    write_store(open_source(sparse.csr_array(X), Y), tmp_path / "some.zarr")
    dataset = nfs.open_dataset(tmp_path / "some.zarr")
    first = validated(dataset, None, "multinomial", folds=3)
    again = nfs.cross_validate(dataset, method="multinomial", ks=[3], alphas=[0.5], folds=3)
    assert (first.reads, again.reads) == (2.0, 1.0)
    assert validated(dataset, None, "multinomial", folds=4).reads == 2.0
    given = np.arange(ROWS) % 3
    assert validated(dataset, None, "multinomial", folds=given).reads == 2.0
    assert validated(dataset, None, "multinomial", folds=given).reads == 1.0
    kept = dataset.statistics
    assert kept is not None
    words = [one["by_fold"] for one in kept.descriptions()]
    assert {"folds": 3, "hash": 1} in words and {"folds": 4, "hash": 1} in words
    assert not nfs.SparseMultinomialNB(k=3).fit(dataset).provenance_["reused"]
    np.testing.assert_array_equal(again.right.shape, (3, 1, 1, CLASSES))


def test_medians_are_kept_by_folds(tmp_path: Path) -> None:
    write_store(open_source(sparse.csr_array(X), Y), tmp_path / "some.zarr")
    dataset = nfs.open_dataset(tmp_path / "some.zarr")
    first = validated(dataset, None, "l1", folds=3)
    again = validated(dataset, None, "l1", folds=3)
    assert [one.name for one in again.passes] == ["scores"]
    np.testing.assert_array_equal(first.right, again.right)
    assert len(validated(dataset, None, "l1", folds=4).passes) == len(first.passes)
    assert not nfs.SparseCentroid(k=3, metric="manhattan").fit(dataset).provenance_["reused"]


def test_a_run_folder_is_resumed(store: Path, tmp_path: Path) -> None:
    dataset = nfs.open_dataset(store / "plain.zarr", reuse=False)
    engine = nfs.SerialEngine(run=str(tmp_path / "run"))
    first, again = (validated(dataset, None, "mahalanobis", folds=3, engine=engine) for _ in range(2))
    assert (first.reads, again.reads) == (2.0, 0.0)
    np.testing.assert_array_equal(first.right, again.right)
    assert first.losses is not None
    np.testing.assert_array_equal(first.losses, again.losses)


# Odd data


@EACH
def test_a_class_in_one_fold_only_is_not_predicted_there(method: str) -> None:
    labels = np.where(np.arange(ROWS) == 5, "zest", Y)
    with pytest.warns(DataWarning, match="'zest' has documents in fold 2 only"):
        table = validated(X, labels, method, folds=np.arange(ROWS) % 3)
    given = np.asarray([table.confusion(k=k, alpha=alpha) for k in KS for alpha in table.alphas])
    assert given[:, -1].sum(axis=-1).tolist() == [1] * len(given)
    name, parameters, _ = parameters_of(method)
    smooth = {} if table.alphas[0] is None else {"alpha": table.alphas[0]}
    model = make_estimator(name, k=4, **smooth, **parameters)
    outside = np.arange(ROWS) % 3 != 2
    if method == "l1":  # which has no partial_fit
        model.fit(X[outside], labels[outside])
    else:
        model.partial_fit(X[outside], labels[outside], classes=np.unique(labels))  # type: ignore[attr-defined]
    expected = np.mean(model.predict(X[~outside]) == labels[~outside])
    assert table.scores(k=4, alpha=table.alphas[0])[2] == pytest.approx(expected, abs=1e-12)


def test_folds_without_documents_are_refused() -> None:
    with pytest.raises(InputError, match="has none of the 200 documents"):
        nfs.cross_validate(da.from_array(X, chunks=50), Y, method="l2", ks=[2], folds=400)
    weights = (np.arange(ROWS) % 2).astype(float)
    with pytest.raises(InputError, match="are in one fold"):
        nfs.cross_validate(X, Y, method="l2", ks=[2], folds=np.arange(ROWS) % 2, sample_weight=weights)
    with pytest.raises(InputError, match="'bock' has no documents, or only some of weight zero"):
        nfs.cross_validate(X, Y, method="l2", ks=[2], sample_weight=(Y != "bock").astype(float))


@pytest.mark.parametrize(
    ("folds", "message"),
    [
        (1, "give 2 or more"),
        (True, "give a number of folds"),
        (2.5, "give a number of folds"),
        ("x", "names a column, and .* has no table of rows"),
        (np.arange(ROWS - 1) % 3, "200 rows, and folds were given for 199"),
        (np.zeros(ROWS, int), "all rows are in one of 1 folds"),
        ([None] + [1, 2] * (ROWS // 2 - 1) + [1], "row 0 has no fold"),
        (ShuffleSplit(3, random_state=0), "does not cut the rows into folds"),
        (PredefinedSplit(np.arange(ROWS) % 3 - 1), "is in no fold"),
        ([(np.arange(5), np.array([ROWS]))], "folds name row"),
    ],
)
def test_other_folds_are_refused(folds: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        nfs.cross_validate(X, Y, method="l2", ks=[2], folds=folds)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ks": []}, "ks is empty"),
        ({"ks": "all"}, "is not a list"),
        ({"ks": 5}, "is not a list"),
        ({"alphas": []}, "alphas is empty"),
        ({"alphas": 0.5}, "is not a list"),
        ({"alphas": [-1.0]}, "give one finite number"),
        ({"method": "l2", "alphas": [0.5]}, "l2 does not"),
        ({"method": "l3"}, "give one of"),
        ({"alpha": 2.0}, r"validate several with alphas=\[...\]"),
        ({"k": 2}, r"validate several with ks=\[...\]"),
        ({"covariance": "total"}, "is for mahalanobis"),
    ],
)
def test_other_grids_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        nfs.cross_validate(X, Y, **({"method": "multinomial", "ks": [2]} | options))


def test_a_splitter_needs_data_in_memory(store: Path) -> None:
    with pytest.raises(InputError, match="a splitter needs data in memory"):
        nfs.cross_validate(nfs.open_dataset(store / "plain.zarr"), method="l2", ks=[2], folds=KFold(3))


def test_models_that_do_not_fit_are_refused_with_their_number(store: Path, cluster: Any) -> None:
    dataset = nfs.open_dataset(store / "plain.zarr", reuse=False)
    from nfs_dask.statistics import held_out

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held_out, "SCORING", 1 << 30)
        with pytest.raises(PlanError, match=r"3 models of a k, one for each fold, are scored together, and take .*iB"):
            validated(dataset, None, "l2", folds=3, engine=nfs.DaskEngine())


@pytest.mark.parametrize("method", ["l2", "multinomial"])
def test_models_that_do_not_fit_together_are_scored_in_turn(store: Path, cluster: Any, method: str) -> None:
    dataset = nfs.open_dataset(store / "plain.zarr", reuse=False)
    from nfs_dask.statistics import held_out

    expected = validated(dataset, None, method, folds=3, engine=nfs.SerialEngine())
    found, low, high = expected, 14.0, 31.0  # powers of two that a model takes: all fit together, and not those of a k
    for _ in range(12):
        power = (low + high) / 2
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(held_out, "SCORING", int(2**power))
            try:
                found = validated(dataset, None, method, folds=3, engine=nfs.DaskEngine())
            except PlanError:
                high = power
                continue
        if found.reads > expected.reads:
            break
        low = power
    assert found.reads > expected.reads
    np.testing.assert_array_equal(found.right, expected.right)
    np.testing.assert_array_equal(found.answers, expected.answers)
    assert (found.losses is None) == (expected.losses is None)
    if found.losses is not None:
        np.testing.assert_allclose(found.losses, expected.losses, rtol=1e-12)


def test_totals_of_models_are_put_side_by_side_whatever_they_count() -> None:
    from nfs_dask.statistics.held_out import beside, right_answers

    rng = np.random.default_rng(0)
    answers, rows = rng.integers(0, 9, (3, 2, 4, 4)), np.ones((3, 4), int)
    right = np.diagonal(answers, axis1=2, axis2=3)
    detailed, plain = {"rows": rows, "answers": answers}, {"rows": rows, "right": right}
    for first, second in ((detailed, plain), (plain, detailed), (plain, plain), (detailed, detailed)):
        both = beside(first, second)
        np.testing.assert_array_equal(right_answers(both), np.concatenate([right, right], axis=1))
        assert ("answers" in both) == ("answers" in first and "answers" in second)
        np.testing.assert_array_equal(both["rows"], rows)


# The table


def test_the_table_tells_its_story() -> None:
    table = validated(X, Y, "multinomial", folds=FOLDS)
    content = json.loads(json.dumps(table.to_json()))
    assert content["folds"] == FOLDS and content["method"] == "multinomial"
    assert [(row["k"], row["alpha"]) for row in content["table"]] == [(k, a) for a in ALPHAS for k in KS]
    row = content["table"][KS.index(17) + ALPHAS.index(1.0) * len(KS)]
    scores = table.scores(k=17, alpha=1.0)
    assert row["scores"] == scores.tolist()
    assert row["accuracy"] == pytest.approx(scores.mean())
    assert row["accuracy_error"] == pytest.approx(scores.std(ddof=1) / 2)
    confusion = table.confusion(k=17, alpha=1.0)
    assert confusion.sum() == ROWS
    np.testing.assert_array_equal(confusion.sum(axis=1), np.bincount(CODES))
    text = str(table)
    assert "multinomial: 4 values of k and 2 of alpha, validated on 200 documents in 4 folds, 2 reads" in text
    assert len(text.splitlines()) == 2 + len(KS)
    assert table._repr_html_().count("<tr>") == 1 + len(KS)
    with pytest.raises(InputError, match="k=3 was not validated"):
        table.scores(k=3, alpha=1.0)
    with pytest.raises(InputError, match="alpha=None was not validated"):
        table.scores(k=4)
    with pytest.raises(InputError, match="no probabilities"):
        validated(X, Y, "l2").scores(k=4, by="log_loss")


def test_rules_choose_what_they_say() -> None:
    table = validated(X, Y, "multinomial", folds=FOLDS)
    best, simple = table.choose("cv"), table.choose("1se")
    mean, error = table.mean(), table.standard_error()
    assert best.alpha is not None
    assert mean[ALPHAS.index(best.alpha), KS.index(best)] == mean.max()
    at = np.unravel_index(mean.argmax(), mean.shape)
    near = [k for j, k in enumerate(KS) if mean[:, j].max() >= mean.max() - error[at]]
    assert simple == min(near) <= best
    assert simple.interval == best.interval == (min(near), max(near))
    assert f"{best:,} features" in best.why_
    assert isinstance(simple, int) and len(simple.table) == len(KS) * len(ALPHAS)
    assert nfs.SparseMultinomialNB(k=simple, alpha=simple.alpha).fit(X, Y).model_.support.shape == (simple,)
    by_loss = table.choose("cv", by="log_loss")
    losses = table.mean("log_loss")
    assert losses[ALPHAS.index(by_loss.alpha), KS.index(by_loss)] == losses.min()
    with pytest.raises(InputError, match='"?cv"?.*1se'):
        table.choose("2se")  # type: ignore[arg-type]


def test_folds_are_a_column_of_any_table(tmp_path: Any) -> None:
    anndata, pd = pytest.importorskip("anndata"), pytest.importorskip("pandas")
    part = np.array(["a", "b", "c"])[np.arange(len(X)) % 3]
    expected = validated(X, Y, "l2", folds=part).scores(k=4)
    obs = pd.DataFrame({"part": part, "label": Y}, index=[str(i) for i in range(len(X))])
    adata = anndata.AnnData(np.asarray(X, float), obs=obs)
    adata.write_h5ad(tmp_path / "a.h5ad")
    for dataset in (nfs.open_dataset(adata, labels="label"), nfs.open_dataset(tmp_path / "a.h5ad", labels="label")):
        np.testing.assert_array_equal(validated(dataset, None, "l2", folds="part").scores(k=4), expected)
        with pytest.raises(InputError, match="no column 'patient'.*part"):
            validated(dataset, None, "l2", folds="patient")
    frame = pd.DataFrame(np.asarray(X)).rename(columns=str).assign(part=part)
    np.testing.assert_array_equal(validated(frame, Y, "l2", folds="part").scores(k=4), expected)
    with pytest.raises(InputError, match="'patient' is not among them"):
        validated(frame, Y, "l2", folds="patient")
    with pytest.raises(InputError, match="has no table of rows; give a number"):
        validated(X, Y, "l2", folds="part")
