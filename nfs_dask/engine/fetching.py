"""Results on their way to the client, many at a time."""

from __future__ import annotations

import time
from typing import Any

FETCH_SECONDS = 0.25  # that a result waits for others; what a worker holds that dies meanwhile is made again


class Fetching:
    """Results of finished futures, by number.

    A fetch takes some messages, however much it brings, and nothing is handed out until they are there.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._waiting: dict[int, Any] = {}
        self._results: dict[int, Any] = {}
        self._fetched = time.monotonic()

    def add(self, number: int, future: Any) -> None:
        """Fetch the result of a future, soon."""
        self._waiting[number] = future
        if time.monotonic() - self._fetched > FETCH_SECONDS:
            self._fetch()

    def results(self) -> list[Any]:
        """All of them, by their numbers."""
        self._fetch()
        return [self._results[number] for number in sorted(self._results)]

    def _fetch(self) -> None:
        if self._waiting:
            values = self._client.gather(list(self._waiting.values()))
            self._results |= zip(self._waiting, values, strict=True)
            self._waiting.clear()
        self._fetched = time.monotonic()
