"""Rows by values of their columns: of documents in every format, of stores, and of AnnData."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import anndata as ad
import dask.bag
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

import nfs_dask as nfs
from nfs_dask.sources import chosen_rows
from nfs_dask.sources.chosen_rows import rows_where
from nfs_dask.sources.conditions import Condition, text_of
from nfs_dask.sources.open_source import open_source
from tests.helpers.commands import as_json, run

WORDS = ("tea", "coffee", "milk", "cup", "black", "green")
TABLE = pd.DataFrame(
    {
        "text": [f"{WORDS[i % 6]} {WORDS[(i * i) % 5]} {WORDS[i // 7 % 6]}" for i in range(60)],
        "label": np.array(["yes", "no", "no"])[np.arange(60) % 3],
        "split": np.array(["train", "train", "test", "dev"])[np.arange(60) % 4],
        "year": 2000 + np.arange(60) % 5,
        "share": np.arange(60) % 2 / 2,
        "old": np.arange(60) % 7 == 0,
    }
)
CONDITIONS: list[dict[str, Any]] = [
    {"split": "train"},
    {"split": ["test", "dev"]},
    {"split": "test", "year": 2003},
    {"year": "2003"},
    {"share": 0.5},
    {"old": True},
]
each_condition = pytest.mark.parametrize("where", CONDITIONS, ids=str)


def expected(where: dict[str, Any]) -> pd.DataFrame:
    """The rows as pandas finds them."""
    table = TABLE
    for name, value in where.items():
        wanted = value if isinstance(value, list) else [int(value) if name == "year" else value]
        table = table[table[name].isin(wanted)]
    assert 0 < len(table) < len(TABLE)
    return table


def in_file(suffix: str, folder: Path) -> Path:
    path = folder / f"drinks.{suffix}"
    if suffix == "csv":
        TABLE.to_csv(path, index=False)
    elif suffix == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in TABLE.to_dict("records")))
    else:
        pq.write_table(pa.Table.from_pandas(TABLE), path, row_group_size=13)
    return path


def given(kind: str, folder: Path) -> Any:
    if kind in ("csv", "jsonl", "parquet"):
        return in_file(kind, folder)
    if kind == "bag":
        return dask.bag.from_sequence(TABLE.to_dict("records"), npartitions=3)
    return {"pandas": TABLE, "dask": dd.from_pandas(TABLE, npartitions=3), "arrow": pa.Table.from_pandas(TABLE)}[kind]


KINDS = ["csv", "jsonl", "parquet", "pandas", "arrow", "dask", "bag"]


@each_condition
@pytest.mark.parametrize("kind", KINDS)
def test_documents_are_those_that_pandas_finds(kind: str, where: dict[str, Any], tmp_path: Path) -> None:
    rows = expected(where)
    options: dict[str, Any] = {"label_column": "label", "text_column": "text"}
    found = nfs.ingest(given(kind, tmp_path), tmp_path / "a", where=where, **options)
    same = nfs.ingest(rows, tmp_path / "b", **options)
    np.testing.assert_array_equal(dense(found), dense(same))
    assert found.classes.tolist() == same.classes.tolist()
    assert found.text.report["documents_seen"] == len(TABLE)
    assert found.text.report["passed_over"] == len(TABLE) - len(rows)


def dense(dataset: nfs.Dataset) -> np.ndarray:
    """Values, with the codes of the rows."""
    blocks = list(dataset.source.blocks(0, dataset.source.n_blocks))
    values = [sp.csr_array((b.data, b.indices, b.indptr), shape=(b.n_rows, b.n_features)).toarray() for b in blocks]
    return np.column_stack([np.vstack(values), np.concatenate([b.codes for b in blocks])])


@pytest.mark.parametrize("kind", KINDS)
def test_columns_and_values_that_are_not_there_are_named_with_those_that_are(kind: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"label_column": "label", "text_column": "text"}
    with pytest.raises(
        nfs.InputError, match=r"no row of the documents has 'tarin' .* 'split'; there are 'dev', 'test'"
    ):
        nfs.ingest(given(kind, tmp_path), tmp_path / "a", where={"split": "tarin"}, **options)
    if kind != "bag":
        with pytest.raises(nfs.InputError, match="'split', 'year', 'share', 'old'; where='splits' is not among them"):
            nfs.ingest(given(kind, tmp_path), tmp_path / "a", where={"splits": "train"}, **options)
    nfs.ingest(given(kind, tmp_path), tmp_path / "a", where={"split": "train"}, **options)


@pytest.mark.parametrize("where", [{}, "split=train", {"split": []}, {"split": None}, {"": "train"}, {"a": {"b": 1}}])
def test_what_is_no_condition_is_refused(where: Any, tmp_path: Path) -> None:
    with pytest.raises(nfs.InputError, match="where="):
        nfs.ingest(TABLE, tmp_path / "a", where=where)


def test_bad_documents_that_were_not_asked_for_are_nobodys_problem(tmp_path: Path) -> None:
    path = tmp_path / "drinks.csv"
    path.write_bytes(b"text,label,split\ntea,yes,train\nb\xff,,test\nmilk,no,train\nx,,test\n")
    found = nfs.ingest(path, tmp_path / "a", label_column="label", where={"split": "train"})
    assert (found.n_rows, found.text.report["left_out"]) == (2, {})
    with pytest.raises(nfs.InputError, match="line 3"):
        nfs.ingest(path, tmp_path / "b", label_column="label", where={"split": "test"})


def test_labels_are_given_for_all_documents(tmp_path: Path) -> None:
    found = nfs.ingest(TABLE, tmp_path / "a", labels=np.arange(60) % 5, where={"split": "dev"})
    codes = np.concatenate([block.codes for block in found.source.blocks(0, found.source.n_blocks)])
    assert found.classes[codes].tolist() == (np.arange(60) % 5)[TABLE.split == "dev"].tolist()


# Rows of stores and of AnnData


def annotated() -> ad.AnnData:
    X = sp.csr_matrix(np.random.default_rng(0).poisson(1.0, (60, 9)).astype(np.float32))
    obs = TABLE.drop(columns="text").astype({"split": "category"})
    return ad.AnnData(X, obs.set_axis([f"cell{i}" for i in range(60)]))


def opened(kind: str, folder: Path) -> Any:
    data = annotated()
    if kind == "h5ad":
        data.write_h5ad(folder / "cells.h5ad")
    elif kind == "zarr":
        data.write_zarr(folder / "cells.zarr")
    elif kind == "store":
        nfs.ingest(data, folder / "cells.store", label_column="label", block_bytes=400)
    return data if kind == "memory" else folder / f"cells.{kind}"


@each_condition
@pytest.mark.parametrize("kind", ["memory", "h5ad", "zarr", "store"])
def test_rows_are_those_that_pandas_finds(kind: str, where: dict[str, Any], tmp_path: Path) -> None:
    rows = expected(where).index
    place = opened(kind, tmp_path)
    source = rows_where(open_source(place if kind == "memory" else str(place), labels="label"), where)
    found = nfs.Dataset(source)
    assert found.n_rows == len(rows)
    np.testing.assert_array_equal(dense(found)[:, :-1], annotated().X.toarray()[rows])
    firsts = [block.first_row for block in source.blocks(0, source.n_blocks)]
    sizes = [block.n_rows for block in source.blocks(0, source.n_blocks)]
    assert firsts == [0, *np.cumsum(sizes)[:-1]]
    ingested = nfs.ingest(place, tmp_path / "new", label_column="label", where=where)
    table = ad.read_zarr(tmp_path / "new").obs
    assert table.index.tolist() == [f"cell{i}" for i in rows]
    assert table["year"].tolist() == TABLE["year"][rows].tolist()
    assert ingested.n_rows == len(rows)


@pytest.mark.parametrize("kind", ["h5ad", "zarr", "store"])
def test_rows_that_are_not_there_are_named_with_those_that_are(kind: str, tmp_path: Path) -> None:
    place = opened(kind, tmp_path)
    with pytest.raises(nfs.InputError, match="no row of the data has 'tarin' .*there are 'dev', 'test', 'train'"):
        nfs.open_dataset(place, where={"split": "tarin"})
    with pytest.raises(nfs.InputError, match="has no column 'splits'.*; it has .*split"):
        nfs.open_dataset(place, where={"splits": "train"})
    with pytest.raises(nfs.InputError, match="no row meets all of"):
        nfs.open_dataset(place, where={"split": "test", "share": 0.5})


@pytest.mark.parametrize(("piece", "where"), zip([1, 7, 59] * 2, CONDITIONS, strict=True), ids=str)
@pytest.mark.parametrize("kind", ["memory", "h5ad", "zarr", "store"])
def test_rows_are_found_again_in_any_piece(
    kind: str, where: dict[str, Any], piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chosen_rows, "_PIECE", piece)
    rows = expected(where).index.to_numpy()
    place = opened(kind, tmp_path)
    source = rows_where(open_source(place if kind == "memory" else str(place), labels="label"), where)
    np.testing.assert_array_equal(dense(nfs.Dataset(source))[:, :-1], annotated().X.toarray()[rows])
    firsts = [(block.first_row, block.n_rows) for block in source.blocks(0, source.n_blocks)]
    assert [first for first, _ in firsts] == [0, *np.cumsum([n for _, n in firsts])[:-1]]
    for start, stop in ((0, len(rows)), (1, len(rows)), (2, 2), (len(rows) - 1, len(rows))):
        assert source.choice.rows(start, stop).tolist() == rows[start:stop].tolist()
        assert source.annotations.read("year", start, stop).tolist() == TABLE.year[rows[start:stop]].tolist()


def test_a_choice_of_rows_takes_no_more_of_the_client_than_a_number_for_each_piece(tmp_path: Path) -> None:
    n = 400_000
    obs = pd.DataFrame({"label": np.arange(n) % 2, "odd": np.arange(n) % 2 == 1}).set_axis(np.arange(n).astype(str))
    X = sp.csr_matrix((np.ones(n, np.float32), np.arange(n) % 3, np.arange(n + 1)))
    ad.AnnData(X, obs).write_zarr(tmp_path / "cells.zarr")
    source = nfs.open_dataset(tmp_path / "cells.zarr", labels="label", where={"odd": True}).source
    assert source.n_rows == n // 2
    assert source.choice.rows(n // 2 - 3, n // 2).tolist() == [n - 5, n - 3, n - 1]
    assert len(pickle.dumps(source)) < 8_000


@pytest.mark.parametrize("values", [[True, 1, "True", 1.0, [1], None, "1"], ["a", float("nan"), 0, False]])
def test_values_are_compared_as_text_whatever_else_is_in_the_column(values: list[Any]) -> None:
    for wanted in ("true", "1", "", "0", "false", "a"):
        found = Condition("c", (wanted,)).holds(values)
        assert found.tolist() == [text_of(value) == wanted for value in values]


def test_data_without_a_table_of_rows_are_refused() -> None:
    with pytest.raises(nfs.InputError, match="these data have none"):
        rows_where(open_source(np.eye(3)), {"split": "train"})


def test_a_fit_to_some_rows_is_that_of_these_rows(tmp_path: Path) -> None:
    place = opened("store", tmp_path)
    train = nfs.open_dataset(place, where={"split": "train"})
    model = nfs.SparseMultinomialNB(4).fit(train)
    rows = TABLE.index[TABLE.split == "train"]
    same = nfs.SparseMultinomialNB(4).fit(annotated().X[rows], TABLE.label[rows])
    assert (model.objective_, model.get_support().tolist()) == (same.objective_, same.get_support().tolist())
    again = nfs.SparseMultinomialNB(4).fit(nfs.open_dataset(place, where={"split": "train"}))
    assert again.provenance_["reused"]
    assert not nfs.SparseMultinomialNB(4).fit(nfs.open_dataset(place, where={"split": "test"})).provenance_["reused"]
    alone = nfs.ingest(annotated()[rows], tmp_path / "alone", label_column="label")
    tables = [nfs.cross_validate(data, method="multinomial", ks=[4], folds=3) for data in (train, alone)]
    np.testing.assert_array_equal(tables[0].by_fold(), tables[1].by_fold())


# At the shell


def test_one_file_is_train_and_test(tmp_path: Path) -> None:
    path = in_file("csv", tmp_path)
    run("ingest", path, "--label-column", "label", "--where", "split=train", tmp_path / "train.zarr")
    assert nfs.open_dataset(tmp_path / "train.zarr").n_rows == 30
    run("fit", tmp_path / "train.zarr", tmp_path / "m", "-k", 4)
    model = nfs.load_model(tmp_path / "m")
    test = TABLE[TABLE.split == "test"]
    labelled = ("--label-column", "label", "--where", "split=test")
    values = as_json("evaluate", tmp_path / "m", path, *labelled)
    assert values["n"] == len(test)
    assert values["accuracy"] == pytest.approx((model.predict(test.text) == test.label).mean())
    predicted = as_json("predict", tmp_path / "m", path, "--where", "split=test", "--where", "split=dev")
    wanted = TABLE[TABLE.split != "train"]
    assert predicted["rows"] == wanted.index.tolist()
    assert predicted["labels"] == model.predict(wanted.text).tolist()
    out = tmp_path / "out.csv"
    refused = run("predict", tmp_path / "m", path, "--where", "split=none", "--out", out, code=3).stderr
    assert "there are 'dev', 'test', 'train'" in refused and not out.exists()
    assert (
        "there are 'dev', 'test', 'train'"
        in run("evaluate", tmp_path / "m", path, *labelled[:3], "split=no", code=3).stderr
    )
    run("ingest", path, "--where", "split", tmp_path / "x.zarr", code=2)


def test_rows_of_a_store_at_the_shell(tmp_path: Path) -> None:
    place = opened("store", tmp_path)
    train = ("--where", "split=train")
    assert as_json("fit", place, tmp_path / "m", "-k", 4, *train)["rows"] == 30
    assert as_json("path", place, "--ks", 4, *train)["path"][0]["k"] == 4
    assert as_json("plan", place, "--method", "multinomial", "-k", 4, *train)["kept"]
    assert as_json("evaluate", tmp_path / "m", place, "--where", "split=test")["n"] == 15
    predicted = as_json("predict", tmp_path / "m", place, "--where", "split=test")
    assert predicted["rows"] == TABLE.index[TABLE.split == "test"].tolist()
