"""Displays of what fitted classifiers go by: their features, and centers of classes in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.containers import a_type
from nfs_dask.errors import InputError
from nfs_dask.estimators.centers import CentersClassifier
from nfs_dask.estimators.classifier import SparseClassifier
from nfs_dask.estimators.inputs import check_fitted
from nfs_dask.models.model import Model
from nfs_dask.plots import drawing as d
from nfs_dask.plots.display import Display, check_given, numbers

BEYOND = 1.15  # infinite weights are drawn as bars that are longer than the longest by this
UNITS = {
    "l1": "distance to other classes\n(units of the feature)",
    "l2": "distance to other classes\n(units of the feature)",
    "mahalanobis": "distance to other classes\n(standard deviations)",
    "bernoulli": "weight\n(nats for presence)",
}


def unit_of(method: str) -> str:
    """The unit of the weights of a method, for the axis."""
    return UNITS.get(method, "weight\n(nats per occurrence)")


def _names_of(model: Model, positions: Array) -> list[str]:
    """Names of some of the chosen features; of no others, as all may be many."""
    if model.names is None:
        return [f"x{column}" for column in model.support[positions].tolist()]
    return [model.names[position] for position in positions.tolist()]


def _check_number(what: str, number: Any, least: int, of: str) -> None:
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < least:
        raise InputError(f"{what}={number!r}; give how many features to draw{of}")


class FeaturesDisplay(Display):
    """Weights of the features that speak for each class most.

    Two classes share a picture, with bars to the left for the first and to the right for the second. More have a
    picture each, beside each other.

    Parameters
    ----------
    features : dict of label to list of (name, weight)
        Largest weight first, as `top_features` of an estimator has them.
    unit : str
        What weights are, for the axis.

    Attributes
    ----------
    ax_, axes_, figure_
    bars_ : dict of label to the bars of matplotlib
        In the order of the features. Those of infinite weights are hatched, and longer than the others.
    """

    def __init__(
        self, *, features: Mapping[Any, Sequence[tuple[str, float]]], unit: str = "weight\n(nats per occurrence)"
    ) -> None:
        if not features:
            raise InputError("features are of no class; give those of at least one")
        try:
            self.features = {
                label: [(str(name), float(weight)) for name, weight in pairs] for label, pairs in features.items()
            }
        except (TypeError, ValueError, AttributeError):
            raise InputError(
                "features are no (name, weight) pairs by label; give what top_features() returns"
            ) from None
        self.unit = unit

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        n: int = 10,
        *,
        against: int = 0,
        classes: Sequence[Any] | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the features of a fitted classifier.

        Parameters
        ----------
        model
            A fitted estimator of this package.
        n : int, default=10
            At most so many for each class.
        against : int, default=0
            Of more than two classes: at most so many that speak against a class, below those that speak for it. Of two
            classes those that speak against one are those that speak for the other.
        classes : sequence of labels, optional
            Those to draw; all if not given.
        ax : Axes, or one for each class, optional
        **kwargs
            As of `plot`.
        """
        d.check_matplotlib()
        check_given("the model is", model, SparseClassifier, "a fitted estimator of this package")
        check_fitted(model)
        _check_number("n", n, 1, " for each class, such as 10")
        _check_number("against", against, 0, " for each class, such as 10")
        tops = model.top_features(int(n))
        for label, margin in zip(tops, model.model_.margins(), strict=True) if against and len(tops) > 2 else ():
            worst = np.argsort(margin, kind="stable")[: int(against)][::-1]  # the most against it at the end
            worst = worst[margin[worst] < 0]
            tops[label] = tops[label] + list(zip(_names_of(model.model_, worst), margin[worst].tolist(), strict=True))
        wanted = list(tops) if classes is None else list(classes)
        unknown = [label for label in wanted if label not in tops]
        if unknown or not wanted:
            what = f"the model has no class {unknown[0]!r}" if unknown else "classes are empty"
            raise InputError(f"{what}; its classes are {', '.join(map(repr, list(tops)[:5]))}")
        unit = unit_of(model.model_.method)
        return cls(features={label: tops[label] for label in wanted}, unit=unit).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the bars, on ``ax``, one for all or one for each class, or in a new figure.

        ``kwargs`` are those of `matplotlib.axes.Axes.barh` for the bars.
        """
        labels, longest = list(self.features), max(1, *map(len, self.features.values()))
        names = d.width_of(d.shown(name) for pairs in self.features.values() for name, _ in pairs)
        if len(labels) == 2:
            axes = d.panels(ax, size=(max(6.0, 4.4 + names), 1.2 + 0.2 * 2 * longest))
            self.bars_ = self._plot_two(axes[0], kwargs)
            return self._drawn_on(axes)
        rows, columns = (1, len(labels)) if isinstance(ax, (list, tuple, np.ndarray)) else d.grid_of(len(labels))
        size = (max(4.0, (1.6 + names) * columns), 0.4 + rows * (0.6 + 0.2 * longest))
        axes = d.panels(ax, rows, columns, size=size)
        self.bars_ = {label: self._plot_one(one, label, kwargs) for label, one in zip(labels, axes, strict=False)}
        for one in axes[len(labels) :]:
            one.set_axis_off()
        for one in axes[len(labels) - columns : len(labels)]:
            one.set_xlabel(self.unit, fontsize="small")
        if ax is None and len(labels) > 1:
            axes[0].figure.suptitle("Features that speak for each class most")
        return self._drawn_on(axes)

    def _plot_two(self, ax: Any, kwargs: dict[str, Any]) -> dict[Any, Any]:
        """Bars of the first class to the left, below those of the second to the right."""
        (first, left), (second, right) = self.features.items()
        names = [name for name, _ in right] + [name for name, _ in left[::-1]]
        places = np.arange(len(names))
        bars = {
            first: self._bars(ax, places[len(right) :][::-1], left, -1, {"color": d.ORANGE} | kwargs),
            second: self._bars(ax, places[: len(right)], right, 1, {"color": d.BLUE} | kwargs),
        }
        self._name(ax, names)
        ax.axvline(0, color="black", linewidth=0.8)
        ax.set_xlabel(self.unit.replace("\n", " "))
        ends = [d.shown(label, 24) for label in (first, second)]
        d.put_title(ax, f"← {ends[0]}     features that speak for     {ends[1]} →", ends, settled=True)
        return bars

    def _plot_one(self, ax: Any, label: Any, kwargs: dict[str, Any]) -> Any:
        pairs = self.features[label]
        looks = {"color": [d.BLUE if weight > 0 else d.ORANGE for _, weight in pairs]} | kwargs
        bars = self._bars(ax, np.arange(len(pairs)), pairs, 1, looks)
        self._name(ax, [name for name, _ in pairs])
        title = d.shown(label, 28)
        d.put_title(ax, title, [title], reach=1.0)  # another panel may be beside it
        return bars

    def _bars(self, ax: Any, places: Any, pairs: Sequence[tuple[str, float]], sign: int, looks: dict[str, Any]) -> Any:
        weights = np.array([weight for _, weight in pairs])
        every = np.array([weight for tops in self.features.values() for _, weight in tops])
        longest = np.abs(every[np.isfinite(every)]).max(initial=0.0) if np.isfinite(every).any() else 1.0
        lengths = np.where(np.isinf(weights), np.sign(weights) * BEYOND * longest, weights)
        bars = ax.barh(places, sign * lengths, height=0.75, **looks)
        for bar, weight, place, length in zip(bars, weights, places, sign * lengths, strict=True):
            if np.isinf(weight):
                bar.set(hatch="///", edgecolor="white")
                ax.text(length, place, "∞", ha="left" if length > 0 else "right", va="center")
        return bars

    def _name(self, ax: Any, names: Sequence[str]) -> None:
        """Names of features beside their bars, the first of them on top."""
        if not names:
            ax.set_yticks([])
            ax.text(0.5, 0.5, "no feature\nspeaks for it", ha="center", va="center", transform=ax.transAxes)
            ax.set_xticks([])
            return
        texts = [d.shown(name) for name in names]
        size = d.font_that_fits(d.points_of(ax)[1] / len(texts), least=5.0)
        ax.set_yticks(np.arange(len(texts)), labels=texts, fontsize=size, **d.as_text(texts))
        ax.set_ylim(len(texts) - 0.4, -0.6)
        ax.grid(True, axis="x", color="#d0d0d0", linewidth=0.5)
        ax.set_axisbelow(True)


class CentersDisplay(Display):
    """Centers of the classes in the chosen features, as a heat map.

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
        """Distances of the centers from the common one, (C, k).

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
        d.check_matplotlib()
        if not isinstance(model, CentersClassifier):
            raise InputError(f"the model is {a_type(model)} and has no centers; give a fitted SparseCentroid")
        check_fitted(model)
        _check_number("n", n, 1, ", such as 40")
        fitted = model.model_
        if not len(fitted.support):
            raise InputError("this SparseCentroid has chosen no features; fit it with a k of one or more")
        seen = fitted.seen
        apart = fitted.centers[seen] - fitted.pooled
        if fitted.variances is not None:
            apart = apart / np.sqrt(np.maximum(fitted.variances, np.finfo(float).tiny))
        best = np.argsort(-np.abs(apart).max(axis=0), kind="stable")[:n]
        if sort:  # by the class that stands out most in a feature, and by how much
            parts = apart[:, best]
            class_of = np.abs(parts).argmax(axis=0)
            best = best[np.lexsort((-parts[class_of, np.arange(len(best))], class_of))]
        else:
            best = np.sort(best)
        display = cls(
            centers=fitted.centers[seen][:, best],
            labels=fitted.classes[seen],
            names=_names_of(fitted, best),
            common=fitted.pooled[best],
            variances=None if fitted.variances is None else fitted.variances[best],
            unit="units of the features" if fitted.root is None else "standard deviations",
        )
        return display.plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, standardized: bool = False, colorbar: bool = True, **kwargs: Any) -> Self:
        """Draw the heat map, on ``ax`` or in a new figure.

        ``standardized`` distances from the common center make features of other units comparable. ``colorbar`` says
        what shades mean. ``kwargs`` are those of `matplotlib.axes.Axes.imshow` for the heat map.
        """
        n_classes, k = self.centers.shape
        beside, below = d.width_of(map(d.shown, self.labels.tolist())), d.width_of(map(d.shown, self.names))
        size = min(max(2.6, 0.22 * k), 12.0) + 1.4 + beside, min(max(1.6, 0.24 * n_classes), 9.0) + 0.8 + below
        axes = d.panels(ax, size=size)
        one = axes[0]
        values = d.finite(self.standardized if standardized else self.centers)
        looks: dict[str, Any] = {"cmap": d.SIGNED, "aspect": "auto", "interpolation": "nearest"}
        if standardized:  # gray is the common center, whatever the classes are
            most = np.nanmax(np.abs(values), initial=0.0) or 1.0
            looks |= {"vmin": -most, "vmax": most}
        self.image_ = one.imshow(values, **looks | kwargs)
        rows, columns = np.nonzero(np.isnan(values))
        if len(rows):  # a cross where there is no number to draw
            one.plot(columns, rows, "x", color="black", markersize=5, linestyle="")
        width, height = d.points_of(one)
        names, labels = [d.shown(name) for name in self.names], [d.shown(label) for label in self.labels.tolist()]
        sizes = d.font_that_fits(width / k), d.font_that_fits(height / n_classes)
        one.set_xticks(np.arange(k), labels=names, rotation=90, fontsize=sizes[0], **d.as_text(names))
        one.set_yticks(np.arange(n_classes), labels=labels, fontsize=sizes[1], **d.as_text(labels))
        one.set_xlabel("chosen feature")
        one.set_ylabel("class")
        self.colorbar_: Any = None
        if colorbar:
            measure = f"center ({self.unit})"
            if standardized:
                of = "(share of the largest)" if self.variances is None else "(standard deviations)"
                measure = f"from the common center\n{of}"
            self.colorbar_ = one.figure.colorbar(self.image_, ax=one)
            self.colorbar_.set_label(measure)
        d.put_title(one, f"Centers of the classes{', less the common one' if standardized else ''}")
        return self._drawn_on(axes)
