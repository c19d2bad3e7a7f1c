"""All arguments are looked at before anything long begins, and nothing that is there is replaced unasked."""

from __future__ import annotations

import gc
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

import nfs_dask as nfs
from nfs_dask.cli.main import cli
from nfs_dask.engine.engine import Engine
from tests.helpers.commands import as_json, run

ROWS = [("tea cup", "yes"), ("coffee cup", "no"), ("green tea", "yes"), ("black coffee", "no")] * 3


def write(folder: Path) -> Path:
    path = folder / "drinks.csv"
    path.write_text("\n".join(["text,label", *(f"{text},{label}" for text, label in ROWS)]) + "\n")
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a store and a model."""
    folder = tmp_path_factory.mktemp("made")
    run("ingest", write(folder), "--label-column", "label", folder / "drinks.zarr")
    run("fit", folder / "drinks.zarr", folder / "drinks.model", "-k", 3)
    return folder


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    return write(tmp_path)


@pytest.fixture
def store(tmp_path: Path, made: Path) -> Path:
    return Path(shutil.copytree(made / "drinks.zarr", tmp_path / "drinks.zarr"))


@pytest.fixture
def model(tmp_path: Path, made: Path) -> Path:
    return Path(shutil.copytree(made / "drinks.model", tmp_path / "drinks.model"))


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every engine and every opening of a dataset fail the test."""

    def begun(*_: Any, **__: Any) -> Any:
        raise AssertionError("the work began")

    monkeypatch.setattr("nfs_dask.cli.options.ClusterOptions.engine", begun)
    monkeypatch.setattr("nfs_dask.dataset.open_dataset", begun)


def no_engine(*_: Any, **__: Any) -> Engine:
    raise AssertionError("the work began")


WRONG = [
    ["fit", "big.zarr", "m", "-k", "abc"],
    ["fit", "big.zarr", "m", "-k", "1.0"],
    ["fit", "big.zarr", "m", "-k", "0"],
    ["fit", "big.zarr", "m", "-k", "nan"],
    ["fit", "big.zarr", "m", "--alpha", "-1"],
    ["fit", "big.zarr", "m", "--alpha", "nan"],
    ["fit", "big.zarr", "m", "--method", "mahalanobis", "--variance-floor", "-1"],
    ["fit", "big.zarr", "m", "--method", "hybrid", "--ridge", "inf"],
    ["fit", "big.zarr", "m", "--class-prior", "0.5,-1"],
    ["plan", "big.zarr", "--method", "bernoulli", "-k", "few"],
    ["path", "big.zarr", "--ks", "1,few"],
    ["path", "big.zarr", "--ks", ""],
    ["path", "big.zarr", "--alpha", "-1"],
    ["path", "big.zarr", "--choose", "cv", "--alphas", "1,x"],
    ["path", "big.zarr", "--choose", "cv", "--alphas", "1,-2"],
]


@pytest.mark.parametrize("wrong", WRONG, ids=" ".join)
@pytest.mark.usefixtures("no_work")
def test_values_are_looked_at_first(wrong: list[str]) -> None:
    assert "Usage: " in run(*wrong, code=2).stderr


def test_an_unknown_column_of_json_lines_is_found_in_the_head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "drinks.jsonl"
    path.write_text("".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in ROWS))
    with monkeypatch.context() as patched:
        patched.setattr("nfs_dask.cli.options.ClusterOptions.engine", no_engine)
        refused = run("ingest", path, "--label-column", "lable", tmp_path / "new.zarr", code=3).stderr
        assert "'text', 'label'" in refused and "'lable' is not among them" in refused
        refused = run("ingest", path, "--text-column", "body", tmp_path / "new.zarr", code=3).stderr
        assert "'body' is not among them" in refused
    run("ingest", path, "--label-column", "label", tmp_path / "new.zarr")


