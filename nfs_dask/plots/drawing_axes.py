"""Where displays draw: on axes of their own, on those of somebody else, or on panels in the place of these.

matplotlib is imported when something is drawn. pyplot is asked for a figure only where no axes were given, so that
notebooks show it; figures are never shown or closed here, and settings of matplotlib stay as they are.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.containers import a_type
from nfs_dask.errors import InputError

MISSING = 'drawing needs matplotlib, which is not installed; pip install "nfs-dask[plots]"'
_PANELS = "_nfs_dask_panels"  # what axes remember of the panels in their place: a second display joins them

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
    there = getattr(ax, _PANELS, None)
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
        setattr(one, _PANELS, made)
    return made


def remember(axes: Array) -> None:
    """Let another display that is given the first of some panels find the others."""
    if len(axes) > 1:
        setattr(axes[0], _PANELS, axes)


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
