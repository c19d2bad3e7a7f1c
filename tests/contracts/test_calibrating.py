"""Costs of a cluster are measured wherever a fit runs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
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
