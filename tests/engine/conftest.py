from __future__ import annotations

from collections.abc import Iterator

import pytest
from distributed import Client, LocalCluster


@pytest.fixture(scope="module")
def two_workers() -> Iterator[Client]:
    """Two worker processes of 1 GiB, that nannies restart when they die."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="1GiB", dashboard_address=None) as local,
        Client(local) as client,
    ):
        yield client


@pytest.fixture
def cluster(two_workers: Client) -> Client:
    """The two workers, both present, whatever the last test did to them."""
    two_workers.wait_for_workers(2, timeout=30)
    return two_workers
