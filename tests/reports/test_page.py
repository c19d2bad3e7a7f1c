"""Colors of the page can be told apart, and its template takes nothing for markup."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

CSS = files("nfs_dask.reports").joinpath("templates", "report.css").read_text(encoding="utf-8")


def luminance(color: str) -> float:
    """As the guidelines for accessible pages have it (WCAG 2.2, relative luminance)."""
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def schemes() -> list[dict[str, str]]:
    found = [dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block)) for block in re.findall(r":root \{(.*?)\}", CSS, re.S)]
    assert len(found) == 3, "light, dark and print"
    return found


@pytest.mark.parametrize("scheme", schemes(), ids=["light", "dark", "print"])
def test_letters_stand_out(scheme: dict[str, str]) -> None:
    for letters in ("ink", "quiet", "link"):
        for ground in ("page", "card"):
            assert contrast(scheme[letters], scheme[ground]) >= 4.5, (letters, ground)


def test_contrast_is_that_of_the_guidelines() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_only_pieces_that_are_made_here_are_not_escaped_by_the_template() -> None:
    template = files("nfs_dask.reports").joinpath("templates", "report.html.jinja").read_text(encoding="utf-8")
    safe = set(re.findall(r"\{\{ ([\w.]+)\|safe \}\}", template))
    assert safe == {
        *("style", "script", "slider_json", "table", "picture", "document"),
        *("certificate_table", "path_picture", "path_table", "features_picture", "features_table"),
        *("origin_table", "passes_table"),
    }
