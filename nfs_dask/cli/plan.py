"""``nfs-dask plan``: what a fit would take, before anything is spent."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import click

from nfs_dask.cli.options import ClusterOptions, OneOf, cluster_options, estimator_of, parameters_of
from nfs_dask.cli.output import answer, json_option, say, show_line
from nfs_dask.cli.texts import where_option
from nfs_dask.errors import DataWarning
from nfs_dask.registry import METHODS, K, options_of_all

if TYPE_CHECKING:
    from rich.console import Console

    from nfs_dask.engine.plan import Plan
    from nfs_dask.engine.schedule import Schedule


@click.command()
@click.argument("store")
@click.option(
    "--method",
    type=OneOf(["counts", *METHODS]),
    default="counts",
    show_default=True,
    help="What to fit, or just the counts of each class.",
)
@parameters_of([K, *(option for option in options_of_all() if option.counts)])
@click.option("--label-column", metavar="NAME", help="The column that holds the labels.")
@where_option
@cluster_options
@json_option
def plan(
    store: str,
    method: str,
    parameters: dict[str, Any],
    label_column: str | None,
    where: dict[str, list[str]] | None,
    cluster: ClusterOptions,
) -> None:
    """Tasks, bytes read, memory of each worker and time of a fit to STORE. No document is read.

    Only sizes, labels and names are. For large data workers are started for a moment, to see what memory they have.

    Exit code 4 means that a pass would be refused; the message says what would fit.

    \b
    nfs-dask plan mail.zarr
    nfs-dask plan mail.zarr --method multinomial -k 100
    nfs-dask plan s3://bucket/mail.zarr --workers 8 --memory-limit 2GiB
    nfs-dask plan mail.zarr --scheduler tcp://127.0.0.1:8786 --json
    nfs-dask plan genes.h5ad --label-column tissue --method l1 --workers 2 --memory-limit 1GiB
    """
    estimator = None if method == "counts" else estimator_of(method, **parameters)
    if estimator is None and parameters:
        raise click.UsageError("-k and parameters are for a model; say which with --method multinomial or another")
    from nfs_dask import dataset as data

    dataset = data.open_dataset(store, labels=label_column, where=where)
    what = dataset.class_counts() if estimator is None else estimator
    if cluster.starts_workers(dataset.source):
        say("starting workers, to see how much memory they have; no document is read")
    with cluster.engine(dataset.source) as engine:
        plan = data.plan(dataset, what, engine)
    with warnings.catch_warnings(action="ignore", category=DataWarning):  # that all are kept has been said
        chosen = None if estimator is None else estimator.n_selected(dataset)
        statistic = dataset.class_counts() if estimator is None else estimator.statistic(dataset)
    beside = dataset.statistics
    found = beside is not None and statistic is not None and beside.find(statistic) is not None
    values = {**plan.to_json(), "method": method, "k": chosen, "kept": found}
    answer(values, lambda console: _show(plan, values, dataset.n_features, console))
    plan.check()


def _show(plan: Plan | Schedule, values: dict[str, Any], n_features: int, console: Console) -> None:
    if values["k"] is not None:
        show_line(f"Method    {values['method']}, k = {values['k']:,} of {n_features:,} features", console)
    show_line(str(plan), console, indent=10)
    if values["kept"]:
        rest = "reads the documents for features only" if values["method"] == "hybrid" else "reads no documents"
        show_line(f"Kept      these statistics lie beside the data already: a fit {rest}", console)
