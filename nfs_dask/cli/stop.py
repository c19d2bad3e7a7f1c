"""``nfs-dask stop``: ask a run to end, wherever its driver is."""

from __future__ import annotations

import time

import click

from nfs_dask.cli.output import answer, json_option, say, show_line

LOOK_SECONDS = 0.5
MOST_SECONDS = 90.0  # a driver looks every 10 s behind a URL, and has some seconds to put things away


@click.command()
@click.argument("run", metavar="RUN")
@json_option
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
    from nfs_dask.errors import ResumeError
    from nfs_dask.files.folder import Folder

    folder, found = Folder.of(run), read_status(run)
    if not found.live:
        answer({"run": run, "state": found.state}, lambda console: show_line(f"{run} is {found.state}", console))
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
    answer({"run": run, "state": found.state}, lambda console: show_line(told, console))
