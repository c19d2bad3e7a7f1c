"""What `info` says in words, what a plan takes, and folds that a column names."""

from __future__ import annotations

from pathlib import Path

import anndata as ad
import numpy as np
import pandas as pd
import pytest

import nfs_dask as nfs
from tests.helpers.commands import as_json, run


def annotated() -> ad.AnnData:
    rng = np.random.default_rng(0)
    obs = pd.DataFrame(
        {"tissue": list("ab") * 30, "batch": ["x", "y", "z"] * 20, "split": ["train", "train", "train", "test"] * 15},
        [f"cell{i}" for i in range(60)],
    )
    X = rng.poisson(1 + (np.arange(60) % 2)[:, None] * (np.arange(8) < 3), (60, 8)).astype(np.float32)
    return ad.AnnData(X, obs)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    nfs.ingest(annotated(), tmp_path / "cells", label_column="tissue")
    return tmp_path / "cells"


def test_columns_of_rows_are_listed(tmp_path: Path, store: Path) -> None:
    annotated().write_h5ad(tmp_path / "cells.h5ad")
    for place in (tmp_path / "cells.h5ad", store):
        assert set(as_json("info", place)["columns"]) >= {"tissue", "batch", "split"}
        assert "columns      tissue, batch, split" in run("info", place).stdout or place == store
    nfs.ingest(np.eye(3), tmp_path / "plain")
    assert as_json("info", tmp_path / "plain")["columns"] == []


def test_kept_statistics_are_told_in_words(store: Path, tmp_path: Path) -> None:
    for number, method in enumerate(("multinomial", "l2", "l1")):
        run("fit", store, tmp_path / f"m{number}", "--method", method, "-k", 2)
    (line,) = [line for line in run("info", store).stdout.splitlines() if line.startswith("statistics")]
    assert "counts of 2 classes (sums)" in line and "means and variances of 2 classes" in line
    assert "=" not in line and "_" not in line
    assert as_json("info", store)["statistics"][0]["n_classes"] == 2


def test_folds_are_named_by_a_column(store: Path) -> None:
    options = ("--ks", "1,2,8", "--choose", "cv")
    chosen = as_json("path", store, *options, "--folds", "batch")["chosen"]
    dataset = nfs.open_dataset(store)
    expected = nfs.cross_validate(dataset, method="multinomial", ks=[1, 2, 8], folds="batch")
    assert [row["accuracy"] for row in chosen["table"]] == [row["accuracy"] for row in expected.records()]
    by_hand = nfs.cross_validate(dataset, method="multinomial", ks=[1, 2, 8], folds=annotated().obs["batch"].to_numpy())
    np.testing.assert_array_equal(expected.by_fold(), by_hand.by_fold())
    some = as_json("path", store, *options, "--folds", "batch", "--where", "split=train")["chosen"]
    train = nfs.open_dataset(store, where={"split": "train"})
    labels = annotated().obs.query("split == 'train'")["batch"].to_numpy()
    same = nfs.cross_validate(train, method="multinomial", ks=[1, 2, 8], folds=labels)
    assert [row["accuracy"] for row in some["table"]] == [row["accuracy"] for row in same.records()]


def test_wrong_folds_are_refused_first(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nfs_dask.cli.options.ClusterOptions.engine", None)
    refused = run("path", store, "--choose", "cv", "--folds", "bach", code=3).stderr
    assert "has no column 'bach'" in refused and "did you mean 'batch'?" in refused
    run("path", store, "--choose", "cv", "--folds", "1", code=2)


def test_a_plan_says_when_it_starts_workers(store: Path) -> None:
    assert "starting workers" not in run("plan", store, "--method", "counts").stderr
    said = run("plan", store, "--method", "counts", "--workers", 1).stderr
    assert "starting workers, to see how much memory they have; no document is read" in said
