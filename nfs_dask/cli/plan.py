"""``nfs-dask plan``: what a fit would take, before anything is spent, and as a job of Kubernetes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from nfs_dask.cli import options
from nfs_dask.cli.options import option
from nfs_dask.cli.output import answer, say, show_line, show_lines
from nfs_dask.errors import DataWarning, InputError
from nfs_dask.registry import METHODS, K, options_of_all
from nfs_dask.units import format_bytes, format_seconds, parse_bandwidth

if TYPE_CHECKING:
    from nfs_dask.dataset import Dataset
    from nfs_dask.engine.cost_model import Forecast
    from nfs_dask.engine.engine import Engine
    from nfs_dask.engine.plan import Plan, Schedule

REQUEST_SECONDS = 0.02  # until an object store answers, unless it is said; a disk answers at once
WARM_NBYTES = 350 << 20  # of a worker that nobody has measured: what those of benchmarks/scaling.py took
WORKERS, THREADS = 4, 2  # of a job


def _many(text: str, _option: str) -> int:
    """A whole number of one or more, which may be written as 1e10."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not (1 <= number < float("inf")) or number % 1:
        raise InputError(f"{text!r} is not a whole number of one or more; give one such as 1000000 or 1e10")
    return int(number)


MANY = options.Parsed("number", _many)
BANDWIDTH = options.Parsed("bandwidth", lambda text, _: parse_bandwidth(text))


@dataclass(frozen=True)
class ForecastOptions:
    """Data and hosts that are not there yet. Nothing given: those that are there."""

    rows: int | None = option("Foretell a fit to so many documents, such as 1e10.", metavar="N", type=MANY)
    features: int | None = option("And to so many features.", metavar="N", type=MANY)
    network: float | None = option("Of each host's link, such as 10Gbit.", metavar="SPEED", type=BANDWIDTH)
    store_rate: int | None = option("A second, that the store gives to all workers.", metavar="SIZE", type=options.SIZE)
    latency: float | None = option(
        f"Until the store answers a request; {REQUEST_SECONDS} for a URL.",
        metavar="SECONDS",
        type=click.FloatRange(0),
    )
    price: float | None = option("Of an hour of one worker.", metavar="AMOUNT", type=click.FloatRange(0))
    costs: str | None = option(
        "That --calibrate has written; otherwise those of the machine of the benchmarks.",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False),
    )
    calibrate: str | None = option(
        "Measure first: small passes over the first blocks, for a minute at most; write costs to FILE.",
        metavar="FILE",
        type=click.Path(dir_okay=False, writable=True),
    )

    def __post_init__(self) -> None:
        given = {name for name, value in asdict(self).items() if value is not None}
        if self.calibrate is not None and given - {"calibrate", "network"}:
            raise click.UsageError(
                "--calibrate measures what is there; give --network with it, and the other options of a forecast, with "
                "--costs, to a command of its own"
            )

    @property
    def wanted(self) -> bool:
        return self.calibrate is None and self != ForecastOptions()


@dataclass(frozen=True)
class JobOptions:
    """A job of Kubernetes, as the command line said it."""

    kubernetes: bool = option("Print the manifest of a job that fits, with the memory it takes.", False)
    model: str | None = option("Kubernetes: where the job writes the model.", metavar="MODEL")
    run: str | None = option("Kubernetes: the folder from which the job goes on after a failure.", metavar="RUN")
    name: str | None = option("Kubernetes: of the job.  [default: nfs-dask]", metavar="NAME")
    image: str | None = option(
        "Kubernetes: of all pods; best with a digest.  [default: nfs-dask:VERSION]", metavar="IMAGE"
    )

    def __post_init__(self) -> None:
        """Refuse options of a job where none is asked for, and a job that would leave nothing behind."""
        given = [f"--{name}" for name, value in asdict(self).items() if name != "kubernetes" and value is not None]
        if given and not self.kubernetes:
            raise click.UsageError(f"only with --kubernetes: {', '.join(given)}")
        if self.kubernetes and (self.model is None or self.run is None):
            raise click.UsageError(
                "a job needs places that outlive it: --model s3://bucket/model for the model, and --run "
                "s3://bucket/run for what lets it go on after a failure"
            )


