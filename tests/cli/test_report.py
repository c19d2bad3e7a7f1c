"""The report command, and pages that are written with a fit."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import nfs_dask as nfs
from tests.helpers.commands import as_json, run
from tests.reports.test_make_report import Page, documents


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    place: Path = tmp_path_factory.mktemp("reports")
    for name, n, seed in (("train", 200, 0), ("test", 80, 1)):
        texts, y = documents(n, seed)
        pd.DataFrame({"body": texts, "kind": y}).to_csv(place / f"{name}.csv", index=False)
    run("ingest", place / "train.csv", place / "x.zarr", "--text-column", "body", "--label-column", "kind")
    run("fit", place / "x.zarr", place / "m", "-k", "6")
    return place


def test_a_page_with_everything(folder: Path) -> None:
    out = folder / "all.html"
    values = as_json("report", folder / "m", out, "--data", folder / "test.csv", "--path", folder / "x.zarr",
                     "--folds", "3", "--documents", "2", "--title", "My <mail>")  # fmt: skip
    model, (texts, y) = nfs.load_model(folder / "m"), documents(80, 1)
    assert values["accuracy"] == nfs.evaluate(model, texts, y).accuracy and 6 in values["ks"]
    page = Page(out.read_text(encoding="utf-8"))
    assert values["bytes"] == len(out.read_bytes()) and page.text_of("h1") == "My <mail>"
    assert len(page.all("article")) == 4 and page.all("mark") and len(page.all("input")) == 1
    whole = nfs.report(
        model, texts, y, path=nfs.open_dataset(folder / "x.zarr"), folds=3, n_documents=2, title="My <mail>"
    )
    assert whole.html.split("How it was made")[0] == out.read_text(encoding="utf-8").split("How it was made")[0]


def test_the_file_may_be_named_either_way_and_is_not_replaced(folder: Path) -> None:
    run("report", folder / "m", "--out", folder / "a.html")
    assert "--overwrite" in run("report", folder / "m", folder / "a.html", code=3).output
    run("report", folder / "m", folder / "a.html", "--overwrite")
    assert "give one of them" in run("report", folder / "m", "b.html", "--out", "c.html", code=2).output
    assert "say which file" in run("report", folder / "m", code=2).output
    assert "--path STORE" in run("report", folder / "m", folder / "b.html", "--folds", "3", code=2).output
    assert "--data SOURCE" in run("report", folder / "m", folder / "b.html", "--label-column", "x", code=2).output
    assert not (folder / "b.html").exists()


def test_rows_of_numbers_are_numbered_as_in_the_data(folder: Path) -> None:
    values = as_json("report", folder / "m", folder / "w.html", "--data", folder / "x.zarr", "--documents", "3",
                     "--where", "label=good")  # fmt: skip
    page = Page((folder / "w.html").read_text(encoding="utf-8"))
    shown = [
        int(text.split()[1].strip(":")) for tag, text in page.texts if tag == "h3" and text.startswith("document ")
    ]
    labels = documents(200, 0)[1]
    assert shown and all(labels[number] == "good" for number in shown) and values["accuracy"] > 0
    model = nfs.load_model(folder / "m")
    assert 0 < len({model.predict(nfs.open_dataset(folder / "x.zarr"))[number] for number in shown[:3]}) <= 2


@pytest.mark.parametrize("method", ["multinomial", "l1", "hybrid"])
def test_a_fit_writes_one_too(folder: Path, method: str) -> None:
    out = folder / f"{method}.html"
    values = as_json("fit", folder / "x.zarr", folder / f"{method}.model", "-k", "6", "--method", method,
                     "--report", out)  # fmt: skip
    page = Page(out.read_text(encoding="utf-8"))
    assert values["report"] == str(out) and len(page.all("input")) == (method != "hybrid")
    cells = [text for tag, text in page.texts if tag in ("th", "td")]
    assert values["gap"] == 0 or f"{values['objective']:,.3f}" in cells
    assert not (folder / "none.model").exists()


def test_what_is_missing_is_said_before_the_data_are_read(folder: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    said = run("fit", folder / "x.zarr", folder / "no.model", "-k", "6", "--report", folder / "no.html", code=3).output
    assert "nfs-dask[report]" in said and not (folder / "no.model").exists()
    assert "nfs-dask[report]" in run("report", folder / "m", folder / "no.html", code=3).output


def test_training_data_take_the_column_of_labels(folder: Path) -> None:
    import anndata
    import numpy as np

    rng = np.random.default_rng(0)
    tissue = np.array(["brain", "liver"])[np.arange(60) % 2]
    X = rng.normal(size=(60, 10)) + (tissue == "liver")[:, None] * np.arange(10)
    obs = pd.DataFrame({"tissue": tissue}, index=[f"c{i}" for i in range(60)])
    anndata.AnnData(X=X.astype(np.float64), obs=obs).write_h5ad(folder / "g.h5ad")
    run("fit", folder / "g.h5ad", folder / "g.model", "-k", "3", "--method", "l2", "--label-column", "tissue")
    values = as_json("report", folder / "g.model", folder / "g.html", "--path", folder / "g.h5ad",
                     "--label-column", "tissue")  # fmt: skip
    assert 3 in values["ks"]


def test_a_path_of_what_has_none_is_refused_at_once(folder: Path) -> None:
    run("fit", folder / "x.zarr", folder / "h.model", "--method", "hybrid")
    said = run("report", folder / "h.model", folder / "h.html", "--path", folder / "x.zarr", code=3).output
    assert "does not rank features" in said and not (folder / "h.html").exists()
