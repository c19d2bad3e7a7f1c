"""What commands show: tables for people or one JSON object for programs, and the rest on standard error."""

from __future__ import annotations

import errno
import json
import logging
import math
import shutil
import sys
import textwrap
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

import click

from nfs_dask.cli.interrupts import Terminated, announced, end_soon, exit_code_of
from nfs_dask.cli.shell_words import in_shell_words
from nfs_dask.errors import NfsDaskError, NfsDaskWarning
from nfs_dask.redaction import redacted, secrets_of
from nfs_dask.text.printable import printable

if TYPE_CHECKING:
    from rich.console import Console

_JSON = "nfs_dask.json"  # keys of what travels with the click context
_ANSWERED = "nfs_dask.answered"
_KEPT = "nfs_dask.kept"
_WATCHES = "nfs_dask.watches"
_SECRETS = "nfs_dask.secrets"

_NUMBERS = {  # how click calls numbers that may not be any
    "is not a valid float range.": "is not a number; give one such as 0.5",
    "is not a valid integer range.": "is not a whole number; give one such as 2",
}
_MOST_ROWS = 40  # shown as a table; --json has all
_PIPE_WIDTH = 200  # columns where no terminal says how many there are; tables take what they need


def remember_secrets(ctx: click.Context, typed: Iterable[str]) -> None:
    """Hide the secrets of the places that were typed in all that a command answers."""
    ctx.meta[_SECRETS] = secrets_of(typed)


def _public(text: str) -> str:
    """A text that may hold data, without the secrets that were typed."""
    context = click.get_current_context(silent=True)
    for secret, shown in ({} if context is None else context.meta.get(_SECRETS, {})).items():
        text = text.replace(secret, shown)
    return text


def json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command ``--json``; what it passes to `answer` is then printed as one JSON object."""
    return click.option(
        "--json",
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=lambda ctx, _option, value: ctx.meta.__setitem__(_JSON, value),
        help="Print one JSON object for programs, and nothing else on standard output.",
    )(command)


def answer(values: Mapping[str, Any], show: Callable[[Console], None]) -> None:
    """The result of a command, once: ``values`` for programs, or ``show`` on a console for people."""
    meta = click.get_current_context().meta
    meta[_ANSWERED] = True
    if meta.get(_JSON):
        _print_json(values)
    else:
        show(_console())


def show_line(text: str, console: Console, indent: int = 0) -> None:
    """A line for people, on as many lines of a terminal as it takes, which are cut between words only."""
    for line in text.split("\n"):
        console.print(fitted(printable(_public(line)), console.width, indent), soft_wrap=True)


def show_lines(lines: Iterable[tuple[str, str]], console: Console) -> None:
    """Names and what they are, a line each."""
    for name, value in lines:
        show_line(f"{name:<12} {value}", console, indent=13)


def show_table(title: str, columns: list[str], rows: list[Any], console: Console) -> None:
    """A table below what was said before, with its first rows if there are many."""
    console.print()
    console.print(table(title, columns, rows[:_MOST_ROWS]))
    if len(rows) > _MOST_ROWS:
        show_line(f"... and {len(rows) - _MOST_ROWS:,} more; --json lists all", console)


def fitted(text: str, width: int | None, indent: int = 0) -> str:
    """Text on lines of a width, cut between words; words that are longer, such as paths, stay whole.

    >>> print(fitted("what is given is cut, but /not/in/words", 12, indent=2))
    what is
      given is
      cut, but
      /not/in/words
    """
    if width is None:
        return text
    return textwrap.fill(
        text,
        width,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
        drop_whitespace=True,
    )


def error_width() -> int | None:
    """Columns of the terminal that standard error is; None where it is none."""
    if sys.stderr is None or not sys.stderr.isatty():
        return None
    return shutil.get_terminal_size().columns


def certificate(k: int, features: int, certified: bool, gap: float, measure: str) -> str:
    """How sure a choice of k features is, as the end of a sentence; nothing where all were taken."""
    if k == features:
        return ""
    if measure == "predicted error" and not certified:
        return "; a search found this choice, and another one may be better"
    return "; no other choice of as many features is better" + ("" if certified else f" by more than {gap:.3g} nats")


def all_features_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command ``--all-features``."""
    return click.option("--all-features", is_flag=True, help="List every chosen feature, with its class and weight.")(
        command
    )


