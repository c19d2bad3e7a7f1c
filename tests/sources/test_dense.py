"""Dense data as blocks of all cells."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import anndata
import dask.array as da
import h5py
import numpy as np
import pandas as pd
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from nfs_dask.arrays.block import (
    Block,
    all_columns,
    canonical,
    check_structure,
    check_values,
    distinct,
    full_rows,
    integers_as_integers,
    without_zeros,
)
from nfs_dask.dataset import open_dataset
from nfs_dask.errors import InputError, NfsDaskError
from nfs_dask.sources.block_cuts import cut_evenly
from nfs_dask.sources.matrices import countable
from nfs_dask.sources.open_source import open_source
from nfs_dask.store.foreign_arrays import ForeignArray
from nfs_dask.store.writer import write_store

RNG = np.random.default_rng(3)
Y = RNG.choice(["left", "right"], 60)


def filled(share: float, dtype: str = "float32") -> Any:
    """60 x 5 values, of which about that share is not zero."""
    return np.where(RNG.random((60, 5)) < share, RNG.integers(1, 9, (60, 5)) + 0.25 * (dtype[0] == "f"), 0).astype(
        dtype
    )


def block_of(values: Any) -> Block:
    indptr, indices, data, full = full_rows(countable(values))
    return Block(indptr, indices, data, np.zeros(len(values), np.int32), values.shape[1], full=full)


def matrix_of(block: Block) -> Any:
    shape = (block.n_rows, block.n_features)
    return sparse.csr_array((block.data, block.indices, block.indptr), shape=shape).toarray()


# Rows of all columns


@given(st.integers(0, 6), st.integers(1, 4), st.floats(0, 1), st.integers(0, 99), st.sampled_from("CF"))
def test_a_block_holds_the_matrix(n_rows: int, n_features: int, share: float, seed: int, order: Any) -> None:
    rng = np.random.default_rng(seed)
    values = np.asarray(np.where(rng.random((n_rows, n_features)) < share, rng.normal(size=(n_rows, n_features)), 0.0))
    block = block_of(values.copy(order))
    check_structure(block)
    np.testing.assert_array_equal(matrix_of(block), values)
    assert block.full
    np.testing.assert_array_equal(block.matrix, values)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float32", "float64", ">f8"])
def test_values_keep_a_type_that_is_counted(dtype: str) -> None:
    values = filled(0.9, "int64").astype(dtype)
    block = block_of(values)
    assert block.full
    np.testing.assert_array_equal(block.data.reshape(values.shape), values)
    assert block.data.dtype.isnative
    assert block.data.dtype != np.float16


def test_nothing_is_copied_of_what_is_full() -> None:
    values = filled(1.0)
    first, second = block_of(values), block_of(values[:7])
    assert np.shares_memory(first.data, values)
    assert np.shares_memory(first.indices, second.indices)
    with pytest.raises(ValueError, match="read-only"):
        first.indices[0] = 3


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_bad_values_are_named_where_they_lie(bad: float) -> None:
    for share in (0.1, 1.0):
        values = filled(share)
        values[17, 3] = bad
        with pytest.raises(InputError, match="row 17, column 3"):
            check_values(block_of(values), "signed")


def test_columns_of_other_widths_do_not_mix() -> None:
    for n_rows, width in [(3, 4), (2, 5), (9, 4), (1, 6), (3, 5), (4, 4)]:
        np.testing.assert_array_equal(all_columns(n_rows, width), np.tile(np.arange(width), n_rows))


# Full blocks on their way


def test_a_full_block_travels_without_its_columns() -> None:
    values = RNG.normal(size=(500, 40))
    block = replace(block_of(values), weights=np.ones(500), first_row=3, number=2)
    there = pickle.loads(pickle.dumps(block))
    assert len(pickle.dumps(block)) < values.nbytes + 500 * 30
    assert (there.full, there.first_row, there.number) == (True, 3, 2)
    np.testing.assert_array_equal(matrix_of(there), values)
    np.testing.assert_array_equal(there.weights, block.weights)
    sparse_block = without_zeros(block_of(filled(0.2)))
    np.testing.assert_array_equal(matrix_of(pickle.loads(pickle.dumps(sparse_block))), matrix_of(sparse_block))


def test_checks_pass_what_is_full_on() -> None:
    block = block_of(filled(0.8))
    assert distinct(block) == (block, False)
    assert canonical(block) == (block, False)
    whole = integers_as_integers(block_of(filled(0.8, "int64").astype("float64")))
    assert (whole.full, whole.data.dtype) == (True, np.uint8)


def test_a_block_that_only_claims_to_be_full_is_a_bug() -> None:
    block = replace(without_zeros(block_of(filled(0.1))), full=True)
    with pytest.raises(NfsDaskError, match="this is a bug"):
        check_structure(block)


def test_zeros_can_be_left_out() -> None:
    values = filled(0.8)
    bare = without_zeros(block_of(values))
    check_structure(bare)
    assert (bare.full, bare.nnz) == (False, np.count_nonzero(values))
    np.testing.assert_array_equal(matrix_of(bare), values)
    assert without_zeros(bare) is bare


# Every source of dense data


def write_anndata(folder: Path, values: Any) -> tuple[Path, Path]:
    """The same data as a.zarr and a.h5ad, with chunks of ten rows."""
    obs = pd.DataFrame({"side": pd.Categorical(Y)}, index=[f"r{i}" for i in range(60)])
    data = anndata.AnnData(values.copy(), obs=obs)
    data.write_h5ad(folder / "a.h5ad")
    with h5py.File(folder / "a.h5ad", "r+") as file:
        attributes = dict(file["X"].attrs)
        del file["X"]
        file.create_dataset("X", data=values, chunks=(10, 5)).attrs.update(attributes)
    with warnings.catch_warnings(action="ignore"), anndata.settings.override(zarr_write_format=3):
        data.write_zarr(folder / "a.zarr", chunks=(10, 5))
    return folder / "a.zarr", folder / "a.h5ad"


def dense_sources(tmp_path: Path, values: Any) -> dict[str, Any]:
    frame = pd.DataFrame(values, columns=[f"g{i}" for i in range(values.shape[1])])
    store, h5ad = write_anndata(tmp_path, values)
    return {
        "numpy": open_source(values, Y),
        "pandas": open_source(frame, Y),
        "zarr": open_source(store, labels="side"),
        "h5ad": open_source(h5ad, labels="side"),
        "dask": open_source(da.from_array(values, chunks=(25, 5)), Y),
        "dask columns": open_source(da.from_array(values, chunks=(25, 2)), Y),
    }


@pytest.mark.parametrize("share", [1.0, 0.1])
def test_every_source_gives_the_same_rows(tmp_path: Path, share: float) -> None:
    values = filled(share)
    for name, source in dense_sources(tmp_path, values).items():
        blocks = list(source.blocks(0, source.n_blocks))
        for block in blocks:
            check_structure(block)
            assert block.full, name
            assert block.nbytes <= source.block_nbytes
            assert block.nnz <= source.block_entries
        np.testing.assert_array_equal(np.concatenate([matrix_of(block) for block in blocks]), values, err_msg=name)
        assert source.classes[np.concatenate([block.codes for block in blocks])].tolist() == Y.tolist()


def test_a_store_holds_no_zeros_of_dense_data(tmp_path: Path) -> None:
    values = filled(0.7)
    write_store(open_source(values, Y), tmp_path / "dense.zarr")
    write_store(open_source(sparse.csr_array(values), Y), tmp_path / "sparse.zarr")
    dense, of_csr = (open_dataset(tmp_path / f"{name}.zarr") for name in ("dense", "sparse"))
    assert dense.nnz == np.count_nonzero(values)
    assert dense.fingerprint == of_csr.fingerprint


# Where rows are cut


@pytest.mark.parametrize(("chunk_rows", "cut"), [(1, 100), (7, 98), (100, 100), (60, 60), (101, 100), (5000, 100)])
def test_blocks_end_with_chunks(monkeypatch: pytest.MonkeyPatch, chunk_rows: int, cut: int) -> None:
    monkeypatch.setattr("nfs_dask.sources.block_cuts.BLOCK_NBYTES", 100 * (10 * 4 + 20))
    cuts = cut_evenly(1000, 10, 4, chunk_rows)
    assert set(np.diff(cuts.rows)[:-1].tolist()) == {cut}
    assert cuts.n_rows == 1000


def test_no_chunk_of_a_file_is_unpacked_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nfs_dask.sources.block_cuts.BLOCK_NBYTES", 35 * (5 * 12 + 20))
    for path in write_anndata(tmp_path, filled(1.0)):
        source = open_source(path)
        assert [block.first_row for block in source.blocks(0, source.n_blocks)] == [0, 30]


def test_labels_are_unpacked_once_for_all_blocks_of_a_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nfs_dask.sources.block_cuts.BLOCK_NBYTES", 10 * (5 * 12 + 20))
    path, _ = write_anndata(tmp_path, filled(1.0))
    group = zarr.open_group(path, use_consolidated=False)
    del group["obs/side"]
    side = group["obs"].create_array("side", shape=(60,), chunks=(25,), dtype=str)
    side[:] = Y
    side.attrs.update({"encoding-type": "string-array", "encoding-version": "0.2.0"})
    with warnings.catch_warnings(action="ignore"):
        zarr.consolidate_metadata(path)
    source = open_source(path, labels="side")
    asked: list[tuple[int, int]] = []
    read = ForeignArray.read

    def counted(array: ForeignArray, start: int, stop: int) -> Any:
        if array.path == "obs/side":
            asked.append((start, stop))
        return read(array, start, stop)

    monkeypatch.setattr(ForeignArray, "read", counted)
    codes = np.concatenate([block.codes for block in source.blocks(0, source.n_blocks)])
    assert source.classes[codes].tolist() == Y.tolist()
    assert asked == [(0, 25), (25, 50), (50, 60)]
    (some,) = source.blocks(1, 2)
    assert source.classes[some.codes].tolist() == Y[10:20].tolist()
    assert len(pickle.dumps(source)) == len(pickle.dumps(open_source(path, labels="side")))
