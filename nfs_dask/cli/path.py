"""``nfs-dask path``: what every number of features is worth, and how sure that is."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

import click

from nfs_dask.cli import options
from nfs_dask.cli.output import answer, check_output_file, output_file, show, show_line, table
from nfs_dask.cli.reporting import keeps
from nfs_dask.registry import MEASURES, RULES, methods_of_paths, options_of_all

if TYPE_CHECKING:
    from nfs_dask.selection.chosen import Chosen
    from nfs_dask.selection.path_table import Path


@click.command()
@click.argument("store")
@options.method(methods_of_paths())
@options.parameters([option for option in options_of_all() if option.gains])
@click.option(
    "--ks", type=options.KS, metavar="K,K,...", help='Numbers of features, shares, or "all"; else many from 1 to all.'
)
@click.option("--choose", "rule", type=options.OneOf(list(RULES)), help="Choose a k by this rule, and say why.")
@click.option("--folds", type=options.FOLDS, metavar="N|COLUMN", help="Of cross-validation.  [default: 5]")
@click.option(
    "--alphas", type=options.NUMBERS, metavar="A,A,...", help="Smoothings that cross-validation tries with each k."
)
@click.option("--by", type=options.OneOf(list(MEASURES)), help="What cross-validation goes by.  [default: accuracy]")
@click.option(
    "--within",
    type=click.FloatRange(0, 1, max_open=True),
    metavar="SHARE",
    help="Of near: how much of the best may be lost.  [default: 0.01]",
)
@options.label_column
@options.where
@options.no_cache
@click.option("--csv", "out", metavar="FILE", help="Write all rows to this CSV file.")
@options.overwrite
@options.cluster
@options.json_output
def path(
    store: str,
    method: str,
    parameters: dict[str, Any],
    ks: list[Any] | None,
    rule: str | None,
    label_column: str | None,
    where: dict[str, list[str]] | None,
    no_cache: bool,
    out: str | None,
    overwrite: bool,
    cluster: options.ClusterOptions,
    **asked: Any,
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
    options.estimator_of(method, parameters)
    for name, value in asked.items():  # folds, alphas, by and within
        takers = [other.name for other in RULES.values() if name in other.takes]
        if value is not None and rule not in takers:
            raise click.UsageError(
                f"--{name} is for --choose {' and '.join(takers)}; add one of these, or leave it out"
            )
    from nfs_dask.dataset import open_dataset
    from nfs_dask.selection.make_path import path as make_path
    from nfs_dask.selection.splitters import folds_of

    check_output_file(out, overwrite, ".csv")
    keeps("no path was written")
    dataset = open_dataset(store, labels=label_column, where=where, reuse=not no_cache)
    if isinstance(asked["folds"], str):
        folds_of(asked["folds"], dataset, None)  # before the first pass
    with cluster.engine(dataset.source) as engine:
        found = make_path(dataset, method, ks, **parameters, engine=engine)
        chosen = None
        if rule is not None:
            looked_at = ks if "ks" in RULES[rule].takes else None
            chosen = found.choose(rule, ks=looked_at, engine=engine, **asked)
    values = found.to_json() | {"out": out} | ({} if chosen is None else {"chosen": chosen.to_json()})
    if out is not None:
        text = io.StringIO()
        writer = csv.DictWriter(text, list(values["path"][0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(values["path"])
        with output_file(out) as file:
            file.write(text.getvalue().encode())
    if answer(values):
        _show(found, out, chosen)


def _show(found: Path, out: str | None, chosen: Chosen | None) -> None:
    columns, *rows = found.cells()
    show_line(found.headline)
    show(table(None, columns, rows, right=True))
    counted = "statistics kept from before, no document read" if found.reused else "the documents were read"
    shown = "" if len(rows) == len(found.ks) else f"{len(rows)} of {len(found.ks):,} rows shown; "
    written = "" if out is None else f"; all rows written to {out}"
    show_line(f"{shown}{counted}{written}")
    if chosen is None:
        return
    if RULES[chosen.rule].reads and chosen.table:  # else the table is the one above
        columns = [name for name, value in chosen.table[0].items() if not isinstance(value, list)]  # of each fold
        cells = [[_cell(row[name]) for name in columns] for row in chosen.table]
        show(table(None, columns, cells, right=True))
    smoothing = "" if chosen.alpha is None else f" with alpha {chosen.alpha:g}"
    show_line(f"k = {int(chosen):,}{smoothing}, by {chosen.rule}: {chosen.why_}")


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
