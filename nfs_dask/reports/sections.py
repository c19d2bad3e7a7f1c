"""Sections of the page about a model, of bounded size: its features, each k of a path, test data, and its origin."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nfs_dask.engine.engine import Engine
from nfs_dask.estimators.classifier import parameters_of
from nfs_dask.estimators.exporting import gains_of
from nfs_dask.markup import escaped, facts_list, html_table, shortened_name
from nfs_dask.models.certificate_text import number
from nfs_dask.plots.inline_svg import inline_svg
from nfs_dask.plots.k_displays import PathDisplay
from nfs_dask.plots.model_displays import FeaturesDisplay, unit_of
from nfs_dask.plots.prediction_displays import ConfusionDisplay, CoverageDisplay, ReliabilityDisplay
from nfs_dask.prediction.evaluation import Evaluation
from nfs_dask.prediction.explained_document import ExplainedDocument, MarkedText, Part
from nfs_dask.prediction.explained_html import explanation_html
from nfs_dask.prediction.explained_text import signed
from nfs_dask.prediction.explanation import Explanation
from nfs_dask.prediction.hardest import HardDocument
from nfs_dask.selection.make_path import tops_of_path
from nfs_dask.selection.path_table import Path
from nfs_dask.selection.validation_table import CrossValidation
from nfs_dask.units import format_bytes, format_seconds, several

LONGEST = 60  # letters of a name
Tops = Mapping[Any, Sequence[tuple[str, float]]]  # weights are NaN where they are not known


def _short(name: object, letters: int = LONGEST) -> str:
    return shortened_name(name, letters)


# Features

MOST_CLASSES = 12  # whose features are shown
SHOWN = 15  # features of each class


def features_section(model: Any) -> dict[str, str]:
    """The features that speak for each class most, as a picture and as a table with their gains where known."""
    fitted = model.model_
    known = getattr(model, "_names", None)
    largest = np.sort(np.argsort(-fitted.class_count, kind="stable")[:MOST_CLASSES])
    labels = fitted.classes[largest].tolist()
    tops = fitted.top_features(SHOWN, None if known is None else known.names)
    shown = {label: [(_short(name), weight) for name, weight in tops[label]] for label in labels}
    note = "A weight is how much a feature speaks for its class, against the documents of the other ones."
    if len(labels) < fitted.n_classes:
        note += f" {len(labels)} of {fitted.n_classes:,} classes are shown, those with most documents."
    head = ["feature", "speaks for", "weight"]
    rows = [[name, _short(label), signed(weight)] for label, top in shown.items() for name, weight in top]
    if (gains := gains_of(model)) is not None:
        head, shown_gains = [*head, "gain"], []
        margins = dict(zip(fitted.classes.tolist(), fitted.margins(), strict=True))
        for label in labels:
            order = np.argsort(-margins[label], kind="stable")[:SHOWN]
            shown_gains += gains[order[margins[label][order] > 0]].tolist()
        rows = [[*row, number(gain)] for row, gain in zip(rows, shown_gains, strict=True)]
    unit = unit_of(fitted.method)
    picture = inline_svg(
        lambda: FeaturesDisplay(features=shown, unit=unit).plot(),
        "features-picture",
        "Features that speak for each class most",
        "Bars are as long as weights are large; the table has the same numbers.",
    )
    numbers = [False, False, True, True][: len(head)]
    table = html_table(head, rows, f"Up to {SHOWN} features of each class, the largest weight first", numbers=numbers)
    return {"features_note": note, "features_picture": picture, "features_table": table}


# A slider over k, whose contents are one compact JSON value; a name stands in it once, as supports share most of theirs

MOST_KS = 40
MOST_LISTED = 200  # features of one k
MOST_OF_A_CLASS = 20
MOST_CLASSES_OF_K = 50
MOST_BYTES_OF_JSON = 500_000


def slider_section(
    path: Path | None, k: int, validated: CrossValidation | None, alpha: float | None, engine: Engine | None
) -> dict[str, Any]:
    """The slider over the k of a path, with its picture and table.

    Parameters
    ----------
    path
        Of any number of k; about forty of them are shown.
    k
        Of the model: the slider starts there, or at the nearest.
    validated
        Cross-validated scores of some of the k.
    alpha
        Of the model, if it smooths: the validated smoothing to show.
    engine
        Where a pass for the weights runs, if one is needed.
    """
    if path is None:
        return {"slider": None}
    own = np.flatnonzero(path.ks == k)
    at = np.unique(np.concatenate([path.sample(MOST_KS - len(own)), own]))
    ks = path.ks[at].tolist()
    found = tops_of_path(path, ks, max(1, min(MOST_OF_A_CLASS, MOST_LISTED // len(path.classes))), engine)
    tops = list(map(_names_of(path), ks)) if found is None else found
    steps = [
        _step(record, dict(list(top.items())[:MOST_CLASSES_OF_K]), _accuracy(validated, record["k"], alpha))
        for record, top in zip(path.records(at), tops, strict=True)
    ]
    start = int(np.abs(np.log(path.ks[at] + 1) - np.log(k + 1)).argmin())
    listed = MOST_OF_A_CLASS
    while len((text := _slider_json(steps, start, listed)).encode()) > MOST_BYTES_OF_JSON and listed > 1:
        listed //= 2
    head = list(dict.fromkeys(name for step in steps for name in step["facts"]))
    rows = [[f"{step['k']:,}", *(step["facts"].get(name, "-") for name in head)] for step in steps]
    return {
        "slider": {"steps": steps, "start": start, "weighted": found is not None},
        "slider_start": [
            [_short(label), [(_short(name), "" if np.isnan(weight) else signed(weight)) for name, weight in top]]
            for label, top in steps[start]["tops"].items()
        ],
        "slider_json": text,
        "path_picture": inline_svg(
            lambda: PathDisplay.from_path(path, k if k in path.ks else None),
            "path-picture",
            "Gain of each number of features",
            "Gains and their bounds over k, above the gaps between them; the table has the numbers.",
        ),
        "path_table": html_table(["k", *head], rows, "What each k gains", numbers=[True] * (1 + len(head))),
    }


def _names_of(path: Path) -> Any:
    """A function from k to names alone, for a path whose data are not at hand."""

    def names(k: int) -> Tops:
        support = path.support(k)[:MOST_LISTED]
        found = path.named.names(support) or [f"x{i}" for i in support]
        return {"all classes": [(name, float("nan")) for name in found]}

    return names


def _step(record: dict[str, Any], tops: Tops, accuracy: tuple[float, float] | None) -> dict[str, Any]:
    """One k: facts for the table, all of it in a sentence, and features."""
    value, bound = number(record["value"]), number(record["bound"])
    sure = "certified" if record["certified"] else "close" if record["close"] else "no"
    facts = {
        "gain": value,
        "no choice gains more than": bound,
        "gap": number(record["gap"]),
        "certified": {"certified": "yes", "close": "close, within a millionth", "no": "no"}[sure],
    }
    said = f"{several(record['k'], 'feature gains', 'features gain')} {value}; no choice of so many gains more than "
    said += (
        bound + {"certified": ": certified, the best there is", "close": ", within a millionth of it", "no": ""}[sure]
    )
    if accuracy is not None:
        mean, error = accuracy
        facts["cross-validated accuracy"] = f"{mean:.4f} ± {error:.4f}"
        said += f". Accuracy in cross-validation: {mean:.1%}, with a standard error of {error:.1%}"
    return {"k": record["k"], "facts": facts, "said": f"{said}.", "tops": tops}


def _accuracy(validated: CrossValidation | None, k: int, alpha: float | None) -> tuple[float, float] | None:
    """Mean over folds and its standard error; None where this k was not validated."""
    if validated is None or k not in validated.ks:
        return None
    place = int(np.searchsorted(validated.ks, k))
    mean = validated.mean()
    row = validated.alphas.index(alpha) if alpha in validated.alphas else int(mean[:, place].argmax())
    return float(mean[row, place]), float(validated.standard_error()[row, place])


def _slider_json(steps: Sequence[dict[str, Any]], start: int, listed: int) -> str:
    """The slider as JSON in which no text ends the script element that it stands in."""
    names: dict[str, int] = {}

    def entry(name: str, weight: float) -> list[Any]:
        """The number of a name, and where the weight is known its text, and a number for its bar."""
        known = [] if np.isnan(weight) else [signed(weight), round(weight, 3) if np.isfinite(weight) else 1e9]
        return [names.setdefault(_short(name), len(names)), *known]

    listed_steps = [
        {
            "k": f"{step['k']:,}",
            "said": step["said"],
            "tops": [[entry(*pair) for pair in top[:listed]] for top in step["tops"].values()],
        }
        for step in steps
    ]
    labels = dict.fromkeys(str(label) for step in steps for label in step["tops"])
    value = {"classes": list(map(_short, labels)), "names": list(names), "steps": listed_steps, "start": start}
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


# Test data

MOST_CLASSES_IN_TABLES = 100
MOST_DRAWN = 30  # classes in pictures of confusion
MOST_IN_CONFUSION = 20  # classes in a table of it
MOST_BYTES = 900_000  # of all documents together
LENGTHS = (4000, 1500, 500, 150, 0)  # letters of a text, of which the first that fits is taken
FEATURES_OF_A_DOCUMENT = 8


def judged_section(found: Evaluation, explanation: Explanation | None) -> dict[str, Any]:
    """An evaluation with the hardest documents; where these are not explained they are only numbered."""
    hardest = found.hardest
    wrong, unsure = ((), ()) if hardest is None else (hardest.wrong, hardest.unsure)
    room = MOST_BYTES // max(1, len(wrong) + len(unsure))
    low, high = found.interval
    notes = []
    if found.left_out:
        notes.append(f"{several(found.left_out, 'document', 'documents')} could not be read and were left out.")
    if len(found.labels) > MOST_IN_CONFUSION:
        notes.append(f"There are {len(found.labels):,} classes, too many for a table of which is taken for which.")
    return {
        "headline": (
            f"{found.accuracy:.1%} of {several(found.n, 'document', 'documents')} are given their class (95 % between "
            f"{low:.1%} and {high:.1%}). Balanced accuracy, the mean over the classes: {found.balanced_accuracy:.1%}."
        ),
        "tables": list(_tables(found)),
        "pictures": list(_pictures(found)),
        "wrong": [_document(one, explanation, room) for one in wrong],
        "unsure": [_document(one, explanation, room) for one in unsure],
        "notes": notes,
    }


def _tables(found: Evaluation) -> Iterator[str]:
    def digits(value: float) -> str:
        return "-" if np.isnan(value) else f"{value:.4f}"

    n, labels = found.confusion.sum(axis=1), list(map(_short, found.labels.tolist()))
    largest = np.sort(np.argsort(-n, kind="stable")[:MOST_CLASSES_IN_TABLES]).tolist()
    rows = [[labels[i], f"{n[i]:,}", digits(found.precision[i]), digits(found.recall[i])] for i in largest]
    of = "" if len(rows) == len(labels) else f" ({len(rows)} of {len(labels):,}, those with most documents)"
    yield html_table(["class", "documents", "precision", "recall"], rows, f"Each class{of}")
    if len(labels) <= MOST_IN_CONFUSION and len(found.classes) <= MOST_IN_CONFUSION:
        head = ["true class", *map(_short, found.classes.tolist())]
        cells = zip(labels, found.confusion.tolist(), strict=True)
        rows = [[label, *(f"{cell:,}" for cell in row)] for label, row in cells]
        yield html_table(head, rows, "Documents of a class (rows) by what was predicted (columns)")
    if found.confidence is None:
        return
    told = found.confidence.to_json()
    at = [[f"{float(least):.0%}", f"{share:.1%}"] for least, share in told["coverage"]["at_accuracy"].items()]
    yield html_table(["accuracy", "documents covered"], at, "How many documents, the surest first, at what accuracy")
    bins = [
        [f"{b['from']:.1f} to {b['to']:.1f}", f"{b['n']:,}", f"{b['posterior']:.4f}", f"{b['accuracy']:.4f}"]
        for b in told["reliability"]
    ]
    off = f"Are probabilities what they say? Off by {told['expected_calibration_error']:.4f} on average"
    yield html_table(["probability", "documents", "its mean", "accuracy"], bins, off)


def _pictures(found: Evaluation) -> Iterator[str]:
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


def _document(one: HardDocument, explanation: Explanation | None, room: int) -> str:
    """A document with its words marked, or with its features alone; no longer than there is room."""
    if explanation is None or one.number not in explanation.documents:
        said = f"document {one.number:,}, of class {_short(one.label)}"
        return f'<article class="nfs-explained"><h3>{escaped(said)}</h3></article>'
    document = explanation.of(one.number)
    document = replace(
        document,
        sides=tuple(map(_short, document.sides)),  # type: ignore[arg-type]
        parts=tuple(Part(_short(p.feature), p.value, p.contribution) for p in document.parts),
        compared=_short(document.compared, 3 * LONGEST),
        predicted=_short(document.predicted),
    )
    for length in LENGTHS:
        inside = explanation_html([_cut(document, length)], FEATURES_OF_A_DOCUMENT)
        if len(inside.encode()) <= room:
            break
    return f'<article><p class="truth">{escaped(f"true class: {_short(one.label)}")}</p>\n{inside}</article>'


def _cut(document: ExplainedDocument, length: int) -> ExplainedDocument:
    """The document with the beginnings of its texts."""

    def beginning(text: MarkedText) -> MarkedText:
        if len(text.text) <= length:
            return text
        left_out = f"… and {len(text.text) - length:,} more letters"
        marks = tuple(mark for mark in text.marks if mark.stop <= length)
        return replace(text, text=f"{text.text[:length]} {left_out}", marks=marks)

    return replace(document, texts=tuple(map(beginning, document.texts)))


# The origin of the model

MOST_PASSES = 40  # rows of the table


def origin_section(model: Any) -> dict[str, str]:
    """Data, settings and versions of a fit, those that are known, and its passes."""
    provenance = model.provenance_
    facts = [(name, _short(value, 300)) for name, value in _facts(model, provenance)]
    plan, reused = provenance.get("plan"), bool(provenance.get("reused"))
    passes = provenance.get("passes") or [
        {"name": name, "seconds": seconds, "share": 0.0 if reused else 1.0, "plan": plan}
        for name, seconds in (provenance.get("seconds") or {}).items()
    ]
    rows = []
    for one in passes[:MOST_PASSES]:
        plan = one.get("plan") or {}
        tasks, peak = plan.get("tasks"), plan.get("peak_nbytes")
        told = ["-" if tasks is None else f"{tasks:,}", "-" if peak is None else format_bytes(peak)]
        rows.append([_short(one["name"]), format_seconds(one["seconds"]), f"{one['share']:.3g}", *told])
    head = ["pass", "time", "reads of the data", "tasks", "memory of a process, planned"]
    return {
        "origin_table": facts_list(facts, "Where the model comes from"),
        "passes_table": html_table(head, rows, "Passes over the data") if rows else "",
    }


def _facts(model: Any, provenance: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    documents = model.class_count_.sum()
    yield "documents", f"{provenance.get('rows', 0):,}"
    if documents != provenance.get("rows"):
        yield "their weights together", f"{documents:,.6g}"
    yield "features of the data", f"{model.model_.n_features:,}"
    if provenance.get("fingerprint"):
        yield "fingerprint of the data", str(provenance["fingerprint"])
    for what, column in (provenance.get("columns") or {}).items():
        if column:
            yield f"column of the {what}", str(column)
    for name, value in parameters_of(model).items():
        if name != "engine" and value is not None:
            yield f"setting {name}", str(value)
    for name, version in (provenance.get("versions") or {}).items():
        yield f"version of {name}", str(version)
    if "reused" in provenance:
        yield "counts", "kept from before, no document was read" if provenance["reused"] else "from the documents"
    if isinstance(seconds := provenance.get("seconds"), Mapping):
        yield "time of all passes", format_seconds(sum(seconds.values()))
    if "reads" in provenance:
        yield "reads of the data", f"{provenance['reads']:.3g}"