@click.command()
@click.argument("store")
@options.method(["counts", *METHODS], "What to fit, or just the counts of each class.")
@options.parameters([K, *(option for option in options_of_all() if option.counts)])
@options.label_column
@options.where
@options.fields_of("job", JobOptions)
@options.cluster
@options.fields_of("wanted", ForecastOptions)
@options.json_output
def plan(
    store: str,
    method: str,
    parameters: dict[str, Any],
    label_column: str | None,
    where: dict[str, list[str]] | None,
    job: JobOptions,
    cluster: options.ClusterOptions,
    wanted: ForecastOptions,
) -> None:
    """Tasks, bytes read, memory of each worker and time of a fit to STORE. No document is read.

    Only sizes, labels and names are. For large data workers are started for a moment, to see what memory they have.

    With --rows, --network or another option of a forecast, none are started: --workers, --threads and --memory-limit
    say what there would be. Documents are taken to be as long as those of STORE.

    Exit code 4 means that a pass would be refused; the message says what would fit.

    \b
    nfs-dask plan mail.zarr
    nfs-dask plan mail.zarr -k 100
    nfs-dask plan s3://bucket/mail.zarr --workers 8 --memory-limit 2GiB
    nfs-dask plan mail.zarr --scheduler tcp://127.0.0.1:8786 --json
    nfs-dask plan mail.zarr --workers 100 --network 10Gbit --rows 1e10 --features 1e8 --price 0.05
    nfs-dask plan genes.h5ad --label-column tissue --method l1 --workers 2 --memory-limit 1GiB

    With --kubernetes it prints the manifest of a job that fits, for the Dask operator: --workers of them (4), each with
    --threads (2) and the memory that the plan takes, or a --memory-limit that it has to fit into.

    \b
    nfs-dask plan s3://bucket/mail.zarr --method multinomial -k 1000 --kubernetes \\
      --model s3://bucket/spam.model --run s3://bucket/run > spam.yaml
    kubectl apply --filename spam.yaml
    """
    estimator = None if method == "counts" else options.estimator_of(method, parameters)
    if estimator is None and parameters:
        raise click.UsageError("-k and parameters are for a model; leave --method counts out")
    if job.kubernetes:
        if wanted != ForecastOptions():
            raise click.UsageError("--kubernetes is about data that are there; give options of a forecast without it")
        _check_job(method, (store, str(job.model), str(job.run)), job.image, cluster)
    from nfs_dask.dataset import open_dataset

    dataset = open_dataset(store, labels=label_column, where=where)
    if wanted.calibrate is not None:
        _calibrate(dataset, cluster, wanted, wanted.calibrate)
    elif job.kubernetes:
        _plan_job(dataset, estimator, store, fit_words(method, parameters, label_column, where), cluster, job)
    else:
        _plan_fit(dataset, method, estimator, cluster, wanted)


def _plan_fit(
    there: Dataset, method: str, estimator: Any, cluster: options.ClusterOptions, wanted: ForecastOptions
) -> None:
    """Answer the plan of a fit to data that are there, or to those of a forecast, with the time it would take."""
    from nfs_dask import dataset as data
    from nfs_dask.engine.dry_run import HypotheticalSource

    dataset = there
    if wanted.rows is not None or wanted.features is not None:
        foretold = HypotheticalSource(there.source, wanted.rows, wanted.features)
        dataset = data.Dataset(foretold, there.location, reuse=there.reuse)
    if not wanted.wanted and cluster.scheduler is None and not cluster.in_this_process(dataset.source):
        say("starting workers, to see how much memory they have; no document is read")
    counts = dataset.class_counts() if estimator is None else None
    with _engine(cluster, dataset, wanted) as engine:
        plan = data.plan(dataset, counts or estimator, engine)
    with warnings.catch_warnings(action="ignore", category=DataWarning):  # that all are kept has been said
        chosen = None if estimator is None else estimator.n_selected(dataset)
        statistic = counts or estimator.statistic(dataset)
    beside = dataset.statistics
    kept = beside is not None and statistic is not None and beside.find(statistic) is not None
    values = {**plan.to_json(), "method": method, "k": chosen, "kept": kept}
    told = _forecast(plan, there, wanted, solved=estimator is not None) if wanted.wanted else None
    if told is not None:
        values["forecast"] = {
            "seconds": told.seconds,
            "phases": told.phases,
            "terms": dict(told.terms),
            "bottleneck": told.bottleneck,
            "moved_nbytes": told.moved_nbytes,
            "scheduler_nbytes": told.scheduler_nbytes,
            "worker_hours": told.worker_hours,
            "cost": None if wanted.price is None else wanted.price * told.worker_hours,
            "costs": {"command": told.costs.command, "machine": told.costs.machine},
        }

    if answer(values):
        if chosen is not None:
            show_line(f"Method    {method}, k = {chosen:,} of {dataset.n_features:,} features")
        lines = [line for line in str(plan).splitlines() if told is None or not line.startswith("Time ")]
        show_line("\n".join(lines), indent=10)
        if kept:
            rest = "reads the documents for features only" if method == "hybrid" else "reads no documents"
            show_line(f"Kept      these statistics lie beside the data already: a fit {rest}")
        if told is not None:
            show_lines(_lines_of_forecast(told, wanted, there), width=9)
    plan.check()


