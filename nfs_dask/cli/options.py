"""Options that several commands share, above all those of the cluster to run on."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import click

from nfs_dask.errors import ClusterError, InputError
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
        from nfs_dask.cluster.finding import is_loopback

        if address.startswith("tls://") or is_loopback(address) or self.insecure:
            return
        if tls:
            raise click.UsageError(f"certificates were given, but {address} is not encrypted; write tls://...")
        raise click.UsageError(
            f"{address} is not encrypted, and whoever reaches it can run code on its workers; use tls:// with "
            "--tls-ca, --tls-cert and --tls-key (nfs-dask doctor --make-certificates makes them), or add --insecure"
        )

    @contextmanager
    def client(self) -> Iterator[Any]:
        """A client of the scheduler that was named; None where none was."""
        if self.scheduler is None:
            yield None
            return
        from nfs_dask.cluster.finding import connect

        warnings.filterwarnings("ignore", "Mismatched versions found")  # the doctor says which of them matter
        with connect(self.scheduler, tls_ca=self.tls_ca, tls_cert=self.tls_cert, tls_key=self.tls_key) as client:
            yield client

    @contextmanager
    def engine(self, source: Source, run: str | None = None) -> Iterator[Engine]:
        """The engine that was asked for; where none was, this process for small data, and others of this machine.

        Never threads of this process: an interruption would have to wait for them. ``run`` is the engine's run folder.
        """
        from nfs_dask.engine.choose import choose_engine
        from nfs_dask.engine.distributed import DaskEngine

        with self._engine(not isinstance(choose_engine(None, source), DaskEngine), run) as engine:
            yield engine

    @contextmanager
    def engine_for_documents(self, documents: DocumentSource) -> Iterator[Engine]:
        """As `engine`, for documents that are still to be read."""
        from nfs_dask.engine.choose import choose_for_documents
        from nfs_dask.engine.distributed import DaskEngine

        with self._engine(not isinstance(choose_for_documents(None, documents), DaskEngine), None) as engine:
            yield engine

    @contextmanager
    def _engine(self, small: bool, run: str | None) -> Iterator[Engine]:
        from nfs_dask.engine.distributed import DaskEngine
        from nfs_dask.engine.serial import SerialEngine

        if self == ClusterOptions() and small:
            yield SerialEngine(run=run)
            return
        with self._checked_client() as client, client.as_current():
            yield DaskEngine(workers=self.workers, run=run)

    @contextmanager
    def _checked_client(self) -> Iterator[Any]:
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


_FILE = click.Path(exists=True, dir_okay=False)

_CLUSTER = (
    click.option("--scheduler", metavar="ADDRESS", help="A running scheduler, such as tls://10.0.0.1:8786."),
    click.option("--workers", type=click.IntRange(1), metavar="N", help="Workers to start, or to plan for."),
    click.option("--threads", type=click.IntRange(1), metavar="N", help="Threads of each worker started here."),
    click.option("--memory-limit", type=Size(), metavar="SIZE", help="Of each worker started here, such as 2GiB."),
    click.option("--tls-ca", type=_FILE, metavar="FILE", help="The authority that vouches for the scheduler."),
    click.option("--tls-cert", type=_FILE, metavar="FILE", help="The client's certificate."),
    click.option("--tls-key", type=_FILE, metavar="FILE", help="The client's key."),
    click.option("--insecure", is_flag=True, help="Talk to a scheduler elsewhere without encryption."),
)


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of the cluster; it receives them as one argument, ``cluster``."""

    @functools.wraps(command)
    def wrapped(**arguments: Any) -> Any:
        cluster = ClusterOptions(**{f.name: arguments.pop(f.name) for f in fields(ClusterOptions)})
        cluster.check()
        return command(cluster=cluster, **arguments)

    return _decorated(wrapped, _CLUSTER)


def kept(value: str) -> int | float | str:
    """What was written for -k: a whole number, a share, or a word."""
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value


_PRIORS = (
    click.option("--no-fit-prior", is_flag=True, help="Naive Bayes: take all classes to be as likely beforehand."),
    click.option("--class-prior", metavar="P,P,...", help="Naive Bayes: priors, in the order of the sorted classes."),
)

PATHS = ("multinomial", "bernoulli", "l2", "mahalanobis", "l1")  # methods that rank features
METHODS = (*PATHS, "hybrid", "error")
SEARCHES = ("ranked", "best-individual", "forward", "plus-minus", "floating", "bounded")


def _method_option(methods: Sequence[str]) -> Callable[..., Any]:
    return click.option(
        "--method", type=click.Choice(methods), default="multinomial", show_default=True, help="Model; l1, l2: centers."
    )


