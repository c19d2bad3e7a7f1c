"""``nfs-dask status``, ``stop`` and ``doctor``: how a run stands, its end, and what stands in the way of one."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from nfs_dask.cli import options
from nfs_dask.cli.output import answer, say, show, show_line, show_lines, show_table, table
from nfs_dask.cli.reporting import only_watches
from nfs_dask.errors import ClusterError, ResumeError
from nfs_dask.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from nfs_dask.cluster.examine import Machine, Report
    from nfs_dask.engine.run_status import Run, RunStatus

WATCH_SECONDS = 2.0
LOOK_SECONDS = 0.5
MOST_SECONDS = 90.0  # a driver looks every 10 s behind a URL, and has some seconds to put things away
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


@click.command()
@click.argument("run", metavar="RUN")
@click.option("--watch", is_flag=True, help="Show it anew every 2 s until the run ends, or Ctrl-C does.")
@options.json_output
def status(run: str, watch: bool) -> None:
    """How the run in the folder RUN stands: how far it is, how fast, and whether its driver lives.

    All is read from the folder, so this works wherever the folder can be reached, and disturbs nothing. A run that has
    ended says how, and how to go on with it. With --json one object is printed, with --watch one for each look.

    A state is one of starting, running, finished, failed, interrupted, lost (its driver died without a word: on its own
    machine that is known at once, elsewhere after three minutes), and stopped (nothing is at work on it).

    \b
    nfs-dask status run
    nfs-dask status run --watch
    nfs-dask status s3://bucket/run --json
    """
    from nfs_dask.engine.run_status import read_status

    if watch:
        only_watches()
    try:
        while True:
            found = read_status(run)
            if watch and sys.stdout is not None and sys.stdout.isatty():
                click.clear()
            if answer({"type": "status", **found.to_json()}):
                _show_status(found)
            if sys.stdout is not None:
                sys.stdout.flush()
            if not (watch and found.live):
                return
            time.sleep(WATCH_SECONDS)
    except KeyboardInterrupt:
        if not watch:
            raise


@click.command()
@click.argument("run", metavar="RUN")
@options.json_output
def stop(run: str) -> None:
    """End the run in the folder RUN, wherever its driver is; what was finished is kept.

    The driver is asked through the folder, so this works from every machine that can write to it, and does what SIGTERM
    would do there: the driver puts away what was counted and ends with the command that goes on, which status shows.

    \b
    nfs-dask stop run
    nfs-dask stop s3://bucket/run
    """
    from nfs_dask.engine.driver import STOP
    from nfs_dask.engine.run_status import read_status
    from nfs_dask.files.folder import Folder

    folder, found = Folder.of(run), read_status(run)
    if not found.live:
        answer({"run": run, "state": found.state}, f"{run} is {found.state}")
        return
    if found.driver is not None and not found.seen.get("command"):
        raise ResumeError(f"{run} is driven by a program of Python, {found.driver}; interrupt it there")
    folder.scratch.write(STOP, b"")
    say("asked; the driver puts away what was counted, which may take some seconds")
    try:
        deadline = time.monotonic() + MOST_SECONDS
        while (found := read_status(run)).live and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)
    finally:
        if not found.live:
            folder.delete(STOP)
    told = f"{run} is {found.state}" if not found.live else f"{run} has not ended yet; see nfs-dask status {run}"
    answer({"run": run, "state": found.state}, told)


def show_run(run: Run) -> None:
    """Print what a run folder holds."""
    lines = [("run", run.location), ("data", _data_of(run)), ("fingerprint", run.fingerprint)]
    show_lines(lines if run.nbytes is None else [*lines, ("size", format_bytes(run.nbytes))])
    _show_passes(run)


def _data_of(run: Run) -> str:
    return f"{run.rows:,} rows, {run.features:,} features"


def _show_passes(run: Run) -> None:
    if not run.passes:
        show_line("No pass has begun.")
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
    show_table("Passes", columns, rows)


def _show_status(status: RunStatus) -> None:
    """Print state, progress, workers, driver, what to type next, and what happened last."""
    from nfs_dask.cluster.resources import Silent

    lines = [("run", status.location), ("state", _STATES[status.state])]
    if status.message is not None:
        lines.append(("because", status.message))
    work, workers, driver, live = status.seen.get("work"), status.seen.get("workers"), status.driver, status.live
    if live and work:
        lines.append(("progress", f"{work['label']}: {_progress(work)}"))
    if workers:
        limit = f" of {format_bytes(workers['limit_nbytes'])}" if workers["limit_nbytes"] else ""
        memory = (
            f"together {format_bytes(workers['nbytes'])}; the largest takes {format_bytes(workers['largest_nbytes'])}"
        )
        lines.append(("workers", f"{workers['workers']:,}, {memory}{limit}, as seen {_ago(workers['seen'], status)}"))
    for one in workers.get("silent", ()) if workers and live else ():
        lines.append(("silent", str(Silent(one["address"], status.now - one["since"], one["worker_ttl"]))))
    if driver is not None:
        lines.append(("driver", f"{driver}, last heard of {_ago(driver.alive, status)}"))
    if status.log is not None:
        lines.append(("log", status.log))
    if status.run is not None:
        lines.append(("data", _data_of(status.run)))
    if live:  # a signal to a process of this machine, or a word in the folder of the run
        stopping = f"nfs-dask stop {shlex.quote(status.location)}"
        if driver is not None and (driver.here or not status.seen.get("command")):
            stopping = f"kill {driver.pid}" + ("" if driver.here else f", on {driver.host}")
        lines.append(("stop", stopping))
    elif status.state != "finished":
        told = status.resume or "give the same run folder to the same engine and fit again"
        lines.append(("resume", told + (f", in {status.folder}" if status.resume and status.folder else "")))
    show_lines(lines)
    if status.run is not None:
        _show_passes(status.run)
    else:
        show_line("No pass over a store has begun.")
    if status.events:
        rows = [
            (time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(event["time"])), *_in_words(event))
            for event in status.events[-_MOST_EVENTS:]
        ]
        show_table("Last events", ["time", "event", "what"], rows)


def _ago(moment: float, status: RunStatus) -> str:
    return f"{format_seconds(max(0.0, status.now - moment))} ago"


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


@click.command()
@click.option("--store", metavar="STORE", help="A dataset that this machine and every worker must reach.")
@click.option("--make-certificates", "certificates", metavar="DIR", help="Write what mutual TLS needs, and do no more.")
@click.option("--host", "hosts", multiple=True, metavar="NAME", help="A name or address for the certificates; repeat.")
@options.cluster
@options.json_output
def doctor(
    store: str | None, certificates: str | None, hosts: tuple[str, ...], cluster: options.ClusterOptions
) -> None:
    """Compare versions, memory, encryption and access to data.

    Without --scheduler it looks at this machine only. With it, it also knocks from outside: who gets in without
    encryption or without a certificate, what certificates are worth, and who sees the dashboard. --scheduler gateway is
    your cluster at a Dask Gateway, and gateway://NAME the one of several that has that name. Exit code 4 means that
    something stands in the way of a pass; the message names it.

    \b
    nfs-dask doctor
    nfs-dask doctor --scheduler tcp://127.0.0.1:8786 --store s3://bucket/mail.zarr
    nfs-dask doctor --scheduler gateway
    nfs-dask doctor --make-certificates certs --host scheduler.example.org
    nfs-dask doctor --scheduler tls://scheduler.example.org:8786 \\
        --tls-ca certs/ca.pem --tls-cert certs/client.pem --tls-key certs/client-key.pem
    """
    if certificates is not None:
        from nfs_dask.cluster.tls import DEFAULT_HOSTS, make_certificates

        files = [str(path) for path in make_certificates(certificates, hosts or DEFAULT_HOSTS)]
        advice = "Give each machine ca.pem and its own pair; keep ca-key.pem to yourself, or delete it."
        answer({"files": files}, "\n".join([*files, advice]))
        return
    if hosts:
        raise click.UsageError("--host names machines for certificates; it goes with --make-certificates DIR")
    from nfs_dask.cluster.examine import examine
    from nfs_dask.cluster.tls_audit import audit_tls

    with cluster.client() as client:
        report = examine(client, store, settings=True)
        if client is not None:
            audit_tls(report, client)
    if answer(report.to_json()):
        _show_report(report)
    if not report.healthy:
        raise ClusterError("; ".join(report.problems))


def _show_report(report: Report) -> None:
    def version(node: Machine, package: str) -> str:
        return node.versions.get(package) or "-"

    workers = [node for node in report.nodes if node.role == "worker"]
    others = [node for node in report.nodes if node.role != "worker"]
    rows = [
        # One cell for all workers, whose versions are usually the same
        [
            name,
            *(version(node, name) for node in others),
            *([" | ".join(sorted({version(one, name) for one in workers}))] if workers else []),
        ]
        for name in report.nodes[0].versions
        if any(node.versions.get(name) for node in report.nodes)
    ]
    show(table(None, ["", *(node.role for node in others), *(["workers"] if workers else [])], rows))
    for node in report.nodes:
        if node.threads is not None:
            limit = format_bytes(node.memory_limit) if node.memory_limit else "no memory limit"
            show_line(f"{node.name}: {node.threads} thread(s), {limit}")
    if report.encrypted is not None:
        show_line("traffic is encrypted" if report.encrypted else "traffic is not encrypted")
    for note in report.notes:
        show_line(f"note: {note}")
    for problem in report.problems:
        show_line(f"PROBLEM: {problem}")
    if report.healthy:
        show_line("nothing stands in the way")
