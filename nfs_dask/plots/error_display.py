"""Predicted errors beside measured ones, against the number of features."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from nfs_dask.containers import a_type
from nfs_dask.errors import InputError
from nfs_dask.estimators.predicted_error import PredictedErrorClassifier
from nfs_dask.plots.choice_mark import checked_choice, mark_choice
from nfs_dask.plots.display import Display, numbers, sizes
from nfs_dask.plots.drawing_axes import check_matplotlib, panels
from nfs_dask.plots.styles import (
    finite,
    in_percent,
    line_style,
    lines_on,
    put_legend,
    put_title,
    quiet_grid,
    scale_of_counts,
)
from nfs_dask.selection.chosen import Chosen
from nfs_dask.selection.validation_table import CrossValidation


class ErrorDisplay(Display):
    """How often models of each k are predicted to be wrong, and how often they were.

    Parameters
    ----------
    ks : (K,) ascending
        Numbers of features.
    predicted : (K,)
        Predicted errors, as shares of documents.
    measured_ks : (M,) ascending, optional
        Numbers of features of which errors were measured.
    measured, measured_error : (M,), optional
        These errors, and their standard errors.
    choice : Chosen or int, optional
        A number of features to mark, with its interval.

    Attributes
    ----------
    ax_, axes_, figure_
    predicted_line_
        Of matplotlib.
    measured_line_, measured_band_
        The same, or None; the band is one standard error wide on both sides.
    choice_line_, choice_band_
        The chosen k and its interval, or None.
    """

    predicted_line_: Any
    measured_line_: Any
    measured_band_: Any
    choice_line_: Any
    choice_band_: Any

    def __init__(
        self,
        *,
        ks: Any,
        predicted: Any,
        measured_ks: Any = None,
        measured: Any = None,
        measured_error: Any = None,
        choice: Any = None,
    ) -> None:
        self.ks = sizes("ks", ks)
        self.predicted = numbers("predicted errors", predicted, (len(self.ks),))
        if (measured_ks is None) != (measured is None):
            raise InputError("measured errors go with the numbers of features they are of: measured_ks= and measured=")
        self.measured_ks = None if measured_ks is None else sizes("measured_ks", measured_ks)
        n = (0 if self.measured_ks is None else len(self.measured_ks),)
        self.measured = None if measured is None else numbers("measured errors", measured, n)
        self.measured_error = None if measured_error is None else numbers("standard errors", measured_error, n)
        self.choice = checked_choice(choice)

    @classmethod
    def from_choice(
        cls,
        choice: Chosen,
        table: CrossValidation | None = None,
        *,
        by: str = "accuracy",
        alpha: float | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw what the rule "error" has gone by.

        Parameters
        ----------
        choice : Chosen
            What ``path.choose("error")`` has returned.
        table : CrossValidation, optional
            Of models by the same method, whose errors were measured.
        by : "accuracy" or "balanced"
            Which error of the table: one minus that.
        alpha : float, optional
            Which smoothing of the table; may be left out where there is one.
        ax : Axes, optional
        **kwargs
            As of `plot`.
        """
        check_matplotlib()
        if not isinstance(choice, Chosen) or "error" not in choice.table[0]:
            raise InputError('this is no choice by predicted errors; give what path.choose("error") returns')
        ks, errors = ([row[name] for row in choice.table] for name in ("k", "error"))
        return cls(ks=ks, predicted=errors, choice=choice, **_measured(table, by, alpha)).plot(ax, **kwargs)

    @classmethod
    def from_estimator(
        cls,
        model: PredictedErrorClassifier,
        table: CrossValidation | None = None,
        *,
        by: str | None = None,
        alpha: float | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the errors that an `ErrorRateSelector` has seen in its search.

        Parameters
        ----------
        model : ErrorRateSelector
            Fitted here: one that was loaded has forgotten them.
        table : CrossValidation, optional
            Of other models beside it, whose errors were measured.
        by : "accuracy" or "balanced", optional
            Which error of the table: one minus that. If not given, that which the selector predicts.
        alpha : float, optional
            Which smoothing of the table; may be left out where there is one.
        ax : Axes, optional
        **kwargs
            As of `plot`.
        """
        check_matplotlib()
        if not isinstance(model, PredictedErrorClassifier):
            raise InputError(f"the model is {a_type(model)}; give a fitted ErrorRateSelector")
        errors = getattr(model, "errors_", None)
        if not errors:
            raise InputError("this ErrorRateSelector knows no errors of its search; fit it here")
        ks = sorted(errors)
        by = by or ("balanced" if model.balanced else "accuracy")
        display = cls(ks=ks, predicted=[errors[k] for k in ks], **_measured(table, by, alpha))
        return display.plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw both.

        Parameters
        ----------
        ax : Axes, optional
            Where; None: in a new figure.
        **kwargs
            Of the line of predicted errors, as `matplotlib.axes.Axes.plot` takes them.
        """
        axes = panels(ax, size=(6.0, 4.0))
        one, first = axes[0], lines_on(axes[0])
        style = line_style(first, len(self.ks)) | {"label": "predicted"} | kwargs
        (self.predicted_line_,) = one.plot(self.ks, finite(self.predicted), **style)
        self._plot_measured(one, first + 1)
        self.choice_line_, self.choice_band_ = mark_choice(axes, self.choice)
        ks = self.ks if self.measured_ks is None else np.union1d(self.ks, self.measured_ks)
        scale_of_counts(one, ks)
        quiet_grid(one)
        in_percent(one.yaxis)
        one.set_ylabel("error (% of documents)")
        put_title(one, "Predicted error" + ("" if self.measured is None else ", and what was measured"))
        put_legend(one)
        self._drawn_on(axes)
        return self

    def _plot_measured(self, ax: Any, i: int) -> None:
        self.measured_line_ = self.measured_band_ = None
        if self.measured_ks is None:
            return
        measured = finite(self.measured)
        style = line_style(i, len(self.measured_ks)) | {"label": "measured in cross-validation"}
        (self.measured_line_,) = ax.plot(self.measured_ks, measured, **style)
        if self.measured_error is not None:
            self.measured_line_.set_label("measured in cross-validation, ± standard error")
            low, high = measured - self.measured_error, measured + self.measured_error
            color = self.measured_line_.get_color()
            self.measured_band_ = ax.fill_between(self.measured_ks, low, high, color=color, alpha=0.18, linewidth=0)


def _measured(table: CrossValidation | None, by: str, alpha: float | None) -> dict[str, Any]:
    """Errors of a table, as the display takes them."""
    if by not in ("accuracy", "balanced"):
        raise InputError(f"by={by!r}; errors are measured by 'accuracy' or 'balanced'")
    if table is None:
        return {}
    if not isinstance(table, CrossValidation):
        raise InputError(f"table is {a_type(table)}; give what nfs_dask.cross_validate(...) returns")
    if alpha is None and len(table.alphas) > 1:
        raise InputError(f"the table has alphas {list(table.alphas)}; say which with alpha=")
    scores = np.array([table.scores(k=k, alpha=alpha, by=by) for k in table.ks.tolist()])  # type: ignore[arg-type]
    error = scores.std(axis=1, ddof=1) / np.sqrt(table.n_folds)
    return {"measured_ks": table.ks, "measured": 1 - scores.mean(axis=1), "measured_error": error}
