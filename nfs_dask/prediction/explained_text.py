"""Explained documents as lines of plain text, of 80 columns."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator

from nfs_dask.prediction.explained_document import ExplainedDocument, MarkedText, apart
from nfs_dask.text.printable import printable
from nfs_dask.units import several

WIDTH = 80
_FEATURE = 34  # columns of a name
_SIDE = 18
_KEPT = 60  # characters of a stretch without marks on either side of what is left out of it
_MOST_SHOWN = 4000  # characters of a text

HEAD = ("feature", "value", "contribution", "speaks for")


def explained_lines(document: ExplainedDocument, n: int = 10) -> Iterator[str]:
    """A headline, the marked texts, and the n features that contribute most."""
    yield from _wrapped(headline(document))
    yield from _wrapped(sum_in_words(document))
    for line in text_paragraphs(document, bracketed(document)):
        yield ""
        yield from _wrapped(line, "  ")
    if document.telling:
        yield ""
        yield from _table(cells_of(document, n))
    if (said := left_out(document, n)) is not None:
        yield said


def headline(document: ExplainedDocument) -> str:
    """What was decided, in one line."""
    sure = (
        f"margin {document.margin:.4g}" if document.probability is None else f"probability {document.probability:.4f}"
    )
    return printable(f"document {document.document}: {document.predicted}, {sure}").replace("\n", " ")


def sum_in_words(document: ExplainedDocument) -> str:
    """What the decision is made of, in one line."""
    n = len(document.telling)
    by = f"{document.by_features:+.4g} by {several(n, 'feature', 'features')}"
    said = f"{document.compared}: {document.total:+.4g} = {document.base:+.4g} {document.at_base}, {by}"
    return printable(said).replace("\n", " ")


def left_out(document: ExplainedDocument, n: int) -> str | None:
    """How many features are not in a table of n; None where all are."""
    more = len(document.telling) - n
    said = several(more, "more feature that contributes", "more features that contribute")
    return None if more <= 0 else f"and {said} less"


def cells_of(document: ExplainedDocument, n: int) -> list[list[str]]:
    """Rows of a table of the n features that contribute most, as texts."""
    return [
        [
            printable(part.feature).replace("\n", r"\n"),
            f"{part.value:.4g}",
            signed(part.contribution),
            printable(document.side_of(part.contribution)).replace("\n", r"\n"),
        ]
        for part in document.telling[:n]
    ]


def signed(contribution: float) -> str:
    """A contribution with its sign."""
    return f"{contribution:+.3f}" if 5e-4 <= abs(contribution) < 1e5 else f"{contribution:+.3g}"


def text_paragraphs(document: ExplainedDocument, marked: Callable[[str, int | None], str]) -> Iterator[str]:
    """Each text as a paragraph, its stretches written by ``marked``; long ones without marks are shortened."""
    weights = document.occurrences()
    for text in document.texts:
        region = f"{printable(text.region)}: " if len(document.texts) > 1 and text.region else ""
        yield region + "".join(marked(stretch, part) for stretch, part in shortened(text, weights))
        if text.unmarked is not None:
            yield f"({text.unmarked}; the table has what it has)"


def shortened(text: MarkedText, weights: list[float]) -> Iterator[tuple[str, int | None]]:
    """The stretches of a text, each on one line; of long ones without a mark both ends, of long texts the beginning."""
    shown = read = 0
    for stretch, part in apart(text, weights):
        if shown > _MOST_SHOWN:
            yield f" … and {len(text.text) - read:,} more characters", None
            return
        read += len(stretch)
        line = printable(re.sub(r"\s+", " ", stretch))
        if part is None and len(line) > 3 * _KEPT:
            line = f"{line[:_KEPT].rsplit(' ', 1)[0]} … {line[-_KEPT:].split(' ', 1)[-1]}"
        shown += len(line)
        yield line, part


def bracketed(document: ExplainedDocument) -> Callable[[str, int | None], str]:
    """What is no mark as it is, and marks in brackets with what they contribute."""
    weights = document.occurrences()
    return lambda stretch, part: stretch if part is None else f"[{stretch} {weights[part]:+.2g}]"


def _wrapped(line: str, indent: str = "") -> Iterable[str]:
    options = {"initial_indent": indent, "subsequent_indent": indent or "  ", "break_on_hyphens": False}
    return textwrap.wrap(line, WIDTH, **options) or [""]  # type: ignore[arg-type]


def _table(cells: list[list[str]]) -> Iterator[str]:
    rows = [list(HEAD), *cells]
    widths = [min(max(len(row[i]) for row in rows), most) for i, most in enumerate((_FEATURE, 12, 12, _SIDE))]
    for row in rows:
        name, value, contribution, side = (_cut(cell, width) for cell, width in zip(row, widths, strict=True))
        line = f"{name:<{widths[0]}}  {value:>{widths[1]}}  {contribution:>{widths[2]}}  {side}"
        yield line.rstrip()


def _cut(cell: str, width: int) -> str:
    """Both ends of a cell that is wider."""
    if len(cell) <= width:
        return cell
    left = (width - 1) // 2
    return f"{cell[:left]}…{cell[left + 1 - width :]}"
