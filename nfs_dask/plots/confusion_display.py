"""Confusion: which classes documents of each class were given."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.containers import a_type
from nfs_dask.errors import InputError
from nfs_dask.plots.asked_of_models import checked_evaluation, evaluation_of
from nfs_dask.plots.display import Display, numbers
from nfs_dask.plots.drawing_axes import check_matplotlib, panels, points_of
from nfs_dask.plots.shown_text import as_text, shown
from nfs_dask.plots.styles import SHARES, font_that_fits, put_title, width_of
from nfs_dask.prediction.evaluation import Evaluation, confusion_of
from nfs_dask.selection.validation_table import CrossValidation

ROOM_FOR_BOTH = 30.0  # points of a cell that has the count and the share
ROOM_FOR_ONE = 9.0  # points of one that has the count


class ConfusionDisplay(Display):
    """Documents of each class by the class they were given: counts in cells, shares as shades.

    Parameters
    ----------
    confusion : (L, C)
        Documents of each label (rows) that were given each class (columns).
    labels : (L,)
        What the documents are.
    classes : (C,), optional
        What they may be given; the labels if not given.

    Attributes
    ----------
    shares : (L, C)
        Of the documents of each label; NaN for a label without documents.
    ax_, axes_, figure_
    image_, colorbar_
        Of matplotlib: the shares, and what shades mean, or None.
    text_ : (L, C) of matplotlib's texts
        None where a cell has no room, or no documents.
    """

    image_: Any
    colorbar_: Any
    text_: Array

    def __init__(self, *, confusion: Any, labels: Any, classes: Any = None) -> None:
        self.labels = np.asarray(labels)
        self.classes = self.labels if classes is None else np.asarray(classes)
        if not len(self.labels) or not len(self.classes):
            raise InputError("there are no labels; give at least one")
        self.confusion = numbers("confusion", confusion, (len(self.labels), len(self.classes)))

    @property
    def shares(self) -> Array:
        """Of the documents of each label those that were given each class, (L, C)."""
        n = self.confusion.sum(axis=1, keepdims=True)
        return np.divide(self.confusion, n, out=np.full(self.confusion.shape, np.nan), where=n > 0)

    @classmethod
    def from_evaluation(cls, evaluation: Evaluation, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw what `nfs_dask.evaluate` has returned.

        Parameters
        ----------
        evaluation : Evaluation
        ax : Axes, optional
        **kwargs
            As of `plot`.
        """
        check_matplotlib()
        found = checked_evaluation(evaluation)
        return cls(confusion=found.confusion, labels=found.labels, classes=found.classes).plot(ax, **kwargs)

    @classmethod
    def from_estimator(cls, model: Any, X: Any, y: Any = None, *, ax: Any = None, **kwargs: Any) -> Self:
        """Evaluate a fitted classifier, and draw that.

        Parameters
        ----------
        model
            A fitted estimator of this package.
        X, y
            As of `nfs_dask.evaluate`.
        ax : Axes, optional
        **kwargs
            As of `plot`.
        """
        return cls.from_evaluation(evaluation_of(model, X, y), ax=ax, **kwargs)

    @classmethod
    def from_predictions(cls, y_true: Any, y_pred: Any, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw how labels that were predicted compare with the true ones.

        Parameters
        ----------
        y_true, y_pred : (n,) labels
            In memory, or of Dask.
        ax : Axes, optional
        **kwargs
            As of `plot`.
        """
        check_matplotlib()
        labels, confusion = confusion_of(y_true, y_pred)
        return cls(confusion=confusion, labels=labels).plot(ax, **kwargs)

    @classmethod
    def from_table(
        cls, table: CrossValidation, *, k: int, alpha: float | None = None, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw what models of one k did in `nfs_dask.cross_validate`, over all folds.

        Parameters
        ----------
        table : CrossValidation
        k : int
        alpha : float, optional
            May be left out where there is one.
        ax : Axes, optional
        **kwargs
            As of `plot`.
        """
        check_matplotlib()
        if not isinstance(table, CrossValidation):
            raise InputError(f"table is {a_type(table)}; give what nfs_dask.cross_validate(...) returns")
        return cls(confusion=table.confusion(k=k, alpha=alpha), labels=table.classes).plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, colorbar: bool = True, **kwargs: Any) -> Self:
        """Draw the matrix.

        Parameters
        ----------
        ax : Axes, optional
            Where; None: in a new figure.
        colorbar : bool, default=True
            Whether to say beside it what shades mean.
        **kwargs
            Of the matrix, as `matplotlib.axes.Axes.imshow` takes them.
        """
        side = min(max(2.4, 0.36 * max(self.confusion.shape)), 12.0)
        names = width_of(map(shown, [*self.labels.tolist(), *self.classes.tolist()]))
        axes = panels(ax, size=(side + names + 1.5, side + (names if len(self.classes) > 3 else 0.2) + 0.8))
        one = axes[0]
        looks: dict[str, Any] = {"cmap": SHARES, "vmin": 0, "vmax": 1, "aspect": "equal", "interpolation": "nearest"}
        self.image_ = one.imshow(self.shares, **looks | kwargs)
        self.colorbar_ = None
        if colorbar:
            self.colorbar_ = one.figure.colorbar(self.image_, ax=one, shrink=0.8)
            self.colorbar_.set_label("share of the true class (%)")
            in_hundredths(self.colorbar_)
        self._name_classes(one)
        self._write_counts(one)
        right = np.trace(self.confusion) if np.array_equal(self.labels, self.classes) else None
        n = self.confusion.sum()
        of = f", {right / n:.1%} of {n:,.0f} right" if right is not None and n else ""
        put_title(one, f"Confusion{of}")
        self._drawn_on(axes)
        return self

    def _name_classes(self, ax: Any) -> None:
        width, height = points_of(ax)
        for set_ticks, names, room in ((ax.set_xticks, self.classes, width), (ax.set_yticks, self.labels, height)):
            texts = [shown(name) for name in names.tolist()]
            size = font_that_fits(room / len(texts))
            upright = set_ticks == ax.set_xticks and max(map(len, texts)) * 0.6 * size > room / len(texts)
            turned = {"rotation": 90} if upright else {}
            set_ticks(np.arange(len(texts)), labels=texts, fontsize=size, **turned, **as_text(texts))
        ax.set_xlabel("predicted class")
        ax.set_ylabel("true class")

    def _write_counts(self, ax: Any) -> None:
        """Counts in the cells that have documents, with shares where there is room for them."""
        width, height = points_of(ax, settled=True)
        room = min(width / len(self.classes), height / len(self.labels))
        shares, self.text_ = self.shares, np.full(self.confusion.shape, None, object)
        if room < ROOM_FOR_ONE:
            return
        digits = max(len(f"{self.confusion.max():,.0f}"), 5 if room >= ROOM_FOR_BOTH else 1)
        size = font_that_fits(room / (0.62 * digits), least=3.5)
        for row, column in np.argwhere(self.confusion > 0).tolist():
            text = f"{self.confusion[row, column]:,.0f}"
            text += f"\n{shares[row, column]:.1%}" if room >= ROOM_FOR_BOTH else ""
            color = "white" if shares[row, column] > 0.55 else "black"
            self.text_[row, column] = ax.text(column, row, text, ha="center", va="center", color=color, fontsize=size)


def in_hundredths(colorbar: Any) -> None:
    """Write the shares of a color bar as percentages."""
    from matplotlib.ticker import PercentFormatter

    colorbar.formatter = PercentFormatter(xmax=1)
    colorbar.update_ticks()
