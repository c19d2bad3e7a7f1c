"""Centers: the heat map has the centers of the estimator, or how far they are from the common one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfs_dask as nfs
from nfs_dask import InputError
from nfs_dask.plots import CentersDisplay
from nfs_dask.plots.drawing import shown


def centers_by_name(X: Any, y: Any, names: list[str]) -> Any:
    return np.array([X[y == label][names].mean(axis=0) for label in np.unique(y)])


@pytest.mark.parametrize("sort", [True, False])
def test_cells_are_the_means_of_the_classes(three: Any, ax: Any, sort: bool) -> None:
    X, y = three
    model = nfs.SparseCentroid(k=20).fit(X, y)
    display = CentersDisplay.from_estimator(model, 8, sort=sort, ax=ax)
    assert display.image_.get_array().shape == (3, 8)
    np.testing.assert_allclose(np.asarray(display.image_.get_array()), centers_by_name(X, y, display.names))
    assert [text.get_text() for text in ax.get_xticklabels()] == [shown(name) for name in display.names]
    assert [text.get_text() for text in ax.get_yticklabels()] == [shown(label) for label in model.classes_]
    apart = np.abs(model.centers_ - model.common_center_).max(axis=0)
    best = np.array(model.model_.feature_names)[np.argsort(-apart)[:8]]
    assert set(display.names) == set(best)
    if not sort:
        assert display.names == [name for name in X.columns if name in set(best)]


def test_standardized_by_standard_deviations_or_by_the_largest(three: Any, ax: Any) -> None:
    X, y = three
    model = nfs.SparseCentroid(k=10, metric="mahalanobis").fit(X, y)
    display = CentersDisplay.from_estimator(model, ax=ax, standardized=True)
    columns = [model.model_.feature_names.index(name) for name in display.names]
    expected = (model.centers_ - model.common_center_)[:, columns] / np.sqrt(model.model_.variances[columns])
    drawn = np.asarray(display.image_.get_array())
    np.testing.assert_allclose(drawn, expected)
    assert display.image_.get_clim() == pytest.approx((-np.abs(expected).max(), np.abs(expected).max()))
    assert "standard deviations" in display.colorbar_.ax.get_ylabel()
    medians = nfs.SparseCentroid(k=10, metric="manhattan").fit(X, y)
    other = CentersDisplay.from_estimator(medians, ax=ax, standardized=True, colorbar=False)
    largest = np.abs(np.asarray(other.image_.get_array())).max(axis=0)
    assert set(largest.tolist()) <= {0.0, 1.0} and other.colorbar_ is None


def test_features_without_variance_and_one_class(ax: Any) -> None:
    display = CentersDisplay(centers=[[0, 1], [2, 1]], labels=["a", "b"], names=["$x$", "y"], variances=[0, 0])
    assert display.standardized.tolist() == [[-np.inf, 0], [np.inf, 0]]
    drawn = display.plot(ax, standardized=True)
    assert np.ma.getmaskarray(drawn.image_.get_array())[:, 0].all() or np.isnan(drawn.image_.get_array())[:, 0].all()
    assert ax.lines[0].get_xdata().tolist() == [0, 0]
    with pytest.warns(nfs.DataWarning, match="all labels are"):
        alone = nfs.SparseCentroid(k=1).fit([[1.0, 2.0], [1.0, 3.0]], ["a", "a"])
    assert CentersDisplay.from_estimator(alone, ax=ax).centers.shape == (1, 1)


def test_whitened_features_have_the_names_of_the_nearest(three: Any, ax: Any) -> None:
    X, y = three
    model = nfs.SparseCentroid(k=6, metric="mahalanobis", covariance="full", variance_floor=0.1).fit(X, y)
    display = CentersDisplay.from_estimator(model, sort=False, ax=ax)
    assert display.names == model.get_feature_names_out().tolist()
    np.testing.assert_array_equal(np.asarray(display.image_.get_array()), model.centers_)
    assert "standard deviations" in display.colorbar_.ax.get_ylabel()
    unnamed = nfs.SparseCentroid(k=2).fit(X.to_numpy(), y)
    expected = [f"x{i}" for i in unnamed.get_support(indices=True)]
    assert CentersDisplay.from_estimator(unnamed, sort=False, ax=ax).names == expected


def test_other_things_are_refused(two: Any) -> None:
    model = nfs.SparseMultinomialNB(k=3).fit(*two)
    with pytest.raises(InputError, match="the model is a SparseMultinomialNB and has no centers"):
        CentersDisplay.from_estimator(model)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="n=0; give how many features"):
        CentersDisplay.from_estimator(nfs.SparseCentroid(k=1).fit(*two), 0)
    with pytest.raises(InputError, match="no centers; give those"):
        CentersDisplay(centers=np.zeros((0, 0)), labels=[], names=[])
