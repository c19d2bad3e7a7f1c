"""Arithmetic on pairs of doubles: twice the digits of float64, by numpy alone.

A pair is a double and what rounding to it left over, about 32 decimal digits. A sum of many reals that is carried as a
pair rounds to the same double for any order and partition, and differences of large sums keep their digits.

Built from two operations whose rounding errors are themselves doubles: the sum (Knuth) and the product (Dekker, with
Veltkamp's splitting, as not every processor fuses multiply and add). Products are exact where neither factor is
beyond 2^990 and the result, unless zero, is not below 2^-960.

References: Knuth's two-sum, Dekker's product (1971); docs/mathematics.md 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]

ROUNDING = 2.0**-95  # of a whole: what a sum of reals in pairs may be wrong by
_SPLITTER = 2.0**27 + 1  # times this, a double falls into halves of 26 bits


@register_jitable
def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """The rounded sum, and what rounding left over: together a + b exactly; in compiled loops as well.

    >>> high, low = two_sum(np.array([1e16]), np.array([1.0]))
    >>> high.tolist(), low.tolist()
    ([1e+16], [1.0])
    """
    total = a + b
    from_b = total - a
    return total, (a - (total - from_b)) + (b - from_b)


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded product, and what rounding left over: together a * b exactly."""
    product = a * b
    a_top, a_rest = _halves(a)
    b_top, b_rest = _halves(b)
    return product, ((a_top * b_top - product) + a_top * b_rest + a_rest * b_top) + a_rest * b_rest


def _halves(a: Array) -> tuple[Array, Array]:
    scaled = a * _SPLITTER
    top = scaled - (scaled - a)
    return top, a - top


def distil(terms: Sequence[Array], count: int) -> list[Array]:
    """The sum of arrays as ``count`` arrays that do not overlap, largest first; the first is the sum, rounded.

    It comes out as if it had been computed with two doubles more than are returned, so it may cancel.

    >>> [a.tolist() for a in distil([np.array([1e16]), np.array([1.0]), np.array([-1e16])], 2)]
    [[1.0], [0.0]]
    """
    rest = list(np.broadcast_arrays(*terms))
    for _ in range(count):
        _push_up(rest)
    out: list[Array] = []
    while len(out) < count:
        _push_up(rest)
        out.insert(0, rest.pop() if rest else np.zeros_like(out[0]))
    if rest:
        out[0] = out[0] + np.sum(rest, axis=0)
    for _ in range(2):  # a sum that cancelled is made of what was below it
        _push_up(out)
    return out[::-1]


def _push_up(terms: list[Array]) -> None:
    """Add the terms up, in place: the last becomes their rounded sum, each other what rounding left over."""
    for i in range(1, len(terms)):
        terms[i], terms[i - 1] = two_sum(terms[i], terms[i - 1])


@dataclass(frozen=True, slots=True)
class Pair:
    """Unevaluated sums ``hi + lo`` with ``hi`` the nearest double.

    >>> third = Pair.of(np.array([1])) / np.array([3])
    >>> (third * np.array([3.0]) - np.array([1.0])).value.item()
    0.0
    """

    hi: Array
    lo: Array

    # numpy would take a pair for an object and multiply it element by element
    __array_ufunc__ = None

    @classmethod
    def of(cls, values: Array) -> Pair:
        """Numbers as they are: whole ones of up to 64 bits do not lose any."""
        values = np.asarray(values)
        if values.dtype.kind in "iu" and values.dtype.itemsize == 8:
            half = values.dtype.type(32)
            top = (values >> half).astype(np.float64) * 2.0**32
            return cls(*two_sum(top, (values & values.dtype.type(2**32 - 1)).astype(np.float64)))
        exact = values.astype(np.float64)
        return cls(exact, np.zeros_like(exact))

    @classmethod
    def sum_of(cls, terms: Sequence[Array]) -> Pair:
        """The sum of several arrays of doubles, to the last digit of the pair even where they cancel."""
        return cls(*distil(terms, 2))

    @property
    def value(self) -> Array:
        """Rounded to one double."""
        return self.hi + self.lo

    def part(self, where: Any) -> Pair:
        """The pairs at some places."""
        return Pair(self.hi[where], self.lo[where])

    def __neg__(self) -> Pair:
        return Pair(-self.hi, -self.lo)

    def __add__(self, other: Pair | Array) -> Pair:
        other = _pair(other)
        high, rest = two_sum(self.hi, other.hi)
        low, least = two_sum(self.lo, other.lo)
        high, rest = two_sum(high, rest + low)
        return Pair(*two_sum(high, rest + least))

    def __sub__(self, other: Pair | Array) -> Pair:
        return self + -_pair(other)

    def __mul__(self, other: Pair | Array) -> Pair:
        other = _pair(other)
        product, rest = two_product(self.hi, other.hi)
        return Pair(*two_sum(product, rest + (self.hi * other.lo + self.lo * other.hi)))

    def __truediv__(self, other: Pair | Array) -> Pair:
        """Long division: the nearest double first, then what it leaves."""
        other = _pair(other)
        first = self.hi / other.hi
        return Pair(*two_sum(first, (self - other * first).hi / other.hi))

    def against_half(self, whole: Pair) -> Array:
        """-1, 0 or 1, as each is below half of its whole, that half up to rounding, or above.

        >>> third = Pair.of(np.array([1])) / np.array([3])
        >>> (third + third).against_half(Pair.of(np.array([4])) / np.array([3])).tolist()
        [0]
        """
        over, near = (self + self - whole).value, ROUNDING * whole.hi
        return np.asarray((over > near).astype(np.int8) - (over < -near))

    def sum(self, axis: int = -1) -> Pair:
        """Added up along an axis, by halves, so that the order of the terms hardly matters.

        >>> Pair.of(np.array([1e16, 1.0, -1e16, 1.0])).sum().value.item()
        2.0
        """
        hi, lo = np.moveaxis(self.hi, axis, 0), np.moveaxis(self.lo, axis, 0)
        if len(hi) == 0:
            return Pair(hi.sum(axis=0), lo.sum(axis=0))
        while len(hi) > 1:
            half = len(hi) // 2
            added = Pair(hi[:half], lo[:half]) + Pair(hi[half : 2 * half], lo[half : 2 * half])
            odd = slice(2 * half, None)
            hi, lo = np.concatenate((added.hi, hi[odd])), np.concatenate((added.lo, lo[odd]))
        return Pair(hi[0], lo[0])


def _pair(values: Pair | Array) -> Pair:
    return values if isinstance(values, Pair) else Pair.of(values)
