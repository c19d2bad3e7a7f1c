"""Displays as SVG inside of HTML: small, with text as text, and the same bytes for the same numbers.

Pages that fetch nothing may also allow no ``style`` attributes and no styles but their own, so what matplotlib writes
as styles become plain attributes. Black becomes the color of the page's letters and white that of its paper, so that
pictures read on dark pages, too.
"""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from nfs_dask.markup import escaped
from nfs_dask.plots.display import Display
from nfs_dask.plots.drawing import check_matplotlib, without_pyplot

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

SCALE = 1.15  # pixels of a page for a point of the picture
_SETTINGS: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "nfs-dask", "text.usetex": False}
_FAINT = {"#d0d0d0", "#cccccc", "#b0b0b0"}  # lines of grids and frames of legends
_FONT = re.compile(r"(?:(?P<style>italic|oblique) )?(?:(?P<weight>bold|\d+) )?(?P<size>[\d.]+)px")
_REFERENCE = re.compile(r"(?:url\()?#([^)]+)\)?$")
_DROPPED = {"metadata", "style"}
_USELESS = {"version", "width", "height", "type", "preserveAspectRatio"}


def inline_svg(draw: Callable[[], Display], name: str, title: str, description: str, *, on_paper: bool = False) -> str:
    """A display as an element of a page.

    Parameters
    ----------
    draw
        Makes it, in a new figure.
    name
        Begins the ids in it, so that several may be on a page.
    title, description
        What it shows, for who does not see it.
    on_paper
        Whether it stays black on white on dark pages, as letters on colors have to.
    """
    check_matplotlib()
    import matplotlib.style as mpl_style
    from matplotlib import rc_context

    out = io.BytesIO()
    fonts = logging.getLogger("matplotlib.font_manager")  # tells of fonts, and the page has its own
    quiet, fonts.disabled = fonts.disabled, True
    try:
        with mpl_style.context("default", after_reset=True), rc_context(_SETTINGS), without_pyplot():
            draw().figure_.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    finally:
        fonts.disabled = quiet
    root = ET.fromstring(out.getvalue())  # noqa: S314 - of what matplotlib has just written
    return _Picture(root, name, on_paper).written(title, description)


class _Picture:
    """A picture of matplotlib, on its way to a page."""

    def __init__(self, root: Element, name: str, on_paper: bool) -> None:
        self.root, self.name, self.on_paper = root, name, on_paper
        referred = (match for one in root.iter() for _, value in _attributes(one) if (match := _refers(value)))
        self.ids = {old: f"{name}-{i}" for i, old in enumerate(dict.fromkeys(referred))}

    def written(self, title: str, description: str) -> str:
        width = float(self.root.get("width", "460.8pt").removesuffix("pt")) * SCALE
        kind = "nfs-picture nfs-paper" if self.on_paper else "nfs-picture"
        inside = "".join(self._element(child) for child in self.root)
        return (
            f'<svg class="{kind}" role="img" aria-labelledby="{self.name}-title {self.name}-desc" '
            f'viewBox="{escaped(self.root.get("viewBox", ""))}" width="{width:.0f}" font-family="sans-serif" '
            'fill="currentColor" stroke-linejoin="round" stroke-linecap="butt">'
            f'<title id="{self.name}-title">{escaped(title)}</title>'
            f'<desc id="{self.name}-desc">{escaped(description)}</desc>{inside}</svg>'
        )

    def _element(self, element: Element) -> str:
        tag = _local(element.tag)
        children = "".join(self._element(child) for child in element)
        if tag in _DROPPED or (tag in ("defs", "g") and not children):
            return ""
        attributes = dict(self._kept(element))
        if tag == "path" and attributes.get("class") == "nfs-page" and "stroke" not in attributes:
            return ""  # backgrounds of figures and axes
        said = "".join(f' {name}="{escaped(value)}"' for name, value in attributes.items())
        text = escaped(element.text) if tag in ("text", "tspan") and element.text else ""
        return f"<{tag}{said}>{text}{children}</{tag}>" if text or children else f"<{tag}{said}/>"

    def _kept(self, element: Element) -> Iterator[tuple[str, str]]:
        for name, value in _attributes(element):
            if name == "id":
                if value in self.ids:
                    yield name, self.ids[value]
            elif (old := _refers(value)) is not None:
                yield name, value.replace(f"#{old}", f"#{self.ids[old]}")
            elif name in ("fill", "stroke"):
                yield from self._colored(name, value)
            elif name not in _USELESS or _local(element.tag) in ("image", "rect"):
                yield name, value

    def _colored(self, name: str, value: str) -> Iterator[tuple[str, str]]:
        if not self.on_paper and value in _FAINT:
            yield name, "currentColor"
            yield f"{name}-opacity", "0.25"
        elif not self.on_paper and value == "#000000":
            yield name, "currentColor"
        elif value == "#ffffff" and name == "fill" and not self.on_paper:
            yield "class", "nfs-page"
        else:
            yield name, value


def _attributes(element: Element) -> Iterator[tuple[str, str]]:
    """Attributes without their name spaces, those in styles among them."""
    for name, value in element.attrib.items():
        if name == "style":
            for declaration in filter(None, map(str.strip, value.split(";"))):
                yield from _declared(*map(str.strip, declaration.split(":", 1)))
        else:
            yield _local(name), value.strip() if name != "d" else " ".join(value.split())


def _declared(name: str, value: str) -> Iterator[tuple[str, str]]:
    """A declaration of a style as attributes; the font of a text is that of the page."""
    if name == "font":
        found = _FONT.match(value)
        if found is not None:
            yield from ((f"font-{part}", one) for part, one in found.groupdict().items() if one is not None)
    elif name not in ("font-family", "image-rendering"):
        yield name, value


def _refers(value: str) -> str | None:
    """The id that an attribute refers to."""
    found = _REFERENCE.match(value) if value.startswith(("#", "url(#")) else None
    return None if found is None or re.fullmatch(r"[0-9a-f]{6}", found.group(1)) else found.group(1)


def _local(name: str) -> str:
    return name.rpartition("}")[2]
