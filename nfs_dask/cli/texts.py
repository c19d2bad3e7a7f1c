"""Options about documents: where their texts and labels are, and how texts become features."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from nfs_dask.documents.parameters import DocumentParameters, OnError
from nfs_dask.errors import InputError
from nfs_dask.text.settings import MOST_HASHED

if TYPE_CHECKING:
    from nfs_dask.arrays.block import Array
    from nfs_dask.ingestion.text_options import TermParameters
    from nfs_dask.text.settings import TextSettings


@dataclass(frozen=True)
class Location(os.PathLike[str]):
    """A path or URL as it was written; `pathlib` would take a slash from a URL."""

    text: str

    def __fspath__(self) -> str:
        return self.text


_TEXTS = (
    click.option("--text-column", metavar="NAME", help='The column of texts.  [default: "text"]'),
    click.option(
        "--region", "regions", multiple=True, metavar="NAME", help="One of several columns of texts; repeatable."
    ),
)
_LABELS = (click.option("--label-column", metavar="NAME", help="The column that holds the labels."),)
_WEIGHTS = (click.option("--weight-column", metavar="NAME", help="The column that holds the weights."),)
_DELIMITERS = {"tab": "\t", "\\t": "\t"}  # as people write what a shell would make something else of
_WHERE = click.option(
    "--where",
    "where",
    multiple=True,
    metavar="COLUMN=VALUE",
    callback=lambda _ctx, _option, given: _conditions(given),
    help="Only rows with this value, such as split=train; repeatable.",
)
align_option = click.option(
    "--align", is_flag=True, help="Find the selected features by name, of a dataset that has others or another order."
)
_READING = (
    _WHERE,
    click.option(
        "--delimiter",
        metavar="CHAR",
        callback=lambda _ctx, _option, given: _DELIMITERS.get(given, given),
        help="Of CSV, such as ';' or tab.  [default: a comma; of .tsv a tab]",
    ),
    click.option(
        "--encoding", default=DocumentParameters.encoding, show_default=True, metavar="NAME", help="Of files of text."
    ),
    click.option(
        "--on-error",
        type=click.Choice(get_args(OnError)),
        default=DocumentParameters.on_error,
        show_default=True,
        help="Undecodable, missing, unlabelled or broken documents: stop, or leave them out and say so.",
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
    click.option(
        "--stop-words",
        metavar="LANGUAGE|FILE",
        help="Words to leave out: those of a language, such as english or german, or of a file, a line each.",
    ),
    click.option("--stem", metavar="LANGUAGE", help="Cut words to their stems, as in english or german."),
    click.option("--min-df", metavar="N|SHARE", default="1", show_default=True, help="Leave out rarer terms."),
    click.option(
        "--max-df", metavar="N|SHARE", default="1.0", show_default=True, help="Leave out more frequent terms."
    ),
    click.option("--max-features", type=click.IntRange(1), metavar="N", help="Keep the N most frequent terms."),
    click.option("--vocabulary", metavar="FILE", help="The terms to count, a line each, instead of those found."),
    click.option(
        "--hashed", type=click.IntRange(1, MOST_HASHED), metavar="BITS", help="Number columns by BITS of a hash."
    ),
    click.option("--binary", is_flag=True, help="Whether a term is there, instead of how often."),
    click.option("--tfidf", is_flag=True, help="Tf-idf weights instead of counts."),
    click.option("--sublinear-tf", is_flag=True, help="With --tfidf: 1 + log of each count."),
    click.option(
        "--norm", type=click.Choice(["l2", "l1", "none"]), default="l2", show_default=True, help="Of tf-idf rows."
    ),
)


def document_options(*, labels: bool = False, weights: bool = False) -> Callable[..., Any]:
    """Give a command the options of documents; it receives them as one value, ``columns``."""
    options = _TEXTS + (_LABELS if labels else ()) + (_WEIGHTS if weights else ()) + _READING
    return functools.partial(_gathered, options=options, name="columns", gather=_columns)


def term_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of terms; it receives them as one value, ``terms``."""
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


