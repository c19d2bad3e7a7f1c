"""Accuracy over coverage: how good a classifier is where it is most confident."""

from __future__ import annotations

from typing import Any, Self

from nfs_dask.containers import a_type
from nfs_dask.errors import InputError
from nfs_dask.plots.asked_of_models import confidence_of, evaluation_of
from nfs_dask.plots.display import Display, numbers
from nfs_dask.plots.drawing_axes import check_matplotlib, panels
from nfs_dask.plots.shown_text import legend_name
from nfs_dask.plots.styles import finite, in_percent, line_style, lines_on, put_legend, put_title, quiet_grid
from nfs_dask.prediction.coverage import Curve, accuracy_coverage
from nfs_dask.prediction.evaluation import Evaluation


class CoverageDisplay(Display):
    """Accuracy of the documents a classifier is most confident of, against their share.

    Parameters
    ----------
    coverage, accuracy : (points,)
        Shares of the documents, ascending, and the accuracy among as many.
    n : int, optional
        How many documents there are.
    name : str, optional
        Of the classifier, for the legend.

    Attributes
    ----------
    ax_, axes_, figure_
    line_, full_line_
        Of matplotlib: the curve, and the accuracy on all documents.
    """

    line_: Any
    full_line_: Any

    def __init__(self, *, coverage: Any, accuracy: Any, n: int | None = None, name: str | None = None) -> None:
        self.coverage = numbers("coverages", coverage, (None,))
        self.accuracy = numbers("accuracies", accuracy, (len(self.coverage),))
        if not len(self.coverage):
            raise InputError("the curve has no points; give at least one")
        self.n, self.name = n, name

    @classmethod
    def from_curve(cls, curve: Curve, *, name: str | None = None, ax: Any = None, **kwargs: Any) -> Self:
        """Draw what `nfs_dask.accuracy_coverage` has returned.

        Parameters
        ----------
        curve : Curve
        name : str, optional
        ax : Axes, optional
        **kwargs
            As of `plot`.
        """
        check_matplotlib()
        if not isinstance(curve, Curve):
            raise InputError(f"curve is {a_type(curve)}; give what nfs_dask.accuracy_coverage(...) returns")
        return cls(coverage=curve.coverage, accuracy=curve.accuracy, n=curve.n, name=name).plot(ax, **kwargs)

    @classmethod
    def from_evaluation(cls, evaluation: Evaluation, *, name: str | None = None, ax: Any = None, **kwargs: Any) -> Self:
        """Draw what `nfs_dask.evaluate` has returned.

        Parameters
        ----------
        evaluation : Evaluation
        name : str, optional
        ax : Axes, optional
        **kwargs
            As of `plot`.
        """
        check_matplotlib()
        return cls.from_curve(confidence_of(evaluation).counts.curve(), name=name, ax=ax, **kwargs)

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
        ax : Axes, optional
        **kwargs
            As of `plot`.
        """
        evaluation = evaluation_of(model, X, y)
        return cls.from_evaluation(evaluation, name=name or type(model).__name__, ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        scores: Any,
        *,
        classes: Any = None,
        at_zero: int = 1,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the curve of some scores.

        Parameters
        ----------
        y_true : (n,) labels
        scores : (n,) log odds of the second class of two, or (n, C) log probabilities
            As of `nfs_dask.accuracy_coverage`.
        classes : (C,) labels, optional
            In the order of the scores.
        at_zero : int, default=1
            Class that log odds of exactly 0 predict, as of `nfs_dask.accuracy_coverage`; 0 of the models here.
        name : str, optional
        ax : Axes, optional
        **kwargs
            As of `plot`.
        """
        check_matplotlib()
        return cls.from_curve(
            accuracy_coverage(scores, y_true, classes=classes, at_zero=at_zero), name=name, ax=ax, **kwargs
        )

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the curve, and the accuracy on all documents.

        Parameters
        ----------
        ax : Axes, optional
            Where; None: in a new figure.
        **kwargs
            Of the curve, as `matplotlib.axes.Axes.plot` takes them.
        """
        axes = panels(ax, size=(6.0, 4.0))
        one, first = axes[0], lines_on(axes[0])
        label = legend_name(self.name or "accuracy")
        label += f", {self.accuracy[-1]:.1%} of all" + (f" {self.n:,}" if self.n else "")
        style = {"label": label} | line_style(first, len(self.coverage)) | kwargs
        (self.line_,) = one.plot(self.coverage, finite(self.accuracy), **style)
        color = self.line_.get_color()
        self.full_line_ = one.axhline(self.accuracy[-1], color=color, linewidth=0.8, linestyle=(0, (1, 2)))
        in_percent(one.xaxis)
        in_percent(one.yaxis)
        one.set_xlim(0, 1)
        one.set_xlabel("coverage (% of documents, the most confident first)")
        one.set_ylabel("accuracy among them (%)")
        put_title(one, "Accuracy of the most confident documents")
        quiet_grid(one)
        put_legend(one)
        self._drawn_on(axes)
        return self
