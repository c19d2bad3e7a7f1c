"""Names of features and classes as pictures show them: as text, whatever is in them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

LONGEST = 32  # letters of a name in a picture
LATIN = 0x250  # letters below are in any font, also those with accents
# Fonts that have letters of many scripts. Those that are installed stand in where that of the user has none.
WIDE_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Source Han Sans SC",
    "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei",
    "Hiragino Sans",
    "PingFang SC",
    "Arial Unicode MS",
    "Microsoft YaHei",
    "Yu Gothic",
    "Malgun Gothic",
    "Noto Sans Devanagari",
    "Noto Sans Arabic",
    "Noto Sans Thai",
    "Nirmala UI",
    "Segoe UI Symbol",
    "Noto Emoji",
    "DejaVu Sans",
)


def shown(name: Any, longest: int = LONGEST) -> str:
    r"""A name as matplotlib is to have it: on one line, not too long, and with ``$`` that begins no formula.

    >>> shown("$x$"), shown("a_b"), shown("two\nlines")
    ('\\$x\\$', 'a_b', 'two\\nlines')
    >>> shown("a name that goes on and on and on and on")
    'a name that goe…n and on and on'
    """
    text = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in str(name))
    if len(text) > longest:
        half = (longest - 1) // 2
        text = f"{text[:half]}…{text[-half:]}"
    return text.replace("$", r"\$")


def legend_name(name: Any) -> str:
    """The same in a legend, which leaves out what begins with an underscore unless a space of no width is before it."""
    text = shown(name)
    return f"\N{ZERO WIDTH SPACE}{text}" if text.startswith("_") else text


def as_text(names: Iterable[str]) -> dict[str, Any]:
    """Properties of matplotlib's texts that show such names as they are, whatever the settings of the user."""
    plain: dict[str, Any] = {"parse_math": True, "usetex": False}
    usual = all(ord(letter) < LATIN for name in names for letter in name)
    return plain if usual else plain | {"fontfamily": _families()}


def _families() -> list[str]:
    """The font of the user, and those that are installed besides."""
    from matplotlib import font_manager, rcParams

    installed = set(font_manager.get_font_names())
    return [*rcParams["font.family"], *(font for font in WIDE_FONTS if font in installed)]
