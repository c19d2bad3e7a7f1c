"""``nfs-dask predict`` and ``nfs-dask evaluate``: what a saved model says of documents, and how often it is right."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from shutil import copyfileobj
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

import click

from nfs_dask.cli.options import ClusterOptions, cluster_options
from nfs_dask.cli.output import answer, json_option, keeps, show_line, table
from nfs_dask.cli.places import check_output_file, ends_in, output_file, overwrite_option
from nfs_dask.cli.texts import Location, align_option, document_options
from nfs_dask.documents.parameters import DocumentParameters
from nfs_dask.errors import DataWarning, warn
from nfs_dask.text.printable import printable

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from rich.console import Console

    from nfs_dask.cli.predicted_rows import PredictedRows
    from nfs_dask.documents.document_source import DocumentSource
    from nfs_dask.engine.engine import Engine
    from nfs_dask.models.model import Model
    from nfs_dask.prediction.model_rows import Asked
    from nfs_dask.prediction.scoring import Verdicts


@click.command()
@click.argument("model")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option("--out", metavar="FILE", help="Write a .csv or .parquet file instead of standard output.")
@overwrite_option
@click.option("--id-column", "keep", metavar="NAME", help="Also write this column of SOURCE, which names documents.")
@click.option("--all-probabilities", is_flag=True, help="Also write the probability of each class.")
@align_option
@document_options()
@cluster_options
@json_option
def predict(
    model: str,
    sources: tuple[str, ...],
    out: str | None,
    overwrite: bool,
    keep: str | None,
    all_probabilities: bool,
    align: bool,
    columns: DocumentParameters,
    cluster: ClusterOptions,
) -> None:
    """The class of each document of SOURCE, and its probability, as CSV or Parquet.

    Models without probabilities (l1, l2 and most of mahalanobis) give a margin instead: how much nearer the center of
    the class is than the next one.

    SOURCE is a dataset with the features of the training data; or, for a model of texts, documents in files of any kind
    that ingest reads. Rows are numbered as in SOURCE, also where documents were left out. A SOURCE of - is standard
    input, with a document on each line.

    \b
    nfs-dask predict spam.model new-mail.zarr
    nfs-dask predict spam.model new-mail.npz --out classes.csv --workers 2
    nfs-dask predict spam.model 'mail/*.jsonl.gz' --text-column body --on-error skip --out classes.csv
    """
    check_output_file(out, overwrite, ".csv", ".parquet")
    sources = click.get_current_context().with_resource(standard_input(sources))
    estimator, asked = opened(model, sources, replace(columns, keep=() if keep is None else (keep,)), align)
    from nfs_dask.cli.predicted_rows import PredictedRows

    keeps("no predictions were written")
    tally = PredictedRows(estimator, asked, keep, all_probabilities)
    with engine_for(asked, cluster) as engine:
        parts = tally.parts(engine)
        if out is not None:
            _write(out, tally, parts)
        found = list(parts)  # empty where they have been written
    values: dict[str, Any] = {"n": tally.n, "predicted": tally.predicted, "left_out": tally.left_out, "out": out}
    if out is None:
        values |= tally.values(found)
    answer(values, lambda console: _show_predictions(values, tally.lines(found), console))
    if tally.left_out:
        warn(f"{tally.left_out:,} documents were left out; the first: {tally.first}", DataWarning)


@contextmanager
def standard_input(sources: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The sources, with a file of what standard input says in the place of a hyphen."""
    if "-" not in sources:
        yield sources
        return
    with NamedTemporaryFile(prefix="standard-input-", suffix=".txt") as file:
        copyfileobj(sys.stdin.buffer, file)
        file.flush()
        yield tuple(file.name if source == "-" else source for source in sources)


def opened(
    place: str, sources: tuple[str, ...], columns: DocumentParameters, align: bool, labels: bool = False
) -> tuple[Any, Asked]:
    """The estimator, and what it is asked about: a dataset, or documents that are read piece by piece.

    Columns are looked for before estimators are imported, which takes longer.
    """
    from nfs_dask.store.model_files import read_model

    model, parameters = read_model(place)
    columns = _as_before(model, sources[0], columns, labels)
    from nfs_dask.documents.number_tables import open_numbers

    table = open_numbers(_one_or_list(sources), columns) if model.text is None else None
    documents = None if table is not None else _documents(model, sources, columns)
    from nfs_dask.dataset import Dataset, open_dataset
    from nfs_dask.estimators.inputs import check_features, reader_of
    from nfs_dask.estimators.loading import estimator_of
    from nfs_dask.prediction.model_rows import ReadDocuments

    estimator = estimator_of(model, parameters, place)
    if documents is not None:
        return estimator, ReadDocuments(documents, reader_of(estimator))
    if table is not None:
        dataset = Dataset(table)
    else:
        dataset = open_dataset(_one_or_list(sources), labels=columns.label_column, where=columns.where)
    dataset = dataset.align(estimator) if align else dataset
    check_features(estimator, dataset)
    return estimator, dataset


def engine_for(asked: Asked, cluster: ClusterOptions) -> AbstractContextManager[Engine]:
    """The engine that was asked for, or suits what is read."""
    from nfs_dask.dataset import Dataset

    return cluster.engine(asked.source if isinstance(asked, Dataset) else asked.documents)


