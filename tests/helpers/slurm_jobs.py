"""Fits as jobs of SLURM: how they are submitted, met in mid-pass, and looked at when they have ended."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from nfs_dask.cli.corpus import GeneratedCorpus
from nfs_dask.engine.run_status import has_status, read_status
from tests.helpers.slow_blocks import slow_environment
from tests.helpers.slurm import Slurm, wait_for

SCRIPTS = Path(__file__).parents[2] / "deploy" / "slurm"
CORPUS = GeneratedCorpus(20_000, 300, 3, words_per_document=10, block_rows=100)


def environment(folder: Path, seconds: float) -> dict[str, str]:
    """As after ``activate``; each block takes its time."""
    slow = slow_environment(folder / "slow", seconds)
    slow["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), slow["PATH"], "/usr/sbin"])
    return {name: slow[name] for name in ("PATH", "PYTHONPATH")} | {"TMPDIR": str(folder), "INTERFACE": "lo"}


def in_mid_pass(folder: Path, blocks: int = 5) -> int:
    """How many blocks are done, once it is so many."""

    def done() -> int:
        if not has_status(folder):
            return 0
        found = read_status(folder)
        assert found.state in ("starting", "running", "interrupted", "lost", "stopped"), found
        work = found.seen.get("work") or {}
        return work["done"] if found.live and work.get("label") == "class counts" and work["done"] >= blocks else 0

    return wait_for(done, 240, f"it does not get into the pass\n{log_of(folder.parent)}")


def assert_same_model(got: Any, want: Any) -> None:
    assert got.objective_ == want.objective_
    assert got.get_support(indices=True).tolist() == want.get_support(indices=True).tolist()
    for name in ("feature_log_prob_", "class_log_prior_"):
        assert np.array_equal(getattr(got, name), getattr(want, name)), name


def assert_clean(project: Path) -> None:
    """Of what jobs had on the disk of the node, and of certificates, nothing is left."""
    mine = {script.name for script in SCRIPTS.iterdir()} | {"m", "run", "slow", "urgent.sh", "logs", "own.zarr"}
    left = {path.name for path in project.iterdir() if path.suffix != ".log"} - mine
    if "dask-scratch-space" in left and not [*project.glob("dask-scratch-space/*/")]:
        left.remove("dask-scratch-space")  # which Dask leaves in the temporary folder, with two empty locks
    assert not left, left


def log_of(project: Path) -> str:
    return "\n".join(f"{path.name}:\n{path.read_text()}" for path in sorted(project.glob("*.log")))


def ended(slurm: Slurm, job: str, state: str, project: Path, seconds: float = 300) -> None:
    over = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED")
    got = wait_for(lambda: (found := slurm.state(job)) in over and found, seconds, f"{job} goes on\n{log_of(project)}")
    assert got == state, f"{job} is {got}\n{slurm.facts(job)}\n{log_of(project)}"


def events_of(folder: Path) -> list[str]:
    return [event["event"] for event in read_status(folder, 1000).events]


def running_workers(slurm: Slurm, name: str) -> list[str]:
    lines = slurm("squeue", "--noheader", "--array", "--states=RUNNING", "--format=%A %F_%K %j").splitlines()
    return [line.split()[0] for line in lines if line.split()[-1] == name]


def in_queue(slurm: Slurm) -> list[str]:
    """Jobs, and tasks of arrays, that wait."""
    return [name.removesuffix("_N/A") for name in slurm(*"squeue --noheader --array -t PD -o %F_%K".split()).split()]
