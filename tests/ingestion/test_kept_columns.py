"""Further columns of documents, in the table of rows of a store: those of pandas, whatever the documents come in."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import nfs_dask as nfs
from nfs_dask.documents import lines
from nfs_dask.errors import DataWarning, InputError
from nfs_dask.ingestion import kept_columns, text_plan
from nfs_dask.sources.open_source import open_source
from tests.helpers.commands import as_json, run

N = 500
RNG = np.random.default_rng(3)
FRAME = pd.DataFrame(
    {
        "text": [f"word{i % 7} word{i % 11} tea" for i in range(N)],
        "label": np.where(RNG.random(N) < 0.5, "a", "b"),
        "split": RNG.choice(["train", "test", "held out é"], N),
        "id": [f"d{i}" for i in RNG.permutation(N)],
        "stars": RNG.integers(1, 6, N),
    }
)
KEEP = ["split", "id", "stars"]


def as_csv(folder: Path) -> Any:
    FRAME.to_csv(folder / "d.csv", index=False)
    return folder / "d.csv"


def as_parquet(folder: Path) -> Any:
    FRAME.to_parquet(folder / "d.parquet", row_group_size=60)
    return folder / "d.parquet"


def as_json_lines(folder: Path) -> Any:
    FRAME.to_json(folder / "d.jsonl", orient="records", lines=True)
    return folder / "d.jsonl"


FORMS = {
    "csv": as_csv,
    "parquet": as_parquet,
    "jsonl": as_json_lines,
    "pandas": lambda _: FRAME,
    "dask frame": lambda _: dd.from_pandas(FRAME, npartitions=4),
    "bag": lambda _: db.from_sequence(FRAME.to_dict("records"), npartitions=3),
}


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many pieces, and several segments of each."""
    monkeypatch.setattr(lines, "PIECE_NBYTES", 2000)
    made = text_plan.make_text_plan
    monkeypatch.setattr(
        "nfs_dask.ingestion.text_ingest.make_text_plan",
        lambda *args: replace(made(*args), segment_nbytes=3000),
    )


def rows_of(store: Any) -> pd.DataFrame:
    table = open_source(str(store)).annotations
    assert table is not None
    values = {column.name: table.read(column.name, 0, table.n_rows) for column in table.columns()}
    return pd.DataFrame(values, dtype=object)  # or new releases of pandas make NaN of None


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.usefixtures("small_pieces")
def test_columns_of_documents_are_kept_in_the_store(form: str, tmp_path: Path) -> None:
    store = tmp_path / "s.zarr"
    nfs.ingest(FORMS[form](tmp_path), store, text_column="text", label_column="label", keep=KEEP)
    found = rows_of(store)
    for name in KEEP:
        assert found[name].tolist() == FRAME[name].astype(str).tolist(), name
    train = nfs.open_dataset(store, where={"split": "train"})
    chosen = (FRAME["split"] == "train").to_numpy()
    whole = nfs.ingest(FRAME[chosen], tmp_path / "t.zarr", text_column="text", label_column="label")
    assert train.n_rows == whole.n_rows == chosen.sum()
    ours, theirs = (nfs.SparseMultinomialNB(k=3).fit(dataset) for dataset in (train, whole))
    names = [dict(zip(m.get_feature_names_out(), m.coef_[0, m.get_support()], strict=True)) for m in (ours, theirs)]
    assert names[0] == pytest.approx(names[1])


def test_bad_documents_leave_no_trace_and_missing_values_stay_missing(tmp_path: Path) -> None:
    frame = FRAME.head(6).assign(
        text=["tea", None, "milk", "tea", None, "cup"], split=["a", "b", None, "True", "b", "c"]
    )
    with pytest.warns(DataWarning, match="2 of 6"):
        nfs.ingest(frame, tmp_path / "s", text_column="text", label_column="label", keep=["split"], on_error="skip")
    assert rows_of(tmp_path / "s")["split"].tolist() == ["a", None, "True", "c"]


def test_a_column_of_very_many_texts_is_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_columns, "MOST_CATEGORIES", 100)
    nfs.ingest(
        pd.concat([FRAME, FRAME]), tmp_path / "s", text_column="text", label_column="label", keep=["id", "split"]
    )
    categories = [name for name in ("id", "split") if (tmp_path / "s" / "obs" / name / "codes").exists()]
    assert categories == ["split"]
    assert rows_of(tmp_path / "s")["id"].tolist() == 2 * FRAME["id"].tolist()


def test_anndata_reads_them(tmp_path: Path) -> None:
    anndata = pytest.importorskip("anndata")
    nfs.ingest(FRAME, tmp_path / "s.zarr", text_column="text", label_column="label", keep=KEEP)
    obs = anndata.read_zarr(tmp_path / "s.zarr").obs
    assert obs["split"].astype(str).tolist() == FRAME["split"].tolist()
    assert obs["id"].astype(str).tolist() == FRAME["id"].tolist()


def test_rows_that_are_appended_bring_theirs(tmp_path: Path) -> None:
    given = {"text_column": "text", "label_column": "label", "keep": ["split"]}
    nfs.ingest(FRAME[:300], tmp_path / "s", **given)
    nfs.ingest(FRAME[300:], tmp_path / "s", append=True, **given)
    assert rows_of(tmp_path / "s")["split"].tolist() == FRAME["split"].tolist()
    with pytest.warns(DataWarning, match="no column split"):
        nfs.ingest(FRAME[:5], tmp_path / "s", append=True, text_column="text", label_column="label")


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        (["spilt"], "keep='spilt' is not among them.*did you mean 'split'"),
        ("split", r"keep='split'; give a list"),
        (["split", "split"], "more than once"),
        ([5], "give a list of names"),
    ],
)
def test_what_cannot_be_kept_is_refused_first(keep: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        nfs.ingest(as_csv(tmp_path), tmp_path / "s", label_column="label", keep=keep)
    assert os.listdir(tmp_path) == ["d.csv"]


def test_a_matrix_has_no_columns_of_documents(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="keep= is about texts"):
        nfs.ingest(np.eye(4), tmp_path / "s", labels=[0, 1, 0, 1], keep=["split"])


def test_one_file_gives_train_and_test_sets(tmp_path: Path) -> None:
    store, model = tmp_path / "s.zarr", tmp_path / "m"
    run("ingest", as_csv(tmp_path), store, "--label-column", "label", "--keep", "split", "--keep", "id")
    run("fit", store, model, "-k", 3, "--where", "split=train")
    values = as_json("evaluate", model, store, "--where", "split=test")
    assert values["n"] == (FRAME["split"] == "test").sum()
    wrong = run("ingest", tmp_path / "d.csv", tmp_path / "t", "--keep", "spilt", code=3)
    assert "--keep spilt" in wrong.stderr.replace("'", "") and "split" in wrong.stderr
