"""What the tests of SLURM share; each has a SLURM of its own, the fixture ``slurm``."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import nfs_dask as nfs
from tests.helpers.commands import run
from tests.helpers.slurm import Slurm, wait_for
from tests.helpers.slurm_jobs import CORPUS, SCRIPTS


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "mail.zarr"
    assert nfs.ingest(CORPUS, path, block_bytes=8000).source.n_blocks >= 100
    return path


@pytest.fixture(scope="module")
def want(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The model of a fit that nothing happens to."""
    model = tmp_path_factory.mktemp("whole") / "m"
    run("fit", store, model, "-k", 20, "--no-cache")
    return nfs.load_model(model)


@pytest.fixture
def project(tmp_path: Path, slurm: Slurm) -> Iterator[Path]:
    """A folder as its user has it: the scripts and nothing else. Afterwards no job is left."""
    for script in SCRIPTS.iterdir():
        (tmp_path / script.name).write_bytes(script.read_bytes())
    yield tmp_path
    slurm("scancel", "--user=root")
    wait_for(lambda: not slurm.jobs(), 60, "jobs are left in the queue")


@pytest.fixture
def own_store(store: Path, project: Path) -> Path:
    """A copy, as statistics are kept beside it."""
    return Path(shutil.copytree(store, project / "own.zarr"))
