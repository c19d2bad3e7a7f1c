"""Selection by predicted error from the command line: fit, plan, predict, evaluate and info."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nfs_dask as nfs
from nfs_dask import ErrorRateSelector
from nfs_dask.sources.open_source import open_source
from nfs_dask.store.layout import Layout
from nfs_dask.store.writer import write_store
from tests.helpers.commands import as_json, run

N, M = 240, 30
NAMES = [f"word{i}" for i in range(M)]
SEARCHES = ("ranked", "best-individual", "forward", "plus-minus", "floating", "bounded")


def counts() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    codes = np.arange(N) % 3
    return rng.poisson(rng.gamma(0.5, size=(3, M))[codes]), np.array(["ham", "news", "spam"])[codes]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("written") / "mail.zarr"
    layout = Layout(chunk=256, shard=1024, row_chunk=8, row_shard=32, block=600)
    write_store(open_source(*counts()), path, names=NAMES, layout=layout)
    return path


@pytest.fixture
def store(tmp_path: Path, written: Path) -> Path:
    """A store of several blocks, beside which nothing is kept yet."""
    return Path(shutil.copytree(written, tmp_path / written.name))


@pytest.mark.parametrize("search", SEARCHES)
def test_fit_is_that_of_the_library(store: Path, tmp_path: Path, search: str) -> None:
    values = as_json("fit", store, tmp_path / "m", "--method", "error", "-k", 4, "--search", search, "--alpha", 0.5)
    selector = ErrorRateSelector(4, search=search, alpha=0.5).fit(*counts())
    assert (values["method"], values["rows"], values["features"], values["k"]) == ("error", N, M, 4)
    assert (values["measure"], values["objective"]) == ("predicted error", pytest.approx(selector.error_, rel=1e-12))
    assert values["certified"] == (search == "bounded") == (values["gap"] == 0)
    assert (values["counts_reused"], values["passes"]) == (False, 1)
    loaded = nfs.load_model(tmp_path / "m")
    assert isinstance(loaded, ErrorRateSelector) and loaded.get_params() == selector.get_params()
    np.testing.assert_array_equal(loaded.get_support(), selector.get_support())
    assert loaded.get_feature_names_out().tolist() == [f"word{i}" for i in selector.get_support(indices=True)]
    again = as_json("fit", store, tmp_path / "m", "--method", "error", "-k", 5, "--search", search, "--overwrite")
    assert again["counts_reused"]


def test_options_are_parameters(store: Path, tmp_path: Path) -> None:
    steps = ("--search", "plus-minus", "--add", 1, "--drop", 3)
    priors = ("--unbalanced", "--class-prior", "0.2,0.5,0.3")
    run("fit", store, tmp_path / "m", "--method", "error", "-k", 4, *steps, "--n-tokens", "8,20", *priors)
    loaded = nfs.load_model(tmp_path / "m")
    expected = ErrorRateSelector(4, search="plus-minus", add=1, drop=3, n_tokens=[8, 20])
    expected.set_params(balanced=False, class_prior=[0.2, 0.5, 0.3])
    assert loaded.get_params() == expected.get_params()
    assert loaded.objective_ == pytest.approx(expected.fit(*counts()).error_, rel=1e-12)


def test_people_are_told_the_error_and_how_sure_the_choice_is(store: Path, tmp_path: Path) -> None:
    fit = ("fit", store, tmp_path / "m", "--method", "error", "-k", 4, "--overwrite")
    error = ErrorRateSelector(4, search="forward").fit(*counts()).error_
    unsure = f"predicted error {error:,.3f}; a search found this choice, and another one may be better"
    text = run(*fit, "--search", "forward").stdout
    assert unsure in text and "error: 4 of 30 features, 240 documents" in text
    assert unsure in run("info", tmp_path / "m").stdout
    sure = "no other choice of as many features is better"
    assert sure in run(*fit, "--search", "bounded").stdout
    assert sure in run("info", tmp_path / "m").stdout
    values = as_json("info", tmp_path / "m")
    assert values["parameters"]["search"] == "bounded" and values["certified"]


def test_plan(store: Path, tmp_path: Path) -> None:
    values = as_json("plan", store, "--method", "error", "-k", 4)
    assert (values["method"], values["k"], values["kept"]) == ("error", 4, False)
    run("fit", store, tmp_path / "m", "--method", "error", "-k", 4)
    assert as_json("plan", store, "--method", "error", "-k", 4)["kept"]
    assert as_json("plan", store, "--method", "multinomial", "-k", 4)["kept"]  # the same counts


def test_predict_and_evaluate(store: Path, tmp_path: Path) -> None:
    X, y = counts()
    run("fit", store, tmp_path / "m", "--method", "error", "-k", 6, "--search", "forward")
    selector = ErrorRateSelector(6, search="forward").fit(X, y)
    values = as_json("predict", tmp_path / "m", store)
    assert values["labels"] == selector.predict(X).tolist()
    np.testing.assert_allclose(values["probabilities"], selector.predict_proba(X).max(axis=1), rtol=1e-9)
    judged = as_json("evaluate", tmp_path / "m", store)
    assert (judged["accuracy"], judged["n"]) == (pytest.approx(selector.score(X, y)), N)
    assert judged["coverage"] and judged["reliability"]


def test_raw_texts(tmp_path: Path) -> None:
    texts = tmp_path / "texts.csv"
    rows = ["tea cup,yes", "tea tea milk,yes", "coffee cup,no", "coffee black,no", "green tea,yes", "coffee cup cup,no"]
    texts.write_text("\n".join(["text,label", *rows * 5]) + "\n")
    store = tmp_path / "store"
    run("ingest", texts, store, "--text-column", "text", "--label-column", "label")
    run("fit", store, tmp_path / "m", "--method", "error", "-k", 1, "--search", "forward")
    of_texts = as_json("predict", tmp_path / "m", texts, "--text-column", "text")
    of_rows = as_json("predict", tmp_path / "m", store)
    for what in ("labels", "probabilities", "predicted"):
        assert of_texts[what] == of_rows[what]
    judged = as_json("evaluate", tmp_path / "m", texts, "--text-column", "text", "--label-column", "label")
    assert judged["accuracy"] == 1


def test_options_of_other_methods_are_wrong_usage(store: Path, tmp_path: Path) -> None:
    for option in (("--search", "forward"), ("--add", 3), ("--drop", 2), ("--n-tokens", 10), ("--unbalanced",)):
        message = run("fit", store, tmp_path / "m", *option, code=2).stderr
        assert f"{option[0]} is for --method error; multinomial has no such parameter" in message
    for option in (("--always", "word1"), ("--solver", "cuts")):
        message = run("fit", store, tmp_path / "m", "--method", "error", *option, code=2).stderr
        assert "error has no such parameter" in message
    assert "is not a list of numbers" in run("fit", store, "m", "--method", "error", "--n-tokens", "x", code=2).stderr
    assert "error" not in run("path", "--help").stdout.split("--method")[1].split("]")[0]
    refused = run("fit", store, tmp_path / "m", "--method", "error", "--alpha", 0, code=3).stderr
    assert "--alpha 0 makes what was not seen" in refused
    assert not (tmp_path / "m").exists()
