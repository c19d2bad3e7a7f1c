"""Runs as people see them: what a run folder holds, and how it stands."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nfs_dask.cli.output import show_line, show_lines, show_table
from nfs_dask.cluster.resources import Silent
from nfs_dask.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from rich.console import Console

    from nfs_dask.engine.run_status import Run, RunStatus

_MOST_EVENTS = 10
_STATES = {
    "starting": "starting: its driver has been started or submitted, and has not reported yet",
    "running": "running",
    "finished": "finished",
    "failed": "failed",
    "interrupted": "interrupted; what was finished is kept",
    "lost": "lost: its driver died without a word; what was finished is kept",
    "stopped": "nothing is at work on it; what was finished is kept",
}


def show_run(run: Run, console: Console) -> None:
    """What a run folder holds."""
    lines = [
        ("run", run.location),
        *data_of(run),
        ("fingerprint", run.fingerprint),
        *([] if run.nbytes is None else [("size", format_bytes(run.nbytes))]),
    ]
    show_lines(lines, console)
    show_passes(run, console)


def data_of(run: Run) -> list[tuple[str, str]]:
    return [("data", f"{run.rows:,} rows, {run.features:,} features")]


def show_passes(run: Run, console: Console) -> None:
    """The passes that were begun, and how far they have got."""
    if not run.passes:
        show_line("No pass has begun.", console)
        return
    rows = [
        (
            one.name,
            f"{one.blocks_done:,} of {one.plan.n_blocks:,}",
            "yes" if one.finished else "no",
            one.plan.strategy,
            one.plan.tasks,
            format_bytes(one.plan.peak_nbytes),
            format_seconds(one.plan.seconds),
        )
        for one in run.passes
    ]
    columns = ["pass", "blocks done", "finished", "strategy", "tasks", "memory a worker", "planned time"]
    show_table("Passes", columns, rows, console)


def show_status(status: RunStatus, console: Console) -> None:
    """How a run stands: state, progress, workers, driver, what to type next, and what happened last."""
    lines = [("run", status.location), ("state", _STATES[status.state])]
    if status.message is not None:
        lines.append(("because", status.message))
    workers = status.seen.get("workers")
    if status.live:
        lines += _of_work(status)
    if workers:
        lines.append(("workers", _of_workers(workers, status)))
    if workers and status.live:
        for one in workers.get("silent", ()):
            lines.append(("silent", str(Silent(one["address"], status.now - one["since"], one["worker_ttl"]))))
    lines += _of_driver(status)
    if status.log is not None:
        lines.append(("log", status.log))
    if status.run is not None:
        lines += data_of(status.run)
    show_lines(lines, console)
    _show_next(status, console)
    if status.run is not None:
        show_passes(status.run, console)
    else:
        show_line("No pass over a store has begun.", console)
    if status.events:
        rows = [(_clock(event["time"]), *_in_words(event)) for event in status.events[-_MOST_EVENTS:]]
        show_table("Last events", ["time", "event", "what"], rows, console)


def _of_work(status: RunStatus) -> list[tuple[str, str]]:
    """How far the driver was when it was heard of last."""
    work = status.seen.get("work")
    return [] if not work else [("progress", f"{work['label']}: {_progress(work)}")]


def _progress(work: Mapping[str, Any]) -> str:
    total = work.get("total")
    parts = [f"{work['done']:,} {work['unit']}" if total is None else f"{work['done']:,} of {total:,} {work['unit']}"]
    if work.get("per_second"):
        parts.append(f"{work['per_second']:,.3g} {work['unit']}/s")
    if work.get("nbytes_per_second"):
        parts.append(f"{format_bytes(work['nbytes_per_second'])}/s")
    parts.append(f"{format_seconds(work['seconds'])} so far")
    if work.get("seconds_left") is not None and work["done"] != total:
        parts.append(f"about {format_seconds(work['seconds_left'])} left")
    return ", ".join(parts)


def _of_workers(workers: Mapping[str, Any], status: RunStatus) -> str:
    limit = f" of {format_bytes(workers['limit_nbytes'])}" if workers["limit_nbytes"] else ""
    return (
        f"{workers['workers']:,}, together {format_bytes(workers['nbytes'])}; the largest takes "
        f"{format_bytes(workers['largest_nbytes'])}{limit}, as seen {_ago(workers['seen'], status)}"
    )


def _of_driver(status: RunStatus) -> list[tuple[str, str]]:
    driver = status.driver
    if driver is None:
        return []
    return [("driver", f"{driver}, last heard of {_ago(driver.alive, status)}")]


def _ago(moment: float, status: RunStatus) -> str:
    return f"{format_seconds(max(0.0, status.now - moment))} ago"


def _show_next(status: RunStatus, console: Console) -> None:
    """The command that does what is likely to come next."""
    if status.live:
        show_line(f"stop         {_stopping(status)}", console, indent=13)
    elif status.state != "finished":
        told = status.resume or "give the same run folder to the same engine and fit again"
        where = f", in {status.folder}" if status.resume and status.folder else ""
        show_line(f"resume       {told}{where}", console, indent=13)


def _stopping(status: RunStatus) -> str:
    """What ends the driver: a signal to a process of this machine, or a word in the folder of the run."""
    driver = status.driver
    if driver is not None and driver.here:
        return f"kill {driver.pid}"
    if driver is not None and not status.seen.get("command"):
        return f"kill {driver.pid}, on {driver.host}"
    return f"nfs-dask stop {shlex.quote(status.location)}"


def _clock(moment: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment))


def _in_words(event: Mapping[str, Any]) -> tuple[str, str]:
    """An event and its numbers."""
    name, about = str(event["event"]), str(event.get("pass") or "")
    what = about
    if name == "submitted":
        what = f"to {event.get('scheduler')}"
    elif name in ("started", "resumed"):
        what = f"process {event.get('pid')} on {event.get('host')}"
    elif name in ("pass_planned", "pass_resumed"):
        what = f"{about}: {event.get('blocks'):,} blocks, {event.get('tasks'):,} tasks, {event.get('strategy')}"
    elif name == "progress":
        what = _progress(event)
    elif name == "checkpoint":
        what = f"{about}: {event.get('blocks_kept'):,} blocks need not be read again"
    elif name in ("worker_joined", "worker_lost"):
        what = f"{event.get('n'):,}; {event.get('workers'):,} are there"
    elif name == "pass_finished":
        what = f"{about} in {format_seconds(float(event.get('seconds') or 0))}"
    elif name == "failed":
        what = str(event.get("message"))
    elif name == "left":
        what = "to another driver, as its worker is gone"
    elif name == "interrupted":
        what = f"by {event.get('by')}"
    return name.replace("_", " "), what
