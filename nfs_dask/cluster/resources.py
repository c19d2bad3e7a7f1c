"""What a pass may count on: workers, their threads and their memory.

The memory of a worker is its size when warm plus, for each of its threads, the largest task. Dask starts to spill at
0.6 of a worker's limit, so that is where plans stop. Where workers differ, it is the weakest that count: the one whose
threads have the least for a task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nfs_dask.redaction import PlacesHidden
from nfs_dask.units import MiB, format_bytes, format_seconds

USABLE = 0.6  # of a worker's memory limit; beyond it Dask writes to disk
SLACK = 16 * MiB  # of each thread: what the allocator keeps, messages, small objects

NEW_WORKER = 250 * MiB  # that hardly any worker takes which has done nothing yet


def budget_of_task(memory_limit: int, threads: int, warm: int) -> float:
    """Bytes that a task may take on each thread of a worker."""
    if not memory_limit:
        return float("inf")
    return (USABLE * memory_limit - warm) / threads - SLACK


@dataclass(frozen=True, repr=False)
class Resources(PlacesHidden):
    """What a plan may count on."""

    workers: int = 1
    threads: int = 1  # task slots of each worker; where they differ, of the weakest
    memory_limit: int = 0  # bytes of the weakest worker; 0: unlimited
    warm: int = 200 * MiB  # bytes a worker takes with the libraries loaded and the kernels compiled
    spool: str | None = None  # a folder that every worker reaches
    remote: bool = False  # tasks run elsewhere than the caller: what they cannot read is shipped to them
    all_threads: int = 0  # task slots of all workers, where not each has as many
    left_out: tuple[str, ...] = ()  # workers that are there, and are too small to be counted on
    without_smallest: Resources | None = None  # what there is if those like the weakest worker are left out

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Resources:
        return cls(**{**values, "left_out": tuple(values.get("left_out", ()))})

    @property
    def slots(self) -> int:
        return self.all_threads or self.workers * self.threads

    @property
    def task_budget(self) -> float:
        """Bytes that one task may take."""
        return budget_of_task(self.memory_limit, self.threads, self.warm)

    @property
    def restarting(self) -> str:
        """Advice for workers that take more than new ones do, as they have kept memory of earlier work."""
        kept = self.remote and self.warm > NEW_WORKER
        if not kept:
            return ""
        taken = format_bytes(self.warm)
        return f", or restart workers, which take {taken} now (client.restart(), which drops what is persisted)"

    def choices(self) -> Iterator[Resources]:
        """All workers first; then each time those like the weakest of the rest are left out."""
        one: Resources | None = self
        while one is not None:
            yield replace(one, without_smallest=None)
            one = one.without_smallest


@dataclass(frozen=True)
class Silent:
    """A worker that the scheduler has not heard of for a while."""

    address: str
    seconds: float
    ttl: float | None  # seconds after which Dask gives such a worker up; None: never

    def __str__(self) -> str:
        end = (
            "never, as worker-ttl is not set" if self.ttl is None else f"after {format_seconds(self.ttl)} (worker-ttl)"
        )
        return (
            f"worker {self.address} has been silent for {format_seconds(self.seconds)}; Dask gives it up {end}, and "
            "then repeats its tasks elsewhere"
        )


def some_names(names: Sequence[str], most: int = 5) -> str:
    """The first few names, and how many others there are.

    >>> some_names(["a", "b", "c"], 2)
    'a, b and 1 other(s)'
    """
    others = len(names) - most
    return ", ".join(names[:most]) + (f" and {others} other(s)" if others > 0 else "")
