"""What a task does, counted where it is done, for whoever asked: blocks, rows and bytes read, what was put away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

TOPIC = "nfs-passes"  # where tasks and clients tell a cluster what was done; schedulers keep each topic for good

_kept: ContextVar[Counter[str] | None] = ContextVar("the tally of this task", default=None)


@contextmanager
def tallied() -> Iterator[Counter[str]]:
    """What is counted within the block, by this thread."""
    tally: Counter[str] = Counter()
    token = _kept.set(tally)
    try:
        yield tally
    finally:
        _kept.reset(token)


def read_nbytes(done: Mapping[str, int]) -> int:
    """Bytes of data and of spool files that were read."""
    return done.get("read_bytes", 0) + done.get("unspooled_bytes", 0)


def count(**done: int) -> None:
    """Add to what was done of each kind; nothing happens where nobody asked."""
    tally = _kept.get()
    if tally is not None:
        tally.update(done)
