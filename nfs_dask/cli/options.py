"""Options that several commands share: of clusters, methods, documents and terms."""

from __future__ import annotations

import functools
import json
import math
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import click

from nfs_dask.cli.output import JSON
from nfs_dask.cli.reporting import in_shell_words
from nfs_dask.documents.parameters import DocumentParameters, OnError
from nfs_dask.errors import ClusterError, InputError, did_you_mean
from nfs_dask.registry import METHODS, Option, options_of_all, takers
from nfs_dask.text.settings import MOST_HASHED
from nfs_dask.units import parse_bytes

if TYPE_CHECKING:
    from nfs_dask.arrays.block import Array
    from nfs_dask.documents.document_source import DocumentSource
    from nfs_dask.engine.engine import Engine
    from nfs_dask.sources.source import Source

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]


def grouped(name: str, options: Sequence[Decorator], build: Callable[..., Any]) -> Decorator:
    """Options of which a command receives one value, made by ``build`` from the values of all of them."""
    names = [option(lambda: None).__click_params__[0].name for option in options]  # type: ignore[attr-defined]

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def wrapped(**arguments: Any) -> Any:
            given = {name: arguments.pop(name) for name in names}
            return command(**arguments, **{name: build(**given)})

        made: Command = wrapped
        for option in reversed(options):  # in the order of the help
            made = option(made)
        return made

    return decorate


def option(text: str, default: Any = None, *, compare: bool = True, **more: Any) -> Any:
    """A field of a dataclass of options: its default, and its help and what else `click.option` takes."""
    if isinstance(default, bool):
        more["is_flag"] = True
    elif default is not None:
        more |= {"default": default, "show_default": True}
    return field(default=default, compare=compare, metadata={"help": text, **more})


def fields_of(name: str, kind: Any) -> Decorator:
    """The fields of a dataclass as options, of which a command receives one value of that class."""
    made = [click.option(f"--{one.name.replace('_', '-')}", **one.metadata) for one in fields(kind)]
    return grouped(name, made, kind)


# Types of values


class Parsed(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """The type of values that a function of the typed text and the name of the option returns."""

    def __init__(self, name: str, parse: Callable[[str, str], Any]) -> None:
        self.name, self._parse = name, parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value, self.name if param is None else param.opts[0])
        except InputError as error:
            self.fail(str(error), param, ctx)


def _k(text: str, option: str) -> int | float | str:
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        if number >= 1 if kind is int else 0 < number < 1:
            return number
        break
    if text == "all":
        return text
    raise click.UsageError(
        f"{option} {text!r} is neither a number of features, such as 100, nor a share of them, such as 0.01, nor all"
    )


def _folds(text: str, _option: str) -> int | str:
    try:
        number = int(text)
    except ValueError:
        return text
    if number < 2:
        raise InputError(f"{number} folds are none; give 2 or more, or the name of a column")
    return number


def _numbers(text: str, option: str) -> list[float]:
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = [-1.0]
    if not all(0 <= number < math.inf for number in found):
        raise click.UsageError(f"{option} {text!r} is not a list of numbers of 0 or more, such as 0.2,0.8")
    return found


def _by_class(text: str, option: str) -> str | list[float] | dict[str, float]:
    """Numbers by label, numbers in the order of the labels, or a word."""
    if text.isalpha():
        return text
    if "=" not in text:
        return _numbers(text, option)
    parts = [part.rpartition("=") for part in text.split(",")]
    labels = [label for label, _, _ in parts]
    if "" in labels or len(set(labels)) < len(labels):
        raise InputError(f"{text!r}: give each class once, such as spam=0.2,ham=0.8")
    return dict(zip(labels, _numbers(",".join(number for _, _, number in parts), option), strict=True))


SIZE = Parsed("size", lambda text, _: parse_bytes(text))
K_TYPE = Parsed("k", _k)
KS = Parsed("ks", lambda text, option: [_k(part.strip(), option) for part in text.split(",")])
FOLDS = Parsed("folds", _folds)
NUMBERS = Parsed("numbers", _numbers)
BY_CLASS = Parsed("by class", _by_class)
_FILE = click.Path(exists=True, dir_okay=False)