_MODEL = (
    click.option("--alpha", type=float, metavar="A", help="Naive Bayes: smoothing of each count.  [default: 1]"),
    click.option("--binarize", type=float, metavar="T", help="Bernoulli: values above T count as present."),
    click.option(
        "--covariance",
        type=click.Choice(["within", "total", "full"]),
        help="Mahalanobis: variances about the centers or the mean, or a whole matrix.  [default: within]",
    ),
    click.option("--variance-floor", type=float, metavar="V", help="Mahalanobis: least variance.  [default: 0]"),
)

_METHOD = (
    _method_option(METHODS),
    click.option("-k", "k", metavar="K", help='Features: how many, a share, or "all".  [default: 10; hybrid: all]'),
    *_MODEL,
    click.option("--solver", type=click.Choice(["cuts", "bisection"]), help="Multinomial: the paper's is bisection."),
    click.option("--always", multiple=True, metavar="NAME", help="A feature that is chosen in any case; repeatable."),
    *_PRIORS,
    click.option("--regions", type=click.IntRange(1), metavar="R", help="Hybrid: column ranges of one vocabulary."),
    click.option("--ridge", type=float, metavar="X", help="Hybrid: penalty of squared slopes.  [default: 0.001]"),
    click.option("--no-normalize", is_flag=True, help="Hybrid: do not divide by the number of words of a region."),
    click.option("--prior", type=click.Choice(["fitted", "fixed"]), help="Hybrid: of the classes.  [default: fitted]"),
    click.option("--tables", type=click.Choice(["shared", "separate"]), help="Hybrid: of words.  [default: shared]"),
    click.option("--search", type=click.Choice(SEARCHES), help="Error: how to look for features.  [default: ranked]"),
    click.option("--add", type=click.IntRange(0), metavar="N", help="Error: features plus-minus adds.  [default: 2]"),
    click.option("--drop", type=click.IntRange(0), metavar="N", help="Error: and takes away again.  [default: 1]"),
    click.option("--unbalanced", is_flag=True, help="Error: predict it under the priors, and not under equal ones."),
    click.option("--n-tokens", metavar="M,M,...", help="Error: lengths of documents.  [default: as those of the fit]"),
)


_SHARED = ("alpha", "binarize", "covariance", "variance_floor")
_NAMED = (*_SHARED, "solver", "regions", "ridge", "prior", "tables", "search", "add", "drop")
_FLAGS = {"fit_prior": "--no-fit-prior", "normalize": "--no-normalize", "balanced": "--unbalanced", "k": "-k"}


def model_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the parameters that statistics or gains depend on; it receives those given as ``parameters``."""

    @functools.wraps(command)
    def wrapped(**arguments: Any) -> Any:
        parameters = {name: arguments.pop(name) for name in _SHARED}
        return command(parameters=_given(parameters), **arguments)

    return _decorated(wrapped, (_method_option(PATHS), *_MODEL))


def method_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the parameters of the estimators; it receives one that is not fitted, ``estimator``."""

    @functools.wraps(command)
    def wrapped(method: str, **arguments: Any) -> Any:
        parameters = {name: arguments.pop(name) for name in _NAMED}
        parameters["class_prior"] = numbers(arguments.pop("class_prior"), "--class-prior")
        parameters["fit_prior"] = False if arguments.pop("no_fit_prior") else None
        parameters["normalize"] = False if arguments.pop("no_normalize") else None
        parameters["balanced"] = False if arguments.pop("unbalanced") else None
        parameters["n_tokens"] = numbers(arguments.pop("n_tokens"), "--n-tokens")
        parameters["always"] = list(arguments.pop("always")) or None
        k = arguments.pop("k")
        parameters["k"] = None if k is None else kept(k)
        return command(estimator=estimator_of(method, **_given(parameters)), **arguments)

    return _decorated(wrapped, _METHOD)


def estimator_of(method: str, **parameters: Any) -> Any:
    """An estimator of a method; options of other methods are wrong usage."""
    from nfs_dask.estimators.loading import METHODS as KNOWN

    for name in parameters:
        if name not in KNOWN[method].parameters:
            option = _FLAGS.get(name, f"--{name.replace('_', '-')}")
            takers = " and ".join(other for other, one in KNOWN.items() if name in one.parameters)
            raise click.UsageError(f"{option} is for --method {takers}; {method} has no such parameter")
    return KNOWN[method].estimator(**KNOWN[method].fixed, **parameters)


def _given(parameters: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if value is not None}


def _decorated(command: Callable[..., Any], options: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    for option in reversed(options):
        command = option(command)
    return command


def numbers(text: str | None, option: str) -> list[float] | None:
    """A list of numbers as an option has it."""
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise click.UsageError(f"{option} {text!r} is not a list of numbers such as 0.2,0.8") from None
