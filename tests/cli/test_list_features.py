"""The features command: a table, CSV that a spreadsheet may open, and exact Parquet."""

from __future__ import annotations

import csv

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import nfs_dask as nfs
from nfs_dask.cli.main import cli
from nfs_dask.export.sql import DIALECTS
from tests.helpers.commands import as_json, run

NAMES = [
    "=1+1",
    "+a",
    "-a",
    "@SUM(A1)",
    "\ttab",
    "\rreturn",
    'say "hi", =x',
    "tea",
    "'tea",
    "日本",
    "\uff1d1",
    "\nline\nend",
]


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    y = np.array([0, 1] * 40)
    X = rng.poisson(rng.gamma(0.7, 1, (2, len(NAMES)))[y])
    return nfs.SparseMultinomialNB(k="all").fit(pd.DataFrame(X, columns=NAMES), np.array(["-1", "=b"])[y])


@pytest.fixture(scope="module")
def place(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "m"
    model.save(path)
    return path


def strongest(model):
    frame = nfs.SparseMultinomialNB.to_frame(model).drop(columns=["gain", "rank", "count_-1", "count_=b"])
    return frame.iloc[np.argsort(-frame[["weight_-1", "weight_=b"]].max(axis=1), kind="stable")]


def test_parquet_has_the_table_as_it_is(model, place, tmp_path):
    values = as_json("features", place, "--out", tmp_path / "f.parquet")
    assert values["n"] == values["selected"] == len(NAMES) and values["out"] == str(tmp_path / "f.parquet")
    found = pq.read_table(tmp_path / "f.parquet").to_pydict()
    expected = strongest(model)
    assert list(found) == expected.columns.tolist()
    assert all(found[name] == expected[name].tolist() for name in found)


def test_csv_is_harmless_and_says_the_same(model, place, tmp_path):
    run("features", place, "--out", tmp_path / "f.csv", "--top", 11)
    raw = (tmp_path / "f.csv").read_bytes()
    assert raw.startswith(b'\xef\xbb\xbf"feature",')
    with open(tmp_path / "f.csv", encoding="utf-8-sig", newline="") as file:
        head, *rows = csv.reader(file, quoting=csv.QUOTE_NONNUMERIC)  # what has no quotes is a number
    expected = strongest(model).head(11)
    assert head == expected.columns.tolist()
    for row, values in zip(rows, expected.itertuples(index=False), strict=True):
        assert row[1:] == [float(value) for value in values[1:]]
        assert row[0] == (values[0] if values[0] in ('say "hi", =x', "tea", "'tea", "日本") else f"'{values[0]}")
        assert row[0][0] not in "=+-@\t\r\n\uff1d"
    assert pd.read_csv(tmp_path / "f.csv").columns.tolist() == head


def test_the_table_and_json_come_in_the_order_of_the_weights(model, place):
    expected = strongest(model)
    values = as_json("features", place, "--top", 3)
    assert [one["feature"] for one in values["features"]] == expected["feature"].tolist()[:3]
    assert values["features"][0] == dict(expected.iloc[0])
    shown = run("features", place, "--top", 3).stdout
    assert "3 of 12 chosen features" in shown and f"{expected['weight_=b'].iloc[0]:+.3f}" in shown
    assert "All 12 chosen features" in run("features", place).stdout and "\t" not in run("features", place).stdout


def test_files_are_replaced_only_when_that_is_asked_for(place, tmp_path):
    out = tmp_path / "f.csv"
    out.write_text("mine")
    assert "--overwrite" in run("features", place, "--out", out, code=3).stderr
    assert out.read_text() == "mine"
    run("features", place, "--out", out, "--overwrite")
    assert out.read_text(encoding="utf-8-sig").startswith('"feature"')
    assert (
        "give one that ends in .csv or .parquet" in run("features", place, "--out", tmp_path / "f.xlsx", code=2).stderr
    )
    run("features", tmp_path / "nothing", code=3)


def test_the_command_knows_every_dialect():
    (option,) = [option for option in cli.commands["sql"].params if option.name == "dialect"]
    assert [*option.type.choices] == [*DIALECTS]


def test_sql_is_what_the_model_says_of_itself(model, place):
    assert run("sql", place, "--table", "a.b").stdout == model.to_sql(table="a.b") + ";\n"
    options = ("--dialect", "postgres", "--document-column", "id", "--term-column", "w", "--count-column", "c")
    assert as_json("sql", place, *options)["sql"] == model.to_sql("postgres", document="id", term="w", n="c")
    refused = run("sql", place, "--texts", "mail", code=3).stderr
    assert "fitted to a matrix" in refused
