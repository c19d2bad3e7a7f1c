"""What the time of a pass depends on: its work and its hosts in numbers, and how much there is of each term of a model.

Units are what the busiest core, or the longest chain of messages, has to do. So it is here that it is known what is
done side by side, and the costs of units do not depend on how many workers there are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from nfs_dask.files.ahead import BLOCKS_IN_FLIGHT, IN_FLIGHT
from nfs_dask.files.spool import MOST_PLACES

CHECKED_NBYTES = 1 << 14  # least that is read of an array of a spool file: what one checksum covers
OPENED_NBYTES = 1 << 17  # and of a file, to know what is in it
ARRAYS = 2  # of each block in a spool file, at least: entries, and where those of each bucket end
BLOCK_REQUESTS = 6  # of a store, for each block that is read

PHASES = {
    "prepare": "asking workers what they have",
    "schedule": "handing out tasks",
    "load": "reading the data over the network, and waiting for each block",
    "fold": "reading and counting entries",
    "spool": "sorting entries into spool files",
    "merge": "merging states, and sending the last one to the client",
    "shuffle": "sending spool files over the network, and waiting for each piece",
    "panels": "folding panels from spool files",
    "solve": "choosing features, on the client",
}


@dataclass(frozen=True)
class Term:
    """One term of the model: what it counts, and in which phase of a pass."""

    phase: str
    counts: str
    fitted: bool = True  # False: its units are seconds already


TERMS = {
    "fixed": Term("prepare", "passes"),
    "worker": Term("prepare", "workers"),
    "task": Term("schedule", "tasks, which one scheduler hands out"),
    "load": Term("load", "seconds that the data take over links and from the store", fitted=False),
    "request": Term("load", "seconds that the busiest worker waits for blocks to come, some at a time", fitted=False),
    "entry": Term("fold", "entries that the busiest core reads and counts"),
    "state": Term("fold", "bytes of states that it makes"),
    "run": Term("fold", "runs that it begins"),
    "spool": Term("spool", "entries that the busiest core reads, sorts and writes"),
    "spooled": Term("spool", "runs that it begins"),
    "merge": Term("merge", "bytes of states that the busiest core receives and adds, level by level"),
    "answer": Term("merge", "bytes of the last state, which the client gets through the scheduler"),
    "hop": Term("merge", "levels of the tree of merges"),
    "wire": Term("merge", "seconds that the longest chain of states takes over links"),
    "shuffle": Term("shuffle", "seconds that spool files and panels take over links and from the store", fitted=False),
    "piece": Term("shuffle", "seconds that the busiest worker waits for pieces of them, some at a time", fitted=False),
    "panel": Term("panels", "entries that the busiest core folds into panels"),
    "width": Term("panels", "bytes of panels that it makes and writes"),
    "made": Term("panels", "panels that it makes and writes"),
    "open": Term("panels", "pieces of spool files that it opens"),
    "fetch": Term("solve", "seconds that all panels take to the client over its link", fitted=False),
    "solve": Term("solve", "features that are looked at"),
}


@dataclass(frozen=True)
class PassWork:
    """A pass in numbers: all that its time depends on."""

    strategy: str
    entries: int
    n_features: int
    n_blocks: int
    runs: int
    busiest: int  # blocks that one slot goes through, at most
    fan_in: int
    state_nbytes: int  # of all features
    read_nbytes: int
    spool_nbytes: int
    batches: int  # spool files
    panels: int
    tasks: int
    remote: bool = True  # tasks run elsewhere than the caller
    packed_nbytes: int | None = None  # of a state on its way; None: as many as it has
    folds: int = 0  # tasks that fold panels; 0: each folds one

    def pieces(self, workers: int) -> int:
        """Reads of spool files, to fold all panels: the end of each file, and each array of each block in it."""
        arrays = self.fold_tasks * ARRAYS * self.n_blocks
        return arrays + self._opened(workers) if self.strategy == "scatter" else 0

    def shuffled_nbytes(self, workers: int) -> int:
        """Bytes of spool files, written, and read again by checked stretches; and of panels, which lie packed."""
        extra = self._opened(workers) * OPENED_NBYTES + self.fold_tasks * ARRAYS * self.n_blocks * CHECKED_NBYTES
        return 2 * self.spool_nbytes + extra + self.sent_nbytes if self.strategy == "scatter" else 0

    def _opened(self, workers: int) -> int:
        """How often a spool file is opened: once by a worker that remembers it, and else by every task."""
        remembered = min(self.batches, MOST_PLACES * self.batches // (ARRAYS * self.n_blocks))
        return min(workers, self.fold_tasks) * remembered + self.fold_tasks * (self.batches - remembered)

    @property
    def fold_tasks(self) -> int:
        """Tasks that fold panels."""
        return self.folds or self.panels

    @property
    def merged_nbytes(self) -> int:
        """Bytes of states that go from worker to worker, and through the scheduler to the client."""
        if self.strategy != "dense" or not self.remote:
            return 0
        return (self.runs - 1 + 2) * self.sent_nbytes

    @property
    def sent_nbytes(self) -> int:
        """Bytes of a whole state, on its way to another process."""
        return self.state_nbytes if self.packed_nbytes is None else self.packed_nbytes


@dataclass(frozen=True)
class Hosts:
    """Where a pass runs."""

    workers: int = 1
    threads: float = 1  # of each worker, on average
    cores: int | None = None  # of all hosts together; None: one for each thread
    network: float | None = None  # bits per second of each host's link, both ways; None: nothing is sent over links
    far: bool = False  # the data, and what is spooled, lie behind the network
    store: float | None = None  # bytes per second that the store gives to all workers together; None: no limit
    latency: float = 0.0  # seconds until the store answers a request

    @property
    def slots(self) -> int:
        return max(1, round(self.workers * self.threads))

    @property
    def parallel(self) -> int:
        """How many tasks compute at a time."""
        return self.slots if self.cores is None else min(self.slots, self.cores)

    def waiting(self, requests: float) -> float:
        """Seconds until the store has answered so many requests, one after another."""
        return requests * self.latency if self.far else 0.0

    def from_store(self, nbytes: float) -> float:
        """Seconds in which all workers together read or write so many bytes behind the network."""
        if not self.far:
            return 0.0
        over_links = 0.0 if self.network is None else 8 * nbytes / (self.workers * self.network)
        return max(over_links, 0.0 if self.store is None else nbytes / self.store)


def units(work: PassWork, hosts: Hosts, solved: bool = False) -> dict[str, float]:
    """How much of each term a pass has; ``solved``: features are chosen from what it has found."""
    share = max(1 / hosts.parallel, work.busiest / work.n_blocks)
    begun = max(work.runs / hosts.parallel, math.ceil(work.runs / hosts.slots))
    found = {
        "fixed": 1.0,
        "load": hosts.from_store(work.read_nbytes),
        "request": hosts.waiting(BLOCK_REQUESTS * work.n_blocks * share / BLOCKS_IN_FLIGHT),
    }
    if work.remote:
        found |= {"worker": hosts.workers, "task": work.tasks}
    if solved:
        found["solve"] = work.n_features
    if work.strategy == "dense":
        found |= {"entry": work.entries * share, "state": work.state_nbytes * begun, "run": begun}
        return found | _merging(work, hosts)
    panels = max(1 / hosts.parallel, math.ceil(work.fold_tasks / hosts.slots) / work.fold_tasks)
    pieces = work.pieces(hosts.workers)
    return found | {
        "spool": work.entries * share,
        "spooled": begun,
        "panel": work.entries * panels,
        "width": work.state_nbytes * panels,
        "made": work.panels * panels,
        "open": pieces * panels,
        "shuffle": hosts.from_store(work.shuffled_nbytes(hosts.workers)),
        "fetch": replace(hosts, workers=1).from_store(work.sent_nbytes) if solved else 0.0,
        "piece": hosts.waiting(pieces * panels / IN_FLIGHT),
    }


def _merging(work: PassWork, hosts: Hosts) -> dict[str, float]:
    """Units of a tree of merges. On each level the busiest core has its part of all merges, or the largest one."""
    levels = list(merge_levels(work.runs, work.fan_in))
    chain = sum(largest for _, largest in levels)  # states that wait for each other on one link
    busy = sum(max(added / hosts.parallel, largest) for added, largest in levels)
    if not work.remote:
        return {"merge": busy * work.state_nbytes}
    sent = (chain + 2) * work.sent_nbytes
    return {
        "merge": busy * work.state_nbytes,
        "answer": work.state_nbytes,
        "hop": len(levels),
        "wire": 0.0 if hosts.network is None else 8 * sent / hosts.network,
    }


def merge_levels(runs: int, fan_in: int) -> Iterator[tuple[int, int]]:
    """Of each level of a tree of merges: how many states are added to others, in all and by the largest merge."""
    while runs > 1:
        groups = -(-runs // fan_in)
        yield runs - groups, min(fan_in, runs) - 1
        runs = groups
