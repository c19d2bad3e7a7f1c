from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import numpy as np
import pytest

from nfs_dask.errors import StoreError
from nfs_dask.files.folder import Folder
from nfs_dask.statistics.counts import ClassCounts
from nfs_dask.statistics.statistic import State
from nfs_dask.store.cache import Kept
from nfs_dask.store.header import read_header
from nfs_dask.store.layout import Numbers
from nfs_dask.store.receipts import verify
from nfs_dask.store.shards import ShardReader, ShardWriter
from nfs_dask.store.states import write_state
from nfs_dask.store.writer import write_store
from tests.helpers.toys import SMALL, example


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    place = tmp_path_factory.mktemp("original") / "s"
    write_store(example(names=[f"w{i}" for i in range(40)], weights=np.arange(200) / 3), place, layout=SMALL)
    return place


@pytest.fixture
def store(original, tmp_path):
    return Path(shutil.copytree(original, tmp_path / "s"))


def objects(store):
    return sorted(path.relative_to(store).as_posix() for path in store.rglob("*") if path.is_file())


def test_a_sound_store_passes(store):
    verify(store)


def test_every_object_that_is_missing_is_named(original, store):
    for name in objects(original):
        content = (store / name).read_bytes()
        (store / name).unlink()
        with pytest.raises(StoreError, match=f"{name} is missing|there is no {name}"):
            verify(store)
        (store / name).write_bytes(content)
    verify(store)


@pytest.mark.parametrize("harm", ["flip", "truncate"])
def test_every_array_object_that_is_harmed_is_named(original, store, harm):
    for name in objects(original):
        if "/c/" in name:
            content = (store / name).read_bytes()
            middle = len(content) // 2
            harmed = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
            (store / name).write_bytes(harmed if harm == "flip" else content[:middle])
            with pytest.raises(StoreError, match=f"{name} is damaged"):
                verify(store)
            (store / name).write_bytes(content)
    verify(store)


@pytest.mark.parametrize("most", [2, pytest.param(300, marks=[pytest.mark.slow, pytest.mark.timeout(600)])])
def test_every_flipped_byte_is_found(store, most):
    """In arrays, in metadata, and in statistics that are kept."""
    kept = Kept(Folder(f"{store}/nfs_dask/statistics"), read_header(Folder.of(store)).fingerprint)
    target = kept.reserve(ClassCounts(3))
    write_state(target, State({"sums": np.arange(120).reshape(3, 40)}, {"rows": np.arange(3)}), 40, {})
    kept.commit(ClassCounts(3), target)
    verify(store)
    rng, silent = np.random.default_rng(0), []
    for name in objects(store):
        whole = (store / name).read_bytes()
        for at in rng.integers(0, len(whole), most).tolist() if whole else []:
            (store / name).write_bytes(whole[:at] + bytes([whole[at] ^ 1 << int(rng.integers(7))]) + whole[at + 1 :])
            with contextlib.suppress(StoreError):
                verify(store)
                silent.append(name)
        (store / name).write_bytes(whole)
    # What Zarr says of arrays that are kept is not ours to read; it hides no other values, which have a checksum.
    assert not [name for name in silent if not ("/panel-" in name and name.endswith("zarr.json"))]
    verify(store)


def test_values_that_were_changed_with_their_checksums_are_found(store):
    folder = Folder.of(store)
    numbers: Numbers = read_header(folder).data
    values = ShardReader(folder, numbers).read(numbers.shard, 2 * numbers.shard).copy()
    values[3] += 1
    with ShardWriter(folder, numbers, 1) as writer:
        writer.add(values)
    with pytest.raises(StoreError, match="X/data/c/1 is damaged: a chunk holds other values"):
        verify(store)


def test_shards_are_checked_wherever_the_map_runs_them(store):
    seen = []

    def watching(function, items):
        seen.extend(items)
        return [function(item) for item in items]

    verify(store, map=watching)
    header = read_header(Folder.of(store))
    assert len(seen) == sum(numbers.n_shards for numbers in header.numbers())


def test_the_fingerprint_follows_data_and_labels(tmp_path):
    codes = example().codes
    variants = {
        "same": example(),
        "values": example(seed=1, codes=codes),
        "labels": example(codes=np.roll(codes, 1)),
        "classes": example(classes=["eggs", "ham", "tofu"]),
        "weights": example(weights=np.ones(200)),
        "unlabelled": example(codes=None, classes=None),
        "wider": example(n_features=41, codes=codes),
    }
    found = {}
    for name, source in variants.items():
        write_store(source, tmp_path / name, layout=SMALL)
        found[name] = read_header(Folder.of(tmp_path / name)).fingerprint
    write_store(example(), tmp_path / "again", layout=SMALL, runs=3)
    assert read_header(Folder.of(tmp_path / "again")).fingerprint == found["same"]
    assert len(set(found.values())) == len(variants)
