"""Commands that go on without their terminal, and the words that go on with what was begun."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import psutil

from nfs_dask.cli.output import show_line
from nfs_dask.errors import ClusterError
from nfs_dask.redaction import redacted

if TYPE_CHECKING:
    from rich.console import Console

    from nfs_dask.engine.driver import Command
    from nfs_dask.files.claims import Holder
    from nfs_dask.files.folder import Folder

_TYPED = "nfs_dask.typed"  # key of what travels with the click context
COMMAND_OF = "NFS_DASK_DRIVER_COMMAND"  # tells a detached driver what was typed to begin it, and where its output goes
# Its arguments come by standard input: those of a process can be seen by all users of its machine.
_PROGRAM = "import json, sys; from nfs_dask.cli.main import cli; cli(json.load(sys.stdin), prog_name='nfs-dask')"


class RememberingCommand(click.Command):
    """A command that knows what was typed, and goes on by ``--resume``."""

    resume_option = "--resume"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_TYPED] = list(args)
        return super().parse_args(ctx, args)


class RepeatedCommand(RememberingCommand):
    """A command that knows what was typed, and goes on when it is typed again."""

    resume_option = "--run"


def typed_command(resumed: bool) -> Command:
    """The command that is being carried out, for whoever asks how to go on with it."""
    from nfs_dask.engine.driver import Command

    if (told := os.environ.get(COMMAND_OF)) is not None:
        return Command(**json.loads(told), resumed=resumed)
    context = click.get_current_context()
    assert isinstance(context.command, RememberingCommand)
    again = _resuming(typed_words(), context.command.resume_option)
    words = [context.command_path, *map(shlex.quote, map(redacted, again))]
    return Command(" ".join(words), os.getcwd(), resumed)


def typed_words() -> list[str]:
    """The words behind the name of the command that is being carried out."""
    words: list[str] = click.get_current_context().meta[_TYPED]
    return words


@contextmanager
def told_how_to_go_on(command: Command | None) -> Iterator[None]:
    """Where the cluster fails in the block, say the command that goes on with what was counted."""
    try:
        yield
    except ClusterError as error:
        if command is None:
            raise
        raise ClusterError(f"{error}; what was counted is kept, go on with {command.resume}") from error


def _resuming(typed: Iterable[str], option: str) -> list[str]:
    """What was typed, with the option that goes on in the place of ``--run``."""
    words = [word.replace("--run=", f"{option}=", 1) if word.startswith("--run=") else word for word in typed]
    return [option if word == "--run" else word for word in words]


def start_detached(run: str) -> dict[str, Any]:
    """Begin the command that was typed anew, as a process of its own; what to know of it.

    It has a session of its own, so that it outlives the terminal, reads nothing, and writes to a log: in the run
    folder, or for one behind a URL in a temporary file, of which it leaves copies there.
    """
    from nfs_dask.engine.driver import DRIVER, STOP, refuse_second_driver
    from nfs_dask.files.folder import Folder

    context, folder, command = click.get_current_context(), Folder.of(run), typed_command(False)
    refuse_second_driver(folder)
    for old in (DRIVER, STOP):
        folder.delete(old)
    log = new_log(folder)
    words = [str(context.info_name), *(word for word in typed_words() if word != "--detach")]
    with open(log, "ab") as out:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM, *map(redacted, words)],  # which only people read
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=out,
            start_new_session=True,
            env=os.environ | {COMMAND_OF: json.dumps({**command.to_json(), "log": str(log)})},
        )
    assert process.stdin is not None
    with suppress(BrokenPipeError), process.stdin as pipe:  # what it wrote says why it has died
        pipe.write(json.dumps(words).encode())
    here = announced_process(folder, process.pid, command)
    return {
        "run": folder.location,
        "pid": process.pid,
        "host": here.host,
        "log": str(log),
        "look": f"nfs-dask status {shlex.quote(run)}",
        "stop": f"kill {process.pid}",
    }


def announced_process(folder: Folder, pid: int, command: Command) -> Holder:
    """Name a process that was started as the driver of a run, unless it has done so itself."""
    from nfs_dask.engine.driver import announce_driver
    from nfs_dask.files.claims import Holder

    here = Holder.this()
    try:
        begun = psutil.Process(pid).create_time()
    except psutil.NoSuchProcess:  # what it wrote says why
        begun = 0.0
    holder = Holder(here.host, here.machine, pid, begun, here.token)
    announce_driver(folder, holder, command)
    return holder


def new_log(folder: Folder) -> Path:
    """The file for what a detached driver says: in the run folder, or for one behind a URL a temporary one."""
    from nfs_dask.engine.driver import LOG

    if folder.remote:
        handle, path = tempfile.mkstemp(prefix="nfs-dask-driver-", suffix=".log")
        os.close(handle)
        return Path(path)
    Path(folder.location).mkdir(parents=True, exist_ok=True)
    return Path(folder.location, LOG)


def show_detached(begun: dict[str, Any], console: Console) -> None:
    """Where a run goes on, and how to look at it and end it."""
    if begun["pid"] is None:
        show_line(f"{begun['scheduler']} has it, and begins when a worker is free", console)
    else:
        log = f", and writes to {begun['log']}" if "log" in begun else ", for as long as its cluster is there"
        show_line(f"process {begun['pid']} on {begun['host']} goes on by itself{log}", console)
    show_line(f"look         {begun['look']} --watch", console, indent=13)
    show_line(f"stop         {begun['stop']}", console, indent=13)
