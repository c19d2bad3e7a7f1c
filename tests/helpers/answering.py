"""Pieces of work for a process of its own, which imports nothing else."""

import os
import signal
import time
from collections.abc import Iterator
from typing import Any


def squares(n: int) -> Iterator[Any]:
    yield None
    for i in range(n):
        yield i * i


def one_then_busy() -> Iterator[Any]:
    yield None
    yield "first"
    while True:
        pass


def greedy(nbytes: int) -> Iterator[Any]:
    yield None
    held = bytearray(b"x") * nbytes
    yield len(held)
    while True:
        pass


def failing() -> Iterator[Any]:
    yield None
    yield 1
    raise ValueError("no more")


def wrong() -> Iterator[Any]:
    yield None
    assert not "as it should be", "counts differ"
    yield 1


def with_a_child(nbytes: int) -> Iterator[Any]:
    """What is held and used is so by a process that this one started."""
    import subprocess
    import sys

    code = f"held = bytearray(b'x') * {nbytes}; print(len(held), flush=True); sum(range(3_000_000)); input()"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1)
    assert child.stdout is not None
    yield None
    yield int(child.stdout.readline())
    child.communicate(b"\n")


def killed() -> Iterator[int | None]:
    """As by a system that is short of memory."""
    yield None
    yield 1
    time.sleep(1)  # until it is on its way
    os.kill(os.getpid(), signal.SIGKILL)
