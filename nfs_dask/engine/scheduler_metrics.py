"""What passes have done, as Prometheus scrapes it from the scheduler, beside what Dask itself exports there.

A plugin of the scheduler hears what tasks and clients report of a pass, and sees tasks that fail or run again. Where
prometheus_client is not installed on the scheduler, nobody could read it, and nothing is counted.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping
from typing import Any
from weakref import WeakSet

from distributed import SchedulerPlugin

from nfs_dask.engine.task_tally import TOPIC

logger = logging.getLogger("nfs_dask")

NAME = "nfs-dask-metrics"
OURS = ("nfs-", "run_task-", "run_item-", "merge_task-")  # what the keys of our tasks begin with

COUNTERS = {
    "passes": "Passes that have begun, new or resumed",
    "passes_finished": "Passes whose result is complete",
    "planned_blocks": "Blocks of the passes that have begun",
    "blocks": "Blocks read; those of a task that ran again count again",
    "kept_blocks": "Blocks found in the checkpoints of a run folder, and not read again",
    "rows": "Rows in the blocks read",
    "entries": "Entries in the blocks read",
    "read_bytes": "Bytes of the blocks read, in memory",
    "spooled_bytes": "Bytes written to spool files, of passes that sort by column",
    "panels": "Ranges of columns folded and stored, of passes that sort by column",
    "checkpoints": "States put away in a run folder",
    "refused_tasks": "Tasks that found data or files that cannot be used",
    "failed_tasks": "Tasks given up after they had failed too often",
    "repeated_tasks": "Tasks that were to run again, as they failed or their worker left",
}


class PassMetrics(SchedulerPlugin):
    """Counts what is reported of passes, and tells them of workers that are lost."""

    idempotent = True  # a second one of this name changes nothing

    def __init__(self) -> None:
        self.name = NAME
        self._scheduler: Any = None

    async def start(self, scheduler: Any) -> None:
        self._scheduler = scheduler
        _counters()  # so that a first scrape has them

    def log_event(self, topic: str, msg: Any) -> None:
        if topic == TOPIC and isinstance(msg, Mapping):
            for name, counter in _counters().items():
                if n := msg.get(name):
                    counter.inc(n)
        elif topic == "all" and msg.get("action") == "remove-worker" and not msg["expected"]:
            self._scheduler.log_event(TOPIC, {"lost": msg["worker"]})

    def transition(self, key: Any, start: str, finish: str, *args: Any, **kwargs: Any) -> None:
        if start != "processing" or finish not in ("released", "erred") or not str(key).startswith(OURS):
            return
        if finish == "erred":
            name = "failed_tasks"
        elif (task := self._scheduler.tasks.get(key)) is not None and (task.who_wants or task.waiters):
            name = "repeated_tasks"
        else:  # the pass was cancelled
            return
        if counters := _counters():
            counters[name].inc()


@functools.cache
def _counters() -> Mapping[str, Any]:
    """Of this process; empty where they could not be read."""
    try:
        import prometheus_client
    except ImportError:
        return {}
    return {name: prometheus_client.Counter(f"nfs_dask_{name}", text) for name, text in COUNTERS.items()}


_asked: WeakSet[Any] = WeakSet()  # clients whose schedulers were asked to count: it takes a message or two


def count_on_scheduler(client: Any) -> None:
    """Have the scheduler of a client count, unless it does; a scheduler that takes no plugins does without."""
    if client in _asked:
        return
    _asked.add(client)
    try:
        client.register_plugin(PassMetrics(), name=NAME)
    except Exception as error:  # noqa: BLE001 - whatever a scheduler has against it, passes need none of this
        logger.debug("the scheduler counts no passes: %s", error)
