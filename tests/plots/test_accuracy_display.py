"""Cross-validation: lines and bands have the numbers of the table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfs_dask as nfs
from nfs_dask import InputError
from nfs_dask.plots import AccuracyDisplay


def ends_of(band: Any, ks: Any) -> tuple[Any, Any]:
    """The lower and the upper edge of a band at each k."""
    corners = band.get_paths()[0].vertices
    at = [corners[np.isclose(corners[:, 0], k), 1] for k in ks]
    return np.array([ys.min() for ys in at]), np.array([ys.max() for ys in at])


@pytest.mark.parametrize("by", ["accuracy", "balanced", "log_loss"])
def test_lines_are_means_and_bands_standard_errors(table: Any, by: Any, ax: Any) -> None:
    chosen = table.choose("1se", by)
    display = AccuracyDisplay.from_table(table, by, choice=chosen, ax=ax)
    assert len(display.lines_) == len(display.bands_) == 2 and display.ax_ is ax
    for a in range(2):
        scores = np.array([table.scores(k=k, alpha=table.alphas[a], by=by) for k in table.ks])
        error = scores.std(axis=1, ddof=1) / np.sqrt(table.n_folds)
        np.testing.assert_array_equal(display.lines_[a].get_xdata(), table.ks)
        np.testing.assert_allclose(display.lines_[a].get_ydata(), scores.mean(axis=1))
        low, high = ends_of(display.bands_[a], table.ks)
        np.testing.assert_allclose(low, scores.mean(axis=1) - error)
        np.testing.assert_allclose(high, scores.mean(axis=1) + error)
    assert display.choice_line_.get_xdata()[0] == chosen
    first, second = display.lines_
    assert first.get_linestyle() != second.get_linestyle() and first.get_marker() != second.get_marker()
    assert ("nats" in ax.get_ylabel()) == (by == "log_loss")


def test_a_choice_has_the_same_lines_as_its_table(two: Any, table: Any, ax: Any) -> None:
    X, y = two
    chosen = nfs.path(X, "multinomial", y=y).choose("cv", ks=[1, 3, 10, 40], alphas=[0.5, 1.0])
    display = AccuracyDisplay.from_choice(chosen, ax=ax)
    np.testing.assert_allclose(display.mean, table.mean())
    np.testing.assert_allclose(display.error, table.standard_error())
    assert display.n_folds == 5 and display.choice is chosen


def test_some_smoothings_are_drawn_and_others_refused(table: Any, ax: Any) -> None:
    display = AccuracyDisplay.from_table(table, alphas=[1.0], ax=ax, linewidth=4)
    np.testing.assert_allclose(display.lines_[0].get_ydata(), table.mean()[1])
    assert display.lines_[0].get_linewidth() == 4
    again = AccuracyDisplay.from_table(table, alphas=[0.5], ax=ax)
    assert again.lines_[0].get_color() != display.lines_[0].get_color()
    with pytest.raises(InputError, match=r"alpha=7 was not validated; those that were are \[0.5, 1.0\]"):
        AccuracyDisplay.from_table(table, alphas=[7], ax=ax)


def test_methods_without_smoothing_and_losses_without_end(ax: Any) -> None:
    mean, error = [[np.inf, 0.5], [np.inf, np.inf]], [[np.nan, 0.1], [np.nan, np.nan]]
    display = AccuracyDisplay(ks=[1, 9], mean=mean, error=error, alphas=(0.0, 0.1), by="log_loss").plot(ax)
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), [np.nan, 0.5])
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["alpha = 0; not finite where not drawn", "alpha = 0.1; not finite where not drawn"]
    alone = AccuracyDisplay(ks=[1], mean=[[0.5]], error=[[0.1]]).plot(ax)
    assert alone.lines_[0].get_label() == "mean over folds"


def test_what_is_no_table_is_refused(table: Any, two: Any) -> None:
    X, y = two
    with pytest.raises(InputError, match="table is a list"):
        AccuracyDisplay.from_table([])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="by='f1'; give one of 'accuracy'"):
        AccuracyDisplay.from_table(table, "f1")
    with pytest.raises(InputError, match="the rule 'elbow' went by no validation"):
        AccuracyDisplay.from_choice(nfs.path(X, "multinomial", y=y).choose("elbow"))
    with pytest.raises(InputError, match="choice is an int"):
        AccuracyDisplay.from_choice(3)  # type: ignore[arg-type]
