"""From what is told to one page of HTML that fetches nothing: templates, and a policy that browsers hold it to."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import Any

from nfs_dask.errors import InputError
from nfs_dask.prediction.explained_html import STYLE

MISSING = 'a report needs jinja2, which is not installed; pip install "nfs-dask[report]"'
TEMPLATE, STYLES, SCRIPT = "report.html.jinja", "report.css", "report.js"


def check_jinja() -> None:
    """Refuse to go on without jinja2, before anything that takes long."""
    try:
        import jinja2  # noqa: F401
    except ImportError:
        raise InputError(MISSING) from None


def page_of(**contents: Any) -> str:
    """The page; equal contents are equal bytes."""
    check_jinja()
    import jinja2

    environment = jinja2.Environment(  # names of whoever made the data are texts, and never elements
        loader=jinja2.FunctionLoader(_template),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    style, script = f"\n{STYLE}{_template(STYLES)}", f"\n{_template(SCRIPT)}"
    policy = (
        f"default-src 'none'; style-src '{_hashed(style)}'; script-src '{_hashed(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return environment.get_template(TEMPLATE).render(style=style, script=script, policy=policy, **contents)


def _template(name: str) -> str:
    return files("nfs_dask.reports").joinpath("templates", name).read_text(encoding="utf-8")


def _hashed(text: str) -> str:
    """What a policy of content calls an element with this text."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
