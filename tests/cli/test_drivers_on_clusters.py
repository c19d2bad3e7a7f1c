"""Fits that a cluster drives by itself: they outlive their client and the worker that drives them. Real processes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from distributed import Client

import nfs_dask as nfs
from nfs_dask.cli.fit import submit_fit
from nfs_dask.cli.on_cluster import submit_driver
from nfs_dask.cluster.tls import make_certificates
from nfs_dask.engine.driver import STOP, Command
from nfs_dask.engine.run_status import RunStatus, read_status
from tests.cli.test_long_runs import CODE, CORPUS, assert_same_model, in_mid_pass, names_of, wait_for
from tests.helpers.commands import as_json, run
from tests.helpers.schedulers import Scheduler, scheduler_of_its_own
from tests.helpers.slow_blocks import slow_environment

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "mail.zarr"
    nfs.ingest(CORPUS, path, block_bytes=8000)
    return path


@pytest.fixture(scope="module")
def want(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    model = tmp_path_factory.mktemp("whole") / "m"
    run("fit", store, model, "-k", 20, "--no-cache")
    return nfs.load_model(model)


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[Scheduler]:
    """Three workers that take their time."""
    (tmp_path / "cluster").mkdir()
    with scheduler_of_its_own(tmp_path / "cluster", slow_environment(tmp_path / "slow", 0.8), 3) as found:
        yield found


def told_by(
    scheduler: Scheduler, store: Path, folder: Path, *options: str, environment: dict[str, str] | None = None
) -> dict[str, Any]:
    words = ["fit", str(store), "m", "-k", "20", "--no-cache", "--run", "run", "--scheduler", str(scheduler.file)]
    done = subprocess.run(
        [sys.executable, "-c", CODE, *words, "--detach", "--on-cluster", "--json", *options],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def driver_of(scheduler: Scheduler) -> tuple[psutil.Process, subprocess.Popen[bytes]]:
    """The process that drives, and the worker that started it."""
    (found,) = [
        (child, worker)
        for worker in scheduler.workers
        for child in psutil.Process(worker.pid).children()
        if "end_with_parent" in " ".join(child.cmdline())
    ]
    return found


def ended(folder: Path, seconds: float = 240) -> RunStatus:
    return wait_for(lambda: (found := read_status(folder)) and not found.live and found, seconds)


def test_it_goes_on_without_its_client(scheduler: Scheduler, store: Path, tmp_path: Path, want: Any) -> None:
    told = told_by(scheduler, store, tmp_path)
    process, _ = driver_of(scheduler)
    assert told["pid"] == process.pid and told["stop"] == "nfs-dask stop run"
    status = in_mid_pass(tmp_path / "run", seconds=150)
    assert status.driver.pid == process.pid
    other = run("fit", store, tmp_path / "m", "-k", 20, "--resume", tmp_path / "run", code=3)
    assert "is being worked on" in other.stderr
    assert ended(tmp_path / "run").state == "finished"
    assert_same_model(nfs.load_model(tmp_path / "m"), want)
    assert names_of(read_status(tmp_path / "run").events)[:2] == ["submitted", "started"]
    assert '"k": 20' in (tmp_path / "run" / "driver.log").read_text(), "it was asked for JSON, and so was the driver"


def test_another_worker_drives_on_when_the_first_is_killed(
    scheduler: Scheduler, store: Path, tmp_path: Path, want: Any
) -> None:
    told_by(scheduler, store, tmp_path)
    in_mid_pass(tmp_path / "run", seconds=150)
    process, worker = driver_of(scheduler)
    worker.kill()
    wait_for(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE, 60)
    status = ended(tmp_path / "run")
    assert status.state == "finished" and status.driver is not None and status.driver.pid != process.pid
    assert_same_model(nfs.load_model(tmp_path / "m"), want)
    assert [
        name for name in names_of(status.events) if name in ("started", "interrupted", "left", "resumed", "finished")
    ] == [*("started", "left", "resumed", "finished")]


def test_it_is_stopped_from_anywhere_and_resumed(scheduler: Scheduler, store: Path, tmp_path: Path, want: Any) -> None:
    told_by(scheduler, store, tmp_path)
    in_mid_pass(tmp_path / "run", seconds=150)
    process, _ = driver_of(scheduler)
    assert as_json("stop", tmp_path / "run")["state"] == "interrupted"
    wait_for(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE, 20)
    assert "is interrupted" in run("stop", tmp_path / "run").stdout and not (tmp_path / "run" / STOP).exists()
    time.sleep(2)
    assert not read_status(tmp_path / "run").live, "no other worker takes it for lost"
    resume = read_status(tmp_path / "run").resume or ""
    assert "--resume run" in resume and "--on-cluster" in resume
    run("fit", store, tmp_path / "m", "-k", 20, "--no-cache", "--resume", tmp_path / "run")
    assert_same_model(nfs.load_model(tmp_path / "m"), want)


def test_a_notebook_leaves_it_behind(
    scheduler: Scheduler, store: Path, tmp_path: Path, want: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Client(scheduler.address, set_as_default=False) as client:
        told = submit_fit(client, str(store), "m", "-k", "20", "--no-cache", "--run", "run")
    assert told["pid"] == driver_of(scheduler)[0].pid
    assert ended(tmp_path / "run").state == "finished"
    assert_same_model(nfs.load_model(tmp_path / "m"), want)


def test_secrets_and_places_that_workers_do_not_reach_are_refused(
    scheduler: Scheduler, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Client(scheduler.address, set_as_default=False) as client:
        with pytest.raises(nfs.InputError, match=r"s3://\*\*\*@bucket/x holds a secret"):
            submit_fit(client, "s3://me:hidden@bucket/x", "m", "--run", "run")
        with pytest.raises(nfs.InputError, match=r"s3://\*\*\*@bucket/x holds a secret"):
            submit_driver(client, ["a", "b"], "s3://me:hidden@bucket/x", ["a", "b"], Command("", ""))
        with pytest.raises(nfs.InputError, match="add '--run'"):
            submit_fit(client, str(store), "m")
        assert not (tmp_path / "run").exists()
    refused = run("fit", store, tmp_path / "m", "--run", tmp_path / "run", "--detach", "--on-cluster", code=2)
    assert "--scheduler ADDRESS" in refused.stderr


def test_its_certificates_are_those_of_the_worker(store: Path, tmp_path: Path, want: Any) -> None:
    """The client's, and what else it has that is secret, stay with the client."""
    certificates = tmp_path / "certificates"
    make_certificates(certificates)
    tls = {"REQUIRE_ENCRYPTION": "true", "TLS__CA_FILE": str(certificates / "ca.pem")}
    for role in ("scheduler", "worker"):
        tls |= {f"TLS__{role.upper()}__CERT": str(certificates / f"{role}.pem")}
        tls |= {f"TLS__{role.upper()}__KEY": str(certificates / f"{role}-key.pem")}
    there = slow_environment(tmp_path / "slow", 0.3)
    (tmp_path / "cluster").mkdir()
    encrypted = there | {f"DASK_DISTRIBUTED__COMM__{name}": value for name, value in tls.items()}
    with scheduler_of_its_own(tmp_path / "cluster", encrypted, 2) as scheduler:
        assert scheduler.address.startswith("tls://")
        mine = ("--tls-ca", "ca.pem", "--tls-cert", "client.pem", "--tls-key", "client-key.pem")
        mine = tuple(word if word.startswith("--") else str(certificates / word) for word in mine)
        told_by(scheduler, store, tmp_path, *mine, environment=there | {"CANARY_SECRET": "canary-7e1f"})
        driver, _ = driver_of(scheduler)
        assert "client" not in " ".join(driver.cmdline()) and "canary" not in str(driver.environ())
        assert ended(tmp_path / "run").state == "finished"
    assert_same_model(nfs.load_model(tmp_path / "m"), want)


