"""Workers of different sizes: what a plan may count on with all of them, and without the small ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nfs_dask.cluster.resources import Resources, budget_of_task
from nfs_dask.units import format_bytes

ALIKE = 0.25  # of the weakest worker's budget, that others have more and still count as like it

Worker = Mapping[str, Any]  # what a scheduler tells of one


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
