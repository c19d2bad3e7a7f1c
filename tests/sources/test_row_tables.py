"""Names of rows and their columns: what AnnData says of its rows is in the store, and stays there through appends."""

from __future__ import annotations

import pickle
import warnings

import anndata
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import nfs_dask as nfs
from nfs_dask.errors import DataWarning, InputError, StoreError
from nfs_dask.sources.open_source import open_source
from nfs_dask.store.layout import Layout
from nfs_dask.store.receipts import verify
from nfs_dask.store.writer import write_store

RNG = np.random.default_rng(11)
SMALL = Layout(chunk=32, shard=128, row_chunk=8, row_shard=32, block=64)


def data_of(n=100, first=0, **columns):
    """Rows with a column of each kind."""
    numbers = np.arange(first, first + n)
    obs = pd.DataFrame(
        {
            "cell_type": pd.Categorical(np.array(["B", "NK", "T"])[numbers % 3], categories=["unused", "T", "NK", "B"]),
            "stage": pd.Categorical(np.where(numbers % 2, "late", "early"), ["early", "late", "dead"], ordered=True),
            "n_genes": numbers * 1000,
            "small": (numbers % 100).astype("uint8"),
            "share": np.where(numbers % 5, numbers / 7, np.nan),
            "single": (numbers / 3).astype("float32"),
            "doublet": numbers % 7 == 0,
            "nullable": pd.array(np.where(numbers % 4, numbers, None), "Int64"),
            "batch": np.array(["x", "é"])[numbers % 2].astype(object),
            "barcode": [f"ACGT-{i}" for i in numbers],
            "number": pd.Categorical(numbers % 4),
            "patchy": pd.Categorical(np.where(numbers % 3, "known", None)),
        },
        index=[f"cell {i}" for i in numbers],
    ).assign(**columns)
    X = sparse.csr_matrix(RNG.poisson(0.3, (n, 12)))
    return anndata.AnnData(X, obs, pd.DataFrame(index=[f"gene {i}" for i in range(12)]))


def lying(data, form, folder):
    """The same in memory, or in a file."""
    if form == "memory":
        return data
    path = folder / f"a{len(list(folder.iterdir()))}.{form}"
    with warnings.catch_warnings(action="ignore"):
        data.copy().write_h5ad(path) if form == "h5ad" else data.copy().write_zarr(path)
    return path


def assert_same(got, expected):
    """Equal values, whatever pandas calls their types."""
    assert got.index.tolist() == expected.index.tolist()
    for name in expected.columns:
        theirs, ours = expected[name].astype(object), got[name].astype(object)
        np.testing.assert_array_equal(ours.isna(), theirs.isna(), err_msg=name)
        assert ours[~ours.isna()].tolist() == theirs[~theirs.isna()].tolist(), name


FORMS = ["memory", "h5ad", "zarr"]


@pytest.mark.parametrize("form", FORMS)
def test_names_and_columns_are_kept(tmp_path, form):
    data = data_of()
    nfs.ingest(lying(data, form, tmp_path), tmp_path / "s", label_column="cell_type")
    verify(tmp_path / "s")
    got = anndata.read_zarr(tmp_path / "s").obs
    assert_same(got, data.obs)
    assert got["label"].astype(str).tolist() == data.obs["cell_type"].tolist()
    assert got["cell_type"].cat.categories.tolist() == ["unused", "T", "NK", "B"]
    assert got["stage"].cat.ordered
    assert got["stage"].cat.categories.tolist() == ["early", "late", "dead"]
    assert (got["small"].dtype, got["single"].dtype, got["doublet"].dtype) == ("uint8", "float32", "bool")
    assert anndata.read_zarr(tmp_path / "s")[got["doublet"].to_numpy() & (got["n_genes"] > 5000).to_numpy()].n_obs == 14


@pytest.mark.parametrize("form", [FORMS[0], *(pytest.param(form, marks=pytest.mark.slow) for form in FORMS[1:])])
def test_appended_rows_bring_theirs(tmp_path, form):
    parts = [data_of(45), data_of(30, 45), data_of(60, 75)]
    for i, part in enumerate(parts):
        source = open_source(lying(part, form, tmp_path), labels="cell_type")
        write_store(source, tmp_path / "s", layout=SMALL, append=i > 0)
        verify(tmp_path / "s")
    assert_same(anndata.read_zarr(tmp_path / "s").obs, pd.concat([part.obs for part in parts]))


@pytest.mark.parametrize("form", FORMS)
def test_a_store_is_ingested_again_with_all_it_knows(tmp_path, form):
    data = data_of()
    nfs.ingest(lying(data, form, tmp_path), tmp_path / "s", label_column="cell_type", weights=np.arange(100))
    nfs.ingest(tmp_path / "s", tmp_path / "t")
    pd.testing.assert_frame_equal(anndata.read_zarr(tmp_path / "t").obs, anndata.read_zarr(tmp_path / "s").obs)
    nfs.ingest(tmp_path / "s", tmp_path / "u", labels=["a", "b"] * 50)
    assert_same(anndata.read_zarr(tmp_path / "u").obs.drop(columns="label"), data.obs)


