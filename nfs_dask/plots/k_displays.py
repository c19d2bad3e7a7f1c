"""Displays against the number of features: paths, cross-validation, and predicted errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.containers import a_type
from nfs_dask.errors import InputError
from nfs_dask.estimators.predicted_error import PredictedErrorClassifier
from nfs_dask.plots import drawing as d
from nfs_dask.plots.display import Display, check_given, numbers
from nfs_dask.registry import MEASURES
from nfs_dask.selection.chosen import Chosen
from nfs_dask.selection.path_table import Path
from nfs_dask.selection.validation_table import CrossValidation

MEASURE_LABELS = {
    "accuracy": "accuracy (% of documents)",
    "balanced": "balanced accuracy (%, mean over classes)",
    "log_loss": "log loss (nats for a document)",
}
INTERVALS = {  # of rules
    "elbow": "within 1 % of its height",
    "error": "within 0.001",
    "cv": "within a standard error",
    "1se": "within a standard error",
    "near": "within the share",
}
CERTIFIED = "certified: gap of zero up to rounding"
UNITS = {
    "multinomial": "nats",
    "bernoulli": "nats",
    "l1": "units of the features",
    "l2": "squared units of the features",
    "mahalanobis": "variances",
}


class _KDisplay(Display):
    """A display against numbers of features, in which one of them may be marked as chosen."""

    choice_line_: Any
    choice_band_: Any

    def __init__(self, ks: Any, choice: Any) -> None:
        self.ks = checked_ks("ks", ks)
        whole = isinstance(choice, (int, np.integer)) and not isinstance(choice, bool) and choice >= 0
        if isinstance(choice, str):
            raise InputError(f"choice={choice!r} is the name of a rule; give what it chooses, path.choose({choice!r})")
        if choice is not None and not isinstance(choice, Chosen) and not whole:
            give = "what path.choose(rule) returns, or a number of features"
            raise InputError(f"choice is {a_type(choice)}; give {give}")
        self.choice: int | Chosen | None = int(choice) if whole and not isinstance(choice, Chosen) else choice

    def _mark_choice(self, axes: Any) -> None:
        """Draw a line at the chosen k on each of some axes, and a band over its interval."""
        choice, self.choice_line_, self.choice_band_ = self.choice, None, None
        if choice is None:
            return
        looks: dict[str, Any] = {"color": d.BLACK, "linewidth": 1.2, "linestyle": (0, (3, 2)), "zorder": 1.5}
        self.choice_line_, *_ = (ax.axvline(int(choice), **looks) for ax in axes)
        by = f", {choice.rule}" if isinstance(choice, Chosen) else ""
        self.choice_line_.set_label(f"k = {int(choice):,}{by}")
        if not isinstance(choice, Chosen) or choice.interval[0] == choice.interval[1]:
            return
        low, high = choice.interval
        shade: dict[str, Any] = {"facecolor": "#999999", "alpha": 0.25, "linewidth": 0, "zorder": 0.5}
        self.choice_band_, *_ = (ax.axvspan(low, high, **shade) for ax in axes)
        self.choice_band_.set_label(f"{low:,} to {high:,}: {INTERVALS.get(choice.rule, 'not told apart')}")


def checked_ks(what: str, values: Any) -> Array:
    """Numbers of features, ascending, at least one of them."""
    ks = numbers(what, values, (None,))
    if not len(ks):
        raise InputError(f"{what} are empty; give at least one number of features")
    if not np.all(np.isfinite(ks) & (ks >= 0) & (ks == np.floor(ks))) or np.any(np.diff(ks) <= 0):
        raise InputError(f"{what} are {ks.tolist()[:5]}...; give whole numbers of features in ascending order")
    return ks.astype(np.int64)


def _check_table(table: Any) -> None:
    check_given("table is", table, CrossValidation, "what nfs_dask.cross_validate(...) returns")


def _band(ax: Any, ks: Array, mean: Array, error: Array, line: Any) -> Any:
    """A band of one error on both sides of a line."""
    return ax.fill_between(ks, mean - error, mean + error, color=line.get_color(), alpha=0.18, linewidth=0)


class AccuracyDisplay(_KDisplay):
    """Accuracy in cross-validation against the number of features, a line for each smoothing.

    Parameters
    ----------
    ks : (K,) ascending
        Numbers of features.
    mean, error : (A, K)
        Means over the folds, and their standard errors.
    alphas : sequence of (float or None), optional
        Smoothings, one for each line; (None,) of a method that has none.
    by : "accuracy", "balanced" or "log_loss"
        What the numbers are.
    n_folds : int, optional
        How many folds there were.
    choice : Chosen or int, optional
        A number of features to mark, with its interval.

    Attributes
    ----------
    ax_, axes_, figure_
    lines_, bands_ : lists, one for each smoothing
        Of matplotlib; bands are one standard error wide on both sides.
    choice_line_, choice_band_
        The chosen k and its interval, or None.
    """

    def __init__(
        self,
        *,
        ks: Any,
        mean: Any,
        error: Any,
        alphas: Sequence[float | None] = (None,),
        by: str = "accuracy",
        n_folds: int | None = None,
        choice: Any = None,
    ) -> None:
        if by not in MEASURES:
            raise InputError(f"by={by!r}; give one of {', '.join(map(repr, MEASURES))}")
        super().__init__(ks, choice)
        self.alphas, self.by, self.n_folds = tuple(alphas), by, n_folds
        shape = (len(self.alphas), len(self.ks))
        self.mean, self.error = numbers("means", mean, shape), numbers("standard errors", error, shape)

    @classmethod
    def from_table(
        cls,
        table: CrossValidation,
        by: str = "accuracy",
        *,
        alphas: Sequence[float] | None = None,
        choice: Any = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw what `nfs_dask.cross_validate` has returned, for all or some of its ``alphas``.

        ``choice`` is what ``table.choose(rule)`` has returned, or another k; other arguments are as of `plot`.
        """
        d.check_matplotlib()
        _check_table(table)
        wanted = list(table.alphas) if alphas is None else list(alphas)
        unknown = [alpha for alpha in wanted if alpha not in table.alphas]
        if unknown or not wanted:
            what = f"alpha={unknown[0]} was not validated" if unknown else "alphas are empty"
            raise InputError(f"{what}; those that were are {list(table.alphas)}")
        rows = [table.alphas.index(alpha) for alpha in wanted]
        mean, error = table.mean(by)[rows], table.standard_error(by)[rows]  # type: ignore[arg-type]
        display = cls(ks=table.ks, mean=mean, error=error, alphas=wanted, by=by, n_folds=table.n_folds, choice=choice)
        return display.plot(ax, **kwargs)

    @classmethod
    def from_choice(cls, choice: Chosen, by: str = "accuracy", *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the validation that a rule went by, one of "cv", "1se" or "near".

        ``choice`` is what ``path.choose(rule)`` has returned; other arguments are those of `plot`.
        """
        d.check_matplotlib()
        check_given("choice is", choice, Chosen, 'what path.choose("cv") returns')
        rows = choice.table
        if by not in MEASURES or by not in rows[0] or "scores" not in rows[0]:
            has = [measure for measure in MEASURES if measure in rows[0]]
            raise InputError(
                f"by={by!r}, and the rule {choice.rule!r} went by {', '.join(map(repr, has)) or 'no validation'}; "
                'give another, or what path.choose("cv") returns'
            )
        alphas = list(dict.fromkeys(row["alpha"] for row in rows))
        ks = sorted({row["k"] for row in rows})
        mean, error = np.full((2, len(alphas), len(ks)), np.nan)
        for row in rows:
            cell = alphas.index(row["alpha"]), ks.index(row["k"])
            mean[cell], error[cell] = (np.nan if row[name] is None else row[name] for name in (by, f"{by}_error"))
        folds = len(rows[0]["scores"])
        return cls(ks=ks, mean=mean, error=error, alphas=alphas, by=by, n_folds=folds, choice=choice).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw a line and a band for each smoothing, on ``ax`` or in a new figure.

        ``kwargs`` are those of `matplotlib.axes.Axes.plot` for all lines.
        """
        axes = d.panels(ax, size=(6.0, 4.0))
        one, first = axes[0], d.lines_on(axes[0])
        self.lines_, self.bands_ = [], []
        for a, alpha in enumerate(self.alphas):
            mean, error = d.finite(self.mean[a]), np.nan_to_num(d.finite(self.error[a]))
            label = "mean over folds" if alpha is None else f"alpha = {alpha:g}"
            label += "; not finite where not drawn" if np.isnan(mean).any() else ""
            (line,) = one.plot(self.ks, mean, **{"label": label} | d.line_style(first + a, len(self.ks)) | kwargs)
            self.lines_.append(line)
            self.bands_.append(_band(one, self.ks, mean, error, line))
        self._mark_choice(axes)
        d.scale_of_counts(one, self.ks)
        d.quiet_grid(one)
        one.set_ylabel(MEASURE_LABELS[self.by])
        if self.by != "log_loss":
            d.in_percent(one.yaxis)
        folds = f", {self.n_folds} folds" if self.n_folds else ""
        d.put_title(one, f"Cross-validation{folds}; bands: ± standard error")
        d.put_legend(one)
        return self._drawn_on(axes)


class ErrorDisplay(_KDisplay):
    """Predicted errors of models of each k, beside measured ones.

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
        super().__init__(ks, choice)
        self.predicted = numbers("predicted errors", predicted, (len(self.ks),))
        if (measured_ks is None) != (measured is None):
            raise InputError("measured errors go with the numbers of features they are of: measured_ks= and measured=")
        self.measured_ks = None if measured_ks is None else checked_ks("measured_ks", measured_ks)
        n = (0 if self.measured_ks is None else len(self.measured_ks),)
        self.measured = None if measured is None else numbers("measured errors", measured, n)
        self.measured_error = None if measured_error is None else numbers("standard errors", measured_error, n)

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
        """Draw the errors that the rule "error" went by.

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
        ax, **kwargs
            As of `plot`.
        """
        d.check_matplotlib()
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
        """Draw the errors that an `ErrorRateSelector` has seen in its search; one that was loaded has forgotten them.

        ``by`` is the error that the selector predicts if not given; other arguments are those of `from_choice`.
        """
        d.check_matplotlib()
        check_given("the model is", model, PredictedErrorClassifier, "a fitted ErrorRateSelector")
        errors = getattr(model, "errors_", None)
        if not errors:
            raise InputError("this ErrorRateSelector knows no errors of its search; fit it here")
        ks = sorted(errors)
        by = by or ("balanced" if model.balanced else "accuracy")
        return cls(ks=ks, predicted=[errors[k] for k in ks], **_measured(table, by, alpha)).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw both, on ``ax`` or in a new figure.

        ``kwargs`` are those of `matplotlib.axes.Axes.plot` for the line of predicted errors.
        """
        axes = d.panels(ax, size=(6.0, 4.0))
        one, first, ks = axes[0], d.lines_on(axes[0]), self.ks
        style = d.line_style(first, len(ks)) | {"label": "predicted"} | kwargs
        (self.predicted_line_,) = one.plot(ks, d.finite(self.predicted), **style)
        self.measured_line_: Any = None
        self.measured_band_: Any = None
        if self.measured_ks is not None:
            measured, error = d.finite(self.measured), self.measured_error
            label = "measured in cross-validation" + ("" if error is None else ", ± standard error")
            style = d.line_style(first + 1, len(measured)) | {"label": label}
            (self.measured_line_,) = one.plot(self.measured_ks, measured, **style)
            if error is not None:
                self.measured_band_ = _band(one, self.measured_ks, measured, error, self.measured_line_)
            ks = np.union1d(ks, self.measured_ks)
        self._mark_choice(axes)
        d.scale_of_counts(one, ks)
        d.quiet_grid(one)
        d.in_percent(one.yaxis)
        one.set_ylabel("error (% of documents)")
        d.put_title(one, "Predicted error" + ("" if self.measured is None else ", and what was measured"))
        d.put_legend(one)
        return self._drawn_on(axes)


def _measured(table: CrossValidation | None, by: str, alpha: float | None) -> dict[str, Any]:
    """Errors of a table, as the display takes them."""
    if by not in ("accuracy", "balanced"):
        raise InputError(f"by={by!r}; errors are measured by 'accuracy' or 'balanced'")
    if table is None:
        return {}
    _check_table(table)
    if alpha is None and len(table.alphas) > 1:
        raise InputError(f"the table has alphas {list(table.alphas)}; say which with alpha=")
    scores = np.array([table.scores(k=k, alpha=alpha, by=by) for k in table.ks.tolist()])  # type: ignore[arg-type]
    error = scores.std(axis=1, ddof=1) / np.sqrt(table.n_folds)
    return {"measured_ks": table.ks, "measured": 1 - scores.mean(axis=1), "measured_error": error}


class PathDisplay(_KDisplay):
    """Value, bound and gap of a path, against the number of features.

    Parameters
    ----------
    ks : (K,) ascending
        Numbers of features.
    value, bound : (K,)
        What the features that were found gain, and what no others exceed.
    gap : (K,), optional
        What they lose at most; the bound less the value if not given.
    certified : (K,) bool, optional
        Where the gap is zero up to rounding; where it is 0 if not given.
    unit : str
        Of gains, such as "nats".
    name : str, optional
        Of the path, for titles and legends, such as its method.
    choice : Chosen or int, optional
        A number of features to mark, with its interval.

    Attributes
    ----------
    ax_, axes_, figure_
        The axes of gains; these and those of gaps; their figure.
    value_line_, bound_line_, gap_line_, certified_line_
        Of matplotlib; the last of them lies along the bottom, at each k whose features are certified.
    choice_line_, choice_band_
        The chosen k and its interval, or None.

    Examples
    --------
    >>> import nfs_dask as nfs
    >>> X, y = [[2, 0, 1], [1, 1, 0], [0, 2, 1], [0, 1, 1]], ["tea", "tea", "coffee", "coffee"]
    >>> display = nfs.plots.PathDisplay.from_path(nfs.path(X, "multinomial", y=y))  # doctest: +SKIP
    """

    def __init__(
        self,
        *,
        ks: Any,
        value: Any,
        bound: Any,
        gap: Any = None,
        certified: Any = None,
        unit: str = "nats",
        name: str | None = None,
        choice: Any = None,
    ) -> None:
        super().__init__(ks, choice)
        n = (len(self.ks),)
        self.value, self.bound = numbers("values", value, n), numbers("bounds", bound, n)
        with np.errstate(invalid="ignore"):  # of infinite gains
            self.gap = self.bound - self.value if gap is None else numbers("gaps", gap, n)
        self.certified = self.gap <= 0 if certified is None else numbers("certified", certified, n).astype(bool)
        self.unit, self.name = unit, name

    @classmethod
    def from_path(cls, path: Path, choice: Any = None, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw what `nfs_dask.path` has returned.

        ``choice`` is what ``path.choose(rule)`` has returned, or another k; other arguments are as of `plot`.
        """
        d.check_matplotlib()
        check_given("path is", path, Path, "what nfs_dask.path(...) returns")
        display = cls(
            ks=path.ks,
            value=path.value,
            bound=path.bound,
            gap=path.gap,
            certified=path.certified,
            unit=UNITS.get(path.method, "units of the objective"),
            name=path.method,
            choice=choice,
        )
        return display.plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw gains above gaps, on ``ax``, one of them or two, or in a new figure.

        ``kwargs`` are those of `matplotlib.axes.Axes.plot` for the line of values.
        """
        axes = d.panels(ax, 2, size=(6.0, 4.6), heights=(2.6, 1))
        self._plot_gains(axes[0], kwargs)
        self._plot_gaps(axes[1])
        self._mark_choice(axes)
        for one in axes:
            d.scale_of_counts(one, self.ks)
            d.quiet_grid(one)
        axes[0].set_xlabel("")
        axes[0].tick_params(labelbottom=False)
        low, high = (f(one.get_xlim()[i] for one in axes) for i, f in enumerate((min, max)))
        for one in axes:
            one.set_xlim(low, high)
        d.put_legend(axes[0], [handle for one in axes for handle in one.get_legend_handles_labels()[0]])
        return self._drawn_on(axes)

    def _plot_gains(self, ax: Any, kwargs: dict[str, Any]) -> None:
        name, second = d.shown(self.name) if self.name else "", bool(ax.lines)
        prefix = f"{name}: " if second and name else ""
        value, bound = {"label": f"{prefix}value of those found"}, {"label": f"{prefix}bound for any k features"}
        value |= d.line_style(0, len(self.ks)) | {"color": None if second else d.BLUE} | kwargs
        bound |= d.line_style(1) | {"color": None if second else d.VERMILION}
        (self.value_line_,) = ax.plot(self.ks, d.finite(self.value), **value)
        (self.bound_line_,) = ax.plot(self.ks, d.finite(self.bound), **bound)
        ax.set_ylabel(f"gain ({self.unit})")
        of = f", {name}" if name and not second else ""
        d.put_title(ax, f"Gain of the best k features{of}", [of])
        d.in_thousands(ax.yaxis)

    def _plot_gaps(self, ax: Any) -> None:
        """Gaps on a logarithmic axis, on which zero has no place: those that are zero up to rounding lie below it."""
        open_gap = np.where(self.certified | (self.gap <= 0), np.nan, d.finite(self.gap))
        # Dots, so that a k between two that are certified is seen.
        looks = {"color": self.value_line_.get_color(), "linewidth": 1.0, "marker": ".", "markersize": 3}
        (self.gap_line_,) = ax.plot(self.ks, open_gap, **looks)
        at = self.ks[self.certified]
        (self.certified_line_,) = ax.plot(
            at, np.full(len(at), 0.06), "|", color=d.GRAY, markersize=6, transform=ax.get_xaxis_transform()
        )
        if np.isfinite(open_gap).any():
            ax.set_yscale("log")
        elif ax.get_yscale() != "log":
            ax.set_yticks([])
        ax.set_ylabel(f"gap ({self.unit})")
        if len(at):
            others = any(line is not self.certified_line_ and line.get_label() == CERTIFIED for line in ax.lines)
            self.certified_line_.set_label("_" if others else CERTIFIED)
