"""Clusters that are shared or disturbed: workers that are busy with other work, and workers that are frozen."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from distributed import Client, LocalCluster
from sklearn.naive_bayes import MultinomialNB

import nfs_dask as nfs
from tests.helpers.commands import as_json
from tests.helpers.commands import run as run_command
from tests.helpers.slow_blocks import slow_environment

pytestmark = pytest.mark.timeout(400)  # clusters are started, and workers waited for
COMMAND = "import sys; from nfs_dask.cli.main import cli; cli(sys.argv[1:], prog_name='nfs-dask')"
X = np.random.default_rng(0).poisson(0.5, (2000, 30))
Y = np.arange(2000) % 2


@pytest.fixture(scope="module")
def marks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file for each process that has read a block."""
    return tmp_path_factory.mktemp("marks")


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory, marks: Path) -> str:
    """A path of modules with which processes take a quarter of a second for each block."""
    deed = f"""
def deed(number):
    open(os.path.join({str(marks)!r}, str(os.getpid())), "w").close()
"""
    return slow_environment(tmp_path_factory.mktemp("slow"), 0.25, deed=deed)["PYTHONPATH"]


@pytest.fixture(scope="module")
def local(slow: str) -> Iterator[Any]:
    """Three slow workers of one thread."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", slow)
        cluster = LocalCluster(n_workers=3, threads_per_worker=1, memory_limit="1GiB", dashboard_address=None)
    with cluster:
        yield cluster


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Thirty features in some sixty blocks."""
    place = str(tmp_path_factory.mktemp("store") / "mail.zarr")
    texts = [" ".join(f"w{column:02d}" for column in np.repeat(np.arange(30), row)) for row in X]
    nfs.ingest(texts, place, labels=Y.tolist(), block_bytes=4800, min_df=1)
    return place


@pytest.fixture
def client(local: Any) -> Iterator[Client]:
    with Client(local) as found:
        yield found


def workers(client: Client) -> dict[str, int]:
    """The process of each worker, by address."""
    return dict(client.run(os.getpid))


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def fit(store: str, **settings: Any) -> nfs.SparseMultinomialNB:
    return nfs.SparseMultinomialNB(k=30, engine=nfs.DaskEngine(**settings)).fit(nfs.open_dataset(store, reuse=False))


def assert_right(model: Any) -> None:
    """All features are kept, so that it is scikit-learn's."""
    order = np.argsort(model.get_feature_names_out())
    truth = MultinomialNB().fit(X, Y)
    assert np.allclose(model.feature_log_prob_[:, order], truth.feature_log_prob_)


def begin(*words: object, **environment: str) -> subprocess.Popen[str]:
    """Start a command."""
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, *map(str, words)],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def in_time(process: subprocess.Popen[str], seconds: float) -> tuple[int, str, str]:
    """The exit code of a command that ends in so many seconds, and what it said."""
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return process.returncode, " ".join(out.split()), " ".join(err.split())


def wait_for(there: Callable[[], Any], seconds: float = 120) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := there()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return found


def work_of(run: Path) -> dict[str, Any]:
    """What `nfs-dask status` tells of the work of a run."""
    return as_json("status", run)["work"] or {} if (run / "driver.json").exists() else {}


def test_a_busy_worker_is_not_waited_for_and_gets_work_when_it_is_free(
    local: Any, client: Client, store: str, marks: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="nfs_dask")
    pids = workers(client)
    busy = sorted(pids)[0]
    with Client(local, set_as_default=False) as other:
        theirs = other.submit(time.sleep, 12, workers=[busy], pure=False)
        wait_for(lambda: any(client.processing()[busy]))
        began = time.monotonic()
        assert_right(fit(store, address=client))
        seconds = time.monotonic() - began
        assert theirs.done(), "the fit went on for long enough that this worker was free"
    assert seconds < 90  # alone on the machine 18
    first, second, *_ = [record.message for record in caplog.records if record.name == "nfs_dask"]
    assert "waiting for workers: 2 ready" in first
    assert "2 of 3 workers are ready" in second and busy in second
    assert {path.name for path in marks.iterdir()} == {str(pid) for pid in pids.values()}


