"""Passes on a cluster whose workers are not alike: one is slow, one joins, one leaves.

    python benchmarks/uneven.py [--workers 4] [--seconds 20] [--repeats 1] [--kinds dense scatter]

Workers are processes of one thread. Blocks wait, as for a network, rather than compute, so that the number of
processors does not count: 100 ms each, and four times as long on a slow worker. A pass takes --seconds if nothing
happens; what happens does so at half time, and a worker that joins then has to start and to load libraries first.
The dense pass has states of 8 MiB, the other is spooled. Counts are compared with those of the undisturbed pass. Shown
are medians of the seconds, blocks that were read more than once, and the largest peak of a worker beside the plan's.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from measure import peak_nbytes

from nfs_dask.arrays.block import Block
from nfs_dask.cli.corpus import GeneratedCorpus
from nfs_dask.engine.distributed import DaskEngine
from nfs_dask.engine.plan import ENTRY_SECONDS
from nfs_dask.sources.source import Source
from nfs_dask.statistics.counts import ClassCounts
from nfs_dask.units import format_bytes

BLOCK_SECONDS = 0.1
SLOWER = 4
FEATURES = 1 << 19  # two classes: 8 MiB
KINDS = {"dense": 1, "scatter": 4}  # panels of each kind of plan


class Waiting(Source):
    """One block over and over, each time after a wait; each read is noted in a file of the process that reads."""

    def __init__(self, n_blocks: int, notes: str) -> None:
        corpus = GeneratedCorpus(50, FEATURES, 2, words_per_document=20, block_rows=50)
        self.block, self.notes = next(iter(corpus.blocks(0, 1))), notes
        entries = int(n_blocks * BLOCK_SECONDS / ENTRY_SECONDS)  # as many as take that long
        self._facts = replace(corpus.facts, n_blocks=n_blocks, n_rows=50 * n_blocks, nnz=entries)
        self._sizes = corpus.sizes

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        import os

        from distributed import get_worker

        seconds = BLOCK_SECONDS * (SLOWER if str(get_worker().name).startswith("slow") else 1)
        for number in range(start, stop):
            with open(f"{self.notes}/{os.getpid()}", "a") as notes:
                notes.write(f"{number}\n")
            time.sleep(seconds)
            yield replace(self.block, first_row=50 * number, number=number)


def reads(notes: str) -> int:
    return sum(len(path.read_text().splitlines()) for path in Path(notes).iterdir())


class Cluster:
    """Worker processes that come and go by name."""

    def __init__(self, names: list[str]) -> None:
        from distributed import Nanny, Scheduler, SpecCluster

        self._nanny = {"cls": Nanny, "options": {"host": "127.0.0.1", "nthreads": 1, "memory_limit": "1GiB"}}
        scheduler = {"cls": Scheduler, "options": {"host": "127.0.0.1", "dashboard_address": None, "dashboard": False}}
        self.cluster = SpecCluster(dict.fromkeys(names, self._nanny), scheduler=scheduler)

    def join(self, name: str) -> None:
        self.cluster.worker_spec[name] = self._nanny
        self.cluster.sync(self.cluster._correct_state)

    def leave(self, name: str) -> None:
        """As an adaptive cluster ends a worker: its results move to others, what it was about is begun again."""
        from distributed import Client

        with Client(self.cluster, set_as_default=False) as client:
            client.retire_workers(names=[name])


def disturbances(workers: int) -> dict[str, tuple[list[str], Any]]:
    """The workers at the beginning, and what happens at half time."""
    names = [f"w{i}" for i in range(workers)]
    return {
        "nothing happens": (names, None),
        "one worker is 4 times slower": ([*names[:-1], "slow"], None),
        "one more joins at half time": (names, lambda cluster: cluster.join("late")),
        "one leaves at half time": (names, lambda cluster: cluster.leave(names[-1])),
    }


def one_pass(
    names: list[str], event: Any, panels: int, seconds: float, n_blocks: int
) -> tuple[float, int, int, int, np.ndarray]:
    """Seconds, blocks read again, the largest peak and that of the plan, and the counts."""
    from distributed import Client

    cluster = Cluster(names)
    with cluster.cluster, Client(cluster.cluster) as client, tempfile.TemporaryDirectory() as notes:
        client.wait_for_workers(len(names))
        engine = DaskEngine(panels=panels)
        engine.reduce(ClassCounts(2), Waiting(len(names), notes))  # all have compiled
        before = reads(notes)
        timer = threading.Timer(seconds / 2, event or (lambda _: None), [cluster])
        timer.start()
        started = time.perf_counter()
        done = engine.reduce(ClassCounts(2), Waiting(n_blocks, notes))
        took = time.perf_counter() - started
        timer.join()
        peak = max(client.run(peak_nbytes).values())
        assert done.plan is not None
        return took, reads(notes) - before - n_blocks, peak, done.plan.peak_nbytes, done.state.arrays["sums"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    options = parser.parse_args()
    n_blocks = int(options.workers * options.seconds / BLOCK_SECONDS)
    for kind in options.kinds:
        panels, truth = KINDS[kind], None
        for what, (names, event) in disturbances(options.workers).items():
            passes = [one_pass(names, event, panels, options.seconds, n_blocks) for _ in range(options.repeats)]
            truth = passes[0][-1] if truth is None else truth
            assert all((sums == truth).all() for *_, sums in passes)
            took, again, peak, planned, _ = zip(*passes, strict=True)
            print(
                f"{kind:8s} {what:30s} {statistics.median(took):6.1f} s, {max(again):4d} of {n_blocks} blocks read "
                f"again, peak {format_bytes(max(peak))} of planned {format_bytes(max(planned))}",
                flush=True,
            )


if __name__ == "__main__":
    main()
