"""Options about documents: where their texts and labels are, and how texts become features."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from nfs_dask.errors import InputError


@dataclass(frozen=True)
class Location(os.PathLike[str]):
    """A path or URL as it was written; `pathlib` would take a slash from a URL."""

    text: str

    def __fspath__(self) -> str:
        return self.text


_DOCUMENTS = (
    click.option("--text-column", metavar="NAME", help='The column of texts.  [default: "text", if there is one]'),
    click.option(
        "--region", "regions", multiple=True, metavar="NAME", help="One of several columns of texts; repeatable."
    ),
    click.option("--label-column", metavar="NAME", help="The column that holds the labels."),
    click.option("--weight-column", metavar="NAME", help="The column that holds the weights."),
    click.option("--encoding", default="utf-8", show_default=True, metavar="NAME", help="Of files of text."),
    click.option(
        "--on-error",
        type=click.Choice(["fail", "skip"]),
        default="fail",
        show_default=True,
        help="Undecodable, empty, unlabelled or broken documents: stop, or leave them out and say so.",
    ),
)

_TERMS = (
    click.option(
        "--analyzer",
        type=click.Choice(["word", "char", "char_wb"]),
        default="word",
        show_default=True,
        help="What n-grams are of.",
    ),
    click.option("--ngrams", default="1", show_default=True, metavar="N[,M]", help="Shortest and longest n-gram."),
    click.option("--no-lowercase", is_flag=True, help="Tell upper case from lower case."),
    click.option("--strip-accents", type=click.Choice(["ascii", "unicode"]), help="Remove accents."),
    click.option("--token-pattern", metavar="REGEX", help="What a word is.  [default: two or more letters or digits]"),
    click.option("--stop-words", metavar="FILE|english", help="Words to leave out, a line each, or a list in English."),
    click.option("--min-df", metavar="N|SHARE", default="1", show_default=True, help="Least documents of a term."),
    click.option("--max-df", metavar="N|SHARE", default="1.0", show_default=True, help="Most documents of a term."),
    click.option("--max-features", type=click.IntRange(1), metavar="N", help="Keep the N most frequent terms."),
    click.option("--vocabulary", metavar="FILE", help="The terms to count, a line each, instead of those found."),
    click.option("--hashed", type=click.IntRange(1, 40), metavar="BITS", help="Number columns by BITS of a hash."),
    click.option("--binary", is_flag=True, help="Whether a term is there, instead of how often."),
    click.option("--tfidf", is_flag=True, help="Tf-idf weights instead of counts."),
    click.option("--sublinear-tf", is_flag=True, help="With --tfidf: 1 + log of each count."),
    click.option(
        "--norm", type=click.Choice(["l2", "l1", "none"]), default="l2", show_default=True, help="Of tf-idf rows."
    ),
)


def document_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of documents; it receives them as one dictionary, ``columns``."""
    return _gathered(command, _DOCUMENTS, "columns", _columns)


def term_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of terms; it receives them as one dictionary, ``terms``."""
    return _gathered(command, _TERMS, "terms", _terms)


def _gathered(command: Callable[..., Any], options: Any, name: str, gather: Callable[..., Any]) -> Callable[..., Any]:
    names = [option(lambda: None).__click_params__[0].name for option in options]

    @functools.wraps(command)
    def wrapped(**arguments: Any) -> Any:
        given = {one: arguments.pop(one) for one in names}
        return command(**arguments, **{name: gather(**given)})

    decorated: Callable[..., Any] = wrapped
    for option in reversed(options):
        decorated = option(decorated)
    return decorated


def _columns(regions: tuple[str, ...], **given: Any) -> dict[str, Any]:
    return {**given, "regions": list(regions) or None}


def _terms(**given: Any) -> dict[str, Any]:
    given["lowercase"] = not given.pop("no_lowercase")
    given["ngrams"] = _pair(given["ngrams"])
    given["norm"] = None if given["norm"] == "none" else given["norm"]
    if given["token_pattern"] is None:
        del given["token_pattern"]
    if given["stop_words"] not in (None, "english"):
        given["stop_words"] = lines_of(given["stop_words"])
    if given["vocabulary"] is not None:
        given["vocabulary"] = lines_of(given["vocabulary"])
    for name in ("min_df", "max_df"):
        given[name] = _amount(name, given[name])
    return given


def _pair(text: str) -> tuple[int, int]:
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) not in (1, 2):
        raise click.UsageError(f"--ngrams {text!r} is neither a length such as 1 nor a pair such as 1,2")
    return numbers[0], numbers[-1]


def _amount(name: str, text: str) -> int | float:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise click.UsageError(f"--{name.replace('_', '-')} {text!r} is neither a number of documents nor a share like 0.5")


def lines_of(file: str) -> list[str]:
    """The lines of a text file."""
    try:
        return Path(file).read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is not text in UTF-8 ({error.reason}); write one value for each line") from error
