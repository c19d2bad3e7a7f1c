"""What the driver of a run lets others see: signs of life, progress, workers, and how it ended."""

from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from distributed import Client

from nfs_dask.cli.corpus import GeneratedCorpus
from nfs_dask.engine import driver
from nfs_dask.engine.distributed import DaskEngine
from nfs_dask.engine.driver import DRIVER, LOG, Command, driving, read_driver
from nfs_dask.engine.run_events import EVENTS, read_events
from nfs_dask.engine.run_status import read_status
from nfs_dask.engine.serial import SerialEngine
from nfs_dask.errors import ResumeError, StoreError
from nfs_dask.files.claims import GONE_SECONDS, Holder
from nfs_dask.files.folder import Folder
from nfs_dask.progress import Progress
from nfs_dask.statistics.counts import ClassCounts
from nfs_dask.testing import assert_same
from tests.helpers.misbehaving import Misbehaving

CORPUS = GeneratedCorpus(600, 300, 3, words_per_document=10, block_rows=50)  # 12 blocks
COUNTS = ClassCounts(3)
TYPED = Command("nfs-dask fit mail.zarr m --resume run", "/data")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that shows itself often."""
    for name in ("BEAT_SECONDS", "REMOTE_BEAT_SECONDS", "CREW_SECONDS", "PROGRESS_SECONDS"):
        monkeypatch.setattr(driver, name, 0.05)


def names_of(folder: Path) -> list[str]:
    return [event["event"] for event in read_events(Folder(str(folder)))]


def write_driver(folder: Path, holder: Holder, alive: float, **seen: Any) -> None:
    folder.mkdir(exist_ok=True)
    (folder / DRIVER).write_bytes(driver_of(holder, alive, **seen))


def driver_of(holder: Holder, alive: float, **seen: Any) -> bytes:
    return json.dumps({**asdict(holder), "alive": alive, "seen": {"ended": None, **seen}}).encode()


def test_passes_of_a_program_are_told_without_a_command(tmp_path: Path) -> None:
    SerialEngine(run=str(tmp_path)).reduce(COUNTS, CORPUS)
    assert names_of(tmp_path) == ["pass_planned", "pass_finished"]
    status = read_status(tmp_path)
    assert (status.state, status.resume, status.live) == ("finished", None, False)
    assert status.driver is not None and status.driver.pid == os.getpid()


def test_a_pass_that_fails_says_why_without_its_secrets(tmp_path: Path) -> None:
    (tmp_path / "marks").mkdir()
    source = Misbehaving(CORPUS, "raise", at_block=3, marks=str(tmp_path / "marks"))
    engine = SerialEngine(run=str(tmp_path / "run"))
    with pytest.raises(OSError, match="enough"):
        engine.reduce(COUNTS, source)
    status = read_status(tmp_path / "run")
    assert (status.state, status.message) == ("failed", "the disk has had enough")
    engine.reduce(COUNTS, CORPUS)
    assert names_of(tmp_path / "run") == ["pass_planned", "failed", "pass_resumed", "pass_finished"]
    assert read_status(tmp_path / "run").state == "finished"


def test_within_a_command_all_passes_have_one_driver(tmp_path: Path) -> None:
    with driving(str(tmp_path), TYPED) as outer:
        with driving(str(tmp_path)) as inner:
            assert inner is outer
        SerialEngine(run=str(tmp_path)).reduce(COUNTS, CORPUS)
        assert read_status(tmp_path).state == "running", "what comes after the passes is part of it"
    assert names_of(tmp_path) == ["started", "pass_planned", "pass_finished", "finished"]
    resumed = replace(TYPED, resumed=True)
    with driving(str(tmp_path), resumed), pytest.raises(KeyboardInterrupt), driving(str(tmp_path)):
        raise KeyboardInterrupt
    assert names_of(tmp_path)[-2:] == ["resumed", "finished"]
    status = read_status(tmp_path)
    assert (status.resume, status.folder) == (TYPED.resume, "/data")


def test_an_interruption_and_other_data_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), driving(str(tmp_path), TYPED):
        raise KeyboardInterrupt
    assert read_status(tmp_path).state == "interrupted"
    with pytest.raises(ResumeError), driving(str(tmp_path), TYPED):
        raise ResumeError("other data")
    assert read_status(tmp_path).state == "stopped", "the run is as good as before"


@pytest.mark.usefixtures("quick")
def test_progress_is_seen_with_its_pace(tmp_path: Path) -> None:
    with driving(str(tmp_path), TYPED), Progress(100, "counting") as progress:
        began = time.monotonic()
        for _ in range(40):
            progress.advance(1, nbytes=1000)
            time.sleep(0.02)
        pace = 40 / (time.monotonic() - began)
        status = read_status(tmp_path)
    work = status.seen["work"]
    assert (work["label"], work["total"], work["unit"]) == ("counting", 100, "blocks")
    assert 20 < work["done"] <= 40
    assert work["per_second"] == pytest.approx(pace, rel=0.4)
    assert work["seconds_left"] == pytest.approx((100 - work["done"]) / work["per_second"], abs=0.06)
    assert work["nbytes_per_second"] == pytest.approx(1000 * work["per_second"], rel=0.3)
    assert "progress" in names_of(tmp_path)
    assert read_status(tmp_path).seen["work"] is None


@pytest.mark.usefixtures("quick")
def test_workers_that_come_and_go_are_told(tmp_path: Path) -> None:
    crews = [{"a": (10, 100), "b": (30, 100)}, {"b": (31, 100), "c": (5, 100)}]
    looks = 0

    def memory() -> dict[str, tuple[int, int]]:
        nonlocal looks
        looks += 1
        return crews[min(looks, len(crews)) - 1]

    with driving(str(tmp_path), TYPED) as mine:
        mine._memory = memory
        deadline = time.monotonic() + 10
        while looks < 3 and time.monotonic() < deadline:
            time.sleep(0.02)
    workers = read_status(tmp_path).seen["workers"]
    assert (workers["workers"], workers["nbytes"], workers["largest_nbytes"]) == (2, 36, 31)
    assert names_of(tmp_path) == ["started", "worker_joined", "worker_lost", "worker_joined", "finished"]


@pytest.mark.usefixtures("quick")
def test_workers_of_a_cluster_are_seen(cluster: Client, tmp_path: Path) -> None:
    (tmp_path / "marks").mkdir()
    result = DaskEngine(run=str(tmp_path / "run")).reduce(COUNTS, CORPUS)
    assert_same(result.state, SerialEngine().reduce(COUNTS, CORPUS).state, exact=True)
    with DaskEngine().executor() as executor:  # is asked itself: so short a pass may end before its driver looks
        memory = executor.memory()
    assert memory.keys() == cluster.scheduler_info()["workers"].keys()
    assert all(takes > 10 << 20 and limit == 2 << 30 for takes, limit in memory.values())


def test_a_driver_is_known_by_its_process_here_and_by_its_heartbeat_elsewhere(tmp_path: Path) -> None:
    here, now = Holder.this(), time.time()
    write_driver(tmp_path, here, now - 10_000, work=None)
    assert read_status(tmp_path).state == "running", "its process is there"
    write_driver(tmp_path, here, now)
    assert read_status(tmp_path).state == "starting", "it has not said anything yet"
    write_driver(tmp_path, replace(here, started=here.started - 1000), now, work=None)
    assert read_status(tmp_path).state == "lost", "another process has its number"
    elsewhere = replace(here, machine="another boot", host="node7")
    write_driver(tmp_path, elsewhere, now - GONE_SECONDS + 30, work=None)
    assert read_status(tmp_path).state == "running"
    write_driver(tmp_path, elsewhere, now - GONE_SECONDS - 30, work=None)
    status = read_status(tmp_path)
    assert status.state == "lost"
    assert status.to_json()["driver"]["heartbeat_age"] == pytest.approx(GONE_SECONDS + 30, abs=5)


def test_a_second_driver_on_this_machine_is_refused(tmp_path: Path) -> None:
    other = replace(Holder.this(), pid=os.getppid(), started=psutil.Process(os.getppid()).create_time())
    write_driver(tmp_path, other, time.time(), work=None)
    with pytest.raises(ResumeError, match=f"worked on by process {os.getppid()}"), driving(str(tmp_path)):
        pass
    write_driver(tmp_path, other, time.time(), ended="interrupted")
    with driving(str(tmp_path)):
        pass


@pytest.mark.parametrize("ahead", [-4000, 0, 4000])
def test_a_second_driver_elsewhere_is_refused_while_the_first_gives_signs_of_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead: float
) -> None:
    """On whatever clock."""
    monkeypatch.setattr(driver, "BEAT_SECONDS", 0.1)
    other = replace(Holder.this(), machine="another boot", host="node7", pid=12)
    over = threading.Event()

    def live() -> None:
        while not over.wait(0.05):
            Folder(str(tmp_path)).write(DRIVER, driver_of(other, time.time() + ahead))

    write_driver(tmp_path, other, time.time() + ahead, work=None)
    thread = threading.Thread(target=live)
    thread.start()
    try:
        with pytest.raises(ResumeError, match="process 12 on node7.*kill 12 there"), driving(str(tmp_path)):
            pass
    finally:
        over.set()
        thread.join()
    with driving(str(tmp_path)):  # which has heard nothing for a while
        pass


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"seen": {}}', b"\xff" * 9, b"[" * 9999])
def test_a_damaged_driver_file_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / DRIVER).write_bytes(content)
    assert read_driver(Folder(str(tmp_path))) is None
    assert read_status(tmp_path).state == "stopped"


def test_a_status_that_cannot_be_written_costs_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / EVENTS).mkdir()
    (tmp_path / DRIVER).mkdir()
    got = SerialEngine(run=str(tmp_path)).reduce(COUNTS, CORPUS)
    assert_same(got.state, SerialEngine().reduce(COUNTS, CORPUS).state, exact=True)
    assert caplog.text.count("the status of the run cannot be written") == 1


def test_no_run_has_no_status(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is no run folder"):
        read_status(tmp_path)


@pytest.mark.usefixtures("quick")
def test_a_run_behind_a_url_has_status_and_the_log_of_its_driver(s3: str, tmp_path: Path) -> None:
    log = tmp_path / "out.log"
    log.write_text("said\n")
    with driving(f"{s3}/run", replace(TYPED, log=str(log))):
        SerialEngine(run=f"{s3}/run").reduce(COUNTS, CORPUS)
        assert read_status(f"{s3}/run").state == "running"
        log.write_text("said\nand more\n")
    status = read_status(f"{s3}/run")
    assert (status.state, status.log) == ("finished", f"{s3}/run/{LOG}")
    assert (status.events[0]["event"], status.events[-1]["event"]) == ("started", "finished")
    assert Folder(f"{s3}/run").read(LOG) == b"said\nand more\n"
    assert status.run is not None and status.run.finished
