"""Clusters of unlike workers, and blocks that take their time and note by which worker they were read."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dask

from nfs_dask.arrays.block import Block
from nfs_dask.engine.plan import ENTRY_SECONDS
from nfs_dask.sources.source import Source
from nfs_dask.units import parse_bytes
from tests.helpers.wrapped import Wrapped


class Noted(Wrapped):
    """Blocks of another source, each after a wait that depends on the worker; who read which is noted in a folder.

    Its facts say that it takes as long as it does on a worker of no name in ``seconds``.
    """

    def __init__(self, inner: Source, notes: Path, default: float = 0.0, seconds: Mapping[str, float] | None = None):
        entries = int(inner.n_blocks * default / ENTRY_SECONDS)
        super().__init__(inner, **({"nnz": entries} if default else {}))
        self.notes, self.default, self.seconds = str(notes), default, dict(seconds or {})

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        name = worker_name()
        for number in range(start, stop):
            Path(self.notes, f"{number}@{name}@{os.urandom(4).hex()}").touch()
            time.sleep(self.seconds.get(name, self.default))
            yield from self.inner.blocks(number, number + 1)

    def readers(self) -> Counter[str]:
        """How many blocks each worker has read."""
        return Counter(note.name.split("@")[1] for note in Path(self.notes).iterdir())

    def again(self) -> int:
        """How many blocks were read that had been read before."""
        numbers = [note.name.split("@")[0] for note in Path(self.notes).iterdir()]
        return len(numbers) - len(set(numbers))

    def others(self, name: str) -> int:
        """How many different blocks others than this worker have read."""
        return len(
            {
                number
                for number, reader, _ in (note.name.split("@") for note in Path(self.notes).iterdir())
                if reader != name
            }
        )


class Stuck(Noted):
    """The same, but a worker named "slow" begins what it is given when others have read all that it was not given.

    No worker is slower in any pass that comes to its end; and what it reads does not depend on the machine. After
    `PATIENCE` it goes on all the same, so that a pass that is held ends, too.
    """

    PATIENCE = 30.0  # seconds

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        deadline = time.monotonic() + self.PATIENCE
        rest = self.n_blocks - (stop - start)
        while worker_name() == "slow" and self.others("slow") < rest and time.monotonic() < deadline:
            time.sleep(0.01)
        yield from super().blocks(start, stop)


def worker_name() -> str:
    from distributed import get_worker

    return str(get_worker().name)


class UnevenCluster:
    """Workers by name, each with its memory and threads, that come and go: processes, or threads of this one."""

    def __init__(self, memory: Mapping[str, str], *, processes: bool, threads: Mapping[str, int] | None = None) -> None:
        from distributed import Scheduler, SpecCluster

        self.processes, self.threads = processes, dict(threads or {})
        # Workers in one process share its size: limits of each are for plans, and not for Dask's own monitor.
        unwatched = {f"distributed.worker.memory.{what}": False for what in ("target", "spill", "pause", "terminate")}
        self._settings = dask.config.set({} if processes else unwatched)
        scheduler = {"cls": Scheduler, "options": {"host": "127.0.0.1", "dashboard_address": None, "dashboard": False}}
        self.cluster = SpecCluster({name: self._spec(name, size) for name, size in memory.items()}, scheduler=scheduler)

    def _spec(self, name: str, memory: str) -> dict[str, Any]:
        from distributed import Nanny, Worker

        size = {"nthreads": self.threads.get(name, 1), "memory_limit": int(parse_bytes(memory))}
        return {"cls": Nanny if self.processes else Worker, "options": {"host": "127.0.0.1", **size}}

    def join(self, name: str, memory: str) -> None:
        self.cluster.worker_spec[name] = self._spec(name, memory)
        self.cluster.sync(self.cluster._correct_state)

    def retire(self, name: str) -> None:
        """As adaptive clusters do: what it holds moves to others."""
        from distributed import Client

        del self.cluster.worker_spec[name]
        with Client(self.cluster, set_as_default=False) as client:
            client.retire_workers(names=[name])

    def process(self, name: str) -> int:
        """The number of the process of a worker."""
        return int(self.cluster.workers[name].process.pid)

    def __enter__(self) -> UnevenCluster:
        return self

    def __exit__(self, *raised: Any) -> None:
        self.cluster.close()
        self._settings.__exit__(*raised)
