"""``nfs-dask ingest``: documents and matrices into a store."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from nfs_dask.cli.detached import RepeatedCommand, show_detached, start_detached, typed_command
from nfs_dask.cli.options import ClusterOptions, Size, cluster_options
from nfs_dask.cli.output import answer, json_option, keeps, show_line
from nfs_dask.cli.places import check_output_file, output_file, overwrite_option
from nfs_dask.cli.texts import Location, column_of_file, document_options, lines_of, term_options
from nfs_dask.units import format_seconds

if TYPE_CHECKING:
    from rich.console import Console

    from nfs_dask.documents.parameters import DocumentParameters
    from nfs_dask.ingestion.text_options import TermParameters


@click.command(cls=RepeatedCommand)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.argument("store")
@click.option("--labels", type=click.Path(), metavar="FILE", help="One label for each row: .npy, or a line each.")
@click.option("--weights", type=click.Path(), metavar="FILE", help="One weight for each row: .npy, or a line each.")
@click.option("--names", type=click.Path(), metavar="FILE", help="Of a matrix: one name for each feature, a line each.")
@document_options(labels=True, weights=True)
@term_options
@click.option(
    "--keep", multiple=True, metavar="COLUMN", help="Also keep this column, for --where and people; repeatable."
)
@click.option("--block-bytes", type=Size(), metavar="SIZE", help="What a block of the store takes in memory.")
@click.option("--append", is_flag=True, help="Add the rows to a store that is there; texts under its terms.")
@overwrite_option
@click.option("--rejects", metavar="FILE", help="Leave out bad documents, and list them in this CSV file, and why.")
@click.option("--check", is_flag=True, help="Look at arguments and first documents, say what would be done, no more.")
@click.option("--clean-up", is_flag=True, help="First remove what an ingest that died left at STORE.")
@click.option("--run", metavar="RUN", help="A folder for signs of life, which nfs-dask status reads.")
@click.option("--detach", is_flag=True, help="Go on without this terminal; the folder RUN tells how it stands.")
@cluster_options
@json_option
def ingest(
    sources: tuple[str, ...],
    store: str,
    labels: str | None,
    weights: str | None,
    names: str | None,
    columns: DocumentParameters,
    terms: TermParameters,
    keep: tuple[str, ...],
    block_bytes: int | None,
    append: bool,
    overwrite: bool,
    rejects: str | None,
    check: bool,
    clean_up: bool,
    run: str | None,
    detach: bool,
    cluster: ClusterOptions,
) -> None:
    """Write documents or matrices into STORE, from which every pass reads fastest.

    A SOURCE of documents is a file of Parquet, CSV, Excel, JSON lines or lines of text, a folder, tar or zip
    archive with a folder for each class, or a part of an archive, as in news.tar.gz/train. A SOURCE of a matrix is
    a .npz, .npy, .svmlight or .h5ad file, an AnnData Zarr or another store, or CSV or Parquet of numbers. Each is a
    path, a URL or a pattern. The store becomes visible when it is complete; an ingest of documents that was
    interrupted goes on when it is repeated.

    \b
    nfs-dask ingest reviews.parquet --label-column stars reviews.zarr
    nfs-dask ingest 'tweets-*.csv.gz' --text-column tweet --ngrams 1,2 --min-df 2 tweets.zarr --workers 4
    nfs-dask ingest aclImdb_v1.tar.gz/aclImdb/train/pos aclImdb_v1.tar.gz/aclImdb/train/neg imdb.zarr
    nfs-dask ingest mail.jsonl --region subject --region body --label-column folder mail.zarr
    nfs-dask ingest kritiken.xlsx --label-column sterne --stop-words german --stem german kritiken.zarr
    nfs-dask ingest news.csv --label-column topic --keep split --keep date news.zarr
    nfs-dask ingest matrix.npz --labels labels.npy mail.zarr
    nfs-dask ingest 'mail-*.jsonl.zst' mail.zarr --workers 4 --run ingesting --detach
    """
    if append and overwrite:
        raise click.UsageError("--append adds rows to a store and --overwrite replaces it; give one of them")
    if detach and run is None:
        raise click.UsageError("--detach needs a folder to report to; name one with --run RUN")
    if columns.label_column is not None and labels is not None:
        raise click.UsageError("--labels and --label-column both say what the labels are; give one of them")
    source = sources[0] if len(sources) == 1 else [Location(one) for one in sources]
    columns = replace(columns, keep=keep)
    if rejects is not None:
        columns = replace(columns, on_error="skip")
        _check_rejects(source, columns, rejects, overwrite)
    from nfs_dask.dataset import open_dataset
    from nfs_dask.ingestion.ingest import open_ingest
    from nfs_dask.ingestion.text_ingest import TextIngest
    from nfs_dask.sources.labels import warn_of_classes
    from nfs_dask.store import publish as places

    if clean_up and not check:
        places.clean_up(store)
    keeps(f"{store} is as it was before; of documents, the same command goes on with what was finished")
    started = time.perf_counter()
    asked = open_ingest(
        source,
        store,
        columns,
        terms,
        labels=column_of_file(labels),
        weights=column_of_file(weights),
        names=None if names is None else lines_of(names),
        block_bytes=block_bytes,
        append=append,
        overwrite=overwrite,
    )
    if rejects is not None and isinstance(asked, TextIngest):
        asked = replace(asked, rejects=partial(output_file, rejects))
    if check:
        from nfs_dask.cli.ingest_check import answer_check

        answer_check(asked)
        return
    if detach:
        assert run is not None
        begun = start_detached(run)
        answer(begun, lambda console: show_detached(begun, console))
        return
    from nfs_dask.engine.driver import driving

    with (
        driving(run, None if run is None else typed_command(False)),
        cluster.engine(asked.data) as engine,
    ):
        asked.write(engine)
    dataset = open_dataset(asked.store.location)
    seconds = time.perf_counter() - started
    values: dict[str, Any] = {
        "store": dataset.location,
        "rows": dataset.n_rows,
        "features": dataset.n_features,
        "entries": dataset.nnz,
        "classes": dataset.classes,
        "kind": dataset.kind,
        "fingerprint": dataset.fingerprint,
        "report": dataset.text.report if dataset.text is not None else None,
        "seconds": seconds,
    }
    if dataset.classes is None:
        values["columns"] = list(getattr(asked.data, "there", ()))
    elif len(dataset.classes) > 1:
        warn_of_classes(dataset.classes, dataset.n_rows)
    answer(values, lambda console: _show(values, f"{dataset!r}, written in {format_seconds(seconds)}", console))


def _show(values: dict[str, Any], written: str, console: Console) -> None:
    show_line(written, console)
    if values["classes"] is None:
        named = f"name a column of {', '.join(values['columns'])} as --label-column, or " if values["columns"] else ""
        show_line(f"no labels: for a model, {named}add them by nfs-dask label {values['store']} FILE", console)
    if empty := (values["report"] or {}).get("empty"):
        show_line(f"{empty:,} {'document is' if empty == 1 else 'documents are'} empty", console)


def _check_rejects(source: Any, columns: DocumentParameters, place: str, overwrite: bool) -> None:
    from nfs_dask.documents.open_documents import is_documents

    check_output_file(place, overwrite, ".csv")
    if not is_documents(source, columns):
        raise click.UsageError("--rejects lists documents that are left out, and no row of a matrix is; drop it")
