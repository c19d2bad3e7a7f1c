"""The base of displays, and checks of what they are given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.containers import a_type
from nfs_dask.errors import InputError
from nfs_dask.plots.drawing import PANELS


class Display(ABC):
    """Numbers that a picture shows, which is drawn as often as it is asked for.

    Attributes
    ----------
    ax_, axes_, figure_
        The axes of the last drawing: the first of them, all of them, and their figure.
    """

    ax_: Any
    axes_: Array
    figure_: Any

    @abstractmethod
    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw, on given axes or in a new figure."""

    def _drawn_on(self, axes: Array) -> Self:
        if len(axes) > 1:  # another display that is given the first of them finds the others
            setattr(axes[0], PANELS, axes)
        self.ax_, self.axes_, self.figure_ = axes[0], axes, axes[0].figure
        return self


def check_given(what: str, value: Any, kind: type, give: str) -> None:
    """Refuse a value of another type."""
    if not isinstance(value, kind):
        raise InputError(f"{what} {a_type(value)}; give {give}")


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
