from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st

from nfs_dask.errors import StoreError
from nfs_dask.files.folder import Folder
from nfs_dask.store import shards
from nfs_dask.store.layout import Numbers
from nfs_dask.store.shards import ArrayWriter, ShardReader, ShardWriter, write_numbers


def numbers(length, dtype="int64", chunk=4, shard=12):
    return Numbers("a", dtype, length, chunk, shard)


@given(st.integers(0, 60), st.sampled_from(["uint8", "int32", "int64", "float32", "float64"]), st.data())
def test_what_is_written_in_pieces_is_read_by_any_range(tmp_path_factory, length, dtype, data):
    folder = Folder.of(tmp_path_factory.mktemp("shards"))
    values = np.random.default_rng(length).integers(0, 200, length).astype(dtype)
    cuts = sorted(data.draw(st.lists(st.integers(0, length), max_size=5)))
    receipts = write_numbers(folder, numbers(length, dtype), np.split(values, cuts))
    assert len(receipts) == numbers(length).n_shards
    start, stop = sorted(data.draw(st.tuples(st.integers(0, length), st.integers(0, length))))
    read = ShardReader(folder, numbers(length, dtype)).read(start, stop)
    assert read.dtype == dtype
    np.testing.assert_array_equal(read, values[start:stop])


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=8), st.sampled_from([None, "uint8"]))
def test_ranges_may_be_read_in_any_order(tmp_path_factory, ranges, narrow):
    folder = Folder.of(tmp_path_factory.mktemp("shards"))
    write_numbers(folder, numbers(60), [np.arange(60)])
    reader = ShardReader(folder, numbers(60), narrow)
    for start, stop in map(sorted, ranges):
        np.testing.assert_array_equal(reader.read(start, stop), np.arange(start, stop))


def test_one_range_after_another_unpacks_each_chunk_once(tmp_path, monkeypatch):
    folder = Folder.of(tmp_path)
    write_numbers(folder, numbers(60), [np.arange(60)])
    decompress, unpacked = shards.blosc.decompress, []
    monkeypatch.setattr(shards.blosc, "decompress", lambda body, out: unpacked.append(1) or decompress(body, out))
    reader = ShardReader(folder, numbers(60))
    found = [reader.read(start, min(start + 7, 60)) for start in range(0, 60, 7)]
    np.testing.assert_array_equal(np.concatenate(found), np.arange(60))
    assert len(unpacked) == 60 // numbers(60).chunk


def test_without_receipts_the_same_is_written(tmp_path):
    values, folders = np.arange(31), [Folder.of(tmp_path / name) for name in ("with", "without")]
    for folder, wanted, n_receipts in zip(folders, (True, False), (3, 0), strict=True):
        with ArrayWriter(folder, numbers(31), wanted=wanted) as writer:
            writer.add(values)
        assert len(writer.receipts) == n_receipts
    for shard in range(3):
        name = numbers(31).object_name(shard)
        assert folders[0].read(name) == folders[1].read(name)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("length", [0, 3, 12, 31])
def test_zarr_reads_what_we_write(tmp_path, dtype, length):
    values = (np.arange(length) % 3).astype(dtype)
    array = numbers(length, dtype)
    write_numbers(Folder.of(tmp_path), array, [values])
    (tmp_path / "a").mkdir(exist_ok=True)
    (tmp_path / "a" / "zarr.json").write_text(json.dumps(array.metadata()))
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "a", mode="r")[:], values)


def test_we_read_what_zarr_writes(tmp_path):
    values = np.arange(31)
    array = numbers(31)
    with zarr.config.set({"array.write_empty_chunks": True}):
        store = zarr.storage.StorePath(zarr.storage.LocalStore(tmp_path), "a")
        zarr.Array.from_dict(store, array.metadata())[:] = values
    np.testing.assert_array_equal(ShardReader(Folder.of(tmp_path), array).read(5, 31), values[5:])


def test_a_shard_that_is_not_finished_is_not_there(tmp_path):
    folder = Folder.of(tmp_path)
    with pytest.raises(KeyboardInterrupt), ShardWriter(folder, numbers(12), 0) as writer:
        writer.add(np.arange(6))
        raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt), ArrayWriter(folder, numbers(24)) as array:
        array.add(np.arange(18))
        raise KeyboardInterrupt
    assert [path.name for path in (tmp_path / "a" / "c").iterdir()] == ["0"]


