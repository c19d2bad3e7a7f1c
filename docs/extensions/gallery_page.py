"""A page of the pictures that `docs/gallery.py` draws, where there is that script; else there is no such page.

``{picture}`` shows one of them, and nothing where there are none.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

from docutils.parsers.rst.directives.images import Image

DOCS = Path(__file__).resolve().parents[1]
SCRIPT = DOCS / "gallery.py"
PAGE = DOCS / "gallery.md"
PICTURES = DOCS / "pictures"

HEAD = """# Pictures

Drawn by `python docs/gallery.py FOLDER`, on generated data; below each picture is the code that drew it.
"""


def drawn() -> list[str]:
    """Names of the pictures, in the order in which the script has their functions."""
    functions = [node.name for node in ast.parse(SCRIPT.read_text()).body if isinstance(node, ast.FunctionDef)]
    names = [name.removeprefix("draw_") for name in functions if name.startswith("draw_")]
    return [name for name in names if (PICTURES / f"{name}.png").exists()]


def page(names: list[str]) -> str:
    shown = [
        f"## {name.replace('_', ' ').capitalize()}\n\n"
        f"```{{image}} pictures/{name}.png\n:alt: {name}, drawn by the code below\n```\n\n"
        f"```{{literalinclude}} gallery.py\n:language: python\n:pyobject: draw_{name}\n```\n"
        for name in names
    ]
    return "\n".join([HEAD, *shown])


def _draw(_app: Any) -> None:
    if not SCRIPT.exists():
        PAGE.unlink(missing_ok=True)
        return
    newest = max((file.stat().st_mtime for file in PICTURES.glob("*.png")), default=0)
    if newest < SCRIPT.stat().st_mtime:
        subprocess.run([sys.executable, SCRIPT, PICTURES], check=True)
    text = page(drawn())
    if not PAGE.exists() or PAGE.read_text() != text:
        PAGE.write_text(text)


class Picture(Image):
    """An image of the gallery, by its name."""

    def run(self) -> list[Any]:
        name = self.arguments[0]
        if not SCRIPT.exists() or not (PICTURES / f"{name}.png").exists():
            return []
        self.arguments[0] = f"/pictures/{name}.png"
        return super().run()


def setup(app: Any) -> dict[str, Any]:
    app.connect("builder-inited", _draw)
    app.add_directive("picture", Picture)
    return {"parallel_read_safe": True}
