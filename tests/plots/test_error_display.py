"""Predicted errors beside measured ones: lines have the numbers of the rule, the search and the table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfs_dask as nfs
from nfs_dask import InputError
from nfs_dask.plots import ErrorDisplay


def test_a_choice_beside_cross_validation(two: Any, table: Any, ax: Any) -> None:
    X, y = two
    chosen = nfs.path(X, "multinomial", y=y).choose("error", ks=[1, 3, 10, 40])
    display = ErrorDisplay.from_choice(chosen, table, alpha=1.0, ax=ax)
    np.testing.assert_array_equal(display.predicted_line_.get_xdata(), [1, 3, 10, 40])
    np.testing.assert_array_equal(display.predicted_line_.get_ydata(), [row["error"] for row in chosen.table])
    np.testing.assert_allclose(display.measured_line_.get_ydata(), 1 - table.mean()[1])
    np.testing.assert_allclose(display.measured_error, table.standard_error()[1])
    assert display.choice_line_.get_xdata()[0] == chosen
    with pytest.raises(InputError, match=r"alphas \[0.5, 1.0\]; say which"):
        ErrorDisplay.from_choice(chosen, table)


def test_a_search_from_no_features_on(two: Any, table: Any, ax: Any) -> None:
    X, y = two
    selector = nfs.ErrorRateSelector(k=4, search="forward").fit(X, y)
    display = ErrorDisplay.from_estimator(selector, table, alpha=0.5, ax=ax)
    assert display.predicted_line_.get_xdata().tolist() == sorted(selector.errors_) and display.ks[0] == 0
    assert display.predicted_line_.get_ydata().tolist() == [selector.errors_[k] for k in sorted(selector.errors_)]
    np.testing.assert_allclose(display.measured_line_.get_ydata(), 1 - table.mean("balanced")[0])
    alone = ErrorDisplay.from_estimator(selector, ax=ax)
    assert alone.measured_line_ is None and alone.measured_band_ is None


def test_one_k_and_gaps(ax: Any) -> None:
    display = ErrorDisplay(ks=[1], predicted=[np.nan], measured_ks=[1], measured=[0.25]).plot(ax)
    assert display.measured_line_.get_ydata().tolist() == [0.25] and display.measured_band_ is None


def test_other_things_are_refused(two: Any, table: Any) -> None:
    X, y = two
    path = nfs.path(X, "multinomial", y=y)
    with pytest.raises(InputError, match="no choice by predicted errors"):
        ErrorDisplay.from_choice(path.choose("elbow"))
    with pytest.raises(InputError, match="the model is a SparseMultinomialNB"):
        ErrorDisplay.from_estimator(nfs.SparseMultinomialNB())  # type: ignore[arg-type]
    with pytest.raises(InputError, match="knows no errors of its search"):
        ErrorDisplay.from_estimator(nfs.ErrorRateSelector())
    with pytest.raises(InputError, match="by='log_loss'"):
        ErrorDisplay.from_choice(path.choose("error", ks=[1, 3]), table, by="log_loss")
    with pytest.raises(InputError, match="measured_ks= and measured="):
        ErrorDisplay(ks=[1], predicted=[0.5], measured=[0.5])
