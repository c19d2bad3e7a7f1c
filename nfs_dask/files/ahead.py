"""Reading ahead: what lies behind a URL is asked for before its turn, as each answer takes its time to begin."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

IN_FLIGHT = 10  # requests at a time; libraries of object stores keep about as many connections
BLOCKS_IN_FLIGHT = 2  # blocks of a store: one is folded while the next one comes


def ahead(read: Callable[[T], R], wanted: Iterable[T], in_flight: int) -> Iterator[R]:
    """What ``read`` makes of each, in order, with up to so many of them under way; one needs no threads."""
    if in_flight < 2:
        yield from map(read, wanted)
        return
    under_way: deque[Future[R]] = deque()
    pool = ThreadPoolExecutor(in_flight, thread_name_prefix="nfs-dask-ahead")
    try:
        for one in wanted:
            under_way.append(pool.submit(read, one))
            if len(under_way) == in_flight:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)  # whoever stops before the end waits for those that have begun