def _documents(model: Model, sources: tuple[str, ...], columns: DocumentParameters) -> DocumentSource | None:
    """The documents that were named, with the columns of the training data where no others were; None for a matrix."""
    from nfs_dask.documents.open_documents import is_documents, open_documents

    source = _one_or_list(sources)
    if not is_documents(source, columns):
        reading = (columns.encoding, columns.on_error, columns.delimiter)
        if reading != (DocumentParameters.encoding, DocumentParameters.on_error, None):
            raise click.UsageError(
                f"--encoding, --delimiter and --on-error are about texts, and {sources[0]} is a matrix"
            )
        return None
    regions = model.text.regions if model.text is not None else ()
    if len(regions) > 1 and columns.text_column is None and columns.regions is None:
        columns = replace(columns, regions=list(regions))
    return open_documents(source, columns)


def _as_before(model: Model, place: str, columns: DocumentParameters, labels: bool) -> DocumentParameters:
    """The columns that were named; of tables, in place of those that were not, the ones of the training data."""
    from nfs_dask.documents.lines import LineDocuments
    from nfs_dask.documents.locations import FORMATS, format_of

    before = model.provenance.get("columns") or {}
    if FORMATS.get(format_of(place) or "", LineDocuments) is LineDocuments:
        return columns
    if columns.text_column is None and columns.regions is None:
        columns = replace(columns, text_column=before.get("text"))
    if labels and columns.label_column is None:
        columns = replace(columns, label_column=before.get("label"))
    return columns


def _one_or_list(sources: tuple[str, ...]) -> Any:
    return sources[0] if len(sources) == 1 else [Location(source) for source in sources]


def _write(place: str, tally: PredictedRows, parts: Iterable[Verdicts]) -> None:
    """Write CSV, or the Parquet that the ending asks for, part by part."""
    from nfs_dask.export.table_files import write_parquet

    with output_file(place) as file:
        if ends_in(place, ".parquet"):
            write_parquet(file, map(tally.columns, parts))
            return
        for line in tally.lines(parts):
            file.write(line.encode() + b"\n")


def _show_predictions(values: dict[str, Any], lines: Iterable[str], console: Console) -> None:
    if values["out"] is None:
        for line in lines:
            click.echo(printable(line))
    else:
        console.print(table(None, ["class", "documents"], [[c, n] for c, n in values["predicted"].items()]))
        show_line(f"{values['n']:,} predictions written to {values['out']}", console)


@click.command()
@click.argument("model")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@align_option
@document_options(labels=True)
@cluster_options
@json_option
def evaluate(
    model: str, sources: tuple[str, ...], align: bool, columns: DocumentParameters, cluster: ClusterOptions
) -> None:
    """How often a model is right about the documents of SOURCE, whose labels are known.

    SOURCE is a dataset with the features of the training data; or, for a model of texts, documents in files of any kind
    that ingest reads. Of models with probabilities also how many documents, taken in the order of their odds, are
    covered at some accuracies, and whether probabilities are what they say.

    \b
    nfs-dask evaluate spam.model test-mail.zarr
    nfs-dask evaluate spam.model test.parquet --label-column folder --json
    """
    estimator, asked = opened(model, sources, columns, align, labels=True)
    from nfs_dask.prediction.evaluation import evaluate

    with engine_for(asked, cluster) as engine:
        values = evaluate(estimator.model_, asked, engine).to_json()
    answer(values, lambda console: _show_evaluation(values, console))


def _show_evaluation(values: dict[str, Any], console: Console) -> None:
    low, high = values["interval"]
    show_line(
        f"accuracy {values['accuracy']:.4f} (95 % between {low:.4f} and {high:.4f}) on {values['n']:,} documents",
        console,
    )
    show_line(f"accuracy of always saying the largest class {values['majority_accuracy']:.4f}", console)
    scores = {"balanced accuracy": "balanced_accuracy", "macro F1": "f1_macro", "ROC AUC": "roc_auc"}
    scores |= {"log loss": "log_loss", "Brier score": "brier_score"}
    said = [f"{name} {values[key]:.4f}" for name, key in scores.items() if values[key] is not None]
    show_line(", ".join(said), console)
    if "coverage" in values:
        at = values["coverage"]["at_accuracy"]
        show_line(
            "covered at an accuracy of "
            + ", ".join(f"{float(accuracy):.0%}: {share:.1%}" for accuracy, share in at.items())
            + " of the documents, those of largest odds",
            console,
        )
        show_line(f"expected calibration error {values['expected_calibration_error']:.4f}", console)
    rows = [[str(c["label"]), c["n"], _share(c["precision"]), _share(c["recall"])] for c in values["per_class"]]
    console.print(table("Each class", ["class", "documents", "precision", "recall"], rows))
    if "reliability" in values:
        bins = [
            [f"{b['from']:.1f} to {b['to']:.1f}", b["n"], f"{b['posterior']:.4f}", f"{b['accuracy']:.4f}"]
            for b in values["reliability"]
        ]
        console.print(table("Probabilities", ["probability", "documents", "its mean", "accuracy"], bins))
    labels = [str(label) for label in values["labels"]]
    confusion = [[label, *row] for label, row in zip(labels, values["confusion"].tolist(), strict=True)]
    console.print(
        table(
            "Documents of a class (rows) by what was predicted (columns)", ["", *map(str, values["classes"])], confusion
        )
    )


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