class Number(click.FloatRange):
    """A finite number in a range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not finite; give a number such as 0.5", param, ctx)
        return number


class OneOf(click.Choice):  # type: ignore[type-arg]
    """One of a few words; the message about a mistyped one suggests the nearest."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            near = did_you_mean(value, map(str, self.choices))
            raise click.BadParameter(error.message.rstrip(".") + near, ctx=ctx, param=param) from None


# Options by themselves

json_output = click.option(
    "--json",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=lambda ctx, _option, value: ctx.meta.__setitem__(JSON, value),
    help="Print one JSON object for programs, and nothing else on standard output.",
)
overwrite = click.option("--overwrite", is_flag=True, help="Replace what is there already.")
all_features = click.option(
    "--all-features", is_flag=True, help="List every chosen feature, with its class and weight."
)


# The cluster


def _address(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """The address of a scheduler, also where the file was given that ``dask scheduler --scheduler-file`` writes."""
    if value is None or "://" in value or not value.endswith(".json"):
        return value
    try:
        return str(json.loads(Path(value).read_text())["address"])
    except (OSError, LookupError, TypeError, ValueError) as error:
        raise click.BadParameter(
            f"{value} is not a file that dask scheduler --scheduler-file has written ({error}); is the scheduler there?"
        ) from error


@dataclass(frozen=True)
class ClusterOptions:
    """The place to run, as the command line said it. Nothing given: this process."""

    scheduler: str | None = option(
        "A running scheduler, such as tls://10.0.0.1:8786, its scheduler file, or gateway.",
        metavar="ADDRESS",
        callback=_address,
    )
    workers: int | None = option("Workers to start, or to plan for.", metavar="N", type=click.IntRange(1))
    threads: int | None = option("Threads of each worker started here.", metavar="N", type=click.IntRange(1))
    memory_limit: int | None = option("Of each worker started here, such as 2GiB.", metavar="SIZE", type=SIZE)
    tls_ca: str | None = option("The authority that vouches for the scheduler.", metavar="FILE", type=_FILE)
    tls_cert: str | None = option("The client's certificate.", metavar="FILE", type=_FILE)
    tls_key: str | None = option("The client's key.", metavar="FILE", type=_FILE)
    insecure: bool = option("Talk to a scheduler elsewhere without encryption.", False)
    # Neither of the following says anything of where to run
    spool: str | None = option("For temporary files; all workers reach it.", metavar="FOLDER", compare=False)
    overcommit: Literal["refuse", "warn"] = option(
        "What to do where workers have too little memory.",
        "refuse",
        type=click.Choice(["refuse", "warn"]),
        compare=False,
    )

    @property
    def tls(self) -> tuple[str | None, ...]:
        return self.tls_ca, self.tls_cert, self.tls_key

    def __post_init__(self) -> None:
        """Refuse combinations that would not do what they say."""
        if any(self.tls) and not all(self.tls):
            raise click.UsageError("--tls-ca, --tls-cert and --tls-key go together; give all three")
        if self.scheduler is None:
            if any(self.tls) or self.insecure:
                raise click.UsageError("TLS options are for a running scheduler; say which with --scheduler ADDRESS")
            return
        if self.threads is not None or self.memory_limit is not None:
            raise click.UsageError(
                "--threads and --memory-limit are for workers started here; those of a running scheduler have their own"
            )
        from nfs_dask.cluster.addresses import check_encryption
        from nfs_dask.cluster.gateway import is_gateway

        if any(self.tls) and is_gateway(self.scheduler):
            raise click.UsageError("a gateway has the certificates of its clusters; leave out --tls-ca and its kin")
        try:
            check_encryption(self.scheduler, self.insecure, any(self.tls))
        except InputError as error:
            raise click.UsageError(in_shell_words(str(error), click.get_current_context().command)) from None

    def in_this_process(self, data: Source | DocumentSource) -> bool:
        """True for small data where nothing else was asked for."""
        from nfs_dask.engine.choose import choose_engine
        from nfs_dask.engine.serial import SerialEngine

        return self == ClusterOptions() and isinstance(choose_engine(None, data), SerialEngine)

    @contextmanager
    def client(self) -> Iterator[Any]:
        """A client of the scheduler that was named; None where none was."""
        if self.scheduler is None:
            yield None
            return
        from nfs_dask.cluster.finding import connect, leave_telling_to_us

        warnings.filterwarnings("ignore", "Mismatched versions found")  # the doctor says which of them matter
        leave_telling_to_us()
        with connect(self.scheduler, *self.tls, insecure=self.insecure) as client:
            yield client

    @contextmanager
    def engine(self, data: Source | DocumentSource, run: str | None = None) -> Iterator[Engine]:
        """The engine that was asked for; where none was, this process for small data, and others of this machine.

        Never threads of this process: an interruption would have to wait for them. ``run`` is the engine's run folder.
        """
        if run is not None and self.spool is not None:
            raise click.UsageError("a run keeps its temporary files in its own folder; leave --spool out")
        if self.in_this_process(data):
            from nfs_dask.engine.serial import SerialEngine

            yield SerialEngine(run=run, spool=self.spool, on_overcommit=self.overcommit)
            return
        from nfs_dask.engine.distributed import DaskEngine

        with self.checked_client() as client, client.as_current():
            yield DaskEngine(
                workers=self.workers, run=run, spool=self.spool, on_overcommit=self.overcommit, insecure=self.insecure
            )

    @contextmanager
    def checked_client(self) -> Iterator[Any]:
        """A client of the scheduler that was named, if nothing stands in the way; else of workers started here."""
        if self.scheduler is None:
            from nfs_dask.cluster.finding import start_cluster

            with start_cluster(self.workers, self.threads, self.memory_limit) as client:
                yield client
            return
        from nfs_dask.cluster.examine import examine

        with self.client() as client:
            if problems := examine(client).problems:
                raise ClusterError("; ".join(problems))
            yield client


cluster = fields_of("cluster", ClusterOptions)


# Methods and their parameters


def method(methods: Iterable[str], text: str = "Model; l1, l2: centers.") -> Decorator:
    return click.option("--method", type=OneOf(list(methods)), default="multinomial", show_default=True, help=text)


def parameters(options: Sequence[Option]) -> Decorator:
    """Options of parameters of estimators; a command receives those that were given as ``parameters``."""

    def build(**values: Any) -> dict[str, Any]:
        given = {name: value for name, value in values.items() if value not in (None, ())}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}

    return grouped("parameters", [_click_option(option) for option in options], build)


