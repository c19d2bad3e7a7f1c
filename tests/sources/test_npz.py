from __future__ import annotations

import io
import pickle
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from nfs_dask.errors import InputError, StoreError
from nfs_dask.sources import block_cuts as cutting
from nfs_dask.sources import npz
from nfs_dask.sources.labelled import Labelled
from nfs_dask.sources.npz import NpzSource
from nfs_dask.sources.source import Source
from tests.helpers.strategies import labelled_csr
from tests.helpers.truth import assert_counts

RNG = np.random.default_rng(3)
X = RNG.integers(0, 4, (40, 9)) * (RNG.random((40, 9)) < 0.4)
Y = RNG.choice(["ham", "spam", "eggs"], 40)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(cutting, "BLOCK_NBYTES", 300)
    monkeypatch.setattr(npz, "_PIECE", 7)


def members(X=X, **others):
    X = sparse.csr_matrix(X)
    parts = {"indptr": X.indptr, "indices": X.indices, "data": X.data}
    return parts | {"shape": np.array(X.shape), "format": np.array(b"csr")} | others


def write(path, compressed=False, **arrays):
    (np.savez_compressed if compressed else np.savez)(path, **arrays)
    return path


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("dtype", ["bool", "uint16", "int64", "float32", ">f8"])
def test_it_counts_like_numpy(tmp_path, compressed, make, dtype):
    matrix = make(X.astype(dtype)) if dtype != ">f8" else make(X.astype(float))
    sparse.save_npz(tmp_path / "X.npz", matrix, compressed=compressed)
    if dtype == ">f8":
        write(tmp_path / "X.npz", compressed, **members(data=matrix.data.astype(dtype)))
    source = Labelled(NpzSource(tmp_path / "X.npz"), Y)
    assert isinstance(source, Source)
    assert (source.n_rows, source.n_features, source.nnz) == (40, 9, np.count_nonzero(X))
    assert source.n_blocks > 5
    assert_counts(source, X.astype(dtype), Y)
    part = list(source.blocks(2, 4))
    whole = list(source.blocks(0, source.n_blocks))
    assert [b.data.tolist() for b in part] == [b.data.tolist() for b in whole[2:4]]
    assert all(b.data.flags.writeable for b in NpzSource(tmp_path / "X.npz").blocks(0, 2))


@given(labelled_csr(dtypes=("uint8", "float64")), st.booleans(), st.integers(30, 300))
def test_awkward_rows(tmp_path_factory, data, compressed, budget):
    matrix, y = data
    path = tmp_path_factory.mktemp("npz") / "X.npz"
    arrays = {"indptr": matrix.indptr, "indices": matrix.indices, "data": matrix.data}
    write(path, compressed, **arrays, shape=np.array(matrix.shape), format=np.array(b"csr"), y=y)
    dense = np.zeros(matrix.shape)
    np.add.at(dense, (np.repeat(np.arange(len(y)), np.diff(matrix.indptr)), matrix.indices), matrix.data.astype(float))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cutting, "BLOCK_NBYTES", budget)
        assert_counts(NpzSource(path), dense, y)


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("member", ["y", "labels", "target"])
@pytest.mark.parametrize("y", [Y, Y.astype("S"), RNG.integers(0, 3, 40), RNG.integers(0, 2, 40).astype(float)])
def test_labels_in_the_file(tmp_path, compressed, member, y):
    write(tmp_path / "X.npz", compressed, **members(), **{member: y})
    source = NpzSource(tmp_path / "X.npz", labels="target" if member == "target" else None)
    assert source.classes.tolist() == np.unique(y).tolist()
    assert_counts(source, X, y)


def test_many_files_are_stacked(tmp_path):
    for part, rows in enumerate((slice(0, 10), slice(10, 30), slice(30, 30), slice(30, 40))):
        write(tmp_path / f"part-{part}.npz", part % 2 == 0, **members(X[rows]), y=Y[rows])
    source = NpzSource(tmp_path / "part-*.npz")
    assert_counts(source, X, Y)
    assert [b.number for b in source.blocks(0, source.n_blocks)] == list(range(source.n_blocks))
    weights = np.arange(40)
    weighted = pickle.loads(pickle.dumps(Labelled(source, None, weights, names=list("abcdefghi"))))
    assert weighted.weighted
    assert weighted.names(np.array([2])) == ["c"]
    assert_counts(weighted, X, Y, weights)
    prints = {source.fingerprint, weighted.fingerprint, Labelled(source, Y[::-1]).fingerprint}
    assert len(prints | {NpzSource(tmp_path / "part-0.npz").fingerprint}) == 4
    write(tmp_path / "part-4.npz", **members(X[:, :8]), y=Y)
    with pytest.raises(InputError, match="part-4.npz has 8 columns and .*part-0.npz has 9"):
        NpzSource(tmp_path / "part-*.npz")
    write(tmp_path / "part-4.npz", **members())
    with pytest.raises(InputError, match="part-0.npz holds labels and .*part-4.npz does not"):
        NpzSource(tmp_path / "part-*.npz")


