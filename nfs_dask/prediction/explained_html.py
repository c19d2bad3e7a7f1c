"""Explained documents as HTML that stands alone: fragments, and the one style that all of them share.

What speaks for the first side is blue above a solid line, what speaks for the other one orange above a dashed line.
Colors are veils over the page's own background and below its own letters, so they read on light and dark pages. They
come in a few strengths, so that no element needs a style of its own, which strict pages do not allow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from nfs_dask.markup import escaped
from nfs_dask.prediction.explained_document import ExplainedDocument, MarkedText, overlaid
from nfs_dask.prediction.explained_text import HEAD, headline, left_out, signed, sum_in_words

VEILS = 8  # strengths of color

STYLE = (
    """\
.nfs-explained { font-family: system-ui, sans-serif; line-height: 1.5; max-width: 60em; margin: 0 0 2em }
.nfs-explained h3 { font-size: 1.1em; margin: 0 }
.nfs-explained p { margin: .2em 0; opacity: .8 }
.nfs-explained blockquote { margin: .6em 0; padding: .4em .8em; border-left: 3px solid rgba(128, 128, 128, .4);
  white-space: pre-wrap; overflow-wrap: anywhere; max-height: 30em; overflow-y: auto }
.nfs-explained mark { color: inherit; padding: .05em 0; border-radius: .15em }
.nfs-explained mark.nfs-for { background: rgba(0, 114, 218, var(--nfs-veil, .3)); border-bottom: 2px solid #1f83e0 }
.nfs-explained mark.nfs-against { background: rgba(230, 120, 0, var(--nfs-veil, .3));
  border-bottom: 2px dashed #dd7a10 }
.nfs-explained table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .95em }
.nfs-explained th, .nfs-explained td { padding: .1em .8em .1em 0; text-align: left; vertical-align: top }
.nfs-explained td { overflow-wrap: anywhere }
.nfs-explained th.nfs-number, .nfs-explained td.nfs-number { text-align: right; white-space: nowrap }
.nfs-explained .nfs-bar { display: inline-block; height: .7em; vertical-align: middle }
.nfs-explained .nfs-bar.nfs-for { background: #1f83e0 }
.nfs-explained .nfs-bar.nfs-against { border: 1px dashed #dd7a10; background: rgba(230, 120, 0, .45);
  box-sizing: border-box }
"""
    + "\n".join(
        f".nfs-explained .nfs-veil-{i} {{ --nfs-veil: {0.12 + 0.38 * i / VEILS:.3f} }}" for i in range(VEILS + 1)
    )
    + "\n"
)


def explanation_html(documents: Iterable[ExplainedDocument], n: int = 10) -> str:
    """Some documents, each with its n features that contribute most. `STYLE` has to be on the page, once."""
    return "\n".join(_document(document, n) for document in documents)


def explanation_page(documents: Iterable[ExplainedDocument], title: str, n: int = 10, note: str = "") -> str:
    """A whole page, which needs nothing besides."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escaped(title)}</title>\n<style>\n"
        ":root { color-scheme: light dark }\nbody { margin: 2em auto; max-width: 60em; padding: 0 1em }\n"
        "h1 { font: 600 1.3em system-ui, sans-serif }\n"
        f"{STYLE}</style>\n</head>\n<body>\n<h1>{escaped(title)}</h1>\n"
        f"{explanation_html(documents, n)}\n{f'<p>{escaped(note)}</p>' if note else ''}\n</body>\n</html>\n"
    )


def marked_html(document: ExplainedDocument) -> str:
    """The texts of a document with the stretches marked that contribute."""
    weights = document.occurrences()
    return "\n".join(_text(document, text, weights) for text in document.texts)


def _document(document: ExplainedDocument, n: int) -> str:
    first, second = map(escaped, document.sides)
    marked = any(text.marks for text in document.texts)
    legend = (
        f'<p><mark class="nfs-for">solid line</mark>: for {first}; '
        f'<mark class="nfs-against">dashed line</mark>: for {second}</p>'
    )
    parts = [
        f"<h3>{escaped(headline(document))}</h3>",
        f"<p>{escaped(sum_in_words(document))}</p>",
        marked_html(document),
        legend if marked else "",
        _table(document, n),
    ]
    return "\n".join(['<div class="nfs-explained">', *filter(None, parts), "</div>"])


def _text(document: ExplainedDocument, text: MarkedText, weights: Sequence[float]) -> str:
    marked = {abs(weights[mark.part]) for other in document.texts for mark in other.marks}
    largest = max(filter(math.isfinite, marked), default=0.0)
    stretches = [_stretch(document, stretch, over, weights, largest) for stretch, over in overlaid(text)]
    region = f"<p>{escaped(text.region)}</p>" if len(document.texts) > 1 and text.region else ""
    why = f"<p>{escaped(text.unmarked)}; the table has what it has</p>" if text.unmarked else ""
    return f"{region}<blockquote>{''.join(stretches)}</blockquote>{why}"


def _stretch(
    document: ExplainedDocument, stretch: str, over: Sequence[int], weights: Sequence[float], largest: float
) -> str:
    """A stretch of a text; the sum of what its features contribute there says how strong its color is."""
    if not over:
        return escaped(stretch)
    weight = sum(weights[part] for part in over)
    said = "\n".join(f"{document.parts[part].feature} {signed(weights[part])}" for part in over)
    veil = round(VEILS * (min(1.0, abs(weight) / largest) if largest else 1.0))
    side = "nfs-against" if weight < 0 else "nfs-for"
    return f'<mark class="{side} nfs-veil-{veil}" title="{escaped(said)}">{escaped(stretch)}</mark>'


def _table(document: ExplainedDocument, n: int) -> str:
    if not document.telling:
        return ""
    shown = document.telling[:n]
    largest = max((abs(part.contribution) for part in shown if math.isfinite(part.contribution)), default=0.0)
    numbers = "".join(f'<th scope="col" class="nfs-number">{name}</th>' for name in HEAD[1:3])
    head = f'<tr><th scope="col">{HEAD[0]}</th>{numbers}'
    rows = "".join(
        f"<tr><td>{escaped(part.feature)}</td>"
        f'<td class="nfs-number">{part.value:.4g}</td><td class="nfs-number">{signed(part.contribution)}</td>'
        f"<td>{escaped(document.side_of(part.contribution))}</td><td>{_bar(part.contribution, largest)}</td></tr>"
        for part in shown
    )
    said = left_out(document, n)
    more = "" if said is None else f"<p>{escaped(said)}</p>"
    return (
        f"<table><thead>{head}<th scope='col'>{HEAD[3]}</th><td></td></tr></thead><tbody>{rows}</tbody></table>{more}"
    )


def _bar(contribution: float, largest: float) -> str:
    share = min(1.0, abs(contribution) / largest) if largest else float(contribution != 0)
    side = "nfs-against" if contribution < 0 else "nfs-for"
    return f'<svg class="nfs-bar {side}" width="{8 * share:.2f}em" height=".7em" aria-hidden="true"></svg>'
