"""``nfs-dask status``: how a run stands, from another terminal or on another day."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from nfs_dask.cli.output import answer, json_option, only_watches
from nfs_dask.cli.shown_runs import show_status

if TYPE_CHECKING:
    from nfs_dask.engine.run_status import RunStatus

WATCH_SECONDS = 2.0


@click.command()
@click.argument("run", metavar="RUN")
@click.option("--watch", is_flag=True, help="Show it anew every 2 s until the run ends, or Ctrl-C does.")
@json_option
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

    if not watch:
        _tell(read_status(run))
        return
    only_watches()
    try:
        while True:
            found = read_status(run)
            if sys.stdout is not None and sys.stdout.isatty():
                click.clear()
            _tell(found)
            if not found.live:
                return
            time.sleep(WATCH_SECONDS)
    except KeyboardInterrupt:
        return


def _tell(found: RunStatus) -> None:
    answer({"type": "status", **found.to_json()}, lambda console: show_status(found, console))
    if sys.stdout is not None:
        sys.stdout.flush()
