"""``nfs-dask info``: what is in a dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from nfs_dask.cli.output import answer, json_option, printable, table
from nfs_dask.units import format_bytes

if TYPE_CHECKING:
    from rich.console import Console

    from nfs_dask.summary import Summary

_MOST_CLASSES = 40  # shown as a table; --json has all


@click.command()
@click.argument("store")
@click.option("--label-column", metavar="NAME", help="The column that holds the labels.")
@click.option("--verify", is_flag=True, help="Read everything, and compare it with the digests written beside it.")
@json_option
def info(store: str, label_column: str | None, verify: bool) -> None:
    """What is in STORE: rows, features, classes, size, and statistics that were kept.

    With --verify every byte is read; damage is named object by object, and the exit code is 3.

    \b
    nfs-dask info mail.zarr
    nfs-dask info s3://bucket/mail.zarr --verify
    """
    from nfs_dask.dataset import open_dataset
    from nfs_dask.summary import summarize

    summary = summarize(open_dataset(store, labels=label_column))
    values: dict[str, Any] = summary.to_json()
    if verify:
        from nfs_dask.storage.receipts import verify as verify_store

        verify_store(summary.location)
        values["verified"] = True
    answer(values, lambda console: _show(summary, verify, console))


def _show(summary: Summary, verified: bool, console: Console) -> None:
    lines = [
        ("store", summary.location),
        ("rows", f"{summary.rows:,}" + (", weighted" if summary.weighted else "")),
        ("features", f"{summary.features:,}" + (", with names" if summary.names else "")),
        ("entries", "unknown" if summary.entries is None else f"{summary.entries:,} ({_density(summary)})"),
        ("values", summary.kind or "unknown before they are read"),
        ("size", format_bytes(summary.nbytes)),
        ("fingerprint", summary.fingerprint or "none"),
        ("generation", "not a store of ours" if summary.generation is None else str(summary.generation)),
        ("statistics", "; ".join(map(_described, summary.statistics)) or "none kept"),
    ]
    if verified:
        lines.append(("digests", "all agree"))
    for name, value in lines:
        console.print(printable(f"{name:<12} {value}"), soft_wrap=True)
    _show_classes(summary, console)


def _show_classes(summary: Summary, console: Console) -> None:
    if summary.classes is None:
        console.print("classes      no labels")
        return
    counts: list[Any] = ["?"] * len(summary.classes) if summary.class_rows is None else [*summary.class_rows]
    rows = [("(no label)", summary.unlabelled)] if summary.unlabelled else []
    rows += zip(map(str, summary.classes), counts, strict=True)
    console.print()
    console.print(table(f"{len(summary.classes):,} classes", ["label", "rows"], rows[:_MOST_CLASSES]))
    if len(rows) > _MOST_CLASSES:
        console.print(f"... and {len(rows) - _MOST_CLASSES:,} more; --json lists all")


def _density(summary: Summary) -> str:
    per_row = (summary.entries or 0) / max(1, summary.rows)
    return f"{per_row:,.1f} a row"


def _described(statistic: dict[str, Any]) -> str:
    parameters = ", ".join(f"{name}={value}" for name, value in statistic.items() if name != "statistic")
    return f"{statistic.get('statistic')}({parameters})"
