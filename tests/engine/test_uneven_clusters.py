"""Workers that are slow, too small, late or gone: the same bits, and no more work again than has to be."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from distributed import Client, LocalCluster, Nanny, Scheduler, SpecCluster

import nfs_dask.engine.plan as plans
from nfs_dask.cli.corpus import GeneratedCorpus
from nfs_dask.engine.distributed import DaskEngine
from nfs_dask.engine.plan import SLOWER
from nfs_dask.errors import PlanError
from nfs_dask.statistics.counts import ClassCounts
from nfs_dask.statistics.statistic import State
from nfs_dask.testing import assert_same, fold
from tests.helpers.uneven import Noted, Stuck, UnevenCluster

CORPUS = GeneratedCorpus(4800, 900, 3, words_per_document=20, block_rows=20)  # 240 blocks
COUNTS = ClassCounts(3, with_documents=True)
BOTH = pytest.mark.parametrize("panels", [1, 5], ids=["dense", "scatter"])
ONE_QUICKLY = pytest.mark.parametrize("panels", [1, pytest.param(5, marks=pytest.mark.slow)], ids=["dense", "scatter"])
LARGE, SMALL = "64GiB", "250MiB"  # which is less than this process takes itself


@pytest.fixture(scope="module")
def truth() -> State:
    return fold(COUNTS, list(CORPUS.blocks(0, CORPUS.n_blocks)))


@pytest.fixture(autouse=True)
def short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many runs as a pass of hours has, in one of seconds."""
    monkeypatch.setattr(plans, "RUN_SECONDS", 1e-3)


@contextmanager
def cluster_of(processes: bool = False, **memory: str) -> Iterator[tuple[UnevenCluster, Client]]:
    with UnevenCluster(memory, processes=processes) as cluster, Client(cluster.cluster) as client:
        client.wait_for_workers(len(memory))
        yield cluster, client


@contextmanager
def meanwhile(noted: Noted, blocks: int, act: Callable[[], object]) -> Iterator[None]:
    """Do something as soon as so many blocks have been read."""

    def wait() -> None:
        deadline = time.monotonic() + 60
        while noted.readers().total() < blocks and time.monotonic() < deadline:
            time.sleep(0.01)
        act()

    thread = threading.Thread(target=wait)
    thread.start()
    yield
    thread.join()


# Too small


