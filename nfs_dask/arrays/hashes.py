"""Numbers that look like chance, from numbers in order.

References: Steele, Lea and Flood 2014, Fast Splittable Pseudorandom Number Generators (SplitMix64).
"""

from __future__ import annotations

import numpy as np

from nfs_dask.arrays.block import Array

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio: how far SplitMix64 steps


def mixed(x: Array) -> Array:
    """The rounds of SplitMix64, but for the last shift; of uint64."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return x
