"""How much memory something takes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

NOISE = 1 << 19  # bytes that other threads may allocate in each of the runs, such as heartbeats of a cluster


def peak_nbytes(function: Callable[[], object]) -> int:
    """Most bytes of Python and numpy that are there while a function runs.

    Other threads of this process, such as those of a cluster, allocate too: the least of three runs has least of that.
    """
    peaks = []
    for _ in range(3):
        tracemalloc.start()
        try:
            function()
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    return min(peaks)
