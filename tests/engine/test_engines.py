"""The same bits from every engine, for any number of workers, panels, runs, kills and repeats."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client, LocalCluster
from distributed.protocol.pickle import dumps

import nfs_dask.engine.plan as plans
from nfs_dask.cli.corpus import GeneratedCorpus
from nfs_dask.engine.choose import choose_engine
from nfs_dask.engine.distributed import DaskEngine
from nfs_dask.engine.handing_out import Handout
from nfs_dask.engine.serial import SerialEngine
from nfs_dask.errors import ClusterError, InputError, PlanError, ResumeError
from nfs_dask.files.folder import Folder
from nfs_dask.progress import Progress
from nfs_dask.statistics.counts import ClassCounts
from nfs_dask.statistics.statistic import State
from nfs_dask.store.cache import Kept
from nfs_dask.testing import assert_same, fold
from tests.helpers.clusters import TwoWorkers
from tests.helpers.misbehaving import Misbehaving
from tests.helpers.places import ROOT
from tests.helpers.wrapped import Wrapped

CORPUS = GeneratedCorpus(6000, 900, 3, words_per_document=20, block_rows=250)
COUNTS = ClassCounts(3, with_documents=True)


def truth(corpus: GeneratedCorpus = CORPUS) -> State:
    """The counts by numpy, without blocks, kernels or merges of ours."""
    X = np.zeros((corpus.n_rows, corpus.n_features), np.int64)
    codes = []
    for block in corpus.blocks(0, corpus.n_blocks):
        rows = block.first_row + np.repeat(np.arange(block.n_rows), np.diff(block.indptr))
        X[rows, block.indices] = block.data
        codes.append(block.codes)
    Y = np.eye(corpus.n_classes, dtype=np.int64)[np.concatenate(codes)]
    rows = Y.sum(axis=0)
    totals = {"rows": rows, "weight": rows.astype(float), "mass": np.array([X.sum()])}
    return State({"sums": Y.T @ X, "documents": Y.T @ (X > 0)}, totals)


TRUTH = truth()


@pytest.fixture
def cluster(mortal_cluster: Client) -> Client:
    """Workers that may be killed, as some of these tests do."""
    return mortal_cluster


@pytest.mark.parametrize("panels", [None, 1, 7])
@pytest.mark.parametrize("block_rows", [100, 6000])
def test_serial_equals_numpy(panels: int | None, block_rows: int) -> None:
    corpus = GeneratedCorpus(6000, 900, 3, words_per_document=20, block_rows=block_rows)
    result = SerialEngine(panels=panels).reduce(COUNTS, corpus)
    assert_same(result.state, truth(corpus), exact=True)
    assert (panels or 1) <= len(result.panels) <= 2 * (panels or 1) - 1


@pytest.mark.parametrize("panels", [None, 7])
def test_processes_equal_numpy(cluster: Client, panels: int | None) -> None:
    result = DaskEngine(panels=panels).reduce(COUNTS, CORPUS)
    assert_same(result.state, TRUTH, exact=True)


def while_it_ran(number: int) -> tuple[int, float, float]:
    """The number, and when the task began and ended, by a clock that all processes have."""
    begin = time.monotonic()
    time.sleep(0.02)
    return number, begin, time.monotonic()


@pytest.mark.parametrize("at_once", [None, 1, 2, 9])
def test_no_more_items_at_once_than_were_asked_for(cluster: Client, at_once: int | None) -> None:
    with DaskEngine().executor() as executor:
        found = executor.map_items(while_it_ran, list(range(5)), at_once=at_once)
    assert [number for number, _, _ in found] == list(range(5))
    for _, begin, _ in found:
        assert sum(other <= begin < end for _, other, end in found) <= (at_once or 5)
    if at_once == 1:
        assert [begin for _, begin, _ in found] == sorted(begin for _, begin, _ in found)


@pytest.mark.parametrize("processes", [False, pytest.param(True, marks=pytest.mark.slow)])  # two of them are above
@pytest.mark.parametrize("workers", [1, 4])
def test_workers_of_threads_and_of_processes_equal_numpy(workers: int, processes: bool) -> None:
    threads = 1 if processes else 2
    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=threads, processes=processes, dashboard_address=None
        ) as local,
        Client(local),
    ):
        for panels in (None, 7):
            assert_same(DaskEngine(panels=panels).reduce(COUNTS, CORPUS).state, TRUTH, exact=True)


def test_many_runs_merge_in_a_tree(cluster: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "RUN_SECONDS", 1e-6)
    monkeypatch.setattr(plans, "MERGING", 1e6)
    result = DaskEngine().reduce(COUNTS, CORPUS)
    assert result.plan is not None
    assert len(result.plan.runs) == 19
    assert result.plan.tasks > 20
    assert_same(result.state, TRUTH, exact=True)


def test_real_sums_keep_their_bits_under_the_same_plan(cluster: Client) -> None:
    source = Halved(CORPUS)
    first, second = (DaskEngine(panels=7).reduce(ClassCounts(3), source).state for _ in range(2))
    assert_same(first, second, exact=True)
    assert_same(SerialEngine().reduce(ClassCounts(3), source).state, first, exact=False)
    # Spooled entries keep the order of the documents, whatever the panels and workers.
    assert_same(SerialEngine(panels=3).reduce(ClassCounts(3), source).state, first, exact=True)


class Halved(Wrapped):
    """A corpus whose counts are multiplied by 0.7, so that sums are real."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner, kind="real", trusted=False)

    def blocks(self, start: int, stop: int) -> Any:
        for block in self.inner.blocks(start, stop):
            yield replace(block, data=block.data * 0.7)


