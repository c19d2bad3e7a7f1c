from __future__ import annotations

import pickle

import anndata
import h5py
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from nfs_dask.errors import InputError, StoreError
from nfs_dask.sources import anndata_files, stored_labels
from nfs_dask.sources import block_cuts as cutting
from nfs_dask.sources.h5ad import H5adSource
from nfs_dask.sources.labelled import Labelled
from nfs_dask.sources.source import Source
from tests.helpers.truth import assert_counts

RNG = np.random.default_rng(3)
X = RNG.integers(0, 4, (40, 9)) * (RNG.random((40, 9)) < 0.4)
Y = RNG.choice(["ham", "spam", "eggs"], 40)
NAMES = [f"word {i}" for i in range(9)]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(cutting, "BLOCK_NBYTES", 300)
    monkeypatch.setattr(anndata_files, "_PIECE", 7)
    monkeypatch.setattr(stored_labels, "_PIECE", 7)
    monkeypatch.setattr(anndata_files, "_NAMES", 4)


@pytest.fixture
def path(tmp_path):
    """A file as AnnData writes it today."""
    columns = {
        "categorical": pd.Categorical(Y, categories=["unused", "spam", "ham", "eggs"]),
        "text": Y.astype(object),
        "integer": np.unique(Y, return_inverse=True)[1],
        "real": RNG.random(40),
    }
    obs = pd.DataFrame(columns, index=[f"doc {i}" for i in range(40)])
    data = anndata.AnnData(sparse.csr_matrix(X.astype("float32")), obs, pd.DataFrame(index=NAMES))
    data.layers["dense"] = X.astype("int16")
    data.layers["double"] = sparse.csr_matrix(2 * X)
    data.layers["columns"] = sparse.csc_matrix(X)
    data.write_h5ad(tmp_path / "data.h5ad", compression="gzip", convert_strings_to_categoricals=False)
    return tmp_path / "data.h5ad"


def test_it_counts_like_numpy(path):
    source = H5adSource(path, "categorical")
    assert isinstance(source, Source)
    assert (source.n_rows, source.n_features, source.nnz) == (40, 9, np.count_nonzero(X))
    assert source.n_blocks > 5
    assert source.classes.tolist() == ["eggs", "ham", "spam"]
    assert_counts(source, X, Y)


@pytest.mark.parametrize(("layer", "expected"), [(None, X), ("dense", X), ("double", 2 * X)])
def test_layers(path, layer, expected):
    assert_counts(H5adSource(path, "text", layer), expected, Y)


def test_any_range_can_be_read_by_whoever_holds_it(path):
    source = pickle.loads(pickle.dumps(H5adSource(path, "categorical")))
    whole = list(source.blocks(0, source.n_blocks))
    part = list(source.blocks(2, 4))
    assert [b.number for b in part] == [2, 3]
    assert [b.data.tolist() for b in part] == [b.data.tolist() for b in whole[2:4]]
    assert [b.first_row for b in part] == [b.first_row for b in whole[2:4]]
    with h5py.File(path, "r+"):
        pass  # nobody holds the file open


def test_names_are_read_where_they_are_asked_for(path):
    source = H5adSource(path)
    assert source.classes is None
    assert source.names(np.array([7, 0, 8, 7])) == ["word 7", "word 0", "word 8", "word 7"]
    assert source.names(np.array([], int)) == []


def test_labels_in_memory(path):
    assert_counts(Labelled(H5adSource(path), Y), X, Y)


def test_the_fingerprint_follows_file_labels_and_layer(path):
    prints = {
        H5adSource(path).fingerprint,
        H5adSource(path, "text").fingerprint,
        H5adSource(path, "text", "dense").fingerprint,
    }
    with h5py.File(path, "r+") as file:
        file["obs/integer"][0] = 2
    assert len(prints | {H5adSource(path).fingerprint}) == 4


def write_old(path, tables):
    """X in the first encoding, and tables as they were then: compound datasets, or groups with categories aside."""
    matrix = sparse.csr_matrix(X)
    categories, codes = np.unique(Y, return_inverse=True)
    text = h5py.string_dtype()
    with h5py.File(path, "w") as file:
        group = file.create_group("X")
        for name in ("indptr", "indices", "data"):
            group[name] = getattr(matrix, name)
        group.attrs["h5sparse_format"], group.attrs["h5sparse_shape"] = "csr", X.shape
        if tables == "groups":
            obs = file.create_group("obs")
            obs["class"], obs["plain"] = codes.astype("int8"), codes
            obs["__categories/class"] = categories.astype(object)
            var = file.create_group("var")
            var["index"] = np.array(NAMES, object)
            var.attrs["_index"] = "index"
            return
        rows = np.empty(40, [("index", text), ("class", "i1"), ("plain", "i8"), ("word", "S4")])
        rows["class"], rows["plain"], rows["word"] = codes, codes, Y
        rows["index"] = [f"doc {i}" for i in range(40)]
        file["obs"] = rows
        file["uns/class_categories"] = categories.astype(object)
        columns = np.empty(9, [("index", "S10"), ("n", "i8")])
        columns["index"] = NAMES
        file["var"] = columns


@pytest.mark.parametrize("tables", ["groups", "compound"])
def test_old_encodings(tmp_path, tables):
    write_old(tmp_path / "old.h5ad", tables)
    source = H5adSource(tmp_path / "old.h5ad", "class")
    assert source.classes.tolist() == ["eggs", "ham", "spam"]
    assert_counts(source, X, Y)
    assert source.names(np.array([8, 2])) == ["word 8", "word 2"]
    assert H5adSource(tmp_path / "old.h5ad", "plain").classes.tolist() == [0, 1, 2]
    if tables == "compound":
        assert_counts(H5adSource(tmp_path / "old.h5ad", "word"), X, Y)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labels": "colour"}, "no column 'colour' in obs; it has .*categorical"),
        ({"labels": "real"}, "Unknown label type: continuous"),
        ({"layer": "raw"}, "no layers/raw; its layers are: columns, dense, double"),
        ({"layer": "columns"}, r"csc_matrix.*tocsr\(\)"),
    ],
)
def test_what_is_not_there_is_said(path, arguments, message):
    with pytest.raises(InputError, match=message):
        H5adSource(path, **arguments)


DAMAGE = {
    "backwards": lambda f: f["X/indptr"].__setitem__(5, 10**6),
    "begin": lambda f: f["X/indptr"].__setitem__(0, 1),
    "end": lambda f: f["X/indptr"].__setitem__(40, int(f["X/indptr"][40]) + 1),
    "rows": lambda f: f["X"].attrs.__setitem__("shape", [41, 9]),
    "shape": lambda f: f["X"].attrs.__delitem__("shape"),
    "member": lambda f: f.__delitem__("X/indices"),
    "codes": lambda f: f["obs/categorical/codes"].__setitem__(5, 77),
    "encoding": lambda f: f["X"].attrs.__setitem__("encoding-type", "wool"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_named(path, damage):
    with h5py.File(path, "r+") as file:
        DAMAGE[damage](file)
    with pytest.raises(InputError, match=r"data\.h5ad: .*(damaged|'wool'|backwards)"):
        H5adSource(path, "categorical")


def test_what_is_no_file(tmp_path, path):
    with pytest.raises(StoreError, match=r"absent\.h5ad is missing"):
        H5adSource(tmp_path / "absent.h5ad")
    (tmp_path / "text.h5ad").write_text("hello")
    with pytest.raises(StoreError, match="not an HDF5 file"):
        H5adSource(tmp_path / "text.h5ad")
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(StoreError, match="not an HDF5 file, or is damaged"):
        H5adSource(path)
