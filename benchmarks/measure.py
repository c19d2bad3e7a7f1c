"""Clocks and memory peaks for the benchmarks. Peaks come from the kernel's high-water mark, so this needs Linux."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil


def reset_peak(process: int | str = "self") -> None:
    """Forget the high-water mark of this process, or of that with a number."""
    Path(f"/proc/{process}/clear_refs").write_text("5")


def peak_nbytes(process: int | str = "self") -> int:
    """Most memory this process, or that with a number, has held since the mark was reset."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def resident_nbytes() -> int:
    """Memory this process holds now, without garbage."""
    gc.collect()
    return psutil.Process().memory_info().rss


def seconds(function: Callable[[], Any], repeats: int) -> list[float]:
    """Wall-clock times of some calls."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return times


def interleaved(ways: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Median seconds of each way; they take turns, so that a noisy machine disturbs all alike."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, function in ways.items():
            times[name] += seconds(function, 1)
    return {name: statistics.median(t) for name, t in times.items()}
