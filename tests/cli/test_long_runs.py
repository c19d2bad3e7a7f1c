"""Runs that end before they are done, go on, are looked at, and go on without their terminal. Real processes."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import nfs_dask as nfs
from nfs_dask.cli.corpus import GeneratedCorpus
from nfs_dask.cli.reporting import AT_ONCE, STOPPING
from nfs_dask.engine.driver import DRIVER, Command, driving
from nfs_dask.engine.run_status import read_status
from tests.helpers.commands import as_json, run
from tests.helpers.slow_blocks import slow_environment

CORPUS = GeneratedCorpus(4000, 300, 3, words_per_document=10, block_rows=100)
CODE = "import sys; from nfs_dask.cli.main import cli; cli(sys.argv[1:], prog_name='nfs-dask')"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "mail.zarr"
    assert nfs.ingest(CORPUS, path, block_bytes=8000).source.n_blocks >= 20
    return path


@pytest.fixture(scope="module")
def want(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The model of a fit that nothing happens to."""
    model = tmp_path_factory.mktemp("whole") / "m"
    run("fit", store, model, "-k", 20, "--no-cache")
    return nfs.load_model(model)


@pytest.fixture
def begin(store: Path, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a fit with a run folder, slow enough to be met in mid-pass."""
    begun: list[subprocess.Popen[str]] = []

    def start(*options: object, seconds: float = 0.2) -> subprocess.Popen[str]:
        words = ["fit", str(store), "m", "-k", "20", "--no-cache", *map(str, options)]
        process = subprocess.Popen(
            [sys.executable, "-c", CODE, *words],
            cwd=tmp_path,
            env=slow_environment(tmp_path / "slow", seconds),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        begun.append(process)
        return process

    yield start
    for process in begun:
        if process.poll() is None:
            process.kill()
        process.communicate()


def wait_for(there: Callable[[], Any], seconds: float = 60) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := there()):
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.05)
    return found


def in_mid_pass(folder: Path, blocks: int = 3, seconds: float = 60) -> Any:
    """Its status, once it has counted some blocks."""

    def looked() -> Any:
        if not (folder / DRIVER).exists():
            return None
        found = read_status(folder)
        assert found.live, found
        work = found.seen.get("work")
        return found if work and work["done"] >= blocks else None

    return wait_for(looked, seconds)


def assert_same_model(got: Any, want: Any) -> None:
    assert got.objective_ == want.objective_
    for name in ("support_mask_", "feature_log_prob_", "class_log_prior_"):
        if hasattr(want, name):
            assert np.array_equal(getattr(got, name), getattr(want, name)), name
    assert got.get_support(indices=True).tolist() == want.get_support(indices=True).tolist()
    rows = next(iter(CORPUS.blocks(0, 1)))
    X = np.zeros((rows.n_rows, 300))
    X[np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr)), rows.indices] = rows.data
    assert np.array_equal(got.predict_proba(X), want.predict_proba(X)), "to the bit"


def names_of(events: Any) -> list[str]:
    return [event["event"] for event in events if event["event"] not in ("progress", "checkpoint")]


def test_sigterm_keeps_what_was_counted_and_says_how_to_go_on(
    store: Path, tmp_path: Path, want: Any, begin: Callable[..., subprocess.Popen[str]]
) -> None:
    process = begin("--run", "run", "--workers", 2)
    seen = in_mid_pass(tmp_path / "run")
    assert (seen.state, seen.driver.pid) == ("running", process.pid)
    os.killpg(process.pid, signal.SIGTERM)  # to its workers as well, as batch systems do
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (143, "")
    resume = f"nfs-dask fit {store} m -k 20 --no-cache --resume run --workers 2"
    assert STOPPING in err and "Traceback" not in err
    assert f"Error: ended by SIGTERM; what was counted is kept, go on with {resume}" in err

    status = as_json("status", tmp_path / "run")
    (one,) = status["run"]["passes"]
    assert 0 < one["blocks_done"] < one["blocks"], "what was folded in mid-run is there as well"
    assert (status["state"], status["resume"], status["folder"]) == ("interrupted", resume, str(tmp_path))
    assert names_of(status["events"])[:2] == ["started", "pass_planned"]
    assert status["events"][-1]["event"] == "interrupted" and status["events"][-1]["by"] == "SIGTERM"
    assert f"resume       {resume}" in run("status", tmp_path / "run").stdout

    done = one["blocks_done"]
    run("fit", store, tmp_path / "m", "-k", 20, "--no-cache", "--resume", tmp_path / "run")
    assert_same_model(nfs.load_model(tmp_path / "m"), want)
    status = as_json("status", tmp_path / "run")
    assert status["state"] == "finished" and done < status["run"]["passes"][0]["blocks_done"]
    after = names_of(status["events"])
    assert after[after.index("interrupted") :] == [
        *("interrupted", "resumed", "pass_resumed", "pass_finished", "finished")
    ]


@pytest.mark.slow
def test_the_command_that_is_told_resumes_and_workers_are_seen(
    tmp_path: Path, want: Any, begin: Callable[..., subprocess.Popen[str]]
) -> None:
    process = begin("--run", "run", "--workers", 2, seconds=0.5)
    in_mid_pass(tmp_path / "run")
    wait_for(lambda: read_status(tmp_path / "run").seen.get("workers"))
    workers = read_status(tmp_path / "run").seen["workers"]
    assert workers["workers"] == 2 and workers["nbytes"] >= workers["largest_nbytes"] > 30 << 20
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    told = shlex.split(read_status(tmp_path / "run").resume or "")
    assert told[0] == "nfs-dask"
    subprocess.run([sys.executable, "-c", CODE, *told[1:]], cwd=tmp_path, check=True, capture_output=True)
    assert_same_model(nfs.load_model(tmp_path / "m"), want)


@pytest.mark.slow
def test_sigterm_while_workers_start_is_as_good(tmp_path: Path, begin: Callable[..., subprocess.Popen[str]]) -> None:
    process = begin("--run", "run", "--workers", 2)
    wait_for(psutil.Process(process.pid).children)
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 143 and "Traceback" not in err, err
    run_folder = read_status(tmp_path / "run")
    assert (run_folder.state, run_folder.run) == ("interrupted", None)


def test_a_killed_driver_is_lost_and_another_may_go_on(
    store: Path, tmp_path: Path, want: Any, begin: Callable[..., subprocess.Popen[str]]
) -> None:
    process = begin("--run", "run")
    in_mid_pass(tmp_path / "run", blocks=1)
    other = run("fit", store, tmp_path / "m", "-k", 20, "--resume", tmp_path / "run", code=3)
    assert f"is being worked on by process {process.pid}" in other.stderr
    process.kill()
    process.wait()
    status = read_status(tmp_path / "run")
    assert (status.state, status.live) == ("lost", False)
    assert "--resume run" in (status.resume or "")
    assert "died without a word" in run("status", tmp_path / "run").stdout
    run("fit", store, tmp_path / "m", "-k", 20, "--no-cache", "--resume", tmp_path / "run")
    assert_same_model(nfs.load_model(tmp_path / "m"), want)


def test_a_second_signal_ends_at_once() -> None:
    code = (
        "import time, click\n"
        "from nfs_dask.cli.reporting import announced\n"
        "with announced(lambda text: click.echo(text, err=True)):\n"
        "    try:\n"
        "        click.echo('ready', err=True)\n"
        "        time.sleep(60)\n"
        "    finally:\n"
        "        time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.stderr.readline().strip() == STOPPING
        process.send_signal(signal.SIGTERM)  # at the same moment: some programs pass on what came to them already
        time.sleep(0.8)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.stderr.readline().strip() == AT_ONCE
        assert process.wait(10) == 143


def test_a_program_keeps_its_own_handling_of_sigterm() -> None:
    code = (
        "import signal, os\n"
        "from nfs_dask.cli.reporting import announced\n"
        "with announced(print):\n"
        "    pass\n"
        "assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL\n"
        "came = []\n"
        "signal.signal(signal.SIGTERM, lambda *_: came.append(1))\n"
        "with announced(lambda text: None):\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "assert came\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_detached_fit_goes_on_by_itself(
    store: Path, tmp_path: Path, want: Any, begin: Callable[..., subprocess.Popen[str]]
) -> None:
    parent = begin("--run", "run", "--detach", "--json", seconds=0.12)
    out, err = parent.communicate(timeout=60)
    assert parent.returncode == 0, err
    told = json.loads(out)
    driver = psutil.Process(told["pid"])
    try:
        assert driver.pid != parent.pid and os.getsid(driver.pid) == driver.pid, "a session of its own"
        status = read_status(tmp_path / "run")
        assert status.state in ("starting", "running") and status.driver is not None
        assert status.driver.pid == driver.pid
        work = in_mid_pass(tmp_path / "run", blocks=1).seen["work"]
        assert 0 < work["done"] < work["total"] and not (tmp_path / "m").exists()
        assert "kill" in told["stop"] and "status" in told["look"]
        assert "progress" in run("status", tmp_path / "run").stdout
        watched = run("status", tmp_path / "run", "--watch", "--json").stdout.splitlines()
        states = [json.loads(line)["state"] for line in watched]
        assert states[0] == "running" and states[-1] == "finished" and len(states) > 1
    finally:
        if driver.is_running() and driver.status() != psutil.STATUS_ZOMBIE:
            driver.terminate()
    assert_same_model(nfs.load_model(tmp_path / "m"), want)
    assert '"k": 20' in (tmp_path / "run" / "driver.log").read_text(), "what the command prints goes there"


def test_a_detached_fit_that_fails_says_why(tmp_path: Path, begin: Callable[..., subprocess.Popen[str]]) -> None:
    parent = begin("--run", "run", "--detach", "--label-column", "nowhere")
    out, err = parent.communicate(timeout=60)
    assert parent.returncode == 0, err
    assert "goes on by itself" in out
    wait_for(lambda: not read_status(tmp_path / "run").live)
    status = as_json("status", tmp_path / "run")
    assert status["state"] == "failed" and "nowhere" in status["message"]
    wait_for(lambda: "nowhere" in (tmp_path / "run" / "driver.log").read_text())  # which is printed after that
    assert "because" in run("status", tmp_path / "run").stdout
    assert not (tmp_path / "m").exists()


def test_ctrl_c_ends_a_look_and_nothing_else(tmp_path: Path) -> None:
    with driving(str(tmp_path / "run"), Command("nfs-dask fit", "/")):
        # What was started in the background may have been told to ignore interruptions.
        heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        words = [sys.executable, "-c", heard + CODE, "status", str(tmp_path / "run"), "--watch"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline().split() == ["run", str(tmp_path / "run")]
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=30)
        assert (process.returncode, err) == (0, "")
    assert read_status(tmp_path / "run").state == "finished"


def test_detaching_needs_a_run_folder(store: Path, tmp_path: Path) -> None:
    assert "--run RUN" in run("fit", store, tmp_path / "m", "--detach", code=2).stderr


def test_status_of_what_is_no_run_is_refused(store: Path, tmp_path: Path) -> None:
    assert "is no run folder" in run("status", tmp_path, code=3).stderr
    assert "is no run folder" in run("status", store, code=3).stderr
