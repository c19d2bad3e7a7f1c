"""Tables of contents that take what is there: entries without a page are left out, and pages without an entry go in.

    ```{pages}
    :others:
    How many features? <choosing>
    plots
    ```

``others`` adds the pages of `docs/` that no table names.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils.parsers.rst import directives
from listed_pages import pages_of, unlisted
from sphinx.directives.other import TocTree


class Pages(TocTree):
    """A `toctree` of the pages that are there."""

    option_spec = TocTree.option_spec | {"others": directives.flag}

    def run(self) -> list[Any]:
        here = Path(self.env.doc2path(self.env.docname)).parent
        entries = [entry for entry in self.content if self._is_there(here, entry)]
        if "others" in self.options:
            entries += unlisted(here)
        self.content.data = entries
        return super().run()

    def _is_there(self, here: Path, entry: str) -> bool:
        return any((here / f"{page}{end}").exists() for page in pages_of(entry) for end in (".md", ".rst"))


def setup(app: Any) -> dict[str, Any]:
    app.add_directive("pages", Pages)
    return {"parallel_read_safe": True}
