"""Accuracy over coverage: the curve on the axes is that of the estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfs_dask as nfs
from nfs_dask import InputError
from nfs_dask.plots import CoverageDisplay


def test_the_curve_is_that_of_sorting_by_confidence(two: Any, ax: Any) -> None:
    X, y = two
    model = nfs.SparseMultinomialNB(k=5).fit(X, y)
    odds = model.decision_function(X)
    display = CoverageDisplay.from_predictions(y, odds, classes=model.classes_, at_zero=0, name="_$x$", ax=ax)
    right = (model.predict(X) == y)[np.argsort(-np.abs(odds), kind="stable")]
    untied = np.flatnonzero(np.diff(np.sort(-np.abs(odds)), append=1.0) > 0)  # the last of equally confident ones
    np.testing.assert_allclose(display.line_.get_xdata(), np.arange(1, len(y) + 1) / len(y))
    expected = np.cumsum(right) / np.arange(1, len(y) + 1)
    np.testing.assert_allclose(display.line_.get_ydata()[untied], expected[untied])
    assert display.full_line_.get_ydata()[0] == pytest.approx((model.predict(X) == y).mean())
    (text,) = ax.get_legend().get_texts()
    assert r"_\$x\$" in text.get_text()


def test_all_ways_lead_to_the_same_curve(two: Any, ax: Any) -> None:
    X, y = two
    model = nfs.SparseMultinomialNB(k=5).fit(X, y)
    evaluation = nfs.evaluate(model, X, y)
    displays = [
        CoverageDisplay.from_estimator(model, X, y, ax=ax),
        CoverageDisplay.from_evaluation(evaluation, ax=ax),
        CoverageDisplay.from_curve(evaluation.confidence.counts.curve(), ax=ax, color="red"),
    ]
    for one in displays:
        np.testing.assert_array_equal(one.line_.get_xdata(), displays[0].line_.get_xdata())
        np.testing.assert_array_equal(one.line_.get_ydata(), displays[0].line_.get_ydata())
    assert len({one.line_.get_color() for one in displays}) == 3 and displays[2].line_.get_color() == "red"
    assert displays[0].name == "SparseMultinomialNB" and displays[0].n == len(y)


def test_distances_are_no_probabilities(two: Any) -> None:
    X, y = two
    with pytest.raises(InputError, match="measures distances and has no probabilities"):
        CoverageDisplay.from_estimator(nfs.SparseCentroid(k=3).fit(X, y), X, y)
    with pytest.raises(InputError, match="curve is a list"):
        CoverageDisplay.from_curve([])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="the evaluation is a float"):
        CoverageDisplay.from_evaluation(0.5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no points"):
        CoverageDisplay(coverage=[], accuracy=[])
