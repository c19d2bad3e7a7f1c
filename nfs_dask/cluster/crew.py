"""The workers of a pass, while it runs: who joins and leaves, and who has room for its tasks."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from nfs_dask.cluster.finding import adaptive_maximum, workers_of
from nfs_dask.cluster.resources import Worker, name_of, some_names
from nfs_dask.errors import PlanError
from nfs_dask.units import format_at_least

logger = logging.getLogger("nfs_dask")

LOOK_SECONDS = 1.0  # between two looks at who is there


class Crew:
    """The workers that have room for the tasks of a pass, as they were when last looked at."""

    def __init__(
        self, client: Any, suits: Callable[[int, int], bool], needs: int, late: Callable[[], set[str]] = set
    ) -> None:
        self._client = client
        self._suits = suits  # of a memory limit and a number of threads
        self._needs = needs  # bytes that a worker should have for one thread
        self._late = late  # addresses of workers that are not ready yet
        self._seen: Any = None  # who was there, and who of them was late; None: nobody has looked
        self._looked = 0.0
        self._too_small: set[str] = set()
        self._had_room = False
        self.adaptive = adaptive_maximum(client) is not None
        self.slots = 0
        self.allowed: list[str] | None = None  # None: all, and whoever joins

    def look(self, *, again: bool = False) -> None:
        """See who has joined or left; not more often than once in a while, unless told to look again."""
        if not again and time.monotonic() - self._looked < LOOK_SECONDS:
            return
        self._looked = time.monotonic()
        late = self._late()
        if self._seen is not None and self._seen == (dict(self._client.nthreads()), late):
            return
        workers = workers_of(self._client)
        self._seen = {address: worker["nthreads"] for address, worker in workers.items()}, late
        self._sort(workers, late)

    def _sort(self, workers: Mapping[str, Worker], late: set[str]) -> None:
        small = {a for a, w in workers.items() if not self._suits(w["memory_limit"] or 0, w["nthreads"])}
        if small and len(small) == len(workers) and not self._had_room:
            raise PlanError(
                f"this pass was planned for larger workers than there are: {_names(small, workers)}. Start workers of "
                f"one thread with {format_at_least(self._needs)} each, or begin anew, in a run folder of its own"
            )
        if new := small - self._too_small:
            logger.warning("left out of this pass, as its tasks do not fit there: %s", _names(new, workers))
        self._too_small |= small
        self._had_room |= len(workers) > len(small)
        allowed = [address for address in workers if address not in small | late]
        self.slots = sum(workers[address]["nthreads"] for address in allowed)
        self.allowed = allowed if len(allowed) < len(workers) else None


def _names(addresses: set[str], workers: Mapping[str, Worker]) -> str:
    return some_names([name_of(address, workers[address]) for address in sorted(addresses)])
