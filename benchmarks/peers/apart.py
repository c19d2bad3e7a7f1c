"""Work in a process of its own: its answers as they come, with seconds and memory, until it ends or takes too much.

Processor time and memory are those of the process and of all that it started, such as Java's or the workers of a
cluster: the sum of their high-water marks, so that pages they share count more than once. Where others keep the
machine busy, seconds of the clock tell little, and those of processors more: limits are of these.
"""

from __future__ import annotations

import multiprocessing
import queue
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import psutil

from benchmarks.measure import peak_nbytes, reset_peak
from nfs_dask.units import format_bytes

LOOK = 0.25  # seconds between two looks at what a process takes
STALLED = 20.0  # times as long on the clock as on the processors

Work = Callable[..., Iterator[Any]]  # what it yields first, says that all is imported and compiled; then answers


@dataclass(frozen=True)
class Limits:
    """What one piece of work may take."""

    seconds: float  # of processors, once it is ready
    nbytes: int
    lead: float = 300.0  # of processors, to import, to compile and to start others


@dataclass(frozen=True)
class Answer:
    value: Any
    seconds: float  # of the clock, since it was ready
    processor: float  # seconds of all processors
    nbytes: int  # most memory since then


@dataclass
class Heard:
    answers: list[Answer] = field(default_factory=list)
    ended: str | None = None  # why there are no more, unless all is done


def family(of: int | None = None) -> list[psutil.Process]:
    """A process and all that it started, as far as they are there still."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(of)
        return [process, *process.children(recursive=True)]
    return []


def processor_seconds(processes: list[psutil.Process]) -> float:
    total = 0.0
    for one in processes:
        with suppress(psutil.NoSuchProcess):
            total += sum(one.cpu_times()[:2])
    return total


def held_nbytes(processes: list[psutil.Process]) -> int:
    total = 0
    for one in processes:
        with suppress(psutil.NoSuchProcess):
            total += one.memory_info().rss
    return total


def reset_peaks(processes: list[psutil.Process]) -> None:
    for one in processes:
        with suppress(OSError):
            reset_peak(one.pid)


def sum_of_peaks(processes: list[psutil.Process]) -> int:
    """Of what each held at most since peaks were reset."""
    total = 0
    for one in processes:
        with suppress(OSError, StopIteration):  # it is gone, or has ended and holds nothing
            total += peak_nbytes(one.pid)
    return total


def _tell(told: Any, work: Work, arguments: tuple[Any, ...]) -> None:
    """In the new process: all that the work yields, then how it ended."""
    warnings.simplefilter("ignore")
    try:
        answers = work(*arguments)
        next(answers)
        reset_peaks(family())
        begun, used = time.perf_counter(), processor_seconds(family())
        told.put("ready")
        for value in answers:
            took = time.perf_counter() - begun
            told.put(Answer(value, took, processor_seconds(family()) - used, sum_of_peaks(family())))
        told.put("done")
    except Exception as error:
        told.put(error if isinstance(error, AssertionError) else f"{type(error).__name__}: {str(error)[:200]}")


def heard(work: Work, arguments: tuple[Any, ...], limits: Limits) -> Heard:
    """All answers that a piece of work has within its limits. What it asserts must hold."""
    context = multiprocessing.get_context("spawn")
    told = context.Queue()
    process = context.Process(target=_tell, args=(told, work, arguments))
    process.start()
    out = Heard()
    try:
        _listen(out, told, process, limits)
    finally:
        for one in family(process.pid):
            with suppress(psutil.NoSuchProcess):
                one.kill()
        process.join()
    return out


def _listen(out: Heard, told: Any, process: Any, limits: Limits) -> None:
    """Collect what is told until the end, or until a limit is met."""
    ready, before, since = False, 0.0, time.perf_counter()
    while out.ended is None:
        alive = process.is_alive()  # what it said before it ended is there by now
        try:
            said = told.get(timeout=LOOK)
        except queue.Empty:
            limit = limits.seconds if ready else limits.lead
            over = _over(family(process.pid), before, since, limit, limits.nbytes)
            out.ended = over if alive else "it was ended by something else"
            continue
        if isinstance(said, AssertionError):
            raise said
        if said == "done":
            return
        if said == "ready":
            ready, before, since = True, processor_seconds(family(process.pid)), time.perf_counter()
        elif isinstance(said, Answer):
            out.answers.append(said)
        else:
            out.ended = str(said)


def _over(processes: list[psutil.Process], before: float, since: float, seconds: float, nbytes: int) -> str | None:
    """Which limit is met."""
    if processor_seconds(processes) - before > seconds or time.perf_counter() - since > STALLED * seconds:
        return f"more than {seconds:g} s"
    return f"more than {format_bytes(nbytes)}" if held_nbytes(processes) > nbytes else None
