"""Displays of predictions of documents whose labels are known: confusion, coverage and calibration."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError
from nfs_dask.estimators.evaluating import evaluate
from nfs_dask.plots import drawing as d
from nfs_dask.plots.display import Display, check_given, numbers
from nfs_dask.prediction.coverage import UNIT, Curve, Reliability, accuracy_coverage
from nfs_dask.prediction.evaluation import Confidence, Evaluation, confusion_of, wilson
from nfs_dask.selection.validation_table import CrossValidation

ROOM_FOR_BOTH = 30.0  # points of a cell that has the count and the share
ROOM_FOR_ONE = 9.0  # points of one that has the count


def _check_evaluation(evaluation: Any) -> None:
    check_given("the evaluation is", evaluation, Evaluation, "what nfs_dask.evaluate(model, X, y) returns")


class _ConfidenceDisplay(Display):
    """A display of how sure a classifier is, with the constructors that all of them have."""

    name: str | None

    @classmethod
    def _from_confidence(cls, confidence: Confidence, name: str | None, ax: Any, kwargs: dict[str, Any]) -> Self:
        raise NotImplementedError

    @classmethod
    def from_evaluation(cls, evaluation: Evaluation, *, name: str | None = None, ax: Any = None, **kwargs: Any) -> Self:
        """Draw what `nfs_dask.evaluate` has returned, of a model with probabilities.

        ``name`` is that of the classifier, for the legend; other arguments are those of `plot`.
        """
        d.check_matplotlib()
        _check_evaluation(evaluation)
        confidence = evaluation.confidence
        if confidence is None and len(evaluation.classes) == 1:
            raise InputError("this evaluation is of a model of one class, which it is always sure of; fit it to more")
        if confidence is None:
            raise InputError(
                "this evaluation is of a model that measures distances and has no probabilities; take one of naive "
                'Bayes, or SparseCentroid(metric="mahalanobis")'
            )
        return cls._from_confidence(confidence, name, ax, kwargs)

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, y: Any = None, *, name: str | None = None, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Evaluate a fitted classifier that has probabilities on X and y, as `nfs_dask.evaluate` does, and draw that.

        ``name`` is that of its class if not given; other arguments are those of `plot`.
        """
        d.check_matplotlib()
        return cls.from_evaluation(evaluate(model, X, y), name=name or type(model).__name__, ax=ax, **kwargs)


class CoverageDisplay(_ConfidenceDisplay):
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

    def __init__(self, *, coverage: Any, accuracy: Any, n: int | None = None, name: str | None = None) -> None:
        self.coverage = numbers("coverages", coverage, (None,))
        self.accuracy = numbers("accuracies", accuracy, (len(self.coverage),))
        if not len(self.coverage):
            raise InputError("the curve has no points; give at least one")
        self.n, self.name = n, name

    @classmethod
    def _from_confidence(cls, confidence: Confidence, name: str | None, ax: Any, kwargs: dict[str, Any]) -> Self:
        return cls.from_curve(confidence.counts.curve(), name=name, ax=ax, **kwargs)

    @classmethod
    def from_curve(cls, curve: Curve, *, name: str | None = None, ax: Any = None, **kwargs: Any) -> Self:
        """Draw what `nfs_dask.accuracy_coverage` has returned; other arguments are those of `from_evaluation`."""
        d.check_matplotlib()
        check_given("curve is", curve, Curve, "what nfs_dask.accuracy_coverage(...) returns")
        return cls(coverage=curve.coverage, accuracy=curve.accuracy, n=curve.n, name=name).plot(ax, **kwargs)

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
        name, ax, **kwargs
            As of `from_evaluation`.
        """
        d.check_matplotlib()
        curve = accuracy_coverage(scores, y_true, classes=classes, at_zero=at_zero)
        return cls.from_curve(curve, name=name, ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the curve, and the accuracy on all documents; on ``ax`` or in a new figure.

        ``kwargs`` are those of `matplotlib.axes.Axes.plot` for the curve.
        """
        axes = d.panels(ax, size=(6.0, 4.0))
        one, first = axes[0], d.lines_on(axes[0])
        label = d.legend_name(self.name or "accuracy")
        label += f", {self.accuracy[-1]:.1%} of all" + (f" {self.n:,}" if self.n else "")
        style = {"label": label} | d.line_style(first, len(self.coverage)) | kwargs
        (self.line_,) = one.plot(self.coverage, d.finite(self.accuracy), **style)
        color = self.line_.get_color()
        self.full_line_ = one.axhline(self.accuracy[-1], color=color, linewidth=0.8, linestyle=(0, (1, 2)))
        d.in_percent(one.xaxis)
        d.in_percent(one.yaxis)
        one.set_xlim(0, 1)
        one.set_xlabel("coverage (% of documents, the most confident first)")
        one.set_ylabel("accuracy among them (%)")
        d.put_title(one, "Accuracy of the most confident documents")
        d.quiet_grid(one)
        d.put_legend(one)
        return self._drawn_on(axes)


