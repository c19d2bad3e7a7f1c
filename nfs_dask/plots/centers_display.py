"""Centers of the classes in the chosen features, as a heat map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.containers import a_type
from nfs_dask.errors import InputError
from nfs_dask.estimators.centers import CentersClassifier
from nfs_dask.estimators.inputs import check_fitted
from nfs_dask.plots.asked_of_models import names_of
from nfs_dask.plots.display import Display, numbers
from nfs_dask.plots.drawing_axes import check_matplotlib, panels, points_of
from nfs_dask.plots.shown_text import as_text, shown
from nfs_dask.plots.styles import SIGNED, finite, font_that_fits, put_title, width_of


class CentersDisplay(Display):
    """Where the center of each class is in each chosen feature.

    Parameters
    ----------
    centers : (C, k)
    labels : (C,)
    names : (k,)
        Of the features.
    common : (k,), optional
        Where the centers would be if a feature had not been chosen; the mean of the centers if not given.
    variances : (k,), optional
        Of the features.
    unit : str
        Of the centers.

    Attributes
    ----------
    ax_, axes_, figure_
    image_, colorbar_
        Of matplotlib: the centers, and what shades mean, or None.
    """

    image_: Any
    colorbar_: Any

    def __init__(
        self,
        *,
        centers: Any,
        labels: Any,
        names: Sequence[str],
        common: Any = None,
        variances: Any = None,
        unit: str = "units of the features",
    ) -> None:
        self.labels, self.names = np.asarray(labels), [str(name) for name in names]
        k = (len(self.names),)
        self.centers = numbers("centers", centers, (len(self.labels), *k))
        if not self.centers.size:
            raise InputError("there are no centers; give those of at least one class and one feature")
        self.common = self.centers.mean(axis=0) if common is None else numbers("common centers", common, k)
        self.variances = None if variances is None else numbers("variances", variances, k)
        self.unit = unit

    @property
    def standardized(self) -> Array:
        """How far each center is from the common one, (C, k).

        In standard deviations where variances are known, else as a share of the largest such distance in the feature;
        of a feature that has none, 0 where centers agree, and infinite where they do not.
        """
        apart = self.centers - self.common
        scale = np.abs(apart).max(axis=0) if self.variances is None else np.sqrt(self.variances)
        infinite = np.copysign(np.inf, apart, where=apart != 0, out=np.zeros(apart.shape))
        return np.divide(apart, scale, out=infinite, where=scale > 0)

    @classmethod
    def from_estimator(
        cls, model: CentersClassifier, n: int = 40, *, sort: bool = True, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw the centers of a fitted `SparseCentroid`.

        Parameters
        ----------
        model : SparseCentroid
        n : int, default=40
            At most so many features: those whose centers are apart most, measured as `standardized` does where
            there are variances, else in units of the features.
        sort : bool, default=True
            Put features beside each other that stand out in the same class; else they are in the order of the data.
        ax : Axes, optional
        **kwargs
            As of `plot`.
        """
        check_matplotlib()
        if not isinstance(model, CentersClassifier):
            raise InputError(f"the model is {a_type(model)} and has no centers; give a fitted SparseCentroid")
        check_fitted(model)
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
            raise InputError(f"n={n!r}; give how many features to draw, such as 40")
        fitted = model.model_
        if not len(fitted.support):
            raise InputError("this SparseCentroid has chosen no features; fit it with a k of one or more")
        seen = fitted.seen
        apart = fitted.centers[seen] - fitted.pooled
        if fitted.variances is not None:
            apart = apart / np.sqrt(np.maximum(fitted.variances, np.finfo(float).tiny))
        best = np.argsort(-np.abs(apart).max(axis=0), kind="stable")[:n]
        best = _side_by_side(apart, best) if sort else np.sort(best)
        display = cls(
            centers=fitted.centers[seen][:, best],
            labels=fitted.classes[seen],
            names=names_of(fitted, best),
            common=fitted.pooled[best],
            variances=None if fitted.variances is None else fitted.variances[best],
            unit="units of the features" if fitted.root is None else "standard deviations",
        )
        return display.plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, standardized: bool = False, colorbar: bool = True, **kwargs: Any) -> Self:
        """Draw the heat map.

        Parameters
        ----------
        ax : Axes, optional
            Where; None: in a new figure.
        standardized : bool, default=False
            Whether to draw `standardized` in place of the centers, so that features of other units can be compared.
        colorbar : bool, default=True
            Whether to say beside it what shades mean.
        **kwargs
            Of the heat map, as `matplotlib.axes.Axes.imshow` takes them.
        """
        n_classes, k = self.centers.shape
        beside, below = width_of(map(shown, self.labels.tolist())), width_of(map(shown, self.names))
        size = min(max(2.6, 0.22 * k), 12.0) + 1.4 + beside, min(max(1.6, 0.24 * n_classes), 9.0) + 0.8 + below
        axes = panels(ax, size=size)
        one = axes[0]
        values = finite(self.standardized if standardized else self.centers)
        looks: dict[str, Any] = {"cmap": SIGNED, "aspect": "auto", "interpolation": "nearest"}
        if standardized:  # gray is the common center, whatever the classes are
            most = np.nanmax(np.abs(values), initial=0.0) or 1.0
            looks |= {"vmin": -most, "vmax": most}
        self.image_ = one.imshow(values, **looks | kwargs)
        self._mark_gaps(one, values)
        self._name_both(one)
        self.colorbar_ = None
        if colorbar:
            self.colorbar_ = one.figure.colorbar(self.image_, ax=one)
            self.colorbar_.set_label(self._measure(standardized))
        put_title(one, f"Centers of the classes{', less the common one' if standardized else ''}")
        self._drawn_on(axes)
        return self

    def _measure(self, standardized: bool) -> str:
        if not standardized:
            return f"center ({self.unit})"
        return "from the common center\n" + (
            "(share of the largest)" if self.variances is None else "(standard deviations)"
        )

    def _mark_gaps(self, ax: Any, values: Array) -> None:
        """A cross where there is no number to draw."""
        rows, columns = np.nonzero(np.isnan(values))
        if len(rows):
            ax.plot(columns, rows, "x", color="black", markersize=5, linestyle="")

    def _name_both(self, ax: Any) -> None:
        width, height = points_of(ax)
        n_classes, k = self.centers.shape
        names, labels = [shown(name) for name in self.names], [shown(label) for label in self.labels.tolist()]
        size = font_that_fits(width / k)
        ax.set_xticks(np.arange(k), labels=names, rotation=90, fontsize=size, **as_text(names))
        ax.set_yticks(
            np.arange(n_classes), labels=labels, fontsize=font_that_fits(height / n_classes), **as_text(labels)
        )
        ax.set_xlabel("chosen feature")
        ax.set_ylabel("class")


def _side_by_side(apart: Array, columns: Array) -> Array:
    """Some features by the class that stands out most in them, and by how much."""
    parts = apart[:, columns]
    class_of = np.abs(parts).argmax(axis=0)
    height = parts[class_of, np.arange(len(columns))]
    return np.asarray(columns[np.lexsort((-height, class_of))])
