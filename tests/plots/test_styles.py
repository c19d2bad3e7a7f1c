"""Lines that look different, and letters that fit."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from matplotlib.figure import Figure

from nfs_dask.plots.drawing import COLORS, SIGNED, line_style, lines_on, points_of, put_legend, put_title, width_of


def lightness(color: str) -> float:
    """CIE lightness of a color, from 0 to 100."""
    channels = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(116 * np.cbrt(linear @ [0.2126, 0.7152, 0.0722]) - 16)


def test_no_two_lines_look_alike() -> None:
    assert len({(s["color"], s["linestyle"]) for s in map(line_style, range(42))}) == 42
    marked = [line_style(i, 10) for i in range(168)]
    assert len({(s["color"], s["linestyle"], s["marker"]) for s in marked}) == 168
    for one, next_one in itertools.pairwise(marked):  # neighbors differ in gray print, too
        assert one["linestyle"] != next_one["linestyle"] and one["marker"] != next_one["marker"]
    assert line_style(0, 1000)["marker"] == ""


def test_lines_are_dark_enough_for_white_paper() -> None:
    assert all(lightness(color) < 75 for color in COLORS)


def test_signed_shades_become_lighter_throughout() -> None:
    import matplotlib as mpl

    shades = mpl.colormaps[SIGNED](np.linspace(0, 1, 32))
    light = [lightness(mpl.colors.to_hex(shade)) for shade in shades]
    assert (np.diff(light) > 0).all()


@pytest.mark.parametrize("inches", [3.0, 8.0])
def test_titles_and_legends_fit_into_axes(inches: float) -> None:
    figure = Figure(figsize=(inches, 4))
    ax = figure.subplots()
    ax.plot([0, 1], label="a line that takes a good many words to say what it is")
    put_title(ax, "A title of medium length, say")
    put_legend(ax)
    figure.draw_without_rendering()
    box = ax.get_legend().get_window_extent()
    assert box.width <= ax.get_window_extent().width
    assert ax.title.get_window_extent().width <= figure.bbox.width
    assert lines_on(ax) == 1


def test_sizes_are_in_points() -> None:
    ax = Figure(figsize=(4, 2), dpi=300).add_axes((0.25, 0.25, 0.5, 0.5))
    assert points_of(ax) == pytest.approx((144, 72))
    assert width_of([]) == 0 < width_of(["a"]) < width_of(["a", "abc"])
