"""``nfs-dask path``: what every number of features is worth, and how sure that is."""

from __future__ import annotations

import csv
import io
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import click

from nfs_dask.cli.options import ClusterOptions, cluster_options, estimator_of, kept, model_options
from nfs_dask.cli.output import answer, json_option, keeps, printable, table

if TYPE_CHECKING:
    from rich.console import Console

    from nfs_dask.paths.table import Path


@click.command()
@click.argument("store")
@model_options
@click.option("--ks", metavar="K,K,...", help='Numbers of features, shares, or "all"; else many from 1 to all.')
@click.option("--label-column", metavar="NAME", help="The column that holds the labels.")
@click.option("--no-cache", is_flag=True, help="Neither use statistics kept beside the data, nor keep new ones.")
@click.option("--csv", "out", metavar="FILE", help="Write all rows to this CSV file.")
@cluster_options
@json_option
def path(
    store: str,
    method: str,
    parameters: dict[str, Any],
    ks: str | None,
    label_column: str | None,
    no_cache: bool,
    out: str | None,
    cluster: ClusterOptions,
) -> None:
    """What each number of features of STORE gains, a bound that no choice exceeds, and the gap between the two.

    The data are read as for one k, or not at all where the statistics were kept. Gains are log likelihoods less the one
    without features, in nats; of centers, what the features take off the cost. A choice is certified if its gap is at
    most a millionth of its bound. About 20 rows are shown; --json and --csv have all of them.

    \b
    nfs-dask path mail.zarr
    nfs-dask path mail.zarr --method bernoulli --binarize 0 --ks 1,10,100
    nfs-dask path mail.zarr --ks 0.001,0.01,0.1 --alpha 0.1 --csv path.csv
    nfs-dask path genes.h5ad --label-column tissue --method l1
    """
    estimator_of(method, **parameters)
    from nfs_dask.dataset import open_dataset
    from nfs_dask.paths.making import path as make_path

    keeps("no path was written")
    wanted = None if ks is None else [kept(part.strip()) for part in ks.split(",")]
    dataset = open_dataset(store, labels=label_column, reuse=not no_cache)
    with cluster.engine(dataset.source) as engine:
        found = make_path(dataset, method, wanted, **parameters, engine=engine)
    values = found.to_json() | {"out": out}
    if out is not None:
        _write_csv(FilePath(out), values["path"])
    answer(values, lambda console: _show(found, out, console))


def _write_csv(place: FilePath, rows: list[dict[str, Any]]) -> None:
    from nfs_dask.storage.folder import Folder

    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    with Folder.of(place.parent).create(place.name) as file:
        file.write(text.getvalue().encode())


def _show(found: Path, out: str | None, console: Console) -> None:
    columns, *rows = found.cells()
    console.print(found.headline)
    console.print(table(None, columns, rows, right=True))
    counted = "statistics kept from before, no document read" if found.reused else "the documents were read"
    shown = "" if len(rows) == len(found.ks) else f"{len(rows)} of {len(found.ks):,} rows shown; "
    written = "" if out is None else f"; all rows written to {out}"
    console.print(printable(f"{shown}{counted}{written}"))
