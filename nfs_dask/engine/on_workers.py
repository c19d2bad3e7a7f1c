"""What runs on workers: tasks with what they report, what they are given and when they stop or refuse themselves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from nfs_dask.cluster.freed_memory import LARGEST_OF_PASSES, freed_memory_kept
from nfs_dask.engine.folding import Fold
from nfs_dask.engine.handing_out import WorkerTooSmall
from nfs_dask.engine.plan import Plan
from nfs_dask.engine.task_tally import TOPIC, count, tallied
from nfs_dask.engine.tasks import Job, Tick, merge_folds
from nfs_dask.errors import ClusterError, NfsDaskError
from nfs_dask.units import format_bytes

TICK_SECONDS = 0.5  # between two messages of one task


@dataclass(frozen=True)
class PickledJob:
    """A job that only the tasks of a pass unpickle.

    A scheduler would unpickle the arguments of each task, and keep the runs of the plan with each: with 256 workers
    that took gigabytes.
    """

    content: bytes = field(repr=False)  # what Dask writes of a task that fails has no part of it

    @classmethod
    def of(cls, job: Job) -> PickledJob:
        from distributed.protocol.pickle import dumps

        return cls(dumps(job))


def unpacked(given: Job | PickledJob) -> Job:
    """Return the job that a task was given, in either form."""
    from distributed.protocol.pickle import loads

    return cast(Job, loads(given.content)) if isinstance(given, PickledJob) else given


@dataclass(frozen=True)
class Failure:
    """An error of ours on its way from a task to the caller."""

    error: NfsDaskError


def run_task(
    function: Callable[..., Any], given: Job | PickledJob, args: tuple[Any, ...], name: str, shipped: Any = None
) -> Any:
    """Run one task on a worker; what it was given may be the failure of an earlier one."""
    job = unpacked(given)
    refuse_small(job.plan)
    failures = [one for one in (shipped, *args) if isinstance(one, Failure)]
    if failures:
        return failures[0]
    with freed_memory_kept(LARGEST_OF_PASSES), worker_tick(name) as tick:
        keywords = {"tick": tick} | ({} if shipped is None else {"shipped": shipped})
        try:
            return function(job, *args, **keywords)
        except NfsDaskError as error:
            count(refused_tasks=not isinstance(error, ClusterError))
            return Failure(error)


def run_item(function: Callable[..., Any], *items: Any) -> Any:
    """Run one call of `Executor.map_items` or `Executor.map_values` on a worker."""
    with freed_memory_kept():
        try:
            return function(*items)
        except NfsDaskError as error:
            return Failure(error)


def merge_task(given: Job | PickledJob, folds: Sequence[Fold | Failure]) -> Fold | Failure:
    """Merge the folds of neighbouring tasks."""
    job = unpacked(given)
    refuse_small(job.plan)
    for fold in folds:
        if isinstance(fold, Failure):
            return fold
    with freed_memory_kept(LARGEST_OF_PASSES):
        return merge_folds(job, folds)  # type: ignore[arg-type]


def refuse_small(plan: Plan) -> None:
    """Leave a task to other workers where it would not fit, rather than die of it."""
    from distributed import get_worker

    worker = get_worker()
    limit, threads = worker.memory_manager.memory_limit or 0, worker.state.nthreads
    if not plan.suits(limit, threads):
        raise WorkerTooSmall(
            f"a worker of {format_bytes(limit)} and {threads} thread(s) has no room for a task of a pass that was "
            f"planned for {format_bytes(plan.resources.memory_limit)} and {plan.resources.threads} thread(s)"
        )


def hand_on(value: Any) -> Any:
    """A literal as a task: workers fetch it from each other, and Dask makes it anew if it is lost."""
    return value


@contextmanager
def worker_tick(name: str) -> Iterator[Tick]:
    """Tell client and scheduler of the progress of a pass, by its name, from inside a task; notice that it is released.

    What was done since the last message is told at the end.
    """
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()
    last = time.monotonic()

    def tell() -> None:
        if done := {what: int(n) for what, n in tally.items() if n}:
            worker.log_event(TOPIC, {"pass": name, **done})
        tally.clear()

    def tick(blocks: int) -> None:
        nonlocal last
        tally["done"] += blocks
        if time.monotonic() - last > TICK_SECONDS:
            tell()
            last = time.monotonic()
            task = worker.state.tasks.get(key)
            if task is None or task.state in ("cancelled", "resumed"):
                raise ClusterError("the pass was cancelled")

    with tallied() as tally:
        try:
            yield tick
        finally:
            tell()


async def until_stopped(seconds: float, dask_worker: Any) -> None:
    """Wait on a worker for cancelled tasks that are running there; Dask does not interrupt them."""
    deadline = time.monotonic() + seconds
    await asyncio.sleep(0.1)  # the cancellation is on its way
    while time.monotonic() < deadline:
        with dask_worker.active_threads_lock:
            running = set(dask_worker.active_threads.values())
        tasks = [dask_worker.state.tasks.get(key) for key in running]
        if not any(task is None or task.state in ("cancelled", "resumed") for task in tasks):
            return
        await asyncio.sleep(0.05)
