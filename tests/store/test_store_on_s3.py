"""Stores behind a real S3 protocol, served on loopback."""

from __future__ import annotations

import warnings

import anndata
import fsspec
import numpy as np
import pytest

from nfs_dask.errors import StoreError
from nfs_dask.files.folder import Folder
from nfs_dask.sources.zarr import ZarrSource
from nfs_dask.store.header import ROOT, read_header
from nfs_dask.store.publish import clean_up
from nfs_dask.store.receipts import serial_map, verify
from nfs_dask.store.writer import write_store
from tests.helpers.toys import SMALL, assert_same_matrix, contents, example


def test_write_read_append_and_verify(s3):
    source = example(names=[f"w{i}" for i in range(40)])
    write_store(source.part(0, 117), f"{s3}/s", layout=SMALL, runs=2)
    reader = ZarrSource(f"{s3}/s")
    write_store(source.part(117, 200), f"{s3}/s", append=True)
    assert sum(block.n_rows for block in reader.blocks(0, reader.n_blocks)) == 117
    X, codes, _ = contents(f"{s3}/s")
    assert_same_matrix(X, source.X)
    np.testing.assert_array_equal(codes, source.codes)
    assert ZarrSource(f"{s3}/s").names(np.array([3, 1])) == ["w3", "w1"]
    verify(f"{s3}/s")
    assert Folder(f"{s3}/s/nfs_dask").names() == ["cuts", "names", "receipts", "zarr.json"]


def test_an_existing_store_is_refused(s3):
    write_store(example(), f"{s3}/s")
    with pytest.raises(StoreError, match="exists; choose another place"):
        write_store(example(seed=1), f"{s3}/s")


def test_the_root_is_created_only_if_nobody_else_did(s3):
    def overtaken(function, items):
        if function.__name__ == "write_shards":
            assert not Folder(f"{s3}/s").exists(ROOT)
            Folder(f"{s3}/s").write(ROOT, b"{}")
        return serial_map(function, items)

    with pytest.raises(StoreError, match="another writer was faster"):
        write_store(example(), f"{s3}/s", map=overtaken)
    assert Folder(f"{s3}/s").read(ROOT) == b"{}"


def test_a_second_writer_is_refused_while_one_is_at_work(s3):
    def meeting(function, items):
        with pytest.raises(StoreError, match=r"exists|being written"):
            write_store(example(seed=1), f"{s3}/s")
        return serial_map(function, items)

    write_store(example(), f"{s3}/s", map=meeting)
    assert_same_matrix(contents(f"{s3}/s")[0], example().X)


def test_an_interrupted_writer_removes_what_it_began(s3):
    def dying(function, items):
        serial_map(function, items)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_store(example(), f"{s3}/s", map=dying)
    assert Folder(f"{s3}/s").names() == []


def test_what_a_killed_writer_left_can_be_cleaned_up(s3):
    folder = Folder(f"{s3}/s")
    folder.write("nfs_dask/writing", b"{}")
    folder.write("X/data/c/0", b"half")
    with pytest.raises(StoreError, match="clean_up"):
        write_store(example(), f"{s3}/s")
    clean_up(f"{s3}/s")
    write_store(example(), f"{s3}/s")
    assert read_header(folder).n_rows == 200


def test_damage_is_named(s3):
    write_store(example(), f"{s3}/s", layout=SMALL)
    folder = Folder(f"{s3}/s")
    content = folder.read("X/indices/c/1")
    folder.write("X/indices/c/1", content[:-3])
    with pytest.raises(StoreError, match="X/indices/c/1 is damaged"):
        contents(f"{s3}/s")
    folder.delete("X/indices/c/1")
    with pytest.raises(StoreError, match="X/indices/c/1 is missing"):
        contents(f"{s3}/s")
    with pytest.raises(StoreError, match="does not exist"):
        ZarrSource(f"{s3}/nothing")


def test_somebody_elses_store_is_read_from_a_url(s3, tmp_path):
    source = example()
    write_store(source, tmp_path / "s")
    opened = anndata.read_zarr(tmp_path / "s")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what anndata says of formats to come differs between its versions
        opened.write_zarr(tmp_path / "foreign")
    fs, _ = fsspec.core.url_to_fs(s3)
    fs.put(str(tmp_path / "foreign"), f"{s3}/foreign", recursive=True)
    X, codes, _ = contents(f"{s3}/foreign", labels="label")
    assert_same_matrix(X, source.X)
    np.testing.assert_array_equal(codes, source.codes)
