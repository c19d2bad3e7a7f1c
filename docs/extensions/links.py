"""Links that work on GitHub work on the site.

Files of the repository that are shown as pages are linked as pages: README.md is the front page, for one. Others that
are there become downloads; a link to a folder becomes its name.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent
SHOWN = {  # files outside of docs/, and the pages that include them
    "README.md": "index.md",
    "CHANGELOG.md": "changes.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "deploy/README.md": "deploying.md",
    "deploy/jupyterhub/README.md": "jupyterhub.md",
    "deploy/kubernetes/README.md": "kubernetes.md",
    "deploy/slurm/README.md": "slurm.md",
}
LINK = re.compile(r"\[(?P<text>[^\]\n]*)\]\((?P<target>[^)#:\s]+)(?P<anchor>#[^)\s]*)?\)")
LITERAL = re.compile(r"(`+[^`]+`+)")
ENDING = re.compile(r"\b([A-Za-z]\w*[A-Za-z0-9])_(?!\w)")


def on_the_site(text: str, file: Path, page: Path) -> str:
    """The Markdown of a file as a page of the site, whose links are seen from there."""

    def changed(link: re.Match[str]) -> str:
        target = Path(os.path.normpath(file.parent / link["target"]))
        if not target.is_relative_to(ROOT) or not target.exists():
            return link[0]
        if (target / "README.md").exists():
            target = target / "README.md"
        place = DOCS / SHOWN.get(target.relative_to(ROOT).as_posix(), target)
        if place.is_dir():
            return link["text"]
        return f"[{link['text']}]({os.path.relpath(place, page.parent)}{link['anchor'] or ''})"

    return LINK.sub(changed, text)


def _page(app: Any, docname: str, source: list[str]) -> None:
    page = Path(app.env.doc2path(docname))
    if page.suffix == ".md":
        source[0] = on_the_site(source[0], page, page)


def _included(app: Any, path: Any, docname: str, source: list[str]) -> None:
    file = Path(app.srcdir, path).resolve()
    if file.suffix == ".md":
        source[0] = on_the_site(source[0], file, Path(app.env.doc2path(docname)))


def _code_where_there_is_no_page(_app: Any, _env: Any, node: Any, content: Any) -> Any:
    """What docstrings have in single backticks, where it is not the name of anything that has a page."""
    return content if node.get("reftype") == "obj" else None


def _with_plain_underscores(_app: Any, _what: str, _name: str, _value: Any, _options: Any, lines: list[str]) -> None:
    """Names such as n_features_in_ in docstrings: for reStructuredText an underscore at the end would be a link."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...", "..")):
            parts = LITERAL.split(line)
            parts[::2] = [ENDING.sub(r"\1\\_", part) for part in parts[::2]]
            lines[i] = "".join(parts)


def setup(app: Any) -> dict[str, Any]:
    app.connect("source-read", _page)
    app.connect("include-read", _included)
    app.connect("autodoc-process-docstring", _with_plain_underscores, priority=900)  # after numpydoc
    app.connect("missing-reference", _code_where_there_is_no_page)
    return {"parallel_read_safe": True}