def test_what_all_workers_are_busy_with_is_waited_for(
    local: Any, client: Client, store: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Client(local, set_as_default=False) as other:
        theirs = [other.submit(time.sleep, 10, workers=[one], pure=False) for one in workers(client)]
        wait_for(lambda: all(client.processing().values()))
        assert_right(fit(store, address=client))
        other.gather(theirs)
    assert any("0 of 3 workers are ready" in message for message in caplog.messages)


def test_a_fit_inside_a_task_gives_its_thread_to_the_tasks_it_waits_for(local: Any, client: Client, store: str) -> None:
    every = [client.submit(fit, store, workers=[one], pure=False) for one in workers(client)]
    for future in every:
        assert_right(future.result(timeout=120))


def test_a_frozen_worker_is_named_and_a_fit_goes_on_without_it(client: Client, store: str, tmp_path: Path) -> None:
    pids, address = workers(client), client.scheduler.address
    silent = sorted(pids)[0]
    told = f"worker {silent} has been silent for"
    with frozen(pids[silent]):
        doctor = begin("doctor", "--scheduler", address, "--store", store)
        fitted = begin("fit", store, tmp_path / "m", "-k", 30, "--no-cache", "--scheduler", address)
        code, out, _ = in_time(doctor, 90)
        assert code == 0 and told in out and "Dask gives it up after 5 min (worker-ttl)" in out
        code, out, err = in_time(fitted, 150)
    assert code == 0, err
    assert told in err
    assert_right(nfs.load_model(tmp_path / "m"))


@pytest.mark.slow  # other jobs of the machine take from its ten seconds
@pytest.mark.parametrize("own", [False, True])
def test_sigterm_ends_a_fit_in_ten_seconds_with_a_frozen_worker(
    client: Client, store: str, slow: str, tmp_path: Path, own: bool
) -> None:
    run = tmp_path / "run"
    where = ("--workers", 2) if own else ("--scheduler", client.scheduler.address)
    fitting = begin("fit", store, tmp_path / "m", "-k", 30, "--no-cache", "--run", run, *where, PYTHONPATH=slow)
    wait_for(lambda: work_of(run).get("label") == "class counts")
    children = psutil.Process(fitting.pid).children(recursive=True)
    own_pids = [child.pid for child in children if "spawn_main" in " ".join(child.cmdline())]
    with frozen(own_pids[0] if own else next(iter(workers(client).values()))):
        time.sleep(0.5)
        fitting.terminate()
        code, _, err = in_time(fitting, 10)
    assert code == 143 and f"--resume {run}" in err
    assert as_json("status", run)["state"] == "interrupted"


def test_a_worker_that_freezes_in_mid_pass_is_named_by_the_pass_and_its_status(
    client: Client, store: str, slow: str, tmp_path: Path
) -> None:
    run, pids = tmp_path / "run", workers(client)
    silent = sorted(pids)[0]
    told = f"worker {silent} has been silent for"
    words = ("fit", store, tmp_path / "m", "-k", 30, "--no-cache", "--run", run)
    fitting = begin(*words, "--scheduler", client.scheduler.address, PYTHONPATH=slow)
    wait_for(lambda: work_of(run).get("nbytes_per_second"))
    with frozen(pids[silent]):
        (seen,) = wait_for(lambda: as_json("status", run)["workers"]["silent"])
        assert seen["address"] == silent and seen["worker_ttl"] == 300
        assert 5 < time.time() - seen["since"] < 60
        assert told in " ".join(run_command("status", run).stdout.split())
        wait_for(lambda: work_of(run)["seconds"] > 22)
    code, _, err = in_time(fitting, 60)
    assert code == 0 and told in err
    assert_right(nfs.load_model(tmp_path / "m"))
