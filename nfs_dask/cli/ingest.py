"""``nfs-dask ingest`` and ``label``: documents and matrices into a store, and labels for one that has none."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from nfs_dask.cli import options
from nfs_dask.cli.detached import RepeatedCommand, go_on_detached, typed_command
from nfs_dask.cli.output import answer, check_output_file, output_file
from nfs_dask.cli.reporting import keeps
from nfs_dask.errors import InputError
from nfs_dask.units import format_bytes, format_seconds, several

if TYPE_CHECKING:
    from nfs_dask.documents.parameters import DocumentParameters
    from nfs_dask.ingestion.ingest import MatrixIngest
    from nfs_dask.ingestion.text_ingest import TextIngest
    from nfs_dask.ingestion.text_options import TermParameters
    from nfs_dask.text.settings import TextSettings

MOST_SHOWN = 20  # labels and terms of a check


@click.command(cls=RepeatedCommand)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.argument("store")
@click.option("--labels", type=click.Path(), metavar="FILE", help="One label for each row: .npy, or a line each.")
@click.option("--weights", type=click.Path(), metavar="FILE", help="One weight for each row: .npy, or a line each.")
@click.option("--names", type=click.Path(), metavar="FILE", help="Of a matrix: one name for each feature, a line each.")
@options.documents(labels=True, weights=True)
@options.terms
@click.option(
    "--keep", multiple=True, metavar="COLUMN", help="Also keep this column, for --where and people; repeatable."
)
@click.option("--block-bytes", type=options.SIZE, metavar="SIZE", help="What a block of the store takes in memory.")
@click.option("--append", is_flag=True, help="Add the rows to a store that is there; texts under its terms.")
@options.overwrite
@click.option("--rejects", metavar="FILE", help="Leave out bad documents, and list them in this CSV file, and why.")
@click.option("--check", is_flag=True, help="Look at arguments and first documents, say what would be done, no more.")
@click.option("--clean-up", is_flag=True, help="First remove what an ingest that died left at STORE.")
@click.option("--run", metavar="RUN", help="A folder for signs of life, which nfs-dask status reads.")
@click.option("--detach", is_flag=True, help="Go on without this terminal; the folder RUN tells how it stands.")
@options.cluster
@options.json_output
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
    cluster: options.ClusterOptions,
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
    source: Any = sources[0] if len(sources) == 1 else [options.Location(one) for one in sources]
    columns = replace(columns, keep=keep)
    if rejects is not None:
        from nfs_dask.documents.open_documents import is_documents

        columns = replace(columns, on_error="skip")
        check_output_file(rejects, overwrite, ".csv")
        if not is_documents(source, columns):
            raise click.UsageError("--rejects lists documents that are left out, and no row of a matrix is; drop it")
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
        labels=options.column_of_file(labels),
        weights=options.column_of_file(weights),
        names=None if names is None else options.lines_of(names),
        block_bytes=block_bytes,
        append=append,
        overwrite=overwrite,
    )
    if check:
        _answer_check(asked)
        return
    if rejects is not None and isinstance(asked, TextIngest):
        asked = replace(asked, rejects=partial(output_file, rejects))
    if detach and run is not None:
        go_on_detached(run)
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
    lines = [f"{dataset!r}, written in {format_seconds(seconds)}"]
    if dataset.classes is None:
        values["columns"] = list(getattr(asked.data, "there", ()))
        named = f"name a column of {', '.join(values['columns'])} as --label-column, or " if values["columns"] else ""
        lines.append(f"no labels: for a model, {named}add them by nfs-dask label {dataset.location} FILE")
    elif len(dataset.classes) > 1:
        warn_of_classes(dataset.classes, dataset.n_rows)
    if empty := (values["report"] or {}).get("empty"):
        lines.append(f"{empty:,} {'document is' if empty == 1 else 'documents are'} empty")
    answer(values, "\n".join(lines))


@click.command()
@click.argument("store")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@options.json_output
def label(store: str, file: str) -> None:
    """Give each row of STORE, which has no labels, the one that FILE has for it: a .npy array, or a line each.

    Rows and values are not read again, and what was kept beside the data stays.

    \b
    nfs-dask label mail.zarr folders.txt
    nfs-dask label genes.zarr tissues.npy
    """
    keeps(f"{store} is as it was before")
    from nfs_dask.dataset import open_dataset
    from nfs_dask.sources.labels import encode
    from nfs_dask.store.writer import add_labels

    classes, codes = encode(options.column_of_file(file))
    if (codes < 0).any():
        raise InputError(f"{file} has no label for row {int((codes < 0).argmax())}; give one for each row")
    add_labels(store, classes, codes)
    dataset = open_dataset(store)
    answer({"store": dataset.location, "rows": dataset.n_rows, "classes": dataset.classes}, f"{dataset!r}")


# --check


def _answer_check(asked: TextIngest | MatrixIngest) -> None:
    """Answer what an ingest would do, from its arguments and the first documents."""
    from nfs_dask.ingestion.text_ingest import TextIngest

    values = {"store": asked.store.location, "append": asked.append, "overwrite": asked.overwrite}
    done = "appended to" if asked.append else "replaced in" if asked.overwrite else "written to"
    lines = [f"would be {done} {asked.store.location}; nothing was written"]
    if isinstance(asked, TextIngest):
        values |= _first_documents(asked)
        lines += _lines_of_texts(values)
    else:
        source = asked.data
        values |= {"rows": source.n_rows, "features": source.n_features, "classes": source.classes}
        classes = "no labels" if source.classes is None else several(len(source.classes), "class", "classes")
        lines.append(f"a matrix of {source.n_rows:,} rows and {source.n_features:,} features, {classes}")
    answer(values, "\n".join(lines))


def _first_documents(asked: TextIngest) -> dict[str, Any]:
    """The settings of texts, and the first of them; nothing of the vocabulary is sure yet."""
    from nfs_dask.documents.open_documents import head_of
    from nfs_dask.ingestion.ingest_report import Seen
    from nfs_dask.sources.conditions import text_of
    from nfs_dask.text.counting import TermCounter
    from nfs_dask.text.ordering import order

    documents, seen = asked.data, Seen()
    labels: set[str] | None = None
    counter = TermCounter(asked.terms.settings, tokenizer=asked.terms.tokenizer)
    for batch in head_of(documents):
        seen.note(batch)
        counter.add(batch.document_by_document())
        if batch.labels is not None:
            labels = (labels or set()) | set(map(text_of, batch.labels))
    values: dict[str, Any] = {
        "nbytes": documents.nbytes,
        "columns": documents.columns.to_json(),
        "terms": settings_in_words(asked.terms.settings),
        "head": None,
    }
    if seen.seen:
        found = order(counter.finish()).terms
        values["head"] = {
            **seen.to_json(),
            "chosen": seen.chosen,
            "labels": None if labels is None else sorted(labels),
            "n_terms": len(found),
            "terms": found.part(0, min(len(found), MOST_SHOWN)).to_list(),
        }
    return values


def _lines_of_texts(values: dict[str, Any]) -> list[str]:
    columns, head = values["columns"], values["head"]
    named = [f"texts from {', '.join(columns['text'])}"] if columns["text"] else ["one text each"]
    named += [f"{what}s from {columns[what]}" for what in ("label", "weight") if columns[what]]
    named += [f"with {', '.join(columns['kept'])} of each"] if columns.get("kept") else []
    size = "" if values["nbytes"] is None else f" in {format_bytes(values['nbytes'])}"
    lines = [f"documents{size}: {', '.join(named)}", f"terms: {values['terms']}"]
    if head is None:
        return lines
    without = ((sum(head["left_out"].values()), "bad"), (head.get("passed_over", 0), "not asked for"))
    others = "".join(f", {n:,} {what}" for n, what in without if n)
    lines.append(f"of the first {head['documents_seen']:,} documents {head['chosen']:,} would be taken{others}")
    lines += [f"  {one['where']}: {one['what']}" for one in head["examples"][:5]]
    if (labels := head["labels"]) is not None:
        more = f" and {len(labels) - MOST_SHOWN:,} more" if len(labels) > MOST_SHOWN else ""
        lines.append(f"labels among them: {', '.join(labels[:MOST_SHOWN])}{more}")
    lines.append(f"{head['n_terms']:,} terms in them, such as {', '.join(head['terms'])}")
    return lines


def settings_in_words(settings: TextSettings) -> str:
    """Settings of texts in one line: the terms, then their values."""
    from nfs_dask.text.settings import DEFAULT_PATTERN

    shortest, longest = settings.ngrams
    lengths = f"{longest}" if shortest == longest else f"{shortest}- to {longest}"
    units = {"word": "words", "char": "characters", "char_wb": "characters within words"}[settings.analyzer]
    said = [units if longest == 1 else f"{lengths}-grams of {units}"]
    if settings.tokenizer is not None:
        said.append(f"tokenizer {settings.tokenizer}")
    elif settings.analyzer == "word" and settings.token_pattern != DEFAULT_PATTERN:
        said.append(f"token pattern {settings.token_pattern}")
    said.append("lower case" if settings.lowercase else "case as it is")
    if settings.strip_accents is not None:
        said.append(f"accents stripped ({settings.strip_accents})")
    if settings.stop_words:
        said.append(f"{len(settings.stop_words):,} stop words")
    if settings.stem is not None:
        said.append(f"{settings.stem} stems")
    if settings.hashed is not None:
        said.append(f"hashed to {settings.hashed} bits")
    values = ["presence" if settings.binary else "counts"]
    if settings.tfidf:
        values = ["tf-idf", *["of presence"] * settings.binary, *["sublinear"] * settings.sublinear_tf]
        values.append("not normed" if settings.norm is None else f"{settings.norm} norm")
    return f"{', '.join(said)}; {', '.join(values)}"
