"""Reading ahead keeps the order, stays within what may be under way, and ends with whoever stops or fails."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from nfs_dask.files.ahead import ahead

WAIT = 10  # seconds after which a test has failed


@pytest.mark.parametrize("in_flight", [1, 2, 7, 100])
@pytest.mark.parametrize("n", [0, 1, 30])
def test_order(in_flight: int, n: int) -> None:
    assert list(ahead(lambda i: i * i, range(n), in_flight)) == [i * i for i in range(n)]


def test_as_many_are_under_way_as_may_be() -> None:
    """Each of four waits until all four are there: one by one, none would ever return."""
    together = threading.Barrier(4, timeout=WAIT)
    assert sorted(ahead(lambda i: together.wait() * 0 + i, range(8), 4)) == list(range(8))


def test_no_more_are_begun_than_may_be() -> None:
    begun, lock = [0], threading.Lock()

    def read(i: int) -> int:
        with lock:
            begun[0] += 1
        return i

    for taken, _ in enumerate(ahead(read, range(50), 5)):
        with lock:
            assert begun[0] <= taken + 5


@pytest.mark.parametrize("in_flight", [1, 3])
def test_an_error_comes_in_its_turn(in_flight: int) -> None:
    def read(i: int) -> int:
        if i == 5:
            raise OSError("five")
        return i

    taken: list[int] = []
    with pytest.raises(OSError, match="five"):
        for i in ahead(read, range(10), in_flight):
            taken.append(i)
    assert taken == [0, 1, 2, 3, 4]


def test_whoever_stops_early_leaves_no_thread() -> None:
    def names() -> set[str]:
        return {t.name for t in threading.enumerate() if t.name.startswith("nfs-dask-ahead")}

    before = names()
    reading: Iterator[int] = ahead(lambda i: i, range(1000), 3)
    assert next(reading) == 0
    assert names() - before
    reading.close()  # type: ignore[attr-defined]
    assert names() == before
