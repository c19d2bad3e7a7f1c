"""Commands that go on without their terminal, and the words that go on with what was begun."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nfs_dask.cli.output import answer, show_lines
from nfs_dask.redaction import redacted

if TYPE_CHECKING:
    from nfs_dask.engine.driver import Command
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


def typed_words() -> list[str]:
    """The words behind the name of the command that is being carried out."""
    words: list[str] = click.get_current_context().meta[_TYPED]
    return words


def typed_command(resumed: bool) -> Command:
    """The command that is being carried out, with the option that goes on in the place of ``--run``."""
    from nfs_dask.engine.driver import Command

    if (told := os.environ.get(COMMAND_OF)) is not None:
        return Command(**json.loads(told), resumed=resumed)
    context = click.get_current_context()
    assert isinstance(context.command, RememberingCommand)
    option = context.command.resume_option
    again = (f"{option}{word[5:]}" if word == "--run" or word.startswith("--run=") else word for word in typed_words())
    words = [context.command_path, *map(shlex.quote, map(redacted, again))]
    return Command(" ".join(words), os.getcwd(), resumed)


def go_on_detached(run: str) -> None:
    """Begin the command that was typed anew, as a process of its own, and answer where it is.

    It has a session of its own, so that it outlives the terminal, reads nothing, and writes to a log: in the run
    folder, or for one behind a URL in a temporary file, of which it leaves copies there.
    """
    from nfs_dask.engine.driver import DRIVER, STOP, refuse_second_driver
    from nfs_dask.files.folder import Folder

    folder, command = Folder.of(run), typed_command(False)
    refuse_second_driver(folder)
    for old in (DRIVER, STOP):
        folder.delete(old)
    words = [str(click.get_current_context().info_name), *(word for word in typed_words() if word != "--detach")]
    process, log = start_driver(
        folder,
        ["-c", _PROGRAM, *map(redacted, words)],
        command,
        start_new_session=True,  # words that only people read
    )
    assert process.stdin is not None
    with suppress(BrokenPipeError), process.stdin as pipe:  # what it wrote says why it has died
        pipe.write(json.dumps(words).encode())
    from nfs_dask.files.claims import Holder

    answer_detached(
        {
            "run": folder.location,
            "pid": process.pid,
            "host": Holder.this().host,
            "log": log,
            "look": f"nfs-dask status {shlex.quote(run)}",
            "stop": f"kill {process.pid}",
        }
    )


def start_driver(
    folder: Folder, arguments: list[str], command: Command, **popen: Any
) -> tuple[subprocess.Popen[bytes], str]:
    """Start a Python process that drives a run, and announce it as the driver; the process and its log."""
    import psutil

    from nfs_dask.engine.driver import LOG, announce_driver
    from nfs_dask.files.claims import Holder

    if folder.remote:
        handle, log = tempfile.mkstemp(prefix="nfs-dask-driver-", suffix=".log")
        os.close(handle)
    else:
        Path(folder.location).mkdir(parents=True, exist_ok=True)
        log = str(Path(folder.location, LOG))
    told = {COMMAND_OF: json.dumps({**command.to_json(), "log": log})}
    with open(log, "ab") as out:
        process = subprocess.Popen(
            [sys.executable, "-P", *arguments],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=out,
            env=os.environ | popen.pop("env", {}) | told,
            **popen,
        )
    here = Holder.this()
    try:
        begun = psutil.Process(process.pid).create_time()
    except psutil.NoSuchProcess:  # what it wrote says why
        begun = 0.0
    announce_driver(folder, Holder(here.host, here.machine, process.pid, begun, here.token), command)
    return process, log


def answer_detached(begun: dict[str, Any]) -> None:
    """Answer where a run goes on, and how to look at it and end it."""
    told = f"{begun.get('scheduler')} has it, and begins when a worker is free"
    if begun["pid"] is not None:
        log = f", and writes to {begun['log']}" if "log" in begun else ", for as long as its cluster is there"
        told = f"process {begun['pid']} on {begun['host']} goes on by itself{log}"
    if answer(begun, told):
        show_lines([("look", f"{begun['look']} --watch"), ("stop", begun["stop"])])
