"""Puts tables and pictures of results into a page: between ``<!-- ID -->`` and ``<!-- end of ID -->``."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.papers import figures, results

BLOCK = r"(?P<begin><!-- {name} -->\n).*?(?P<end><!-- end of {name} -->)"


def block(name: str, module: ModuleType, found: dict[str, Any]) -> str:
    """What a page says of a result: the command, the table, or the shorter one if there is one, and the picture."""
    values = found["values"]
    if "skipped" in values:
        return f"Skipped: {values['skipped']}."
    table = getattr(module, "summary", module.table)(values)
    picture = f"\n\n![{module.TITLE}](figures/{name}.svg)" if hasattr(module, "draw") else ""
    return f"`{found['command']}`\n\n{table.strip()}{picture}"


def filled(text: str, known: dict[str, ModuleType], folder: Path) -> str:
    """The text of a page with a block for each result that the folder has."""
    for name, module in known.items():
        file = folder / f"{name}.json"
        if file.exists():
            body = block(name, module, results.read(file))
            pattern = re.compile(BLOCK.format(name=name), re.DOTALL)
            text = pattern.sub(lambda found, body=body: f"{found['begin']}\n{body}\n\n{found['end']}", text)
    return text


def fill(page: Path, known: dict[str, ModuleType], folder: Path) -> None:
    """Write a page anew, and its pictures into ``figures`` beside it."""
    page.write_text(filled(page.read_text(), known, folder))
    for name, module in known.items():
        file = folder / f"{name}.json"
        if file.exists() and hasattr(module, "draw"):
            values = results.read(file)["values"]
            if "skipped" not in values:
                figures.save(module.draw(values), page.parent / "figures", name, endings=("svg",))
