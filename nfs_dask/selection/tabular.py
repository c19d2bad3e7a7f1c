"""Results that are tables: as text, and as HTML in notebooks."""

from __future__ import annotations

import html
from abc import ABC, abstractmethod


def several(n: float, one: str, many: str) -> str:
    """A number of things in words.

    >>> several(1, "value", "values"), several(2.05, "read", "reads"), several(1200, "row", "rows")
    ('1 value', '2.05 reads', '1,200 rows')
    """
    number = f"{n:,}" if isinstance(n, int) else f"{n:g}"
    return f"{number} {one if n == 1 else many}"


class Tabular(ABC):
    """Something that shows itself as a headline above a table."""

    @property
    @abstractmethod
    def headline(self) -> str:
        """What this is, in one line."""

    @abstractmethod
    def cells(self) -> list[list[str]]:
        """The table that is printed: its head, and rows of texts."""

    def __str__(self) -> str:
        cells = self.cells()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ["  ".join(f"{cell:>{w}}" for cell, w in zip(row, widths, strict=True)) for row in cells]
        return "\n".join([self.headline, *lines])

    def _repr_html_(self) -> str:
        head, *rows = self.cells()
        top = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        caption = html.escape(self.headline)
        return f"<table><caption>{caption}</caption><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
