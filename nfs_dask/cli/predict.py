"""``nfs-dask predict`` and ``nfs-dask evaluate``: what a saved model says of documents, and how often it is right."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nfs_dask.cli.options import ClusterOptions, cluster_options
from nfs_dask.cli.output import answer, json_option, keeps, printable, table

if TYPE_CHECKING:
    from rich.console import Console


@click.command()
@click.argument("model")
@click.argument("source")
@click.option("--out", metavar="FILE", help="Write the predictions to this CSV file instead of standard output.")
@cluster_options
@json_option
def predict(model: str, source: str, out: str | None, cluster: ClusterOptions) -> None:
    """The class of each document of SOURCE, and its probability, as CSV.

    \b
    nfs-dask predict spam.model new-mail.zarr
    nfs-dask predict spam.model new-mail.npz --out classes.csv --workers 2
    """
    from nfs_dask.dataset import open_dataset
    from nfs_dask.estimators.files import load_model

    estimator = load_model(model)
    dataset = open_dataset(source)
    keeps("no predictions were written")
    with cluster.engine(dataset.source) as engine:
        posteriors = estimator.set_params(engine=engine).predict_proba(dataset)
    best = posteriors.argmax(axis=1)
    labels, chances = estimator.classes_[best], posteriors.max(axis=1)
    values: dict[str, Any] = {
        "n": len(labels),
        "predicted": {str(c): int((best == i).sum()) for i, c in enumerate(estimator.classes_)},
        "out": out,
    }
    if out is not None:
        _write_csv(Path(out), labels, chances)
    else:
        values |= {"labels": labels, "probabilities": chances}
    answer(values, lambda console: _show_predictions(values, labels, chances, console))


def _lines(labels: Any, chances: Any) -> Any:
    """Rows of CSV; labels are quoted as they may hold commas and line ends."""
    yield "row,label,probability"
    for row, (label, chance) in enumerate(zip(labels.tolist(), chances.tolist(), strict=True)):
        text = str(label)
        quoted = '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\r\n') else text
        yield f"{row},{quoted},{chance:.6g}"


def _write_csv(path: Path, labels: Any, chances: Any) -> None:
    from nfs_dask.storage.folder import Folder

    with Folder.of(path.parent).create(path.name) as file:
        for line in _lines(labels, chances):
            file.write(line.encode() + b"\n")


def _show_predictions(values: dict[str, Any], labels: Any, chances: Any, console: Console) -> None:
    if values["out"] is None:
        for line in _lines(labels, chances):
            click.echo(printable(line))
    else:
        console.print(table(None, ["class", "documents"], [[c, n] for c, n in values["predicted"].items()]))
        console.print(printable(f"{values['n']:,} predictions written to {values['out']}"))


@click.command()
@click.argument("model")
@click.argument("source")
@click.option("--label-column", metavar="NAME", help="The column of SOURCE that holds the labels.")
@cluster_options
@json_option
def evaluate(model: str, source: str, label_column: str | None, cluster: ClusterOptions) -> None:
    """How often a model is right about the documents of SOURCE, whose labels are known.

    \b
    nfs-dask evaluate spam.model test-mail.zarr
    nfs-dask evaluate spam.model test-mail.zarr --json
    """
    from nfs_dask.dataset import open_dataset
    from nfs_dask.estimators.files import load_model
    from nfs_dask.evaluation import evaluate

    estimator = load_model(model)
    dataset = open_dataset(source, labels=label_column)
    with cluster.engine(dataset.source) as engine:
        values = evaluate(estimator.model_, dataset, engine).to_json()
    answer(values, lambda console: _show_evaluation(values, console))


def _show_evaluation(values: dict[str, Any], console: Console) -> None:
    low, high = values["interval"]
    console.print(
        f"accuracy {values['accuracy']:.4f} (95 % between {low:.4f} and {high:.4f}) on {values['n']:,} documents"
    )
    console.print(f"balanced accuracy {values['balanced_accuracy']:.4f}")
    rows = [[str(c["label"]), c["n"], _share(c["precision"]), _share(c["recall"])] for c in values["per_class"]]
    console.print(table("Each class", ["class", "documents", "precision", "recall"], rows))
    labels = [str(label) for label in values["labels"]]
    confusion = [[label, *row] for label, row in zip(labels, values["confusion"].tolist(), strict=True)]
    console.print(
        table(
            "Documents of a class (rows) by what was predicted (columns)", ["", *map(str, values["classes"])], confusion
        )
    )


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
