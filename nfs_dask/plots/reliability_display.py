"""Calibration: how often a classifier is right, beside how sure it was."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.containers import a_type
from nfs_dask.errors import InputError
from nfs_dask.plots.asked_of_models import confidence_of, evaluation_of
from nfs_dask.plots.display import Display, numbers
from nfs_dask.plots.drawing_axes import check_matplotlib, panels
from nfs_dask.plots.shown_text import legend_name
from nfs_dask.plots.styles import (
    BLACK,
    in_percent,
    in_thousands,
    line_style,
    lines_on,
    put_legend,
    put_title,
    quiet_grid,
)
from nfs_dask.prediction.coverage import UNIT, Reliability
from nfs_dask.prediction.evaluation import Evaluation, wilson


class ReliabilityDisplay(Display):
    """Accuracy of documents against the posterior of the class they are predicted to be of, and how many they are.

    Parameters
    ----------
    documents, right : (bins,)
        Documents in bins of equal width of that posterior, and those of them that are predicted rightly.
    posterior : (bins,)
        The mean of that posterior; NaN in bins without documents.
    name : str, optional
        Of the classifier, for the legend.

    Attributes
    ----------
    accuracy : (bins,)
        NaN in bins without documents.
    expected_error : float
        The expected calibration error: the mean distance of accuracy and posterior, over documents.
    ax_, axes_, figure_
        The axes of accuracies; these and those of numbers of documents; their figure.
    line_, intervals_, bars_, perfect_line_
        Of matplotlib: accuracies, their 95 % intervals, numbers of documents, and where accuracies would be equal to
        posteriors.
    """

    line_: Any
    intervals_: Any
    bars_: Any
    perfect_line_: Any

    def __init__(self, *, documents: Any, right: Any, posterior: Any, name: str | None = None) -> None:
        self.documents = numbers("documents", documents, (None,)).astype(np.int64)
        n = (len(self.documents),)
        self.right, self.posterior = numbers("right", right, n).astype(np.int64), numbers("posteriors", posterior, n)
        if not self.documents.sum():
            raise InputError("there are no documents to judge by; give at least one")
        self.name = name

    @property
    def accuracy(self) -> Array:
        """Share of the documents of each bin that are predicted rightly, (bins,)."""
        empty = np.full(len(self.documents), np.nan)
        return np.divide(self.right, self.documents, out=empty, where=self.documents > 0)

    @property
    def expected_error(self) -> float:
        """The mean distance of accuracy and posterior, over documents."""
        some = self.documents > 0
        apart = np.abs(self.accuracy - self.posterior)[some]
        return float(np.average(apart, weights=self.documents[some]))

    @classmethod
    def from_reliability(
        cls, reliability: Reliability, *, name: str | None = None, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw what was counted: ``evaluate(...).confidence.reliability``.

        Parameters
        ----------
        reliability : Reliability
        name : str, optional
        ax : Axes or two of them, optional
        **kwargs
            As of `plot`.
        """
        check_matplotlib()
        if not isinstance(reliability, Reliability):
            raise InputError(f"this is {a_type(reliability)}; give evaluate(...).confidence.reliability")
        n = reliability.documents
        posterior = np.divide(reliability.confidence / UNIT, n, out=np.full(len(n), np.nan), where=n > 0)
        display = cls(documents=n, right=reliability.right, posterior=posterior, name=name)
        return display.plot(ax, **kwargs)

    @classmethod
    def from_evaluation(cls, evaluation: Evaluation, *, name: str | None = None, ax: Any = None, **kwargs: Any) -> Self:
        """Draw what `nfs_dask.evaluate` has returned.

        Parameters
        ----------
        evaluation : Evaluation
        name : str, optional
        ax : Axes or two of them, optional
        **kwargs
            As of `plot`.
        """
        check_matplotlib()
        return cls.from_reliability(confidence_of(evaluation).reliability, name=name, ax=ax, **kwargs)

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, y: Any = None, *, name: str | None = None, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Evaluate a fitted classifier, and draw that.

        Parameters
        ----------
        model
            A fitted estimator of this package that has probabilities.
        X, y
            As of `nfs_dask.evaluate`.
        name : str, optional
            That of its class if not given.
        ax : Axes or two of them, optional
        **kwargs
            As of `plot`.
        """
        evaluation = evaluation_of(model, X, y)
        return cls.from_evaluation(evaluation, name=name or type(model).__name__, ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        posteriors: Any,
        *,
        classes: Any = None,
        bins: int = 10,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw how some probabilities compare with what came true.

        Parameters
        ----------
        y_true : (n,) labels
        posteriors : (n,) of the second class of two, or (n, C)
            What `predict_proba` returns.
        classes : (C,) labels, optional
            In the order of the posteriors.
        bins : int, default=10
        name : str, optional
        ax : Axes or two of them, optional
        **kwargs
            As of `plot`.
        """
        check_matplotlib()
        counted = Reliability.of(posteriors, y_true, classes=classes, bins=bins)
        return cls.from_reliability(counted, name=name, ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw accuracies above numbers of documents.

        Parameters
        ----------
        ax : Axes or two of them, optional
            Where; in the place of one, two panels are made. None: in a new figure.
        **kwargs
            Of the line of accuracies, as `matplotlib.axes.Axes.plot` takes them.
        """
        axes = panels(ax, 2, size=(5.0, 5.2), heights=(2.6, 1))
        first = lines_on(axes[0])
        self._plot_accuracies(axes[0], first, kwargs)
        self._plot_documents(axes[1], max(first - 1, 0))
        left = np.flatnonzero(self.documents)[0] / len(self.documents) - 0.01
        left = min(left, axes[0].get_xlim()[0]) if first else left
        for one in axes:
            one.set_xlim(left, 1.01)
            in_percent(one.xaxis)
            quiet_grid(one)
        axes[0].tick_params(labelbottom=False)
        axes[1].set_xlabel("posterior of the predicted class (%)")
        self._drawn_on(axes)
        return self

    def _plot_accuracies(self, ax: Any, first: int, kwargs: dict[str, Any]) -> None:
        if not first:
            (perfect,) = ax.plot([0, 1], [0, 1], color=BLACK, linewidth=1, linestyle=":", label="as sure as right")
            ax.set_ylim(-0.02, 1.02)
        else:
            perfect = ax.lines[0]
        self.perfect_line_ = perfect
        some = np.flatnonzero(self.documents)
        label = legend_name(self.name or "accuracy") + f", off by {100 * self.expected_error:.2g} points"
        style = {"label": label} | line_style(max(first - 1, 0), len(some)) | kwargs
        (self.line_,) = ax.plot(self.posterior[some], self.accuracy[some], **style)
        ends = np.array([wilson(int(self.right[b]), int(self.documents[b])) for b in some])
        color = self.line_.get_color()
        self.intervals_ = ax.vlines(self.posterior[some], ends[:, 0], ends[:, 1], color=color, linewidth=1)
        in_percent(ax.yaxis)
        ax.set_ylabel("accuracy (%)")
        put_title(ax, "Calibration, with intervals of 95 %")
        put_legend(ax)

    def _plot_documents(self, ax: Any, i: int) -> None:
        """How many documents are in each bin; of a second classifier as outlines, which leave those of the first."""
        bins = len(self.documents)
        looks = {"facecolor": "none", "linewidth": 1.4, "linestyle": "--"} if i else {"alpha": 0.6}
        looks |= {"edgecolor": self.line_.get_color()} if i else {"color": self.line_.get_color()}
        self.bars_ = ax.bar(np.arange(bins) / bins, self.documents, width=1 / bins, align="edge", **looks)
        in_thousands(ax.yaxis)
        ax.set_ylabel("documents")
