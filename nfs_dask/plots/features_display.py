"""Features that speak for each class most, as bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from nfs_dask.containers import a_type
from nfs_dask.errors import InputError
from nfs_dask.estimators.classifier import SparseClassifier
from nfs_dask.estimators.inputs import check_fitted
from nfs_dask.models.model import Model
from nfs_dask.plots.asked_of_models import names_of
from nfs_dask.plots.display import Display
from nfs_dask.plots.drawing_axes import check_matplotlib, grid_of, panels, points_of
from nfs_dask.plots.shown_text import as_text, shown
from nfs_dask.plots.styles import BLUE, ORANGE, font_that_fits, put_title, width_of

BEYOND = 1.15  # infinite weights are drawn as bars that are longer than the longest by this
UNITS = {
    "l1": "distance to other classes\n(units of the feature)",
    "l2": "distance to other classes\n(units of the feature)",
    "mahalanobis": "distance to other classes\n(standard deviations)",
    "bernoulli": "weight\n(nats for presence)",
}


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

    bars_: dict[Any, Any]

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
        check_matplotlib()
        if not isinstance(model, SparseClassifier):
            raise InputError(f"the model is {a_type(model)}; give a fitted estimator of this package")
        check_fitted(model)
        for what, number, least in (("n", n, 1), ("against", against, 0)):
            if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < least:
                raise InputError(f"{what}={number!r}; give how many features to draw for each class, such as 10")
        tops = model.top_features(int(n))
        if against and len(tops) > 2:
            tops = {label: tops[label] + worst for label, worst in _against(model.model_, int(against)).items()}
        wanted = list(tops) if classes is None else list(classes)
        unknown = [label for label in wanted if label not in tops]
        if unknown or not wanted:
            what = f"the model has no class {unknown[0]!r}" if unknown else "classes are empty"
            raise InputError(f"{what}; its classes are {', '.join(map(repr, list(tops)[:5]))}")
        unit = unit_of(model.model_.method)
        return cls(features={label: tops[label] for label in wanted}, unit=unit).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the bars.

        Parameters
        ----------
        ax : Axes, or one for each class, optional
            Where; in the place of one, several panels are made. None: in a new figure.
        **kwargs
            Of the bars, as `matplotlib.axes.Axes.barh` takes them.
        """
        labels, longest = list(self.features), max(1, *map(len, self.features.values()))
        names = width_of(shown(name) for pairs in self.features.values() for name, _ in pairs)
        if len(labels) == 2:
            axes = panels(ax, size=(max(6.0, 4.4 + names), 1.2 + 0.2 * 2 * longest))
            self.bars_ = self._plot_two(axes[0], kwargs)
            self._drawn_on(axes)
            return self
        rows, columns = (1, len(labels)) if isinstance(ax, (list, tuple, np.ndarray)) else grid_of(len(labels))
        size = (max(4.0, (1.6 + names) * columns), 0.4 + rows * (0.6 + 0.2 * longest))
        axes = panels(ax, rows, columns, size=size)
        self.bars_ = {label: self._plot_one(one, label, kwargs) for label, one in zip(labels, axes, strict=False)}
        for one in axes[len(labels) :]:
            one.set_axis_off()
        for one in axes[len(labels) - columns : len(labels)]:
            one.set_xlabel(self.unit, fontsize="small")
        if ax is None and len(labels) > 1:
            axes[0].figure.suptitle("Features that speak for each class most")
        self._drawn_on(axes)
        return self

    def _plot_two(self, ax: Any, kwargs: dict[str, Any]) -> dict[Any, Any]:
        """Bars of the first class to the left, below those of the second to the right."""
        (first, left), (second, right) = self.features.items()
        names = [name for name, _ in right] + [name for name, _ in left[::-1]]
        places = np.arange(len(names))
        bars = {
            first: self._bars(ax, places[len(right) :][::-1], left, -1, {"color": ORANGE} | kwargs),
            second: self._bars(ax, places[: len(right)], right, 1, {"color": BLUE} | kwargs),
        }
        self._name(ax, names)
        ax.axvline(0, color="black", linewidth=0.8)
        ax.set_xlabel(self.unit.replace("\n", " "))
        ends = [shown(label, 24) for label in (first, second)]
        put_title(ax, f"← {ends[0]}     features that speak for     {ends[1]} →", ends, settled=True)
        return bars

    def _plot_one(self, ax: Any, label: Any, kwargs: dict[str, Any]) -> Any:
        pairs = self.features[label]
        bars = self._bars(
            ax,
            np.arange(len(pairs)),
            pairs,
            1,
            {"color": [BLUE if weight > 0 else ORANGE for _, weight in pairs]} | kwargs,
        )
        self._name(ax, [name for name, _ in pairs])
        title = shown(label, 28)
        put_title(ax, title, [title], reach=1.0)  # another panel may be beside it
        return bars

    def _bars(self, ax: Any, places: Any, pairs: Sequence[tuple[str, float]], sign: int, looks: dict[str, Any]) -> Any:
        weights = np.array([weight for _, weight in pairs])
        finite = [weight for tops in self.features.values() for _, weight in tops if np.isfinite(weight)]
        lengths = np.where(np.isinf(weights), np.sign(weights) * BEYOND * max(map(abs, finite), default=1.0), weights)
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
        texts = [shown(name) for name in names]
        size = font_that_fits(points_of(ax)[1] / len(texts), least=5.0)
        ax.set_yticks(np.arange(len(texts)), labels=texts, fontsize=size, **as_text(texts))
        ax.set_ylim(len(texts) - 0.4, -0.6)
        ax.grid(True, axis="x", color="#d0d0d0", linewidth=0.5)
        ax.set_axisbelow(True)


def unit_of(method: str) -> str:
    """What weights of a method are, for the axis."""
    return UNITS.get(method, "weight\n(nats per occurrence)")


def _against(model: Model, n: int) -> dict[Any, list[tuple[str, float]]]:
    """For each class up to n features that speak against it most: the least of them first, the most at the end."""
    found = {}
    for label, margin in zip(model.classes.tolist(), model.margins(), strict=True):
        worst = np.argsort(margin, kind="stable")[:n][::-1]
        worst = worst[margin[worst] < 0]
        found[label] = list(zip(names_of(model, worst), margin[worst].tolist(), strict=True))
    return found
