"""A fit as a manifest for Kubernetes, whose workers get the memory that its plan takes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import click

from nfs_dask.cli.options import ClusterOptions
from nfs_dask.cli.output import say
from nfs_dask.registry import K, options_of_all

if TYPE_CHECKING:
    from nfs_dask.cluster.manifests import FitJob
    from nfs_dask.dataset import Dataset
    from nfs_dask.engine.plan import Plan, Schedule

WORKERS = 4
THREADS = 2


@dataclass(frozen=True)
class JobOptions:
    """What was said of a job, as the command line said it."""

    kubernetes: bool = False
    model: str | None = None
    run: str | None = None
    name: str | None = None
    image: str | None = None

    def check(self) -> None:
        """Refuse options of a job where none is asked for, and a job that would leave nothing behind."""
        given = [f"--{f.name}" for f in fields(self) if f.name != "kubernetes" and getattr(self, f.name) is not None]
        if given and not self.kubernetes:
            raise click.UsageError(f"only with --kubernetes: {', '.join(given)}")
        if self.kubernetes and (self.model is None or self.run is None):
            raise click.UsageError(
                "a job needs places that outlive it: --model s3://bucket/model for the model, and --run "
                "s3://bucket/run for what lets it go on after a failure"
            )


_OPTIONS = (
    click.option("--kubernetes", is_flag=True, help="Print the manifest of a job that fits, with the memory it takes."),
    click.option("--model", metavar="MODEL", help="Kubernetes: where the job writes the model."),
    click.option("--run", metavar="RUN", help="Kubernetes: the folder from which the job goes on after a failure."),
    click.option("--name", metavar="NAME", help="Kubernetes: of the job.  [default: nfs-dask]"),
    click.option(
        "--image", metavar="IMAGE", help="Kubernetes: of all pods; best with a digest.  [default: nfs-dask:VERSION]"
    ),
)


def job_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of a job; it receives them as one argument, ``job``."""

    @functools.wraps(command)
    def wrapped(**arguments: Any) -> Any:
        job = JobOptions(**{f.name: arguments.pop(f.name) for f in fields(JobOptions)})
        job.check()
        return command(job=job, **arguments)

    made: Callable[..., Any] = wrapped
    for option in reversed(_OPTIONS):
        made = option(made)
    return made


def check_job(method: str, places: Sequence[str], image: str | None, cluster: ClusterOptions) -> None:
    """Refuse what could not be run, or would write a secret into a manifest; warn of what pods may not have."""
    from nfs_dask.redaction import redacted

    if method == "counts":
        raise click.UsageError("a job fits a model; say which with --method multinomial or another")
    if cluster.scheduler is not None:
        raise click.UsageError("the workers of a job are its own; leave --scheduler out")
    for place in places:
        if redacted(place) != place:
            raise click.UsageError(
                f"{redacted(place)} has a key in it, and manifests are for others to read; keep it in the secret "
                "nfs-dask-storage, as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            )
        if "://" not in place:
            say(f"warning: {place} is a path of this machine; pods have it only where a volume is mounted there")
    if image is not None and "@sha256:" not in image:
        say(f"warning: {image} may change while the job runs; add the digest that `docker push` prints, as @sha256:...")


def plan_of_job(dataset: Dataset, estimator: Any, cluster: ClusterOptions) -> Plan | Schedule:
    """The plan for workers of the memory that was asked for, or of as much as it takes.

    One worker is started here for a moment, to see what it takes with the libraries loaded.
    """
    from nfs_dask import dataset as data
    from nfs_dask.cluster.finding import start_cluster
    from nfs_dask.engine.dry_run import ElsewhereEngine

    threads = cluster.threads or THREADS
    say("starting a worker, to see how much memory it takes; no document is read")
    with start_cluster(1, threads) as client, client.as_current():
        engine = ElsewhereEngine(workers=cluster.workers or WORKERS, memory_limit=cluster.memory_limit)
        return data.plan(dataset, estimator, engine)


def job_of(
    plan: Plan | Schedule, store: str, words: Sequence[str], cluster: ClusterOptions, options: JobOptions
) -> FitJob:
    """The job that carries a plan out."""
    from nfs_dask.cluster.manifests import FitJob, WorkerSize

    assert options.model is not None and options.run is not None
    size = WorkerSize.for_peak(plan.peak_nbytes, cluster.threads or THREADS)
    if cluster.memory_limit is not None:
        size = replace(size, memory_limit=cluster.memory_limit)
    named = {key: value for key in ("name", "image") if (value := getattr(options, key)) is not None}
    places = (store, options.model, options.run)
    return FitJob(*places, words, cluster.workers or WORKERS, size, plan.client_nbytes, **named)


def fit_words(
    method: str, parameters: dict[str, Any], label_column: str | None, where: dict[str, list[str]] | None
) -> list[str]:
    """The options of ``nfs-dask fit`` for what ``plan`` was asked about."""
    words = ["--method", method]
    for option in (K, *options_of_all()):
        if option.parameter in parameters:
            words += _typed(option.name, option.kind, parameters[option.parameter])
    words += [] if label_column is None else ["--label-column", label_column]
    for column, values in (where or {}).items():
        words += [word for value in values for word in ("--where", f"{column}={value}")]
    return words


def _typed(name: str, kind: Any, value: Any) -> list[str]:
    """An option as it is typed."""
    if isinstance(kind, bool):
        return [name]
    if kind == "names":
        return [word for one in value for word in (name, str(one))]
    if isinstance(value, dict):
        return [name, ",".join(f"{key}={number}" for key, number in value.items())]
    return [name, ",".join(map(str, value)) if isinstance(value, list) else str(value)]