# Forecasts


@contextmanager
def _engine(cluster: options.ClusterOptions, dataset: Dataset, wanted: ForecastOptions) -> Iterator[Engine]:
    """The engine of a fit. For a forecast no worker is started: they are as described."""
    if not wanted.wanted or cluster.scheduler is not None:
        with cluster.engine(dataset.source) as engine:
            yield engine
        return
    from nfs_dask.cluster.resources import Resources
    from nfs_dask.engine.dry_run import DryRunEngine

    yield DryRunEngine(
        Resources(
            workers=cluster.workers or 1,
            threads=cluster.threads or 1,
            memory_limit=cluster.memory_limit or 0,
            warm=WARM_NBYTES,
            spool="a folder that all workers reach",
            remote=True,
        )
    )


def _calibrate(dataset: Dataset, cluster: options.ClusterOptions, wanted: ForecastOptions, place: str) -> None:
    """Measure what work costs on the cluster, for later forecasts."""
    from nfs_dask.cluster.finding import current_client
    from nfs_dask.engine.calibrate import calibrate
    from nfs_dask.engine.cost_model import TERMS, Hosts

    statistic = dataset.class_counts()
    with cluster.engine(dataset.source) as engine:
        client = current_client()
        if client is None:
            raise click.UsageError("--calibrate needs workers; say which with --scheduler ADDRESS or --workers N")
        r = engine.plan(statistic, dataset.source, beside=dataset.beside).resources
        hosts = Hosts(r.workers, r.slots / r.workers, network=wanted.network)
        costs = calibrate(client, statistic, dataset.source, hosts, dataset.beside)
    costs.save(place)
    lines = [f"{name:<9} {cost:9.3g} s   of {TERMS[name].counts}" for name, cost in costs.seconds.items()]
    answer(costs.to_json(), "\n".join([*lines, f"Written to {place}; give it with --costs"]))


def _forecast(plan: Plan | Schedule, there: Dataset, wanted: ForecastOptions, solved: bool) -> Forecast:
    """The forecast of all passes of a plan, and of choosing features; ``there`` are the data as they are."""
    from nfs_dask.engine.cost_model import Costs, Hosts, forecast, usual_costs
    from nfs_dask.engine.plan import Plan
    from nfs_dask.files.folder import Folder

    passes = (plan,) if isinstance(plan, Plan) else plan.passes
    remote = there.location is not None and Folder(there.location).remote
    latency = wanted.latency if wanted.latency is not None else REQUEST_SECONDS if remote else 0.0
    far = remote or any(value is not None for value in (wanted.network, wanted.store_rate, wanted.latency))
    r = passes[0].resources
    hosts = Hosts(r.workers, r.slots / r.workers, None, wanted.network, far, wanted.store_rate, latency)
    costs = usual_costs() if wanted.costs is None else Costs.load(wanted.costs)
    return forecast([one.work for one in passes], hosts, costs, solved=solved)