class ReliabilityDisplay(_ConfidenceDisplay):
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
    def _from_confidence(cls, confidence: Confidence, name: str | None, ax: Any, kwargs: dict[str, Any]) -> Self:
        return cls.from_reliability(confidence.reliability, name=name, ax=ax, **kwargs)

    @classmethod
    def from_reliability(
        cls, reliability: Reliability, *, name: str | None = None, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw ``evaluate(...).confidence.reliability``; other arguments are those of `from_evaluation`."""
        d.check_matplotlib()
        check_given("this is", reliability, Reliability, "evaluate(...).confidence.reliability")
        n = reliability.documents
        posterior = np.divide(reliability.confidence / UNIT, n, out=np.full(len(n), np.nan), where=n > 0)
        return cls(documents=n, right=reliability.right, posterior=posterior, name=name).plot(ax, **kwargs)

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
        name, ax, **kwargs
            As of `from_evaluation`.
        """
        d.check_matplotlib()
        counted = Reliability.of(posteriors, y_true, classes=classes, bins=bins)
        return cls.from_reliability(counted, name=name, ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw accuracies above numbers of documents, on ``ax``, one of them or two, or in a new figure.

        ``kwargs`` are those of `matplotlib.axes.Axes.plot` for the line of accuracies.
        """
        axes = d.panels(ax, 2, size=(5.0, 5.2), heights=(2.6, 1))
        first = d.lines_on(axes[0])
        self._plot_accuracies(axes[0], first, kwargs)
        self._plot_documents(axes[1], again=first > 1)
        left = np.flatnonzero(self.documents)[0] / len(self.documents) - 0.01
        left = min(left, axes[0].get_xlim()[0]) if first else left
        for one in axes:
            one.set_xlim(left, 1.01)
            d.in_percent(one.xaxis)
            d.quiet_grid(one)
        axes[0].tick_params(labelbottom=False)
        axes[1].set_xlabel("posterior of the predicted class (%)")
        return self._drawn_on(axes)

    def _plot_accuracies(self, ax: Any, first: int, kwargs: dict[str, Any]) -> None:
        if not first:
            ax.plot([0, 1], [0, 1], color=d.BLACK, linewidth=1, linestyle=":", label="as sure as right")
            ax.set_ylim(-0.02, 1.02)
        self.perfect_line_ = ax.lines[0]
        some = np.flatnonzero(self.documents)
        label = d.legend_name(self.name or "accuracy") + f", off by {100 * self.expected_error:.2g} points"
        style = {"label": label} | d.line_style(max(first - 1, 0), len(some)) | kwargs
        (self.line_,) = ax.plot(self.posterior[some], self.accuracy[some], **style)
        ends = np.array([wilson(int(self.right[b]), int(self.documents[b])) for b in some])
        color = self.line_.get_color()
        self.intervals_ = ax.vlines(self.posterior[some], ends[:, 0], ends[:, 1], color=color, linewidth=1)
        d.in_percent(ax.yaxis)
        ax.set_ylabel("accuracy (%)")
        d.put_title(ax, "Calibration, with intervals of 95 %")
        d.put_legend(ax)

    def _plot_documents(self, ax: Any, again: bool) -> None:
        """Bars of the documents in each bin; of a second classifier as outlines, which leave those of the first."""
        bins, color = len(self.documents), self.line_.get_color()
        looks = {"alpha": 0.6, "color": color}
        if again:
            looks = {"facecolor": "none", "linewidth": 1.4, "linestyle": "--", "edgecolor": color}
        self.bars_ = ax.bar(np.arange(bins) / bins, self.documents, width=1 / bins, align="edge", **looks)
        d.in_thousands(ax.yaxis)
        ax.set_ylabel("documents")


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
        """Draw what `nfs_dask.evaluate` has returned; other arguments are those of `plot`."""
        d.check_matplotlib()
        _check_evaluation(evaluation)
        confusion, labels, classes = evaluation.confusion, evaluation.labels, evaluation.classes
        return cls(confusion=confusion, labels=labels, classes=classes).plot(ax, **kwargs)

    @classmethod
    def from_estimator(cls, model: Any, X: Any, y: Any = None, *, ax: Any = None, **kwargs: Any) -> Self:
        """Evaluate a fitted classifier on X and y, as `nfs_dask.evaluate` does, and draw that."""
        d.check_matplotlib()
        return cls.from_evaluation(evaluate(model, X, y), ax=ax, **kwargs)

    @classmethod
    def from_predictions(cls, y_true: Any, y_pred: Any, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw how labels that were predicted compare with the true ones, (n,) each, in memory or of Dask."""
        d.check_matplotlib()
        labels, confusion = confusion_of(y_true, y_pred)
        return cls(confusion=confusion, labels=labels).plot(ax, **kwargs)

    @classmethod
    def from_table(
        cls, table: CrossValidation, *, k: int, alpha: float | None = None, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw what models of one k did in `nfs_dask.cross_validate`, over all folds.

        ``alpha`` may be left out where there is one; other arguments are those of `plot`.
        """
        d.check_matplotlib()
        check_given("table is", table, CrossValidation, "what nfs_dask.cross_validate(...) returns")
        return cls(confusion=table.confusion(k=k, alpha=alpha), labels=table.classes).plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, colorbar: bool = True, **kwargs: Any) -> Self:
        """Draw the matrix, on ``ax`` or in a new figure.

        ``colorbar`` says what shades mean. ``kwargs`` are those of `matplotlib.axes.Axes.imshow` for the matrix.
        """
        side = min(max(2.4, 0.36 * max(self.confusion.shape)), 12.0)
        names = d.width_of(map(d.shown, [*self.labels.tolist(), *self.classes.tolist()]))
        axes = d.panels(ax, size=(side + names + 1.5, side + (names if len(self.classes) > 3 else 0.2) + 0.8))
        one = axes[0]
        looks: dict[str, Any] = {"cmap": d.SHARES, "vmin": 0, "vmax": 1, "aspect": "equal", "interpolation": "nearest"}
        self.image_ = one.imshow(self.shares, **looks | kwargs)
        self.colorbar_: Any = None
        if colorbar:
            from matplotlib.ticker import PercentFormatter

            self.colorbar_ = one.figure.colorbar(self.image_, ax=one, shrink=0.8)
            self.colorbar_.set_label("share of the true class (%)")
            self.colorbar_.formatter = PercentFormatter(xmax=1)
            self.colorbar_.update_ticks()
        width, height = d.points_of(one)
        for set_ticks, classes, room in ((one.set_xticks, self.classes, width), (one.set_yticks, self.labels, height)):
            texts = [d.shown(name) for name in classes.tolist()]
            size = d.font_that_fits(room / len(texts))
            upright = set_ticks == one.set_xticks and max(map(len, texts)) * 0.6 * size > room / len(texts)
            turned = {"rotation": 90} if upright else {}
            set_ticks(np.arange(len(texts)), labels=texts, fontsize=size, **turned, **d.as_text(texts))
        one.set_xlabel("predicted class")
        one.set_ylabel("true class")
        self._write_counts(one)
        right = np.trace(self.confusion) if np.array_equal(self.labels, self.classes) else None
        n = self.confusion.sum()
        of = f", {right / n:.1%} of {n:,.0f} right" if right is not None and n else ""
        d.put_title(one, f"Confusion{of}")
        return self._drawn_on(axes)

    def _write_counts(self, ax: Any) -> None:
        """Write counts in the cells that have documents, with shares where there is room for them."""
        width, height = d.points_of(ax, settled=True)
        room = min(width / len(self.classes), height / len(self.labels))
        shares, self.text_ = self.shares, np.full(self.confusion.shape, None, object)
        if room < ROOM_FOR_ONE:
            return
        digits = max(len(f"{self.confusion.max():,.0f}"), 5 if room >= ROOM_FOR_BOTH else 1)
        size = d.font_that_fits(room / (0.62 * digits), least=3.5)
        for row, column in np.argwhere(self.confusion > 0).tolist():
            text = f"{self.confusion[row, column]:,.0f}"
            text += f"\n{shares[row, column]:.1%}" if room >= ROOM_FOR_BOTH else ""
            color = "white" if shares[row, column] > 0.55 else "black"
            self.text_[row, column] = ax.text(column, row, text, ha="center", va="center", color=color, fontsize=size)
