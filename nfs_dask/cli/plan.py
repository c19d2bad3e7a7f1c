"""``nfs-dask plan``: what a pass would take, before anything is spent."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import click

from nfs_dask.cli.options import ClusterOptions, cluster_options, kept
from nfs_dask.cli.output import answer, json_option, printable
from nfs_dask.errors import DataWarning

if TYPE_CHECKING:
    from rich.console import Console

    from nfs_dask.dataset import Dataset
    from nfs_dask.engine.plan import Plan
    from nfs_dask.statistics.base import Statistic


@click.command()
@click.argument("store")
@click.option(
    "--method",
    type=click.Choice(["counts", "bernoulli", "multinomial"]),
    default="counts",
    show_default=True,
    help="What to fit, or just the counts of each class.",
)
@click.option("-k", "k", metavar="K", help='Features of the model: how many, a share, or "all".')
@click.option("--binarize", type=float, metavar="T", help="Bernoulli: values above T count as present.")
@click.option("--label-column", metavar="NAME", help="The column that holds the labels.")
@cluster_options
@json_option
def plan(
    store: str,
    method: str,
    k: str | None,
    binarize: float | None,
    label_column: str | None,
    cluster: ClusterOptions,
) -> None:
    """Tasks, bytes read, memory of each worker and time of a pass over STORE. Nothing is read.

    Exit code 4 means that the pass would be refused; the message says what would fit.

    \b
    nfs-dask plan mail.zarr
    nfs-dask plan mail.zarr --method multinomial -k 100
    nfs-dask plan s3://bucket/mail.zarr --workers 8 --memory-limit 2GiB
    nfs-dask plan mail.zarr --scheduler tcp://127.0.0.1:8786 --json
    """
    if method != "bernoulli" and binarize is not None:
        raise click.UsageError("--binarize is for --method bernoulli")
    if method == "counts" and k is not None:
        raise click.UsageError("-k is for a model; say which with --method multinomial or --method bernoulli")
    from nfs_dask.dataset import open_dataset

    dataset = open_dataset(store, labels=label_column)
    statistic, chosen = _statistic(dataset, method, k, binarize)
    with cluster.engine(dataset.source) as engine:
        plan = dataset.plan(statistic, engine)
    found = dataset.statistics is not None and dataset.statistics.find(statistic) is not None
    values = {**plan.to_json(), "method": method, "k": chosen, "kept": found}
    answer(values, lambda console: _show(plan, values, console))
    plan.check()


def _statistic(dataset: Dataset, method: str, k: str | None, binarize: float | None) -> tuple[Statistic, int | None]:
    """What would be counted, and how many features would be kept of it."""
    if method == "counts":
        return dataset.class_counts(), None
    from nfs_dask.estimators.files import ESTIMATORS
    from nfs_dask.selection import number_to_keep

    parameters: dict[str, Any] = {"k": kept(k or "10")} | ({} if binarize is None else {"binarize": binarize})
    statistic = ESTIMATORS[method](**parameters).statistic(dataset)
    with warnings.catch_warnings(action="ignore", category=DataWarning):  # that all are kept has been said
        return statistic, number_to_keep(parameters["k"], dataset.n_features)


def _show(plan: Plan, values: dict[str, Any], console: Console) -> None:
    if values["k"] is not None:
        console.print(f"Method    {values['method']}, k = {values['k']:,} of {plan.n_features:,} features")
    console.print(printable(str(plan)))
    if values["kept"]:
        console.print("Kept      these counts lie beside the data already: a fit reads no documents")
