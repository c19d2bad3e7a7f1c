"""Confusion: cells are those of scikit-learn's confusion matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sklearn.metrics import confusion_matrix

import nfs_dask as nfs
from nfs_dask import InputError
from nfs_dask.plots import ConfusionDisplay
from nfs_dask.plots.drawing import shown
from tests.plots.conftest import documents


@pytest.mark.parametrize("n_classes", [2, 3, 24])
def test_cells_are_those_of_scikit_learn(n_classes: int, ax: Any) -> None:
    X, y = documents(n_classes, n_rows=480)
    model = nfs.SparseMultinomialNB(k=20).fit(X, y)
    display = ConfusionDisplay.from_estimator(model, X, y, ax=ax)
    expected = confusion_matrix(y, model.predict(X))
    np.testing.assert_array_equal(display.confusion, expected)
    shares = confusion_matrix(y, model.predict(X), normalize="true")
    np.testing.assert_allclose(np.asarray(display.image_.get_array()), shares)
    names = [shown(label) for label in model.classes_]
    assert [text.get_text() for text in ax.get_xticklabels()] == names
    assert [text.get_text() for text in ax.get_yticklabels()] == names
    assert ax.get_title() == f"Confusion, {np.trace(expected) / 480:.1%} of 480 right"
    again = ConfusionDisplay.from_predictions(pd.Series(y), list(model.predict(X)), ax=ax, colorbar=False)
    np.testing.assert_array_equal(again.confusion, expected)
    assert again.colorbar_ is None and display.colorbar_ is not None


def test_counts_and_shares_are_written_where_there_is_room() -> None:
    confusion = np.array([[1200, 0], [300, 100]])
    large = ConfusionDisplay(confusion=confusion, labels=["a", "b"]).plot()
    assert [text and text.get_text() for text in large.text_.ravel()] == [
        "1,200\n100.0%",
        None,
        "300\n75.0%",
        "100\n25.0%",
    ]
    small = ConfusionDisplay(confusion=confusion, labels=["a", "b"]).plot(Figure(figsize=(1.2, 1.2)).subplots())
    assert {text.get_text() for text in small.text_.ravel() if text} == {"1,200", "300", "100"}
    tiny = ConfusionDisplay(confusion=np.eye(60), labels=np.arange(60)).plot(Figure(figsize=(2, 2)).subplots())
    assert not tiny.text_.any()


def test_labels_that_the_model_does_not_know_and_those_without_documents(two: Any, ax: Any) -> None:
    X, y = two
    model = nfs.SparseMultinomialNB(k=5).fit(X, y)
    strange = np.where(np.arange(len(y)) < 7, "stranger", y)
    with pytest.warns(nfs.DataWarning, match="not fitted to"):
        display = ConfusionDisplay.from_estimator(model, X, strange, ax=ax)
    assert display.confusion.shape == (3, 2) and display.confusion[2].sum() == 7
    assert ax.get_title() == "Confusion"
    empty = ConfusionDisplay(confusion=[[0, 0], [1, 1]], labels=["a", "b"]).plot(ax)
    assert np.isnan(empty.shares[0]).all()


def test_cross_validation_has_them_too(table: Any, ax: Any) -> None:
    display = ConfusionDisplay.from_table(table, k=10, alpha=1.0, ax=ax)
    np.testing.assert_array_equal(display.confusion, table.confusion(k=10, alpha=1.0))


def test_one_class(ax: Any) -> None:
    assert ConfusionDisplay.from_predictions([1, 1], [1, 1], ax=ax).confusion.tolist() == [[2]]


def test_labels_that_do_not_match_are_refused() -> None:
    with pytest.raises(InputError, match="2 true labels but 1 predicted"):
        ConfusionDisplay.from_predictions([1, 2], [1])
    with pytest.raises(InputError, match="y_true are the labels of documents, and row 1 has none"):
        ConfusionDisplay.from_predictions(["a", None], ["a", "a"])
    with pytest.raises(InputError, match="there are none"):
        ConfusionDisplay.from_predictions([], [])
    with pytest.raises(InputError, match=r"confusion have shape \(1, 1\)"):
        ConfusionDisplay(confusion=[[1]], labels=["a", "b"])
    with pytest.raises(InputError, match="table is a str"):
        ConfusionDisplay.from_table("table", k=1)  # type: ignore[arg-type]
