"""What people do with tables of documents: delimiters, names of documents, lists of bad ones, a look beforehand."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nfs_dask as nfs
from tests.helpers.commands import as_json, run

TEXTS = ["tea, green; hot", 'coffee "black"', "milk tea", "cold coffee\nwith milk", "tea", "coffee"] * 4
LABELS = ["a", "b"] * 12
IDS = [f"doc {i}, of mine" for i in range(24)]


def write(path: Path, delimiter: str) -> Path:
    with open(path, "w", newline="") as file:
        table = csv.writer(file, delimiter=delimiter)
        table.writerow(["id", "text", "label"])
        table.writerows(zip(IDS, TEXTS, LABELS, strict=True))
    return path


@pytest.mark.parametrize(("delimiter", "typed"), [(";", ";"), ("|", "|"), ("\t", "tab"), ("\t", "\\t"), (",", ",")])
def test_delimiters(tmp_path: Path, delimiter: str, typed: str) -> None:
    usual = nfs.ingest(write(tmp_path / "usual.csv", ","), tmp_path / "usual", label_column="label")
    path = write(tmp_path / "mine.csv", delimiter)
    mine = nfs.ingest(path, tmp_path / "mine", label_column="label", delimiter=delimiter)
    run("ingest", path, "--label-column", "label", "--delimiter", typed, tmp_path / "shell")
    for dataset in (mine, nfs.open_dataset(tmp_path / "shell")):
        assert (dataset.n_rows, dataset.nnz) == (usual.n_rows, usual.nnz)
        assert dataset.names(np.arange(6)) == usual.names(np.arange(6))


def test_large_files_are_cut_where_rows_begin_under_any_delimiter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nfs_dask.documents import lines
    from nfs_dask.documents.open_documents import open_documents
    from nfs_dask.documents.parameters import DocumentParameters

    monkeypatch.setattr(lines, "PIECE_NBYTES", 64)
    asked = DocumentParameters(label_column="label", delimiter=";")
    documents = open_documents(write(tmp_path / "mine.csv", ";"), asked)
    assert documents.n_pieces > 5
    batches = [batch for piece in range(documents.n_pieces) for batch in documents.batches(piece)]
    assert sum(batch.n_documents for batch in batches) == len(TEXTS)
    assert [label for batch in batches for label in batch.labels] == LABELS


@pytest.mark.parametrize("wrong", [";;", "", '"', "\n", "é", 5])
def test_what_is_no_delimiter_is_refused(tmp_path: Path, wrong: Any) -> None:
    with pytest.raises(nfs.InputError, match="delimiter=.*give one character"):
        nfs.ingest(write(tmp_path / "mine.csv", ";"), tmp_path / "a", delimiter=wrong)


def test_a_delimiter_is_for_csv_only(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "tea"}\n')
    (tmp_path / "folder" / "x").mkdir(parents=True)
    (tmp_path / "folder" / "x" / "1.txt").write_text("tea")
    for given in (tmp_path / "a.jsonl", ["tea", "milk"], tmp_path / "folder"):
        with pytest.raises(nfs.InputError, match="delimiter"):
            nfs.ingest(given, tmp_path / "new", delimiter=";")
    with pytest.raises(nfs.InputError, match="delimiter= is about texts"):
        nfs.ingest(np.eye(3), tmp_path / "new", delimiter=";")


# Predictions


@pytest.fixture
def model(tmp_path: Path) -> Path:
    run("ingest", write(tmp_path / "mail.csv", ","), "--label-column", "label", tmp_path / "mail.zarr")
    run("fit", tmp_path / "mail.zarr", tmp_path / "m", "-k", 4)
    return tmp_path / "m"


def test_predictions_carry_names_of_documents_and_all_probabilities(tmp_path: Path, model: Path) -> None:
    out = tmp_path / "out.csv"
    more = ("--id-column", "id", "--all-probabilities")
    run("predict", model, tmp_path / "mail.csv", *more, "--out", out)
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    loaded = nfs.load_model(model)
    assert list(rows[0]) == ["row", "id", "label", "probability", "probability_a", "probability_b"]
    assert [row["id"] for row in rows] == IDS
    assert [row["label"] for row in rows] == loaded.predict(TEXTS).tolist()
    chances = [[float(row["probability_a"]), float(row["probability_b"])] for row in rows]
    np.testing.assert_allclose(chances, loaded.predict_proba(TEXTS), rtol=1e-5)
    values = as_json("predict", model, tmp_path / "mail.csv", *more)
    assert (values["ids"], values["classes"]) == (IDS, ["a", "b"])
    np.testing.assert_allclose(values["all_probabilities"], loaded.predict_proba(TEXTS), rtol=1e-12)
    refused = run("predict", model, tmp_path / "mail.csv", "--id-column", "idd", code=3).stderr
    assert "'id', 'text', 'label'" in refused
    assert "has no column 'id'" in run("predict", model, tmp_path / "mail.zarr", "--id-column", "id", code=3).stderr


@pytest.mark.filterwarnings("always::nfs_dask.DataWarning")
def test_documents_that_are_left_out_take_their_names_along(tmp_path: Path, model: Path) -> None:
    path = tmp_path / "holes.jsonl"
    found: list[Any] = [{"id": 7, "text": "tea"}, {"id": 8, "text": None}, {"id": 9.0, "text": "coffee"}]
    path.write_text("".join(json.dumps(one) + "\n" for one in found))
    values = as_json("predict", model, path, "--id-column", "id", "--on-error", "skip")
    assert (values["rows"], values["ids"]) == ([0, 2], ["7", "9"])


def test_rows_of_a_store_are_named_by_its_columns(tmp_path: Path) -> None:
    import anndata as ad
    import pandas as pd

    obs = pd.DataFrame({"name": [f"n{i}" for i in range(8)], "kind": list("abababab")}, [f"cell{i}" for i in range(8)])
    nfs.ingest(ad.AnnData(np.eye(8, 5, dtype=np.float32), obs), tmp_path / "s", label_column="kind")
    run("fit", tmp_path / "s", tmp_path / "m", "-k", 2, "--method", "l2")
    values = as_json("predict", tmp_path / "m", tmp_path / "s", "--id-column", "name", "--where", "kind=b")
    assert (values["rows"], values["ids"]) == ([1, 3, 5, 7], ["n1", "n3", "n5", "n7"])
    assert "has no column" in run("predict", tmp_path / "m", tmp_path / "s", "--id-column", "no", code=3).stderr
    assert "margins" in run("predict", tmp_path / "m", tmp_path / "s", "--all-probabilities", code=2).stderr


# Bad documents


@pytest.fixture
def holes(tmp_path: Path) -> Path:
    path = tmp_path / "holes.csv"
    path.write_bytes(b'text,label\ntea,a\nmilk,\n"x, y\xff",b\ncoffee,b,c\ncoffee,b\n')
    return path


@pytest.mark.filterwarnings("always::nfs_dask.DataWarning")
def test_bad_documents_are_listed(tmp_path: Path, holes: Path) -> None:
    out = tmp_path / "bad.csv"
    command = ("ingest", holes, "--label-column", "label", tmp_path / "new", "--rejects", out)
    run(*command)
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["where"], row["kind"]) for row in rows] == [
        (f"{holes}, line 3", "label"),
        (f"{holes}, line 4", "undecodable"),
        (f"{holes}, line 5", "broken"),
    ]
    assert rows[0]["reason"] == "the document has no label"
    assert nfs.open_dataset(tmp_path / "new").n_rows == 2
    assert "bad.csv exists" in run(*command, code=3).stderr
    run("ingest", write(tmp_path / "good.csv", ","), tmp_path / "good", "--rejects", tmp_path / "none.csv")
    assert (tmp_path / "none.csv").read_text() == "where,kind,reason\n"
    np.save(tmp_path / "x.npy", np.eye(3))
    nfs.ingest(np.eye(3), tmp_path / "matrix")
    run("ingest", tmp_path / "matrix", tmp_path / "other", "--rejects", tmp_path / "no.csv", code=2)


@pytest.mark.filterwarnings("always::nfs_dask.DataWarning")
def test_more_bad_documents_than_are_named_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    path.write_text("".join(json.dumps({"text": None if i % 3 else "tea"}) + "\n" for i in range(300)))
    run("ingest", path, tmp_path / "new", "--rejects", tmp_path / "bad.csv")
    lines = (tmp_path / "bad.csv").read_text().splitlines()[1:]
    assert len(lines) == 200 and lines[-1].startswith(f'"{path}, line 300",missing,')


# A look beforehand


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "jsonl", "parquet"])
def test_a_check_says_what_would_be_done_and_writes_nothing(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"mail.{suffix}"
    plain = write(tmp_path / "plain.csv", ",")
    rows = [{"id": i, "text": t, "label": x} for i, t, x in zip(IDS, TEXTS, LABELS, strict=True)]
    if suffix == "parquet":
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif suffix == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        path.write_bytes(plain.read_bytes() if suffix == "csv" else gzip.compress(plain.read_bytes()))
    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr("nfs_dask.cli.options.ClusterOptions.engine", None)
    command = ("ingest", path, "--label-column", "label", "--where", "label=a", tmp_path / "new", "--check")
    head = as_json(*command)["head"]
    assert (head["documents_seen"], head["chosen"], head["passed_over"], head["labels"]) == (24, 12, 12, ["a"])
    assert head["terms"] == ["green", "hot", "milk", "tea"]
    text = run(*command).stdout
    assert "nothing was written" in text and "labels among them: a" in text and "4 terms in them" in text
    assert "'lable'" in run("ingest", path, "--label-column", "lable", tmp_path / "new", "--check", code=3).stderr
    assert sorted(tmp_path.iterdir()) == before


def test_a_check_names_bad_documents_and_knows_matrices(tmp_path: Path, holes: Path) -> None:
    command = ("ingest", holes, "--label-column", "label", tmp_path / "new", "--check")
    assert "line 3: the document has no label" in run(*command, code=3).stderr
    assert "2 would be taken, 3 bad" in run(*command, "--on-error", "skip").stdout
    nfs.ingest(np.eye(3), tmp_path / "matrix", labels=[0, 1, 0])
    values = as_json("ingest", tmp_path / "matrix", tmp_path / "other", "--check")
    assert (values["rows"], values["features"], values["classes"]) == (3, 3, [0, 1])
    assert "3 rows and 3 features, 2 classes" in run("ingest", tmp_path / "matrix", tmp_path / "o", "--check").stdout
    assert not (tmp_path / "other").exists()
