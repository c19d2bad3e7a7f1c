"""How pictures look: one palette, told apart without color too; saved without a date, so that equal ones are equal."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle
from pathlib import Path
from typing import Any

# Of Okabe and Ito: told apart by the color-blind. Dashes and marks tell them apart in print.
COLORS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"),
    *("#56B4E9", "#000000", "#888888", "#882255", "#A6761D"),
)
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (7, 3)), (0, (2, 1)), (0, (9, 1)))
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", "h")

LOOK = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "lines.markersize": 4,
    "svg.hashsalt": "nfs-dask",  # ids of equal pictures are equal
    "svg.fonttype": "none",  # text stays text
}


def styles(names: Iterable[str], marks: bool = True) -> dict[str, dict[str, Any]]:
    """Keywords of ``Axes.plot`` by name; the first names always look the same."""
    looks = zip(cycle(COLORS), cycle(DASHES), cycle(MARKS), strict=False)
    return {
        name: {"label": name, "color": color, "linestyle": dash} | ({"marker": mark} if marks else {})
        for name, (color, dash, mark) in zip(names, looks, strict=False)
    }


def panels(rows: int, columns: int, width: float = 3.4, height: float = 2.6) -> tuple[Any, Any]:
    """A figure and its axes, (rows, columns)."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams.update(LOOK)
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def legend(figure: Any, axes: Any, columns: int = 4) -> None:
    """One for all panels, below them."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)


DATELESS: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}


def save(figure: Any, folder: Path, name: str, endings: Iterable[str] = tuple(DATELESS)) -> None:
    """As SVG for pages, PDF for print and PNG for eyes."""
    folder.mkdir(parents=True, exist_ok=True)
    for ending in endings:
        figure.savefig(folder / f"{name}.{ending}", metadata=DATELESS[ending], dpi=110)
