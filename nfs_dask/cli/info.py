"""``nfs-dask info``: what is in a dataset, a model or a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from nfs_dask.cli.output import (
    all_features_option,
    answer,
    certificate,
    json_option,
    show_chosen,
    show_line,
    show_lines,
    show_table,
)
from nfs_dask.cli.shown_runs import show_run
from nfs_dask.cli.texts import settings_in_words
from nfs_dask.registry import METHODS
from nfs_dask.units import format_bytes, several

if TYPE_CHECKING:
    from rich.console import Console

    from nfs_dask.summary import ModelSummary, ModelTexts, StoreTexts, Summary

_MOST_EXAMPLES = 5  # of documents left out


@click.command()
@click.argument("place", metavar="STORE|MODEL|RUN")
@click.option("--label-column", metavar="NAME", help="The column of a dataset that holds the labels.")
@click.option("--verify", is_flag=True, help="Read all of a dataset, and compare it with the digests beside it.")
@all_features_option
@json_option
def info(place: str, label_column: str | None, verify: bool, all_features: bool) -> None:
    """What is in a dataset, a saved model, or a run folder.

    Of a dataset: rows, features, classes, size, and statistics that were kept; of one made of texts also how they were
    read, and what was left out. Of a model: method, certificate, where it comes from, whether it reads raw text, and
    the features that say most. Of a run: its passes, and how far they have got; ``nfs-dask status`` says more of one
    that is at work.

    With --verify every byte of a dataset is read; damage is named object by object, and the exit code is 3.

    \b
    nfs-dask info mail.zarr
    nfs-dask info s3://bucket/mail.zarr --verify
    nfs-dask info spam.model --json
    """
    from nfs_dask.engine.run_status import is_run
    from nfs_dask.store.model_files import is_model

    if all_features and not is_model(place):
        raise click.UsageError(f"--all-features is for models, and {place} is none; leave it out")
    if not is_model(place) and not is_run(place):
        _tell_dataset(place, label_column, verify)
        return
    if verify or label_column is not None:
        raise click.UsageError(f"--verify and --label-column are for datasets, and {place} is none; leave them out")
    if is_model(place):
        _tell_model(place, all_features)
    else:
        _tell_run(place)


def _tell_dataset(place: str, label_column: str | None, verify: bool) -> None:
    from nfs_dask.dataset import open_dataset
    from nfs_dask.summary import summarize

    summary = summarize(open_dataset(place, labels=label_column))
    values: dict[str, Any] = {"type": "dataset", **summary.to_json()}
    if verify:
        from nfs_dask.store.receipts import verify as verify_store

        verify_store(summary.location)
        values["verified"] = True
    answer(values, lambda console: _show_dataset(summary, verify, console))


def _tell_model(place: str, all_features: bool) -> None:
    from nfs_dask.store.model_files import read_model
    from nfs_dask.summary import chosen_features, summarize_model

    summary = summarize_model(place)
    values = {"type": "model", **summary.to_json()}
    if all_features:
        model = read_model(place)[0]
        values["chosen"] = chosen_features(model, model.feature_names)
    answer(values, lambda console: _show_model(summary, values.get("chosen"), console))


def _tell_run(place: str) -> None:
    from nfs_dask.engine.run_status import read_run

    run = read_run(place)
    answer({"type": "run", **run.to_json()}, lambda console: show_run(run, console))


def _show_dataset(summary: Summary, verified: bool, console: Console) -> None:
    lines = [
        ("store", summary.location),
        ("rows", f"{summary.rows:,}" + (", weighted" if summary.weighted else "")),
        ("features", f"{summary.features:,}" + (", with names" if summary.names else "")),
        ("entries", "unknown" if summary.entries is None else f"{summary.entries:,} ({_density(summary)})"),
        ("values", summary.kind or "unknown before they are read"),
        ("size", format_bytes(summary.nbytes)),
        ("fingerprint", summary.fingerprint or "none"),
        ("generation", "not a store of ours" if summary.generation is None else str(summary.generation)),
        *([("columns", ", ".join(summary.columns))] if summary.columns else []),
        ("statistics", "; ".join(map(_described, summary.statistics)) or "none kept"),
    ]
    if summary.text is not None:
        lines += _of_texts(summary.text)
    if verified:
        lines.append(("digests", "all agree"))
    show_lines(lines, console)
    _show_classes(summary, console)


def _of_texts(text: StoreTexts) -> list[tuple[str, str]]:
    """How the texts of a store were read, and what the ingest met."""
    from nfs_dask.ingestion.ingest_report import in_words

    lines = [("texts", settings_in_words(text.settings))]
    if text.regions:
        lines.append(("regions", ", ".join(text.regions)))
    report = text.report
    left_out = report.get("left_out") or {}
    seen = report.get("documents_seen", text.documents)
    reasons = f", {sum(left_out.values()):,} left out: {in_words(left_out)}" if left_out else ", none left out"
    empty = f"; {report['empty']:,} empty" if report.get("empty") else ""
    lines.append(("documents", f"{seen:,} seen{reasons}{empty}"))
    examples = report.get("examples", [])[:_MOST_EXAMPLES]
    lines += [("such as" if i == 0 else "", f"{one['where']}: {one['what']}") for i, one in enumerate(examples)]
    lines.append(("terms", _of_terms(text)))
    return lines


def _of_terms(text: StoreTexts) -> str:
    """What became of the terms that were found."""
    report, columns = text.report, "columns of hashes" if text.settings.hashed is not None else "kept"
    reasons = {
        "too_rare": "too rare",
        "too_frequent": "too frequent",
        "beyond_max_features": "beyond the most frequent",
        "sharing_a_column": "share a column with others",
    }
    dropped = [f"{report[name]:,} {words}" for name, words in reasons.items() if report.get(name)]
    found = f"{report['terms']:,} found, " if "terms" in report else ""
    return found + ", ".join([f"{text.terms:,} {columns}", *dropped])


def _show_classes(summary: Summary, console: Console) -> None:
    if summary.classes is None:
        show_line("classes      no labels", console)
        return
    counts: list[Any] = ["?"] * len(summary.classes) if summary.class_rows is None else [*summary.class_rows]
    rows = [("(no label)", summary.unlabelled)] if summary.unlabelled else []
    rows += zip(map(str, summary.classes), counts, strict=True)
    show_table(several(len(summary.classes), "class", "classes"), ["label", "rows"], rows, console)


def _density(summary: Summary) -> str:
    per_row = (summary.entries or 0) / max(1, summary.rows)
    return f"{per_row:,.1f} a row"


_STATISTICS = {
    "class_counts": "counts",
    "binary_counts": "counts of what is there",
    "class_moments": "means and variances",
    "class_medians": "medians",
    "gram": "products of features",
    "fit_sums": "sums of a fit",
    "collected_rows": "rows of some features",
    "held_out": "scores of cross-validation",
}


def _described(statistic: dict[str, Any]) -> str:
    """A kept statistic in words, with what was counted besides."""
    name = str(statistic.get("statistic"))
    said = _STATISTICS.get(name, name.replace("_", " "))
    n = statistic.get("n_classes")
    classes = f" of {several(n, 'class', 'classes')}" if isinstance(n, int) else ""
    more = [key.removeprefix("with_") for key, value in statistic.items() if key.startswith("with_") and value is True]
    return f"{said}{classes}" + (f" ({', '.join(more)})" if more else "")


def _show_model(summary: ModelSummary, chosen: list[dict[str, Any]] | None, console: Console) -> None:
    objective = f"{summary.measure} {summary.objective:,.3f}"
    objective += certificate(summary.k, summary.features, summary.certified, summary.gap, summary.measure)
    known = METHODS[summary.method].parameters  # others the method says, or does not use
    given = {name: value for name, value in summary.parameters.items() if value is not None and name in known}
    lines = [
        ("model", summary.location),
        ("method", f"{summary.method}, {summary.k:,} of {summary.features:,} features"),
        ("objective", objective),
        *([] if summary.slopes is None else [("theta", _listed(summary.slopes))]),
        ("parameters", _listed(given)),
        *_reading(summary.text, summary.features),
        ("size", format_bytes(summary.nbytes)),
        *_origin(summary.provenance),
    ]
    show_lines(lines, console)
    counts = [int(n) if n == int(n) else n for n in summary.class_count]
    rows = list(zip(map(str, summary.classes), counts, strict=True))
    show_table(several(len(rows), "class", "classes"), ["label", "documents"], rows, console)
    tops = [
        (label if i == 0 else "", name, f"{weight:+.3f}")
        for label, best in summary.top_features.items()
        for i, (name, weight) in enumerate(best)
    ]
    if tops:
        show_table("Features that speak for a class most", ["class", "feature", "weight"], tops, console)
    if chosen is not None:
        console.print()
        show_chosen(chosen, console)


def _reading(text: ModelTexts | None, features: int) -> list[tuple[str, str]]:
    """What a model reads, and what it needs for that."""
    if text is None:
        return [("reads", f"matrices of {features:,} features, no raw text")]
    lines = [("reads", f"raw text: {settings_in_words(text.settings)}")]
    if text.regions:
        lines.append(("regions", ", ".join(text.regions)))
    if text.looks_up_terms:
        lines.append(("vocabulary", f"all {text.terms:,} terms, as weights depend on the whole of a document"))
    if text.tokenizer is not None:
        lines.append(("needs", f"the tokenizer {text.tokenizer}, as in load_model(path, tokenizer=...)"))
    if text.settings.stem is not None:
        lines.append(("needs", f"PyStemmer {text.settings.stem_version}: pip install 'nfs-dask[languages]'"))
    return lines


def _origin(provenance: dict[str, Any]) -> list[tuple[str, str]]:
    """Where a model comes from; whatever of it a file does not say is left out."""
    versions, seconds = provenance.get("versions"), provenance.get("seconds")
    found = {
        "documents": provenance.get("rows"),
        "data": provenance.get("fingerprint"),
        "versions": _listed(versions) if isinstance(versions, dict) else None,
        "seconds": _listed(seconds) if isinstance(seconds, dict) and seconds else None,
    }
    return [
        (name, f"{value:,}" if isinstance(value, int) else str(value))
        for name, value in found.items()
        if value is not None
    ]


def _listed(values: dict[str, Any]) -> str:
    return ", ".join(
        f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}" for name, value in values.items()
    )
