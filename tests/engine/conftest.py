from __future__ import annotations

from collections.abc import Iterator

import pytest
from distributed import Client, LocalCluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Client]:
    """Two worker processes of 1 GiB, that nannies restart when they die."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="1GiB", dashboard_address=None) as local,
        Client(local) as client,
    ):
        yield client
