"""Errors, warnings, logs and interruptions of commands: sentences on standard error, and exit codes."""

from __future__ import annotations

import errno
import logging
import os
import re
import signal
import socket
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import click

from nfs_dask.cli.output import ANSWERED, JSON, error_width, fitted, print_json, public, say
from nfs_dask.errors import NfsDaskError, NfsDaskWarning
from nfs_dask.redaction import redacted
from nfs_dask.text.printable import printable

_KEPT, _WATCHES = "nfs_dask.kept", "nfs_dask.watches"  # keys of what travels with the click context
_NUMBERS = {  # how click calls numbers that may not be any
    "is not a valid float range.": "is not a number; give one such as 0.5",
    "is not a valid integer range.": "is not a whole number; give one such as 2",
}


def keeps(text: str) -> None:
    """Say beforehand what an interruption from here on would leave behind."""
    click.get_current_context().meta[_KEPT] = text


def only_watches() -> None:
    """Say beforehand that an interruption is how this command is meant to end, and needs no words."""
    click.get_current_context().meta[_WATCHES] = True


@contextmanager
def reporting(ctx: click.Context) -> Iterator[None]:
    """The one place where errors become exit codes. Only bugs end in a traceback."""
    try:
        with announced(lambda text: None if ctx.meta.get(_WATCHES) else say(text)), _logging(), _warnings(ctx):
            yield
    except click.UsageError as error:
        said = error.format_message()
        for type_of_click, plain in _NUMBERS.items():
            said = said.replace(type_of_click, plain)
        message = fitted(f"Error: {public(redacted(said))}", error_width()).removeprefix("Error: ")
        raise click.UsageError(message, error.ctx) from None
    except NfsDaskError as error:
        _fail(ctx, in_shell_words(str(error), _command(ctx)), error, error.exit_code)
    except OSError as error:
        if error.errno == errno.EPIPE:  # whoever read our output has seen enough; click ends quietly
            raise
        said = error.strerror or str(error) or type(error).__name__
        advice = "; check the path" if error.errno == errno.ENOENT else ""
        _fail(ctx, said if error.filename is None else f"{error.filename}: {said}{advice}", error, 3)
    except KeyboardInterrupt as error:
        terminated = isinstance(error, Terminated)
        code = 128 + (signal.SIGTERM if terminated else signal.SIGINT)  # as shells have it
        if sys.stdout is sys.__stdout__:  # not in a program around this, such as a test, which may go on
            timer = threading.Timer(LAST_SECONDS, os._exit, [code])
            timer.daemon = True
            timer.start()
        how = "ended by SIGTERM" if terminated else "interrupted"
        _fail(ctx, f"{how}; {ctx.meta.get(_KEPT, 'nothing was written')}", error, code)
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except Exception as error:
        told = "".join(traceback.format_exception(error))
        if (shown := public(redacted(told))) != told:  # Python would show the secrets
            click.echo(printable(shown), err=True)
            raise click.exceptions.Exit(1) from None
        raise


def _fail(ctx: click.Context, message: str, error: BaseException, exit_code: int) -> None:
    message = public(redacted(message))
    click.echo(fitted(f"Error: {printable(message)}", error_width()), err=True)
    if ctx.meta.get(JSON) and not ctx.meta.get(ANSWERED):
        print_json({"error": message, "kind": type(error).__name__, "exit_code": exit_code})
    raise click.exceptions.Exit(exit_code) from None


def _command(ctx: click.Context) -> click.Command | None:
    """The command of a group that was called."""
    group, name = ctx.command, ctx.invoked_subcommand
    return group.get_command(ctx, name) if isinstance(group, click.Group) and name is not None else None


class _StandardError(logging.StreamHandler[TextIO]):
    """Writes to standard error, with nothing in it that a terminal would obey."""

    def format(self, record: logging.LogRecord) -> str:
        context = click.get_current_context(silent=True)
        said = in_shell_words(super().format(record), None if context is None else context.command)
        return fitted(printable(said), error_width())


@contextmanager
def _logging() -> Iterator[None]:
    """Show what the package logs, unless the surrounding program has set up logging of its own."""
    logger = logging.getLogger("nfs_dask")
    if logger.hasHandlers():
        yield
        return
    handler, level = _StandardError(sys.stderr), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


@contextmanager
def _warnings(ctx: click.Context) -> Iterator[None]:
    """Show warnings of the package as sentences; leave the others as they are."""
    with warnings.catch_warnings():
        shown = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, NfsDaskWarning):
                said = in_shell_words(str(message), _command(ctx))
                click.echo(fitted(f"Warning: {printable(said)}", error_width()), err=True)
            else:
                shown(message, category, *where, **more)

        warnings.showwarning = show
        yield


