"""An engine carries out passes. What does not depend on where tasks run is here.

An engine supplies an `Executor`: what it can count on, how tasks with small results are run, and how states come
together. `Engine.reduce` does the rest, in the same words for all of them.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any, Literal, Protocol

import numpy as np

from nfs_dask.cluster.resources import Resources, Silent
from nfs_dask.engine.driver import driving
from nfs_dask.engine.folding import Fold, Reduction
from nfs_dask.engine.panel_cuts import even_bounds, folded_together
from nfs_dask.engine.plan import Plan, make_plan
from nfs_dask.engine.run_directory import RunDirectory, open_run_directory
from nfs_dask.engine.tasks import Job, fold_panels
from nfs_dask.errors import InputError
from nfs_dask.files.folder import Folder
from nfs_dask.redaction import PlacesHidden
from nfs_dask.sources.source import Source
from nfs_dask.statistics.panels import MemoryPanels, Panels
from nfs_dask.statistics.statistic import State, Statistic
from nfs_dask.store import states
from nfs_dask.store.cache import Kept

logger = logging.getLogger("nfs_dask")


Mapping = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]


class Executor(Protocol):
    """Where tasks run, for the length of a pass."""

    def resources(
        self,
        places: Sequence[Folder],
        *,
        statistic: Statistic | None = None,
        rehearsal: Callable[[], None] | None = None,
    ) -> Resources:
        """Workers, memory, and the first of the places that all workers reach.

        They warm up with what they are to do: fold the like of a ``statistic``, or a ``rehearsal`` of other work.
        """
        ...

    def memory(self) -> dict[str, tuple[int, int]]:
        """Bytes that each worker takes now, and may take (0: unlimited); nothing where that is not known."""
        ...

    def silent(self) -> list[Silent]:
        """Workers that have not been heard of for a while."""
        ...

    def report(self, **done: int) -> None:
        """Tell what has happened to whoever watches the cluster, as `engine.scheduler_metrics` has it."""
        ...

    def map(
        self,
        function: Callable[..., Any],
        job: Job,
        arguments: Sequence[tuple[Any, ...]],
        total: int,
        label: str,
        unit: str,
    ) -> list[Any]:
        """``function(job, *arguments[i], tick=...)`` for each i, in any order; the results in order.

        Ticks count up to ``total`` units.
        """
        ...

    def map_items(
        self, function: Callable[[Any], Any], items: Sequence[Any], *, at_once: int | None = None
    ) -> list[Any]:
        """``function(item)`` for each item, in any order; the results in order.

        With ``at_once`` no more than that are handed out at a time, the first ones first. Of long tasks that are few
        and uneven none then waits behind another while a worker has nothing to do.
        """
        ...

    def map_values(self, function: Callable[[Any, Any], Any], values: Sequence[Any], items: Sequence[Any]) -> list[Any]:
        """``function(value, item)`` for each lazy value of Dask and the item beside it; the results in order."""
        ...

    def map_runs(self, job: Job, source: Source, label: str) -> list[Fold]:
        """`scatter_run` for each run of the plan; the small folds, in order."""
        ...

    def fold(self, job: Job, source: Source, label: str) -> Fold:
        """All runs folded and merged by the plan's tree, in block order."""
        ...


