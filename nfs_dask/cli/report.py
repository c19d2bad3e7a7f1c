"""``nfs-dask report``: one page about a saved model, for whoever has to decide about it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from nfs_dask.cli.options import ClusterOptions, FoldsOrColumn, cluster_options
from nfs_dask.cli.output import answer, json_option, keeps, show_line
from nfs_dask.cli.places import check_output_file, output_file, overwrite_option
from nfs_dask.cli.texts import align_option, document_options
from nfs_dask.documents.parameters import DocumentParameters
from nfs_dask.units import format_bytes

if TYPE_CHECKING:
    from nfs_dask.prediction.evaluation import Evaluation
    from nfs_dask.selection.path_table import Path
    from nfs_dask.selection.validation_table import CrossValidation


@click.command()
@click.argument("model")
@click.argument("out", metavar="[OUT.html]", required=False)
@click.option("--out", "named", metavar="FILE", help="The same as OUT.html.")
@click.option(
    "--data", "sources", multiple=True, metavar="SOURCE", help="Test data, whose labels are known; repeatable."
)
@click.option("--path", "store", metavar="STORE", help="Training data, for a slider over the number of features.")
@click.option("--folds", type=FoldsOrColumn(), metavar="N|COLUMN", help="Cross-validate each number on the slider.")
@click.option("--title", metavar="TEXT", help="Of the page.")
@click.option(
    "--documents",
    type=click.IntRange(0, 100),
    default=10,
    show_default=True,
    metavar="N",
    help="Show so many test documents that were most wrong, and least sure.",
)
@overwrite_option
@align_option
@document_options(labels=True)
@cluster_options
@json_option
def report(
    model: str,
    out: str | None,
    named: str | None,
    sources: tuple[str, ...],
    store: str | None,
    folds: int | str | None,
    title: str | None,
    documents: int,
    overwrite: bool,
    align: bool,
    columns: DocumentParameters,
    cluster: ClusterOptions,
) -> None:
    """Write one HTML page about MODEL: how sure its choice of features is, what it goes by, and where it comes from.

    The page is complete and small: it opens from a mail, on a phone and in print, and fetches nothing.

    With --data it says how often the model is right about documents whose labels are known, and shows those it got most
    wrong and was least sure of, with their words marked; they are read as evaluate reads them. With --path it has a
    slider over about 30 numbers of features, and what each of them gains; with --folds also how often models of so many
    features are right about documents they were not fitted to. --label-column is for the training data, too.

    \b
    nfs-dask report spam.model spam.html
    nfs-dask report spam.model spam.html --data test.csv --label-column folder
    nfs-dask report spam.model spam.html --path mail.zarr --folds 5
    nfs-dask report tissue.model --out tissue.html --data cells.h5ad --label-column tissue --overwrite
    """
    place = _place(out, named)
    _check_usage(sources, store, folds, columns)
    check_output_file(place, overwrite, ".html", ".htm")
    keeps("no report was written")
    from nfs_dask.cli.predict import engine_for, opened
    from nfs_dask.estimators.loading import load_plain
    from nfs_dask.prediction.evaluation import evaluate
    from nfs_dask.reports.make_report import check_ranks, report_of

    check_libraries()
    found: Evaluation | None = None
    if store is not None:
        check_ranks(load_plain(model))
    if sources:
        estimator, asked = opened(model, sources, columns, align, labels=True)
        with engine_for(asked, cluster) as engine:
            found = evaluate(estimator.model_, asked, engine, documents)
    else:
        estimator = load_plain(model)
    path, table = _path(estimator, store, columns.label_column, folds, cluster)
    made = report_of(estimator, found, path, table, title)
    with output_file(place) as file:
        file.write(made.html.encode())
    nbytes = len(made.html.encode())
    values: dict[str, Any] = {
        "model": model,
        "out": place,
        "bytes": nbytes,
        "accuracy": None if found is None else found.accuracy,
        "ks": None if path is None else path.ks,
    }
    answer(
        values, lambda console: show_line(f"{place} written, {format_bytes(nbytes)}; it needs nothing besides", console)
    )


def check_libraries() -> None:
    """Refuse to begin without what a page is made with."""
    from nfs_dask.plots.drawing_axes import check_matplotlib
    from nfs_dask.reports.page import check_jinja

    check_jinja()
    check_matplotlib()


def _place(out: str | None, named: str | None) -> str:
    """The file to write."""
    if out is not None and named is not None:
        raise click.UsageError(f"the page is to be {out} and, by --out, {named}; give one of them")
    place = out if out is not None else named
    if place is None:
        raise click.UsageError("say which file to write, such as: nfs-dask report spam.model spam.html")
    return place


def _check_usage(
    sources: tuple[str, ...], store: str | None, folds: int | str | None, columns: DocumentParameters
) -> None:
    if folds is not None and store is None:
        raise click.UsageError("--folds cross-validates on training data; name them with --path STORE")
    given = columns if store is None else replace(columns, label_column=None)
    if not sources and given != DocumentParameters():
        raise click.UsageError("options of documents are about test data; name these with --data SOURCE")


def _path(
    estimator: Any, store: str | None, label: str | None, folds: int | str | None, cluster: ClusterOptions
) -> tuple[Path | None, CrossValidation | None]:
    """The path of the training data; of data with other labels than the model's, by the column that was named."""
    if store is None:
        return None, None
    from nfs_dask.dataset import open_dataset
    from nfs_dask.reports.make_report import path_for

    dataset = open_dataset(store)
    if label is not None and (dataset.classes is None or dataset.classes.tolist() != estimator.classes_.tolist()):
        dataset = open_dataset(store, labels=label)
    with cluster.engine(dataset.source) as engine:
        return path_for(estimator, dataset, folds, engine)
