"""Passes that are watched while they run, and costs that are fitted to a few small ones."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from nfs_dask.engine.cost_model import Costs, Hosts, Measured, fit, usual_costs
from nfs_dask.engine.distributed import DaskEngine
from nfs_dask.errors import ClusterError, PlanError
from nfs_dask.files.folder import Folder
from nfs_dask.sources.source import Source
from nfs_dask.sources.views import some_blocks
from nfs_dask.statistics.statistic import Statistic
from nfs_dask.units import MiB

logger = logging.getLogger("nfs_dask")

FIRST = ("nfs-fold-run", "nfs-scatter-run")  # tasks that read the data
MOST_SECONDS = 60.0  # after so long no other pass is begun
MOST_ENTRIES = 20 * MiB  # of a small pass, for each worker: about a second of work
MOST_STATE = 256 * MiB  # a whole state that small passes merge
KNOWN = ("worker", "task", "solve")  # do not depend on the cluster, but on the processors of scheduler and client


def watched_pass(
    client: Any, statistic: Statistic, source: Source, engine: DaskEngine, hosts: Hosts, beside: Folder | None = None
) -> Measured:
    """Carry out a pass, and see from Dask's own record of tasks how long its phases took."""
    client.get_task_stream()  # begins the record, the first time
    began, started = time.time(), time.perf_counter()
    plan = replace(engine, address=client).reduce(statistic, source, beside=beside).plan
    seconds = time.perf_counter() - started
    spans = list(_spans(client.get_task_stream(start=began)))
    if plan is None or not spans:
        raise ClusterError("the scheduler has no record of the tasks of a pass; calibrate on a cluster of its own")
    before = max(0.0, min(start for start, _ in spans) - began)
    reading = max(stop for _, stop in spans) - min(start for start, _ in spans)
    names = ("fold", "merge") if plan.strategy == "dense" else ("spool", "panels")
    phases = {"prepare": before, names[0]: reading, names[1]: max(0.0, seconds - before - reading)}
    return Measured(plan.work, hosts, phases)


def _spans(stream: Iterable[dict[str, Any]]) -> Iterator[tuple[float, float]]:
    """When tasks that read data began and ended, by the scheduler's clock."""
    for record in stream:
        if record["key"].startswith(FIRST):
            for step in record["startstops"]:
                if step["action"] == "compute":
                    yield step["start"], step["stop"]


def calibrate(client: Any, statistic: Statistic, source: Source, hosts: Hosts, beside: Folder | None = None) -> Costs:
    """Costs on this cluster, of these data, from small passes over the first blocks; a minute, or a little more."""
    ways = list(_ways(statistic, source, hosts))

    def one(workers: int, blocks: int, panels: int | None) -> Measured:
        head, engine = some_blocks(source, np.arange(blocks)), DaskEngine(workers=workers, panels=panels)
        done = watched_pass(client, statistic, head, engine, replace(hosts, workers=workers), beside)
        entries = round(source.about_entries * blocks / source.n_blocks)
        return replace(done, work=replace(done.work, entries=entries))

    fitting: list[int | None] = []
    for panels in ways:  # so that workers have imported and compiled what they need
        with suppress(PlanError):  # another way may fit workers of this size, as it does when a plan chooses
            one(hosts.workers, 1, panels)
            fitting.append(panels)
    deadline, measured = time.monotonic() + MOST_SECONDS, []
    for small in ((*size, panels) for size in _sizes(source, hosts) for panels in fitting or [None]):
        if time.monotonic() > deadline:
            logger.warning("calibration ends after %.0f s; terms that no pass has had are as usual", MOST_SECONDS)
            break
        measured.append(one(*small))
    where = f"{hosts.workers} worker(s) x {hosts.threads:g} thread(s), {time.strftime('%Y-%m-%d')}"
    return replace(fit(measured, usual_costs(), KNOWN), command="nfs-dask plan --calibrate", machine=where)


def _ways(statistic: Statistic, source: Source, hosts: Hosts) -> Iterator[int]:
    """Panels of small passes: all kinds of plans that there are for the data."""
    if statistic.array_nbytes(source.n_features, source.kind, source.weighted) <= MOST_STATE:
        yield 1
    if statistic.entrywise:
        yield from (2 * hosts.slots, 8 * hosts.slots)


def _sizes(source: Source, hosts: Hosts) -> Iterator[tuple[int, int]]:
    """Workers and blocks of small passes."""
    for workers in sorted({hosts.workers, -(-hosts.workers // 2), 1}, reverse=True):
        most = max(1, round(workers * hosts.threads) * MOST_ENTRIES // max(1, source.block_entries))
        for blocks in sorted({min(source.n_blocks, most), -(-min(source.n_blocks, most) // 4)}):
            yield workers, blocks
