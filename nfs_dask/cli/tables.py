"""Tables as wide as the terminal, in which no number and no name is broken in two."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich import box
from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions
from rich.table import Table
from rich.text import Text

GAP = 3  # columns of the terminal between two of the table
EDGES = 2  # and before the first and after the last
SHORTEST = 16  # columns that a text is never shortened below
MORE = "\u2026"


class FittedTable:
    """Columns with their heads, aligned to the right where they are numbers.

    Where a table is too wide, heads take several lines; then long texts lose their middle; and what is too wide still
    becomes several tables, one below the other, all with the first column.
    """

    def __init__(self, columns: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[bool]) -> None:
        self._heads, self._rows, self._numbers = list(columns), rows, numbers

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> Iterator[Table]:
        room, every = options.max_width, list(range(len(self._heads)))
        cells = [max([0, *(_width(row[i]) for row in self._rows)]) for i in every]
        widths = [max(cells[i], _width(head)) for i, head in enumerate(self._heads)]
        if _total(widths) <= room:
            yield self._part(every, self._heads, dict(enumerate(widths)))
            return
        texts = [0 if number else SHORTEST for number in self._numbers]
        heads = [_on_lines(head, max(cells[i], texts[i])) for i, head in enumerate(self._heads)]
        widths = [max(cells[i], _width(head)) for i, head in enumerate(heads)]
        # Numbers stay whole
        least = [min(widths[i], max(SHORTEST, cells[i] * self._numbers[i])) for i in every]
        parts = [every]
        if len(every) > 2 and _total(least) > room:
            parts = [every[:2]]
            for i in every[2:]:
                if _total(least[j] for j in [*parts[-1], i]) <= room:
                    parts[-1].append(i)
                else:
                    parts.append([0, i])
        for part in parts:
            now = {i: widths[i] for i in part}
            while _total(now.values()) > room and (wide := [i for i in part if now[i] > least[i]]):
                now[max(wide, key=now.__getitem__)] -= 1
            yield self._part(part, heads, now)

    def _part(self, chosen: Sequence[int], heads: Sequence[str], widths: Mapping[int, int]) -> Table:
        """Some of the columns, with what is too wide shortened."""
        out = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for i in chosen:
            head = "\n".join(_short(line, widths[i]) for line in heads[i].split("\n"))
            out.add_column(Text(head), justify="right" if self._numbers[i] else "left", no_wrap=True, overflow="crop")
        for row in self._rows:
            out.add_row(*(Text(_short(row[i], widths[i])) for i in chosen))
        return out


def _total(widths: Iterable[int]) -> int:
    widths = list(widths)
    return sum(widths) + GAP * (len(widths) - 1) + EDGES


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


def _width(text: str) -> int:
    return max(map(cell_len, text.split("\n")))


def _short(text: str, width: int) -> str:
    """Both ends of a text that is wider."""
    if _width(text) <= width:
        return text
    left = (width - 1) // 2
    tail = chop_cells(text[::-1], width - 1 - left)[0][::-1]
    return chop_cells(text, max(1, left))[0] + MORE + tail