# Messages of the library in the words of the shell

_VALUE = r"""(?P<value>'[^']*'|"[^"]*"|\([^()]*\)|True|-?[\w.+-]+)?"""
_WORDS = {
    "nfs_dask.store.publish.clean_up": "nfs-dask ingest --clean-up",
    "nfs_dask.ingest": "nfs-dask ingest",
    "Dataset.align(model), as in nfs_dask.open_dataset(X).align(model),": "--align",
    "X has": "the data have",
    "give the same run folder to resume": "--resume goes on from there",
}


def in_shell_words(message: str, command: click.Command | None) -> str:
    """A message with the options of a command in place of parameters of the same names, and of functions commands.

    >>> @click.command()
    ... @click.option("--text-column")
    ... @click.option("-k")
    ... @click.option("--overwrite", is_flag=True)
    ... def fit(): ...
    >>> in_shell_words("k=0 keeps nothing; say text_column= or overwrite=True; text_column='a' is not there", fit)
    "-k 0 keeps nothing; say --text-column or --overwrite; --text-column 'a' is not there"
    """
    for ours, typed in _WORDS.items():
        message = message.replace(ours, typed)
    for option in command.params if command is not None else ():
        if isinstance(option, click.Option) and option.name is not None:
            message = _with_option(message, option)
    return re.sub(r"(--[\w-]+ \S+) \(\1\)", r"\1", message)  # said in both languages


def _with_option(message: str, option: click.Option) -> str:
    typed, name = option.opts[0], option.name or ""
    before = r"(?<![\w-])"  # not inside a path, an option or another name

    def say_it(found: re.Match[str]) -> str:
        value = found["value"]
        if value is None or (option.is_flag and value == "True"):
            return typed
        if value.startswith("("):  # a pair as it is typed
            return f"{typed} {','.join(part.strip() for part in value[1:-1].split(','))}"
        plain = re.fullmatch(r'"([\w-]+)"', value)  # which needs no quotes in a shell
        return f"{typed} {plain[1] if plain else value}"

    message = re.sub(f"{before}{name}={_VALUE}", say_it, message)
    return re.sub(f"{before}{name}\\b", typed, message) if "_" in name else message


# Ctrl-C and SIGTERM

STOPPING = "stopping: tasks that run are waited for, and what they wrote is put away; this may take some seconds"
AT_ONCE = "ended at once, as a second signal has come"
LAST_SECONDS = 5.0  # after the last words of a command that was ended, for threads that still wait for something
SAME_SECONDS = 0.5  # in which a second signal counts as the first: some programs pass on what came to them already


class Terminated(KeyboardInterrupt):
    """SIGTERM: batch systems, containers and ``kill`` send it to what is to end. Nothing takes it for an error."""


@contextmanager
def announced(say: Callable[[str], None]) -> Iterator[None]:
    """Say that a signal has come when it comes, and let SIGTERM end the block as Ctrl-C does.

    Python itself acts on one when its main thread gets to it, which computes, or waits for workers. The system writes
    signals to a socket right away, on which another thread waits. Signals that the program around this handles itself
    are left to it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handled = (signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)
    ours = {number: usual for number, usual in handled if signal.getsignal(number) is usual}
    came: list[int] = []

    def stop(number: int, _frame: Any) -> None:
        """Raise at the first signal, and at no other: what puts things away is not to be torn out of that."""
        came.append(number)
        if len(came) == 1:
            raise Terminated("SIGTERM") if number == signal.SIGTERM else KeyboardInterrupt

    for number in ours:
        signal.signal(number, stop)
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    listener = threading.Thread(target=_listen, args=(reader, say, ours), name="nfs-dask-interrupts", daemon=True)
    listener.start()
    try:
        yield
    finally:
        for number, usual in ours.items():
            signal.signal(number, usual)
        signal.set_wakeup_fd(before)
        writer.close()
        listener.join()
        reader.close()


def _listen(reader: socket.socket, say: Callable[[str], None], ours: Collection[int]) -> None:
    """Say it at the first signal, and end the process at the second one of ours; until the other end is closed."""
    first: float | None = None
    while signals := reader.recv(64):
        came = [number for number in (signal.SIGINT, signal.SIGTERM) if number in signals]
        if came and first is None:
            first = time.monotonic()
            say(STOPPING)
        elif first is not None and time.monotonic() - first > SAME_SECONDS and any(number in ours for number in came):
            say(AT_ONCE)
            os._exit(128 + came[0])