def test_columns_widen_and_categories_grow(tmp_path):
    more = data_of(60, 100)
    more.obs["stage"] = pd.Categorical(["later"] * 60)
    more.obs["n_genes"] = np.arange(60) + 0.5
    more.obs["small"] = np.arange(60) * 10_000
    more.obs["doublet"] = np.arange(60)
    more.obs["barcode"] = "again"
    write_store(open_source(data_of()), tmp_path / "s", layout=SMALL)
    write_store(open_source(more), tmp_path / "s", append=True)
    verify(tmp_path / "s")
    got = anndata.read_zarr(tmp_path / "s").obs
    expected = pd.concat([data_of().obs, more.obs])
    expected["doublet"] = expected["doublet"].astype(int)
    assert_same(got, expected)
    assert got["stage"].cat.categories.tolist() == ["early", "late", "dead", "later"]
    assert not got["stage"].cat.ordered


def test_what_appended_rows_lack_is_missing(tmp_path):
    data = data_of()
    nfs.ingest(data, tmp_path / "s")
    more = anndata.AnnData(data.X[:5], pd.DataFrame({"extra": range(5)}, index=list("abcde")), data.var)
    with pytest.warns(DataWarning) as told:
        nfs.ingest(more, tmp_path / "s", append=True)
    assert "no column extra of rows" in str(told[0].message)
    assert "no column cell_type, stage, n_genes" in str(told[1].message)
    with pytest.warns(DataWarning, match="have no column cell_type, stage"):
        nfs.ingest(data.X[:3], tmp_path / "s", names=list(data.var_names), append=True)
    verify(tmp_path / "s")
    got = anndata.read_zarr(tmp_path / "s").obs
    assert_same(got[:100], data.obs)
    assert got.index[100:].tolist() == ["a", "b", "c", "d", "e", "105", "106", "107"]
    assert got.drop(columns="barcode")[100:].isna().all(axis=None)
    assert (got["barcode"][100:] == "").all()


def test_names_come_after_numbers(tmp_path):
    data = data_of(40)
    write_store(open_source(data.X), tmp_path / "s", layout=SMALL)
    with pytest.warns(DataWarning, match="the store has no column cell_type, .* of rows"):
        write_store(open_source(data), tmp_path / "s", append=True)
    got = anndata.read_zarr(tmp_path / "s").obs_names.tolist()
    assert got == [*map(str, range(40)), *data.obs_names]


def test_what_cannot_be_kept_is_said(tmp_path):
    odd = {
        "when": pd.date_range("2026-01-01", periods=40),
        "mixed": pd.Series([1, "a"] * 20, dtype=object).to_numpy(),
        "a/b": 1,
        "_hidden": 1,
        "label": 1,
    }
    with pytest.warns(DataWarning) as told:
        nfs.ingest(data_of(40, **odd), tmp_path / "s", label_column="cell_type")
    said = " ".join(str(one.message) for one in told)
    assert all(f"'{name}'" in said for name in ("when", "mixed", "a/b", "_hidden"))
    assert "columns label of obs are not kept, as columns of the store have these names" in said
    assert_same(anndata.read_zarr(tmp_path / "s").obs, data_of(40).obs)


def test_columns_of_other_types_are_not_appended(tmp_path):
    nfs.ingest(data_of(40), tmp_path / "s")
    with pytest.raises(InputError, match=r"'n_genes' of obs holds int64 in the store, and 1 categories \(str\) in"):
        nfs.ingest(data_of(40, n_genes="many"), tmp_path / "s", append=True)
    with pytest.raises(InputError, match="column 'n_genes' of obs holds numbers beyond 2"):
        nfs.ingest(data_of(40, n_genes=2**60 + 1), tmp_path / "s", append=True)  # beside ...
        nfs.ingest(data_of(40, n_genes=0.5), tmp_path / "s", append=True)  # ... fractions
    verify(tmp_path / "s")


def test_damage_of_columns_is_found(tmp_path):
    write_store(open_source(data_of()), tmp_path / "s", layout=SMALL)
    for name in ("_index/c/3", "barcode/c/3", "n_genes/c/1", "stage/codes/c/1", "stage/categories/c/0"):
        path = tmp_path / "s/obs" / name
        content = path.read_bytes()
        path.write_bytes(bytes([*content[:20], content[20] ^ 4, *content[21:]]))
        with pytest.raises(StoreError, match="damaged"):
            verify(tmp_path / "s")
        path.write_bytes(content)
    verify(tmp_path / "s")


@pytest.mark.parametrize("name", ["_index/c/3", "barcode/c/3", "n_genes/c/1", "stage/codes/c/1"])
def test_what_is_gone_is_no_zero(tmp_path, name):
    write_store(open_source(data_of()), tmp_path / "s", layout=SMALL)
    (tmp_path / "s/obs" / name).unlink()
    with pytest.raises(StoreError, match="missing"):
        nfs.ingest(tmp_path / "s", tmp_path / "t")
    if name.startswith("stage"):
        with pytest.raises(StoreError, match="missing"):
            nfs.open_dataset(tmp_path / "s", labels="stage")


@pytest.mark.parametrize("form", FORMS)
def test_tables_of_rows_travel(tmp_path, form):
    table = pickle.loads(pickle.dumps(open_source(lying(data_of(), form, tmp_path)).annotations))
    assert table.read("barcode", 3, 5).tolist() == ["ACGT-3", "ACGT-4"]
    assert np.isnan(table.read("nullable", 4, 5)).all()
