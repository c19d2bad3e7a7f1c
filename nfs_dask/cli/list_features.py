"""``nfs-dask features``: the selected features of a model, as a table on the terminal or in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from nfs_dask.cli.output import answer, json_option, show_line, table
from nfs_dask.cli.places import check_output_file, ends_in, output_file, overwrite_option

if TYPE_CHECKING:
    from rich.console import Console

    from nfs_dask.models.model import Model


@click.command()
@click.argument("model")
@click.option("--top", type=click.IntRange(1), metavar="N", help="Only the N that say most.  [default: all]")
@click.option("--out", metavar="FILE", help="Write a .csv or .parquet file with all that is known of them instead.")
@overwrite_option
@json_option
def features(model: str, top: int | None, out: str | None, overwrite: bool) -> None:
    """The features that MODEL selected, and how much each speaks for every class; those that say most come first.

    A file also has the probabilities of naive Bayes, or the centers, by class. In CSV, names that a spreadsheet would
    take for formulas, because they begin with = + - @ or white space, have an apostrophe before them; Parquet has
    them as they are.

    \b
    nfs-dask features spam.model --top 20
    nfs-dask features spam.model --out words.csv
    nfs-dask features spam.model --out words.parquet --overwrite
    nfs-dask features spam.model --json
    """
    check_output_file(out, overwrite, ".csv", ".parquet")
    from nfs_dask.store.model_files import read_model

    found = read_model(model)[0]
    columns = _columns(found, top)
    n = len(columns["feature"])
    if out is not None:
        _write(out, columns)
    values: dict[str, Any] = {"method": found.method, "selected": len(found.support), "n": n, "out": out}
    if out is None:
        names, rows = list(columns), zip(*(_plain(column) for column in columns.values()), strict=True)
        values["features"] = [dict(zip(names, row, strict=True)) for row in rows]
    answer(values, lambda console: _show(columns, found, out, console))


def _columns(model: Model, top: int | None) -> dict[str, Any]:
    """What is known of the features, by what it is called, in the order of their largest weight."""
    import numpy as np

    from nfs_dask.export.feature_table import feature_columns

    order = np.argsort(-model.margins().max(axis=0), kind="stable")[:top]
    columns = feature_columns(model, model.feature_names)
    return {
        name: [values[i] for i in order] if isinstance(values, list) else values[order]
        for name, values in columns.items()
    }


def _write(out: str, columns: dict[str, Any]) -> None:
    from nfs_dask.export.table_files import write_csv, write_parquet

    with output_file(out) as file:
        if ends_in(out, ".parquet"):
            write_parquet(file, [columns])
        else:
            write_csv(file, columns)


def _plain(column: Any) -> list[Any]:
    found: list[Any] = column.tolist() if hasattr(column, "tolist") else column
    return found


def _show(columns: dict[str, Any], model: Model, out: str | None, console: Console) -> None:
    n = len(columns["feature"])
    if out is not None:
        show_line(f"{n:,} features, {len(columns)} columns, in {out}", console)
        return
    weights = [name for name in columns if name.startswith("weight_")]
    heads = ["feature", "column", *weights]
    cells = [
        columns["feature"],
        columns["column"].tolist(),
        *([f"{weight:+.3f}" for weight in columns[name].tolist()] for name in weights),
    ]
    which = "All" if n == len(model.support) else f"{n:,} of"
    made = table(f"{which} {len(model.support):,} chosen features", heads, list(zip(*cells, strict=True)))
    console.print(made)
