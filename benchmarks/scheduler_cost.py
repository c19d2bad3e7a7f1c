"""What one scheduler and one client take for many blocks and many workers that have next to nothing to do.

    python benchmarks/scheduler_cost.py [--workers 16 64 128 256]

Workers are real ones, of one thread each, but many of them live in one process, and blocks are empty: what is left is
asking workers what they have, sending tasks out, and taking back small states. Processor time is what counts here, as
the scheduler and the client are one process each wherever they run. Workers beat without any pass, too: what that takes
the scheduler is measured while nothing else happens, and told apart.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import dask
import numpy as np
import psutil

from nfs_dask import DaskEngine
from nfs_dask.arrays.block import Block
from nfs_dask.sources.source import Facts, Sizes, Source
from nfs_dask.statistics.counts import ClassCounts

PROCESSES = 4
IDLE_SECONDS = 5.0
FEATURES = 1000
QUIET = {
    "distributed.admin.tick.limit": "1h",  # so many workers in a process are slow to answer
    "distributed.scheduler.worker-ttl": "1h",
    "distributed.comm.timeouts.connect": "60s",
    "logging": {"distributed": "error"},
}


class Empty(Source):
    """A source of any number of blocks without entries, of which a run reads one. Shipped, each is a task of Dask's."""

    def __init__(self, n_blocks: int, shipped: bool = False) -> None:
        self._facts = Facts(n_blocks, FEATURES, n_blocks, nnz=10**15, kind="count", trusted=True)
        self._sizes = Sizes(1000, 100, 10**15)
        if shipped:
            self.delayed = [dask.delayed(empty)(number) for number in range(n_blocks)]

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        yield empty(start)


def empty(number: int) -> Block:
    none = np.zeros(0, np.int32)
    return Block(np.zeros(2, np.int64), none, none.astype(np.uint8), np.zeros(1, np.int32), FEATURES, number=number)


def used() -> dict[str, float]:
    times = psutil.Process().cpu_times()
    return {"processor": times.user + times.system, "memory": psutil.Process().memory_info().rss}


def idle_rate(client: Any) -> float:
    """Seconds of processor that the scheduler takes for each second in which nothing but beats of workers happens."""
    before, started = client.run_on_scheduler(used), time.perf_counter()
    time.sleep(IDLE_SECONDS)
    after = client.run_on_scheduler(used)
    return float((after["processor"] - before["processor"]) / (time.perf_counter() - started))


def one_pass(client: Any, n_blocks: int, shipped: bool = False, idle: float = 0.0) -> dict[str, Any]:
    before, here = client.run_on_scheduler(used), used()
    started = time.perf_counter()
    plan = DaskEngine(address=client).reduce(ClassCounts(2), Empty(n_blocks, shipped)).plan
    seconds = time.perf_counter() - started
    after, now = client.run_on_scheduler(used), used()
    assert plan is not None
    return {
        "workers": plan.resources.workers,
        "blocks": n_blocks,
        "shipped": shipped,
        "tasks": plan.tasks,
        "seconds": seconds,
        "beats": idle * seconds,
        "scheduler": after["processor"] - before["processor"] - idle * seconds,
        "client": now["processor"] - here["processor"],
        "scheduler_nbytes": after["memory"],
        "client_nbytes": now["memory"],
        "plan_nbytes": len(json.dumps(plan.to_json())),
    }


async def serve(address: str, number: int) -> None:
    """Many workers in this process, until the scheduler closes them."""
    from distributed import Worker

    workers = [Worker(address, nthreads=1, dashboard=False, memory_limit=0) for _ in range(number)]
    await asyncio.gather(*workers)
    await asyncio.gather(*(worker.finished() for worker in workers))


@contextlib.contextmanager
def crowd(number: int) -> Iterator[Any]:
    """A client of a scheduler in a process of its own, with so many workers."""
    from distributed import Client

    python = [sys.executable, __file__]
    with contextlib.ExitStack() as stack:
        scheduler = subprocess.Popen([*python, "--scheduler"], stdout=subprocess.PIPE, text=True)
        stack.callback(_end, scheduler)
        assert scheduler.stdout is not None
        address = scheduler.stdout.readline().strip()
        for part in range(min(PROCESSES, number)):
            share = len(range(part, number, PROCESSES))
            stack.callback(_end, subprocess.Popen([*python, "--serve", address, str(share)]))
        client = stack.enter_context(Client(address, timeout=60, set_as_default=False))
        client.wait_for_workers(number, timeout=300)
        yield client


def _end(process: subprocess.Popen[Any]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


async def schedule() -> None:
    """A scheduler, whose address is printed."""
    from distributed import Scheduler

    async with Scheduler(host="127.0.0.1", port=0, dashboard=False, dashboard_address="127.0.0.1:0") as scheduler:
        print(scheduler.address, flush=True)
        await scheduler.finished()


def measure(workers: list[int], blocks: list[int], shipped: list[int]) -> Iterator[dict[str, Any]]:
    """Passes of all these sizes; the first of each cluster loads what is needed, and is left out."""
    for number in workers:
        with crowd(number) as client:
            one_pass(client, blocks[0])
            idle = idle_rate(client)
            yield from (one_pass(client, n, idle=idle) for n in blocks)
            if number == workers[0]:
                yield from (one_pass(client, n, shipped=True, idle=idle) for n in shipped)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", nargs="+", type=int, default=[16, 64, 128, 256])
    parser.add_argument("--blocks", nargs="+", type=int, default=[10_000, 1_000_000])
    parser.add_argument("--shipped", nargs="*", type=int, default=[1_000, 4_000])
    parser.add_argument("--scheduler", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    with dask.config.set(QUIET):  # before distributed is imported
        if options.scheduler:
            asyncio.run(schedule())
        elif options.serve:
            asyncio.run(serve(options.serve[0], int(options.serve[1])))
        else:
            for one in measure(options.workers, options.blocks, options.shipped):
                print(json.dumps(one), flush=True)


if __name__ == "__main__":
    main()