def test_parameters_that_data_refuse_are_refused_before_an_engine_is_made(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nfs_dask.cli.options.ClusterOptions.engine", no_engine)
    assert "2 classes" in run("fit", store, tmp_path / "m", "-k", 2, "--class-prior", "1,1,1", code=3).stderr


OUTPUTS: dict[str, Callable[[Path, Path, Path, Path], list[Any]]] = {
    "ingest": lambda documents, store, model, place: ["ingest", documents, "--label-column", "label", place],
    "fit": lambda documents, store, model, place: ["fit", store, place, "-k", 2],
    "predict": lambda documents, store, model, place: ["predict", model, documents, "--out", f"{place}.csv"],
    "path": lambda documents, store, model, place: ["path", store, "--csv", f"{place}.csv"],
    "demo": lambda documents, store, model, place: ["demo", "--documents", 200, "--features", 100, "--keep", place],
}
each_output = pytest.mark.parametrize("name", list(OUTPUTS))


@each_output
def test_a_place_that_cannot_be_written_is_refused_first(
    name: str, documents: Path, store: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nfs_dask.cli.options.ClusterOptions.engine", no_engine)
    before = documents.read_bytes()
    refused = run(*OUTPUTS[name](documents, store, model, documents / "inside" / "x"), code=3).stderr
    assert f"{documents} is a file" in refused and "name another place" in refused
    closed = Path("/proc/1/nowhere/x")  # whoever asks, nothing can be made there
    assert "cannot be written" in run(*OUTPUTS[name](documents, store, model, closed), code=3).stderr
    assert documents.read_bytes() == before


@each_output
def test_what_is_there_is_replaced_only_when_asked_to(
    name: str, documents: Path, store: Path, model: Path, tmp_path: Path
) -> None:
    command = OUTPUTS[name](documents, store, model, tmp_path / "new")
    run(*command)
    before = {path: path.read_bytes() for path in files_in(tmp_path)}
    refused = run(*command, code=3).stderr
    assert "--overwrite" in refused or "overwrite=True" in refused
    assert {path: path.read_bytes() for path in files_in(tmp_path)} == before
    run(*command, "--overwrite")
    left = {path.name for path in tmp_path.iterdir()} - {"new", "new.csv"}
    assert left == {"drinks.csv", "drinks.zarr", "drinks.model"}


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_store_is_replaced_by_another(documents: Path, store: Path, tmp_path: Path) -> None:
    less = tmp_path / "less.csv"
    less.write_text("text,label\n" + "milk shake,yes\nblack milk,no\n")
    run("ingest", less, "--label-column", "label", store, "--overwrite")
    assert (nfs.open_dataset(store).n_rows, as_json("info", store)["features"]) == (2, 3)
    replaced = nfs.ingest(documents, store, label_column="label", overwrite=True)
    assert replaced.n_rows == len(ROWS)
    run("ingest", less, store, "--append", "--overwrite", code=2)
    with pytest.raises(nfs.InputError, match="append= adds rows to a store and overwrite= replaces it"):
        nfs.ingest(documents, store, append=True, overwrite=True)


def test_a_store_is_its_own_replacement(store: Path) -> None:
    before = nfs.open_dataset(store)
    after = nfs.ingest(store, store, overwrite=True)
    assert (after.n_rows, after.nnz, after.classes.tolist()) == (before.n_rows, before.nnz, ["no", "yes"])


@pytest.mark.parametrize("name", ["ingest", "fit"])
def test_nothing_else_is_ever_replaced(name: str, documents: Path, store: Path, model: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "notes").write_text("mine")
    for place in (mine, documents):
        run(*OUTPUTS[name](documents, store, model, place), "--overwrite", code=3)
    assert (mine / "notes").read_text() == "mine" and documents.is_file()


def test_an_interrupted_replacement_leaves_the_old_store(
    documents: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: Any) -> None:
        raise KeyboardInterrupt

    before = nfs.open_dataset(store).fingerprint
    monkeypatch.setattr("nfs_dask.store.publish.Building.publish", stopped)
    run("ingest", documents, store, "--overwrite", code=130)
    assert nfs.open_dataset(store).fingerprint == before


def test_a_command_collects_rarely_and_leaves_that_as_it_was() -> None:
    before = gc.get_threshold()
    seen = []
    group = type(cli)("probe", commands=[click.Command("look", callback=lambda: seen.append(gc.get_threshold()))])
    group(["look"], standalone_mode=False)
    assert seen[0][0] > before[0]
    assert gc.get_threshold() == before
