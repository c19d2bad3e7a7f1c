"""Commands that go on without their terminal, and the words that go on with what was begun."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import psutil

from nfs_dask.redaction import redacted

if TYPE_CHECKING:
    from nfs_dask.engine.driver import Command

_TYPED = "nfs_dask.typed"  # key of what travels with the click context
LOG_OF = "NFS_DASK_DRIVER_LOG"  # tells a detached driver the file that its output goes to
# Its arguments come by standard input: those of a process can be seen by all users of its machine.
_PROGRAM = "import json, sys; from nfs_dask.cli.main import cli; cli(json.load(sys.stdin), prog_name='nfs-dask')"


class RememberingCommand(click.Command):
    """A command that knows what was typed."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_TYPED] = list(args)
        return super().parse_args(ctx, args)


def typed_command(resumed: bool) -> Command:
    """The command that is being carried out, for whoever asks how to go on with it."""
    from nfs_dask.engine.driver import Command

    context = click.get_current_context()
    words = [context.command_path, *map(shlex.quote, map(redacted, _resuming(context.meta[_TYPED])))]
    return Command(" ".join(words), os.getcwd(), resumed, os.environ.get(LOG_OF))


def _resuming(typed: Iterable[str]) -> list[str]:
    """What was typed, with ``--run`` as ``--resume``."""
    words = [word.replace("--run=", "--resume=", 1) if word.startswith("--run=") else word for word in typed]
    return ["--resume" if word == "--run" else word for word in words]


def start_detached(run: str) -> dict[str, Any]:
    """Begin the command that was typed anew, as a process of its own; what to know of it.

    It has a session of its own, so that it outlives the terminal, reads nothing, and writes to a log: in the run
    folder, or for one behind a URL in a temporary file, of which it leaves copies there.
    """
    from nfs_dask.engine.driver import DRIVER, LOG, announce_driver, refuse_second_driver
    from nfs_dask.files.claims import Holder
    from nfs_dask.files.folder import Folder

    context, folder = click.get_current_context(), Folder.of(run)
    refuse_second_driver(folder)
    folder.delete(DRIVER)
    log = _new_log(folder.location, LOG, folder.remote)
    words = [str(context.info_name), *(word for word in context.meta[_TYPED] if word != "--detach")]
    with open(log, "ab") as out:
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, *map(redacted, words)],  # which only people read
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=out,
            start_new_session=True,
            env=os.environ | {LOG_OF: str(log)},
        )
    assert process.stdin is not None
    with suppress(BrokenPipeError), process.stdin as pipe:  # what it wrote says why it has died
        pipe.write(json.dumps(words).encode())
    here = Holder.this()
    try:
        begun = psutil.Process(process.pid).create_time()
    except psutil.NoSuchProcess:  # what it wrote says why
        begun = 0.0
    announce_driver(folder, Holder(here.host, here.machine, process.pid, begun, here.token), typed_command(False))
    return {
        "run": folder.location,
        "pid": process.pid,
        "host": here.host,
        "log": str(log),
        "look": f"nfs-dask status {shlex.quote(run)}",
        "stop": f"kill {process.pid}",
    }


def _new_log(location: str, name: str, remote: bool) -> Path:
    if remote:
        handle, path = tempfile.mkstemp(prefix="nfs-dask-driver-", suffix=".log")
        os.close(handle)
        return Path(path)
    Path(location).mkdir(parents=True, exist_ok=True)
    return Path(location, name)