def where_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command ``--where``; it receives values by columns, or None."""
    return _WHERE(command)


def _conditions(given: tuple[str, ...]) -> dict[str, list[str]] | None:
    """Values by columns: of one column any, of several columns all have to be there."""
    found: dict[str, list[str]] = {}
    for one in given:
        column, equals, value = one.partition("=")
        if not column or not equals:
            raise click.UsageError(f"--where {one!r} is no column with a value, such as split=train")
        found.setdefault(column, []).append(value)
    return found or None


def _columns(regions: tuple[str, ...], **given: Any) -> DocumentParameters:
    return DocumentParameters(regions=list(regions) or None, **given)


def _terms(**given: Any) -> TermParameters:
    from nfs_dask.ingestion.text_options import TermParameters

    given["lowercase"] = not given.pop("no_lowercase")
    given["ngrams"] = _pair(given["ngrams"])
    given["norm"] = None if given["norm"] == "none" else given["norm"]
    if given["token_pattern"] is None:
        del given["token_pattern"]
    given["stop_words"] = _stop_words(given["stop_words"])
    if given["vocabulary"] is not None:
        given["vocabulary"] = lines_of(given["vocabulary"])
    for name in ("min_df", "max_df"):
        given[name] = _amount(name, given[name])
    return TermParameters(**given)


def _stop_words(given: str | None) -> str | list[str] | None:
    """A language, or the words of a file: what looks like neither is taken for a language, whose message lists them."""
    if given is None or given == "english":
        return given
    from nfs_dask.ingestion.stop_lists import languages

    return given if given in languages() or not (Path(given).exists() or _PATHLIKE.search(given)) else lines_of(given)


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
    """The lines of a text file. Other line ends of Unicode belong to a line, as in documents that are lines."""
    try:
        text = Path(file).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is not text in UTF-8 ({error.reason}); write one value for each line") from error
    return text.removesuffix("\n").split("\n") if text else []


def column_of_file(file: str | None) -> Array | None:
    """One value for each row, of a .npy file or of lines: numbers where all are, else texts."""
    import numpy as np

    if file is None:
        return None
    if file.endswith(".npy"):
        try:
            column: Array = np.load(file, allow_pickle=False)
        except ValueError as error:
            raise InputError(
                f"{file}: {error}; save plain numbers or texts, as in numpy.save(file, labels.astype(str))"
            ) from error
        return column
    lines = lines_of(file)
    for kind in (np.int64, np.float64):
        try:
            return np.array(lines, kind)
        except (ValueError, OverflowError):
            continue
    return np.array(lines)


_PATHLIKE = re.compile(r"[./\\]")
_UNITS = {"word": "words", "char": "characters", "char_wb": "characters within words"}


def settings_in_words(settings: TextSettings) -> str:
    """How texts were read, in one line: what terms are, then what the values are."""
    from nfs_dask.text.settings import DEFAULT_PATTERN

    shortest, longest = settings.ngrams
    lengths = f"{longest}" if shortest == longest else f"{shortest}- to {longest}"
    units = _UNITS[settings.analyzer]
    said = [units if longest == 1 else f"{lengths}-grams of {units}"]
    if settings.tokenizer is not None:
        said.append(f"tokenizer {settings.tokenizer}")
    elif settings.analyzer == "word" and settings.token_pattern != DEFAULT_PATTERN:
        said.append(f"token pattern {settings.token_pattern}")
    said.append("lower case" if settings.lowercase else "case as it is")
    if settings.strip_accents is not None:
        said.append(f"accents stripped ({settings.strip_accents})")
    if settings.stop_words:
        said.append(f"{len(settings.stop_words):,} stop words")
    if settings.stem is not None:
        said.append(f"{settings.stem} stems")
    if settings.hashed is not None:
        said.append(f"hashed to {settings.hashed} bits")
    return f"{', '.join(said)}; {_values_in_words(settings)}"


def _values_in_words(settings: TextSettings) -> str:
    parts = ["presence" if settings.binary else "counts"]
    if settings.tfidf:
        parts = ["tf-idf", *(["of presence"] if settings.binary else []), *(["sublinear"] * settings.sublinear_tf)]
        parts.append("not normed" if settings.norm is None else f"{settings.norm} norm")
    return ", ".join(parts)
