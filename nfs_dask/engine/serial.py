"""The serial engine: the tasks of a plan in a loop, here. The distributed one is tested against it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import psutil

from nfs_dask.cluster.resources import Resources, Silent
from nfs_dask.engine.engine import Engine, label_of
from nfs_dask.engine.folding import Fold
from nfs_dask.engine.task_tally import read_nbytes, tallied
from nfs_dask.engine.tasks import Job, Tick, fold_run, merge_folds, scatter_run
from nfs_dask.files.folder import Folder
from nfs_dask.progress import Progress
from nfs_dask.sources.source import Source
from nfs_dask.statistics.statistic import Statistic


class SerialExecutor:
    """Runs each task in the calling thread."""

    def __init__(self, memory_limit: int | None = None) -> None:
        self._memory_limit = memory_limit

    def resources(
        self,
        places: Sequence[Folder],
        *,
        statistic: Statistic | None = None,
        rehearsal: Callable[[], None] | None = None,
    ) -> Resources:
        used = psutil.Process().memory_info().rss
        free = psutil.virtual_memory().available + used
        spool = next((place.location for place in places if place.writable()), None)
        return Resources(1, 1, self._memory_limit or free, used, spool)

    def memory(self) -> dict[str, tuple[int, int]]:
        return {"this process": (psutil.Process().memory_info().rss, self._memory_limit or 0)}

    def silent(self) -> list[Silent]:
        return []

    def report(self, **done: int) -> None:
        """Nobody could scrape it."""

    def map(
        self,
        function: Callable[..., Any],
        job: Job,
        arguments: Sequence[tuple[Any, ...]],
        total: int,
        label: str,
        unit: str,
    ) -> list[Any]:
        with _ticking(total, label, unit) as tick:
            return [function(job, *args, tick=tick) for args in arguments]

    def map_items(
        self,
        function: Callable[[Any], Any],
        items: Sequence[Any],
        *,
        at_once: int | None = None,
    ) -> list[Any]:
        with Progress(len(items), label_of(function), "tasks") as progress:
            return [_counted(function(item), progress) for item in items]

    def map_values(self, function: Callable[[Any, Any], Any], values: Sequence[Any], items: Sequence[Any]) -> list[Any]:
        """One value is computed at a time, by threads of this process; persisted ones come from where they are."""
        with Progress(len(items), label_of(function), "tasks") as progress:
            return [
                _counted(function(value.compute(scheduler=_scheduler_of(value)), item), progress)
                for value, item in zip(values, items, strict=True)
            ]

    def map_runs(self, job: Job, source: Source, label: str) -> list[Fold]:
        with _ticking(source.n_blocks, label) as tick:
            return [scatter_run(job, run, tick) for run in range(len(job.plan.runs))]

    def fold(self, job: Job, source: Source, label: str) -> Fold:
        with _ticking(source.n_blocks, label) as tick:
            return merge_folds(job, [fold_run(job, run, tick) for run in range(len(job.plan.runs))])


@contextmanager
def _ticking(total: int, label: str, unit: str = "blocks") -> Iterator[Tick]:
    """Progress of tasks of this thread, with the bytes that they read."""
    with Progress(total, label, unit) as progress, tallied() as tally:

        def tick(n: int) -> None:
            progress.advance(n, read_nbytes(tally))
            tally.clear()

        yield tick


def _scheduler_of(value: Any) -> Any:
    """Where a lazy value can be computed: at the client that holds a part of it, else here."""
    if "distributed" in sys.modules:
        from nfs_dask.cluster.finding import holder_of

        return holder_of(value) or "threads"
    return "threads"


def _counted(result: Any, progress: Progress) -> Any:
    progress.advance()
    return result


@dataclass(frozen=True, repr=False)
class SerialEngine(Engine):
    """Runs passes in the calling thread, one task after another.

    Parameters
    ----------
    panels : int, optional
        Cut the features into about this many panels; None: as many as memory asks for.
    run : str, optional
        A folder in which the pass leaves what it finished, so that it can be resumed.
    spool : str, optional
        A folder for temporary files.
    on_overcommit : {"refuse", "warn"}, default="refuse"
        What to do with a plan for which this process has too little memory. With "warn" it is run all the same: the
        system may begin to swap.

    Examples
    --------
    >>> import nfs_dask as nfs
    >>> X, y = [[4, 0, 1], [3, 1, 2], [0, 2, 1], [0, 3, 2]], ["tea", "tea", "coffee", "coffee"]
    >>> nfs.SparseMultinomialNB(k=2, engine=nfs.SerialEngine()).fit(X, y).get_support(indices=True).tolist()
    [0, 1]
    """

    panels: int | None = None
    run: str | None = None
    spool: str | None = None
    on_overcommit: Literal["refuse", "warn"] = "refuse"

    @contextmanager
    def executor(self) -> Iterator[SerialExecutor]:
        yield SerialExecutor()
