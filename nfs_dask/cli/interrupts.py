"""Ctrl-C and SIGTERM: what is said at once, while what is running comes to its end; a second one does not wait."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

STOPPING = "stopping: tasks that run are waited for, and what they wrote is put away; this may take some seconds"
AT_ONCE = "ended at once, as a second signal has come"
LAST_SECONDS = 5.0  # after the last words of a command that was ended, for threads that still wait for something
SAME_SECONDS = 0.5  # in which a second signal counts as the first: some programs pass on what came to them already


class Terminated(KeyboardInterrupt):
    """SIGTERM: batch systems, containers and ``kill`` send it to what is to end. Nothing takes it for an error."""


def exit_code_of(error: KeyboardInterrupt) -> int:
    """As shells have it: 128 and the number of the signal."""
    return 128 + (signal.SIGTERM if isinstance(error, Terminated) else signal.SIGINT)


@contextmanager
def announced(say: Callable[[str], None]) -> Iterator[None]:
    """Say that a signal has come when it comes, and let SIGTERM end the block as Ctrl-C does.

    Python itself acts on one when its main thread gets to it, which computes, or waits for workers. The system writes
    signals to a socket right away, on which another thread waits. Signals that the program around this handles itself
    are left to it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handled = (signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)
    ours = {number: usual for number, usual in handled if signal.getsignal(number) is usual}
    stop = _Stop()
    for number in ours:
        signal.signal(number, stop)
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    listener = threading.Thread(target=_listen, args=(reader, say, ours), name="nfs-dask-interrupts", daemon=True)
    listener.start()
    try:
        yield
    finally:
        for number, usual in ours.items():
            signal.signal(number, usual)
        signal.set_wakeup_fd(before)
        writer.close()
        listener.join()
        reader.close()


def end_soon(code: int) -> None:
    """End the process some seconds from now, whatever its threads wait for."""
    if sys.stdout is sys.__stdout__:  # not in a program around this, such as a test, which may go on
        timer = threading.Timer(LAST_SECONDS, os._exit, [code])
        timer.daemon = True
        timer.start()


class _Stop:
    """Raises at the first signal, and at no other: what puts things away is not to be torn out of that."""

    came = False

    def __call__(self, number: int, _frame: Any) -> None:
        if not self.came:
            self.came = True
            raise Terminated("SIGTERM") if number == signal.SIGTERM else KeyboardInterrupt


def _listen(reader: socket.socket, say: Callable[[str], None], ours: Collection[int]) -> None:
    """Say it at the first signal, and end the process at the second one of ours; until the other end is closed."""
    first: float | None = None
    while signals := reader.recv(64):
        came = [number for number in (signal.SIGINT, signal.SIGTERM) if number in signals]
        if came and first is None:
            first = time.monotonic()
            say(STOPPING)
        elif first is not None and time.monotonic() - first > SAME_SECONDS and any(number in ours for number in came):
            say(AT_ONCE)
            os._exit(128 + came[0])
