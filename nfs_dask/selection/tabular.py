"""Results that are tables: as text, and as HTML in notebooks."""

from __future__ import annotations

from abc import ABC, abstractmethod

from nfs_dask.markup import fragment, html_table


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
        return fragment(html_table(head, rows, self.headline, numbers=[True] * len(head)))
