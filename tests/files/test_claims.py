"""Claims end with the process that holds them, at once on its machine; two never hold one place."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

import nfs_dask as nfs
from nfs_dask.engine.serial import SerialEngine
from nfs_dask.errors import InputError, StoreError
from nfs_dask.files import claims
from nfs_dask.files.claims import Holder, held, is_abandoned, read, sign, sweep, take
from nfs_dask.files.folder import Folder
from nfs_dask.sources.zarr import ZarrSource
from nfs_dask.store.receipts import serial_map, verify
from nfs_dask.store.writer import write_store
from tests.helpers.toys import SMALL, example


def files_of(place):
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


@pytest.fixture(params=["local", "s3"])
def place(request):
    """A place that does not exist, near or far."""
    return f"{request.getfixturevalue('tmp_path')}/s" if request.param == "local" else request.getfixturevalue("s3")


def killed(code):
    """Run some code in a process that kills itself where it says so."""
    path = os.pathsep.join(sys.path)
    prelude = "import os, signal\ndie = lambda: os.kill(os.getpid(), signal.SIGKILL)\n"
    done = subprocess.run(
        [sys.executable, "-c", prelude + code], env={**os.environ, "PYTHONPATH": path}, capture_output=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()


def killed_holding(folder):
    killed(
        "from nfs_dask.files.claims import take\nfrom nfs_dask.files.folder import Folder\n"
        f"take(Folder({folder.location!r}), 'it'); die()"
    )


def test_a_place_is_held_by_one_and_then_by_the_next(place):
    folder = Folder.of(place)
    with held(folder, "the place"):
        with pytest.raises(StoreError, match=f"the place is being written by process {os.getpid()} on .*running; wait"):
            take(folder, "the place")
        assert not is_abandoned(folder)
    with held(folder, "the place") as claim:
        assert not claim.taken_over
    assert folder.names() == []


def test_the_claim_of_a_killed_process_is_taken_at_once(place):
    folder = Folder.of(place)
    killed_holding(folder)
    killed_holding(folder)  # and another one that took it over
    assert is_abandoned(folder)
    claim = take(folder, "it")
    assert claim.taken_over and not is_abandoned(folder)
    with pytest.raises(StoreError, match="being written by process"):
        take(folder, "it")
    claim.release()
    claim.release()
    assert folder.names() == []


def test_a_number_that_another_process_has_now_is_not_the_holder():
    holder = Holder.this()
    assert not holder.gone
    assert replace(holder, started=holder.started - 100).gone


@pytest.mark.parametrize("silent", [0, 100, 200])
def test_a_holder_elsewhere_counts_as_gone_after_a_while(tmp_path, silent, monkeypatch):
    folder = Folder(str(tmp_path))
    elsewhere = replace(Holder.this(), host="far", machine="another", pid=7)
    monkeypatch.setattr(time, "time", lambda now=time.time: now() - silent)
    folder.write("writing", elsewhere.to_bytes())
    monkeypatch.undo()
    monkeypatch.setattr(claims, "WATCH_SECONDS", 0.1)
    if silent > claims.GONE_SECONDS:
        take(folder, "it").release()
        return
    with pytest.raises(
        StoreError, match=rf"process 7 on far, .* life {silent}\d? s ago; .* free 180 s after .*clean_up"
    ):
        take(folder, "it")


@pytest.mark.parametrize("ahead", [-4000, 4000])
@pytest.mark.parametrize("lives", [True, False])
def test_a_holder_whose_clock_differs_by_an_hour_is_watched(tmp_path, monkeypatch, ahead, lives):
    """It holds the place if it gives signs of life, whatever time they tell."""
    monkeypatch.setattr(claims, "WATCH_SECONDS", 0.3)
    folder, over = Folder(str(tmp_path)), threading.Event()
    elsewhere = replace(Holder.this(), host="far", machine="another", pid=7)

    def beat():
        skewed = replace(elsewhere, alive=time.time() + ahead)
        folder.scratch.write("writing", json.dumps(asdict(skewed)).encode())

    def live():
        while not over.wait(0.02):
            beat()

    beat()
    other = threading.Thread(target=live if lives else beat)
    other.start()
    try:
        if lives:
            with pytest.raises(StoreError, match="process 7 on far"):
                take(folder, "it")
            assert not is_abandoned(folder)
        else:
            other.join()
            assert is_abandoned(folder)
            take(folder, "it").release()
    finally:
        over.set()
        other.join()


def test_signs_of_life_go_on_while_a_place_is_held(tmp_path, monkeypatch):
    monkeypatch.setattr(claims, "BEAT_SECONDS", 0.01)
    folder = Folder(str(tmp_path))
    with held(folder, "it"):
        first = read(folder, "writing").alive
        deadline = time.monotonic() + 20
        while read(folder, "writing").alive <= first:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert folder.names() == []


def test_whoever_was_taken_for_gone_does_not_publish(tmp_path):
    folder = Folder(str(tmp_path))
    with held(folder, "it") as claim:
        claim.check()
        folder.write(f"writing-{read(folder, 'writing').token}", Holder.this().to_bytes())
        with pytest.raises(StoreError, match="taken over by another process"):
            claim.check()


@pytest.mark.parametrize("abandoned", [True, False])
def test_of_many_that_take_at_once_one_holds(tmp_path, abandoned):
    """And while they come and go, never two at a time."""
    folder = Folder(str(tmp_path))
    gone = replace(Holder.this(), started=0.0)
    holding, most, wins = [], [], []
    barrier = threading.Barrier(6)

    def contend():
        barrier.wait()
        for _ in range(15):
            try:
                claim = take(folder, "it")
            except StoreError:
                continue
            holding.append(1)
            most.append(len(holding))
            wins.append(claim)
            time.sleep(0.001)
            holding.pop()
            claim.release()

    if abandoned:
        folder.write("writing", gone.to_bytes())
    threads = [threading.Thread(target=contend) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wins and max(most) == 1
    assert wins[0].taken_over == abandoned
    take(folder, "it").release()
    assert not [name for name in folder.names() if "partial" in name]


# Writers that were killed


DYING = """
from tests.helpers.toys import SMALL, example
from nfs_dask.store.receipts import serial_map
from nfs_dask.store.writer import write_store
def dying(function, items):
    if function.__name__ == "write_shards":
        serial_map(function, items[: len(items) // 2]); die()
    return serial_map(function, items)
"""


def test_a_new_store_whose_writer_was_killed_is_written_by_the_next(place):
    killed(f"{DYING}write_store(example(), {place!r}, layout=SMALL, map=dying)")
    write_store(example(seed=2), place, layout=SMALL)
    verify(place)
    assert not [name for name in Folder.of(f"{place}/nfs_dask").names() if "writing" in name or "scratch" in name]
    if not Folder.of(place).remote:
        assert [path.name for path in Path(place).parent.iterdir()] == ["s"]


def test_an_append_that_was_killed_leaves_the_store_to_the_next(place):
    write_store(example(), place, layout=SMALL)
    killed(f"{DYING}write_store(example(seed=1), {place!r}, append=True, map=dying)")
    assert ZarrSource(place).n_rows == 200
    write_store(example(seed=1), place, append=True)
    verify(place)
    assert ZarrSource(place).n_rows == 400
    assert not [name for name in Folder.of(f"{place}/nfs_dask").names() if "writing" in name or "scratch" in name]


def test_a_place_where_somebody_writes_is_not_cleaned_up(tmp_path):
    def looking(function, items):
        with pytest.raises(StoreError, match="being written by process"):
            write_store(example(seed=1), tmp_path / "s", append=True)
        return serial_map(function, items)

    write_store(example(), tmp_path / "s", layout=SMALL)
    before = files_of(tmp_path / "s")
    with pytest.raises(InputError, match="sample weights"):
        write_store(example(weights=np.arange(200)), tmp_path / "s", append=True)
    assert files_of(tmp_path / "s") == before
    write_store(example(seed=3), tmp_path / "s", append=True, map=looking)
    verify(tmp_path / "s")


# Ingests and passes


def test_an_ingest_that_runs_is_not_joined_by_the_same_one(tmp_path, monkeypatch):
    (tmp_path / "mail.csv").write_text("text,label\n" + "one two,a\ntwo three,b\n" * 20)
    asked = {"text_column": "text", "label_column": "label", "engine": SerialEngine()}
    from nfs_dask.ingestion import text_ingest as texts

    merge, refused = texts._merge_and_write, []

    def overtaken(*arguments):
        monkeypatch.setattr(texts, "_merge_and_write", merge)
        with pytest.raises(StoreError, match=r"mail\.zarr is being written by process"):
            nfs.ingest(str(tmp_path / "mail.csv"), tmp_path / "mail.zarr", **asked)
        refused.append(True)
        merge(*arguments)

    monkeypatch.setattr(texts, "_merge_and_write", overtaken)
    assert nfs.ingest(str(tmp_path / "mail.csv"), tmp_path / "mail.zarr", **asked).n_rows == 40
    assert refused
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mail.csv", "mail.zarr"]


def test_what_killed_clients_left_is_swept_and_what_living_ones_use_stays(tmp_path):
    folder = Folder(str(tmp_path))
    killed(
        "from nfs_dask.files.claims import sign\nfrom nfs_dask.files.folder import Folder\n"
        f"place = Folder({folder.location!r}); sign(place, '.nfs-probe-1'); sign(place / '.nfs-spool-1')\n"
        "(place / '.nfs-spool-1').write('blocks', b'x'); die()"
    )
    sign(folder, ".nfs-probe-2")
    sign(folder / ".nfs-spool-2")
    folder.write(".nfs-probe-3", b"somebody else's")
    for beginning in (".nfs-probe-", ".nfs-spool-"):
        sweep(folder, beginning)
    assert folder.names() == [".nfs-probe-2", ".nfs-probe-3", ".nfs-spool-2"]
