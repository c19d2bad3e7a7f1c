"""Sums and products of doubles without loss, for compiled loops: what `doubles` does for arrays, number by number.

A sum is carried as two or three doubles that do not overlap, the first being the rounded whole.

References: Knuth's two-sum, Dekker's product (1971); docs/mathematics.md 6.
"""

from __future__ import annotations

from numba.extending import register_jitable

from nfs_dask.arrays.doubles import two_sum
from nfs_dask.arrays.kernels import fused


@register_jitable
def settle(a: float, b: float) -> tuple[float, float]:
    """As `two_sum`, where the first is not the smaller of the two."""
    total = a + b
    return total, b - (total - a)


@register_jitable
def two_product(a: float, b: float) -> tuple[float, float]:
    """The rounded product, and what rounding left over."""
    product = a * b
    return product, fused(a, b, -product)


@register_jitable
def gather(high: float, low: float, a: float) -> tuple[float, float]:
    """(high + low) + a, of which the second double may grow until `settle` or `two_sum` settles both."""
    high, rest = two_sum(high, a)
    return high, low + rest


@register_jitable
def add_to_pair(high: float, low: float, a: float) -> tuple[float, float]:
    """(high + low) + a, as two doubles, for sums that do not cancel."""
    return settle(*gather(high, low, a))


@register_jitable
def loose_plus(high: float, low: float, a: float, b: float) -> tuple[float, float]:
    """(high + low) + (a + b), of which the second double may grow likewise."""
    total, rest = two_sum(high, a)
    return total, low + (rest + b)


@register_jitable
def pair_plus(high: float, low: float, a: float, b: float) -> tuple[float, float]:
    """(high + low) + (a + b), as two doubles."""
    high, rest = two_sum(high, a)
    low, least = two_sum(low, b)
    high, rest = settle(high, rest + low)
    return settle(high, rest + least)


@register_jitable
def triple_plus(high: float, low: float, least: float, a: float, b: float) -> tuple[float, float, float]:
    """(high + low + least) + (a + b), as three doubles."""
    high, first = two_sum(high, a)
    low, second = two_sum(low, b)
    low, third = two_sum(low, first)
    low, least = two_sum(low, least + (second + third))
    high, low = two_sum(high, low)
    low, least = two_sum(low, least)
    return high, low, least


@register_jitable
def loose_triple_plus(high: float, low: float, least: float, a: float, b: float) -> tuple[float, float, float]:
    """(high + low + least) + (a + b), of which the doubles may overlap until `triple_plus` settles them."""
    high, first = two_sum(high, a)
    low, second = two_sum(low, first)
    low, third = two_sum(low, b)
    return high, low, least + (second + third)


@register_jitable
def triple_plus_product(
    high: float, low: float, least: float, w: float, a: float, b: float
) -> tuple[float, float, float]:
    """(high + low + least) + w * (a + b), as three doubles."""
    high, low, least = triple_plus(high, low, least, *two_product(w, a))
    return triple_plus(high, low, least, *two_product(w, b))
