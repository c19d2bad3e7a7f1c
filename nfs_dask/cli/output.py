"""Output of commands: tables for people or one JSON object for programs, and files that are whole."""

from __future__ import annotations

import json
import math
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from nfs_dask.errors import StoreError
from nfs_dask.redaction import redacted, secrets_of
from nfs_dask.text.printable import printable

if TYPE_CHECKING:
    from rich.console import Console

JSON, ANSWERED = "nfs_dask.json", "nfs_dask.answered"  # keys of what travels with the click context
_SECRETS = "nfs_dask.secrets"
_MOST_ROWS = 40  # shown as a table; --json has all
_PIPE_WIDTH = 200  # columns where no terminal says how many there are; tables take what they need


def remember_secrets(ctx: click.Context, typed: Iterable[str]) -> None:
    """Hide the secrets of the places that were typed in all that a command answers."""
    ctx.meta[_SECRETS] = secrets_of(typed)


def public(text: str) -> str:
    """A text that may hold data, without the secrets that were typed."""
    context = click.get_current_context(silent=True)
    for secret, shown in ({} if context is None else context.meta.get(_SECRETS, {})).items():
        text = text.replace(secret, shown)
    return text


def answer(values: Mapping[str, Any], *lines: str) -> bool:
    """Print the result of a command, once: ``values`` for programs, or lines for people; False for programs."""
    meta = click.get_current_context().meta
    meta[ANSWERED] = True
    if meta.get(JSON):
        print_json(values)
        return False
    for line in lines:
        show_line(line)
    return True


def print_json(values: Mapping[str, Any]) -> None:
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
        return public(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


# For people


def console() -> Console:
    """Standard output as rich has it."""
    from rich.console import Console

    terminal = sys.stdout is not None and sys.stdout.isatty()  # None: it was closed before we began
    return Console(markup=False, highlight=False, width=None if terminal else _PIPE_WIDTH)


def show(*what: Any) -> None:
    """Print tables and texts of rich, or an empty line."""
    console().print(*what)


def show_line(text: str, indent: int = 0) -> None:
    """Print a line on as many lines of a terminal as it takes, which are cut between words only."""
    out = console()
    for line in text.split("\n"):
        out.print(fitted(printable(public(line)), out.width, indent), soft_wrap=True)


def show_lines(lines: Iterable[tuple[str, str]], width: int = 12) -> None:
    """Print names and what they are, a line each."""
    for name, value in lines:
        show_line(f"{name:<{width}} {value}", indent=width + 1)


def show_table(title: str, columns: list[str], rows: list[Any]) -> None:
    """Print a table below what was printed before, with its first rows if there are many."""
    show()
    show(table(title, columns, rows[:_MOST_ROWS]))
    if len(rows) > _MOST_ROWS:
        show_line(f"... and {len(rows) - _MOST_ROWS:,} more; --json lists all")


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
    cells = [[f"{cell:,}" if isinstance(cell, int) else printable(public(str(cell))) for cell in row] for row in rows]
    made = FittedTable([printable(column) for column in columns], cells, numbers)
    return made if title is None else Group(Text(title), made)


def top_features_table(tops: Mapping[Any, Sequence[tuple[str, float]]]) -> tuple[str, list[str], list[list[Any]]]:
    """Title, columns and rows of a table of the features that speak for a class most."""
    rows = [
        [label if i == 0 else "", name, f"{weight:+.3f}"]
        for label, top in tops.items()
        for i, (name, weight) in enumerate(top)
    ]
    return "Features that speak for a class most", ["class", "feature", "weight"], rows


def show_chosen(chosen: Sequence[Mapping[str, Any]]) -> None:
    """Print all chosen features."""
    rows = [[one["feature"], str(one["class"]), f"{one['weight']:+.3f}"] for one in chosen]
    show(table(f"All {len(rows):,} chosen features", ["feature", "speaks for", "weight"], rows))


def certificate(k: int, features: int, certified: bool, gap: float, measure: str) -> str:
    """The certificate of a choice of k features, as the end of a sentence; nothing where all were taken."""
    if k == features:
        return ""
    if measure == "predicted error" and not certified:
        return "; a search found this choice, and another one may be better"
    return "; no other choice of as many features is better" + ("" if certified else f" by more than {gap:.3g} nats")


def say(text: str) -> None:
    """Print a line for people about what is going on, on standard error."""
    click.echo(fitted(printable(redacted(text)), error_width()), err=True)


def error_width() -> int | None:
    """Columns of the terminal that standard error is; None where it is none."""
    return shutil.get_terminal_size().columns if sys.stderr is not None and sys.stderr.isatty() else None


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
    )


# Files, looked at before any work, replaced where that is asked for, whole or not there


def check_output_file(place: str | None, overwrite: bool, *endings: str) -> None:
    """Refuse a file of another ending, or that is there or cannot be written; devices and pipes have no ending."""
    if place is None or _is_device(place):
        return
    from nfs_dask.files.folder import check_writable, parent_of

    folder, name = parent_of(place)
    if not folder.remote and Path(folder.path(name)).is_dir():
        raise StoreError(f"{place} is a folder; name a file in it")
    if not ends_in(place, *endings):
        raise click.UsageError(
            f"{place!r} says by its ending what to write; give one that ends in {' or '.join(endings)}"
        )
    if folder.exists(name) and not overwrite:
        raise StoreError(f"{place} exists; name another file, or replace it with --overwrite")
    check_writable(folder)


def check_model(place: str, overwrite: bool) -> None:
    """Refuse a place for a model where one is, or anything else, or that cannot be written."""
    from nfs_dask.files.folder import Folder, check_writable, parent_of
    from nfs_dask.store.model_files import check_place, is_model

    check_place(place)
    if is_model(place) and not overwrite:
        raise StoreError(f"{place} holds a model; name another place, or replace it with --overwrite")
    check_writable(Folder.of(place) if is_model(place) else parent_of(place)[0])


def ends_in(place: str, *endings: str) -> bool:
    """True if the name of a file, without the query of a URL, has one of these endings."""
    from nfs_dask.files.remote import split_query

    return split_query(place)[0].lower().endswith(endings)


@contextmanager
def output_file(place: str) -> Iterator[IO[bytes]]:
    """A file that appears when it is whole. What is no file, such as a device or a pipe, is written to as it is."""
    if _is_device(place):
        with open(place, "wb") as file:
            yield file
        return
    from nfs_dask.files.folder import parent_of

    folder, name = parent_of(place)
    with folder.create(name) as file:
        yield file


def _is_device(place: str) -> bool:
    path = Path(place)
    return path.exists() and not path.is_file() and not path.is_dir()
