"""Options that several commands share, above all those of the cluster to run on."""

from __future__ import annotations

import functools
import json
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from nfs_dask.cli.shell_words import in_shell_words
from nfs_dask.errors import ClusterError, InputError, did_you_mean
from nfs_dask.registry import METHODS, K, Option, methods_of_paths, options_of_all, takers
from nfs_dask.units import parse_bytes

if TYPE_CHECKING:
    from nfs_dask.documents.document_source import DocumentSource
    from nfs_dask.engine.engine import Engine
    from nfs_dask.sources.source import Source


class Size(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """A number of bytes, such as 2GiB."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return parse_bytes(value)
        except InputError as error:
            self.fail(str(error), param, ctx)


class NumberToKeep(click.ParamType):  # type: ignore[type-arg]
    """How many features to keep: a number, a share or "all"."""

    name = "k"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | float | str:
        return value if not isinstance(value, str) else kept(value, self._named(param))

    @staticmethod
    def _named(param: click.Parameter | None) -> str:
        return "-k" if param is None else param.opts[0]


class NumbersToKeep(NumberToKeep):
    """Several of them, with commas between."""

    name = "ks"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        return [kept(part.strip(), self._named(param)) for part in value.split(",")]


class Number(click.FloatRange):
    """A finite number, of zero or more."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not finite; give a number such as 0.5", param, ctx)
        return number


class FoldsOrColumn(click.ParamType):  # type: ignore[type-arg]
    """A number of folds, or the column that says which fold a row is in."""

    name = "folds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        try:
            number = int(value)
        except ValueError:
            return str(value)
        if number < 2:
            self.fail(f"{number} folds are none; give 2 or more, or the name of a column", param, ctx)
        return number


