"""Distances of the classes from each other in each feature, in twice the digits of a double.

Means come as quotients of sums, and what is wanted is their differences: where a feature has a large offset, or many
features have means that are equal as fractions, doubles would tell little. Here a number is a pair, the double nearest
to it and what that leaves out.

References: SC (Calafiore and Fracastoro 2019) Proposition 1, (11).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba.extending import register_jitable

from nfs_dask.arrays.compiling import kernel
from nfs_dask.arrays.doubles import Pair, two_sum
from nfs_dask.arrays.exact_kernels import pair_plus, settle, two_product
from nfs_dask.solvers.solution import Array


@dataclass(frozen=True)
class Separation:
    """The squared distance of the class means to their own mean, sum_c (mean_c - pooled)^2, of each feature."""

    gain: Array  # (m,) float64, rounded once: equal gains are equal to the bit
    pooled: Array  # (m,) float64, the unweighted mean of the class means


def separate(sums: Pair, weights: Pair) -> Separation:
    """The separation of features with ``sums`` (C, m), of classes of ``weights`` (C,) above 0.

    >>> sums, weights = Pair.of(np.array([[13, 3], [4, 6]])), Pair.of(np.array([5, 8]))
    >>> separate(sums, weights).gain.round(9).tolist()
    [2.205, 0.01125]
    """
    out = Separation(*np.empty((2, sums.hi.shape[1])))
    _separate(sums.hi.copy(), sums.lo.copy(), weights.hi, weights.lo, out.gain, out.pooled)
    return out


def add_squares(sums: Pair, running: Array) -> None:
    """Add the squares of ``sums`` (C, m) in turn to running sums (3, C), which are the sums of their rows.

    Three doubles, as what is taken from them may be as large. They do not depend on how features are cut.

    >>> running = np.zeros((3, 1))
    >>> add_squares(Pair.of(np.array([[1e25, 3.0]])), running)
    >>> sum(map(int, running[:, 0])) - int(1e25) ** 2
    9
    """
    _add_squares(sums.hi, sums.lo, running)


def add_up(values: Array, running: Array) -> None:
    """Add ``values`` (n,) in turn to a running sum (2,), the double nearest to it and about what it leaves out."""
    _add_up(values, running)


def prefix_sums(values: Array, ends: Array) -> Array:
    """The sums of the first ``ends`` (K,) values, (2, K) as `add_up` leaves them; ``ends`` ascend.

    >>> prefix_sums(np.array([1e16, 1.0, 1.0]), np.array([0, 2, 3])).tolist()
    [[0.0, 1e+16, 1e+16], [0.0, 1.0, 2.0]]
    """
    out = np.empty((2, len(ends)))
    _prefix_sums(values, ends, out)
    return out


@register_jitable
def _divide(a: float, a_low: float, b: float, b_low: float) -> tuple[float, float]:
    """A pair by a pair. Quotients of equal fractions are equal to the bit."""
    quotient = a / b
    product, error = two_product(quotient, b)
    return settle(quotient, ((((a - product) - error) + a_low) - quotient * b_low) / b)


@kernel
def _separate(high, low, weight, weight_low, gain, pooled):
    """Loops run over features inside, so that they compile to vector instructions; ``high`` and ``low`` are spent."""
    n_classes, n = high.shape
    shift, shift_low, gain_low = np.zeros(n), np.zeros(n), np.zeros(n)
    for c in range(n_classes):
        w, w_low = weight[c], weight_low[c]
        for i in range(n):
            high[c, i], low[c, i] = _divide(high[c, i], low[c, i], w, w_low)
        if c > 0:  # differences to the first class: equal means leave exactly nothing
            for i in range(n):
                d, d_low = pair_plus(high[c, i], low[c, i], -high[0, i], -low[0, i])
                high[c, i], low[c, i] = d, d_low
                shift[i], shift_low[i] = pair_plus(shift[i], shift_low[i], d, d_low)
    for i in range(n):
        shift[i], shift_low[i] = _divide(shift[i], shift_low[i], float(n_classes), 0.0)
        high[0, i], low[0, i] = pair_plus(high[0, i], low[0, i], shift[i], shift_low[i])
        pooled[i] = high[0, i]
        gain[i], gain_low[i] = _square(shift[i], shift_low[i])
    for c in range(1, n_classes):
        for i in range(n):
            d, d_low = pair_plus(high[c, i], low[c, i], -shift[i], -shift_low[i])
            p, p_low = _square(d, d_low)
            gain[i], gain_low[i] = pair_plus(gain[i], gain_low[i], p, p_low)


@register_jitable
def _square(a: float, a_low: float) -> tuple[float, float]:
    square, error = two_product(a, a)
    return settle(square, error + 2.0 * a * a_low)


@kernel
def _add_squares(high, low, running):
    """Squares come first, in a loop that compiles to vector instructions; only additions have to wait for others."""
    n_classes, n = high.shape
    first, second, third = np.empty(n), np.empty(n), np.empty(n)
    for c in range(n_classes):
        for i in range(n):
            first[i], e = two_product(high[c, i], high[c, i])
            q, f = two_product(2.0 * low[c, i], high[c, i])
            second[i], g = two_sum(q, e)
            third[i] = f + g + low[c, i] * low[c, i]
        total, rest, last = running[0, c], running[1, c], running[2, c]
        for i in range(n):
            total, e = two_sum(total, first[i])
            e, f = two_sum(e, second[i])
            rest, g = two_sum(rest, e)
            last += third[i] + (f + g)
        running[0, c], running[1, c], running[2, c] = total, rest, last


@kernel
def _add_up(values, running):
    total, rest = running
    for i in range(len(values)):
        total, e = two_sum(total, values[i])
        rest += e
    running[0], running[1] = total, rest


@kernel
def _prefix_sums(values, ends, out):
    total, rest = 0.0, 0.0
    start = 0
    for j in range(len(ends)):
        for i in range(start, ends[j]):
            total, e = two_sum(total, values[i])
            rest += e
        start = ends[j]
        out[0, j], out[1, j] = total, rest