def test_every_task_run_twice(cluster: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def twice(function: Any, *args: Any, **kwargs: Any) -> Any:
        function(*args, **kwargs)
        return function(*args, **kwargs)

    names: list[str] = []

    def done_twice(method: Any) -> Any:
        def other(self: Client, function: Any, *args: Any, **kwargs: Any) -> Any:
            names.append(function.__name__)
            return method(self, partial(twice, function), *args, **kwargs)

        return other

    for method in ("submit", "map"):
        monkeypatch.setattr(Client, method, done_twice(getattr(Client, method)))
    for panels in (None, 7):
        assert_same(DaskEngine(panels=panels).reduce(COUNTS, CORPUS).state, TRUTH, exact=True)
    assert {"run_task", "merge_task"} <= set(names)


@pytest.mark.parametrize("panels", [None, 7])
def test_a_pass_leaves_nothing_on_workers(cluster: Client, panels: int | None) -> None:
    DaskEngine(panels=panels).reduce(COUNTS, CORPUS)
    assert not [key for key in cluster.futures if str(key).startswith("nfs-")]


def test_states_are_let_go_as_they_are_merged(cluster: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "RUN_SECONDS", 1e-9)
    monkeypatch.setattr(plans, "MERGING", 1e6)
    held: list[int] = []
    finish = Handout._finish

    def counted(self: Handout, number: int) -> None:
        finish(self, number)
        held.append(sum(str(key).startswith("nfs-fold-run") for key in cluster.futures))

    monkeypatch.setattr(Handout, "_finish", counted)
    plan = DaskEngine(panels=1).reduce(COUNTS, CORPUS).plan
    assert plan is not None
    assert len(plan.runs) >= 12
    assert held[-1] <= 2 < max(held)  # all have been merged; the last one or two may be looked at still


@pytest.mark.parametrize("panels", [None, 7])
def test_a_killed_worker_costs_its_own_tasks(cluster: Client, tmp_path: Path, panels: int | None) -> None:
    source = Misbehaving(CORPUS, "kill", at_block=20, marks=str(tmp_path))
    assert_same(DaskEngine(panels=panels).reduce(COUNTS, source).state, TRUTH, exact=True)
    assert source.reads(20) == 2
    assert source.reads(0) <= 2  # of the other run, nothing was read again
    assert min(source.reads(0), source.reads(11)) == 1


def test_a_worker_that_always_dies_is_reported(
    cluster: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster.cluster.scheduler, "allowed_failures", 1)  # each one costs a new worker
    source = Misbehaving(CORPUS, "kill", at_block=3, marks=str(tmp_path), times=99)
    with pytest.raises(ClusterError, match=r"died 2 times.* out of memory"):
        DaskEngine().reduce(COUNTS, source)


def test_an_odd_error_is_retried(cluster: Client, tmp_path: Path) -> None:
    source = Misbehaving(CORPUS, "raise", at_block=3, marks=str(tmp_path))
    assert_same(DaskEngine().reduce(COUNTS, source).state, TRUTH, exact=True)


def test_bad_input_comes_back_at_once_and_in_words(cluster: Client) -> None:
    # All blocks are bad, and each worker begins with another one: the first to tell is heard.
    with pytest.raises(InputError, match=r"negative value -0.35 in row \d+, column"):
        DaskEngine().reduce(COUNTS, Negative(CORPUS))


class Negative(Halved):
    def blocks(self, start: int, stop: int) -> Any:
        for block in self.inner.blocks(start, stop):
            yield replace(block, data=np.full(block.nnz, -0.35))


def test_an_interrupted_run_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for panels, name in ((1, "dense"), (7, "scatter")):
        monkeypatch.setattr("nfs_dask.engine.tasks.CHECKPOINT_SECONDS", -1.0)
        monkeypatch.setattr(plans, "BATCH_NBYTES", 4 * CORPUS.block_nbytes)
        marks = tmp_path / f"marks-{name}"
        marks.mkdir()
        engine = SerialEngine(panels=panels, run=str(tmp_path / name))
        source = Misbehaving(CORPUS, "raise", at_block=17, marks=str(marks))
        with pytest.raises(OSError, match="had enough"):
            engine.reduce(COUNTS, source)
        result = engine.reduce(COUNTS, source)
        assert_same(result.state, TRUTH, exact=True)
        assert [source.reads(n) for n in (0, 15, 16, 17, 23)] == [1, 1, 2, 2, 1]
        assert engine.reduce(COUNTS, source).reused
        assert not list((tmp_path / name).glob("*/spool"))


def test_a_run_refuses_other_data_and_other_settings(tmp_path: Path) -> None:
    engine = SerialEngine(run=str(tmp_path / "run"))
    engine.reduce(COUNTS, CORPUS)
    with pytest.raises(ResumeError, match=r"other data \(.*rows: 6000 then, 500 now"):
        engine.reduce(COUNTS, GeneratedCorpus(500, 900, 3))
    with pytest.raises(ResumeError, match="threshold: 0.0 then, 2.0 now"):
        engine.reduce(replace(COUNTS, threshold=2.0), CORPUS)


def test_kept_statistics_are_found_again(tmp_path: Path) -> None:
    kept = Kept(Folder(str(tmp_path)), "abc")
    for panels in (1, 7):
        first = SerialEngine(panels=panels).reduce(replace(COUNTS, threshold=float(panels)), CORPUS, kept=kept)
        again = SerialEngine().reduce(replace(COUNTS, threshold=float(panels)), CORPUS, kept=kept)
        assert not first.reused
        assert again.reused
        assert_same(again.state, first.state, exact=True)
    both = SerialEngine().reduce(COUNTS, CORPUS, kept=kept)
    sums_only = SerialEngine().reduce(ClassCounts(3), CORPUS, kept=kept)
    assert not both.reused
    assert sums_only.reused  # counts with documents hold counts
    assert not SerialEngine().reduce(COUNTS, CORPUS, kept=replace(kept, fingerprint="other")).reused


def test_nothing_is_left_behind(cluster: Client, tmp_path: Path) -> None:
    result = DaskEngine(panels=7, spool=str(tmp_path)).reduce(COUNTS, CORPUS)
    assert [p.name.split("-")[1] for p in tmp_path.iterdir()] == ["panels"]
    assert_same(result.state, TRUTH, exact=True)
    del result
    assert not list(tmp_path.iterdir())
    with pytest.raises(InputError):
        DaskEngine(panels=7, spool=str(tmp_path)).reduce(COUNTS, Negative(CORPUS))
    assert not list(tmp_path.iterdir())


def test_a_plan_that_cannot_fit_is_refused_before_reading(cluster: Client) -> None:
    wide = GeneratedCorpus(6000, 50_000_000, 3, block_rows=250)
    with pytest.raises(PlanError, match="Give each worker"):
        DaskEngine(panels=1).reduce(COUNTS, wide)


def test_tasks_do_not_grow_with_the_data(cluster: Client) -> None:
    """A hundred thousand blocks make no larger a graph than a few hundred."""
    sizes = {}
    for n_blocks in (400, 100_000):
        corpus = GeneratedCorpus(n_blocks * 10, 900, 3, block_rows=10)
        plan = DaskEngine().plan(COUNTS, replace_seconds(corpus))
        sizes[n_blocks] = len(str(plan.to_json()))
        assert plan.tasks <= 64
    assert sizes[100_000] < 1.2 * sizes[400]


def replace_seconds(corpus: GeneratedCorpus) -> GeneratedCorpus:
    corpus._facts = replace(corpus.facts, nnz=corpus.n_blocks * 10**7)  # as if the blocks were as large as real ones
    return corpus


def test_adaptive_clusters_are_planned_at_their_maximum() -> None:
    with (
        LocalCluster(n_workers=0, threads_per_worker=1, processes=False, dashboard_address=None) as local,
        Client(local),
    ):
        local.adapt(minimum=0, maximum=3, interval="100ms")
        plan = DaskEngine().plan(COUNTS, CORPUS)
        assert plan.resources.workers == 3
        assert_same(DaskEngine().reduce(COUNTS, CORPUS).state, TRUTH, exact=True)


def test_no_scheduler_at_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nfs_dask.cluster.finding.CONNECT_SECONDS", 0.5)
    with pytest.raises(ClusterError, match="tcp://127.0.0.1:9 cannot be reached"):
        DaskEngine("tcp://127.0.0.1:9").reduce(COUNTS, CORPUS)


def test_workers_stay_lean(mortal_workers: TwoWorkers) -> None:
    heavy = ("sklearn", "pandas", "pyarrow", "anndata", "plotly", "h5py")

    def loaded() -> list[str]:
        import sys

        return [name for name in heavy if name in sys.modules]

    mortal_workers.close()  # new ones have loaded nothing for other tests
    with mortal_workers.client() as client:
        DaskEngine(panels=7).reduce(COUNTS, CORPUS)
        assert all(not names for names in client.run(loaded).values())


SCRIPT = """
import sys, time, logging
from nfs_dask.cli.corpus import GeneratedCorpus
from nfs_dask.engine.distributed import DaskEngine
from nfs_dask.statistics.counts import ClassCounts
from tests.helpers.misbehaving import Misbehaving
import os

if __name__ == "__main__":
    corpus = GeneratedCorpus(6000, 900, 3, words_per_document=20, block_rows=25)
    source = Misbehaving(corpus, "interrupt", at_block=200, marks=sys.argv[1], victim=os.getpid())
    run = sys.argv[3] if len(sys.argv) > 3 else None
    engine = DaskEngine(workers=2, memory_limit="1GiB", panels=7, spool=sys.argv[2], run=run)
    try:
        print(engine.reduce(ClassCounts(3), source).state.totals["rows"].sum())
    except KeyboardInterrupt:
        print("interrupted")
"""


@pytest.mark.parametrize("with_run", [pytest.param(False, marks=pytest.mark.slow), True])
def test_ctrl_c_cleans_up_and_a_run_resumes(tmp_path: Path, with_run: bool) -> None:
    marks, spool, run = (tmp_path / name for name in ("marks", "spool", "run"))
    marks.mkdir()
    spool.mkdir()
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), str(marks), str(spool), *([str(run)] if with_run else [])]
    helpers = os.environ | {"PYTHONPATH": str(ROOT)}  # which are not installed
    first = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=helpers)
    assert first.stdout.strip() == "interrupted", first.stderr
    assert not list(spool.iterdir())
    if with_run:
        assert list(run.glob("*/plan.json"))
        second = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=helpers)
        assert second.stdout.strip() == "6000", second.stderr