def show_chosen(chosen: Sequence[Mapping[str, Any]], console: Console) -> None:
    """All chosen features."""
    rows = [[one["feature"], str(one["class"]), f"{one['weight']:+.3f}"] for one in chosen]
    console.print(table(f"All {len(rows):,} chosen features", ["feature", "speaks for", "weight"], rows))


def keeps(text: str) -> None:
    """Say beforehand what an interruption from here on would leave behind."""
    click.get_current_context().meta[_KEPT] = text


def only_watches() -> None:
    """Say beforehand that an interruption is how this command is meant to end, and needs no words."""
    click.get_current_context().meta[_WATCHES] = True


def say(text: str) -> None:
    """A line for people about what is going on, on standard error."""
    click.echo(fitted(printable(redacted(text)), error_width()), err=True)


def table(title: str | None, columns: Sequence[str], rows: Sequence[Sequence[Any]], right: bool = False) -> Any:
    """A table whose numbers are aligned to the right; texts are shown as they are, never read as markup.

    With ``right`` all columns are: their numbers have been written out already.
    """
    from rich.console import Group
    from rich.text import Text

    from nfs_dask.cli.tables import FittedTable

    numbers = [
        right or (bool(rows) and all(isinstance(row[i], (int, float)) for row in rows)) for i in range(len(columns))
    ]
    cells = [[f"{cell:,}" if isinstance(cell, int) else printable(_public(str(cell))) for cell in row] for row in rows]
    made = FittedTable([printable(column) for column in columns], cells, numbers)
    return made if title is None else Group(Text(title), made)


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
        message = fitted(f"Error: {_public(redacted(said))}", error_width()).removeprefix("Error: ")
        raise click.UsageError(message, error.ctx) from None
    except NfsDaskError as error:
        _fail(ctx, in_shell_words(str(error), _command(ctx)), type(error).__name__, error.exit_code)
    except OSError as error:
        if error.errno == errno.EPIPE:  # whoever read our output has seen enough; click ends quietly
            raise
        _fail(ctx, _described(error), type(error).__name__, 3)
    except KeyboardInterrupt as error:
        kept = ctx.meta.get(_KEPT, "nothing was written")
        how = "ended by SIGTERM" if isinstance(error, Terminated) else "interrupted"
        end_soon(exit_code_of(error))
        _fail(ctx, f"{how}; {kept}", type(error).__name__, exit_code_of(error))
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except Exception as error:
        _show_bug(error)
        raise


def _show_bug(error: Exception) -> None:
    """End with a traceback without secrets, where Python would show one that has some."""
    told = "".join(traceback.format_exception(error))
    if (shown := _public(redacted(told))) != told:
        click.echo(printable(shown), err=True)
        raise click.exceptions.Exit(1) from None


def _command(ctx: click.Context) -> click.Command | None:
    """The command of a group that was called."""
    group, name = ctx.command, ctx.invoked_subcommand
    return group.get_command(ctx, name) if isinstance(group, click.Group) and name is not None else None


def _described(error: OSError) -> str:
    """What the system or a remote place said, and about which file where it said that."""
    if error.filename is not None:
        advice = "; check the path" if error.errno == errno.ENOENT else ""
        return f"{error.filename}: {error.strerror}{advice}"
    return error.strerror or str(error) or type(error).__name__


def _fail(ctx: click.Context, message: str, kind: str, exit_code: int) -> None:
    message = _public(redacted(message))
    click.echo(fitted(f"Error: {printable(message)}", error_width()), err=True)
    if ctx.meta.get(_JSON) and not ctx.meta.get(_ANSWERED):
        _print_json({"error": message, "kind": kind, "exit_code": exit_code})
    raise click.exceptions.Exit(exit_code) from None


def _print_json(values: Mapping[str, Any]) -> None:
    click.echo(json.dumps(_plain(values), allow_nan=False))


def _plain(value: Any) -> Any:
    """The value in types of JSON, which knows neither numpy nor infinity: what is not finite becomes null."""
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, str):
        return _public(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _console() -> Console:
    from rich.console import Console

    return Console(markup=False, highlight=False, width=None if _is_terminal() else _PIPE_WIDTH)


def _is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()  # None: it was closed before we began


class _StandardError(logging.StreamHandler[TextIO]):
    """Writes to whatever standard error is at the time, with nothing in it that a terminal would obey."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)

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
    handler, level = _StandardError(), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


@contextmanager
def _warnings(ctx: click.Context) -> Iterator[None]:
    """Show warnings of ours as sentences; leave the others as they are."""
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
