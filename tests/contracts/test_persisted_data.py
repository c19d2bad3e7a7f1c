"""What Dask holds for its users is not memory that a pass takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dask.array as da
import numpy as np
import pytest
from dask.distributed import Client, LocalCluster, wait

import nfs_dask as nfs

LIMIT = 640 << 20


@pytest.fixture(scope="module")
def one_worker() -> Iterator[Client]:
    """A client of one worker of 640 MiB, of which Dask keeps 384 MiB in memory before it writes to disk."""
    local = LocalCluster(n_workers=1, threads_per_worker=1, memory_limit=LIMIT, dashboard_address=None)
    with local, Client(local) as client:
        yield client


def counts(n_rows: int) -> da.Array:
    """Dense counts in chunks of 16 MiB."""

    def make(block_info: Any = None) -> Any:
        first, last = block_info[None]["array-location"][0]
        return (np.arange(first, last)[:, None] * np.arange(1, 65) % 7).astype(float)

    return da.map_blocks(make, chunks=((32_768,) * (n_rows // 32_768), (64,)), dtype=float)


def test_persisted_data_beyond_half_of_a_worker_are_fitted(one_worker: Client) -> None:
    X = counts(24 * 32_768)
    y = np.arange(len(X)) % 7 % 2
    held = one_worker.persist(X)
    wait(held)
    assert held.nbytes > LIMIT / 2
    found = nfs.SparseMultinomialNB(5).fit(held, y)
    there = nfs.SparseMultinomialNB(5).fit(X.compute(scheduler="threads"), y)
    assert np.array_equal(found.get_support(), there.get_support())
    assert np.array_equal(found.feature_log_prob_, there.feature_log_prob_)


def test_other_persisted_data_stand_in_no_way(one_worker: Client) -> None:
    other = one_worker.persist(da.random.default_rng(0).random((24 << 11, 1024), chunks=(2048, -1)))
    wait(other)
    total = float(other.sum().compute())
    X = counts(4 * 32_768)
    y = np.arange(len(X)) % 7 % 2
    nfs.SparseCentroid(5).fit(X, y)
    assert float(other.sum().compute()) == total


def test_memory_that_workers_keep_for_themselves_is_freed_as_the_message_says(one_worker: Client) -> None:
    def keep(dask_worker: Any) -> None:
        dask_worker.kept = np.ones(24 << 20)

    X = counts(4 * 32_768)
    y = np.arange(len(X)) % 7 % 2
    one_worker.run(keep)
    with Client(one_worker.cluster) as client:  # of which nothing is remembered
        with pytest.raises(nfs.PlanError, match=r"client\.restart\(\), which drops what is persisted"):
            nfs.SparseMultinomialNB(5).fit(X, y)
        client.restart()
        nfs.SparseMultinomialNB(5).fit(X, y)
