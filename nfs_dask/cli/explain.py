"""``nfs-dask explain``, ``features`` and ``report``: what a saved model goes by."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from nfs_dask.cli import options
from nfs_dask.cli.output import answer, check_output_file, console, ends_in, output_file, show, show_line, table
from nfs_dask.cli.predict import engine_for, opened
from nfs_dask.cli.reporting import keeps
from nfs_dask.documents.parameters import DocumentParameters
from nfs_dask.errors import InputError
from nfs_dask.redaction import redacted
from nfs_dask.units import format_bytes

if TYPE_CHECKING:
    from nfs_dask.prediction.evaluation import Evaluation
    from nfs_dask.prediction.explained_document import ExplainedDocument
    from nfs_dask.prediction.explanation import Explanation

FIRST = 5  # documents of a file that are explained where none are named
WIDEST = 100  # columns of a text, wherever it is shown
_STYLES = ("bold green", "underline magenta")  # for the first side, and for the other one: not by color alone


@click.command()
@click.argument("model")
@click.argument("texts", nargs=-1, metavar="[TEXT]...")
@click.option("--file", "sources", multiple=True, metavar="SOURCE", help="Explain documents of SOURCE; repeatable.")
@click.option("--rows", metavar="N,N-N", help=f"Which documents of SOURCE, from 0 on.  [default: the first {FIRST}]")
@click.option(
    "--top", type=click.IntRange(1), default=10, show_default=True, metavar="N", help="Show so many features of each."
)
@click.option("--html", "page", metavar="FILE", help="Write a page with the marked texts to this file.")
@options.overwrite
@options.align
@options.documents()
@options.json_output
def explain(
    model: str,
    texts: tuple[str, ...],
    sources: tuple[str, ...],
    rows: str | None,
    top: int,
    page: str | None,
    overwrite: bool,
    align: bool,
    columns: DocumentParameters,
) -> None:
    """Why each TEXT gets its class: which features speak for it, and how much each of them contributes.

    A TEXT of - is read from standard input.

    Contributions add up, with what is said of a document without any of the features, to the log odds of one class over
    the other; of models without probabilities (l1, l2 and most of mahalanobis) to a difference of distances. Of more
    than two classes, the best and the next best are compared.

    On a terminal words that speak for the first class are bold, and those that speak for the other one underlined;
    elsewhere they are in brackets, with their contributions.

    With --file, documents are read from SOURCE as predict reads it, and numbered as there: a dataset with the features
    of the training data, or documents in files. A model of documents with several regions takes one TEXT for each.

    \b
    nfs-dask explain spam.model 'Win a cheap watch' 'Lunch on Tuesday?'
    nfs-dask explain spam.model --file new-mail.csv --rows 3,17
    nfs-dask explain spam.model --file new-mail.jsonl --text-column body --rows 0-99 --html why.html
    nfs-dask explain genes.model --file cells.h5ad --rows 12 --top 30
    nfs-dask explain spam.model 'Win a cheap watch' --json
    """
    if texts and sources:
        raise click.UsageError("give texts or --file, not both")
    if not texts and not sources:
        raise click.UsageError("give a text to explain, such as 'Win a cheap watch', or documents with --file SOURCE")
    if texts and (rows is not None or columns != DocumentParameters()):
        raise click.UsageError("--rows and the options of documents are about --file SOURCE, and texts were given")
    if rows is not None and columns.where is not None:
        raise click.UsageError("--rows names rows of SOURCE already; leave --where out")
    if "-" in texts:
        given = sys.stdin.read()
        texts = tuple(given if text == "-" else text for text in texts)
    numbers = None if rows is None else row_numbers(rows)
    check_output_file(page, overwrite, ".html", ".htm")
    keeps("no page was written")
    if sources:
        estimator, explanation = _explanation_of_files(model, sources, numbers, columns, align)
    else:
        estimator, explanation = _explanation_of_texts(model, texts)
    if page is not None:
        from nfs_dask.prediction.explained_html import explanation_page

        title = f"What speaks for what, by {redacted(model)}"
        with output_file(page) as file:
            file.write(explanation_page(explanation.first(), title, top).encode())
    values = {"model": model, "method": estimator.model_.method, **explanation.to_json(), "html": page}
    if answer(values):
        _show(explanation, top, page)


def row_numbers(text: str) -> list[int]:
    """Numbers of rows as they are typed.

    >>> row_numbers("3,17,20-22")
    [3, 17, 20, 21, 22]
    """
    from nfs_dask.prediction.explained_rows import MOST_DOCUMENTS

    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not (first.isdecimal() and (last.isdecimal() if dash else True)) or (dash and int(last) < int(first)):
            raise click.UsageError(f"--rows {text!r} is no list of numbers from 0 on, such as 3,17 or 0-9")
        if int(last or first) - int(first) >= MOST_DOCUMENTS:
            raise click.UsageError(f"--rows {text!r} are too many to explain; name at most {MOST_DOCUMENTS:,}")
        found += range(int(first), int(last or first) + 1)
    return found


def _explanation_of_texts(place: str, texts: tuple[str, ...]) -> tuple[Any, Explanation]:
    from nfs_dask.estimators.loading import load_plain

    estimator = load_plain(place)
    text = estimator.model_.text
    if text is None:
        raise InputError(f"{place} was fitted to a matrix and reads no text; name rows of one with --file SOURCE")
    if text.n_regions == 1:
        return estimator, estimator.explain(list(texts))
    if len(texts) != text.n_regions:
        raise click.UsageError(
            f"documents of this model have {text.n_regions} texts, {', '.join(text.regions)}; give one of each, in "
            "this order, or documents with --file SOURCE"
        )
    return estimator, estimator.explain([texts])


def _explanation_of_files(
    place: str, sources: tuple[str, ...], rows: list[int] | None, columns: DocumentParameters, align: bool
) -> tuple[Any, Explanation]:
    """The estimator, and an explanation numbered as the dataset is that rows were chosen from."""
    import numpy as np

    from nfs_dask.dataset import Dataset
    from nfs_dask.prediction.explaining import explain as explain_rows
    from nfs_dask.sources.chosen_rows import ChosenRows

    estimator, asked = opened(place, sources, columns, align)
    read = asked.source if isinstance(asked, Dataset) else asked
    explanation = explain_rows(read, estimator.model_, rows, first=FIRST)
    if isinstance(read, ChosenRows) and len(explanation):
        numbers = [read.choice.rows(i, i + 1) for i in explanation.documents.tolist()]
        explanation = replace(explanation, documents=np.concatenate(numbers))
    return estimator, explanation


def _show(explanation: Explanation, top: int, page: str | None) -> None:
    from nfs_dask.prediction.explained_text import headline

    for number, document in enumerate(explanation.first()):
        if page is not None:
            show_line(headline(document))
            continue
        if number:
            show()
        _show_document(document, top)
    if page is not None:
        n = len(explanation)
        show_line(f"{n:,} document{'' if n == 1 else 's'} with marked texts written to {page}")


def _show_document(document: ExplainedDocument, top: int) -> None:
    from rich.text import Text

    from nfs_dask.cli.tables import FittedTable
    from nfs_dask.prediction import explained_text as told

    show_line(told.headline(document))
    show_line(told.sum_in_words(document), indent=2)
    out = console()
    if out.is_terminal and not out.is_dumb_terminal and not out.no_color:
        paragraphs = _styled_paragraphs(document)
    else:
        paragraphs = [Text(line) for line in told.text_paragraphs(document, told.bracketed(document))]
    for paragraph in paragraphs:
        show()
        for line in paragraph.wrap(out, min(out.width, WIDEST) - 2):
            line.rstrip()
            out.print("  ", line, sep="", soft_wrap=True)
    if document.telling:
        show(FittedTable(told.HEAD, told.cells_of(document, top), [False, True, True, False]))
    if (said := told.left_out(document, top)) is not None:
        show_line(said)


def _styled_paragraphs(document: ExplainedDocument) -> list[Any]:
    """The texts with their marks in styles that a legend explains."""
    from rich.text import Text

    from nfs_dask.prediction.explained_text import shortened

    weights, paragraphs = document.occurrences(), []
    for text in document.texts:
        line = Text(f"{text.region}: " if len(document.texts) > 1 else "")
        for stretch, part in shortened(text, weights):
            line.append(stretch, None if part is None else _STYLES[weights[part] < 0])
        paragraphs.append(line)
        if text.unmarked is not None:
            paragraphs.append(Text(f"({text.unmarked}; the table has what it has)"))
    if any(text.marks for text in document.texts):
        first, second = document.sides
        bold, underlined = ("bold", _STYLES[0]), ("underlined", _STYLES[1])
        paragraphs.append(Text.assemble("(", bold, f": for {first}; ", underlined, f": for {second})"))
    return paragraphs


@click.command()
@click.argument("model")
@click.option("--top", type=click.IntRange(1), metavar="N", help="Only the N that say most.  [default: all]")
@click.option("--out", metavar="FILE", help="Write a .csv or .parquet file with all that is known of them instead.")
@options.overwrite
@options.json_output
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
    import numpy as np

    from nfs_dask.export.feature_table import feature_columns, write_csv, write_parquet
    from nfs_dask.store.model_files import read_model

    found = read_model(model)[0]
    order = np.argsort(-found.margins().max(axis=0), kind="stable")[:top]
    columns = {
        name: [values[i] for i in order] if isinstance(values, list) else values[order]
        for name, values in feature_columns(found, found.feature_names).items()
    }
    n, selected = len(order), len(found.support)
    values: dict[str, Any] = {"method": found.method, "selected": selected, "n": n, "out": out}
    if out is not None:
        with output_file(out) as file:
            if ends_in(out, ".parquet"):
                write_parquet(file, [columns])
            else:
                write_csv(file, columns)
        answer(values, f"{n:,} features, {len(columns)} columns, in {out}")
        return
    plain = {name: column if isinstance(column, list) else column.tolist() for name, column in columns.items()}
    values["features"] = [dict(zip(plain, row, strict=True)) for row in zip(*plain.values(), strict=True)]
    weights = [name for name in plain if name.startswith("weight_")]
    cells = [[f"{weight:+.3f}" for weight in plain[name]] for name in weights]
    rows = list(zip(plain["feature"], plain["column"], *cells, strict=True))
    title = f"{'All' if n == selected else f'{n:,} of'} {selected:,} chosen features"
    if answer(values):
        show(table(title, ["feature", "column", *weights], rows))


@click.command()
@click.argument("model")
@click.argument("out", metavar="[OUT.html]", required=False)
@click.option("--out", "named", metavar="FILE", help="The same as OUT.html.")
@click.option(
    "--data", "sources", multiple=True, metavar="SOURCE", help="Test data, whose labels are known; repeatable."
)
@click.option("--path", "store", metavar="STORE", help="Training data, for a slider over the number of features.")
@click.option("--folds", type=options.FOLDS, metavar="N|COLUMN", help="Cross-validate each number on the slider.")
@click.option("--title", metavar="TEXT", help="Of the page.")
@click.option(
    "--documents",
    type=click.IntRange(0, 100),
    default=10,
    show_default=True,
    metavar="N",
    help="Show so many test documents that were most wrong, and least sure.",
)
@options.overwrite
@options.align
@options.documents(labels=True)
@options.cluster
@options.json_output
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
    cluster: options.ClusterOptions,
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
    if out is not None and named is not None:
        raise click.UsageError(f"the page is to be {out} and, by --out, {named}; give one of them")
    place = out if out is not None else named
    if place is None:
        raise click.UsageError("say which file to write, such as: nfs-dask report spam.model spam.html")
    if folds is not None and store is None:
        raise click.UsageError("--folds cross-validates on training data; name them with --path STORE")
    if not sources and (columns if store is None else replace(columns, label_column=None)) != DocumentParameters():
        raise click.UsageError("options of documents are about test data; name these with --data SOURCE")
    check_output_file(place, overwrite, ".html", ".htm")
    keeps("no report was written")
    from nfs_dask.estimators.loading import load_plain
    from nfs_dask.prediction.evaluation import evaluate
    from nfs_dask.reports.make_report import check_libraries, check_ranks, path_for, report_of

    check_libraries()
    found: Evaluation | None = None
    estimator = load_plain(model)
    if store is not None:
        check_ranks(estimator)
    if sources:
        estimator, asked = opened(model, sources, columns, align, labels=True)
        with engine_for(asked, cluster) as engine:
            found = evaluate(estimator.model_, asked, engine, documents)
    path, validated = None, None
    if store is not None:
        from nfs_dask.dataset import open_dataset

        dataset, label = open_dataset(store), columns.label_column
        if label is not None and (dataset.classes is None or dataset.classes.tolist() != estimator.classes_.tolist()):
            dataset = open_dataset(store, labels=label)
        with cluster.engine(dataset.source) as engine:
            path, validated = path_for(estimator, dataset, folds, engine)
    made = report_of(estimator, found, path, validated, title).html.encode()
    with output_file(place) as file:
        file.write(made)
    values: dict[str, Any] = {
        "model": model,
        "out": place,
        "bytes": len(made),
        "accuracy": None if found is None else found.accuracy,
        "ks": None if path is None else path.ks,
    }
    answer(values, f"{place} written, {format_bytes(len(made))}; it needs nothing besides")
