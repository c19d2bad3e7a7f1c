"""Fits of which a worker dies in mid-pass come to the same bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import nfs_dask as nfs
from tests.helpers.mortal_chunks import CHUNKS, Y, array, rows

METHODS = {
    "multinomial": nfs.SparseMultinomialNB(k=8),
    "l1": nfs.SparseCentroid(k=8, metric="manhattan"),
    "hybrid": nfs.HybridNB(k=20),
}


def numbers(model: Any) -> list[bytes]:
    first = np.asarray(model.decision_function(rows(0)))
    return [model.get_support().tobytes(), first.tobytes(), np.float64(model.objective_).tobytes()]


@pytest.fixture(scope="module")
def in_memory() -> Any:
    return sparse.vstack([rows(i) for i in range(CHUNKS)], format="csr")


@pytest.mark.parametrize("method", METHODS)
def test_a_killed_worker_costs_no_more_than_what_it_did(
    method: str, in_memory: Any, mortal_cluster: Any, tmp_path: Path
) -> None:
    expected = numbers(METHODS[method].fit(in_memory, Y))
    METHODS[method].fit(array(tmp_path / "whole", 0.0), Y)
    found = METHODS[method].fit(array(tmp_path / "killed", 0.02, kill_at=30), Y)
    assert numbers(found) == expected
    assert (tmp_path / "killed.killed").exists()
    whole, again = ((tmp_path / name).read_text().count("\n") for name in ("whole", "killed"))
    assert again <= whole + CHUNKS  # the worker that died may have had all of them, while the other one starts
