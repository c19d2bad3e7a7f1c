"""Sparse centers from the command line: fit, path, plan, predict, evaluate and info."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nfs_dask as nfs
from nfs_dask import SparseCentroid
from nfs_dask.sources.open_source import open_source
from nfs_dask.store.layout import Layout
from nfs_dask.store.writer import write_store
from tests.helpers.clusters import TwoWorkers
from tests.helpers.commands import as_json, run

N, M = 240, 20
NAMES = [f"gene{i}" for i in range(M)]
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "l2": ("l2", {"metric": "euclidean"}),
    "within": ("mahalanobis", {"metric": "mahalanobis"}),
    "total": ("mahalanobis", {"metric": "mahalanobis", "covariance": "total", "variance_floor": 0.5}),
    "full": ("mahalanobis", {"metric": "mahalanobis", "covariance": "full"}),
    "l1": ("l1", {"metric": "manhattan"}),
}
KEPT = ("l2", "within", "total", "l1")
each_method = pytest.mark.parametrize("name", METHODS)
each_that_keeps = pytest.mark.parametrize("name", KEPT)


def genes() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    codes = np.arange(N) % 3
    X = rng.normal(size=(3, M))[codes] * np.linspace(2, 0, M) + rng.normal(size=(N, M))
    return X, np.array(["brain", "liver", "skin"])[codes]


def options(name: str) -> list[Any]:
    """What says the method on the command line."""
    method, parameters = METHODS[name]
    given = [(f"--{key.replace('_', '-')}", value) for key, value in parameters.items() if key != "metric"]
    return ["--method", method, *(word for pair in given for word in pair)]


def estimator(name: str, k: Any = 5, **more: Any) -> SparseCentroid:
    return SparseCentroid(k, **METHODS[name][1], **more)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("written") / "genes.zarr"
    layout = Layout(chunk=256, shard=1024, row_chunk=8, row_shard=32, block=600)
    write_store(open_source(*genes()), path, names=NAMES, layout=layout)
    assert nfs.open_dataset(path).source.n_blocks > 4
    return path


@pytest.fixture
def store(tmp_path: Path, written: Path) -> Path:
    """A store of several blocks, beside which nothing is kept yet."""
    return Path(shutil.copytree(written, tmp_path / written.name))


@each_method
def test_fit_is_that_of_the_library(store: Path, tmp_path: Path, name: str) -> None:
    values = as_json("fit", store, tmp_path / "m", *options(name), "-k", 5)
    model = estimator(name).fit(nfs.open_dataset(store, reuse=False))
    assert values["method"] == METHODS[name][0]
    assert (values["rows"], values["features"], values["k"]) == (N, M, 5)
    assert values["classes"] == ["brain", "liver", "skin"]
    assert values["measure"] == "cost"
    assert values["objective"] == pytest.approx(model.objective_, rel=1e-12)
    assert (values["gap"], values["certified"], values["upper_bound"]) == (0, True, values["objective"])
    assert values["passes"] >= 1
    assert not values["counts_reused"]
    assert {label: [n for n, _ in top] for label, top in values["top_features"].items()} == {
        label: [n for n, _ in top] for label, top in model.top_features().items()
    }
    loaded = nfs.load_model(tmp_path / "m")
    assert loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(loaded.get_support(), model.get_support())
    np.testing.assert_allclose(loaded.centers_, model.centers_, rtol=1e-9, atol=1e-9)


def test_fit_for_people_names_the_cost_and_the_passes(store: Path, tmp_path: Path) -> None:
    text = run("fit", store, tmp_path / "m", "--method", "l1", "-k", 5).stdout
    cost = estimator("l1").fit(*genes()).objective_
    assert "l1: 5 of 20 features, 240 documents" in text
    assert f"cost {cost:,.3f}; no other choice of as many features is better" in text
    assert "one pass over the data" in text and "likelihood" not in text
    again = run("fit", store, tmp_path / "m", "--method", "l1", "-k", 3, "--overwrite").stdout
    assert "statistics kept from before" in again


@each_that_keeps
def test_another_k_reads_no_documents(store: Path, tmp_path: Path, name: str) -> None:
    fit = ("fit", store, tmp_path / "m", *options(name), "--overwrite")
    assert not as_json("plan", store, *options(name)[:2])["kept"]
    assert not as_json(*fit, "-k", 10)["counts_reused"]
    assert as_json("plan", store, *options(name)[:2])["kept"]
    assert as_json(*fit, "-k", 0.1, "--always", "gene19")["counts_reused"]
    model = nfs.load_model(tmp_path / "m")
    assert (
        model.get_feature_names_out().tolist()
        == estimator(name, 0.1, always=[19]).fit(nfs.open_dataset(store)).get_feature_names_out().tolist()
    )
    assert as_json("path", store, *options(name), "--ks", "2")["counts_reused"]
    assert not as_json(*fit, "-k", 10, "--no-cache")["counts_reused"]
    assert "reads no documents" in run("plan", store, *options(name)[:2]).stdout


@each_method
def test_path_is_that_of_the_library(store: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / "path.csv"
    values = as_json("path", store, *options(name), "--ks", "5,0.5,all", "--csv", out)
    method, parameters = METHODS[name]
    given = {key: value for key, value in parameters.items() if key != "metric"}
    path = nfs.path(nfs.open_dataset(store, reuse=False), method, [5, 10, 20], **given)
    assert values["method"] == method
    assert {key: values[key] for key in given} == given
    assert [row["k"] for row in values["path"]] == [5, 10, 20]
    np.testing.assert_allclose([row["value"] for row in values["path"]], path.value, rtol=1e-9)
    assert all(row["certified"] and row["gap"] == 0 and row["guaranteed"] == row["value"] for row in values["path"])
    model = as_json("fit", store, tmp_path / "m", *options(name), "-k", 5)
    none = values["null_objective"]
    assert none - values["path"][0]["value"] == pytest.approx(model["objective"], rel=1e-9)
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["value"]) for row in rows] == [row["value"] for row in values["path"]]
    text = run("path", store, *options(name)).stdout
    assert f"20 values of k over 20 features, {N} documents in 3 classes" in text


@each_method
def test_predictions_have_probabilities_or_margins(store: Path, tmp_path: Path, name: str) -> None:
    X, _ = genes()
    run("fit", store, tmp_path / "m", *options(name), "-k", 5)
    model = nfs.load_model(tmp_path / "m")
    values = as_json("predict", tmp_path / "m", store)
    assert values["labels"] == model.predict(X).tolist()
    assert (values["n"], values["rows"]) == (N, list(range(N)))
    column, several = ("probability", "probabilities") if name == "within" else ("margin", "margins")
    ranked = np.sort(model.decision_function(X), axis=1)
    expected = model.predict_proba(X).max(axis=1) if name == "within" else ranked[:, -1] - ranked[:, -2]
    np.testing.assert_allclose(values[several], expected, rtol=1e-9)
    assert {"probabilities", "margins"} & set(values) == {several}
    out = tmp_path / "out.csv"
    run("predict", tmp_path / "m", store, "--out", out)
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["row", "label", column]
    np.testing.assert_allclose([float(row[column]) for row in rows], expected, rtol=1e-5)
    assert run("predict", tmp_path / "m", store).stdout == out.read_text()


@each_method
def test_evaluate_counts_what_is_right(store: Path, tmp_path: Path, name: str) -> None:
    X, y = genes()
    run("fit", store, tmp_path / "m", *options(name), "-k", 5)
    values = as_json("evaluate", tmp_path / "m", store)
    right = nfs.load_model(tmp_path / "m").predict(X) == y
    assert values["n"] == N
    assert values["accuracy"] == pytest.approx(right.mean())
    assert values["balanced_accuracy"] == pytest.approx(np.mean([right[y == c].mean() for c in np.unique(y)]))
    assert np.trace(values["confusion"]) == right.sum()
    assert "balanced accuracy" in run("evaluate", tmp_path / "m", store).stdout


@each_method
def test_info_tells_what_a_model_is(store: Path, tmp_path: Path, name: str) -> None:
    fitted = as_json("fit", store, tmp_path / "m", *options(name), "-k", 5)
    values = as_json("info", tmp_path / "m")
    assert (values["type"], values["method"], values["measure"]) == ("model", METHODS[name][0], "cost")
    assert (values["objective"], values["certified"], values["gap"]) == (fitted["objective"], True, 0)
    assert values["parameters"] == {key: v for key, v in estimator(name).get_params().items() if key != "engine"}
    assert values["class_count"] == [80, 80, 80]
    text = run("info", tmp_path / "m").stdout
    assert f"cost {fitted['objective']:,.3f}; no other choice of as many features is better" in text
    assert ("covariance" in text) == (METHODS[name][0] == "mahalanobis")
    assert "nats" not in text and "metric" not in text
    assert top_of(values) == top_of(fitted)


def top_of(values: dict[str, Any]) -> dict[str, list[str]]:
    return {label: [name for name, _ in top] for label, top in values["top_features"].items()}


def test_what_is_kept_beside_the_data_is_listed(store: Path, tmp_path: Path) -> None:
    for name in ("l2", "within", "l1"):
        run("fit", store, tmp_path / name, *options(name))
    statistics = as_json("info", store)["statistics"]
    assert {"statistic": "class_medians", "n_classes": 3} in statistics
    assert {one["squares"] for one in statistics if one["statistic"] == "class_moments"} == {False, True}
    assert "medians of 3 classes" in run("info", store).stdout


@each_method
def test_a_plan_is_made_before_anything_is_read(store: Path, name: str) -> None:
    with_covariance = [word for word in options(name) if word not in ("--variance-floor", 0.5)]
    values = as_json("plan", store, *with_covariance, "-k", 0.5)
    assert (values["method"], values["k"], values["kept"]) == (METHODS[name][0], 10, False)
    assert not list((store / "nfs_dask").glob("statistics/*"))
    statistic = {"l1": "row_sample", "full": "gram"}.get(name, "class_moments")
    assert statistic in json.dumps(values)
    text = run("plan", store, *with_covariance).stdout
    assert "k = 10 of 20 features" in text and statistic in text


@pytest.mark.parametrize("method", ["l1", "l2", "mahalanobis"])
@pytest.mark.parametrize("command", ["fit", "path"])
def test_options_of_other_methods_are_wrong_usage(store: Path, tmp_path: Path, method: str, command: str) -> None:
    places = (store, tmp_path / "m") if command == "fit" else (store,)
    wrong: list[list[Any]] = [["--alpha", 1], ["--binarize", 0]]
    if command == "fit":
        wrong += [["--solver", "cuts"], ["--no-fit-prior"], ["--class-prior", "0.5,0.3,0.2"]]
    if method != "mahalanobis":
        wrong += [["--covariance", "within"], ["--variance-floor", 1]]
    for arguments in wrong:
        message = run(command, *places, "--method", method, *arguments, code=2).stderr
        assert f"{arguments[0]} is for --method" in message
        assert f"{method} has no such parameter" in message
    for other in ("multinomial", "bernoulli"):
        message = run(command, *places, "--method", other, "--covariance", "total", code=2).stderr
        assert "--covariance is for --method mahalanobis" in message
    run(command, *places, "--method", method, "--covariance", "diagonal", code=2)
    assert not (tmp_path / "m").exists()


def test_bad_input_is_3_and_what_does_not_fit_is_4(store: Path, tmp_path: Path) -> None:
    for method in ("l1", "l2", "mahalanobis"):
        message = run("fit", store, tmp_path / "m", "--method", method, "--always", "no such gene", code=3).stderr
        assert message.startswith("Error: ")
    wide = tmp_path / "wide.zarr"
    nfs.ingest(np.eye(4, 12_000), wide, labels=["a", "b", "a", "b"])
    for command in (("plan", wide), ("fit", wide, tmp_path / "m")):
        message = run(*command, "--method", "mahalanobis", "--covariance", "full", code=4).stderr
        assert "at most 11,585 features" in message
    assert not (tmp_path / "m").exists()


def test_infinite_gains_and_margins_are_null_for_programs(tmp_path: Path) -> None:
    X = np.array([[0.0, 1.0], [0.0, 3.0], [7.0, 2.0], [7.0, 4.0]])
    nfs.ingest(X, tmp_path / "s.zarr", labels=["a", "a", "b", "b"], names=["constant", "other"])
    fitted = as_json("fit", tmp_path / "s.zarr", tmp_path / "m", "--method", "mahalanobis", "-k", 2)
    assert fitted["top_features"]["b"][0] == ["constant", None]
    assert fitted["objective"] == pytest.approx(2.0)  # of the other feature: the variance within each class over itself
    values = as_json("path", tmp_path / "s.zarr", "--method", "mahalanobis", "--ks", "1,2")
    assert [(row["value"], row["bound"], row["gap"], row["certified"]) for row in values["path"]] == [
        (None, None, 0, True)
    ] * 2
    assert "inf" in run("path", tmp_path / "s.zarr", "--method", "mahalanobis").stdout
    predicted = as_json("predict", tmp_path / "m", tmp_path / "s.zarr")
    assert (predicted["labels"], predicted["probabilities"]) == (["a", "a", "b", "b"], [1.0] * 4)
    total = ["--method", "mahalanobis", "--covariance", "total", "-k", 2]
    run("fit", tmp_path / "s.zarr", tmp_path / "m", *total, "--overwrite")
    assert all(margin > 0 for margin in as_json("predict", tmp_path / "m", tmp_path / "s.zarr")["margins"])
    # A class that had no document so far is infinitely farther than the other one.
    one = SparseCentroid(1).partial_fit(X[:2], ["a", "a"], classes=["a", "b"])
    one.save(tmp_path / "one")
    assert as_json("predict", tmp_path / "one", tmp_path / "s.zarr")["margins"] == [None] * 4
    lines = list(csv.reader(io.StringIO(run("predict", tmp_path / "one", tmp_path / "s.zarr").stdout)))
    assert lines == [["row", "label", "margin"], *([str(i), "a", "inf"] for i in range(4))]


@pytest.mark.parametrize("name", ["l1", "within", "full"])
def test_a_run_is_resumed_or_refused(store: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("MOST_ROWS", "MOST_ALL"):  # so that medians take several passes
        monkeypatch.setattr(f"nfs_dask.methods.memory_budget.{limit}", 12)
    monkeypatch.setattr("nfs_dask.methods.memory_budget.PILOT_BLOCKS", 2)
    fit = ("fit", store, tmp_path / "m", *options(name), "-k", 5, "--no-cache", "--overwrite")
    first = as_json(*fit, "--run", tmp_path / "run")
    passes = as_json("info", tmp_path / "run")["passes"]
    assert all(one["finished"] for one in passes)
    if name == "l1":
        assert {"row_sample", "class_cells", "pinned"} == {one["statistic"] for one in passes}
        assert first["passes"] == len(passes)
    assert "--resume" in run(*fit, "--run", tmp_path / "run", code=3).stderr
    again = as_json(*fit, "--resume", tmp_path / "run")
    assert (again["objective"], again["top_features"]) == (first["objective"], first["top_features"])
    assert (first["counts_reused"], again["counts_reused"]) == (False, True)
    assert len(as_json("info", tmp_path / "run")["passes"]) == len(passes)
    run(*fit, "--resume", tmp_path / "nowhere", code=3)


def test_medians_are_the_same_on_workers(store: Path, tmp_path: Path, shared_workers: TwoWorkers) -> None:
    here = as_json("fit", store, tmp_path / "here", *options("l1"), "--no-cache")
    cluster = ("--scheduler", shared_workers.whole().scheduler_address)
    there = as_json("fit", store, tmp_path / "there", *options("l1"), "--no-cache", *cluster)
    assert (here["objective"], here["top_features"]) == (there["objective"], there["top_features"])
