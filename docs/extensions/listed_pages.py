"""Which pages tables of contents name, and which none does."""

from __future__ import annotations

import re
from pathlib import Path

TABLE = re.compile(r"^```\{(?:pages|toctree)\}\n(.*?)^```", re.MULTILINE | re.DOTALL)
ENTRY = re.compile(r"^(?:.*<(?P<titled>[^<>]+)>|(?P<plain>[^:<>\s]+))$", re.MULTILINE)


def pages_of(table: str) -> list[str]:
    """The pages that the text of a table names."""
    return [found["titled"] or found["plain"] for found in ENTRY.finditer(table)]


def unlisted(folder: Path) -> list[str]:
    """Pages right in a folder that no table of its pages names; `index` is the root of them all."""
    pages = {page.stem: page.read_text() for page in sorted(folder.glob("*.md"))}
    listed = {name for text in pages.values() for table in TABLE.findall(text) for name in pages_of(table)}
    return [name for name in pages if name not in listed and name != "index"]
