"""How Sphinx makes the pages: ``python -m sphinx -W -n --keep-going -b html docs docs/_build/html``."""

from __future__ import annotations

import sys
from pathlib import Path

from nfs_dask._version import __version__

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "nfs-dask"
author = "nfs-dask developers"
copyright = author  # noqa: A001 - Sphinx reads this name
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "numpydoc",
    "contents",  # these are in extensions/
    "gallery_page",
    "links",
    "reference_pages",
]
exclude_patterns = ["_build"]
templates_path: list[str] = []
highlight_language = "text"  # of commands, which say no language

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4  # as GitHub names them

autodoc_typehints = "none"  # docstrings say more
autodoc_member_order = "alphabetical"
toc_object_entries_show_parents = "hide"
default_role = "py:obj"  # docstrings: a link where the name has a page, else code; see extensions/links.py
numpydoc_show_class_members = False  # autodoc has them

nitpicky = True
nitpick_ignore_regex = [
    # Classes of the package without a page, which users meet in type names only.
    (r"py:.*", r"nfs_dask\.(arrays|engine|methods|models|sources|statistics|store)\..*"),
]

linkcheck_ignore = [r"https?://(?!localhost)"]  # pages and anchors of ours; a build needs no network

html_theme = "pydata_sphinx_theme"
html_title = "nfs-dask"
html_static_path = ["static"]
html_css_files = ["pages.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "show_prev_next": False,
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
ALONE = ("index", "tutorial", "limits", "compared", "gallery", "search", "genindex")  # no pages below them
html_sidebars: dict[str, list[str]] = {page: [] for page in ALONE}