def _click_option(option: Option) -> Decorator:
    kind: Any = option.kind
    more: dict[str, Any] = {"metavar": option.metavar}
    if isinstance(kind, bool):
        more |= {"is_flag": True, "flag_value": kind, "default": None}
    elif kind == "names":
        more["multiple"] = True
    elif isinstance(kind, tuple):
        more["type"] = OneOf(list(kind))
    elif isinstance(kind, str):
        more["type"] = {"numbers": NUMBERS, "by class": BY_CLASS, "k": K_TYPE}[kind]
    elif option.least is not None:
        more["type"] = click.IntRange(option.least) if kind is int else Number(option.least)
    else:
        more["type"] = kind
    return click.option(option.name, option.parameter, help=option.help, **more)


def estimator_of(method: str, parameters: dict[str, Any]) -> Any:
    """A plain estimator of a method; options of other methods are wrong usage."""
    made = METHODS[method]
    for option in options_of_all():
        if option.parameter in parameters and option.parameter not in made.parameters:
            raise click.UsageError(
                f"{option.name} is for --method {takers(option.parameter)}; {method} has no such parameter"
            )
    return made.plain_class()(**made.fixed, **parameters)


# Documents and terms


@dataclass(frozen=True)
class Location(os.PathLike[str]):
    """A path or URL as it was written; `pathlib` would take a slash from a URL."""

    text: str

    def __fspath__(self) -> str:
        return self.text


