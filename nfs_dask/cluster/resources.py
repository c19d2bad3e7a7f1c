"""What a pass may count on: workers, their threads and their memory.

The memory of a worker is its size when warm plus, for each of its threads, the largest task. Dask starts to spill at
0.6 of a worker's limit, so that is where plans stop.
"""

from __future__ import annotations

from dataclasses import dataclass

from nfs_dask.redaction import PlacesHidden
from nfs_dask.units import MiB

USABLE = 0.6  # of a worker's memory limit; beyond it Dask writes to disk
SLACK = 12 * MiB  # of each thread: what the allocator keeps, messages, small objects


@dataclass(frozen=True, repr=False)
class Resources(PlacesHidden):
    """What a plan may count on."""

    workers: int = 1
    threads: int = 1  # task slots of each worker
    memory_limit: int = 0  # bytes per worker; 0: unlimited
    warm: int = 200 * MiB  # bytes a worker takes with the libraries loaded and the kernels compiled
    spool: str | None = None  # a folder that every worker reaches
    remote: bool = False  # tasks run elsewhere than the caller: what they cannot read is shipped to them

    @property
    def slots(self) -> int:
        return self.workers * self.threads

    @property
    def task_budget(self) -> float:
        """Bytes that one task may take."""
        if not self.memory_limit:
            return float("inf")
        return (USABLE * self.memory_limit - self.warm) / self.threads - SLACK
