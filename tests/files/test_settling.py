"""What becomes visible for good is on the disk before it does, and so is its name."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np
import pytest

import nfs_dask as nfs
from nfs_dask.engine.serial import SerialEngine
from nfs_dask.files.folder import Folder
from nfs_dask.statistics.counts import ClassCounts
from nfs_dask.store.writer import write_store
from tests.helpers.toys import SMALL, example

# Made again, or nobody's, when the power fails.
SCRATCH = (
    "driver.json",
    "scratch-",
    ".spool",
    ".nfs-",
    ".fold",
    "writing",
    "__pycache__",
)
CODES = np.arange(200) % 3


@pytest.fixture
def trace(monkeypatch):
    """Calls of the system in their order: ("sync", inode), ("name", inode, path), both with the time of a counter."""
    calls = []

    def spy(name, note):
        real = getattr(os, name)

        def call(*arguments, **options):
            calls.append(note(*arguments))
            return real(*arguments, **options)

        monkeypatch.setattr(os, name, call)

    spy("fsync", lambda fd: ("sync", os.fstat(fd).st_ino))
    for name in ("replace", "rename", "link"):
        spy(name, lambda source, target: ("name", os.stat(source).st_ino, Path(target)))
    return calls


def lasting(calls):
    return [
        (at, call)
        for at, call in enumerate(calls)
        if call[0] == "name" and not any(part in str(call[2]) for part in SCRATCH)
    ]


def assert_settled(calls, least):
    """Every file was synced before it got its name, and afterwards the folder that has the name."""
    found = lasting(calls)
    assert len(found) >= least
    folders = {}
    for path in {call[2].parent for _, call in found}:
        here = path if path.exists() else None
        folders[path] = None if here is None else here.stat().st_ino
    for at, (_, inode, target) in found:
        before = {call[1] for call in calls[:at] if call[0] == "sync"}
        after = [call[1] for call in calls[at + 1 :] if call[0] == "sync"]
        assert inode in before or target.is_dir(), f"{target} was not on the disk"
        assert after, f"the name {target} was not on the disk"
        if folders[target.parent] is not None:
            assert folders[target.parent] in after, f"the name {target} was not on the disk"


def test_a_new_store_is_on_the_disk_before_it_is_visible(tmp_path, trace):
    write_store(example(names=[f"w{i}" for i in range(40)]), tmp_path / "s", layout=SMALL)
    assert_settled(trace, 40)
    renamed = next(at for at, call in enumerate(trace) if call[0] == "name" and call[2] == tmp_path / "s")
    synced = {call[1] for call in trace[:renamed] if call[0] == "sync"}
    inside = [tmp_path / "s", *(tmp_path / "s").rglob("*")]
    assert not [path for path in inside if path.stat().st_ino not in synced]  # all files, and all folders
    assert tmp_path.stat().st_ino in {call[1] for call in trace[renamed:] if call[0] == "sync"}


def test_an_append_is_on_the_disk_before_the_root_says_so(tmp_path, trace):
    write_store(example(), tmp_path / "s", layout=SMALL)
    trace.clear()
    write_store(example(seed=1), tmp_path / "s", append=True)
    assert_settled(trace, 20)
    assert lasting(trace)[-1][1][2] == tmp_path / "s" / "zarr.json"


def test_models_and_kept_statistics_are_on_the_disk(tmp_path, trace):
    write_store(example(codes=CODES), tmp_path / "s", layout=SMALL)
    trace.clear()
    nfs.SparseMultinomialNB(k=3).fit(nfs.open_dataset(tmp_path / "s")).save(tmp_path / "model")
    assert_settled(trace, 5)
    names = [call[2] for _, call in lasting(trace)]
    assert tmp_path / "model" / "model.json" == names[-1]
    assert any("statistics" in str(name) for name in names)


def test_a_run_is_on_the_disk_and_scratch_files_are_not_waited_for(tmp_path, trace):
    write_store(example(codes=CODES), tmp_path / "s", layout=SMALL)
    trace.clear()
    engine = SerialEngine(panels=2, run=str(tmp_path / "run"))
    engine.reduce(ClassCounts(3), nfs.open_dataset(tmp_path / "s").source)
    assert_settled(trace, 4)
    synced = {call[1] for call in trace if call[0] == "sync"}
    assert [call for call in trace if call[0] == "name" and call[2].suffix == ".spool" and call[1] not in synced]


def test_what_goes_when_a_pass_ends_is_not_waited_for(tmp_path, trace):
    write_store(example(codes=CODES), tmp_path / "s", layout=SMALL)
    trace.clear()
    engine = SerialEngine(panels=2, spool=str(tmp_path))
    panels = engine.reduce(ClassCounts(3), nfs.open_dataset(tmp_path / "s").source).panels
    assert len(panels) > 1
    assert any(".nfs-panels" in str(call[2]) for call in trace if call[0] == "name")
    assert not [call for call in trace if call[0] == "sync"]


def test_a_folder_that_cannot_be_synced_is_no_error(tmp_path, monkeypatch):
    """Some network file systems know files that can be brought to the disk, and no folders."""
    real = os.fsync

    def picky(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(22, "Invalid argument")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", picky)
    Folder(str(tmp_path / "a" / "b")).write("c", np.arange(3).tobytes())
    assert (tmp_path / "a" / "b" / "c").stat().st_size == 24
