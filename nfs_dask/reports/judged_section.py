"""How a model does on test data, as tables and pictures, and the documents that were hardest for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nfs_dask.markup import escaped, html_table, shortened_name
from nfs_dask.plots.confusion_display import ConfusionDisplay
from nfs_dask.plots.coverage_display import CoverageDisplay
from nfs_dask.plots.inline_svg import inline_svg
from nfs_dask.plots.reliability_display import ReliabilityDisplay
from nfs_dask.prediction.evaluation import Evaluation
from nfs_dask.prediction.explained_document import ExplainedDocument, MarkedText, Part
from nfs_dask.prediction.explained_html import explanation_html
from nfs_dask.prediction.explanation import Explanation
from nfs_dask.prediction.hardest import HardDocument
from nfs_dask.units import several

MOST_CLASSES = 100  # in tables
MOST_DRAWN = 30  # in pictures of confusion
MOST_IN_CONFUSION = 20  # in a table of it
MOST_BYTES = 900_000  # of all documents together
LENGTHS = (4000, 1500, 500, 150, 0)  # letters of a text, of which the first that fits is taken
LONGEST = 60


@dataclass(frozen=True)
class JudgedSection:
    """What is told of test data."""

    headline: str
    tables: tuple[str, ...]  # as HTML
    pictures: tuple[str, ...]
    wrong: tuple[str, ...]  # documents, as HTML
    unsure: tuple[str, ...]
    notes: tuple[str, ...] = ()


def judged_section(found: Evaluation, explanation: Explanation | None, n_features: int = 8) -> JudgedSection:
    """All of it, of bounded size.

    Parameters
    ----------
    found
        What `nfs_dask.evaluate` returns, with the hardest documents.
    explanation
        Of these; None: they are only numbered.
    n_features
        So many of each document in a table.
    """
    hardest = found.hardest
    wrong, unsure = ((), ()) if hardest is None else (hardest.wrong, hardest.unsure)
    room = MOST_BYTES // max(1, len(wrong) + len(unsure))
    low, high = found.interval
    return JudgedSection(
        headline=(
            f"{found.accuracy:.1%} of {several(found.n, 'document', 'documents')} are given their class (95 % between "
            f"{low:.1%} and {high:.1%}). Balanced accuracy, the mean over the classes: {found.balanced_accuracy:.1%}."
        ),
        tables=tuple(_tables(found)),
        pictures=tuple(_pictures(found)),
        wrong=tuple(_document(one, explanation, n_features, room) for one in wrong),
        unsure=tuple(_document(one, explanation, n_features, room) for one in unsure),
        notes=tuple(_notes(found)),
    )


def _tables(found: Evaluation) -> Iterable[str]:
    n = found.confusion.sum(axis=1)
    labels = [shortened_name(label, LONGEST) for label in found.labels.tolist()]
    largest = np.sort(np.argsort(-n, kind="stable")[:MOST_CLASSES]).tolist()
    rows = [[labels[i], f"{n[i]:,}", _share(found.precision[i]), _share(found.recall[i])] for i in largest]
    of = "" if len(rows) == len(labels) else f" ({len(rows)} of {len(labels):,}, those with most documents)"
    yield html_table(["class", "documents", "precision", "recall"], rows, f"Each class{of}")
    if len(labels) <= MOST_IN_CONFUSION and len(found.classes) <= MOST_IN_CONFUSION:
        yield html_table(
            ["true class", *(shortened_name(label, LONGEST) for label in found.classes.tolist())],
            [
                [label, *(f"{cell:,}" for cell in row)]
                for label, row in zip(labels, found.confusion.tolist(), strict=True)
            ],
            "Documents of a class (rows) by what was predicted (columns)",
        )
    if found.confidence is not None:
        told = found.confidence.to_json()
        at = [[f"{float(least):.0%}", f"{share:.1%}"] for least, share in told["coverage"]["at_accuracy"].items()]
        yield html_table(
            ["accuracy", "documents covered"], at, "How many documents, the surest first, at what accuracy"
        )
        bins = [
            [f"{b['from']:.1f} to {b['to']:.1f}", f"{b['n']:,}", f"{b['posterior']:.4f}", f"{b['accuracy']:.4f}"]
            for b in told["reliability"]
        ]
        yield html_table(
            ["probability", "documents", "its mean", "accuracy"],
            bins,
            f"Are probabilities what they say? Off by {told['expected_calibration_error']:.4f} on average",
        )


def _pictures(found: Evaluation) -> Iterable[str]:
    if max(found.confusion.shape) <= MOST_DRAWN:
        yield inline_svg(
            lambda: ConfusionDisplay.from_evaluation(found, colorbar=False),
            "confusion",
            "Confusion matrix",
            "Documents of each true class by the class they were given; the numbers are in the table.",
            on_paper=True,
        )
    if found.confidence is not None:
        yield inline_svg(
            lambda: CoverageDisplay.from_evaluation(found),
            "coverage",
            "Accuracy over coverage",
            "Accuracy of the documents the model is surest of, over how many these are.",
        )
        yield inline_svg(
            lambda: ReliabilityDisplay.from_evaluation(found),
            "reliability",
            "Calibration",
            "Accuracy over the probability of the predicted class, above how many documents have it.",
        )


def _notes(found: Evaluation) -> Iterable[str]:
    if found.left_out:
        yield f"{several(found.left_out, 'document', 'documents')} could not be read and were left out."
    if len(found.labels) > MOST_IN_CONFUSION:
        yield f"There are {len(found.labels):,} classes, too many for a table of which is taken for which."


def _document(one: HardDocument, explanation: Explanation | None, n_features: int, room: int) -> str:
    """A document with its words marked, or with its features alone; no longer than there is room."""
    if explanation is None or one.number not in explanation.documents:
        said = f"document {one.number:,}, of class {shortened_name(one.label, LONGEST)}"
        return f'<article class="nfs-explained"><h3>{escaped(said)}</h3></article>'
    document = _short_names(explanation.of(one.number))
    truth = f"true class: {shortened_name(one.label, LONGEST)}"
    for length in LENGTHS:
        inside = explanation_html([_cut(document, length)], n_features)
        if len(inside.encode()) <= room:
            break
    return f'<article><p class="truth">{escaped(truth)}</p>\n{inside}</article>'


def _short_names(document: ExplainedDocument) -> ExplainedDocument:
    """With names of bounded length."""
    first, second = (shortened_name(side, LONGEST) for side in document.sides)
    parts = tuple(Part(shortened_name(p.feature, LONGEST), p.value, p.contribution) for p in document.parts)
    compared = shortened_name(document.compared, 3 * LONGEST)
    predicted = shortened_name(document.predicted, LONGEST)
    return replace(document, sides=(first, second), parts=parts, compared=compared, predicted=predicted)


def _cut(document: ExplainedDocument, length: int) -> ExplainedDocument:
    """With the beginnings of its texts."""
    return replace(document, texts=tuple(_beginning(text, length) for text in document.texts))


def _beginning(text: MarkedText, length: int) -> MarkedText:
    if len(text.text) <= length:
        return text
    left_out = f"… and {len(text.text) - length:,} more letters"
    marks: Sequence[Any] = tuple(mark for mark in text.marks if mark.stop <= length)
    return replace(text, text=f"{text.text[:length]} {left_out}", marks=tuple(marks))


def _share(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.4f}"
