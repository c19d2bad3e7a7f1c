"""Colors that the color-blind tell apart, and lines, markers and axes that read in gray print.

References: M. Okabe, K. Ito, Color Universal Design (2008); cividis: J. R. Nunez, C. R. Anderton, R. S. Renslow,
Optimizing colormaps with consideration for color vision deficiency, PLOS ONE 13 (2018).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.plots.drawing_axes import points_of
from nfs_dask.plots.shown_text import as_text

BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, BLACK, GRAY = "#E69F00", "#56B4E9", "#000000", "#666666"

COLORS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)
DASHES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

SHARES = "Blues"  # from white to dark: shares, and other things that are not negative
SIGNED = "cividis"  # from dark to light with gray between them: in gray print below and above zero differ, too

MOST_MARKED = 40  # points of a line that has markers


def line_style(i: int, n_points: int = 0) -> dict[str, Any]:
    """How the i-th line of a picture looks; no two of 42 are alike, and no two of 168 with markers.

    Lines of many points have none.
    """
    marker = MARKERS[i % len(MARKERS)] if 0 < n_points <= MOST_MARKED else ""
    style = {"color": COLORS[i % len(COLORS)], "linestyle": DASHES[i % len(DASHES)], "linewidth": 1.6}
    return style | {"marker": marker, "markersize": 4.5}


def lines_on(ax: Any) -> int:
    """How many lines in a legend axes have by now, so that the next one looks different."""
    return sum(not str(line.get_label()).startswith("_") for line in ax.lines)


def finite(values: Any) -> Array:
    """The same numbers with gaps where there is none to draw."""
    given = np.asarray(values, np.float64)
    return np.where(np.isfinite(given), given, np.nan)


def scale_of_counts(ax: Any, ks: Array, label: str = "k, number of features") -> None:
    """Make the x-axis one of numbers of features: logarithmic, with numbers written out. A k of 0 has a place, too."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    if len(ks) and (ks.min() <= 0 or ax.get_xscale() == "symlog"):
        ax.set_xscale("symlog", linthresh=1)
    else:
        ax.set_xscale("log")
    if len(np.unique(ks)) == 1 and ax.dataLim.width == 0:
        ax.set_xlim(max(ks[0], 1) / 2, max(ks[0], 1) * 2)
    low, high = ax.get_xlim()
    span = math.log10(high / low) if low > 0 else math.inf
    if ax.get_xscale() == "log":
        plain = MaxNLocator(5, integer=True) if span < 0.7 else None
        ax.xaxis.set_major_locator(plain or LogLocator(subs=(1, 2, 5) if span < 2.2 else (1,), numticks=10))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda k, _: f"{k:,.0f}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlabel(label)


def in_percent(axis: Any) -> None:
    """Write shares as percentages."""
    from matplotlib.ticker import PercentFormatter

    axis.set_major_formatter(PercentFormatter(xmax=1))


def in_thousands(axis: Any) -> None:
    """Write large numbers out, with commas."""
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}" if abs(x) >= 1000 else f"{x:g}"))


def width_of(texts: Iterable[str]) -> float:
    """About how many inches the longest of some texts takes, in letters of 10 points."""
    return 0.08 * max(map(len, texts), default=0)


def quiet_grid(ax: Any) -> None:
    """Thin lines behind what is drawn."""
    ax.grid(True, color="#d0d0d0", linewidth=0.5)
    ax.set_axisbelow(True)


def put_title(ax: Any, text: str, names: Iterable[str] = (), *, reach: float = 1.3, settled: bool = False) -> None:
    """A title above axes, in smaller letters where they are narrow; ``names`` are those it has in it.

    ``reach``: how wide it may be, of the width of the axes. ``settled``: of that when all else that was drawn has its
    place.
    """
    size = font_that_fits(points_of(ax, settled=settled)[0] * reach / (0.55 * max(1, len(text))), least=6.0)
    ax.set_title(text, fontsize=size, **as_text(names))


def put_legend(ax: Any, handles: Sequence[Any] | None = None) -> None:
    """A legend where it hides least, in smaller letters where axes are narrow."""
    handles = ax.get_legend_handles_labels()[0] if handles is None else handles
    labels = [str(handle.get_label()) for handle in handles]
    size = font_that_fits((points_of(ax)[0] - 30) / (0.55 * max(map(len, labels), default=1)), least=5.0)
    legend = ax.legend(handles=handles, fontsize=0.85 * size, loc="best")
    for text in legend.get_texts():
        text.update(as_text([text.get_text()]))


def font_that_fits(room: float, most: float | None = None, least: float = 4.0) -> float:
    """The size of letters, in points, that leaves a fifth of some room empty; not above that of the user's labels."""
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties

    usual = FontProperties(size=rcParams["xtick.labelsize"]).get_size_in_points()
    return float(min(most or usual, usual, max(least, 0.8 * room)))
