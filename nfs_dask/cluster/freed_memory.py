"""Memory that tasks have let go of: used again by what follows, and given back once nothing does.

Dask's nannies tell C's allocator to give back at once what is free. It then maps each array of 128 KiB or more anew,
and the system clears all of its pages: nearly half of the processor time of an ingest, a fifth of that of a pass. So
while tasks follow each other the allocator keeps what they free; when they are done, what the nannies asked for holds.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from nfs_dask.cluster.worker_settings import TRIM
from nfs_dask.units import MiB

IDLE_SECONDS = 2.0  # after the last task; from one stage of a pass to the next it is less

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # as mallopt has them
_MAPPED_NBYTES = 128 << 10  # arrays from here on are mapped, where nobody said otherwise
# Larger ones are mapped anew: for those numpy asks for huge pages, which take the system a tenth of the time. What a
# chunk of 4 MiB is compressed into, which is a little more, is not among them.
LARGEST = 4 * MiB + 4096
LARGEST_OF_PASSES = 2 * MiB  # whose larger arrays live longer, and would leave gaps between them
_CODE = re.compile(r"([0-9a-f]+)-([0-9a-f]+) r-xp .*/libllvmlite[^/]*\.so\n")  # nobody has ever written to such pages
_MOST_KEPT = 16 * MiB  # free, at the end of a heap


class _Tasks:
    """Those that run in this process now, and when to give back what they leave."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._timer: threading.Timer | None = None

    def begin(self, largest: int) -> None:
        with self._lock:
            self._running += 1
            self._stop_timer()
            _set_thresholds(_MOST_KEPT, largest)

    def end(self) -> None:
        with self._lock:
            self._running -= 1
            if self._running:
                return
            self._timer = threading.Timer(IDLE_SECONDS, self.give_back)
            self._timer.daemon = True
            with suppress(RuntimeError):  # no threads begin when the interpreter ends, and nothing is to be given back
                self._timer.start()

    def give_back(self) -> None:
        with self._lock:
            if not self._running:
                self._stop_timer()
                _set_thresholds(_trimmed_at(), _MAPPED_NBYTES)
                _libc().malloc_trim(0)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


_tasks = _Tasks()


@contextmanager
def freed_memory_kept(largest: int = LARGEST) -> Iterator[None]:
    """For a task: it uses what others before it have freed, and leaves what it frees to others, in arrays up to a size.

    Of tasks at the same time the last one says which size.
    """
    if not _trimmed_at():
        yield
        return
    _tasks.begin(largest)
    try:
        yield
    finally:
        _tasks.end()


def give_back_freed() -> None:
    """Give back now what tasks that have ended left."""
    if _trimmed_at():
        _tasks.give_back()


def give_up_compiler_code() -> None:
    """Unmap the pages of LLVM's code that this process has run; nothing where the system has no such thing.

    Kernels are compiled or loaded once. The 50 MiB after that are pages of a file that all processes share, but Dask
    and plans count them as memory of the worker. They are mapped again, one by one, if they are run again.
    """
    with suppress(OSError):  # no such file, but on Linux
        for start, end in _CODE.findall(Path("/proc/self/maps").read_text()):
            advise = _libc().madvise
            advise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
            advise(int(start, 16), int(end, 16) - int(start, 16), mmap.MADV_DONTNEED)


@cache
def _trimmed_at() -> int:
    """From how many free bytes on the allocator was told to give them back; 0 if it was not, or if that must stay."""
    began_with = _first_environment()
    told = began_with.get(TRIM, "")
    chosen = "MALLOC_MMAP_THRESHOLD_" in began_with or "glibc.malloc" in began_with.get("GLIBC_TUNABLES", "")
    able = hasattr(_libc(), "mallopt") and hasattr(_libc(), "malloc_trim")
    return int(told) if told.isdecimal() and able and not chosen else 0


def _first_environment() -> dict[str, str]:
    """What this process began with, which is what its allocator has read; nothing where the system does not say.

    A nanny sets what its worker is to begin with in its own process, which may be that of a user.
    """
    try:
        pairs = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:
        return {}
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in (pair.partition(b"=") for pair in pairs)}


@cache
def _libc() -> Any:
    return ctypes.CDLL(None)


def _set_thresholds(trimmed: int, mapped: int) -> None:
    _libc().mallopt(_TRIM_THRESHOLD, trimmed)
    _libc().mallopt(_MMAP_THRESHOLD, mapped)