def test_given_lengths_must_agree(tmp_path):
    source = NpzSource(write(tmp_path / "X.npz", **members()))
    with pytest.raises(InputError, match="there are 40 rows but 3 labels"):
        Labelled(source, [1, 2, 3])
    with pytest.raises(InputError, match="9 columns but 2 names"):
        Labelled(source, names=["a", "b"])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"format": np.array(b"csc")}, r"'csc' format.*tocsr\(\)"),
        ({"format": np.array(["csr"])}, "not the name of a sparse format"),
        ({"format": np.array(5)}, "not the name of a sparse format"),
        ({"shape": np.array([40, 9, 1])}, "two whole numbers"),
        ({"shape": np.array([-40, 9])}, "negative"),
        ({"shape": np.array([2**60, 9])}, "rows, but row pointers of shape"),
        ({"shape": np.array([41, 9])}, "41 rows, but row pointers of shape"),
        ({"indices": np.arange(3)}, r"columns of shape \(3,\)"),
        ({"data": np.arange(3)}, r"values of shape \(3,\)"),
        ({"data": np.zeros((2, 2))}, "values of shape"),
        ({"indices": sparse.csr_matrix(X).indices.astype(float)}, "not whole numbers"),
        ({"indptr": sparse.csr_matrix(X).indptr + 1}, "does not begin with 0"),
        ({"indptr": np.r_[0, sparse.csr_matrix(X).indptr[1:] - 1]}, "ends at|backwards"),
        ({"indptr": np.r_[sparse.csr_matrix(X).indptr[:20], 0, sparse.csr_matrix(X).indptr[21:]]}, "backwards"),
        ({"y": np.arange(3)}, r"y in .*X.npz has shape \(3,\); give one label for each of 40 rows"),
        ({"y": np.array([None] * 40)}, "y in .*X.npz holds Python objects"),
        ({"data": np.array([{}] * X.astype(bool).sum())}, "holds Python objects"),
        ({"data": np.ones(X.astype(bool).sum(), complex)}, "type complex128"),
        ({"data": np.ones(X.astype(bool).sum(), "S1")}, "type |S1"),
    ],
)
@pytest.mark.parametrize("compressed", [True, False])
def test_hostile_files_are_refused(tmp_path, compressed, arrays, message):
    write(tmp_path / "X.npz", compressed, **members(**arrays))
    with pytest.raises(InputError, match=message):
        NpzSource(tmp_path / "X.npz")


def header(shape, dtype="<f8"):
    """An array file that promises more than it holds."""
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": dtype, "fortran_order": False, "shape": shape})
    return out.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (header((2**50,)), "header says 9007199254740992 bytes of values, 0 are there"),
        (header((2**31, 2**31, 2**31)), "header says"),
        (header((-1,)), "header says|header"),
        (b"junk", "no header of a numpy array"),
        (b"", "no header of a numpy array"),
        (header((5,)).replace(b"NUMPY\x01", b"NUMPY\x07"), "no header of a numpy array"),
        (header((1,))[:20], "no header of a numpy array"),
        (header((1,), "<f8").replace(b"(1,)", b"__im"), "no header of a numpy array"),
    ],
)
def test_hostile_headers_are_refused_before_anything_is_allocated(tmp_path, content, message):
    path = write(tmp_path / "X.npz", **{k: v for k, v in members().items() if k != "data"})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("data.npy", content)
    with pytest.raises(StoreError, match=message):
        NpzSource(path)


@pytest.mark.parametrize("compressed", [True, False])
def test_damage_is_named(tmp_path, compressed):
    path = write(tmp_path / "X.npz", compressed, **members(data=RNG.random(np.count_nonzero(X))))
    content = path.read_bytes()
    path.write_bytes(content[:-40])
    with pytest.raises(StoreError, match=r"X\.npz is not an npz archive, or is damaged"):
        NpzSource(path)
    path.write_bytes(content)
    source = NpzSource(path)
    path.write_bytes(content[:1200])
    with pytest.raises(StoreError, match="damaged|not an npz"):
        list(source.blocks(0, source.n_blocks))


def test_what_is_not_there(tmp_path):
    with pytest.raises(StoreError, match=r"X\.npz is missing"):
        NpzSource(tmp_path / "X.npz")
    path = write(tmp_path / "X.npz", a=np.ones(3))
    with pytest.raises(StoreError, match=r"has no format, shape, indptr, indices, data; .* this has a"):
        NpzSource(path)
    path = write(tmp_path / "X.npz", **members())
    with pytest.raises(InputError, match="no member 'target' for the labels; it has data, format"):
        NpzSource(path, labels="target")
    path = write(tmp_path / "X.npz", **members(np.zeros((0, 3))))
    with pytest.raises(InputError, match=r"0 sample\(s\)"):
        NpzSource(path)
