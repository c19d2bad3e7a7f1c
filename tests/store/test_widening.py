"""Stores whose arrays take a wider type with rows that are appended, and stores of the first format."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path

import anndata
import numpy as np
import pytest
import zarr
from scipy import sparse

from nfs_dask.dataset import open_dataset
from nfs_dask.errors import InputError
from nfs_dask.estimators.scikit_learn import SparseMultinomialNB
from nfs_dask.files.folder import Folder
from nfs_dask.sources.zarr import ZarrSource
from nfs_dask.store import header as headers
from nfs_dask.store import writer
from nfs_dask.store.header import read_header
from nfs_dask.store.publish import clean_up
from nfs_dask.store.receipts import serial_map, verify
from nfs_dask.store.writer import write_store
from tests.helpers.grids import each_once
from tests.helpers.toys import SMALL, assert_same_matrix, contents, example

OLD = Path(__file__).with_name("format-1.zip")  # `example(weights=range)` in two appends, as format 1 was written


def header_of(location):
    return read_header(Folder.of(location))


def with_values(source, dtype, **changes):
    """The source with some values changed, by position."""
    data = source.X.data.astype(dtype)
    for position, value in changes.items():
        data[int(position[1:])] = value
    source.X = sparse.csr_matrix((data, source.X.indices, source.X.indptr), source.X.shape)
    return source


def together(*sources):
    """What a store of these rows must hold; numpy's own types would round whole numbers beside reals."""
    return sparse.vstack([source.X.astype("float64") for source in sources], format="csr")


def blocks_of(source):
    return [(b.data.tolist(), b.indices.tolist(), b.indptr.tolist()) for b in source.blocks(0, source.n_blocks)]


STEPS = {
    "large counts": ("int32", [("int64", {"_5": 2**40})], "int64", "count"),
    "reals": ("int32", [("float64", {"_5": 0.5})], "float64", "real"),
    "narrow reals": ("int32", [("float32", {"_5": 0.5})], "float64", "real"),
    "negative reals": ("int32", [("float64", {"_5": -0.5})], "float64", "signed"),
    "negative numbers": ("int32", [("int64", {"_5": -7})], "int32", "signed"),
    "finer reals": ("float32", [("float64", {"_5": 0.1})], "float64", "real"),
    "three times": ("int32", [("int64", {"_5": 2**40}), ("float64", {"_5": 0.1}), ("int8", {})], "float64", "real"),
}


@pytest.mark.parametrize(("step", "n_rows", "runs"), each_once(STEPS, [60, 200, 500], [1, 3]))
def test_a_store_takes_the_type_that_holds_all_rows(tmp_path, step, n_rows, runs):
    first_type, more, stored, kind = STEPS[step]
    parts = [example(n_rows)]
    if first_type == "float32":
        with_values(parts[0], "float32", _3=0.25)
    write_store(parts[0], tmp_path / "s", layout=SMALL)
    assert header_of(tmp_path / "s").value_type == first_type
    fingerprints = {header_of(tmp_path / "s").fingerprint}
    for seed, (dtype, changes) in enumerate(more, 1):
        parts.append(with_values(example(seed=seed), dtype, **changes))
        write_store(parts[-1], tmp_path / "s", append=True, runs=runs)
        verify(tmp_path / "s")
        fingerprints.add(header_of(tmp_path / "s").fingerprint)
    header = header_of(tmp_path / "s")
    assert (header.value_type, header.kind) == (stored, kind)
    assert len(fingerprints) == 1 + len(more)
    expected = together(*parts)
    assert_same_matrix(contents(tmp_path / "s")[0], expected)
    assert_same_matrix(anndata.read_zarr(tmp_path / "s").X, expected)
    lazy = anndata.io.sparse_dataset(zarr.open_group(tmp_path / "s", mode="r", use_consolidated=False)["X"])
    assert_same_matrix(lazy[n_rows - 10 : n_rows + 10], expected[n_rows - 10 : n_rows + 10])


