"""Calibration: bins are those of scikit-learn's calibration curve of the predicted classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.calibration import calibration_curve

import nfs_dask as nfs
from nfs_dask import InputError
from nfs_dask.plots import ReliabilityDisplay
from tests.plots.conftest import documents


@pytest.mark.parametrize("n_classes", [2, 5])
def test_points_are_those_of_scikit_learn(n_classes: int, ax: Any) -> None:
    X, y = documents(n_classes, n_rows=500)
    model = nfs.SparseMultinomialNB(k=12).fit(X[:250], y[:250])
    display = ReliabilityDisplay.from_estimator(model, X[250:], y[250:], ax=ax)
    sure, right = model.predict_proba(X[250:]).max(axis=1), model.predict(X[250:]) == y[250:]
    accuracy, posterior = calibration_curve(right, sure, n_bins=10)
    np.testing.assert_allclose(display.line_.get_xdata(), posterior, atol=1e-8)
    np.testing.assert_allclose(display.line_.get_ydata(), accuracy)
    counts, _ = np.histogram(sure, bins=np.linspace(0, 1, 11))
    assert [bar.get_height() for bar in display.bars_] == counts.tolist()
    assert [bar.get_x() for bar in display.bars_] == pytest.approx(np.arange(10) / 10)
    low, high = np.array([segment[:, 1] for segment in display.intervals_.get_segments()]).T
    assert (low <= accuracy).all() and (accuracy <= high).all() and (high > low).all()
    evaluation = nfs.evaluate(model, X[250:], y[250:])
    assert display.expected_error == pytest.approx(evaluation.confidence.reliability.expected_error, abs=1e-8)


def test_a_second_classifier_joins_the_first(two: Any, ax: Any) -> None:
    X, y = two
    model = nfs.SparseMultinomialNB(k=12).fit(X, y)
    first = ReliabilityDisplay.from_predictions(y, model.predict_proba(X), classes=model.classes_, bins=5, ax=ax)
    second = ReliabilityDisplay.from_evaluation(nfs.evaluate(model, X, y), name="$x$", ax=first.ax_)
    assert second.axes_.tolist() == first.axes_.tolist() and len(first.bars_) == 5 and len(second.bars_) == 10
    assert second.perfect_line_ is first.perfect_line_
    assert first.line_.get_color() != second.line_.get_color()
    some = np.flatnonzero(second.documents)[0] / 10, np.flatnonzero(first.documents)[0] / 5
    assert first.ax_.get_xlim()[0] <= min(some)


def test_bins_without_documents_have_no_point(ax: Any) -> None:
    display = ReliabilityDisplay(documents=[0, 4, 0], right=[0, 1, 0], posterior=[np.nan, 0.5, np.nan]).plot(ax)
    assert display.line_.get_xdata().tolist() == [0.5] and display.line_.get_ydata().tolist() == [0.25]
    assert np.isnan(display.accuracy[[0, 2]]).all() and display.expected_error == 0.25


def test_nothing_to_judge_by_is_refused() -> None:
    with pytest.raises(InputError, match="no documents to judge by"):
        ReliabilityDisplay(documents=[0], right=[0], posterior=[np.nan])
    with pytest.raises(InputError, match="0 bins; give at least one"):
        ReliabilityDisplay.from_predictions([0, 1], [0.5, 0.5], bins=0)
    with pytest.raises(InputError, match="this is a dict; give evaluate"):
        ReliabilityDisplay.from_reliability({})  # type: ignore[arg-type]