class Repeated(Wrapped):
    """One block of a corpus, over and over: a source of as many blocks as one likes."""

    def __init__(self, inner: Any, n_blocks: int) -> None:
        super().__init__(inner, n_blocks=n_blocks)

    def blocks(self, start: int, stop: int) -> Any:
        block = next(iter(self.inner.blocks(0, 1)))
        return (block for _ in range(start, stop))


def test_a_hundred_thousand_blocks(cluster: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is sent to the cluster stays far under 20 MB, and the pass is over in seconds."""
    sent = []

    def weighed(method: Any) -> Any:
        def other(self: Client, function: Any, *args: Any, **kwargs: Any) -> Any:
            # Copies of one argument are counted one by one: what `map` is given it may send as often.
            sent.append(sum(len(dumps(one)) for column in args for one in (column if method is mapped else [column])))
            return method(self, function, *args, **kwargs)

        return other

    mapped = Client.map
    for method in ("submit", "map"):
        monkeypatch.setattr(Client, method, weighed(getattr(Client, method)))
    monkeypatch.setattr(plans, "RUN_SECONDS", 1e-9)
    one = GeneratedCorpus(20, 50, 2, planted=2, block_rows=20)
    started = time.monotonic()
    state = DaskEngine().reduce(ClassCounts(2), Repeated(one, 100_000)).state
    assert 1_000 < sum(sent) < 1_000_000
    assert time.monotonic() - started < 60
    np.testing.assert_array_equal(
        state.arrays["sums"], 100_000 * fold(ClassCounts(2), list(one.blocks(0, 1))).arrays["sums"]
    )


@pytest.mark.parametrize("engine", [SerialEngine, DaskEngine])
@pytest.mark.parametrize("panels", [None, 7])
def test_progress_comes_from_inside_tasks(
    cluster: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, engine: Any, panels: int | None
) -> None:
    seen: dict[str, list[tuple[int, int]]] = {"blocks": [], "panels": [], "ready": []}
    advance = Progress.advance

    def told(self: Progress, n: int = 1, nbytes: int = 0) -> None:
        seen[self.unit].append((n, nbytes))
        advance(self, n, nbytes)

    monkeypatch.setattr(Progress, "advance", told)
    monkeypatch.setattr(plans, "BATCH_NBYTES", 1)
    found = engine(panels=panels, spool=str(tmp_path)).reduce(COUNTS, Slow(CORPUS)).panels
    blocks = list(CORPUS.blocks(0, CORPUS.n_blocks))
    wanted = {"blocks": (len(blocks), sum(block.nbytes for block in blocks))}
    if panels is not None:
        wanted["panels"] = len(found), 4 * sum(block.nnz for block in blocks)
    for unit, most in wanted.items():
        told_of = np.sum(seen[unit], axis=0)
        assert len(seen[unit]) >= 2
        if engine is SerialEngine:
            assert told_of.tolist() == [*most]
        assert np.all(told_of > 0) and np.all(told_of <= most), "what the last tasks tell may come too late"


class Slow(Halved):
    def blocks(self, start: int, stop: int) -> Any:
        time.sleep(0.15)
        return self.inner.blocks(start, stop)


def test_when_one_item_fails_the_others_have_stopped_writing(cluster: Client, tmp_path: Path) -> None:
    def write(item: int) -> None:
        import time
        from pathlib import Path

        from nfs_dask.errors import InputError

        Path(place, f"begun-{item}").touch()
        while item == 0 and not Path(place, "begun-1").exists():
            time.sleep(0.01)
        if item == 0:
            raise InputError("enough")
        for i in range(10):
            time.sleep(0.1)
            Path(place, f"late-{i}").touch()

    place = str(tmp_path)
    with (
        cluster.as_current(),
        DaskEngine().mapping(GeneratedCorpus(10, 100)) as mapping,
        pytest.raises(InputError, match="enough"),
    ):
        try:
            mapping(write, [0, 1])
        finally:
            then = sorted(tmp_path.iterdir())
            time.sleep(0.5)
            assert sorted(tmp_path.iterdir()) == then


def test_an_engine_is_a_value_of_ours() -> None:
    with pytest.raises(InputError, match=r"engine='dask'; give nfs_dask.SerialEngine\(\)"):
        choose_engine("dask", CORPUS)  # type: ignore[arg-type]


def test_of_two_clients_that_keep_the_same_one_result_stays(tmp_path: Path) -> None:
    kept = Kept(Folder(str(tmp_path)), "abc")
    for panels in (1, 7):
        statistic = replace(COUNTS, threshold=float(panels))
        engine = SerialEngine(panels=panels, spool=str(tmp_path / "spool"))
        with ThreadPoolExecutor(3) as pool:
            futures = [pool.submit(engine.reduce, statistic, CORPUS, kept=kept) for _ in range(3)]
        results = [future.result() for future in futures]
        for result in results[1:]:
            assert_same(result.state, results[0].state, exact=True)
        del result, results, futures
        gc.collect()
        names = [name for name in kept.folder.names() if name != "spool"]
        assert len(names) == 2 * (1 + (panels == 7))  # of each statistic a pointer and a folder
