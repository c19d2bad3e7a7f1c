"""What is in deploy/slurm, on a real SLURM of one node: jobs that end at any moment, and go on later, to the bit."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import nfs_dask as nfs
from nfs_dask.engine.run_status import read_status
from tests.helpers.slurm import Slurm, missing, running_slurm, wait_for
from tests.helpers.slurm_jobs import (
    assert_clean,
    assert_same_model,
    ended,
    environment,
    events_of,
    in_mid_pass,
    in_queue,
    log_of,
    running_workers,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(bool(missing()), reason=f"needs SLURM: {missing()}"),
]


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    with running_slurm(tmp_path_factory.mktemp("slurm")) as found:
        yield found


FIT = ("--cpus-per-task=2", "--mem=3G", "fit.sbatch")


def test_a_fit_is_a_job(slurm: Slurm, project: Path, store: Path, want: Any) -> None:
    words = (*FIT, store, "m", "run", "-k", 20, "--no-cache")
    job = slurm.submit(*words, environment=environment(project, 0.0), cwd=project)
    ended(slurm, job, "COMPLETED", project)
    assert_same_model(nfs.load_model(project / "m"), want)
    assert read_status(project / "run").state == "finished"
    assert_clean(project)


def test_the_time_limit_puts_a_job_back_into_the_queue(slurm: Slurm, project: Path, store: Path, want: Any) -> None:
    words = ("--time=2", "--signal=B:USR1@10", *FIT, store, "m", "run", "-k", 20, "--no-cache")
    job = slurm.submit(*words, environment=environment(project, 1.2), cwd=project)  # SLURM may be 60 s early
    in_mid_pass(project / "run")
    wait_for(lambda: slurm.facts(job)["Restarts"] == "1", 150, "it was not queued again")
    status = read_status(project / "run")
    assert (status.state, status.events[-1]["by"]) == ("interrupted", "SIGTERM")
    done = status.run.passes[0].blocks_done
    assert 0 < done < status.run.passes[0].plan.n_blocks
    slurm("scontrol", "update", f"JobId={job}", "TimeLimit=5")
    environment(project, 0.0)
    slurm.release(job)
    ended(slurm, job, "COMPLETED", project)
    assert_same_model(nfs.load_model(project / "m"), want)
    assert "resumed" in events_of(project / "run") and "queued again" in log_of(project)
    assert_clean(project)


@pytest.mark.parametrize("how", ["signal", "requeue", "preempt"])
def test_a_job_that_is_told_to_go_goes_on_later(slurm: Slurm, project: Path, store: Path, want: Any, how: str) -> None:
    words = (*FIT, store, "m", "run", "-k", 20, "--no-cache")
    job = slurm.submit(*words, environment=environment(project, 0.5), cwd=project)
    in_mid_pass(project / "run")
    if how == "signal":
        slurm("scancel", "--signal=TERM", "--batch", job)
        ended(slurm, job, "FAILED", project)
        assert slurm.facts(job)["ExitCode"] == "143:0"
        environment(project, 0.0)
        job = slurm.submit(*words, environment=environment(project, 0.0), cwd=project)
    else:
        if how == "requeue":
            slurm("scontrol", "requeue", job)
        else:
            (project / "urgent.sh").write_text("#!/bin/bash\nsleep 1\n")
            urgent = ("--partition=urgent", "--output=urgent.log", "--cpus-per-task=8", "--mem=1G", "urgent.sh")
            slurm.submit(*urgent, cwd=project)
        wait_for(lambda: slurm.state(job) == "PENDING", 60, "it is not queued again")
        environment(project, 0.0)
        slurm.release(job)
    assert not (project / "m").exists(), "it was met in mid-pass"
    ended(slurm, job, "COMPLETED", project)
    assert_same_model(nfs.load_model(project / "m"), want)
    events = events_of(project / "run")
    assert "resumed" in events and events[-1] == "finished"
    status = read_status(project / "run")
    assert status.run is not None and status.run.passes[0].finished
    assert_clean(project)


# Workers as jobs of their own


def test_a_scheduler_is_a_job_and_each_worker_another(slurm: Slurm, project: Path, store: Path, want: Any) -> None:
    """A worker is cancelled in mid-pass, the others retire before their time and come back; all of it with TLS."""
    there = environment(project, 1.0) | {"LIFETIME": "60s", "LIFETIME_STAGGER": "5s"}
    words = ("--mem=2G", "driver.sbatch", store, "m", "run", 3, "-k", 20, "--no-cache")
    driver = slurm.submit(*words, environment=there, cwd=project)
    workers = slurm.submit("--array=1-3", "--mem=2G", "workers.sbatch", "run", environment=there, cwd=project)
    in_mid_pass(project / "run")
    address = json.loads((project / "run.cluster" / "scheduler.json").read_text())["address"]
    assert address.startswith("tls://127.0.0.1:")
    assert stat.S_IMODE((project / "run.cluster").stat().st_mode) == 0o700
    assert not (project / "run.cluster" / "ca-key.pem").exists()
    slurm("scancel", f"{workers}_1")
    again = wait_for(lambda: in_queue(slurm), 150, "no worker has retired and is queued again")
    assert f"{workers}_1" not in again, "who was cancelled does not come back"
    assert slurm.state(driver) == "RUNNING" and not (project / "m").exists()
    environment(project, 0.02)
    slurm.release(again[0])
    ended(slurm, driver, "COMPLETED", project)
    assert_same_model(nfs.load_model(project / "m"), want)
    assert events_of(project / "run").count("worker_lost") >= 1
    for job in in_queue(slurm):  # they find that there is nothing left to do
        slurm.release(job)
    wait_for(lambda: not slurm.jobs(), 60, f"workers are left\n{log_of(project)}")
    assert_clean(project)


def test_a_driver_at_its_time_limit_comes_back_and_so_do_its_workers(
    slurm: Slurm, project: Path, store: Path, want: Any
) -> None:
    there = environment(project, 0.5)
    words = ("--mem=2G", "driver.sbatch", store, "m", "run", 2, "-k", 20, "--no-cache")
    driver = slurm.submit(*words, environment=there, cwd=project)
    slurm.submit("--array=1-2", "--mem=2G", "workers.sbatch", "run", environment=there, cwd=project)
    in_mid_pass(project / "run")
    slurm("scancel", "--signal=USR1", "--batch", driver)
    wait_for(lambda: slurm.state(driver) == "PENDING", 100, f"it is not queued again\n{log_of(project)}")
    assert read_status(project / "run").state == "interrupted" and not (project / "m").exists()
    assert not (project / "run.cluster" / "scheduler.json").exists()
    wait_for(lambda: len(in_queue(slurm)) == 3, 100, f"the workers are not queued again\n{log_of(project)}")
    environment(project, 0.02)
    for job in in_queue(slurm):
        slurm.release(job)
    ended(slurm, driver, "COMPLETED", project)
    assert_same_model(nfs.load_model(project / "m"), want)
    assert "resumed" in events_of(project / "run")
    wait_for(lambda: {*slurm.jobs().values()} <= {"PENDING"}, 60, f"workers are left\n{log_of(project)}")
    assert_clean(project)


def test_dask_jobqueue_starts_workers_and_ends_them(slurm: Slurm, project: Path, own_store: Path, want: Any) -> None:
    words = [own_store, "m", "run", "-k", "20", "--queue", "debug", "--interface", "lo", "--most-workers", "2"]
    words += ["--memory", "1GiB", "--walltime", "00:10:00", "--scratch", project]
    fit = subprocess.Popen(
        [sys.executable, "jobqueue_fit.py", *map(str, words)],
        cwd=project,
        env=slurm.environment | environment(project, 0.3),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        in_mid_pass(project / "run")
        wait_for(lambda: len(running_workers(slurm, "dask-worker")) == 2, 60, "there are not two workers")
        slurm("scancel", running_workers(slurm, "dask-worker")[0])
        out, err = fit.communicate(timeout=200)
    finally:
        fit.kill()
        fit.communicate()
    assert fit.returncode == 0, err
    assert "m written" in out
    assert_same_model(nfs.load_model(project / "m"), want)
    wait_for(lambda: not slurm.jobs(), 30, "workers are left")
    assert_clean(project)


def test_sigterm_ends_the_jobs_of_dask_jobqueue(slurm: Slurm, project: Path, own_store: Path, want: Any) -> None:
    words = [own_store, "m", "run", "-k", "20", "--queue", "debug", "--interface", "lo", "--most-workers", "2"]
    words += ["--memory", "1GiB", "--walltime", "00:10:00", "--scratch", project]
    command = [sys.executable, "jobqueue_fit.py", *map(str, words)]
    there = {"cwd": project, "env": slurm.environment | environment(project, 0.5)}
    fit = subprocess.Popen(command, **there)
    try:
        in_mid_pass(project / "run")
        fit.terminate()
        assert fit.wait(60) == 143
    finally:
        fit.kill()
        fit.wait()
    wait_for(lambda: not slurm.jobs(), 30, "workers are left")
    environment(project, 0.0)
    subprocess.run(command, **there, check=True, timeout=120)
    assert_same_model(nfs.load_model(project / "m"), want)
