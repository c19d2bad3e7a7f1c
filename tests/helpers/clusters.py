"""Clusters that tests share: one for those that kill workers, and one for all others."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import dask

from nfs_dask.cluster.worker_settings import PROFILES
from nfs_dask.units import MiB

MOST_NBYTES = 800 * MiB  # beyond, what earlier tests left in a worker might show in the plans of later ones

# Most of the time these clusters wait for a test that needs them. Dask's own looks at itself are then all they do: at
# fifty and a hundred a second in each process they took 7 % of a processor.
QUIET = {
    "distributed.admin.tick.interval": "1s",
    "distributed.worker.memory.monitor-interval": "500ms",
    PROFILES: False,
}


class TwoWorkers:
    """Two worker processes, started when they are first needed, and anew where their nannies restart them in vain."""

    def __init__(self, memory_limit: str) -> None:
        self.memory_limit = memory_limit
        self._local: Any = None

    def whole(self) -> Any:
        """The cluster with both workers, at leisure, whatever the last test did to them."""
        if self._local is not None and not (_comes_true(self._is_there) and self._is_slim()):
            self.close()
        if self._local is None:
            from distributed import LocalCluster

            with dask.config.set(QUIET):
                self._local = LocalCluster(
                    n_workers=2, threads_per_worker=1, memory_limit=self.memory_limit, dashboard_address=None
                )
        return self._local

    @contextmanager
    def client(self) -> Iterator[Any]:
        """A client of its own for each test, so that only those that ask for it have one."""
        from distributed import Client

        with Client(self.whole()) as client:
            yield client

    def _is_there(self) -> bool:
        workers = list(self._local.scheduler.workers.values())
        idle = all(worker.status.name == "running" and not worker.processing for worker in workers)
        return idle and len(workers) == 2 and self._local.status.name == "running"

    def _is_slim(self) -> bool:
        return all(worker.memory.process < MOST_NBYTES for worker in self._local.scheduler.workers.values())

    def close(self) -> None:
        if self._local is not None:
            self._local.close()
        self._local = None


def _comes_true(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


@contextmanager
def environment_of_workers(client: Any, values: Mapping[str, str]) -> Iterator[None]:
    """While this lasts, workers have these environment variables, and find S3 by them."""

    def change(values: Mapping[str, str | None]) -> dict[str, str | None]:
        import fsspec

        before = {name: os.environ.get(name) for name in values}
        for name, value in values.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        fsspec.get_filesystem_class("s3").clear_instance_cache()
        return before

    (before, *_) = client.run(change, dict(values)).values()
    try:
        yield
    finally:
        client.run(change, before)
