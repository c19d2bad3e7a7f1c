"""What a waiting person sees: nothing for two seconds, then a bar, or where no one looks, a log line now and then."""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Protocol

from nfs_dask.units import format_bytes, format_seconds

logger = logging.getLogger("nfs_dask")

PATIENCE = 2.0  # seconds of silence: shorter work shows nothing at all
LOG_EVERY = 30.0  # seconds between log lines
SWITCH = "NFS_DASK_PROGRESS"  # of the environment
OFF = ("off", "false", "no", "0")  # its values that turn all of it off
SHORTEST_BAR = 10  # characters
LONGEST_TEXT = 90  # beside it, about
TICK = 0.25  # seconds between looks at the clock, so that a bar appears and moves while nothing finishes

_within: ContextVar[bool] = ContextVar("within a Progress", default=False)
running_command: ContextVar[str] = ContextVar("the command that runs, for messages", default="use")
_watcher: ContextVar[Watcher | None] = ContextVar("who is told of each Progress", default=None)


class Watcher(Protocol):
    """Is told of all work that is counted while it watches, and looks at the counts whenever it wants."""

    def work_begins(self, progress: Progress) -> None: ...

    def work_ends(self, progress: Progress) -> None: ...


@contextmanager
def watched_by(watcher: Watcher) -> Iterator[None]:
    """Tell a watcher of all work of this thread that begins in the block."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


@contextmanager
def unseen() -> Iterator[None]:
    """What is counted within shows nothing."""
    inside = _within.get()
    _within.set(True)
    try:
        yield
    finally:
        _within.set(inside)


class Progress:
    """Counts finished units of work and shows how far they are. Safe to advance from several threads.

    A terminal or a notebook gets a bar with an estimate on standard error; anything else gets a line, at most every
    half minute: on the logger ``nfs_dask``, or on standard error where nobody has set up logging.
    ``NFS_DASK_PROGRESS=off`` in the environment turns all of it off. ``total`` is None where nobody knows it. What is
    counted within other work that is counted shows nothing of its own.

    >>> with Progress(3, "counting") as progress:
    ...     for _ in range(3):
    ...         progress.advance()
    >>> progress.done
    3
    """

    def __init__(
        self,
        total: int | None,
        label: str,
        unit: str = "blocks",
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.total = total
        self.label = label
        self.unit = unit
        self.done = 0
        self.nbytes = 0
        self._clock = clock
        self._start = clock()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._ticker: threading.Thread | None = None
        self._display: _Display | None = None
        self._inside = False
        self._watcher: Watcher | None = None

    def __enter__(self) -> Progress:
        self._start = self._clock()
        self._inside = _within.get()
        _within.set(True)
        self._ticker = threading.Thread(target=self._tick, name="nfs-dask-progress", daemon=True)
        self._ticker.start()
        self._watcher = _watcher.get()
        if self._watcher is not None:
            self._watcher.work_begins(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None and self.total is not None:  # reports of the last tasks may still be on their way
            self.done = self.total
        _within.set(self._inside)
        if self._watcher is not None:
            self._watcher.work_ends(self)
        self._stop.set()
        if self._ticker is not None:
            self._ticker.join()
        with self._lock:
            if self._display is not None:
                self._display.close(self)
                self._display = None

    def advance(self, n: int = 1, nbytes: int = 0) -> None:
        """Count ``n`` more units as done, in which ``nbytes`` were read."""
        with self._lock:
            self.done += n
            self.nbytes += nbytes
        self._show()

    @property
    def seconds(self) -> float:
        """Seconds since the work began."""
        return self._clock() - self._start

    @property
    def seconds_left(self) -> float | None:
        """Seconds to go at the pace so far; None before anything is done, or when the total is not known."""
        if not self.done or self.total is None:
            return None
        return self.seconds * max(0, self.total - self.done) / self.done

    def brief(self, room: int) -> str:
        """As much of what is known as there is room for; how long it still takes goes last."""
        done, *others = self._parts()
        for kept in (others, others[-2:], others[-1:]):
            if len(text := ", ".join([done, *kept])) <= room:
                return text
        return others[-1] if len(others) > 1 else done

    def __str__(self) -> str:
        return f"{self.label}: {', '.join(self._parts())}"

    def _parts(self) -> list[str]:
        """What is done, how fast, how long it has taken, and how long it will."""
        parts = [f"{self.done:,} {self.unit}" if self.total is None else f"{self.done:,} of {self.total:,} {self.unit}"]
        if self.nbytes and self.seconds > 0:
            parts.append(f"{format_bytes(self.nbytes)} at {format_bytes(self.nbytes / self.seconds)}/s")
        parts.append(f"{format_seconds(self.seconds)} so far")
        if self.seconds_left is not None and self.done != self.total:
            parts.append(f"about {format_seconds(self.seconds_left)} left")
        return parts

    def _tick(self) -> None:
        while not self._stop.wait(TICK):
            self._show()

    def _show(self) -> None:
        if self.seconds < PATIENCE:
            return
        with self._lock:
            if self._stop.is_set():
                return
            if self._display is None:
                self._display = _Nothing() if self._inside else _display(self)
            self._display.show(self)


def _display(progress: Progress) -> _Display:
    """A bar for whoever watches, lines for others; nothing where the environment says so."""
    if _is_off():
        return _Nothing()
    return _Bar(progress) if _watched() else _Lines()


def _is_off() -> bool:
    return os.environ.get(SWITCH, "on").lower() in OFF


def _watched() -> bool:
    """Whether a bar can be seen as it grows: on a terminal, or in the notebook this runs in."""
    return bool(sys.stderr and sys.stderr.isatty()) or _notebook()


def _notebook() -> bool:
    shell = sys.modules.get("IPython")  # a notebook has loaded it already; nothing else needs it loaded
    if shell is None or type(shell.get_ipython()).__name__ != "ZMQInteractiveShell":
        return False
    try:  # rich draws with it there, and warns without
        return importlib.util.find_spec("ipywidgets") is not None
    except ValueError:  # somebody has put something else in its place
        return False


class _Display(ABC):
    """One way of showing progress, made when the patience is over."""

    @abstractmethod
    def show(self, progress: Progress) -> None:
        """Bring what is shown up to date."""

    @abstractmethod
    def close(self, progress: Progress) -> None:
        """Show the last state and leave the screen as it was found."""


class _Nothing(_Display):
    def show(self, progress: Progress) -> None: ...

    def close(self, progress: Progress) -> None: ...


class _Lines(_Display):
    # The text is made at once: a handler that formats later would read a later state.
    def __init__(self) -> None:
        self._next = 0.0

    def show(self, progress: Progress) -> None:
        if progress.seconds >= self._next:
            self._next = progress.seconds + LOG_EVERY
            say(str(progress))

    def close(self, progress: Progress) -> None:
        say(str(progress))


def say(line: str) -> None:
    """A line of the log; where nobody has set up logging, as in a plain script, one on standard error."""
    if _is_off():
        return
    if logger.hasHandlers():
        logger.info(line)
    elif sys.stderr is not None:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


class _Bar(_Display):
    def __init__(self, progress: Progress) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn
        from rich.progress import Progress as RichProgress

        text = TextColumn("{task.fields[text]}", markup=False)
        console = Console(stderr=True)
        # What is not text: a bar, the share, and a space between any two.
        self._room = console.width - len(progress.label) - SHORTEST_BAR - 8
        bar = BarColumn(bar_width=max(SHORTEST_BAR, min(40, self._room + SHORTEST_BAR - LONGEST_TEXT)))
        columns = (TextColumn("{task.description}", markup=False), bar, TaskProgressColumn(), text)
        self._rich: Any = RichProgress(*columns, console=console, refresh_per_second=4)
        self._rich.start()
        self._task = self._rich.add_task(progress.label, total=progress.total, text="")

    def show(self, progress: Progress) -> None:
        self._rich.update(self._task, completed=progress.done, text=progress.brief(self._room))

    def close(self, progress: Progress) -> None:
        self.show(progress)
        self._rich.refresh()  # which stopping does on terminals, and not in notebooks
        self._rich.stop()
