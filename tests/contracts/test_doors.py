"""Doors: what files are written and read, and what is said of those that are not."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import nfs_dask as nfs
from tests.helpers.commands import run
from tests.helpers.places import ROOT

TEXTS = ["a fine film", "a dull film", "fine, very fine", "dull and long", "a fine evening", "long, dull, dull"] * 5
LABELS = ["good", "bad"] * 15


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A table of documents, and a model of them."""
    folder = tmp_path_factory.mktemp("doors")
    pd.DataFrame({"text": TEXTS, "opinion": LABELS, "id": range(30)}).to_csv(folder / "films.csv", index=False)
    dataset = nfs.ingest(folder / "films.csv", folder / "films.zarr", label_column="opinion")
    nfs.SparseMultinomialNB(2).fit(dataset).save(folder / "films.model")
    return folder


@pytest.mark.parametrize("options", [[], ["--all-probabilities", "--id-column", "id"]])
def test_predictions_are_written_as_the_ending_says(place, tmp_path, options):
    for ending in ("csv", "parquet"):
        run("predict", place / "films.model", place / "films.csv", "--out", tmp_path / f"said.{ending}", *options)
    csv, parquet = pd.read_csv(tmp_path / "said.csv"), pd.read_parquet(tmp_path / "said.parquet")
    assert list(csv) == list(parquet)
    assert parquet["row"].tolist() == list(range(30))
    assert parquet["label"].tolist() == csv["label"].tolist() == LABELS
    np.testing.assert_allclose(parquet["probability"], csv["probability"], rtol=1e-5)
    if options:
        assert parquet["id"].tolist() == [str(i) for i in range(30)]
        assert np.allclose(parquet[["probability_bad", "probability_good"]].sum(axis=1), 1)


def test_predictions_of_a_dataset_are_written_as_parquet(place, tmp_path):
    """Labels that are numbers stay numbers."""
    rows, y = np.eye(4), [7, 7, 9, 9]
    dataset = nfs.ingest(rows, tmp_path / "rows.zarr", labels=y)
    nfs.SparseCentroid(2, metric="manhattan").fit(dataset).save(tmp_path / "rows.model")
    run("predict", tmp_path / "rows.model", tmp_path / "rows.zarr", "--out", tmp_path / "said.parquet")
    found = pd.read_parquet(tmp_path / "said.parquet")
    assert list(found) == ["row", "label", "margin"]
    assert found["label"].dtype.kind == "i"
    assert set(found["label"]) <= {7, 9}


@pytest.mark.parametrize(
    "words",
    [
        ["predict", "films.model", "films.csv", "--out", "OUT.xlsx"],
        ["predict", "films.model", "films.csv", "--out", "OUT.json"],
        ["predict", "films.model", "films.csv", "--out", "OUT"],
        ["features", "films.model", "--out", "OUT.xlsx"],
        ["report", "films.model", "OUT.pdf"],
        ["report", "films.model", "--out", "OUT.md"],
        ["fit", "films.zarr", "OUT.model", "--report", "OUT.pdf"],
        ["explain", "films.model", "a fine film", "--html", "OUT.pdf"],
        ["path", "films.zarr", "--csv", "OUT.parquet"],
        ["ingest", "films.csv", "OUT.zarr", "--label-column", "opinion", "--rejects", "OUT.parquet"],
    ],
    ids=" ".join,
)
def test_an_ending_that_is_not_meant_is_refused(place, tmp_path, words):
    """Before any work, with what is allowed."""
    places = [word.replace("OUT", str(tmp_path / "out")) for word in words]
    typed = [place / word if word.startswith("films.") else word for word in places]
    said = run(*typed, code=2).output
    assert re.search(r"out(\.\w+)?", said)
    assert re.search(r"\.(csv|html)", said)
    assert not list(tmp_path.iterdir())


def test_a_device_has_no_ending(place):
    run("predict", place / "films.model", place / "films.csv", "--out", "/dev/null")


def test_a_report_is_html_in_python(place, tmp_path):
    report = nfs.report(nfs.load_model(place / "films.model"))
    with pytest.raises(ValueError, match=r"\.html"):
        report.save(tmp_path / "films.pdf")
    report.save(tmp_path / "films.html")
    assert "<html" in (tmp_path / "films.html").read_text()


@pytest.mark.parametrize("name", ["new.parquet", "new.csv", "new.h5ad", "new.npz", "new.csv.gz", "new.svm"])
def test_a_store_has_no_ending_of_another_format(place, tmp_path, name):
    """It would be read as that format later."""
    said = run("ingest", place / "films.csv", tmp_path / name, "--label-column", "opinion", code=3).output
    assert ".zarr" in said
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match=r"\.zarr"):
        nfs.ingest(TEXTS, tmp_path / name, labels=LABELS)


def test_pyarrow_comes_with_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert any(re.match(r"pyarrow\b", one) for one in project["dependencies"])
    assert "text" in project["optional-dependencies"], "old install lines keep working"


def test_hints_name_extras_that_exist_in_quotes():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    files = [*Path(nfs.__file__).parent.rglob("*.py"), ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    found = 0
    for file in files:
        for before, names in re.findall(r"pip install (.?)nfs-dask\[([\w,]+)\]", file.read_text()):
            found += 1
            assert before in ("'", '"'), f"{file}: a shell may take brackets for a pattern"
            assert set(names.split(",")) <= extras.keys(), file
            assert "text" not in names.split(","), f"{file}: pyarrow comes with the package"
    assert found > 5
