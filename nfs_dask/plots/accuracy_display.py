"""Cross-validation: how good models of each k are on documents they have not seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.containers import a_type
from nfs_dask.errors import InputError
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
from nfs_dask.registry import MEASURES
from nfs_dask.selection.chosen import Chosen
from nfs_dask.selection.validation_table import CrossValidation

CALLED = {
    "accuracy": "accuracy (% of documents)",
    "balanced": "balanced accuracy (%, mean over classes)",
    "log_loss": "log loss (nats for a document)",
}


class AccuracyDisplay(Display):
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

    lines_: list[Any]
    bands_: list[Any]
    choice_line_: Any
    choice_band_: Any

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
        self.ks, self.alphas, self.by = sizes("ks", ks), tuple(alphas), by
        shape = (len(self.alphas), len(self.ks))
        self.mean, self.error = numbers("means", mean, shape), numbers("standard errors", error, shape)
        self.n_folds, self.choice = n_folds, checked_choice(choice)

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
        """Draw what `nfs_dask.cross_validate` has found.

        Parameters
        ----------
        table : CrossValidation
        by : "accuracy", "balanced" or "log_loss"
        alphas : sequence of float, optional
            Those to draw; all of the table if not given.
        choice : Chosen or int, optional
            What ``table.choose(rule)`` has returned, or another k to mark.
        ax : Axes, optional
        **kwargs
            As of `plot`.
        """
        check_matplotlib()
        if not isinstance(table, CrossValidation):
            raise InputError(f"table is {a_type(table)}; give what nfs_dask.cross_validate(...) returns")
        mean, error = table.mean(by), table.standard_error(by)  # type: ignore[arg-type]
        rows = _rows_of(alphas, table.alphas)
        kept = [table.alphas[row] for row in rows]
        display = cls(
            ks=table.ks, mean=mean[rows], error=error[rows], alphas=kept, by=by, n_folds=table.n_folds, choice=choice
        )
        return display.plot(ax, **kwargs)

    @classmethod
    def from_choice(cls, choice: Chosen, by: str = "accuracy", *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw what a rule that validates has gone by: "cv", "1se" or "near".

        Parameters
        ----------
        choice : Chosen
            What ``path.choose(rule)`` has returned.
        by : "accuracy", "balanced" or "log_loss"
        ax : Axes, optional
        **kwargs
            As of `plot`.
        """
        check_matplotlib()
        if not isinstance(choice, Chosen):
            raise InputError(f'choice is {a_type(choice)}; give what path.choose("cv") returns')
        rows = choice.table
        if by not in MEASURES or by not in rows[0] or "scores" not in rows[0]:
            has = [measure for measure in MEASURES if measure in rows[0]]
            raise InputError(
                f"by={by!r}, and the rule {choice.rule!r} went by {', '.join(map(repr, has)) or 'no validation'}; "
                'give another, or what path.choose("cv") returns'
            )
        alphas = list(dict.fromkeys(row["alpha"] for row in rows))
        ks = sorted({row["k"] for row in rows})
        mean, error = (np.full((len(alphas), len(ks)), np.nan) for _ in range(2))
        for row in rows:
            cell = alphas.index(row["alpha"]), ks.index(row["k"])
            mean[cell] = np.nan if row[by] is None else row[by]
            error[cell] = np.nan if row[f"{by}_error"] is None else row[f"{by}_error"]
        folds = len(rows[0]["scores"])
        return cls(ks=ks, mean=mean, error=error, alphas=alphas, by=by, n_folds=folds, choice=choice).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw a line and a band for each smoothing.

        Parameters
        ----------
        ax : Axes, optional
            Where; None: in a new figure.
        **kwargs
            Of all lines, as `matplotlib.axes.Axes.plot` takes them.
        """
        axes = panels(ax, size=(6.0, 4.0))
        one, first = axes[0], lines_on(axes[0])
        drawn = [self._plot_line(one, a, line_style(first + a, len(self.ks)) | kwargs) for a in range(len(self.alphas))]
        self.lines_, self.bands_ = [line for line, _ in drawn], [band for _, band in drawn]
        self.choice_line_, self.choice_band_ = mark_choice(axes, self.choice)
        scale_of_counts(one, self.ks)
        quiet_grid(one)
        one.set_ylabel(CALLED[self.by])
        if self.by != "log_loss":
            in_percent(one.yaxis)
        put_title(one, f"Cross-validation{f', {self.n_folds} folds' if self.n_folds else ''}; bands: ± standard error")
        put_legend(one)
        self._drawn_on(axes)
        return self

    def _plot_line(self, ax: Any, a: int, style: dict[str, Any]) -> tuple[Any, Any]:
        mean, error = finite(self.mean[a]), np.nan_to_num(finite(self.error[a]))
        label = "mean over folds" if self.alphas[a] is None else f"alpha = {self.alphas[a]:g}"
        label += "; not finite where not drawn" if np.isnan(mean).any() else ""
        (line,) = ax.plot(self.ks, mean, **{"label": label} | style)
        color = line.get_color()
        band = ax.fill_between(self.ks, mean - error, mean + error, color=color, alpha=0.18, linewidth=0)
        return line, band


def _rows_of(wanted: Sequence[float] | None, alphas: tuple[float | None, ...]) -> Array:
    """Where some smoothings are in a table."""
    if wanted is None:
        return np.arange(len(alphas))
    unknown = [alpha for alpha in wanted if alpha not in alphas]
    if unknown or not len(wanted):
        what = f"alpha={unknown[0]} was not validated" if unknown else "alphas are empty"
        raise InputError(f"{what}; those that were are {list(alphas)}")
    return np.array([alphas.index(alpha) for alpha in wanted])
