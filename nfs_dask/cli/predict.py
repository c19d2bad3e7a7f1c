"""``nfs-dask predict`` and ``nfs-dask evaluate``: what a saved model says of documents, and how often it is right."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from shutil import copyfileobj
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

import click

from nfs_dask.cli import options
from nfs_dask.cli.output import answer, check_output_file, ends_in, output_file, show, show_line, table
from nfs_dask.cli.reporting import keeps
from nfs_dask.documents.parameters import DocumentParameters
from nfs_dask.errors import DataWarning, warn
from nfs_dask.text.printable import printable

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from nfs_dask.engine.engine import Engine
    from nfs_dask.prediction.model_rows import Asked


@click.command()
@click.argument("model")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option("--out", metavar="FILE", help="Write a .csv or .parquet file instead of standard output.")
@options.overwrite
@click.option("--id-column", "keep", metavar="NAME", help="Also write this column of SOURCE, which names documents.")
@click.option("--all-probabilities", is_flag=True, help="Also write the probability of each class.")
@options.align
@options.documents()
@options.cluster
@options.json_output
def predict(
    model: str,
    sources: tuple[str, ...],
    out: str | None,
    overwrite: bool,
    keep: str | None,
    all_probabilities: bool,
    align: bool,
    columns: DocumentParameters,
    cluster: options.ClusterOptions,
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
    sources = click.get_current_context().with_resource(_standard_input(sources))
    estimator, asked = opened(model, sources, replace(columns, keep=() if keep is None else (keep,)), align)
    from nfs_dask.cli.predicted_rows import PredictedRows

    keeps("no predictions were written")
    tally = PredictedRows(estimator, asked, keep, all_probabilities)
    with engine_for(asked, cluster) as engine:
        parts = tally.parts(engine)
        if out is not None:
            from nfs_dask.export.feature_table import write_parquet

            with output_file(out) as file:
                if ends_in(out, ".parquet"):
                    write_parquet(file, map(tally.columns, parts))
                else:
                    for line in tally.lines(parts):
                        file.write(line.encode() + b"\n")
        found = list(parts)  # empty where they have been written
    values: dict[str, Any] = {"n": tally.n, "predicted": tally.predicted, "left_out": tally.left_out, "out": out}
    if out is None:
        values |= tally.values(found)

    for_people = answer(values)
    if for_people and out is not None:
        show(table(None, ["class", "documents"], list(tally.predicted.items())))
        show_line(f"{tally.n:,} predictions written to {out}")
    elif for_people:
        for line in tally.lines(found):
            click.echo(printable(line))
    if tally.left_out:
        warn(f"{tally.left_out:,} documents were left out; the first: {tally.first}", DataWarning)


@contextmanager
def _standard_input(sources: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
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

    Columns that were not named are those of the training data. They are looked for before estimators are imported,
    which takes longer.
    """
    from nfs_dask.documents.lines import LineDocuments
    from nfs_dask.documents.locations import FORMATS, format_of
    from nfs_dask.documents.number_tables import open_numbers
    from nfs_dask.documents.open_documents import is_documents, open_documents
    from nfs_dask.store.model_files import read_model

    model, parameters = read_model(place)
    source: Any = sources[0] if len(sources) == 1 else [options.Location(one) for one in sources]
    if FORMATS.get(format_of(sources[0]) or "", LineDocuments) is not LineDocuments:  # which has columns
        before = model.provenance.get("columns") or {}
        if columns.text_column is None and columns.regions is None:
            columns = replace(columns, text_column=before.get("text"))
        if labels and columns.label_column is None:
            columns = replace(columns, label_column=before.get("label"))
    numbers = open_numbers(source, columns) if model.text is None else None
    documents = None
    if numbers is None and is_documents(source, columns):
        regions = model.text.regions if model.text is not None else ()
        if len(regions) > 1 and columns.text_column is None and columns.regions is None:
            columns = replace(columns, regions=list(regions))
        documents = open_documents(source, columns)
    elif numbers is None and (columns.encoding, columns.on_error, columns.delimiter) != (
        DocumentParameters.encoding,
        DocumentParameters.on_error,
        None,
    ):
        raise click.UsageError(f"--encoding, --delimiter and --on-error are about texts, and {sources[0]} is a matrix")
    from nfs_dask.dataset import Dataset, open_dataset
    from nfs_dask.estimators.inputs import check_features, reader_of
    from nfs_dask.estimators.loading import estimator_of
    from nfs_dask.prediction.model_rows import ReadDocuments

    estimator = estimator_of(model, parameters, place)
    if documents is not None:
        return estimator, ReadDocuments(documents, reader_of(estimator))
    if numbers is not None:
        dataset = Dataset(numbers)
    else:
        dataset = open_dataset(source, labels=columns.label_column, where=columns.where)
    dataset = dataset.align(estimator) if align else dataset
    check_features(estimator, dataset)
    return estimator, dataset


def engine_for(asked: Asked, cluster: options.ClusterOptions) -> AbstractContextManager[Engine]:
    """The engine that was asked for, or suits what is read."""
    from nfs_dask.dataset import Dataset

    return cluster.engine(asked.source if isinstance(asked, Dataset) else asked.documents)


@click.command()
@click.argument("model")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@options.align
@options.documents(labels=True)
@options.cluster
@options.json_output
def evaluate(
    model: str, sources: tuple[str, ...], align: bool, columns: DocumentParameters, cluster: options.ClusterOptions
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
    if answer(values):
        _show_evaluation(values)


def _show_evaluation(values: dict[str, Any]) -> None:
    def digits(value: float | None) -> str:
        return "-" if value is None else f"{value:.4f}"

    low, high = values["interval"]
    scores = {
        "balanced accuracy": "balanced_accuracy",
        "macro F1": "f1_macro",
        "ROC AUC": "roc_auc",
        "log loss": "log_loss",
        "Brier score": "brier_score",
    }
    lines = [
        f"accuracy {values['accuracy']:.4f} (95 % between {low:.4f} and {high:.4f}) on {values['n']:,} documents",
        f"accuracy of always saying the largest class {values['majority_accuracy']:.4f}",
        ", ".join(f"{name} {values[key]:.4f}" for name, key in scores.items() if values[key] is not None),
    ]
    if "coverage" in values:
        at = values["coverage"]["at_accuracy"].items()
        covered = ", ".join(f"{float(accuracy):.0%}: {share:.1%}" for accuracy, share in at)
        lines.append(f"covered at an accuracy of {covered} of the documents, those of largest odds")
        lines.append(f"expected calibration error {values['expected_calibration_error']:.4f}")
    show_line("\n".join(lines))
    rows = [[str(c["label"]), c["n"], digits(c["precision"]), digits(c["recall"])] for c in values["per_class"]]
    show(table("Each class", ["class", "documents", "precision", "recall"], rows))
    if "reliability" in values:
        bins = [
            [f"{b['from']:.1f} to {b['to']:.1f}", b["n"], digits(b["posterior"]), digits(b["accuracy"])]
            for b in values["reliability"]
        ]
        show(table("Probabilities", ["probability", "documents", "its mean", "accuracy"], bins))
    confusion = [[str(label), *row] for label, row in zip(values["labels"], values["confusion"].tolist(), strict=True)]
    title = "Documents of a class (rows) by what was predicted (columns)"
    show(table(title, ["", *map(str, values["classes"])], confusion))
