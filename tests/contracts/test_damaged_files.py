"""Damaged matrices of other programs are refused in words, by the name of the file, and lead to no other file."""

from __future__ import annotations

from pathlib import Path

import anndata
import h5py
import numpy as np
import pytest
import scipy.sparse as sp
from pandas import DataFrame

import nfs_dask as nfs
from nfs_dask.errors import NfsDaskError, StoreError

N_ROWS, N_COLUMNS = 60, 40


def counts() -> sp.csr_matrix:
    return sp.csr_matrix(np.random.default_rng(0).poisson(0.5, (N_ROWS, N_COLUMNS)).astype(np.float32))


def values_of(path: Path, **options: str) -> tuple[np.ndarray, ...]:
    """What a fit sees: rows, and labels as their codes."""
    source = nfs.open_dataset(path, **options).source
    blocks = list(source.blocks(0, source.n_blocks))
    return tuple(np.concatenate([getattr(b, part) for b in blocks]) for part in ("indices", "data", "codes"))


@pytest.mark.parametrize("compressed", [False, True])
def test_no_flipped_bit_of_an_npz_is_read(tmp_path: Path, compressed: bool) -> None:
    path, X = tmp_path / "counts.npz", counts()
    parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape, "format": b"csr"}
    (np.savez_compressed if compressed else np.savez)(path, **parts, y=np.arange(N_ROWS) % 3)
    want, whole, said = values_of(path), path.read_bytes(), []
    for at in np.random.default_rng(1).integers(0, len(whole), 300).tolist():
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        try:
            found = values_of(path)
        except NfsDaskError as error:
            said.append(str(error))
        else:  # a flip in what means nothing to us, such as the time a member was written at
            assert all(map(np.array_equal, found, want)), at


def test_no_flipped_bit_in_the_list_of_an_npz_hides_a_part_of_it(tmp_path: Path) -> None:
    path, X = tmp_path / "counts.npz", counts()
    parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape, "format": b"csr"}
    np.savez_compressed(path, **parts, y=np.arange(N_ROWS) % 3)
    want, whole, said = values_of(path), path.read_bytes(), []
    for at in range(whole.rindex(b"PK\1\2"), len(whole)):  # what the list says of the labels, and its end
        for bit in range(8):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << bit)]) + whole[at + 1 :])
            try:
                found = values_of(path)
            except NfsDaskError as error:
                said.append(str(error))
            else:
                assert all(map(np.array_equal, found, want)), at
    assert len(said) > 100
    assert all(str(path) in one for one in said)


@pytest.fixture
def h5ad(tmp_path: Path) -> Path:
    obs = DataFrame({"kind": ["b", "t"] * (N_ROWS // 2)}, index=[f"cell{i}" for i in range(N_ROWS)])
    var = DataFrame(index=[f"gene{i}" for i in range(N_COLUMNS)])
    anndata.AnnData(counts(), obs=obs, var=var).write_h5ad(tmp_path / "cells.h5ad")
    return tmp_path / "cells.h5ad"


def test_a_damaged_h5ad_is_refused_in_words(h5ad: Path) -> None:
    """HDF5 has no checksums of values, so some flips are read; none ends in an error that does not name the file.

    HDF5 itself never ends with one in 1,500 bytes inverted, which nothing here can help; so low bits are flipped.
    """
    whole, said = h5ad.read_bytes(), []
    for at in np.random.default_rng(2).integers(0, len(whole), 400).tolist():
        h5ad.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        try:
            source = nfs.open_dataset(h5ad, labels="kind").source
            list(source.blocks(0, source.n_blocks))
            source.names(np.arange(N_COLUMNS))
        except NfsDaskError as error:
            said.append(str(error))
    assert len(said) > 20
    assert all(str(h5ad) in one for one in said)


def test_an_h5ad_leads_to_no_other_file(h5ad: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(np.arange(N_ROWS * N_COLUMNS, dtype=np.uint8).tobytes())
    shape, whole = (N_ROWS, N_COLUMNS), h5ad.read_bytes()
    layout = h5py.VirtualLayout(shape, np.uint8)
    layout[:] = h5py.VirtualSource(tmp_path / "other.h5", "X", shape)

    def stored_outside(file: h5py.File) -> None:
        file.create_dataset("layers/odd", shape, np.uint8, external=[(str(secret), 0, N_ROWS * N_COLUMNS)])

    def linked(file: h5py.File) -> None:
        file["layers/odd"] = h5py.ExternalLink(tmp_path / "other.h5", "X")

    def linked_in_a_row(file: h5py.File) -> None:
        file["aside"] = h5py.ExternalLink(tmp_path / "other.h5", "/")
        file["layers/odd"] = h5py.SoftLink("/aside/X")

    def virtual(file: h5py.File) -> None:
        file.create_virtual_dataset("layers/odd", layout)

    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["X"] = np.ones(shape, np.uint8)
    for change in (stored_outside, linked, linked_in_a_row, virtual):
        h5ad.write_bytes(whole)
        with h5py.File(h5ad, "r+") as file:
            change(file)
        with pytest.raises(StoreError, match="lies in another file, which is not read"):
            nfs.open_dataset(h5ad, layer="odd")