def test_a_shard_is_replaced_whole_while_it_is_read(tmp_path):
    folder = Folder.of(tmp_path)
    write_numbers(folder, numbers(5), [np.arange(5)])
    reader = ShardReader(folder, numbers(5))
    reader.read(0, 1)  # remembers where the chunks were
    write_numbers(folder, numbers(11), [np.arange(11)])
    np.testing.assert_array_equal(reader.read(0, 5), np.arange(5))


@pytest.mark.parametrize("position", [0, 20, -40, -1])
def test_a_flipped_bit_is_found_and_named(tmp_path, position):
    folder = Folder.of(tmp_path)
    write_numbers(folder, numbers(24), [np.arange(24)])
    file = tmp_path / "a" / "c" / "1"
    content = bytearray(file.read_bytes())
    content[position] ^= 4
    file.write_bytes(content)
    np.testing.assert_array_equal(ShardReader(folder, numbers(24)).read(0, 12), np.arange(12))
    with pytest.raises(StoreError, match=r"a/c/1 is damaged"):
        ShardReader(folder, numbers(24)).read(0, 24)


@pytest.mark.parametrize("keep", [0, 3, 60, -1])
def test_a_truncated_object_is_named(tmp_path, keep):
    folder = Folder.of(tmp_path)
    write_numbers(folder, numbers(24), [np.arange(24)])
    file = tmp_path / "a" / "c" / "1"
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(StoreError, match=r"a/c/1 is damaged: it is truncated"):
        ShardReader(folder, numbers(24)).read(0, 24)


def test_a_missing_object_is_not_taken_for_zeros(tmp_path):
    folder = Folder.of(tmp_path)
    write_numbers(folder, numbers(24), [np.arange(24)])
    (tmp_path / "a" / "c" / "0").unlink()
    with pytest.raises(StoreError, match=r"a/c/0 is missing"):
        ShardReader(folder, numbers(24)).read(3, 15)


def test_a_missing_chunk_is_not_taken_for_zeros(tmp_path):
    folder = Folder.of(tmp_path)
    write_numbers(folder, numbers(5), [np.arange(5)])
    with pytest.raises(StoreError, match=r"a/c/0 is damaged"):
        ShardReader(folder, numbers(12)).read(3, 12)


def test_another_chunk_size_than_the_metadata_say_is_damage(tmp_path):
    folder = Folder.of(tmp_path)
    write_numbers(folder, numbers(12, "int32"), [np.arange(12)])
    with pytest.raises(StoreError, match="size the metadata say"):
        ShardReader(folder, numbers(12, "int64")).read(0, 12)


def test_a_range_outside_is_refused_before_it_is_allocated(tmp_path):
    with pytest.raises(StoreError, match="asked for"):
        ShardReader(Folder.of(tmp_path), numbers(12)).read(0, 1 << 60)


def test_a_size_is_not_believed_before_the_objects_are_there(tmp_path):
    folder = Folder.of(tmp_path)
    write_numbers(folder, numbers(12), [np.arange(12)])
    with pytest.raises(StoreError, match=r"a/c/1 is missing"):
        ShardReader(folder, numbers(1 << 60)).read(0, 1 << 60)


def test_a_reader_travels_without_what_it_remembers(tmp_path):
    folder = Folder.of(tmp_path)
    write_numbers(folder, numbers(24), [np.arange(24)])
    reader = ShardReader(folder, numbers(24))
    size = len(pickle.dumps(reader))
    reader.read(0, 24)
    assert len(pickle.dumps(reader)) == size
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(reader)).read(3, 20), np.arange(3, 20))


def test_equal_values_have_equal_receipts_however_they_came(tmp_path):
    values = np.arange(30)
    one = write_numbers(Folder.of(tmp_path / "one"), numbers(30), [values])
    many = write_numbers(Folder.of(tmp_path / "many"), numbers(30), np.split(values, [1, 7, 7, 25]))
    assert one == many
    assert one != write_numbers(Folder.of(tmp_path / "other"), numbers(30), [values + 1])
