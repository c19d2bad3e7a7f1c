"""The gain of a feature against a dual point: h_i(a) = g_i KL(p_i || a), in forms that keep their digits.

``totals`` is (C, M): what feature i has in class c. A point a is (C, ) with sum 1; for two classes its entries are a
and 1 - a, each to full precision.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from nfs_dask.kernels import kernel
from nfs_dask.solvers.solution import Array

_MOST_EXACT = 1 << 17  # terms; beyond, the pairwise sum of numpy is as good as reals deserve
SMALLEST = 2.0**-1000  # share that a class with counts has in any point
_FAR, _LIFT = 2.0**600, 2.0**500  # counts so large or small are divided or multiplied by so much


def gains(totals: Array, point: Array) -> Array:
    """h_i(point) of every column, (M, ) float64; infinite where a feature has counts in a class of share 0.

    >>> gains(np.array([[3.0, 2.0], [1.0, 2.0]]), np.array([0.5, 0.5])).round(6).tolist()
    [0.523248, 0.0]
    """
    out = np.empty(totals.shape[1])
    (_gains_two if len(totals) == 2 else _gains_many)(totals, point, out)
    return out


def exact_sum(terms: Array) -> float:
    """Sum that does not depend on the order of the terms."""
    return math.fsum(terms) if len(terms) <= _MOST_EXACT else float(terms.sum())


def divergence(masses: Array, point: Array) -> Array:
    """B KL(B_c/B || point) for each column of ``masses`` (C, n)."""
    return gains(np.ascontiguousarray(masses, np.float64), point)


def shares(masses: Array, otherwise: Array) -> Array:
    """``masses`` (C, ) as a point; ``otherwise`` if there is no mass. A share too small for a double is not 0."""
    total = masses.sum()
    return np.maximum(masses / total, np.where(masses > 0, SMALLEST, 0.0)) if total > 0 else otherwise


def set_gain(totals: Array, counts: Array) -> tuple[float, Array]:
    """Gain G of a set that takes ``counts`` features of each column, and its own point p_D."""
    masses = (totals * counts).sum(axis=1)
    if masses.sum() == 0:
        return 0.0, np.full(len(totals), 1 / len(totals))
    point = shares(masses, masses)
    return exact_sum(gains(totals, point) * counts), point


@numba.njit(nogil=True)
def _log_ratio(p, d, a):
    """log(p / a) where d = p - a is known better than p is."""
    return math.log1p(d / a) if d > -0.5 * a else math.log(p / a)


@kernel
def _gains_two(totals, point, out):
    a, b = point[0], point[1]
    for i in range(len(out)):
        f, e = totals[0, i], totals[1, i]
        h = 0.0
        if f + e > 0:
            g = f + e
            d = (f * b - e * a) / g  # p - a
            if f > 0:
                h += f * _log_ratio(f / g, d, a) if a > 0 else np.inf
            if e > 0:
                h += e * _log_ratio(e / g, -d, b) if b > 0 else np.inf
        out[i] = max(h, 0.0)


@numba.njit(nogil=True)
def entropy_like(x):
    """(1 + x) log(1 + x) - x, without cancellation near 0."""
    if abs(x) < 0.01:
        return x * x * (1 / 2 - x * (1 / 6 - x * (1 / 12 - x * (1 / 20 - x * (1 / 30 - x * (1 / 42 - x / 56))))))
    if x <= -1:
        return 1.0
    return (1 + x) * math.log1p(x) - x


@kernel
def _gains_many(totals, point, out):
    """Uses that the p_c - a_c sum to 0, so that each term can be a square at heart: an error in p_c does no harm."""
    n_classes = len(totals)
    for i in range(len(out)):
        g = 0.0
        for c in range(n_classes):
            g += totals[c, i]
        scale = 1.0
        if g > _FAR or 0 < g < 1 / _FAR:
            scale = 1 / _LIFT if g > 1 else _LIFT
            g = 0.0
            for c in range(n_classes):
                g += totals[c, i] * scale
        h = 0.0
        for c in range(n_classes):
            a, f = point[c], totals[c, i] * scale
            if a > 0:
                d = (f * (1 - a) - (g - f) * a) / g if g > 0 else 0.0
                h += a * entropy_like(d / a)
            elif f > 0:
                h = np.inf
        out[i] = g * h / scale if g > 0 else 0.0
