"""Names are shown as text, whatever is in them and whatever the settings are."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from nfs_dask.plots.drawing import LONGEST, as_text, legend_name, shown
from tests.plots.conftest import AWKWARD


def seen(name: str, **looks: Any) -> tuple[str, Any]:
    """What matplotlib makes of a text: the letters it would draw, and whether as a formula."""
    figure = Figure()
    return figure.text(0, 0, shown(name), **{**as_text([shown(name)]), **looks})._preprocess_math(shown(name))


@pytest.mark.parametrize("name", [name for name in AWKWARD if len(name) <= LONGEST and "\n" not in name])
def test_letters_are_drawn_as_they_are(name: str) -> None:
    assert seen(name) == (name, False)


@pytest.mark.parametrize("settings", [{"text.parse_math": False}, {"text.usetex": True}])
def test_settings_of_the_user_change_nothing(settings: dict[str, Any]) -> None:
    with mpl.rc_context(settings):
        assert seen("a_b$c$") == ("a_b$c$", False)


def test_long_names_keep_both_ends_and_control_characters_are_spelled() -> None:
    text = shown("begin" + "x" * 500 + "end")
    assert len(text) <= LONGEST and text.startswith("beginx") and text.endswith("xend") and "…" in text
    assert shown("a\nb\tc\x00") == r"a\nb\tc\x00"
    assert shown("\ud800") == r"\ud800"
    assert shown(17) == "17"


def test_a_legend_shows_names_that_begin_with_an_underscore() -> None:
    ax = Figure().subplots()
    ax.plot([0, 1], label=legend_name("_hidden"))
    assert [text.get_text()[1:] for text in ax.legend().get_texts()] == ["_hidden"]


def test_letters_of_other_scripts_may_come_from_other_fonts() -> None:
    assert "fontfamily" not in as_text(["plain"])
    families = as_text(["漢字"])["fontfamily"]
    assert families[: len(mpl.rcParams["font.family"])] == mpl.rcParams["font.family"]
    assert "DejaVu Sans" in families
