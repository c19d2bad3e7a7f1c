"""AnnData's tables in every encoding that it writes, or once wrote: the same names and labels from Zarr and HDF5."""

from __future__ import annotations

import warnings

import anndata
import h5py
import numpy as np
import pandas as pd
import pytest
import zarr
from scipy import sparse

from nfs_dask.errors import InputError, StoreError
from nfs_dask.ingestion.ingest import ingest
from nfs_dask.sources import stored_labels
from nfs_dask.sources.open_source import open_source
from nfs_dask.sources.zarr import ZarrSource

N_ROWS, N_FEATURES = 24, 6
RNG = np.random.default_rng(11)
X = sparse.csr_matrix(RNG.integers(0, 3, (N_ROWS, N_FEATURES)).astype("float32"))
NAMES = [f"gene {i}" for i in range(N_FEATURES)]
SIDES = RNG.choice(["left", "right", "up"], N_ROWS).tolist()
GAPS = [None if i % 5 == 0 else side for i, side in enumerate(SIDES)]
NUMBERS = [1 + len(side) for side in SIDES]

INDEXES = {
    "text": pd.Index(NAMES),
    "objects": pd.Index(np.array(NAMES, object), dtype=object),
    "nullable text": pd.Index(NAMES, dtype="string"),
    "categories": pd.CategoricalIndex(NAMES, categories=NAMES[::-1]),
}
COLUMNS = {
    "text": pd.array(SIDES, dtype=object),
    "nullable text": pd.array(GAPS, dtype="string"),
    "categories": pd.Categorical(GAPS, categories=["right", "unused", "left", "up"]),
    "ordered categories": pd.Categorical(SIDES, categories=["up", "right", "left"], ordered=True),
    "numbers as categories": pd.Categorical(NUMBERS, categories=[9, 6, 5, 3]),
    "floats as categories": pd.Categorical([float(n) for n in NUMBERS]),
    "booleans as categories": pd.Categorical([side == "up" for side in SIDES]),
    "numbers": np.array(NUMBERS, "int16"),
    "nullable numbers": pd.array([None if i == 3 else n for i, n in enumerate(NUMBERS)], dtype="Int32"),
    "booleans": np.array([side == "up" for side in SIDES]),
    "nullable booleans": pd.array([None if side == "up" else side == "left" for side in SIDES], dtype="boolean"),
    "floats": np.array([np.nan if i == 2 else float(n) for i, n in enumerate(NUMBERS)]),
}
FORMS = ["zarr 2", "zarr 3", "h5ad"]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(stored_labels, "_PIECE", 7)


def write(place, form, obs=None, index=None):
    """An AnnData file, as the installed anndata writes it."""
    with warnings.catch_warnings(action="ignore"), anndata.settings.override(allow_write_nullable_strings=True):
        rows = pd.Index([f"cell {i}" for i in range(N_ROWS)])
        var = pd.DataFrame(index=pd.Index(NAMES) if index is None else index)
        data = anndata.AnnData(X, pd.DataFrame(obs or {}, index=rows), var)
        if form == "h5ad":
            data.write_h5ad(f"{place}.h5ad", convert_strings_to_categoricals=False)
            return f"{place}.h5ad"
        with anndata.settings.override(zarr_write_format=int(form[-1])):
            data.write_zarr(f"{place}.zarr", convert_strings_to_categoricals=False)
    return f"{place}.zarr"


def labels_of(source):
    codes = np.concatenate([block.codes for block in source.blocks(0, source.n_blocks)])
    return np.append(source.classes.astype(object), None)[codes].tolist()


def plain(values):
    return [None if pd.isna(value) else value for value in values]


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("form", FORMS)
def test_names_are_read_from_any_index(tmp_path, form, index):
    place = write(tmp_path / "a", form, index=INDEXES[index])
    source = open_source(place)
    assert source.names(np.array([4, 0, 5, 4])) == [NAMES[4], NAMES[0], NAMES[5], NAMES[4]]
    assert source.names(np.array([], int)) == []
    assert ingest(place, tmp_path / "s").names(np.arange(N_FEATURES)) == NAMES


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("form", FORMS)
def test_labels_are_read_from_any_column(tmp_path, form, column):
    values = plain(COLUMNS[column])
    source = open_source(write(tmp_path / "a", form, {"y": COLUMNS[column]}), labels="y")
    assert source.classes.tolist() == sorted({value for value in values if value is not None})
    assert labels_of(source) == values


