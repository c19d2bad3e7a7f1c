"""Small pieces of HTML that stand alone: for notebooks, explained documents and reports. Nothing in them is fetched.

They carry no ``style`` attributes, so that they also work on pages that allow none.
"""

from __future__ import annotations

import html
from collections.abc import Sequence

LONGEST = 200  # letters of a name in a table


def escaped(text: object) -> str:
    r"""Text as HTML shows it, also between quotes. What no page may hold, such as NUL, is a mark of its own.

    >>> escaped("<b>'&'\0")
    '&lt;b&gt;&#x27;&amp;&#x27;�'
    """
    return html.escape(fit_for_page(str(text)))


def fit_for_page(text: str) -> str:
    """The same text without characters that no page may hold."""
    return "".join(c if _is_shown(c) else "\ufffd" for c in text)


def shortened_name(name: object, longest: int = LONGEST) -> str:
    """A name, of a long one both ends.

    >>> shortened_name("a name that goes on and on", 11)
    'a nam…nd on'
    """
    text = fit_for_page(str(name))
    half = (longest - 1) // 2
    return text if len(text) <= longest else f"{text[:half]}…{text[-half:]}"


def html_table(
    head: Sequence[object],
    rows: Sequence[Sequence[object]],
    caption: object = "",
    *,
    numbers: Sequence[bool] | None = None,
) -> str:
    """A table with a caption, whose first cells of rows name these.

    Parameters
    ----------
    head
        One cell for each column.
    rows
        As many cells each; all are escaped.
    caption
        What the table is.
    numbers
        Which columns are numbers; all but the first if not given.
    """
    right = [i > 0 for i in range(len(head))] if numbers is None else numbers
    classes = [' class="nfs-number"' if one else "" for one in right]
    top = "".join(f'<th scope="col"{kind}>{escaped(cell)}</th>' for kind, cell in zip(classes, head, strict=True))
    body = "\n".join(f"<tr>{_cells(row, classes)}</tr>" for row in rows)
    said = f"<caption>{escaped(caption)}</caption>" if str(caption) else ""
    return f"<table>{said}<thead><tr>{top}</tr></thead>\n<tbody>{body}</tbody></table>"


def fragment(*parts: str) -> str:
    """Pieces together, as a notebook shows them: numbers to the right, whatever its own style is."""
    inside = "\n".join(parts)
    style = (
        ".nfs-fragment th, .nfs-fragment td, .nfs-fragment caption { text-align: left; vertical-align: top } "
        ".nfs-fragment .nfs-number { text-align: right }"
    )
    return f'<style>{style}</style>\n<div class="nfs-fragment">\n{inside}\n</div>'


def facts_list(facts: Sequence[tuple[object, object]], caption: object = "") -> str:
    """What is known of something, as a table of names and values."""
    return html_table(["", ""], facts, caption, numbers=[False, False]).replace(
        '<thead><tr><th scope="col"></th><th scope="col"></th></tr></thead>\n', ""
    )


def _cells(row: Sequence[object], classes: Sequence[str]) -> str:
    first, *rest = zip(row, classes, strict=True)
    said = "".join(f"<td{kind}>{escaped(cell)}</td>" for cell, kind in rest)
    return f'<th scope="row"{first[1]}>{escaped(first[0])}</th>{said}'


def _is_shown(c: str) -> bool:
    """Whether a page may hold a character: no controls, no halves of surrogate pairs."""
    return (c >= " " or c in "\t\n\r") and not ("\x7f" <= c <= "\x9f" or "\ud800" <= c <= "\udfff")