class NumberList(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """Numbers with commas between them."""

    name = "numbers"

    def __init__(self, option: str) -> None:
        self.option = option

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if isinstance(value, list) else numbers(value, self.option)


class ByClass(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """Numbers by label, ``spam=0.2,ham=0.8``, numbers in the order of the labels, or a word; the method says which."""

    name = "by class"

    def __init__(self, option: str) -> None:
        self.option = option

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str) or value.isalpha():
            return value
        if "=" not in value:
            return numbers(value, self.option)
        parts = [part.rpartition("=") for part in value.split(",")]
        labels = [label for label, _, _ in parts]
        if "" in labels or len(set(labels)) < len(labels):
            self.fail(f"{value!r}: give each class once, such as spam=0.2,ham=0.8", param, ctx)
        found = numbers(",".join(number for _, _, number in parts), self.option)
        assert found is not None
        return dict(zip(labels, found, strict=True))


@dataclass(frozen=True)
class ClusterOptions:
    """Where to run, as the command line said it. Nothing given: in this process."""

    scheduler: str | None = None
    workers: int | None = None
    threads: int | None = None
    memory_limit: int | None = None
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    insecure: bool = False
    spool: str | None = field(default=None, compare=False)  # which says nothing of where to run
    overcommit: Literal["refuse", "warn"] = field(default="refuse", compare=False)

    def check(self) -> None:
        """Refuse combinations that would not do what they say."""
        tls = (self.tls_ca, self.tls_cert, self.tls_key)
        if any(tls) and not all(tls):
            raise click.UsageError("--tls-ca, --tls-cert and --tls-key go together; give all three")
        if self.scheduler is None and (any(tls) or self.insecure):
            raise click.UsageError("TLS options are for a running scheduler; say which with --scheduler ADDRESS")
        if self.scheduler is None:
            return
        if self.threads is not None or self.memory_limit is not None:
            raise click.UsageError(
                "--threads and --memory-limit are for workers started here; those of a running scheduler have their own"
            )
        self._check_encryption(self.scheduler, any(tls))

    def _check_encryption(self, address: str, tls: bool) -> None:
        from nfs_dask.cluster.addresses import check_encryption
        from nfs_dask.cluster.gateway import is_gateway

        if tls and is_gateway(address):
            raise click.UsageError("a gateway has the certificates of its clusters; leave out --tls-ca and its kin")
        try:
            check_encryption(address, self.insecure, tls)
        except InputError as error:
            raise click.UsageError(in_shell_words(str(error), click.get_current_context().command)) from None

    def starts_workers(self, data: Source | DocumentSource) -> bool:
        """Whether `engine` starts workers on this machine."""
        from nfs_dask.engine.choose import choose_engine
        from nfs_dask.engine.serial import SerialEngine

        large = self != ClusterOptions() or not isinstance(choose_engine(None, data), SerialEngine)
        return self.scheduler is None and large

    @contextmanager
    def client(self) -> Iterator[Any]:
        """A client of the scheduler that was named; None where none was."""
        if self.scheduler is None:
            yield None
            return
        from nfs_dask.cluster.finding import connect, leave_telling_to_us

        warnings.filterwarnings("ignore", "Mismatched versions found")  # the doctor says which of them matter
        leave_telling_to_us()
        tls = (self.tls_ca, self.tls_cert, self.tls_key)
        with connect(self.scheduler, *tls, insecure=self.insecure) as client:
            yield client

    @contextmanager
    def engine(self, data: Source | DocumentSource, run: str | None = None) -> Iterator[Engine]:
        """The engine that was asked for; where none was, this process for small data, and others of this machine.

        Never threads of this process: an interruption would have to wait for them. ``run`` is the engine's run folder.
        """
        from nfs_dask.engine.choose import choose_engine
        from nfs_dask.engine.serial import SerialEngine

        if run is not None and self.spool is not None:
            raise click.UsageError("a run keeps its temporary files in its own folder; leave --spool out")
        if self == ClusterOptions() and isinstance(choose_engine(None, data), SerialEngine):
            yield SerialEngine(run=run, spool=self.spool, on_overcommit=self.overcommit)
            return
        from nfs_dask.engine.distributed import DaskEngine

        with self.checked_client() as client, client.as_current():
            yield DaskEngine(
                workers=self.workers,
                run=run,
                spool=self.spool,
                on_overcommit=self.overcommit,
                insecure=self.insecure,
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


_FILE = click.Path(exists=True, dir_okay=False)

_CLUSTER = (
    click.option(
        "--scheduler",
        metavar="ADDRESS",
        callback=_address,
        help="A running scheduler, such as tls://10.0.0.1:8786, its scheduler file, or gateway.",
    ),
    click.option("--workers", type=click.IntRange(1), metavar="N", help="Workers to start, or to plan for."),
    click.option("--threads", type=click.IntRange(1), metavar="N", help="Threads of each worker started here."),
    click.option("--memory-limit", type=Size(), metavar="SIZE", help="Of each worker started here, such as 2GiB."),
    click.option("--tls-ca", type=_FILE, metavar="FILE", help="The authority that vouches for the scheduler."),
    click.option("--tls-cert", type=_FILE, metavar="FILE", help="The client's certificate."),
    click.option("--tls-key", type=_FILE, metavar="FILE", help="The client's key."),
    click.option("--insecure", is_flag=True, help="Talk to a scheduler elsewhere without encryption."),
    click.option("--spool", metavar="FOLDER", help="For temporary files; all workers reach it."),
    click.option(
        "--overcommit",
        type=click.Choice(["refuse", "warn"]),
        default="refuse",
        show_default=True,
        help="What to do where workers have too little memory.",
    ),
)


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of the cluster; it receives them as one argument, ``cluster``."""

    @functools.wraps(command)
    def wrapped(**arguments: Any) -> Any:
        cluster = ClusterOptions(**{f.name: arguments.pop(f.name) for f in fields(ClusterOptions)})
        cluster.check()
        return command(cluster=cluster, **arguments)

    return _decorated(wrapped, _CLUSTER)


def kept(value: str, option: str = "-k") -> int | float | str:
    """What was written for -k: a whole number, a share, or "all"."""
    for kind in (int, float):
        try:
            number = kind(value)
        except ValueError:
            continue
        if number >= 1 if kind is int else 0 < number < 1:
            return number
        break
    if value == "all":
        return value
    raise click.UsageError(
        f"{option} {value!r} is neither a number of features, such as 100, nor a share of them, such as 0.01, nor all"
    )


class OneOf(click.Choice):  # type: ignore[type-arg]
    """One of a few words; of a mistyped one it is said which is meant."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            near = did_you_mean(value, map(str, self.choices))
            raise click.BadParameter(error.message.rstrip(".") + near, ctx=ctx, param=param) from None


def _method_option(methods: Iterable[str]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(
        "--method",
        type=OneOf(list(methods)),
        default="multinomial",
        show_default=True,
        help="Model; l1, l2: centers.",
    )


def _click_option(option: Option) -> Callable[..., Any]:
    """A parameter of an estimator as an option of a command, which receives it under the name of the parameter."""
    names, kind = (option.name, option.parameter), option.kind
    if isinstance(kind, bool):
        return click.option(*names, is_flag=True, flag_value=kind, default=None, help=option.help)
    if kind == "names":
        return click.option(*names, multiple=True, metavar=option.metavar, help=option.help)
    if kind == "numbers":
        return click.option(*names, type=NumberList(option.name), metavar=option.metavar, help=option.help)
    if kind == "by class":
        return click.option(*names, type=ByClass(option.name), metavar=option.metavar, help=option.help)
    if isinstance(kind, tuple):
        return click.option(*names, type=OneOf(list(kind)), help=option.help)
    if kind == "k":
        kind = NumberToKeep()
    elif kind in (int, float) and option.least is not None:
        kind = click.IntRange(option.least) if kind is int else Number(option.least)
    return click.option(*names, type=kind, metavar=option.metavar, help=option.help)


def parameters_of(options: Sequence[Option]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the options of parameters; it receives those that were given as ``parameters``."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def wrapped(**arguments: Any) -> Any:
            values = {option.parameter: arguments.pop(option.parameter) for option in options}
            given = {name: _plain(value) for name, value in values.items() if value not in (None, ())}
            return command(parameters=given, **arguments)

        return _decorated(wrapped, [_click_option(option) for option in options])

    return decorate


def path_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command a method that has paths, and the parameters that gains depend on, as ``parameters``."""
    found = parameters_of([option for option in options_of_all() if option.gains])(command)
    return _method_option(methods_of_paths())(found)


def method_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the parameters of the estimators; it receives one that is not fitted, ``estimator``."""

    @functools.wraps(command)
    def wrapped(method: str, parameters: dict[str, Any], **arguments: Any) -> Any:
        from nfs_dask.documents.locations import format_of
        from nfs_dask.sources.open_source import check_format

        if format_of(arguments["store"]) is None:
            check_format(arguments["store"])  # before estimators are imported, which takes seconds
        return command(estimator=estimator_of(method, **parameters), **arguments)

    return _method_option(METHODS)(parameters_of([K, *options_of_all()])(wrapped))


def estimator_of(method: str, **parameters: Any) -> Any:
    """A plain estimator of a method; options of other methods are wrong usage."""
    made = METHODS[method]
    for option in options_of_all():
        if option.parameter in parameters and option.parameter not in made.parameters:
            raise click.UsageError(
                f"{option.name} is for --method {takers(option.parameter)}; {method} has no such parameter"
            )
    return made.plain_class()(**made.fixed, **parameters)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _decorated(command: Callable[..., Any], options: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    for option in reversed(options):
        command = option(command)
    return command


def numbers(text: str | None, option: str) -> list[float] | None:
    """A list of numbers as an option has it."""
    if text is None:
        return None
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = [-1.0]
    if not all(0 <= number < math.inf for number in found):
        raise click.UsageError(f"{option} {text!r} is not a list of numbers of 0 or more, such as 0.2,0.8")
    return found
