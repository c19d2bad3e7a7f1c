"""Paths: lines have the numbers of the path, and the chosen k is where the rule put it."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest

import nfs_dask as nfs
from nfs_dask import InputError
from nfs_dask.plots import PathDisplay


@pytest.fixture(scope="module")
def path(two: Any) -> Any:
    X, y = two
    return nfs.path(X, "multinomial", y=y)


def test_lines_have_the_numbers_of_the_path(path: Any, ax: Any) -> None:
    chosen = path.choose("elbow")
    display = PathDisplay.from_path(path, chosen, ax=ax)
    assert display.figure_ is ax.figure and display.ax_ is display.axes_[0] and len(display.axes_) == 2
    np.testing.assert_array_equal(display.value_line_.get_xdata(), path.ks)
    np.testing.assert_array_equal(display.value_line_.get_ydata(), path.value)
    np.testing.assert_array_equal(display.bound_line_.get_ydata(), path.bound)
    drawn = display.gap_line_.get_ydata()
    np.testing.assert_array_equal(drawn[~path.certified], path.gap[~path.certified])
    assert np.isnan(drawn[path.certified]).all() and path.certified.any()
    np.testing.assert_array_equal(display.certified_line_.get_xdata(), path.ks[path.certified])
    assert list(display.choice_line_.get_xdata()) == [chosen, chosen]
    low, high = chosen.interval
    assert display.choice_band_.get_extents().transformed(display.ax_.transData.inverted()).intervalx.tolist() == (
        pytest.approx([low, high])
    )
    assert display.ax_.get_xscale() == "log" and display.ax_.get_ylabel() == "gain (nats)"
    assert display.axes_[1].get_xlabel() == "k, number of features"


def test_a_second_path_joins_the_panels_of_the_first(path: Any, two: Any, ax: Any) -> None:
    X, y = two
    first = PathDisplay.from_path(path, ax=ax)
    second = PathDisplay.from_path(nfs.path(X, "bernoulli", y=y, binarize=0.0), ax=first.ax_, linewidth=3)
    assert second.axes_.tolist() == first.axes_.tolist()
    assert second.value_line_.get_color() != first.value_line_.get_color() and second.value_line_.get_linewidth() == 3
    labels = [text.get_text() for text in first.ax_.get_legend().get_texts()]
    assert "bernoulli: value of those found" in labels and len(set(labels)) == len(labels)
    assert not second.gap_line_.get_ydata()[np.isfinite(second.gap_line_.get_ydata())].size  # all of it is certified


def test_without_axes_there_is_a_figure_of_pyplot(path: Any) -> None:
    display = PathDisplay.from_path(path, 5)
    assert plt.get_fignums() == [display.figure_.number] and display.choice_band_ is None
    display.figure_.draw_without_rendering()
    tops, bottoms = (one.get_xlim() for one in display.axes_)
    assert tops == bottoms


@pytest.mark.parametrize("ks", [[1], [7], [100, 101, 102], [1, 10**6]])
def test_numbers_of_features_are_written_out(ks: list[int], ax: Any) -> None:
    display = PathDisplay(ks=ks, value=np.sqrt(ks), bound=np.sqrt(ks)).plot(ax)
    ax.figure.draw_without_rendering()
    low, high = display.axes_[1].get_xlim()
    shown = [
        tick.label1.get_text() for tick in display.axes_[1].xaxis.get_major_ticks() if low <= tick.get_loc() <= high
    ]
    assert shown and all(text.replace(",", "").isdigit() for text in shown)


def test_what_is_not_finite_is_left_out(ax: Any) -> None:
    display = PathDisplay(ks=[1, 2, 3], value=[-np.inf, 1, np.nan], bound=[np.inf, 2, 3], name="$x$").plot(ax)
    assert np.isnan(display.value_line_.get_ydata()).tolist() == [True, False, True]
    np.testing.assert_array_equal(display.gap_line_.get_ydata(), [np.nan, 1, np.nan])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ks": []}, "at least one"),
        ({"ks": [2, 1]}, "ascending"),
        ({"ks": [1.5, 2]}, "whole numbers"),
        ({"ks": ["a", "b"]}, "no numbers"),
        ({"value": [1]}, r"values have shape \(1,\); give one of \(2\)"),
        ({"choice": "elbow"}, r"give what it chooses, path.choose\('elbow'\)"),
        ({"choice": 1.5}, "choice is a float"),
        ({"choice": -1}, "choice is an int"),
    ],
)
def test_other_numbers_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        PathDisplay(**({"ks": [1, 2], "value": [1, 2], "bound": [1, 2]} | given))


def test_what_is_no_path_is_refused() -> None:
    with pytest.raises(InputError, match=r"path is a dict; give what nfs_dask.path\(...\) returns"):
        PathDisplay.from_path({})  # type: ignore[arg-type]
