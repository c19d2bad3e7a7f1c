"""``nfs-dask plan``: what a pass would take, before anything is spent."""

from __future__ import annotations

import click

from nfs_dask.cli.options import ClusterOptions, cluster_options
from nfs_dask.cli.output import answer, json_option, printable


@click.command()
@click.argument("store")
@click.option("--method", type=click.Choice(["counts"]), default="counts", show_default=True, help="What to compute.")
@click.option("--label-column", metavar="NAME", help="The column that holds the labels.")
@cluster_options
@json_option
def plan(store: str, method: str, label_column: str | None, cluster: ClusterOptions) -> None:
    """Tasks, bytes read, memory of each worker and time of a pass over STORE. Nothing is read.

    Exit code 4 means that the pass would be refused; the message says what would fit.

    \b
    nfs-dask plan mail.zarr
    nfs-dask plan s3://bucket/mail.zarr --workers 8 --memory-limit 2GiB
    nfs-dask plan mail.zarr --scheduler tcp://127.0.0.1:8786 --json
    """
    from nfs_dask.dataset import open_dataset

    dataset = open_dataset(store, labels=label_column)
    statistic = {"counts": dataset.class_counts}[method]()
    with cluster.engine(dataset.source) as engine:
        plan = dataset.plan(statistic, engine)
    answer(plan.to_json(), lambda console: console.print(printable(str(plan))))
    plan.check()