def _lines_of_forecast(found: Forecast, wanted: ForecastOptions, there: Dataset) -> Iterator[tuple[str, str]]:
    from nfs_dask.engine.cost_model import PHASES, TERMS

    source, hosts = there.source, found.hosts
    rows = f"{wanted.rows or source.n_rows:,} rows (there are {source.n_rows:,})"
    per_row = source.about_entries / max(1, source.n_rows)
    features = "as many as now" if wanted.features is None else f"{wanted.features:,} (there are {source.n_features:,})"
    yield "Foretold", f"not measured: {rows} of {per_row:.3g} entries each, as now; features: {features}"
    yield "Time", f"about {format_seconds(found.seconds)} on {hosts.workers:,} worker(s) x {hosts.threads:g} thread(s)"
    for phase, seconds in found.phases.items():
        yield "", f"{format_seconds(seconds):>11}  {phase}: {PHASES[phase]}"
    yield "Limit", f"{TERMS[found.bottleneck].counts}: {format_seconds(found.terms[found.bottleneck])}"
    yield "Moves", f"{format_bytes(found.moved_nbytes)} over links"
    yield "Scheduler", f"about {format_bytes(found.scheduler_nbytes)}, one process, {found.tasks:,} tasks"
    cost = "" if wanted.price is None else f", {wanted.price * found.worker_hours:,.2f} at {wanted.price:g} an hour"
    yield "Workers", f"{found.worker_hours:,.2f} hours of one{cost}"
    links = "links take no time (give --network)"
    if hosts.network is not None:
        links = f"links of {hosts.network / 1e9:g} Gbit/s"
    assumed = ["a core for each thread", links]
    if hosts.far:
        rate = "no limit of its own" if hosts.store is None else f"{format_bytes(hosts.store)} a second for all"
        answers = f"which answers in {1000 * hosts.latency:g} ms"
        assumed.append(f"data and spool behind them in a store of {rate}, {answers}")
    yield "Assumes", "; ".join([*assumed, f"costs by {found.costs.command} on {found.costs.machine}"])


# Jobs of Kubernetes


def _check_job(method: str, places: Sequence[str], image: str | None, cluster: options.ClusterOptions) -> None:
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


def _plan_job(
    dataset: Dataset, estimator: Any, store: str, words: list[str], cluster: options.ClusterOptions, options: JobOptions
) -> None:
    """Answer the manifest of a job whose workers have the memory that its plan takes, or that was asked for.

    One worker is started here for a moment, to see what it takes with the libraries loaded.
    """
    from nfs_dask import dataset as data
    from nfs_dask.cluster.finding import start_cluster
    from nfs_dask.cluster.manifests import FitJob, WorkerSize, to_yaml
    from nfs_dask.engine.dry_run import ElsewhereEngine

    workers, threads = cluster.workers or WORKERS, cluster.threads or THREADS
    say("starting a worker, to see how much memory it takes; no document is read")
    with start_cluster(1, threads) as client, client.as_current():
        plan = data.plan(dataset, estimator, ElsewhereEngine(workers=workers, memory_limit=cluster.memory_limit))
    plan.check()
    size = WorkerSize.for_peak(plan.peak_nbytes, threads)
    if cluster.memory_limit is not None:
        size = replace(size, memory_limit=cluster.memory_limit)
    named = {key: value for key in ("name", "image") if (value := getattr(options, key)) is not None}
    places = (store, str(options.model), str(options.run))
    manifests = FitJob(*places, words, workers, size, plan.client_nbytes, **named).manifests()
    values = {
        "manifests": manifests,
        "plan": plan.to_json(),
        "workers": workers,
        "threads": size.threads,
        "memory_limit": size.memory_limit,
        "container": size.container,
    }
    say(
        f"{workers} worker(s) x {size.threads} thread(s) with {format_bytes(size.memory_limit)} each, of which the "
        f"plan takes {format_bytes(plan.peak_nbytes)}; containers have {format_bytes(size.container)}"
    )
    if answer(values):
        click.echo(to_yaml(manifests), nl=False)


def fit_words(
    method: str, parameters: dict[str, Any], label_column: str | None, where: dict[str, list[str]] | None
) -> list[str]:
    """The options of ``nfs-dask fit`` for what ``plan`` was asked about."""
    words = ["--method", method]
    for known in (K, *options_of_all()):
        if known.parameter not in parameters:
            continue
        value = parameters[known.parameter]
        if isinstance(known.kind, bool):
            words.append(known.name)
            continue
        if isinstance(value, dict):
            value = [f"{key}={number}" for key, number in value.items()]
        several = value if isinstance(value, list) else [value]
        typed = map(str, several) if known.kind == "names" else [",".join(map(str, several))]
        words += [word for text in typed for word in (known.name, text)]
    words += [] if label_column is None else ["--label-column", label_column]
    return words + [
        word
        for column, values in (where or {}).items()
        for value in values
        for word in ("--where", f"{column}={value}")
    ]
