"""``nfs-dask plan``: what a fit would take, before anything is spent."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import click

from nfs_dask.cli.foretelling import Foretelling, foretelling_options, show_costs, show_forecast, values_of
from nfs_dask.cli.kubernetes_jobs import JobOptions, check_job, fit_words, job_of, job_options, plan_of_job
from nfs_dask.cli.options import ClusterOptions, OneOf, cluster_options, estimator_of, parameters_of
from nfs_dask.cli.output import answer, json_option, say, show_line
from nfs_dask.cli.texts import where_option
from nfs_dask.errors import DataWarning
from nfs_dask.registry import METHODS, K, options_of_all
from nfs_dask.units import format_bytes

if TYPE_CHECKING:
    from rich.console import Console

    from nfs_dask.cluster.manifests import FitJob
    from nfs_dask.dataset import Dataset
    from nfs_dask.engine.plan import Plan, Schedule


@click.command()
@click.argument("store")
@click.option(
    "--method",
    type=OneOf(["counts", *METHODS]),
    default="multinomial",
    show_default=True,
    help="What to fit, or just the counts of each class.",
)
@parameters_of([K, *(option for option in options_of_all() if option.counts)])
@click.option("--label-column", metavar="NAME", help="The column that holds the labels.")
@where_option
@job_options
@cluster_options
@foretelling_options
@json_option
def plan(
    store: str,
    method: str,
    parameters: dict[str, Any],
    label_column: str | None,
    where: dict[str, list[str]] | None,
    job: JobOptions,
    cluster: ClusterOptions,
    foretelling: Foretelling,
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
    estimator = None if method == "counts" else estimator_of(method, **parameters)
    if estimator is None and parameters:
        raise click.UsageError("-k and parameters are for a model; leave --method counts out")
    if job.kubernetes:
        foretelling.check_absent("--kubernetes")
        check_job(method, (store, str(job.model), str(job.run)), job.image, cluster)
    from nfs_dask.dataset import open_dataset

    dataset = open_dataset(store, labels=label_column, where=where)
    if foretelling.calibrate is not None:
        _calibrate(dataset, cluster, foretelling)
    elif job.kubernetes:
        words = fit_words(method, parameters, label_column, where)
        _plan_job(dataset, estimator, store, words, cluster, job)
    else:
        _plan_fit(dataset, method, estimator, cluster, foretelling)


def _calibrate(dataset: Dataset, cluster: ClusterOptions, foretelling: Foretelling) -> None:
    """Measure what work costs on the cluster, for later forecasts."""
    costs = foretelling.measure(cluster, dataset)
    answer(costs.to_json(), lambda console: show_costs(costs, foretelling.calibrate, console))


def _plan_job(
    dataset: Dataset, estimator: Any, store: str, words: list[str], cluster: ClusterOptions, job: JobOptions
) -> None:
    """The manifest of a job whose workers have the memory that its plan takes."""
    plan = plan_of_job(dataset, estimator, cluster)
    plan.check()
    _answer_manifest(plan, job_of(plan, store, words, cluster, job))


def _plan_fit(there: Dataset, method: str, estimator: Any, cluster: ClusterOptions, foretelling: Foretelling) -> None:
    """The plan of a fit to data that are there, or to those of a forecast, with the time it would take."""
    dataset = foretelling.data(there)
    plan = _plan_of(dataset, estimator, cluster, foretelling)
    values = {**plan.to_json(), "method": method, **_known_before(dataset, estimator)}
    told = foretelling.forecast(plan, there, solved=estimator is not None) if foretelling.wanted else None
    values |= {} if told is None else {"forecast": values_of(told, foretelling)}

    def show(console: Console) -> None:
        _show(plan, values, dataset.n_features, console)
        if told is not None:
            show_forecast(told, foretelling, there, console)

    answer(values, show)
    plan.check()


def _plan_of(dataset: Dataset, estimator: Any, cluster: ClusterOptions, foretelling: Foretelling) -> Plan | Schedule:
    """The plan for the cluster of the fit, which may have to be started for a moment."""
    from nfs_dask import dataset as data

    if not foretelling.wanted and cluster.starts_workers(dataset.source):
        say("starting workers, to see how much memory they have; no document is read")
    what = dataset.class_counts() if estimator is None else estimator
    with foretelling.engine(cluster, dataset.source) as engine:
        return data.plan(dataset, what, engine)


def _known_before(dataset: Dataset, estimator: Any) -> dict[str, Any]:
    """How many features would be selected, and whether the statistics are kept beside the data already."""
    with warnings.catch_warnings(action="ignore", category=DataWarning):  # that all are kept has been said
        chosen = None if estimator is None else estimator.n_selected(dataset)
        statistic = dataset.class_counts() if estimator is None else estimator.statistic(dataset)
    beside = dataset.statistics
    kept = beside is not None and statistic is not None and beside.find(statistic) is not None
    return {"k": chosen, "kept": kept}


def _answer_manifest(plan: Plan | Schedule, job: FitJob) -> None:
    """The manifest alone on standard output, and what it comes to beside it."""
    from nfs_dask.cluster.manifests import to_yaml

    manifests, size = job.manifests(), job.size
    values = {
        "manifests": manifests,
        "plan": plan.to_json(),
        "workers": job.workers,
        "threads": size.threads,
        "memory_limit": size.memory_limit,
        "container": size.container,
    }
    say(
        f"{job.workers} worker(s) x {size.threads} thread(s) with {format_bytes(size.memory_limit)} each, of which the "
        f"plan takes {format_bytes(plan.peak_nbytes)}; containers have {format_bytes(size.container)}"
    )
    answer(values, lambda _console: click.echo(to_yaml(manifests), nl=False))


def _show(plan: Plan | Schedule, values: dict[str, Any], n_features: int, console: Console) -> None:
    if values["k"] is not None:
        show_line(f"Method    {values['method']}, k = {values['k']:,} of {n_features:,} features", console)
    lines = [line for line in str(plan).splitlines() if "forecast" not in values or not line.startswith("Time ")]
    show_line("\n".join(lines), console, indent=10)
    if values["kept"]:
        rest = "reads the documents for features only" if values["method"] == "hybrid" else "reads no documents"
        show_line(f"Kept      these statistics lie beside the data already: a fit {rest}", console)
