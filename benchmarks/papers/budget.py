"""Work that is ended when its time is over: in a process of its own, as compiled loops cannot be interrupted."""

from __future__ import annotations

import resource
import signal
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, TypeVar

T = TypeVar("T")


def within(minutes: float | None, function: Callable[..., Iterator[T]], *arguments: Any) -> list[T]:
    """What a function yields until it is done, or until it has used so many minutes of processor."""
    if minutes is None:
        return list(function(*arguments))
    context = get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    seconds = max(1, round(60 * minutes))
    process = context.Process(target=_send, args=(sender, seconds, function, arguments), daemon=True)
    process.start()
    sender.close()
    found = list(_received(receiver))
    process.join()
    if process.exitcode not in (0, -signal.SIGXCPU):
        raise RuntimeError(f"{function.__name__} ended with {process.exitcode}; what it said is above")
    return found


def _received(receiver: Connection) -> Iterator[Any]:
    while True:
        try:
            yield receiver.recv()
        except (EOFError, OSError):  # the latter, if it was ended in the middle of what it said
            return


def _send(sender: Connection, seconds: int, function: Callable[..., Iterator[Any]], arguments: tuple[Any, ...]) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 60))
    for one in function(*arguments):
        sender.send(one)
