"""Tables of any library, whose columns hold the texts, the labels and the weights; what is meant is said in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import nfs_dask as nfs
from nfs_dask.errors import InputError
from nfs_dask.estimators.inputs import numeric

TEXTS = pd.DataFrame({"review": ["green tea", "black tea", "black coffee", "more coffee"], "y": list("ttcc")})
NUMBERS = pd.DataFrame({"a": [1, 2, 0, 0], "b": [0, 0, 3, 1], "y": list("ttcc"), "w": [1.0, 2.0, 1.0, 0.5]})


def library(name: str) -> Any:
    return pytest.importorskip(name)


TABLES = {
    "pandas": lambda frame: frame,
    "polars": lambda frame: library("polars").from_pandas(frame),
    "pyarrow": lambda frame: library("pyarrow").Table.from_pandas(frame, preserve_index=False),
    "dask": lambda frame: library("dask.dataframe").from_pandas(frame, npartitions=2),
    "narwhals": lambda frame: library("narwhals").from_native(frame),
    "duckdb": lambda frame: library("duckdb").from_df(frame),
    "Hugging Face": lambda frame: library("datasets").Dataset.from_pandas(frame, preserve_index=False),
}
tables = pytest.mark.parametrize("name", TABLES)


@tables
def test_a_table_without_a_column_text_is_told_what_it_has(name, tmp_path):
    table = TABLES[name](TEXTS)
    with pytest.raises(InputError, match=r"has the columns 'review', 'y', none .*such as text_column='review'"):
        nfs.ingest(table, tmp_path / "s", label_column="y")
    store = nfs.ingest(table, tmp_path / "s", text_column="review", label_column="y")
    assert (store.n_rows, store.n_features, store.classes.tolist()) == (4, 5, ["c", "t"])


@tables
@pytest.mark.parametrize("option", ["labels", "label_column"])
def test_labels_and_weights_are_columns_of_a_table_of_numbers(name, option, tmp_path):
    if option == "labels":
        store = nfs.ingest(TABLES[name](NUMBERS.drop(columns="w")), tmp_path / "s", labels="y")
    else:
        store = nfs.ingest(TABLES[name](NUMBERS), tmp_path / "s", label_column="y", weight_column="w")
    weights = NUMBERS["w"] if option == "label_column" else None
    model = nfs.SparseMultinomialNB(k=2).fit(store)
    expected = nfs.SparseMultinomialNB(k=2).fit(NUMBERS[["a", "b"]], NUMBERS["y"], weights)
    np.testing.assert_array_equal(model.feature_count_, expected.feature_count_)
    assert model.model_.feature_names == ["a", "b"]


@tables
def test_open_dataset_takes_a_column_as_labels(name):
    frame = NUMBERS.drop(columns="w")
    found = nfs.open_dataset(TABLES[name](frame), labels="y")
    assert (found.n_features, found.classes.tolist()) == (2, ["c", "t"])
    with pytest.raises(InputError, match=r"has the columns 'a', 'b', 'y'; 'z' is not among them"):
        nfs.open_dataset(TABLES[name](frame), labels="z")


@tables
def test_fits_and_predictions_take_tables(name):
    frame = NUMBERS[["a", "b"]]
    model = nfs.SparseMultinomialNB(k=2).fit(TABLES[name](frame), np.array(NUMBERS["y"]))
    assert np.asarray(model.predict(TABLES[name](frame))).tolist() == NUMBERS["y"].tolist()
    with pytest.raises(InputError, match=r"y is a single value, 'y'; give one label for each row: .*X\['y'\]"):
        nfs.SparseMultinomialNB(k=2).fit(TABLES[name](NUMBERS), "y")


def test_other_things_of_hugging_face_are_refused_by_what_to_do():
    datasets = library("datasets")
    part = datasets.Dataset.from_pandas(TEXTS, preserve_index=False)
    assert (
        numeric(part.select([2]).select_columns([])).num_columns == 0
    )  # rows that were chosen, not all that lie there
    with pytest.raises(InputError, match=r"several splits; give one of them, such as X\['train'\]"):
        nfs.open_dataset(datasets.DatasetDict(train=part))
    with pytest.raises(InputError, match="streaming=False"):
        nfs.open_dataset(part.to_iterable_dataset())


def test_an_anndata_is_fitted_and_predicted():
    anndata = library("anndata")
    adata = anndata.AnnData(
        NUMBERS[["a", "b"]].to_numpy(float),
        obs=pd.DataFrame({"y": list("ttcc")}, index=list("0123")),
        var=pd.DataFrame(index=["a", "b"]),
    )
    model = nfs.SparseCentroid(k=1).fit(adata, adata.obs["y"])
    expected = nfs.SparseCentroid(k=1).fit(adata.X, adata.obs["y"])
    np.testing.assert_array_equal(model.decision_function(adata), expected.decision_function(adata.X))
    assert model.get_feature_names_out().tolist() == ["b"]
    assert model.score(adata, adata.obs["y"]) == expected.score(adata.X, adata.obs["y"])
    with pytest.raises(InputError, match=r"of an AnnData adata.obs\['y'\]"):
        nfs.SparseCentroid(k=1).fit(adata, "y")


@pytest.mark.parametrize("X", [np.eye(3), [[1, 2], [3, 4]]])
def test_what_has_no_columns_is_asked_for_one_label_a_row(X):
    with pytest.raises(
        InputError, match="labels='y' names a column, and X is a .*has none; give one label for each row"
    ):
        nfs.open_dataset(X, labels="y")
