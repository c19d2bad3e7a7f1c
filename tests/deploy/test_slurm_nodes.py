"""The same on several nodes: each is a host with a name and an address of its own, and nothing goes by loopback."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import nfs_dask as nfs
from tests.helpers.fault_hosts import hosts
from tests.helpers.fault_hosts import missing as missing_hosts
from tests.helpers.slurm import Slurm, missing, nodes_of, running_slurm, wait_for
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
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(missing()), reason=f"needs SLURM: {missing()}"),
    pytest.mark.skipif(bool(missing_hosts()), reason=f"needs {missing_hosts()}"),
]


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """node0, where people log in and no job runs, and three nodes of two cores."""
    folder = tmp_path_factory.mktemp("slurm")
    with hosts(4) as found:
        head, *nodes = nodes_of(found, folder)
        with running_slurm(folder, head, nodes, cpus=2) as slurm:
            yield slurm


def places_of(slurm: Slurm) -> dict[str, str]:
    """The node of each running job, and of each task of an array."""
    lines = slurm("squeue", "--noheader", "--array", "--states=RUNNING", "--format=%i %N").split("\n")
    return dict(line.split() for line in lines if line)


def test_scheduler_and_workers_are_on_nodes_of_their_own(slurm: Slurm, project: Path, store: Path, want: Any) -> None:
    """Without a word about the network; a node goes down in mid-pass, and its workers come back."""
    there = environment(project, 0.8) | {"INTERFACE": ""}
    words = ("--mem=2G", "--nodelist=node1", "driver.sbatch", store, "m", "run", 3, "-k", 20, "--no-cache")
    driver = slurm.submit(*words, environment=there, cwd=project)
    workers = slurm.submit("--array=1-3", "--mem=2G", "workers.sbatch", "run", environment=there, cwd=project)
    in_mid_pass(project / "run")
    on = places_of(slurm)
    assert on[driver] == "node1" and {on[f"{workers}_{i}"] for i in (1, 2, 3)} == {"node2", "node3"}
    address = json.loads((project / "run.cluster" / "scheduler.json").read_text())["address"]
    assert address.startswith("tls://10.78.0.2:")
    slurm("scontrol", "update", "NodeName=node3", "State=DOWN", "Reason=tried")  # until its slurmd reports again
    for job in wait_for(lambda: in_queue(slurm), 60, f"no worker is queued again\n{log_of(project)}"):
        slurm.release(job)
    assert not (project / "m").exists(), "it was met in mid-pass"
    environment(project, 0.02)
    ended(slurm, driver, "COMPLETED", project)
    assert_same_model(nfs.load_model(project / "m"), want)
    assert events_of(project / "run").count("worker_lost") >= 1
    for job in in_queue(slurm):
        slurm.release(job)
    wait_for(lambda: not slurm.jobs(), 60, f"workers are left\n{log_of(project)}")
    assert_clean(project)


def test_dask_jobqueue_drives_from_where_people_log_in(slurm: Slurm, project: Path, own_store: Path, want: Any) -> None:
    words = [own_store, "m", "run", "-k", "20", "--queue", "debug", "--interface", "eth0", "--most-workers", "4"]
    words += ["--memory", "1GiB", "--walltime", "00:10:00", "--scratch", project]
    command = [*slurm.head.within, sys.executable, "jobqueue_fit.py", *map(str, words)]
    there = {"cwd": project, "env": slurm.environment | environment(project, 0.3)}
    with open(project / "fit.log", "wb") as log:
        fit = subprocess.Popen(command, stdout=log, stderr=log, **there)
    try:
        in_mid_pass(project / "run")
        wait_for(lambda: len(running_workers(slurm, "dask-worker")) >= 3, 90, "there are not three workers")
        assert len({*places_of(slurm).values()}) >= 2
        environment(project, 0.02)
        assert fit.wait(200) == 0, log_of(project)
    finally:
        fit.kill()
        fit.wait()
    assert "m written" in log_of(project)
    assert_same_model(nfs.load_model(project / "m"), want)
    wait_for(lambda: not slurm.jobs(), 30, "workers are left")
    assert_clean(project)
