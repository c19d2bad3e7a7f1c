"""How a run stands, from the files of its folder alone: on any machine that reaches them, on any day."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nfs_dask.engine.driver import DRIVER, LOG, read_driver
from nfs_dask.engine.plan import Plan
from nfs_dask.engine.run_directory import FINISHED, PLAN, RUN, kept_blocks, read_identity, reading
from nfs_dask.engine.run_events import EVENTS, read_events
from nfs_dask.errors import StoreError
from nfs_dask.files.claims import GONE_SECONDS, Holder
from nfs_dask.files.folder import Folder

LIVE = ("starting", "running")
ENDED = ("finished", "failed", "interrupted")


@dataclass(frozen=True)
class RunPass:
    """One pass of a run."""

    name: str  # of the statistic
    plan: Plan
    blocks_done: int  # blocks that need not be read again
    finished: bool

    def to_json(self) -> dict[str, Any]:
        return {
            "statistic": self.name,
            "blocks": self.plan.n_blocks,
            "blocks_done": self.blocks_done,
            "finished": self.finished,
            "plan": self.plan.to_json(),
        }


@dataclass(frozen=True)
class Run:
    """A run folder, and the data it belongs to."""

    location: str
    rows: int
    features: int
    fingerprint: str
    passes: tuple[RunPass, ...]
    nbytes: int | None  # None: not looked at, as behind a URL that takes long where there are many files

    @property
    def finished(self) -> bool:
        """Whether nothing that was begun is left to do."""
        return bool(self.passes) and all(one.finished for one in self.passes)

    def to_json(self) -> dict[str, Any]:
        return {
            "location": self.location,
            "rows": self.rows,
            "features": self.features,
            "fingerprint": self.fingerprint,
            "finished": self.finished,
            "nbytes": self.nbytes,
            "passes": [one.to_json() for one in self.passes],
        }


def is_run(location: str | os.PathLike[str]) -> bool:
    """Whether a run folder, of any version, lies there."""
    return Folder.of(location).exists(RUN)


def read_run(location: str | os.PathLike[str], *, size: bool = True) -> Run:
    """What was begun in a run folder, and how far it has got; with ``size``, also how large it is."""
    folder = Folder.of(location)
    identity = read_identity(folder)
    try:
        rows, features, fingerprint = int(identity["rows"]), int(identity["features"]), str(identity["fingerprint"])
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{folder.path(RUN)} is damaged ({error}); start a new run in another folder") from error
    begun = [name for name in folder.names() if (folder / name).exists(PLAN)]
    passes = tuple(_pass(folder / name) for name in begun)
    return Run(folder.location, rows, features, fingerprint, passes, folder.nbytes() if size else None)


def _pass(folder: Folder) -> RunPass:
    with reading(folder, PLAN) as content:
        plan = Plan.from_json(content)
        finished = folder.exists(FINISHED)
        done = plan.n_blocks if finished else kept_blocks(folder)
        return RunPass(str(plan.statistic["statistic"]), plan, min(int(done), int(plan.n_blocks)), finished)


@dataclass(frozen=True)
class RunStatus:
    """How a run stands."""

    location: str
    state: str  # starting, running, finished, failed, interrupted, lost (its driver has died), or stopped
    run: Run | None  # None: no pass has begun
    driver: Holder | None  # the process that drives it, or drove it last
    seen: Mapping[str, Any]  # at the driver's last sign of life
    events: tuple[Mapping[str, Any], ...]  # oldest first
    log: str | None  # where a detached driver writes what it says
    now: float

    @property
    def live(self) -> bool:
        """Whether something is at work on it."""
        return self.state in LIVE

    @property
    def resume(self) -> str | None:
        """The command that goes on with it, as it was typed where it began; None where nobody has typed one."""
        command = self.seen.get("command") or {}
        return command.get("resume") or next((e["resume"] for e in reversed(self.events) if e.get("resume")), None)

    @property
    def folder(self) -> str | None:
        """Where that was typed."""
        return (self.seen.get("command") or {}).get("folder")

    @property
    def message(self) -> str | None:
        """Why it has failed."""
        if self.state != "failed":
            return None
        return next((str(e.get("message")) for e in reversed(self.events) if e["event"] == "failed"), None)

    def to_json(self) -> dict[str, Any]:
        driver = self.driver
        return {
            "location": self.location,
            "state": self.state,
            "message": self.message,
            "driver": None
            if driver is None
            else {
                "host": driver.host,
                "pid": driver.pid,
                "started": driver.started,
                "heartbeat": driver.alive,
                "heartbeat_age": max(0.0, self.now - driver.alive),
                "alive": self.live,
            },
            "pass": self.seen.get("pass"),
            "work": self.seen.get("work"),
            "workers": self.seen.get("workers"),
            "resume": self.resume,
            "folder": self.folder,
            "log": self.log,
            "run": None if self.run is None else self.run.to_json(),
            "events": [dict(event) for event in self.events],
        }


def has_status(location: str | os.PathLike[str]) -> bool:
    """Whether a run was begun there, be it that it ended before its first pass."""
    folder = Folder.of(location)
    return is_run(location) or folder.exists(DRIVER) or folder.exists(EVENTS)


def read_status(location: str | os.PathLike[str], most_events: int = 100) -> RunStatus:
    """How the run in a folder stands; of the events, the last ones."""
    folder = Folder.of(location)
    if not has_status(location):
        raise StoreError(
            f"{folder.location} is no run folder; begin a run there with nfs-dask fit --run, or check the path"
        )
    found = read_driver(folder)
    driver, seen = (None, {}) if found is None else found
    run = read_run(location, size=False) if is_run(location) else None
    events = tuple(read_events(folder)[-most_events:])
    log = folder.path(LOG) if folder.exists(LOG) else None
    return RunStatus(folder.location, _state(driver, seen, run, events), run, driver, seen, events, log, time.time())


def _state(driver: Holder | None, seen: Mapping[str, Any], run: Run | None, events: Sequence[Mapping[str, Any]]) -> str:
    ended = seen.get("ended")
    if ended in ENDED:
        return str(ended)
    if ended == "left" and driver is not None:
        return "lost" if time.time() - driver.alive > GONE_SECONDS else "starting"
    if driver is None and events and events[-1]["event"] == "submitted":  # to a cluster, of which no worker has begun
        return "starting"
    if driver is None or ended is not None:  # nobody drives it now, and nothing has gone wrong
        return "finished" if run is not None and run.finished else "stopped"
    if driver.gone:
        return "lost"
    return "running" if "work" in seen else "starting"