def test_weights_widen_too(tmp_path):
    first, more = example(weights=np.arange(200)), example(weights=np.arange(200) / 7, seed=1)
    write_store(first, tmp_path / "s", layout=SMALL)
    write_store(more, tmp_path / "s", append=True)
    weights = np.concatenate([first.given_weights, more.given_weights])
    np.testing.assert_array_equal(contents(tmp_path / "s")[2], weights)
    np.testing.assert_array_equal(anndata.read_zarr(tmp_path / "s").obs["weight"], weights)
    verify(tmp_path / "s")


def test_readers_of_the_generation_before_go_on_and_what_they_read_goes_with_the_next_widening(tmp_path):
    first = example(500)
    write_store(first, tmp_path / "s", layout=SMALL)
    reader = ZarrSource(tmp_path / "s")
    before = blocks_of(reader)
    write_store(with_values(example(seed=1), "int64", _5=2**40), tmp_path / "s", append=True)
    assert blocks_of(reader) == before
    write_store(example(seed=2), tmp_path / "s", append=True)
    assert blocks_of(reader) == before
    assert (tmp_path / "s/X/data/c").is_dir()
    assert (tmp_path / "s/X/data/c.0").is_file()
    write_store(with_values(example(seed=3), "float64", _5=0.5), tmp_path / "s", append=True)
    assert not (tmp_path / "s/X/data/c").exists()
    clean_up(tmp_path / "s")
    data = {path.name for path in (tmp_path / "s/X/data").iterdir()}
    assert data == {"zarr.json", *map(str, range(header_of(tmp_path / "s").data.n_shards))}
    verify(tmp_path / "s")


@pytest.mark.parametrize("share", [0.3, 0.6, 1])
def test_a_crash_while_widening_leaves_the_old_generation(tmp_path, share):
    source, more = example(500), with_values(example(seed=1), "float64", _5=0.5)
    write_store(source, tmp_path / "s", layout=SMALL)
    before = header_of(tmp_path / "s")

    def dying(function, items):
        if function.__name__ == "write_shards":
            serial_map(function, items[: math.ceil(share * len(items))])
            raise KeyboardInterrupt
        return serial_map(function, items)

    with pytest.raises(KeyboardInterrupt):
        write_store(more, tmp_path / "s", append=True, map=dying, runs=4)
    assert header_of(tmp_path / "s") == before
    assert_same_matrix(contents(tmp_path / "s")[0], source.X)
    assert_same_matrix(anndata.read_zarr(tmp_path / "s").X, source.X)
    verify(tmp_path / "s")
    write_store(more, tmp_path / "s", append=True)
    assert_same_matrix(contents(tmp_path / "s")[0], together(source, more))
    verify(tmp_path / "s")


def test_numbers_that_no_type_holds_beside_fractions_are_refused(tmp_path):
    write_store(with_values(example(500), "int64", _5=2**53 + 1), tmp_path / "s", layout=SMALL)
    with pytest.raises(InputError, match=r"beyond 2\^53, which float64 cannot hold"):
        write_store(with_values(example(), "float64", _5=0.5), tmp_path / "s", append=True)
    verify(tmp_path / "s")
    write_store(with_values(example(500), "float64", _5=0.5), tmp_path / "t", layout=SMALL)
    with pytest.raises(InputError, match="no type holds all of them exactly"):
        write_store(with_values(example(), "int64", _5=2**53 + 1), tmp_path / "t", append=True)


def test_statistics_of_a_store_that_widened_are_counted_anew(tmp_path):
    parts = [example(), with_values(example(seed=1), "int64", _5=2**33)]
    for part in parts:
        part.codes = np.maximum(part.codes, 0)
    write_store(parts[0], tmp_path / "s", layout=SMALL)
    SparseMultinomialNB(5).fit(open_dataset(tmp_path / "s"))
    write_store(parts[1], tmp_path / "s", append=True)
    y = np.array(parts[0].classes)[np.concatenate([part.codes for part in parts])]
    got = SparseMultinomialNB(5).fit(open_dataset(tmp_path / "s"))
    expected = SparseMultinomialNB(5).fit(sparse.vstack([part.X.astype("int64") for part in parts], format="csr"), y)
    assert got.get_support(indices=True).tolist() == expected.get_support(indices=True).tolist()
    assert got.objective_ == expected.objective_


