"""Compiling what a first ingest needs late, in a process beside it, while it compiles what it needs early.

Both keep what they compile where the other finds it, and wait for each other where they come to the same kernel.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import numpy as np
import psutil

from nfs_dask.arrays.compiling import will_be_kept
from nfs_dask.ingestion.term_groups import SegmentTerms, group_equal
from nfs_dask.ingestion.text_options import TextOptions
from nfs_dask.store.string_arrays import encoded
from nfs_dask.text.ordering import sort_equal
from nfs_dask.text.strings import Strings
from nfs_dask.text.word_tally import counted_words, counts_by_sorting
from nfs_dask.units import GiB

LEAST_FREE = GiB  # the other process takes a quarter of it
_CONTAINER = Path("/sys/fs/cgroup")
_PROGRAM = "from nfs_dask.ingestion.compiling_ahead import compile_late; compile_late()"


@contextmanager
def compiling_ahead(terms: TextOptions) -> Iterator[None]:
    """Have another process compile for what comes after reading and splitting, while the block runs.

    Where that is in the cache, or would not be kept there, or there is no second core or little memory, or settings are
    such that other kernels are used, there is none. It ends with the block, and with this process however that ends.
    """
    usual = counts_by_sorting(terms.settings) and terms.vocabulary is None and terms.settings.hashed is None
    if not (usual and sys.executable and will_be_kept(sort_equal) and _has_room()):
        yield
        return
    with ExitStack() as ends:
        with suppress(OSError):  # no more processes are allowed: this one compiles all
            ends.callback(_end, _begin())
        yield


def _begin() -> subprocess.Popen[bytes]:
    """In a session of its own, Ctrl-C comes to this process alone."""
    command, nothing = [sys.executable, "-P", "-c", _PROGRAM], subprocess.DEVNULL
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=nothing, stderr=nothing, start_new_session=True)


def _end(process: subprocess.Popen[bytes]) -> None:
    with process:
        process.kill()


def compile_late() -> None:
    """Count, merge and write two words; end at once when standard input does."""
    threading.Thread(target=_end_with_input, daemon=True).start()
    words = Strings.joined([Strings.of([b"two", b"one"])])
    counted = counted_words(words, np.array([0, 1], np.int32), np.array([0, 1, 2]), (1, 1), 0)
    assert counted.totals is not None
    ends = np.array([0, 2])
    groups = group_equal(
        SegmentTerms(Strings.joined([counted.terms]), ends, counted.totals[:1], None, counted.totals[1:], ends)
    )
    encoded(groups.names, 2)


def _end_with_input() -> None:
    sys.stdin.read()
    os._exit(0)


def _has_room() -> bool:
    return _cores() >= 2 and _free_nbytes() >= LEAST_FREE


def _cores() -> float:
    """How many this process may use, of those of a container the share that it has, which Dask's count rounds up."""
    cores: float = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):  # no such file, or "max" in it
        share, period = _CONTAINER.joinpath("cpu.max").read_text().split()
        cores = min(cores, int(share) / int(period))
    return cores


def _free_nbytes() -> int:
    """Memory of this machine, or of its container, that nobody takes."""
    free = int(psutil.virtual_memory().available)
    with suppress(OSError, ValueError):
        limit, used = (int(_CONTAINER.joinpath(f"memory.{name}").read_text()) for name in ("max", "current"))
        free = min(free, limit - used)
    return free
