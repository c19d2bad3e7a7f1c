"""Results come in few messages, and in order."""

from __future__ import annotations

from typing import Any

import pytest

from nfs_dask.engine import fetching
from nfs_dask.engine.fetching import Fetching


class Client:
    """One whose futures are numbers, and their results ten times as much."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []

    def gather(self, futures: list[int]) -> list[int]:
        self.asked.append(futures)
        return [10 * future for future in futures]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(fetching.time, "monotonic", lambda: now[0])
    return now


def test_what_finishes_at_a_time_is_fetched_together(clock: list[float]) -> None:
    client: Any = Client()
    results = Fetching(client)
    for number in (3, 1, 0):
        results.add(number, number)
    assert not client.asked
    clock[0] += 2 * fetching.FETCH_SECONDS
    results.add(2, 2)  # nothing waits for long
    results.add(4, 4)
    assert client.asked == [[3, 1, 0, 2]]
    assert results.results() == [0, 10, 20, 30, 40]
    assert client.asked == [[3, 1, 0, 2], [4]]


def test_nothing_is_asked_for_nothing() -> None:
    client: Any = Client()
    assert Fetching(client).results() == []
    assert not client.asked