@ONE_QUICKLY
def test_a_worker_that_is_too_small_is_left_out_by_name(
    panels: int, truth: State, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    noted = Noted(CORPUS, tmp_path, 0.001)
    with cluster_of(a=LARGE, tiny=SMALL, b=LARGE), caplog.at_level(logging.WARNING, "nfs_dask"):
        result = DaskEngine(panels=panels).reduce(COUNTS, noted)
    assert_same(result.state, truth, exact=True)
    assert result.plan is not None
    assert result.plan.resources.workers == 2
    (left,) = result.plan.resources.left_out
    assert left.startswith("tiny (")
    assert left.endswith(", 250.0 MiB)")
    assert f"Left out  {left}: too small" in str(result.plan)
    assert caplog.text.count("left out of this pass") == 1  # however many stages it has
    assert "tiny" in caplog.text
    assert set(noted.readers()) == {"a", "b"}


@ONE_QUICKLY
def test_one_that_is_too_small_and_joins_gets_nothing(panels: int, truth: State, tmp_path: Path) -> None:
    noted = Noted(CORPUS, tmp_path, 0.005)
    with cluster_of(a=LARGE, b=LARGE) as (cluster, _), meanwhile(noted, 60, lambda: cluster.join("tiny", SMALL)):
        assert_same(DaskEngine(panels=panels).reduce(COUNTS, noted).state, truth, exact=True)
    assert set(noted.readers()) == {"a", "b"}
    assert noted.again() == 0


def test_a_task_that_came_to_a_small_worker_goes_elsewhere(
    truth: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where nobody has looked: it refuses itself, in time."""
    monkeypatch.setattr("nfs_dask.cluster.crew.LOOK_SECONDS", 60.0)
    noted = Noted(CORPUS, tmp_path, 0.005)
    with cluster_of(a=LARGE) as (cluster, _), meanwhile(noted, 30, lambda: cluster.join("tiny", SMALL)):
        assert_same(DaskEngine(workers=3).reduce(COUNTS, noted).state, truth, exact=True)
    assert set(noted.readers()) == {"a"}


def test_a_plan_for_larger_workers_is_refused_at_once(tmp_path: Path) -> None:
    engine, source = DaskEngine(run=str(tmp_path / "run")), Noted(CORPUS, tmp_path)
    (tmp_path / "run").mkdir()
    with cluster_of(a=LARGE):
        made = DaskEngine(run=str(tmp_path / "run")).plan(COUNTS, source)
    known = replace(made.resources, spool=engine.run, warm=200 << 20)  # not what the process of these tests takes
    large = replace(made, task_nbytes={"fold a run": 10 << 30}, resources=known)
    with (
        cluster_of(tiny=SMALL),
        pytest.MonkeyPatch.context() as patch,
        pytest.raises(
            PlanError, match=r"larger workers than there are: tiny \(.*250.0 MiB\)\. Start .* with 1[78].* GiB"
        ),
    ):
        patch.setattr("nfs_dask.engine.run_directory.RunDirectory.plan", lambda self: large)
        engine.reduce(COUNTS, source)


def test_threads_of_all_workers_are_counted() -> None:
    with UnevenCluster({"a": LARGE, "b": LARGE}, processes=False, threads={"b": 3}) as cluster, Client(cluster.cluster):
        made = DaskEngine().plan(COUNTS, CORPUS)
    assert made.resources.slots == 4
    assert "on 2 worker(s) with 4 threads" in str(made)


# Late, slow and gone, as threads of this process: what is counted


@ONE_QUICKLY
def test_who_joins_in_the_middle_gets_work(panels: int, truth: State, tmp_path: Path) -> None:
    noted = Noted(CORPUS, tmp_path, 0.01)
    with cluster_of(a=LARGE) as (cluster, _), meanwhile(noted, 50, lambda: cluster.join("late", LARGE)):
        assert_same(DaskEngine(panels=panels).reduce(COUNTS, noted).state, truth, exact=True)
    assert noted.readers()["late"] > 60  # of 240, and not quite half of the 190 that were left
    assert noted.again() == 0


@ONE_QUICKLY
def test_a_slow_worker_does_little_and_holds_nobody(panels: int, truth: State, tmp_path: Path) -> None:
    """However slow it is: it has one run, nothing waits behind that, and others do all the rest."""
    stuck = Stuck(CORPUS, tmp_path, 0.002)
    with cluster_of(a=LARGE, b=LARGE, slow=LARGE):
        result = DaskEngine(panels=panels).reduce(COUNTS, stuck)
    assert_same(result.state, truth, exact=True)
    assert result.plan is not None
    assert stuck.readers()["slow"] in [stop - start for start, stop in result.plan.runs[:3]]  # of the first ones
    assert stuck.readers()["slow"] <= CORPUS.n_blocks // (SLOWER * 3) == 20  # alike they would read 80 each
    assert stuck.again() == 0


# Processes


@pytest.mark.slow
@pytest.mark.parametrize("how", ["retired", "killed", "told to go"])
@pytest.mark.parametrize(("panels", "with_run"), [(1, False), (1, True), (5, False)])
def test_who_leaves_costs_its_run(how: str, panels: int, with_run: bool, truth: State, tmp_path: Path) -> None:
    """Spool files and checkpoints stay; without a run folder states go with the worker that holds them."""
    notes = tmp_path / "notes"
    notes.mkdir()
    noted = Noted(CORPUS, notes, 0.02)
    with cluster_of(processes=True, a="1GiB", b="1GiB", gone="1GiB") as (cluster, client):
        gone = client.run(os.getpid)[cluster.cluster.workers["gone"].worker_address]
        leave: dict[str, Callable[[], object]] = {
            "retired": lambda: cluster.retire("gone"),
            "killed": lambda: os.kill(gone, signal.SIGKILL),
            "told to go": lambda: os.kill(gone, signal.SIGTERM),
        }
        with meanwhile(noted, 100, leave[how]):
            run = str(tmp_path / "run") if with_run else None
            result = DaskEngine(panels=panels, run=run).reduce(COUNTS, noted)
    assert_same(result.state, truth, exact=True)
    assert result.plan is not None
    longest = max(stop - start for start, stop in result.plan.runs)
    held = 0 if panels > 1 or with_run else 100
    assert noted.again() <= longest + held


@pytest.mark.slow
@BOTH
def test_an_adaptive_cluster_grows_to_its_plan_and_shrinks_again(panels: int, truth: State, tmp_path: Path) -> None:
    noted = Noted(CORPUS, tmp_path, 0.15)
    with (
        LocalCluster(n_workers=0, threads_per_worker=1, memory_limit="1GiB", dashboard_address=None) as local,
        Client(local) as client,
    ):
        local.adapt(minimum=0, maximum=3, interval="200ms", wait_count=10)
        result = DaskEngine(panels=panels).reduce(COUNTS, noted)
        assert result.plan is not None
        assert result.plan.resources.workers == 3
        assert_same(result.state, truth, exact=True)
        deadline = time.monotonic() + 30
        while client.nthreads() and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not client.nthreads()
    assert len(noted.readers()) >= 3  # one that was ended too early may have been replaced


@pytest.mark.slow
@BOTH
def test_workers_with_a_lifetime(panels: int, truth: State, tmp_path: Path) -> None:
    """As ``dask worker --lifetime`` on nodes that are to go: each is followed by another."""
    noted = Noted(CORPUS, tmp_path, 0.25)
    options = {"host": "127.0.0.1", "nthreads": 1, "memory_limit": "1GiB", "lifetime": "25s", "lifetime_stagger": "5s"}
    spec = {"cls": Nanny, "options": {**options, "lifetime_restart": True}}
    scheduler = {"cls": Scheduler, "options": {"host": "127.0.0.1", "dashboard_address": None, "dashboard": False}}
    with SpecCluster({"a": spec, "b": spec}, scheduler=scheduler) as local, Client(local) as client:
        client.wait_for_workers(2)
        assert_same(DaskEngine(panels=panels).reduce(COUNTS, noted).state, truth, exact=True)


@pytest.mark.slow
def test_workers_stay_within_the_plan_whoever_is_slow(tmp_path: Path) -> None:
    """States of 16 MiB that wait for those of a slow worker."""

    def high_water() -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))

    wide = GeneratedCorpus(4800, 1 << 20, 2, words_per_document=20, block_rows=20)
    noted = Noted(wide, tmp_path, 0.05, {"slow": 0.4})
    with cluster_of(processes=True, a="2GiB", b="2GiB", slow="2GiB") as (_, client), pytest.MonkeyPatch.context() as m:
        m.setattr(plans, "MERGING", 1e6)
        plan = DaskEngine(panels=1).reduce(ClassCounts(2), noted).plan
        peaks = client.run(high_water)
    assert plan is not None
    assert len(plan.runs) > 30
    assert max(peaks.values()) <= plan.peak_nbytes
