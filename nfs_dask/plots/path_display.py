"""A path: what k features gain, what no choice of them exceeds, and what lies between, against k."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from nfs_dask.containers import a_type
from nfs_dask.errors import InputError
from nfs_dask.plots.choice_mark import checked_choice, mark_choice
from nfs_dask.plots.display import Display, numbers, sizes
from nfs_dask.plots.drawing_axes import check_matplotlib, panels
from nfs_dask.plots.shown_text import shown
from nfs_dask.plots.styles import (
    BLUE,
    GRAY,
    VERMILION,
    finite,
    in_thousands,
    line_style,
    put_legend,
    put_title,
    quiet_grid,
    scale_of_counts,
)
from nfs_dask.selection.path_table import Path

CERTIFIED = "certified: gap of zero up to rounding"
UNITS = {
    "multinomial": "nats",
    "bernoulli": "nats",
    "l1": "units of the features",
    "l2": "squared units of the features",
    "mahalanobis": "variances",
}


class PathDisplay(Display):
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

    value_line_: Any
    bound_line_: Any
    gap_line_: Any
    certified_line_: Any
    choice_line_: Any
    choice_band_: Any

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
        self.ks = sizes("ks", ks)
        n = (len(self.ks),)
        self.value, self.bound = numbers("values", value, n), numbers("bounds", bound, n)
        with np.errstate(invalid="ignore"):  # of infinite gains
            self.gap = self.bound - self.value if gap is None else numbers("gaps", gap, n)
        self.certified = self.gap <= 0 if certified is None else numbers("certified", certified, n).astype(bool)
        self.unit, self.name, self.choice = unit, name, checked_choice(choice)

    @classmethod
    def from_path(cls, path: Path, choice: Any = None, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw what `nfs_dask.path` has found.

        Parameters
        ----------
        path : Path
        choice : Chosen or int, optional
            What ``path.choose(rule)`` has returned, or another k to mark.
        ax : Axes or two of them, optional
            Where; in the place of one, two panels are made.
        **kwargs
            As of `plot`.
        """
        check_matplotlib()
        if not isinstance(path, Path):
            raise InputError(f"path is {a_type(path)}; give what nfs_dask.path(...) returns")
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
        """Draw gains above gaps.

        Parameters
        ----------
        ax : Axes or two of them, optional
            Where; in the place of one, two panels are made. None: in a new figure.
        **kwargs
            Of the line of values, as `matplotlib.axes.Axes.plot` takes them.
        """
        axes = panels(ax, 2, size=(6.0, 4.6), heights=(2.6, 1))
        self._plot_gains(axes[0], kwargs)
        self._plot_gaps(axes[1])
        self.choice_line_, self.choice_band_ = mark_choice(axes, self.choice)
        for one in axes:
            scale_of_counts(one, self.ks)
            quiet_grid(one)
        axes[0].set_xlabel("")
        axes[0].tick_params(labelbottom=False)
        low, high = (f(one.get_xlim()[i] for one in axes) for i, f in enumerate((min, max)))
        for one in axes:
            one.set_xlim(low, high)
        handles = [*axes[0].get_legend_handles_labels()[0], *axes[1].get_legend_handles_labels()[0]]
        put_legend(axes[0], handles)
        self._drawn_on(axes)
        return self

    def _plot_gains(self, ax: Any, kwargs: dict[str, Any]) -> None:
        before = bool(ax.lines)
        prefix = f"{shown(self.name)}: " if before and self.name else ""
        style = line_style(0, len(self.ks)) | {
            "color": BLUE if not before else None,
            "label": f"{prefix}value of those found",
        }
        (self.value_line_,) = ax.plot(self.ks, finite(self.value), **style | kwargs)
        above = line_style(1) | {
            "color": VERMILION if not before else None,
            "label": f"{prefix}bound for any k features",
        }
        (self.bound_line_,) = ax.plot(self.ks, finite(self.bound), **above)
        ax.set_ylabel(f"gain ({self.unit})")
        of = f", {shown(self.name)}" if self.name and not before else ""
        put_title(ax, f"Gain of the best k features{of}", [of])
        in_thousands(ax.yaxis)

    def _plot_gaps(self, ax: Any) -> None:
        """Gaps on a logarithmic axis, on which zero has no place: those that are zero up to rounding lie below it."""
        open_gap = np.where(self.certified | (self.gap <= 0), np.nan, finite(self.gap))
        # Dots, so that a k between two that are certified is seen.
        looks = {"color": self.value_line_.get_color(), "linewidth": 1.0, "marker": ".", "markersize": 3}
        (self.gap_line_,) = ax.plot(self.ks, open_gap, **looks)
        at = self.ks[self.certified]
        (self.certified_line_,) = ax.plot(
            at, np.full(len(at), 0.06), "|", color=GRAY, markersize=6, transform=ax.get_xaxis_transform()
        )
        if np.isfinite(open_gap).any():
            ax.set_yscale("log")
        elif ax.get_yscale() != "log":
            ax.set_yticks([])
        ax.set_ylabel(f"gap ({self.unit})")
        if len(at):
            others = any(line is not self.certified_line_ and line.get_label() == CERTIFIED for line in ax.lines)
            self.certified_line_.set_label("_" if others else CERTIFIED)
