"""``nfs-dask ingest --check``: what an ingest would do, from its arguments and the first documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nfs_dask.cli.output import answer, show_line
from nfs_dask.cli.texts import settings_in_words
from nfs_dask.documents.open_documents import head_of
from nfs_dask.ingestion.ingest import MatrixIngest
from nfs_dask.ingestion.ingest_report import Seen
from nfs_dask.ingestion.text_ingest import TextIngest
from nfs_dask.sources.conditions import text_of
from nfs_dask.text.counting import TermCounter
from nfs_dask.text.ordering import order
from nfs_dask.units import format_bytes, several

if TYPE_CHECKING:
    from rich.console import Console

MOST_SHOWN = 20  # labels and terms


def answer_check(asked: TextIngest | MatrixIngest) -> None:
    """Say what would be done."""
    values = _of_texts(asked) if isinstance(asked, TextIngest) else _of_matrix(asked)
    values = {"store": asked.store.location, "append": asked.append, "overwrite": asked.overwrite, **values}
    answer(values, lambda console: _show(values, console))


def _of_matrix(asked: MatrixIngest) -> dict[str, Any]:
    source = asked.data
    return {"rows": source.n_rows, "features": source.n_features, "classes": source.classes}


def _of_texts(asked: TextIngest) -> dict[str, Any]:
    """How texts would be read, and what is found in the first of them; nothing of the vocabulary is sure yet."""
    documents, seen = asked.data, Seen()
    values: dict[str, Any] = {
        "nbytes": documents.nbytes,
        "columns": documents.columns.to_json(),
        "terms": settings_in_words(asked.terms.settings),
        "head": None,
    }
    labels: set[str] | None = None
    counter = TermCounter(asked.terms.settings, tokenizer=asked.terms.tokenizer)
    for batch in head_of(documents):
        seen.note(batch)
        counter.add(batch.document_by_document())
        if batch.labels is not None:
            labels = (labels or set()) | set(map(text_of, batch.labels))
    if not seen.seen:
        return values
    found = order(counter.finish()).terms
    values["head"] = {
        **seen.to_json(),
        "chosen": seen.chosen,
        "labels": None if labels is None else sorted(labels),
        "n_terms": len(found),
        "terms": found.part(0, min(len(found), MOST_SHOWN)).to_list(),
    }
    return values


def _show(values: dict[str, Any], console: Console) -> None:
    done = "appended to" if values["append"] else "replaced in" if values["overwrite"] else "written to"
    lines = [f"would be {done} {values['store']}; nothing was written"]
    lines += _lines_of_texts(values) if "terms" in values else _lines_of_matrix(values)
    for line in lines:
        show_line(line, console)


def _lines_of_matrix(values: dict[str, Any]) -> list[str]:
    classes = "no labels" if values["classes"] is None else several(len(values["classes"]), "class", "classes")
    return [f"a matrix of {values['rows']:,} rows and {values['features']:,} features, {classes}"]


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
    if head["labels"] is not None:
        lines.append(f"labels among them: {_some(head['labels'])}")
    lines.append(f"{head['n_terms']:,} terms in them, such as {', '.join(head['terms'][:MOST_SHOWN])}")
    return lines


def _some(values: list[str]) -> str:
    more = f" and {len(values) - MOST_SHOWN:,} more" if len(values) > MOST_SHOWN else ""
    return ", ".join(values[:MOST_SHOWN]) + more
