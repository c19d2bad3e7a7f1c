"""``nfs-dask explain``: which features speak for the class that a saved model gives a document."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from nfs_dask.cli.output import answer, json_option, keeps, show_line
from nfs_dask.cli.places import check_output_file, output_file, overwrite_option
from nfs_dask.cli.texts import align_option, document_options
from nfs_dask.documents.parameters import DocumentParameters
from nfs_dask.errors import InputError
from nfs_dask.redaction import redacted

if TYPE_CHECKING:
    from rich.console import Console

    from nfs_dask.prediction.explained_document import ExplainedDocument
    from nfs_dask.prediction.explanation import Explanation

FIRST = 5  # documents of a file that are explained where none are named
WIDEST = 100  # columns of a text, wherever it is shown


@click.command()
@click.argument("model")
@click.argument("texts", nargs=-1, metavar="[TEXT]...")
@click.option("--file", "sources", multiple=True, metavar="SOURCE", help="Explain documents of SOURCE; repeatable.")
@click.option("--rows", metavar="N,N-N", help=f"Which documents of SOURCE, from 0 on.  [default: the first {FIRST}]")
@click.option(
    "--top", type=click.IntRange(1), default=10, show_default=True, metavar="N", help="Show so many features of each."
)
@click.option("--html", "page", metavar="FILE", help="Write a page with the marked texts to this file.")
@overwrite_option
@align_option
@document_options()
@json_option
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
    _check_usage(texts, sources, rows, columns)
    if "-" in texts:
        given = sys.stdin.read()
        texts = tuple(given if text == "-" else text for text in texts)
    numbers = None if rows is None else row_numbers(rows)
    check_output_file(page, overwrite, ".html", ".htm")
    keeps("no page was written")
    estimator, explanation = _of_files(model, sources, numbers, columns, align) if sources else _of_texts(model, texts)
    if page is not None:
        _write_page(explanation, page, top, model)
    values = {"model": model, "method": estimator.model_.method, **explanation.to_json(), "html": page}
    answer(values, lambda console: _show(explanation, top, page, console))


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


def _check_usage(
    texts: tuple[str, ...], sources: tuple[str, ...], rows: str | None, columns: DocumentParameters
) -> None:
    if texts and sources:
        raise click.UsageError("give texts or --file, not both")
    if not texts and not sources:
        raise click.UsageError("give a text to explain, such as 'Win a cheap watch', or documents with --file SOURCE")
    if texts and (rows is not None or columns != DocumentParameters()):
        raise click.UsageError("--rows and the options of documents are about --file SOURCE, and texts were given")
    if rows is not None and columns.where is not None:
        raise click.UsageError("--rows names rows of SOURCE already; leave --where out")


def _of_texts(place: str, texts: tuple[str, ...]) -> tuple[Any, Explanation]:
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


def _of_files(
    place: str, sources: tuple[str, ...], rows: list[int] | None, columns: DocumentParameters, align: bool
) -> tuple[Any, Explanation]:
    from nfs_dask.cli.predict import opened
    from nfs_dask.dataset import Dataset
    from nfs_dask.prediction.explaining import explain as explain_rows

    estimator, asked = opened(place, sources, columns, align)
    read = asked.source if isinstance(asked, Dataset) else asked
    return estimator, _numbered(explain_rows(read, estimator.model_, rows, first=FIRST), read)


def _numbered(explanation: Explanation, read: Any) -> Explanation:
    """Numbered as the dataset is that rows were chosen from."""
    import numpy as np

    from nfs_dask.sources.chosen_rows import ChosenRows

    if not isinstance(read, ChosenRows) or not len(explanation):
        return explanation
    return replace(
        explanation, documents=np.concatenate([read.choice.rows(i, i + 1) for i in explanation.documents.tolist()])
    )


def _write_page(explanation: Explanation, place: str, top: int, model: str) -> None:
    from nfs_dask.prediction.explained_html import explanation_page

    with output_file(place) as file:
        file.write(explanation_page(explanation.first(), f"What speaks for what, by {redacted(model)}", top).encode())


def _show(explanation: Explanation, top: int, page: str | None, console: Console) -> None:
    from nfs_dask.prediction.explained_text import headline

    if page is not None:
        for document in explanation.first():
            show_line(headline(document), console)
        n = len(explanation)
        show_line(f"{n:,} document{'' if n == 1 else 's'} with marked texts written to {page}", console)
        return
    for number, document in enumerate(explanation.first()):
        if number:
            console.print()
        _show_document(document, top, console)


def _show_document(document: ExplainedDocument, top: int, console: Console) -> None:
    from nfs_dask.cli.tables import FittedTable
    from nfs_dask.prediction.explained_text import HEAD, cells_of, headline, left_out, sum_in_words

    show_line(headline(document), console)
    show_line(sum_in_words(document), console, indent=2)
    styled = console.is_terminal and not console.is_dumb_terminal and not console.no_color
    for paragraph in _paragraphs(document, styled):
        console.print()
        for line in paragraph.wrap(console, min(console.width, WIDEST) - 2):
            line.rstrip()
            console.print("  ", line, sep="", soft_wrap=True)
    if document.telling:
        console.print(FittedTable(HEAD, cells_of(document, top), [False, True, True, False]))
    if (said := left_out(document, top)) is not None:
        show_line(said, console)


_STYLES = ("bold green", "underline magenta")  # for the first side, and for the other one: not by color alone


def _paragraphs(document: ExplainedDocument, styled: bool) -> list[Any]:
    """The texts with their marks: in styles that a legend explains, or in brackets."""
    from rich.text import Text

    from nfs_dask.prediction.explained_text import bracketed, shortened, text_paragraphs

    if not styled:
        return [Text(line) for line in text_paragraphs(document, bracketed(document))]
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
        paragraphs.append(Text.assemble("(", ("bold", _STYLES[0]), f": for {first}; ", ("underlined", _STYLES[1]),
                                        f": for {second})"))  # fmt: skip
    return paragraphs
