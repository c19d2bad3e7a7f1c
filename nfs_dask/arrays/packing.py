"""Whole numbers on their way between processes: most counts are small, so they go as a byte each, and others beside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from nfs_dask.arrays.block import Array

LEAST = 1 << 14  # numbers; fewer go as they are
AT_ONCE = 1 << 18  # numbers that are looked at together, as many as a processor's cache holds
SAMPLE = 1 << 12
MOST_BEYOND = 1 / 64  # of the sampled numbers, that may be too large for the type that is chosen


@dataclass(frozen=True)
class Packed:
    """An array of int64 whose numbers lie in ``narrow``, but for some that do not fit."""

    narrow: Array
    shape: tuple[int, ...]
    order: Literal["C", "F"]  # in which its numbers lie in memory
    places: Array
    beyond: Array

    def unpacked(self) -> Array:
        """The array, in memory of its own."""
        flat = self.narrow.astype(np.int64)
        flat[self.places] = self.beyond
        return flat.reshape(self.shape, order=self.order)


def packed(array: Array) -> Array | Packed:
    """The array in fewer bytes; as it is where that saves nothing."""
    flags = array.flags
    if array.dtype != np.int64 or array.size < LEAST or not (flags.c_contiguous or flags.f_contiguous):
        return array
    flat = array.ravel(order="K")
    kind = _narrowest(flat)
    if kind is None:
        return array
    narrow: Array = np.empty(flat.size, kind)
    places: list[Array] = []
    for first in range(0, flat.size, AT_ONCE):
        part = flat[first : first + AT_ONCE]
        narrow[first : first + AT_ONCE] = part
        places.append(np.flatnonzero(_beyond(part, kind)) + first)
    where = np.concatenate(places)
    return Packed(narrow, array.shape, "C" if flags.c_contiguous else "F", where, flat[where])


def unpacked(array: Array | Packed) -> Array:
    """Undo `packed`."""
    return array.unpacked() if isinstance(array, Packed) else array


def _narrowest(flat: Array) -> type | None:
    """The type that nearly all of a sample fit."""
    sample = flat[:: max(1, flat.size // SAMPLE)]
    return next(
        (kind for kind in (np.uint8, np.uint16, np.uint32) if _beyond(sample, kind).mean() <= MOST_BEYOND), None
    )


def _beyond(numbers: Array, kind: type) -> Array:
    """Mark numbers that do not fit; those below 0 are large ones without a sign."""
    return numbers.view(np.uint64) > np.iinfo(kind).max