@pytest.mark.parametrize("form", FORMS)
def test_measurements_are_no_labels_in_any_file_even_as_categories(tmp_path, form):
    place = write(tmp_path / "a", form, {"y": pd.Categorical(np.arange(N_ROWS) % 3 / 2)})
    with pytest.raises(InputError, match="continuous values such as 0.5"):
        open_source(place, labels="y")


# What cannot be read


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("harm", ["remove", "encoding", "length"])
def test_an_index_that_cannot_be_read_is_an_error_at_once(tmp_path, form, harm):
    place = write(tmp_path / "a", form)
    file = h5py.File(place, "r+") if form == "h5ad" else zarr.open_group(place, mode="r+", use_consolidated=False)
    key = file["var"].attrs["_index"]
    index = file["var"][key]
    del file["var"][key]
    if harm == "encoding":
        file["var"].create_group(key).attrs["encoding-type"] = "wool"
    if harm == "length":
        values = np.arange(N_FEATURES + 1)
        if form == "h5ad":
            file["var"][key] = values
        else:
            file["var"].create_array(key, data=values)
    del index
    if form == "h5ad":
        file.close()
    else:
        with warnings.catch_warnings(action="ignore"):
            zarr.consolidate_metadata(place)
    with pytest.raises((InputError, StoreError), match="missing|no index|'wool'|7 names for 6 columns"):
        open_source(place)


@pytest.mark.parametrize("form", FORMS)
def test_a_name_that_is_missing_is_an_error(tmp_path, form):
    place = write(tmp_path / "a", form, index=pd.Index(NAMES, dtype="string"))
    file = h5py.File(place, "r+") if form == "h5ad" else zarr.open_group(place, mode="r+", use_consolidated=False)
    key = file["var"].attrs["_index"]
    if "mask" not in file["var"][key]:
        pytest.skip("this anndata writes an index of nullable text as text")
    file["var"][key]["mask"][3] = True
    if form == "h5ad":
        file.close()
    with pytest.raises(InputError, match="no name at 3"):
        open_source(place).names(np.arange(N_FEATURES))


# What AnnData wrote once


def test_categories_that_zarr_stores_had_aside(tmp_path):
    """Before 0.8: codes with the path of their categories, strings without a word of what they are."""
    place = write(tmp_path / "a", "zarr 2", {"other": np.arange(N_ROWS)})
    categories, codes = np.unique(SIDES, return_inverse=True)
    group = zarr.open_group(place, mode="r+", use_consolidated=False)
    old = group["obs"].create_array("y", data=codes.astype("int8"))
    old.attrs["categories"] = "__categories/y"
    with warnings.catch_warnings(action="ignore"):
        aside = group.create_array("obs/__categories/y", shape=(len(categories),), dtype=str)
        aside[:] = categories
    before = ZarrSource(place, labels="y")
    assert labels_of(before) == SIDES
    with warnings.catch_warnings(action="ignore"):
        aside[0] = "aside"
    assert labels_of(ZarrSource(place, labels="y")) == ["aside" if side == "left" else side for side in SIDES]
    assert ZarrSource(place, labels="y").fingerprint != before.fingerprint


@pytest.mark.parametrize("where", ["obs", "var"])
def test_text_that_is_no_utf_8_is_an_error(tmp_path, where):
    place = write(tmp_path / "a.old", "h5ad")
    with h5py.File(place, "r+") as file:
        del file[where]
        length = N_ROWS if where == "obs" else N_FEATURES
        table = np.zeros(length, [("index", "S4"), ("y", "S4")])
        table["index"] = table["y"] = b"\xff\xfe"
        file[where] = table
    with pytest.raises(StoreError, match="not valid text"):
        open_source(place, labels="y" if where == "obs" else None).names(np.arange(N_FEATURES))