def _conditions(_ctx: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> dict[str, list[str]] | None:
    """Values by columns: of one column any, of several columns all have to be there."""
    found: dict[str, list[str]] = {}
    for condition in given:
        column, equals, value = condition.partition("=")
        if not column or not equals:
            raise click.UsageError(f"--where {condition!r} is no column with a value, such as split=train")
        found.setdefault(column, []).append(value)
    return found or None


label_column = click.option("--label-column", metavar="NAME", help="The column that holds the labels.")
where = click.option(
    "--where",
    multiple=True,
    metavar="COLUMN=VALUE",
    callback=_conditions,
    help="Only rows with this value, such as split=train; repeatable.",
)
no_cache = click.option(
    "--no-cache", is_flag=True, help="Neither use statistics kept beside the data, nor keep new ones."
)
align = click.option(
    "--align", is_flag=True, help="Find the selected features by name, of a dataset that has others or another order."
)
_DELIMITERS = {"tab": "\t", "\\t": "\t"}  # as people write what a shell would make something else of


def documents(*, labels: bool = False, weights: bool = False) -> Decorator:
    """Options of documents, as one value, ``columns``."""
    options = [
        click.option("--text-column", metavar="NAME", help='The column of texts.  [default: "text"]'),
        click.option(
            "--region", "regions", multiple=True, metavar="NAME", help="One of several columns of texts; repeatable."
        ),
        *([label_column] if labels else []),
        *([click.option("--weight-column", metavar="NAME", help="The column that holds the weights.")] * weights),
        where,
        click.option(
            "--delimiter",
            metavar="CHAR",
            callback=lambda _ctx, _option, given: _DELIMITERS.get(given, given),
            help="Of CSV, such as ';' or tab.  [default: a comma; of .tsv a tab]",
        ),
        click.option(
            "--encoding",
            default=DocumentParameters.encoding,
            show_default=True,
            metavar="NAME",
            help="Of files of text.",
        ),
        click.option(
            "--on-error",
            type=click.Choice(get_args(OnError)),
            default=DocumentParameters.on_error,
            show_default=True,
            help="Undecodable, missing, unlabelled or broken documents: stop, or leave them out and say so.",
        ),
    ]
    return grouped(
        "columns", options, lambda regions, **given: DocumentParameters(regions=list(regions) or None, **given)
    )


def _lengths(text: str, option: str) -> tuple[int, int]:
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) not in (1, 2):
        raise click.UsageError(f"{option} {text!r} is neither a length such as 1 nor a pair such as 1,2")
    return numbers[0], numbers[-1]


def _amount(text: str, option: str) -> int | float:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise click.UsageError(f"{option} {text!r} is neither a number of documents nor a share like 0.5")


AMOUNT = Parsed("amount", _amount)


def _terms(no_lowercase: bool, norm: str, token_pattern: str | None, stop_words: str | None, **given: Any) -> Any:
    from nfs_dask.ingestion.stop_lists import languages
    from nfs_dask.ingestion.text_options import TermParameters

    if token_pattern is not None:
        given["token_pattern"] = token_pattern
    if given["vocabulary"] is not None:
        given["vocabulary"] = lines_of(given["vocabulary"])
    words: str | list[str] | None = stop_words
    if stop_words is not None and stop_words not in languages():
        # What looks like no file either is taken for a language, whose message lists them
        a_file = Path(stop_words).exists() or re.search(r"[./\\]", stop_words)
        words = lines_of(stop_words) if a_file else stop_words
    return TermParameters(lowercase=not no_lowercase, norm=None if norm == "none" else norm, stop_words=words, **given)


terms = grouped(
    "terms",
    (
        click.option(
            "--analyzer",
            type=click.Choice(["word", "char", "char_wb"]),
            default="word",
            show_default=True,
            help="What n-grams are of.",
        ),
        click.option(
            "--ngrams",
            type=Parsed("ngrams", _lengths),
            default="1",
            show_default=True,
            metavar="N[,M]",
            help="Shortest and longest n-gram.",
        ),
        click.option("--no-lowercase", is_flag=True, help="Tell upper case from lower case."),
        click.option("--strip-accents", type=click.Choice(["ascii", "unicode"]), help="Remove accents."),
        click.option(
            "--token-pattern", metavar="REGEX", help="What a word is.  [default: two or more letters or digits]"
        ),
        click.option(
            "--stop-words",
            metavar="LANGUAGE|FILE",
            help="Words to leave out: those of a language, such as english or german, or of a file, a line each.",
        ),
        click.option("--stem", metavar="LANGUAGE", help="Cut words to their stems, as in english or german."),
        click.option(
            "--min-df", type=AMOUNT, metavar="N|SHARE", default="1", show_default=True, help="Leave out rarer terms."
        ),
        click.option(
            "--max-df",
            type=AMOUNT,
            metavar="N|SHARE",
            default="1.0",
            show_default=True,
            help="Leave out more frequent terms.",
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
    ),
    _terms,
)


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
