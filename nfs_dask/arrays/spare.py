"""Large arrays in memory that was used before.

Touching fresh memory costs about as much as a loop over it, on virtual machines more. So arrays that are made again and
again, such as the values of blocks, take the place of those that nobody refers to any more.
"""

from __future__ import annotations

import math
import weakref
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array, longest_columns
from nfs_dask.units import MiB

LEAST = MiB // 8  # smaller arrays are in memory that the allocator has at hand
MOST_KEPT = 40 * MiB  # in arrays that are waiting for others to take their place

# Bytes by their ids, the longest waiting first. An array that is made takes one out, by a step that threads cannot come
# between.
_kept: dict[int, Array] = {}


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


def give_back() -> None:
    """Leave to the system what is waiting: what comes next takes other sizes, or nothing."""
    _kept.clear()
    longest_columns.cache_clear()


def _fitting(nbytes: int) -> Array:
    """Memory of that size or a little more, as little more as there is."""
    sizes = {key: len(memory) for key in list(_kept) if (memory := _kept.get(key)) is not None}
    for key in sorted((key for key, size in sizes.items() if nbytes <= size <= 2 * nbytes), key=sizes.__getitem__):
        memory = _kept.pop(key, None)
        if memory is None:  # another thread was faster
            continue
        if nbytes <= len(memory) <= 2 * nbytes:
            return memory
        _kept[key] = memory  # that went meanwhile, and a later one has its id
    return np.empty(nbytes, np.uint8)


def _keep(memory: Array) -> None:
    _kept[id(memory)] = memory
    waiting = [one for key in list(_kept) if (one := _kept.get(key)) is not None]
    excess = sum(map(len, waiting)) - MOST_KEPT
    for one in waiting:
        if excess <= 0:
            break
        excess -= len(one)
        _kept.pop(id(one), None)
