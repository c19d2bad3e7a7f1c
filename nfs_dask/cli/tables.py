"""Tables as wide as the terminal, in which no number and no name is broken in two."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rich import box
from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions
from rich.table import Table
from rich.text import Text

GAP = 3  # columns of the terminal between two of the table
EDGES = 2  # and before the first and after the last
SHORTEST = 16  # columns that a text is never shortened below
MORE = "\u2026"


@dataclass(frozen=True)
class FittedTable:
    """Columns with their heads, aligned to the right where they are numbers.

    Where a table is too wide, heads take several lines; then long texts lose their middle; and what is too wide still
    becomes several tables, one below the other, all with the first column.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Sequence[bool]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table]:
        for part in self.parts(options.max_width):
            yield part.table()

    def parts(self, width: int) -> Iterator[FittedTable]:
        """Tables that are no wider, as far as there are any."""
        if self.width <= width:
            yield self
            return
        lower = replace(self, columns=[self._on_lines(i) for i in range(len(self.columns))])
        narrow = lower.shortened(width)
        n = len(self.columns)
        if narrow.width <= width or n <= 2:
            yield narrow
            return
        start = 1
        while start < n:
            stop = start + 1
            while stop < n and lower.some(start, stop + 1).shortened(width).width <= width:
                stop += 1
            yield lower.some(start, stop).shortened(width)
            start = stop

    def _on_lines(self, column: int) -> str:
        cells = max([0, *(_widest(row[column]) for row in self.rows)])
        return _on_lines(self.columns[column], max(cells, 0 if self.numbers[column] else SHORTEST))

    def some(self, start: int, stop: int) -> FittedTable:
        """The first column and some others."""
        chosen = [0, *range(start, stop)]
        rows = [[row[i] for i in chosen] for row in self.rows]
        return FittedTable([self.columns[i] for i in chosen], rows, [self.numbers[i] for i in chosen])

    @property
    def widths(self) -> list[int]:
        return [
            max([_widest(column), *(_widest(row[i]) for row in self.rows)]) for i, column in enumerate(self.columns)
        ]

    @property
    def width(self) -> int:
        return sum(self.widths) + GAP * (len(self.columns) - 1) + EDGES

    def shortened(self, width: int) -> FittedTable:
        """The widest texts and heads without their middle, one column after another, until all fit or are short."""
        widths, over = self.widths, self.width - width
        while over > 0:
            candidates = [i for i, one in enumerate(widths) if one > self._least(i)]
            if not candidates:
                break
            widest = max(candidates, key=lambda i: widths[i])
            widths[widest] -= 1
            over -= 1
        rows = [[_short(cell, width) for cell, width in zip(row, widths, strict=True)] for row in self.rows]
        heads = [
            "\n".join(_short(line, w) for line in head.split("\n"))
            for head, w in zip(self.columns, widths, strict=True)
        ]
        return FittedTable(heads, rows, self.numbers)

    def _least(self, column: int) -> int:
        """How narrow a column may become: numbers stay whole."""
        numbers = [_widest(row[column]) for row in self.rows] if self.numbers[column] else []
        return max([SHORTEST, *numbers])

    def table(self) -> Table:
        out = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for column, number in zip(self.columns, self.numbers, strict=True):
            out.add_column(Text(column), justify="right" if number else "left", no_wrap=True, overflow="crop")
        for row in self.rows:
            out.add_row(*map(Text, row))
        return out


def _on_lines(head: str, width: int) -> str:
    """A head on lines of a width, or as wide as its longest word; underscores end words, too."""
    words = re.findall(r"[^\s_]*_|[^\s_]+|\s+", head)
    width = max([width, *(cell_len(word.strip()) for word in words)])
    lines = [""]
    for word in words:
        if cell_len((lines[-1] + word).rstrip()) > width:
            lines.append("")
        lines[-1] += word if lines[-1] else word.lstrip()
    return "\n".join(line.rstrip() for line in lines if line.strip()) or head


def _widest(text: str) -> int:
    return max(map(cell_len, text.split("\n")))


def _short(text: str, width: int) -> str:
    """Both ends of a text that is wider."""
    if cell_len(text) <= width:
        return text
    left = (width - 1) // 2
    tail = chop_cells(text[::-1], width - 1 - left)[0][::-1]
    return chop_cells(text, max(1, left))[0] + MORE + tail
