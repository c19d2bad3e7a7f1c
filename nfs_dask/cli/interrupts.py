"""Ctrl-C: what is said at once, while what is running comes to its end."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

STOPPING = "stopping: tasks that run are waited for, and what they wrote is put away; this may take some seconds"


@contextmanager
def announced(say: Callable[[str], None]) -> Iterator[None]:
    """Say that an interrupt has come when it comes.

    Python itself acts on one when its main thread gets to it, which computes, or waits for workers. The system writes
    signals to a socket right away, on which another thread waits.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    listener = threading.Thread(target=_listen, args=(reader, say), name="nfs-dask-interrupts", daemon=True)
    listener.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        writer.close()
        listener.join()
        reader.close()


def _listen(reader: socket.socket, say: Callable[[str], None]) -> None:
    """Say it once, however often it comes; until the other end is closed."""
    said = False
    while signals := reader.recv(64):
        if signal.SIGINT in signals and not said:
            said = True
            say(STOPPING)
