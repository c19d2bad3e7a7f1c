"""Tables as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)
