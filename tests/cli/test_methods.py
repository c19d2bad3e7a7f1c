"""Every method from the command line: plan, fit, info, path, predict and evaluate say what the library says."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import nfs_dask as nfs
from nfs_dask.registry import METHODS, Option, methods_of_paths, options_of_all
from nfs_dask.sources.open_source import open_source
from nfs_dask.store.layout import Layout
from nfs_dask.store.writer import write_store
from tests.helpers.clusters import TwoWorkers
from tests.helpers.commands import as_json, run

N, M = 240, 30
ASKED: dict[str, dict[str, Any]] = {
    "multinomial": {"k": 5, "alpha": 0.5},
    "bernoulli": {"k": 5, "binarize": 1.0},
    "l2": {"k": 5},
    "mahalanobis": {"k": 5},
    "mahalanobis total": {"k": 5, "covariance": "total", "variance_floor": 0.5},
    "mahalanobis full": {"k": 5, "covariance": "full"},
    "l1": {"k": 5},
    "hybrid": {"regions": 2},
    "hybrid few": {"k": 5, "regions": 2, "ridge": 0.1},
    "hybrid sums": {"regions": 2, "normalize": False, "tables": "separate", "prior": "fixed", "alpha": 0.5},
    "error": {"k": 4, "alpha": 0.5},
    "error forward": {"k": 4, "search": "forward", "class_prior": [0.2, 0.5, 0.3]},
    "error bounded": {"k": 4, "search": "bounded", "balanced": False, "n_tokens": [8.0, 20.0]},
    "error plus-minus": {"k": 4, "search": "plus-minus", "add": 1, "drop": 3},
}


def counts() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    codes = np.arange(N) % 3
    return rng.poisson(rng.gamma(0.5, size=(3, M))[codes]), np.array(["ham", "news", "spam"])[codes]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("written") / "mail.zarr"
    layout = Layout(chunk=256, shard=1024, row_chunk=8, row_shard=32, block=600)
    write_store(open_source(*counts()), path, names=[f"word{i}" for i in range(M)], layout=layout)
    assert nfs.open_dataset(path).source.n_blocks > 4
    return path


@pytest.fixture
def store(tmp_path: Path, written: Path) -> Path:
    """A store of several blocks, beside which nothing is kept yet."""
    return Path(shutil.copytree(written, tmp_path / written.name))


def typed(method: str, parameters: dict[str, Any]) -> list[Any]:
    """Parameters as options."""
    words = ["--method", method]
    for name, value in parameters.items():
        option = next((one for one in options_of_all() if one.parameter == name), None)
        words.append("-k" if option is None else option.name)
        if option is None or not isinstance(option.kind, bool):
            words.append(",".join(map(str, value)) if isinstance(value, list) else str(value))
    return words


def names_of(top_features: Any) -> dict[str, list[str]]:
    return {label: [name for name, _ in top] for label, top in top_features.items()}


@pytest.mark.parametrize("name", ASKED)
def test_a_method_is_that_of_the_library_all_the_way(name: str, store: Path, tmp_path: Path) -> None:
    method, parameters, place, (X, y) = name.split()[0], ASKED[name], tmp_path / "m", counts()
    options = typed(method, parameters)
    counted = typed(
        method,
        {o.parameter: parameters[o.parameter] for o in options_of_all() if o.counts and o.parameter in parameters},
    )
    planned = as_json("plan", store, *counted, *(("-k", parameters["k"]) if "k" in parameters else ()))
    assert (planned["method"], planned["kept"]) == (method, False)
    assert not list((store / "nfs_dask").glob("statistics/*")), "nothing was counted"

    fitted = as_json("fit", store, place, *options)
    made = METHODS[method]
    model = made.estimator_class()(**made.fixed, **parameters).fit(nfs.open_dataset(store, reuse=False))
    assert planned["k"] in (fitted["k"], None) and fitted["k"] == len(model.model_.support)
    assert (fitted["method"], fitted["rows"], fitted["features"], fitted["classes"]) == (
        *(method, N, M),
        ["ham", "news", "spam"],
    )
    assert not fitted["counts_reused"] and fitted["passes"] >= 1 and fitted["measure"] == model.model_.measure
    for key, value in {
        "objective": model.objective_,
        "upper_bound": model.upper_bound_,
        "gap": model.dual_gap_,
    }.items():
        assert fitted[key] == pytest.approx(value, rel=1e-9, abs=1e-9)
    assert fitted["certified"] is model.certified_
    assert names_of(fitted["top_features"]) == names_of(model.top_features())
    if method == "hybrid":
        assert fitted["theta"] == pytest.approx(model.theta_.tolist(), rel=1e-9)
        assert list(fitted["slopes"].values()) == fitted["theta"][2:]
    loaded = nfs.load_model(place)
    assert type(loaded) is type(model) and loaded.get_params() == model.get_params()
    assert loaded.get_feature_names_out().tolist() == model.get_feature_names_out().tolist()

    told = as_json("info", place)
    assert (told["type"], told["objective"], told["gap"]) == ("model", fitted["objective"], fitted["gap"])
    assert told["parameters"] == {key: value for key, value in model.get_params().items() if key != "engine"}
    assert names_of(told["top_features"]) == names_of(fitted["top_features"])

    predicted = as_json("predict", place, store)
    column, several = ("probability", "probabilities") if model.model_.has_probabilities else ("margin", "margins")
    if column == "probability":
        expected = model.predict_proba(X).max(axis=1)
    else:
        ranked = np.sort(model.decision_function(X), axis=1)
        expected = ranked[:, -1] - ranked[:, -2]
    assert (predicted["labels"], predicted["rows"]) == (model.predict(X).tolist(), list(range(N)))
    np.testing.assert_allclose(predicted[several], expected, rtol=1e-9, atol=1e-12)
    lines = run("predict", place, store).stdout
    rows = list(csv.DictReader(io.StringIO(lines)))
    assert list(rows[0]) == ["row", "label", column]
    np.testing.assert_allclose([float(row[column]) for row in rows], expected, rtol=1e-5, atol=1e-9)
    run("predict", place, store, "--out", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == lines

    judged = as_json("evaluate", place, store)
    right = model.predict(X) == y
    assert (judged["n"], judged["accuracy"]) == (N, pytest.approx(right.mean()))
    assert np.trace(judged["confusion"]) == right.sum() and ("coverage" in judged) == (column == "probability")


@pytest.mark.parametrize("name", [name for name in ASKED if name.split()[0] in methods_of_paths()])
def test_a_path_is_that_of_the_library(name: str, store: Path, tmp_path: Path) -> None:
    method, parameters = name.split()[0], {key: value for key, value in ASKED[name].items() if key != "k"}
    values = as_json("path", store, *typed(method, parameters), "--ks", "5, 0.5,all", "--csv", tmp_path / "path.csv")
    path = nfs.path(nfs.open_dataset(store, reuse=False), method, [5, 15, 30], **parameters)
    assert [row["k"] for row in values["path"]] == [5, 15, 30] and values["method"] == method
    for key in ("value", "bound", "gap"):
        np.testing.assert_allclose([row[key] for row in values["path"]], getattr(path, key), rtol=1e-9, atol=1e-9)
    with (tmp_path / "path.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(values["path"][0])
    assert [float(row["bound"]) for row in rows] == [row["bound"] for row in values["path"]]


@pytest.mark.parametrize("method", METHODS)
def test_options_of_other_methods_are_wrong_usage(method: str, written: Path, tmp_path: Path) -> None:
    for option in set(options_of_all()) - set(METHODS[method].options):
        words = [option.name] if isinstance(option.kind, bool) else [option.name, _value_of(option)]
        message = run("fit", written, tmp_path / "m", "--method", method, *words, code=2).stderr
        assert f"{option.name} is for --method" in message and f"{method} has no such parameter" in message
    if method not in methods_of_paths():
        run("path", written, "--method", method, code=2)


def _value_of(option: Option) -> str:
    return option.kind[0] if isinstance(option.kind, tuple) else "1"


@pytest.mark.parametrize("method", METHODS)
def test_another_k_reads_no_documents(method: str, store: Path, tmp_path: Path) -> None:
    fit = ("fit", store, tmp_path / "m", "--method", method, "--overwrite")
    assert not as_json(*fit, "-k", 10)["counts_reused"]
    assert as_json("plan", store, "--method", method)["kept"]
    again = as_json(*fit, "-k", 0.1)
    assert (again["counts_reused"], again["reads"]) == ((False, 1) if method == "hybrid" else (True, 0))
    assert not as_json(*fit, "-k", 10, "--no-cache")["counts_reused"]
    rest = "reads the documents for features only" if method == "hybrid" else "reads no documents"
    assert rest in run("plan", store, "--method", method).stdout


def test_people_are_told_how_sure_a_choice_is(store: Path, tmp_path: Path) -> None:
    def said(method: str, *options: Any) -> str:
        text = run("fit", store, tmp_path / "m", "--method", method, "-k", 4, *options, "--overwrite").stdout
        line = next(line for line in text.splitlines() if line.startswith(("cost", "predicted error", "multinomial l")))
        assert line in " ".join(run("info", tmp_path / "m").stdout.split("objective    ")[1].splitlines()[:1])
        return text

    text = said("l1")
    assert "l1: 4 of 30 features, 240 documents" in text and "likelihood" not in text
    assert "no other choice of as many features is better" in text and "one pass over the data" in text
    assert "statistics kept from before" in said("l1")
    assert "a search found this choice, and another one may be better" in said("error", "--search", "forward")
    assert "no other choice of as many features is better" in said("error", "--search", "bounded")
    hybrid = said("hybrid", "--regions", 2)
    assert "theta: region 0 " in hybrid and "1 passes" not in hybrid and "no other choice" in hybrid
    listed = run("info", store).stdout
    assert "medians of 3 classes" in listed and "counts of 3 classes" in listed


@pytest.mark.parametrize("name", ["l1", "mahalanobis full", "hybrid few"])
def test_a_run_is_resumed_or_refused(name: str, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("MOST_ROWS", "MOST_ALL"):  # so that medians take several passes
        monkeypatch.setattr(f"nfs_dask.methods.memory_budget.{limit}", 12)
    monkeypatch.setattr("nfs_dask.methods.memory_budget.PILOT_BLOCKS", 2)
    options = typed(name.split()[0], ASKED[name])
    fit = ("fit", store, tmp_path / "m", *options, "--no-cache", "--overwrite")
    first = as_json(*fit, "--run", tmp_path / "run")
    passes = as_json("info", tmp_path / "run")["passes"]
    assert all(one["finished"] for one in passes) and 1 <= first["passes"] <= len(passes)
    assert "--resume" in run(*fit, "--run", tmp_path / "run", code=3).stderr
    again = as_json(*fit, "--resume", tmp_path / "run")
    assert (again["objective"], again["top_features"]) == (first["objective"], first["top_features"])
    assert (first["counts_reused"], again["counts_reused"]) == (False, True)
    assert len(as_json("info", tmp_path / "run")["passes"]) == len(passes)
    run(*fit, "--resume", tmp_path / "nowhere", code=3)


@pytest.mark.parametrize("name", ["l1", "hybrid few"])
def test_it_is_the_same_on_workers(name: str, store: Path, tmp_path: Path, shared_workers: TwoWorkers) -> None:
    options = (*typed(name.split()[0], ASKED[name]), "--no-cache")
    cluster = ("--scheduler", shared_workers.whole().scheduler_address)
    here = as_json("fit", store, tmp_path / "here", *options)
    there = as_json("fit", store, tmp_path / "there", *options, *cluster)
    assert there["objective"] == pytest.approx(here["objective"], rel=1e-12)
    judged = as_json("evaluate", tmp_path / "there", store, *cluster)
    assert judged["confusion"] == as_json("evaluate", tmp_path / "here", store)["confusion"]


def test_regions_of_texts_are_read_as_in_the_fit(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    letters = [
        {
            "subject": " ".join(f"word{j}" for j in rng.integers(0, 12, 3)),
            "body": " ".join(f"word{j + 6 * (i % 2)}" for j in rng.integers(0, 12, 20)),
            "folder": "junk" if i % 2 else "ham",
        }
        for i in range(80)
    ]
    path, table = tmp_path / "letters.jsonl", tmp_path / "letters.csv"
    path.write_text("".join(json.dumps(letter) + "\n" for letter in letters))
    pd.DataFrame(letters).to_csv(table, index=False)
    regions = ("--region", "subject", "--region", "body")
    run("ingest", path, *regions, "--label-column", "folder", tmp_path / "letters.zarr")
    fitted = as_json("fit", tmp_path / "letters.zarr", tmp_path / "m", "--method", "hybrid", "-k", 6)
    assert list(fitted["slopes"]) == ["subject", "body"]
    assert as_json("info", tmp_path / "m")["text"]["regions"] == ["subject", "body"]
    assert "theta        subject " in run("info", tmp_path / "m").stdout
    labels = nfs.load_model(tmp_path / "m").predict(
        [{k: v for k, v in one.items() if k != "folder"} for one in letters]
    )
    for file in (path, table, tmp_path / "letters.zarr"):
        assert as_json("predict", tmp_path / "m", file)["labels"] == labels.tolist()
        judged = as_json("evaluate", tmp_path / "m", file)
        assert judged["accuracy"] == np.mean(labels == [one["folder"] for one in letters])
    other = tmp_path / "other.jsonl"
    other.write_text("".join(json.dumps({"head": one["subject"], "text": one["body"]}) + "\n" for one in letters))
    renamed = as_json("predict", tmp_path / "m", other, "--region", "head", "--region", "text")
    assert renamed["labels"] == labels.tolist()
    assert "subject" in run("predict", tmp_path / "m", other, code=3).stderr


def test_data_that_a_method_cannot_take(store: Path, tmp_path: Path) -> None:
    def refused(*options: Any, code: int = 3, place: Path = store) -> str:
        return run("fit", place, tmp_path / "no", *options, code=code).stderr

    for method in ("multinomial", "l1", "l2", "mahalanobis"):
        assert "no such word" in refused("--method", method, "--always", "no such word")
    assert "--alpha 0 makes what was not seen" in refused("--method", "error", "--alpha", 0)
    assert refused("--method", "hybrid", "--regions", 4).startswith("Error: --regions 4")
    nfs.ingest(np.eye(4, 12_000), tmp_path / "wide.zarr", labels=["a", "b", "a", "b"])
    wide = refused("--method", "mahalanobis", "--covariance", "full", code=4, place=tmp_path / "wide.zarr")
    assert "at most 11,585 features" in wide
    X = np.array([[3, 0, 1], [4, 1, 0], [5, 0, 0], [0, 3, 1], [1, 4, 0], [0, 5, 0]])
    nfs.ingest(X, tmp_path / "apart.zarr", labels=["a", "a", "a", "b", "b", "b"])
    message = refused("--method", "hybrid", "--ridge", 0, place=tmp_path / "apart.zarr")
    assert "separable" in message and "ridge > 0" in message
    assert not (tmp_path / "no").exists()


def test_infinite_gains_and_margins_are_null_for_programs(tmp_path: Path) -> None:
    X = np.array([[0.0, 1.0], [0.0, 3.0], [7.0, 2.0], [7.0, 4.0]])
    store, model = tmp_path / "s.zarr", tmp_path / "m"
    nfs.ingest(X, store, labels=["a", "a", "b", "b"], names=["constant", "other"])
    fitted = as_json("fit", store, model, "--method", "mahalanobis", "-k", 2)
    assert fitted["top_features"]["b"][0] == ["constant", None]
    values = as_json("path", store, "--method", "mahalanobis", "--ks", "1,2")["path"]
    assert [(row["value"], row["bound"], row["gap"], row["certified"]) for row in values] == [(None, None, 0, True)] * 2
    assert "inf" in run("path", store, "--method", "mahalanobis").stdout
    # A class that had no document so far is infinitely farther than the other one.
    one = nfs.SparseCentroid(1).partial_fit(X[:2], ["a", "a"], classes=["a", "b"])
    one.save(tmp_path / "one")
    assert as_json("predict", tmp_path / "one", store)["margins"] == [None] * 4
    lines = list(csv.reader(io.StringIO(run("predict", tmp_path / "one", store).stdout)))
    assert lines == [["row", "label", "margin"], *([str(i), "a", "inf"] for i in range(4))]
