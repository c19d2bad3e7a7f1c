"""Clusters that we start: who can reach them, whatever the user has set for clusters of their own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import dask
import numpy as np
import psutil
import pytest
from distributed import LocalCluster

import nfs_dask as nfs
from nfs_dask.cli.corpus import GeneratedCorpus
from nfs_dask.cluster.local_cluster import start_cluster
from nfs_dask.errors import ClusterError
from nfs_dask.units import MiB
from tests.helpers.slow_blocks import slow_environment
from tests.helpers.sockets import listening, reached_from_elsewhere

CODE = "import sys; from nfs_dask.cli.main import cli; cli(sys.argv[1:], prog_name='nfs-dask')"
X, Y = np.eye(8, dtype=int), np.arange(8) % 2


def fitted_support(client: object) -> list[int]:
    model = nfs.SparseMultinomialNB(2, engine=nfs.DaskEngine(client)).fit(X, Y)
    return list(model.get_support(indices=True).tolist())


@pytest.mark.parametrize(
    ("processes", "settings"),
    [
        (False, {}),
        (True, {}),
        pytest.param(False, {"distributed.comm.default-scheme": "ws"}, marks=pytest.mark.slow),
        pytest.param(True, {"distributed.comm.default-scheme": "ws"}, marks=pytest.mark.slow),
        pytest.param(False, {"distributed.comm.require-encryption": True}, marks=pytest.mark.slow),
        pytest.param(
            True,
            {"distributed.comm.require-encryption": True, "scheduler-address": "tcp://127.0.0.1:9"},
            marks=pytest.mark.slow,
        ),
        pytest.param(True, {"distributed.scheduler.contact-address": "tcp://127.0.0.1:9"}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_nothing_listens_beyond_loopback(processes: bool, settings: dict[str, object]) -> None:
    before = listening(os.getpid())
    limit = 700 * MiB if processes else None  # threads are of this process, and other tests have left much in it
    with dask.config.set(settings), start_cluster(1, memory_limit=limit, processes=processes) as client:
        assert fitted_support(client) == [0, 1]
        opened = listening(os.getpid()) - before
        encrypted = client.scheduler.address.startswith("tls://")
    assert len(opened) >= (4 if processes else 2), "scheduler, worker, and their pages; of threads the pages alone"
    assert reached_from_elsewhere(opened) == set()
    assert encrypted is bool(settings.get("distributed.comm.require-encryption"))


def test_workers_keep_no_profiles_that_nobody_looks_at() -> None:
    with start_cluster(1, memory_limit=700 * MiB) as client:
        (watched,) = client.run(lambda dask_worker: sorted(dask_worker.periodic_callbacks)).values()
    assert "heartbeat" in watched
    assert not {"profile", "profile-cycle"} & set(watched)


def test_the_look_at_sockets_finds_what_is_open() -> None:
    """The test above would notice: this is what Dask does unless it is told otherwise."""
    before = listening(os.getpid())
    quiet = {"dashboard_address": None, "silence_logs": 50}
    with LocalCluster(n_workers=1, processes=False, **quiet), socket.create_server(("127.0.0.1", 0)) as own:
        opened, name = listening(os.getpid()) - before, own.getsockname()
    assert (os.getpid(), *name) in opened
    assert reached_from_elsewhere(opened)


def test_settings_that_stop_a_cluster_are_named() -> None:
    tls = {f"distributed.comm.tls.{role}.cert": "/nowhere.pem" for role in ("scheduler", "worker", "client")}
    broken = {"distributed.comm.require-encryption": True, "distributed.comm.tls.ca-file": "/nowhere.pem"}
    with (
        dask.config.set(broken | tls),
        pytest.raises(ClusterError, match="workers of this machine did not start .*No such file.*dask config list"),
        start_cluster(1, processes=False),
    ):
        pass


@pytest.mark.slow
def test_of_a_command_as_well(tmp_path: Path) -> None:
    corpus = GeneratedCorpus(4000, 300, 3, words_per_document=10, block_rows=100)
    nfs.ingest(corpus, tmp_path / "mail.zarr", block_bytes=8000)
    words = ["fit", "mail.zarr", "m", "-k", "20", "--no-cache", "--workers", "2"]
    environment = slow_environment(tmp_path / "slow", 0.2)
    with subprocess.Popen([sys.executable, "-c", CODE, *words], cwd=tmp_path, env=environment) as process:
        seen: set[tuple[int, str, int]] = set()
        while process.poll() is None:
            try:
                seen |= listening(process.pid)
            except psutil.NoSuchProcess:
                break
            time.sleep(0.1)
    assert process.returncode == 0
    assert len({pid for pid, _, _ in seen}) == 3, "the command and two workers"
    assert reached_from_elsewhere(seen) == set()
