"""What all displays have: data as attributes, and a method that draws them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError
from nfs_dask.plots.drawing_axes import remember


class Display(ABC):
    """Numbers that a picture shows, which is drawn as often as it is asked for.

    Attributes
    ----------
    ax_, axes_, figure_
        What was drawn on last: the first of the axes, all of them, and their figure.
    """

    ax_: Any
    axes_: Array
    figure_: Any

    @abstractmethod
    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw, on given axes or in a new figure."""

    def _drawn_on(self, axes: Array) -> None:
        remember(axes)
        self.ax_, self.axes_, self.figure_ = axes[0], axes, axes[0].figure


def numbers(what: str, values: Any, shape: tuple[int | None, ...]) -> Array:
    """Numbers of a display, in an array of a shape in which None may be anything."""
    try:
        array = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{what} are no numbers; give an array of them") from None
    fits = array.ndim == len(shape) and all(n in (None, m) for n, m in zip(shape, array.shape, strict=True))
    if not fits:
        wanted = ", ".join("any" if n is None else str(n) for n in shape)
        raise InputError(f"{what} have shape {array.shape}; give one of ({wanted})")
    return array


def sizes(what: str, values: Any) -> Array:
    """Numbers of features, ascending, at least one of them."""
    ks = numbers(what, values, (None,))
    if not len(ks):
        raise InputError(f"{what} are empty; give at least one number of features")
    if not np.all(np.isfinite(ks) & (ks >= 0) & (ks == np.floor(ks))) or np.any(np.diff(ks) <= 0):
        raise InputError(f"{what} are {ks.tolist()[:5]}...; give whole numbers of features in ascending order")
    return ks.astype(np.int64)
