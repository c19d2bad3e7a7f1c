"""Clusters of real processes: a scheduler and two workers, here or each on a host of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.faults.scene import Running, Scene, wait_for
from tests.faults.table import Place

SCHEDULER, WORKER = "distributed.cli.dask_scheduler", "distributed.cli.dask_worker"


@dataclass
class Cluster:
    """A scheduler and workers; ``hosts`` are what each of them is started within, and their addresses."""

    scene: Scene
    hosts: Sequence[tuple[Sequence[str], str]]  # of the scheduler, and of each worker
    scheduler: Running | None = None
    workers: list[Running] = field(default_factory=list)
    address: str = ""
    ttl: str = "300s"  # as Dask has it
    _n: int = 0

    def start(self, of_workers: Sequence[dict[str, str]] = ({}, {})) -> None:
        """Start all of it, perhaps anew; ``of_workers`` is what the environment of each worker has besides."""
        self._n += 1
        file = self.scene.folder / f"scheduler-{self._n}.json"
        (within, host), *others = self.hosts
        how = {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": self.ttl}
        words = ("-m", SCHEDULER, "--host", host, "--port", 0, "--no-dashboard", "--scheduler-file", file)
        self.scheduler = self.scene.begin(words, within=within, **how)
        wait_for(file.exists, what="the scheduler")
        self.address = wait_for(lambda: json.loads(file.read_text() or "{}").get("address"), what="its address")
        for (within, host), own in zip(others, of_workers, strict=True):
            words = ("-m", WORKER, self.address, "--host", host, "--nthreads", 1, "--no-dashboard")
            self.workers.append(self.scene.begin(words, within=within, **own))

    def stop(self) -> None:
        """As an operator does."""
        started = [*self.workers, *([] if self.scheduler is None else [self.scheduler])]
        for one in started:
            if one.process.poll() is None:
                one.process.terminate()
        for one in started:
            one.end(60)
        self.workers, self.scheduler = [], None


LOOPBACK = ((), "127.0.0.1")


@contextmanager
def own_cluster(scene: Scene) -> Iterator[Place]:
    """A scheduler and two workers that somebody else has started."""
    cluster = Cluster(scene, [LOOPBACK] * 3)
    cluster.start()
    yield Place(lambda **how: scene.fit("--scheduler", cluster.address, **how), {"cluster": cluster})
    cluster.stop()
