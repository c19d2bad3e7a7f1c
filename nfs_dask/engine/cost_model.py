"""The cost model of a pass: its work in units, what a unit costs, and the seconds that follow.

Units are what the busiest core, or the longest chain of messages, has to do, so that their costs do not depend on the
number of workers. Costs are fitted as in Ernest (Venkataraman, Yang, Franklin, Recht and Stoica, "Ernest: Efficient
Performance Prediction for Large-Scale Advanced Analytics", NSDI 2016): a few terms and a few small runs, by
non-negative least squares, so that no term is ever a gain.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from nfs_dask.errors import InputError
from nfs_dask.files.ahead import BLOCKS_IN_FLIGHT, IN_FLIGHT
from nfs_dask.files.spool import MOST_PLACES

FORMAT = 1
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


@dataclass(frozen=True)
class Costs:
    """What the units of each term cost, and how that is known."""

    seconds: Mapping[str, float]  # of a unit of each fitted term
    scheduler_nbytes: Mapping[str, float] = field(default_factory=dict)  # of its memory: fixed, of a task, of a worker
    command: str = ""  # that measured them
    machine: str = ""  # on which

    @classmethod
    def load(cls, path: str | Path) -> Costs:
        """Costs that a calibration wrote."""
        try:
            content = json.loads(Path(path).read_text())
            if content["format"] != FORMAT:
                raise InputError(f"{path} has format {content['format']}; this version reads {FORMAT}; calibrate again")
            seconds = {name: float(content["seconds"][name]) for name, term in TERMS.items() if term.fitted}
            nbytes = {name: float(value) for name, value in content["scheduler_nbytes"].items()}
            costs = cls(seconds, nbytes, str(content["command"]), str(content["machine"]))
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{path} holds no costs ({error}); write it with nfs-dask plan --calibrate") from error
        if not all(math.isfinite(value) and value >= 0 for value in seconds.values()):
            raise InputError(f"{path} has costs below 0, or none; write it again with nfs-dask plan --calibrate")
        return costs

    def save(self, path: str | Path) -> None:
        """Write them for `load`."""
        Path(path).write_text(json.dumps(self.to_json(), indent=1) + "\n")

    def to_json(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        return {
            "format": FORMAT,
            "command": self.command,
            "machine": self.machine,
            "seconds": {name: float(f"{value:.4g}") for name, value in self.seconds.items()},
            "scheduler_nbytes": {name: round(value) for name, value in self.scheduler_nbytes.items()},
        }


@cache
def usual_costs() -> Costs:
    """What ``python benchmarks/scaling.py`` has measured on one machine; the file says which."""
    with resources.as_file(resources.files("nfs_dask.engine") / "costs.json") as path:
        return Costs.load(path)


@dataclass(frozen=True)
class Measured:
    """A pass that was carried out, and the seconds of each of its phases."""

    work: PassWork
    hosts: Hosts
    phases: Mapping[str, float]


def fit(measured: Sequence[Measured], known: Costs, given: Collection[str] = ()) -> Costs:
    """Costs of the terms that these passes have, phase by phase; those ``given``, and of no pass, stay as known.

    By non-negative least squares of relative errors, so that short passes count as much as long ones.
    """
    seconds = dict(known.seconds)
    rows = [(one.phases, units(one.work, one.hosts)) for one in measured]
    for phase in PHASES:
        fixed = {name: seconds[name] for name, term in TERMS.items() if term.phase == phase and name in given}
        names = [name for name, term in TERMS.items() if term.phase == phase and term.fitted and name not in given]
        took = [(phases[phase], counts) for phases, counts in rows if phases.get(phase, 0) > 0]
        left = [(max(s - sum(counts.get(n, 0) * c for n, c in fixed.items()), 0), s, counts) for s, counts in took]
        seconds |= least_squares(left, [name for name in names if any(counts.get(name) for _, counts in took)])
    return replace(known, seconds=seconds)


def least_squares(rows: Sequence[tuple[float, float, Mapping[str, float]]], names: Sequence[str]) -> dict[str, float]:
    """Costs of 0 or more of the named units, from what they came to, on the scale that errors are judged by."""
    import numpy as np
    from scipy.optimize import nnls

    if not names:
        return {}
    matrix = np.array([[counts.get(name, 0) / scale for name in names] for _, scale, counts in rows])
    sizes = matrix.max(axis=0)
    found, _ = nnls(matrix / sizes, np.array([came_to / scale for came_to, scale, _ in rows]))
    return dict(zip(names, (found / sizes).tolist(), strict=True))


@dataclass(frozen=True)
class Forecast:
    """What passes will take, one after another, if the model is right."""

    works: Sequence[PassWork]
    hosts: Hosts
    costs: Costs
    terms: Mapping[str, float]  # seconds

    @property
    def seconds(self) -> float:
        return sum(self.terms.values())

    @property
    def phases(self) -> dict[str, float]:
        """Seconds of the phases that there are, in order."""
        found = {phase: [s for name, s in self.terms.items() if TERMS[name].phase == phase] for phase in PHASES}
        return {phase: sum(parts) for phase, parts in found.items() if sum(parts) > 0}

    @property
    def bottleneck(self) -> str:
        """The term that takes most."""
        return max(self.terms, key=self.terms.__getitem__)

    @property
    def tasks(self) -> int:
        return sum(work.tasks for work in self.works)

    @property
    def scheduler_nbytes(self) -> int:
        """Memory of the scheduler."""
        held, tasks = self.costs.scheduler_nbytes, max(work.tasks for work in self.works)
        return round(held.get("fixed", 0) + held.get("task", 0) * tasks + held.get("worker", 0) * self.hosts.workers)

    @property
    def moved_nbytes(self) -> int:
        """Bytes that go over links."""
        far = sum(work.read_nbytes + work.shuffled_nbytes(self.hosts.workers) for work in self.works if self.hosts.far)
        return far + sum(work.merged_nbytes for work in self.works)

    @property
    def worker_hours(self) -> float:
        return self.hosts.workers * self.seconds / 3600


def forecast(works: Sequence[PassWork], hosts: Hosts, costs: Costs | None = None, *, solved: bool = False) -> Forecast:
    """What passes take on these hosts; ``solved``: features are chosen in the end.

    ``costs`` are the usual ones, unless they were measured there.
    """
    costs = costs or usual_costs()
    counts = dict.fromkeys(TERMS, 0.0)
    for number, work in enumerate(works, 1):
        for name, count in units(work, hosts, solved and number == len(works)).items():
            counts[name] += count
    prices = {name: costs.seconds[name] if term.fitted else 1.0 for name, term in TERMS.items()}
    terms = {name: count * prices[name] for name, count in counts.items() if count * prices[name] > 0}
    return Forecast(tuple(works), hosts, costs, terms)
