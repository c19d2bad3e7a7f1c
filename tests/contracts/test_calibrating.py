"""Costs of a cluster are measured wherever a fit runs, and what cannot run is refused in seconds."""

from __future__ import annotations

import json
import time
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
from scipy import sparse

import nfs_dask as nfs
from tests.helpers.commands import as_json, run


def test_data_that_only_fit_in_panels_are_calibrated(tmp_path: Path) -> None:
    """Counts of sixteen million features take 256 MB, and a worker of 600 MiB has half of that for a task."""
    columns = np.random.default_rng(0).integers(16_000_000, size=8000)
    X = sparse.csr_array((np.ones(8000, np.int8), (np.arange(8000) % 400, columns)), shape=(400, 16_000_000))
    store, costs = tmp_path / "wide.zarr", tmp_path / "costs.json"
    nfs.ingest(X, store, labels=np.repeat(["a", "b"], 200))
    where = ("--workers", 1, "--memory-limit", "600MiB")
    assert as_json("plan", store, *where)["strategy"] == "scatter"
    run("plan", store, *where, "--calibrate", costs)
    assert json.loads(costs.read_text())["seconds"]["panel"] > 0


@pytest.mark.slow
@pytest.mark.xfail(strict=True, reason="27, 2.4: a chunk is made and weighed before there is a plan")
def test_chunks_that_workers_cannot_hold_are_refused_in_seconds() -> None:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(2, threads_per_worker=1, memory_limit="400MiB", dashboard_address=None) as cluster,
        Client(cluster),
    ):
        X = da.random.default_rng(0).random((80_000, 1_000), chunks=(20_000, 1_000))
        began = time.monotonic()
        with pytest.raises(nfs.PlanError):
            nfs.SparseCentroid(k=5).fit(X, np.arange(80_000) % 2)
        assert time.monotonic() - began < 15