def test_a_lost_scheduler_ends_a_fit_with_the_command_that_goes_on(
    scheduler: Scheduler, store: Path, tmp_path: Path, want: Any
) -> None:
    words = ["fit", str(store), "m", "-k", "20", "--no-cache", "--run", "run", "--scheduler", str(scheduler.file)]
    with subprocess.Popen(
        [sys.executable, "-c", CODE, *words],
        cwd=tmp_path,
        env=slow_environment(tmp_path / "slow", 0.8),  # its plan has batches of one block, too
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as client:
        in_mid_pass(tmp_path / "run", seconds=150)
        scheduler.process.send_signal(signal.SIGKILL)
        out, err = client.communicate(timeout=100)
    assert (client.returncode, out) == (4, ""), err
    resume = f"nfs-dask fit {store} m -k 20 --no-cache --resume run --scheduler {scheduler.file}"
    said = err.rstrip().rpartition("\nError: ")[2]  # what libraries log of the lost connection may come before
    assert "scheduler is gone" in said and "begin again" not in said
    assert said.endswith(f"what was counted is kept, go on with {resume}")
    status = read_status(tmp_path / "run")
    assert (status.state, status.resume) == ("failed", resume)
    run("fit", store, tmp_path / "m", "-k", 20, "--no-cache", "--resume", tmp_path / "run")
    assert_same_model(nfs.load_model(tmp_path / "m"), want)