class Engine(PlacesHidden, ABC):
    """Runs passes over data. Engines are frozen values: they hold settings, never connections."""

    panels: int | None
    run: str | None
    spool: str | None
    on_overcommit: Literal["refuse", "warn"] = "refuse"

    @abstractmethod
    def executor(self) -> AbstractContextManager[Executor]:
        """Where tasks run; whatever was started for it ends with the context."""

    @contextmanager
    def session(self) -> Iterator[Engine]:
        """The same engine for several passes: what it would start for each of them is started once."""
        yield self

    @contextmanager
    def mapping(self, source: Source) -> Iterator[Mapping]:
        """A plain ``map(function, items)`` over work that reads a source, such as writing it into a store.

        Data that workers cannot read are worked on here.
        """
        if source.is_shipped:
            yield lambda function, items: [function(item) for item in items]
        else:
            with self.executor() as executor:
                yield executor.map_items

    def plan(self, statistic: Statistic, source: Source, *, beside: Folder | None = None) -> Plan:
        """What `reduce` would do, without reading the data."""
        with (
            open_run_directory(None, self.spool, beside, statistic, source) as place,
            self.executor() as executor,
        ):
            return self._made(statistic, source, executor.resources(place.candidates, statistic=statistic))

    def _made(self, statistic: Statistic, source: Source, resources: Resources) -> Plan:
        if self.on_overcommit not in ("refuse", "warn"):
            raise InputError(f'on_overcommit={self.on_overcommit!r}; give "refuse" or "warn"')
        plan = make_plan(statistic, source, resources, self.panels)
        return replace(plan, overcommit=self.on_overcommit == "warn")

    def reduce(
        self, statistic: Statistic, source: Source, *, kept: Kept | None = None, beside: Folder | None = None
    ) -> Reduction:
        """Fold the statistic over all rows.

        ``kept`` is where the result is looked up and stored for the next time; ``beside`` a folder for temporary
        files that workers are likely to reach. Both may be absent or read-only.
        """
        started = time.perf_counter()
        if kept is not None and (found := kept.find(statistic)) is not None:
            logger.info("reusing the statistics kept in %s", found.folder.location)
            return Reduction(found, None, time.perf_counter() - started, reused=True)
        with open_run_directory(self.run, self.spool, beside, statistic, source) as place, driving(self.run) as driver:
            begun = place.plan()
            if (finished := place.finished()) is not None:
                return Reduction(finished, None, time.perf_counter() - started, reused=True)
            with self.executor() as executor:
                plan = begun or self._made(statistic, source, executor.resources(place.candidates, statistic=statistic))
                plan.check(source)
                place.begin(plan)
                driver.pass_begins(place.name, plan, begun is not None, executor.memory, executor.silent)
                executor.report(passes=1, planned_blocks=plan.n_blocks)
                logger.debug("%s", plan)
                shipped = plan.resources.remote and source.is_shipped
                trusted = source.trusted_for(statistic.accepts)
                job = Job(statistic, None if shipped else source, plan, trusted, checkpoints=place.checkpoints)
                carry_out = _dense if plan.strategy == "dense" else _scatter
                panels = carry_out(job, source, executor, place, kept)
                executor.report(passes_finished=1)
                driver.pass_ends()
            place.complete()
            driver.pass_finished(time.perf_counter() - started)
        return Reduction(panels, plan, time.perf_counter() - started)


def _dense(job: Job, source: Source, executor: Executor, place: RunDirectory, kept: Kept | None) -> Panels:
    """Fold whole states; the client holds the last one."""
    fold = executor.fold(job, source, _label(job))
    fold.check(job.plan.n_blocks)
    if place.results is not None:
        states.write_state(place.results, fold.state, job.plan.n_features, _facts(job))
    _keep(fold.state, job, place, kept)
    return MemoryPanels(fold.state, job.plan.n_features)


def _keep(state: State, job: Job, place: RunDirectory, kept: Kept | None) -> None:
    """Store the state beside the data; that it cannot be is no reason to lose it."""
    target = _reserve(job, place, kept)
    if target is None:
        return
    try:
        states.write_state(target, state, job.plan.n_features, _facts(job))
        _commit(job, place, kept, target)
    except OSError as error:
        logger.warning("statistics are not kept beside the data: %s", error)


def _scatter(job: Job, source: Source, executor: Executor, place: RunDirectory, kept: Kept | None) -> Panels:
    """Spool the entries by column, then fold panel by panel; the client holds none of them."""
    target = _reserve(job, place, kept)
    out = target or place.output(job.plan)
    job = replace(job, spool=place.spool(job.plan), out=out)
    total = Fold(job.statistic.zero())
    for fold in executor.map_runs(job, source, _label(job)):
        total = total.merged(fold, job.statistic)
    total.check(job.plan.n_blocks)
    tiles = np.asarray(total.tiles)
    job = replace(job, bounds=even_bounds(job.plan, tiles))
    groups = folded_together(job.plan, tiles, job.bounds)
    written = executor.map(fold_panels, job, groups, len(job.bounds) - 1, f"{_label(job)}, panels", "panels")
    checksums = [checks for _, of_group in sorted(zip(groups, written, strict=True)) for checks in of_group]
    states.write_manifest(out, total.state.totals, job.bounds, checksums, _facts(job))
    _commit(job, place, kept, target)
    panels = states.StoredPanels(out)
    place.hand_over(panels)
    return panels


def _reserve(job: Job, place: RunDirectory, kept: Kept | None) -> Folder | None:
    """A folder beside the data for the result; it goes with the other temporary ones unless it is committed."""
    target = None if kept is None else kept.reserve(job.statistic)
    if target is not None:
        place.temporary.append(target)
    return target


def _commit(job: Job, place: RunDirectory, kept: Kept | None, target: Folder | None) -> None:
    if kept is not None and target is not None:
        if kept.commit(job.statistic, target):
            place.temporary.remove(target)


def _label(job: Job) -> str:
    return str(job.statistic.name).replace("_", " ")


def label_of(function: Callable[..., Any]) -> str:
    """What a function does, for people who wait for it."""
    return function.__name__.strip("_").replace("_", " ")


def _facts(job: Job) -> dict[str, Any]:
    return {"statistic": job.statistic.describe(), "fingerprint": job.plan.fingerprint}
