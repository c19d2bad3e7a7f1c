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


ALIKE = 0.25  # of the weakest worker's budget, that others have more and still count as like it

Worker = Mapping[str, Any]  # what a scheduler tells of one


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


def resources_of(workers: Mapping[str, Worker], planned: int, warm: int, spool: str | None) -> Resources:
    """What a plan may count on: all workers, and what there is without those like the weakest, and so on.

    ``planned`` may be more than there are, of a cluster that grows; the others are taken to be like those present.
    """

    def budget(address: str) -> float:
        return budget_of_task(workers[address]["memory_limit"], workers[address]["nthreads"], warm)

    chain: Resources | None = None
    ranked = sorted(workers, key=budget)
    for first in reversed(_kinds([budget(address) for address in ranked])):
        counted = [workers[address] for address in ranked[first:]]
        number = max(1, min(planned, max(len(counted), planned - first)))
        threads = sum(worker["nthreads"] for worker in counted)
        even = threads == len(counted) * counted[0]["nthreads"]
        chain = Resources(
            workers=number,
            threads=counted[0]["nthreads"],
            memory_limit=counted[0]["memory_limit"] or 0,
            warm=warm,
            spool=spool,
            remote=True,
            all_threads=0 if even else max(number, round(threads * number / len(counted))),
            left_out=tuple(name_of(address, workers[address]) for address in ranked[:first]),
            without_smallest=chain,
        )
    assert chain is not None
    return chain


def _kinds(budgets: Sequence[float]) -> list[int]:
    """Where, among ascending budgets, workers begin that have clearly more than those before."""
    firsts = [0]
    for i, budget in enumerate(budgets):
        weakest = budgets[firsts[-1]]
        if budget > weakest + ALIKE * abs(weakest):
            firsts.append(i)
    return firsts


def name_of(address: str, worker: Worker) -> str:
    """A worker as people know it, with its memory."""
    name, memory = worker.get("name", address), format_bytes(worker["memory_limit"] or 0)
    return f"{address} ({memory})" if name == address else f"{name} ({address}, {memory})"
