"""AnnData in memory: taken where it is whole, and refused with what to do instead where it is in a file."""

from __future__ import annotations

import warnings

import anndata
import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import nfs_dask as nfs
from nfs_dask.errors import InputError
from nfs_dask.sources.open_source import open_source

RNG = np.random.default_rng(5)
X = RNG.integers(0, 4, (30, 8)) * (RNG.random((30, 8)) < 0.5)
Y = np.array(["ham", "spam", "eggs"])[np.arange(30) % 3]
NAMES = [f"gene {i}" for i in range(8)]
FORMS = {
    "csr": sparse.csr_matrix,
    "csc": sparse.csc_matrix,
    "csr array": sparse.csr_array,
    "dense": np.asarray,
    "dask": lambda X: da.from_array(X, chunks=(10, 8)),
}


def data_of(form="csr", **layers):
    obs = pd.DataFrame(
        {"kind": pd.Categorical(Y, categories=["none", "spam", "ham", "eggs"]), "w": np.arange(30.0) / 4}
    )
    obs.index = [f"cell {i}" for i in range(30)]
    return anndata.AnnData(FORMS[form](X), obs, pd.DataFrame(index=NAMES), layers=layers)


def assert_holds(dataset, values):
    rows = [np.asarray(sparse.csr_array(b[:3], shape=(b[3], 8)).todense()) for b in parts_of(dataset.source)]
    np.testing.assert_array_equal(np.concatenate(rows), values)


def parts_of(source):
    for block in source.blocks(0, source.n_blocks):
        yield block.data, block.indices, block.indptr, block.n_rows


@pytest.mark.parametrize("form", FORMS)
def test_anndata_is_ingested(tmp_path, form):
    dataset = nfs.ingest(data_of(form), tmp_path / "s", label_column="kind", weight_column="w")
    assert_holds(dataset, X)
    assert dataset.classes.tolist() == ["eggs", "ham", "spam"]
    assert dataset.names(np.arange(8)) == NAMES
    blocks = list(dataset.source.blocks(0, dataset.source.n_blocks))
    assert np.concatenate([b.weights for b in blocks]).tolist() == (np.arange(30) / 4).tolist()
    assert dataset.classes[np.concatenate([b.codes for b in blocks])].tolist() == Y.tolist()


def test_a_view_is_its_own_rows_and_columns(tmp_path):
    view = data_of()[5:20, ::2]
    dataset = nfs.ingest(view, tmp_path / "s", label_column="kind")
    np.testing.assert_array_equal(anndata.read_zarr(tmp_path / "s").X.toarray(), X[5:20, ::2])
    assert dataset.names(np.arange(4)) == NAMES[::2]


@pytest.mark.parametrize("form", ["csr", "csc", "dense"])
def test_estimators_take_it(form):
    data = data_of(form)
    model = nfs.SparseMultinomialNB(3).fit(data, data.obs["kind"])
    expected = nfs.SparseMultinomialNB(3).fit(X, Y)
    assert model.get_support().tolist() == expected.get_support().tolist()
    assert model.objective_ == expected.objective_


def test_layers_and_names(tmp_path):
    data = data_of(twice=sparse.csr_matrix(2 * X))
    assert_holds(nfs.open_dataset(data, layer="twice", labels="kind"), 2 * X)
    with pytest.raises(InputError, match="no layer 'raw'; its layers are: twice"):
        open_source(data, layer="raw")
    with pytest.raises(InputError, match="no column 'colour' in obs; it has kind, w"):
        nfs.ingest(data, tmp_path / "s", label_column="colour")
    with pytest.raises(InputError, match="no column 'v' in obs"):
        nfs.ingest(data, tmp_path / "s", weight_column="v")
    del data.X
    with pytest.raises(InputError, match="has no X; name a layer"):
        open_source(data)


def test_what_is_in_a_file_is_refused_with_the_way_to_read_it(tmp_path):
    data = data_of()
    data.raw = data.copy()
    with warnings.catch_warnings(action="ignore"):
        data.write_h5ad(tmp_path / "a.h5ad")
        data.write_zarr(tmp_path / "a.zarr")
    for path in ("a.h5ad", "a.zarr"):
        with pytest.raises(InputError, match=r"raw is no layer.*to_adata\(\)"):
            open_source(tmp_path / path, layer="raw")
        with pytest.raises(InputError, match=r"weight_column='w' names a column of documents, a table .* weights="):
            nfs.ingest(tmp_path / path, tmp_path / "s", weight_column="w")
