"""``nfs-dask path``: what every number of features is worth, and how sure that is."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

import click

from nfs_dask.cli.options import (
    ClusterOptions,
    FoldsOrColumn,
    NumberList,
    NumbersToKeep,
    OneOf,
    cluster_options,
    estimator_of,
    path_options,
)
from nfs_dask.cli.output import answer, json_option, keeps, show_line, table
from nfs_dask.cli.places import check_output_file, output_file, overwrite_option
from nfs_dask.cli.texts import where_option
from nfs_dask.registry import MEASURES, RULES

if TYPE_CHECKING:
    from rich.console import Console

    from nfs_dask.selection.chosen import Chosen
    from nfs_dask.selection.path_table import Path


@click.command()
@click.argument("store")
@path_options
@click.option(
    "--ks",
    type=NumbersToKeep(),
    metavar="K,K,...",
    help='Numbers of features, shares, or "all"; else many from 1 to all.',
)
@click.option("--choose", "rule", type=OneOf(list(RULES)), help="Choose a k by this rule, and say why.")
@click.option("--folds", type=FoldsOrColumn(), metavar="N|COLUMN", help="Of cross-validation.  [default: 5]")
@click.option(
    "--alphas",
    type=NumberList("--alphas"),
    metavar="A,A,...",
    help="Smoothings that cross-validation tries with each k.",
)
@click.option("--by", type=OneOf(list(MEASURES)), help="What cross-validation goes by.  [default: accuracy]")
@click.option(
    "--within",
    type=click.FloatRange(0, 1, max_open=True),
    metavar="SHARE",
    help="Of near: how much of the best may be lost.  [default: 0.01]",
)
@click.option("--label-column", metavar="NAME", help="The column that holds the labels.")
@where_option
@click.option("--no-cache", is_flag=True, help="Neither use statistics kept beside the data, nor keep new ones.")
@click.option("--csv", "out", metavar="FILE", help="Write all rows to this CSV file.")
@overwrite_option
@cluster_options
@json_option
def path(
    store: str,
    method: str,
    parameters: dict[str, Any],
    ks: list[Any] | None,
    rule: str | None,
    folds: int | str | None,
    alphas: list[float] | None,
    by: str | None,
    within: float | None,
    label_column: str | None,
    where: dict[str, list[str]] | None,
    no_cache: bool,
    out: str | None,
    overwrite: bool,
    cluster: ClusterOptions,
) -> None:
    """What each number of features of STORE gains, a bound that no choice exceeds, and the gap between the two.

    The data are read as for one k, or not at all where the statistics were kept. Gains are log likelihoods less the one
    without features, in nats; of centers, what the features take off the cost. A choice is certified if its gap is zero
    up to rounding, and close if it is at most a millionth of its bound. About 20 rows are shown; --json and --csv have
    all of them.

    --choose names the k that a rule chooses, among those of --ks or about twenty of the path: elbow, where the curve of
    gains over log k bends most; error, the smallest error that is predicted from one pass (not of l1); cv, the best
    accuracy in cross-validation, two more passes for all k and all --alphas; 1se, the smallest k within one standard
    error of that; near, the smallest that loses at most 1 % of it, or the share given as --within.

    \b
    nfs-dask path mail.zarr
    nfs-dask path mail.zarr --method bernoulli --binarize 0 --ks 1,10,100
    nfs-dask path mail.zarr --ks 0.001,0.01,0.1 --alpha 0.1 --csv path.csv
    nfs-dask path mail.zarr --choose elbow
    nfs-dask path mail.zarr --choose 1se --folds 10 --alphas 0.1,1
    nfs-dask path mail.zarr --choose near --within 0.02 --by balanced
    nfs-dask path genes.h5ad --label-column tissue --method l1
    """
    estimator_of(method, **parameters)
    options: dict[str, Any] = {"folds": folds, "alphas": alphas, "by": by, "within": within}
    _check_taken(rule, options)
    from nfs_dask.dataset import open_dataset
    from nfs_dask.selection.make_path import path as make_path
    from nfs_dask.selection.splitters import folds_of

    check_output_file(out, overwrite, ".csv")
    keeps("no path was written")
    dataset = open_dataset(store, labels=label_column, where=where, reuse=not no_cache)
    if isinstance(folds, str):
        folds_of(folds, dataset, None)  # before the first pass
    with cluster.engine(dataset.source) as engine:
        found = make_path(dataset, method, ks, **parameters, engine=engine)
        chosen = None
        if rule is not None:
            looked_at = ks if "ks" in RULES[rule].takes else None
            chosen = found.choose(rule, ks=looked_at, engine=engine, **options)
    values = found.to_json() | {"out": out} | ({} if chosen is None else {"chosen": chosen.to_json()})
    if out is not None:
        _write_csv(out, values["path"])
    answer(values, lambda console: _show(found, out, chosen, console))


def _check_taken(rule: str | None, options: dict[str, Any]) -> None:
    """Refuse options of other rules than the one that was named, if any."""
    for name, value in options.items():
        takers = [other.name for other in RULES.values() if name in other.takes]
        if value is not None and rule not in takers:
            raise click.UsageError(
                f"--{name} is for --choose {' and '.join(takers)}; add one of these, or leave it out"
            )


def _write_csv(place: str, rows: list[dict[str, Any]]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    with output_file(place) as file:
        file.write(text.getvalue().encode())


def _show(found: Path, out: str | None, chosen: Chosen | None, console: Console) -> None:
    columns, *rows = found.cells()
    show_line(found.headline, console)
    console.print(table(None, columns, rows, right=True))
    counted = "statistics kept from before, no document read" if found.reused else "the documents were read"
    shown = "" if len(rows) == len(found.ks) else f"{len(rows)} of {len(found.ks):,} rows shown; "
    written = "" if out is None else f"; all rows written to {out}"
    show_line(f"{shown}{counted}{written}", console)
    if chosen is not None:
        _show_choice(chosen, console)


def _show_choice(chosen: Chosen, console: Console) -> None:
    """What a rule went by, and the k it chose. Of a rule that reads nothing more, the table is the one above."""
    if RULES[chosen.rule].reads and chosen.table:
        columns = [name for name, value in chosen.table[0].items() if not isinstance(value, list)]  # of each fold
        rows = [[_cell(row[name]) for name in columns] for row in chosen.table]
        console.print(table(None, columns, rows, right=True))
    smoothing = "" if chosen.alpha is None else f" with alpha {chosen.alpha:g}"
    show_line(f"k = {int(chosen):,}{smoothing}, by {chosen.rule}: {chosen.why_}", console)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
