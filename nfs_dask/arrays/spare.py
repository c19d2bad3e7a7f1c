"""Large arrays in memory that was used before.

Touching fresh memory costs about as much as a loop over it, on virtual machines more. So arrays that are made again and
again, such as the values of blocks, take the place of those that nobody refers to any more.
"""

from __future__ import annotations

import math
import weakref
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.units import MiB

LEAST = MiB // 8  # smaller arrays are in memory that the allocator has at hand
MOST_KEPT = 32 * MiB  # in arrays that are waiting for others to take their place

_kept: list[Array] = []  # bytes; an array that is made takes one out, by a step that threads cannot come between


def spare(shape: tuple[int, ...], dtype: Any) -> Array:
    """An array of any content, as of `np.empty`. It is free for another one once there is no view of it left."""
    dtype, size = np.dtype(dtype), math.prod(shape)
    nbytes = size * dtype.itemsize
    if nbytes < LEAST:
        return np.empty(shape, dtype)
    memory = _fitting(nbytes)
    lent = np.frombuffer(memory.data, dtype, size)  # views of it keep this one alive, as its own base is no array
    weakref.finalize(lent, _keep, memory)
    return lent.reshape(shape)


def _fitting(nbytes: int) -> Array:
    """Memory of that size or a little more."""
    for _ in range(len(_kept)):
        try:
            memory = _kept.pop(0)
        except IndexError:  # another thread was faster
            break
        if nbytes <= len(memory) <= 2 * nbytes:
            return memory
        _kept.append(memory)
    return np.empty(nbytes, np.uint8)


def _keep(memory: Array) -> None:
    _kept.append(memory)
    while sum(map(len, list(_kept))) > MOST_KEPT:
        _kept.pop(0)
