"""A chosen number of features, marked on an axis of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from nfs_dask.containers import a_type
from nfs_dask.errors import InputError
from nfs_dask.plots.styles import BLACK
from nfs_dask.selection.chosen import Chosen

RULES = {
    "elbow": "within 1 % of its height",
    "error": "within 0.001",
    "cv": "within a standard error",
    "1se": "within a standard error",
    "near": "within the share",
}


def checked_choice(choice: Any) -> int | Chosen | None:
    """What a rule has chosen, or a plain number of features."""
    if choice is None or isinstance(choice, Chosen):
        return choice
    if isinstance(choice, (int, np.integer)) and not isinstance(choice, bool) and choice >= 0:
        return int(choice)
    if isinstance(choice, str):
        raise InputError(f"choice={choice!r} is the name of a rule; give what it chooses, path.choose({choice!r})")
    raise InputError(f"choice is {a_type(choice)}; give what path.choose(rule) returns, or a number of features")


def mark_choice(axes: Any, choice: int | Chosen | None) -> tuple[Any, Any]:
    """A line at the chosen k on each of some axes, and a band over the interval; the artists on the first of them."""
    if choice is None:
        return None, None
    looks: dict[str, Any] = {"color": BLACK, "linewidth": 1.2, "linestyle": (0, (3, 2)), "zorder": 1.5}
    line, *_ = (ax.axvline(int(choice), **looks) for ax in axes)
    line.set_label(f"k = {int(choice):,}{f', {choice.rule}' if isinstance(choice, Chosen) else ''}")
    low, high = choice.interval if isinstance(choice, Chosen) else (choice, choice)
    if not isinstance(choice, Chosen) or low == high:
        return line, None
    shade: dict[str, Any] = {"facecolor": "#999999", "alpha": 0.25, "linewidth": 0, "zorder": 0.5}
    band, *_ = (ax.axvspan(low, high, **shade) for ax in axes)
    band.set_label(f"{low:,} to {high:,}: {RULES.get(choice.rule, 'not told apart')}")
    return line, band
