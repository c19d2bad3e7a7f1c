"""Axes to draw on, and what lines, letters and names on them look like.

Displays draw on axes of their own, on those of somebody else, or on panels in the place of these. matplotlib is
imported when something is drawn. pyplot is asked for a figure only where no axes were given, so that notebooks show it;
figures are never shown or closed here, and settings of matplotlib stay as they are.

Colors are those that the color-blind tell apart; lines, markers and axes read in gray print. References: M. Okabe,
K. Ito, Color Universal Design (2008); cividis: J. R. Nunez, C. R. Anderton, R. S. Renslow, Optimizing colormaps with
consideration for color vision deficiency, PLOS ONE 13 (2018).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.containers import a_type
from nfs_dask.errors import InputError

MISSING = 'drawing needs matplotlib, which is not installed; pip install "nfs-dask[plots]"'
PANELS = "_nfs_dask_panels"  # what axes remember of the panels in their place: a second display joins them

_unseen: ContextVar[bool] = ContextVar("_unseen", default=False)


def check_matplotlib() -> None:
    """Refuse to go on without matplotlib, before anything that takes long."""
    try:
        import matplotlib as mpl  # noqa: F401
    except ImportError:
        raise InputError(MISSING) from None


def panels(
    ax: Any, rows: int = 1, columns: int = 1, *, size: tuple[float, float], heights: Sequence[float] | None = None
) -> Array:
    """Axes to draw on, (rows * columns,).

    Parameters
    ----------
    ax : Axes, sequence of Axes, or None
        Where: one to draw on, or whose place several panels share; or one for each panel. None: in a new figure.
    rows, columns
        How many panels.
    size
        Of a new figure, in inches.
    heights
        Of the rows, relative to each other.
    """
    check_matplotlib()
    from matplotlib.axes import Axes

    if ax is None:
        return _new_figure(rows, columns, size, heights)
    if isinstance(ax, Axes):
        return np.array([ax]) if rows * columns == 1 else _in_place_of(ax, rows, columns, heights)
    several = list(np.ravel(ax)) if isinstance(ax, (list, tuple, np.ndarray)) else []
    if not several or not all(isinstance(one, Axes) for one in several):
        raise InputError(f"ax is {a_type(ax)}; give Axes of matplotlib, such as Figure().subplots() makes")
    if len(several) != rows * columns:
        raise InputError(f"{len(several)} axes for {rows * columns} panels; give one for each, or one for all together")
    return np.array(several)


@contextmanager
def without_pyplot() -> Iterator[None]:
    """New figures are nobody's but the caller's: no window and no notebook shows them."""
    token = _unseen.set(True)
    try:
        yield
    finally:
        _unseen.reset(token)


def _new_figure(rows: int, columns: int, size: tuple[float, float], heights: Sequence[float] | None) -> Array:
    grid = {"height_ratios": heights}
    if _unseen.get():
        from matplotlib.figure import Figure

        figure = Figure(figsize=size, layout="constrained")
        return np.asarray(figure.subplots(rows, columns, squeeze=False, gridspec_kw=grid).ravel())
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained", gridspec_kw=grid)
    return np.asarray(axes.ravel())


def _in_place_of(ax: Any, rows: int, columns: int, heights: Sequence[float] | None) -> Array:
    """Panels where some axes are, which stay as an empty frame around them; those that are there already."""
    there = getattr(ax, PANELS, None)
    if there is not None and len(there) == rows * columns:
        return np.array(there)
    cell = ax.get_subplotspec()
    if cell is None:
        box = ax.get_position()
        edges = {"left": box.x0, "right": box.x1, "bottom": box.y0, "top": box.y1}
        grid = ax.figure.add_gridspec(rows, columns, height_ratios=heights, **edges)
    else:
        grid = cell.subgridspec(rows, columns, height_ratios=heights)
    ax.set_axis_off()
    made = np.array([ax.figure.add_subplot(grid[row, column]) for row in range(rows) for column in range(columns)])
    for one in (ax, made[0]):  # the first of them is what a display has as its ax_
        setattr(one, PANELS, made)
    return made


def grid_of(n: int) -> tuple[int, int]:
    """Rows and columns for n panels.

    >>> grid_of(1), grid_of(3), grid_of(4), grid_of(20)
    ((1, 1), (1, 3), (2, 2), (5, 4))
    """
    columns = n if n <= 3 else min(4, math.ceil(math.sqrt(n)))
    return math.ceil(n / columns), columns


def points_of(ax: Any, *, settled: bool = False) -> tuple[float, float]:
    """Width and height of axes in points; ``settled``, as the layout of their figure makes them by what is drawn."""
    figure = ax.figure.canvas.figure  # the whole one, also of axes in a part of it
    layout = figure.get_layout_engine() if settled else None
    if layout is not None:
        with warnings.catch_warnings(action="ignore"):  # who draws the figure is told
            layout.execute(figure)
    ax.apply_aspect()
    box = ax.get_window_extent()
    return 72 * box.width / ax.figure.dpi, 72 * box.height / ax.figure.dpi


# Lines and axes

BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, BLACK, GRAY = "#E69F00", "#56B4E9", "#000000", "#666666"

COLORS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)
DASHES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

SHARES = "Blues"  # from white to dark: shares, and other things that are not negative
SIGNED = "cividis"  # from dark to light with gray between them: in gray print below and above zero differ, too

MOST_MARKED = 40  # points of a line that has markers


def line_style(i: int, n_points: int = 0) -> dict[str, Any]:
    """The style of the i-th line of a picture; no two of 42 are alike, and no two of 168 with markers.

    Lines of many points have none.
    """
    marker = MARKERS[i % len(MARKERS)] if 0 < n_points <= MOST_MARKED else ""
    style = {"color": COLORS[i % len(COLORS)], "linestyle": DASHES[i % len(DASHES)], "linewidth": 1.6}
    return style | {"marker": marker, "markersize": 4.5}


def lines_on(ax: Any) -> int:
    """The number of lines in a legend that axes have by now, so that the next one looks different."""
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


# Names as text, whatever is in them

LONGEST = 32  # letters of a name in a picture
LATIN = 0x250  # letters below are in any font, also those with accents
# Fonts that have letters of many scripts. Those that are installed stand in where that of the user has none.
WIDE_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Source Han Sans SC",
    "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei",
    "Hiragino Sans",
    "PingFang SC",
    "Arial Unicode MS",
    "Microsoft YaHei",
    "Yu Gothic",
    "Malgun Gothic",
    "Noto Sans Devanagari",
    "Noto Sans Arabic",
    "Noto Sans Thai",
    "Nirmala UI",
    "Segoe UI Symbol",
    "Noto Emoji",
    "DejaVu Sans",
)


def shown(name: Any, longest: int = LONGEST) -> str:
    r"""A name as matplotlib is to have it: on one line, not too long, and with ``$`` that begins no formula.

    >>> shown("$x$"), shown("a_b"), shown("two\nlines")
    ('\\$x\\$', 'a_b', 'two\\nlines')
    >>> shown("a name that goes on and on and on and on")
    'a name that goe…n and on and on'
    """
    text = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in str(name))
    if len(text) > longest:
        half = (longest - 1) // 2
        text = f"{text[:half]}…{text[-half:]}"
    return text.replace("$", r"\$")


def legend_name(name: Any) -> str:
    """The same in a legend, which leaves out what begins with an underscore unless a space of no width is before it."""
    text = shown(name)
    return f"\N{ZERO WIDTH SPACE}{text}" if text.startswith("_") else text


def as_text(names: Iterable[str]) -> dict[str, Any]:
    """Properties of matplotlib's texts that show such names as they are, whatever the settings of the user."""
    plain: dict[str, Any] = {"parse_math": True, "usetex": False}
    usual = all(ord(letter) < LATIN for name in names for letter in name)
    return plain if usual else plain | {"fontfamily": _families()}


def _families() -> list[str]:
    """The font of the user, and those that are installed besides."""
    from matplotlib import font_manager, rcParams

    installed = set(font_manager.get_font_names())
    return [*rcParams["font.family"], *(font for font in WIDE_FONTS if font in installed)]
