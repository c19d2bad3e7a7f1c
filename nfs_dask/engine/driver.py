"""The driver of a run: the process that carries out its passes, and what it lets others see of itself.

    driver.json      who drives: machine, process, last sign of life, and how far it was then; replaced at each sign
    events.jsonl     what has happened
    stop             somebody, anywhere, asks the driver to end as SIGTERM would

Both are for people who look, from another terminal or on another day. Nothing of a result depends on them, so a disk
that is full or a store that cannot be reached for a while costs a warning, and not the run.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nfs_dask.cluster.resources import Silent
from nfs_dask.engine.plan import Plan
from nfs_dask.engine.run_directory import kept_blocks
from nfs_dask.engine.run_events import EventLog
from nfs_dask.errors import NfsDaskError, ResumeError
from nfs_dask.files import claims
from nfs_dask.files.folder import Folder
from nfs_dask.progress import Progress, watched_by
from nfs_dask.redaction import redacted

logger = logging.getLogger("nfs_dask")

DRIVER = "driver.json"
STOP = "stop"
LOG = "driver.log"  # what a detached driver says
BEAT_SECONDS = 2.0  # between two signs of life
REMOTE_BEAT_SECONDS = 10.0  # where each is a request
WATCHED_BEATS = 3.5  # that a driver elsewhere is watched, before another takes it for gone
CREW_SECONDS = 10.0  # between two looks at the workers
PROGRESS_SECONDS = 30.0  # between two events of progress
PACE_SECONDS = 60.0  # of the past, that the pace is taken from
MOST_LOG = 1 << 20  # bytes of a log that are kept behind a URL

Memory = Callable[[], dict[str, tuple[int, int]]]
Silence = Callable[[], list[Silent]]


@dataclass(frozen=True)
class Command:
    """What was typed to begin or resume a run."""

    resume: str  # the command that goes on with it
    folder: str  # in which it was typed
    resumed: bool = False
    log: str | None = None  # the file that holds what a detached driver says

    def to_json(self) -> dict[str, str]:
        return {"resume": self.resume, "folder": self.folder}


class Driver:
    """Signs of life and events of the process that drives a run."""

    def __init__(self, folder: Folder, command: Command | None) -> None:
        self._folder = folder
        self._command = command
        self._holder = claims.Holder.this()
        self._events = EventLog(folder)
        self._works: list[Progress] = []
        self._pass: str | None = None
        self._memory: Memory | None = None
        self._silence: Silence = list
        self._crew: dict[str, tuple[int, int]] = {}
        self._silent: list[Silent] = []
        self._crew_seen = 0.0
        self._samples: deque[tuple[float, int, int]] = deque(maxlen=1000)
        self._kept = 0
        self._log_size = -1
        self._warned = False
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._live, name="nfs-dask-driver", daemon=True)

    # What happens

    def note(self, event: str, **facts: Any) -> None:
        """Add an event, of the pass that runs if one does."""
        of_pass = {} if self._pass is None else {"pass": self._pass}
        with self._harmless():
            self._events.write(event, {**of_pass, **facts})

    def pass_begins(self, name: str, plan: Plan, resumed: bool, memory: Memory, silent: Silence = list) -> None:
        """A pass is about to run; ``memory`` tells what each worker takes, and ``silent`` which have no heartbeat."""
        self._pass, self._memory, self._silence, self._kept = name, memory, silent, 0
        self.note(
            "pass_resumed" if resumed else "pass_planned",
            blocks=plan.n_blocks,
            tasks=plan.tasks,
            strategy=plan.strategy,
            peak_nbytes=int(plan.peak_nbytes),
            planned_seconds=round(float(plan.seconds), 3),
        )

    def pass_ends(self) -> None:
        """Its workers may go from now on."""
        self._memory = None

    def pass_finished(self, seconds: float) -> None:
        """Its result is safe."""
        self.note("pass_finished", seconds=round(seconds, 3))
        self._pass = None

    def work_begins(self, progress: Progress) -> None:
        with self._lock:
            self._works.append(progress)
            self._samples.clear()

    def work_ends(self, progress: Progress) -> None:
        with self._lock:
            if progress in self._works:
                self._works.remove(progress)
            self._samples.clear()

    # Signs of life

    def begin(self) -> None:
        if self._command is None or self._command.log is None:  # a detached one may have been asked already
            with self._harmless():
                self._folder.delete(STOP)
        if self._command is not None:
            event = "resumed" if self._command.resumed else "started"
            self.note(event, host=self._holder.host, pid=self._holder.pid, resume=self._command.resume)
        self._beat(None)
        self._thread.start()

    def end(self, how: str, **facts: Any) -> None:
        """``how`` is finished, idle, interrupted, failed or left, to another process that drives on."""
        self._over.set()
        self._memory = None
        self._thread.join(2 * BEAT_SECONDS)  # it may wait for a scheduler that is gone
        if how != "idle":
            self.note(how, **facts)
        self._beat(how)

    def _live(self) -> None:
        noted = time.monotonic()
        while not self._over.wait(REMOTE_BEAT_SECONDS if self._folder.remote else BEAT_SECONDS):
            self._look_at_workers()
            self._obey()
            if not self._over.is_set():
                self._beat(None)
            if time.monotonic() - noted >= PROGRESS_SECONDS:
                noted = time.monotonic()
                self._note_progress()

    def _obey(self) -> None:
        """End the command that drives the run, if that was asked for; other programs are not ours to end."""
        with self._harmless():
            if self._command is not None and self._folder.exists(STOP):
                self._folder.delete(STOP)
                os.kill(os.getpid(), signal.SIGTERM)

    def _beat(self, ended: str | None) -> None:
        command = None if self._command is None else {"resume": self._command.resume, "folder": self._command.folder}
        seen = {
            "ended": ended,
            "pass": self._pass,
            "work": self._work(),
            "workers": self._workers(),
            "command": command,
        }
        with self._harmless():
            content = {**asdict(self._holder), "alive": time.time(), "seen": seen}
            self._folder.scratch.write(DRIVER, json.dumps(content).encode())
            self._copy_log()

    def _work(self) -> dict[str, Any] | None:
        """What is counted now, innermost."""
        with self._lock:
            if not self._works:
                return None
            work = self._works[-1]
            now, done, nbytes = time.monotonic(), work.done, work.nbytes
            self._samples.append((now, done, nbytes))
            while len(self._samples) > 2 and now - self._samples[0][0] > PACE_SECONDS:
                self._samples.popleft()
            then, before, nbytes_before = self._samples[0]
        span = now - then
        pace = (done - before) / span if span > 0 else 0.0
        left = None if work.total is None or pace <= 0 else max(0, work.total - done) / pace
        return {
            "label": work.label,
            "done": done if work.total is None else min(done, work.total),
            "total": work.total,
            "unit": work.unit,
            "seconds": round(work.seconds, 3),
            "per_second": round(pace, 6),
            "nbytes_per_second": round((nbytes - nbytes_before) / span) if span > 0 else 0,
            "seconds_left": None if left is None else round(left, 1),
        }

    def _workers(self) -> dict[str, Any] | None:
        """Of all workers together, as last seen."""
        if not self._crew:
            return None
        takes, limits = zip(*self._crew.values(), strict=True)
        return {
            "workers": len(takes),
            "nbytes": sum(takes),
            "largest_nbytes": max(takes),
            "limit_nbytes": min((limit for limit in limits if limit), default=0),
            "seen": self._crew_seen,
            "silent": [
                {"address": one.address, "since": self._crew_seen - one.seconds, "worker_ttl": one.ttl}
                for one in self._silent
            ],
        }

    def _look_at_workers(self) -> None:
        memory = self._memory
        if memory is None or time.time() - self._crew_seen < CREW_SECONDS:
            return
        crew = memory()
        if not crew or self._memory is None:  # not known, or the pass has come to its end
            return
        before, self._crew, self._crew_seen, self._silent = self._crew, crew, time.time(), self._silence()
        for event, found in (("worker_lost", before.keys() - crew), ("worker_joined", crew.keys() - before)):
            if found:
                self.note(event, n=len(found), workers=len(crew))

    def _note_progress(self) -> None:
        if (work := self._work()) is None:
            return
        self.note("progress", **work)
        if self._pass is not None:
            with self._harmless():
                kept = kept_blocks(self._folder / self._pass)
                if kept > self._kept:
                    self._kept = kept
                    self.note("checkpoint", blocks_kept=kept)

    def _copy_log(self) -> None:
        """Of a run behind a URL: what the detached driver has said so far, which lies in a file of its machine."""
        if self._command is None or self._command.log is None or not self._folder.remote:
            return
        path = Path(self._command.log)
        if (size := path.stat().st_size) != self._log_size:
            self._log_size = size
            with path.open("rb") as file:
                file.seek(max(0, size - MOST_LOG))
                self._folder.scratch.write(LOG, file.read(MOST_LOG))

    @contextmanager
    def _harmless(self) -> Iterator[None]:
        """What goes wrong with these files is said once, and stops nothing."""
        try:
            yield
        except (OSError, NfsDaskError) as error:
            if not self._warned:
                self._warned = True
                logger.warning("the status of the run cannot be written: %s", redacted(str(error)))


class _Nobody(Driver):
    """Of work without a run: nothing is written."""

    def __init__(self) -> None: ...

    def note(self, event: str, **facts: Any) -> None: ...

    def pass_begins(self, name: str, plan: Plan, resumed: bool, memory: Memory, silent: Silence = list) -> None: ...

    def pass_ends(self) -> None: ...

    def pass_finished(self, seconds: float) -> None: ...


_leaving = threading.Event()


def leave_to_others() -> None:
    """From now on an end of this process is not the end of its runs: another one is about to drive them on."""
    _leaving.set()


_driven: dict[str, Driver] = {}  # by location, of this process
_guard = threading.Lock()


@contextmanager
def driving(run: str | None, command: Command | None = None) -> Iterator[Driver]:
    """Drive a run for the length of a block. Within one that drives it already, nothing is added."""
    if run is None:
        yield _Nobody()
        return
    folder = Folder.of(run)
    with _guard:
        present = _driven.get(folder.location)
        if present is None:
            refuse_second_driver(folder)
            mine = _driven[folder.location] = Driver(folder, command)
    if present is not None:
        yield present
        return
    try:
        mine.begin()
        with watched_by(mine):
            yield mine
    except ResumeError:  # what was begun is of other data or settings, and is as good as before
        mine.end("idle")
        raise
    except Exception as error:
        mine.end("failed", message=str(error) or type(error).__name__, kind=type(error).__name__)
        raise
    except BaseException as error:
        mine.end("left" if _leaving.is_set() else "interrupted", by=str(error) or "SIGINT")
        raise
    else:
        mine.end("idle" if command is None else "finished")
    finally:
        with _guard:
            del _driven[folder.location]


def refuse_second_driver(folder: Folder) -> None:
    """Refuse a run that another process is driving: one of this machine, or one elsewhere that gives signs of life.

    One elsewhere is watched for longer than its signs are apart, as its clock may be another.
    """
    found = read_driver(folder)
    if found is None or found[1].get("ended") is not None:
        return
    holder = found[0]
    seconds = WATCHED_BEATS * (REMOTE_BEAT_SECONDS if folder.remote else BEAT_SECONDS)
    if holder.here:
        driven = not holder.known_gone and holder.pid != claims.Holder.this().pid
    else:
        driven = claims.shows_life(lambda: (read_driver(folder) or (None,))[0], holder, seconds)
    if driven:
        raise ResumeError(
            f"{folder.location} is being worked on by {holder}; look at it with nfs-dask status, and end it with "
            f"kill {holder.pid}{'' if holder.here else ' there'} before another process goes on with it"
        )


def announce_driver(folder: Folder, holder: claims.Holder, command: Command) -> None:
    """Name a process that is about to drive a run, unless it has done so itself."""
    seen = {"ended": None, "command": command.to_json()}
    with suppress(OSError):
        folder.write_new(DRIVER, json.dumps({**asdict(holder), "alive": time.time(), "seen": seen}).encode())


def read_driver(folder: Folder) -> tuple[claims.Holder, Mapping[str, Any]] | None:
    """Who drives a run, or drove it last, and how far it was at its last sign of life."""
    if not folder.exists(DRIVER):
        return None
    try:
        content = folder.read(DRIVER, 0, 1 << 20)
        holder, seen = claims.Holder.from_bytes(content), json.loads(content)["seen"]
    except (NfsDaskError, LookupError, TypeError, ValueError, RecursionError):
        return None
    return None if holder is None or not isinstance(seen, dict) else (holder, seen)