# One type for columns and row pointers


@pytest.mark.parametrize(("limit", "dtype"), [(None, "int32"), (300, "int64")])
def test_columns_and_row_pointers_have_one_type(tmp_path, monkeypatch, limit, dtype):
    if limit is not None:  # as if 32 bits held no more
        monkeypatch.setattr(headers, "NARROW", limit)
    source = example()
    write_store(source, tmp_path / "s", layout=SMALL)
    group = zarr.open_group(tmp_path / "s", mode="r")
    assert (group["X/indices"].dtype, group["X/indptr"].dtype) == (dtype, dtype)
    assert_same_matrix(contents(tmp_path / "s")[0], source.X)
    X = anndata.read_zarr(tmp_path / "s").X
    assert_same_matrix(X.tocoo().tocsr(), source.X)
    X.eliminate_zeros()
    assert_same_matrix(X, source.X)


def test_both_widen_when_entries_outgrow_them(tmp_path, monkeypatch):
    parts = [example(seed=seed) for seed in range(3)]
    for module in (headers, writer):
        monkeypatch.setattr(module, "NARROW", 2 * parts[0].X.nnz)
    for i, part in enumerate(parts):
        write_store(part, tmp_path / "s", layout=SMALL, append=i > 0)
        verify(tmp_path / "s")
    header = header_of(tmp_path / "s")
    assert (header.index_type, header.pointer_type, header.value_type) == ("int64", "int64", "int32")
    assert dict(header.editions) == {"X/indices": 1, "X/indptr": 1}
    assert_same_matrix(contents(tmp_path / "s")[0], together(*parts))
    assert_same_matrix(anndata.read_zarr(tmp_path / "s").X, together(*parts))


# Format 1


@pytest.fixture
def old(tmp_path):
    with zipfile.ZipFile(OLD) as archive:
        archive.extractall(tmp_path / "old")
    return tmp_path / "old"


def test_a_store_of_format_1_is_read_and_kept_as_it_is(old):
    source, header = example(weights=np.arange(200)), header_of(old)
    assert (header.value_type, header.index_type, header.pointer_type) == ("uint8", "int32", "int64")
    X, codes, weights = contents(old)
    assert_same_matrix(X, source.X)
    np.testing.assert_array_equal(codes, source.codes)
    np.testing.assert_array_equal(weights, source.given_weights)
    verify(old)
    write_store(source, old, append=True)
    assert header_of(old).value_type == "uint8"
    assert_same_matrix(contents(old)[0], together(source, source))
    verify(old)


def test_a_store_of_format_1_takes_larger_counts(old):
    source, more = example(), with_values(example(seed=1, weights=np.arange(200)), "int64", _5=300)
    write_store(more, old, append=True)
    assert header_of(old).value_type == "int32"
    assert_same_matrix(contents(old)[0], together(source, more))
    assert_same_matrix(anndata.read_zarr(old).X, together(source, more))
    verify(old)


def test_an_old_store_is_made_new_by_ingesting_it(old, tmp_path):
    write_store(ZarrSource(old), tmp_path / "new")
    header = header_of(tmp_path / "new")
    assert (header.value_type, header.index_type, header.pointer_type) == ("int32", "int32", "int32")
    assert_same_matrix(contents(tmp_path / "new")[0], example().X)


def test_what_is_selected_from_an_old_store_can_be_computed_with(old):
    X = example(weights=np.arange(200)).X.toarray().astype(int)
    model = SparseMultinomialNB("all").fit(X, np.arange(200) % 2)
    Z = model.transform(open_dataset(old))
    assert Z.dtype == np.int32
    np.testing.assert_array_equal((Z * 200).toarray(), X * 200)
    np.testing.assert_array_equal((-model.inverse_transform(Z)).toarray(), -X)
