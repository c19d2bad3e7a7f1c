"""``nfs-dask info``: what is in a dataset, a model or a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from nfs_dask.cli import options
from nfs_dask.cli.ingest import settings_in_words
from nfs_dask.cli.output import (
    answer,
    certificate,
    show,
    show_chosen,
    show_line,
    show_lines,
    show_table,
    top_features_table,
)
from nfs_dask.cli.runs import show_run
from nfs_dask.registry import METHODS
from nfs_dask.units import format_bytes, several

if TYPE_CHECKING:
    from nfs_dask.summary import ModelSummary, ModelTexts, StoreTexts, Summary

_MOST_EXAMPLES = 5  # of documents left out
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
_DROPPED_TERMS = {
    "too_rare": "too rare",
    "too_frequent": "too frequent",
    "beyond_max_features": "beyond the most frequent",
    "sharing_a_column": "share a column with others",
}


@click.command()
@click.argument("place", metavar="STORE|MODEL|RUN")
@click.option("--label-column", metavar="NAME", help="The column of a dataset that holds the labels.")
@click.option("--verify", is_flag=True, help="Read all of a dataset, and compare it with the digests beside it.")
@options.all_features
@options.json_output
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
    from nfs_dask.engine.run_status import is_run, read_run
    from nfs_dask.store.model_files import is_model

    a_model = is_model(place)
    if all_features and not a_model:
        raise click.UsageError(f"--all-features is for models, and {place} is none; leave it out")
    if not a_model and not is_run(place):
        _answer_dataset(place, label_column, verify)
        return
    if verify or label_column is not None:
        raise click.UsageError(f"--verify and --label-column are for datasets, and {place} is none; leave them out")
    if a_model:
        _answer_model(place, all_features)
        return
    run = read_run(place)
    if answer({"type": "run", **run.to_json()}):
        show_run(run)


def _answer_dataset(place: str, label_column: str | None, verify: bool) -> None:
    from nfs_dask.dataset import open_dataset
    from nfs_dask.summary import summarize

    summary = summarize(open_dataset(place, labels=label_column))
    values: dict[str, Any] = {"type": "dataset", **summary.to_json()}
    if verify:
        from nfs_dask.store.receipts import verify as verify_store

        verify_store(summary.location)
        values["verified"] = True
    if answer(values):
        _show_dataset(summary, verify)


def _answer_model(place: str, all_features: bool) -> None:
    from nfs_dask.store.model_files import read_model
    from nfs_dask.summary import chosen_features, summarize_model

    summary = summarize_model(place)
    values = {"type": "model", **summary.to_json()}
    if all_features:
        model = read_model(place)[0]
        values["chosen"] = chosen_features(model, model.feature_names)
    if answer(values):
        _show_model(summary, values.get("chosen"))


def _show_dataset(summary: Summary, verified: bool) -> None:
    per_row = f"{(summary.entries or 0) / max(1, summary.rows):,.1f} a row"
    lines = [
        ("store", summary.location),
        ("rows", f"{summary.rows:,}" + (", weighted" if summary.weighted else "")),
        ("features", f"{summary.features:,}" + (", with names" if summary.names else "")),
        ("entries", "unknown" if summary.entries is None else f"{summary.entries:,} ({per_row})"),
        ("values", summary.kind or "unknown before they are read"),
        ("size", format_bytes(summary.nbytes)),
        ("fingerprint", summary.fingerprint or "none"),
        ("generation", "not a store of ours" if summary.generation is None else str(summary.generation)),
        *([("columns", ", ".join(summary.columns))] if summary.columns else []),
        ("statistics", "; ".join(map(_statistic_in_words, summary.statistics)) or "none kept"),
        *(_lines_of_texts(summary.text) if summary.text is not None else []),
        *([("digests", "all agree")] if verified else []),
    ]
    show_lines(lines)
    if summary.classes is None:
        show_line("classes      no labels")
        return
    counts: list[Any] = ["?"] * len(summary.classes) if summary.class_rows is None else [*summary.class_rows]
    rows = [("(no label)", summary.unlabelled)] if summary.unlabelled else []
    rows += zip(map(str, summary.classes), counts, strict=True)
    show_table(several(len(summary.classes), "class", "classes"), ["label", "rows"], rows)


def _statistic_in_words(statistic: dict[str, Any]) -> str:
    name, n = str(statistic.get("statistic")), statistic.get("n_classes")
    said = _STATISTICS.get(name, name.replace("_", " "))
    classes = f" of {several(n, 'class', 'classes')}" if isinstance(n, int) else ""
    more = [key.removeprefix("with_") for key, value in statistic.items() if key.startswith("with_") and value is True]
    return f"{said}{classes}" + (f" ({', '.join(more)})" if more else "")


def _lines_of_texts(text: StoreTexts) -> list[tuple[str, str]]:
    """Lines about the texts of a store: their settings, the documents of the ingest, and the fate of the terms."""
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
    found = [f"{report['terms']:,} found"] if "terms" in report else []
    kept = f"{text.terms:,} {'columns of hashes' if text.settings.hashed is not None else 'kept'}"
    dropped = [f"{report[name]:,} {words}" for name, words in _DROPPED_TERMS.items() if report.get(name)]
    return [*lines, ("terms", ", ".join([*found, kept, *dropped]))]


def _show_model(summary: ModelSummary, chosen: list[dict[str, Any]] | None) -> None:
    sure = certificate(summary.k, summary.features, summary.certified, summary.gap, summary.measure)
    known = METHODS[summary.method].parameters  # others the method says, or does not use
    given = {name: value for name, value in summary.parameters.items() if value is not None and name in known}
    lines = [
        ("model", summary.location),
        ("method", f"{summary.method}, {summary.k:,} of {summary.features:,} features"),
        ("objective", f"{summary.measure} {summary.objective:,.3f}{sure}"),
        *([] if summary.slopes is None else [("theta", _listed(summary.slopes))]),
        ("parameters", _listed(given)),
        *_lines_of_reading(summary.text, summary.features),
        ("size", format_bytes(summary.nbytes)),
    ]
    # A file may leave out where its model comes from
    origin = summary.provenance
    for name, value in (("documents", origin.get("rows")), ("data", origin.get("fingerprint"))):
        if value is not None:
            lines.append((name, f"{value:,}" if isinstance(value, int) else str(value)))
    if isinstance(versions := origin.get("versions"), dict):
        lines.append(("versions", _listed(versions)))
    if isinstance(seconds := origin.get("seconds"), dict) and seconds:
        lines.append(("seconds", _listed(seconds)))
    show_lines(lines)
    counts = [int(n) if n == int(n) else n for n in summary.class_count]
    rows = list(zip(map(str, summary.classes), counts, strict=True))
    show_table(several(len(rows), "class", "classes"), ["label", "documents"], rows)
    title, columns, tops = top_features_table(summary.top_features)
    if tops:
        show_table(title, columns, tops)
    if chosen is not None:
        show()
        show_chosen(chosen)


def _lines_of_reading(text: ModelTexts | None, features: int) -> list[tuple[str, str]]:
    """The texts that a model reads, and what it needs for that."""
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


def _listed(values: dict[str, Any]) -> str:
    return ", ".join(
        f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}" for name, value in values.items()
    )
