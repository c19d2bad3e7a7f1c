"""The gain of a feature against a dual point: h_i(a) = g_i KL(p_i || a), in forms that keep their digits.

``totals`` is (C, M): what feature i has in class c. A point a is (C, ) with sum 1; for two classes its entries are a
and 1 - a, each to full precision.

Two classes: with s = a + b, which rounding leaves near 1, and D = f b - e a,

    h = (g / s) [ a w(D / (g a)) + b w(-D / (g b)) ],    w(x) = (1 + x) log(1 + x) - x >= 0.

That is the gain at (a, b) / s without any rounding of the point, and nothing in it cancels but D, of which two products
to twice the digits leave all digits. So each gain has a relative error, however near p is to a. In units u = 2^-53,
for logarithms good to 2 u (1 ulp): D 4, g 1, x = D / (g a) 7. Where |x| <= 1/2 the series of w has at most 2.5 times
the error of x and 9 more. Beyond, P log1p(x) - D / g with P = f s / g subtracts numbers of at most 5.6 and 4.6 times
the result, with errors of 14 and 6. With the sum and the factor g / s less than 120 u: `ROUNDING` is 256 u, and so
leaves 130 u to sums of gains.

References: NFS Theorem 3.2, h(alpha), as g KL(p || alpha): docs/mathematics.md 3.2.
"""

from __future__ import annotations

import math

import numpy as np

from nfs_dask.arrays.compiling import inlined_part, kernel, kernel_part
from nfs_dask.arrays.kernels import fused
from nfs_dask.solvers.solution import Array

ROUNDING = 2.0**-45  # relative error of a sum of gains of two classes
SMALLEST = 2.0**-1000  # share that a class with counts has in any point
_MOST_EXACT = 1 << 17  # terms; beyond, the pairwise sum of numpy is as good as reals deserve
_FAR, _LIFT = 2.0**600, 2.0**500  # counts so large or small are divided or multiplied by so much
_LEAST, _MOST, _SMALL_SHARE = 2.0**-600, 2.0**900, 2.0**-300  # between which no product of two loses anything


def gains(totals: Array, point: Array) -> Array:
    """Return h_i(point) of every column, (M, ) float64; infinite where a class of share 0 has counts.

    >>> gains(np.array([[3.0, 2.0], [1.0, 2.0]]), np.array([0.5, 0.5])).round(6).tolist()
    [0.523248, 0.0]
    """
    out = np.empty(totals.shape[1])
    (_gains_two if len(totals) == 2 else _gains_many)(np.ascontiguousarray(totals, np.float64), point, out)
    return out


def exact_sum(terms: Array) -> float:
    """Return a sum that does not depend on the order of the terms."""
    # Python adds its own numbers twice as fast as those of numpy
    return math.fsum(terms.tolist()) if len(terms) <= _MOST_EXACT else float(terms.sum())


def shares(masses: Array) -> Array:
    """Return ``masses`` (C, ) as a point, uniform if there is no mass. A share too small for a double is not 0."""
    total = masses.sum()
    if not total > 0:
        return np.full(len(masses), 1 / max(len(masses), 1))
    return np.maximum(masses / total, SMALLEST * (masses > 0))


def set_gain(totals: Array, counts: Array) -> float:
    """Return the gain G of a set that takes ``counts`` features of each column; fractions give the second dual.

    >>> round(set_gain(np.array([[7.0, 1.0, 4.0], [1.0, 7.0, 4.0]]), np.array([1.0, 1.0, 0.5])), 6)
    5.062032
    """
    masses = (totals * counts).sum(axis=1)
    total = masses.sum()
    if total == 0:
        return 0.0
    # two shares need not add up to 1, so that these may be halved until they nearly do, which does not round
    own = np.ldexp(masses, -math.frexp(total)[1]) if len(masses) == 2 else masses / total
    return exact_sum(gains(totals, np.maximum(own, SMALLEST * (masses > 0))) * counts)


@kernel
def _gains_two(totals, point, out):
    a, b = point[0], point[1]
    s, inside = a + b, min(a, b) > _SMALL_SHARE
    all_in_first = math.log1p(b / a) if a > 0 else np.inf  # the gain of one count of either class
    all_in_second = math.log1p(a / b) if b > 0 else np.inf
    u, v = (1 / a, 1 / b) if inside else (0.0, 0.0)
    for i in range(len(out)):
        f, e = totals[0, i], totals[1, i]
        g = f + e
        if e == 0 or f == 0:
            out[i] = g * (all_in_first if e == 0 else all_in_second) if g > 0 else 0.0
        elif inside and _LEAST < g < _MOST:
            w = 1 / g
            d = difference(f, b, e, a) * w
            p, q = f * w * s, e * w * s
            out[i] = (part(p, d, a, d * u, p * u) + part(q, -d, b, -d * v, q * v)) * (g / s)
        else:
            out[i] = _far_gain(f, e, a, b)


@kernel_part
def _far_gain(f, e, a, b):
    """The same where a product might leave the range of doubles: for counts scaled to about 1."""
    if a == 0 or b == 0:
        return np.inf
    _, power = math.frexp(max(f, e))
    half = -(power // 2)
    one, other = math.ldexp(1.0, half), math.ldexp(1.0, -power - half)
    f, e = f * one * other, e * one * other
    g, s = f + e, a + b
    d = difference(f, b, e, a) / g
    p, q = f / g * s, e / g * s
    h = (part(p, d, a, d / a, p / a) + part(q, -d, b, -d / b, q / b)) * (g / s)
    return max(h, 0.0) / one / other


@kernel_part
def difference(x, y, v, w):
    """X y - v w, from products to twice the digits: what rounding left over of them is added."""
    left, right = x * y, v * w
    return (left - right) + (fused(x, y, -left) - fused(v, w, -right))


@inlined_part
def part(p, d, a, x, ratio):
    """A w(x), x = d / a, where p = a + d: both are given, as neither may be made of the other; ``ratio`` is p / a."""
    if abs(x) <= 0.5:
        return a * entropy_like(x)
    if 0 < ratio < _MOST:
        return p * math.log(ratio) - d
    return p * (math.log(p) - math.log(a)) - d if p > 0 else -d


@kernel_part
def entropy_like(x):
    """(1 + x) log(1 + x) - x, without cancellation near 0.

    There by log(1 + x) = 2 artanh(r), r = x / (2 + x), which is x r + 2 (1 + x) r^3 (1/3 + r^2/5 + r^4/7 + ...).
    """
    if abs(x) > 0.5:
        return (1 + x) * math.log1p(x) - x if x > -1 else 1.0
    r = x / (2 + x)
    w = r * r
    v = w * w
    even, odd = 1 / 15 * v + 1 / 11, 1 / 13 * v + 1 / 9
    if abs(x) > 0.15:
        even = ((((1 / 31 * v + 1 / 27) * v + 1 / 23) * v + 1 / 19) * v + 1 / 15) * v + 1 / 11
        odd = ((((1 / 33 * v + 1 / 29) * v + 1 / 25) * v + 1 / 21) * v + 1 / 17) * v + 1 / 13
        odd = odd * v + 1 / 9
    more = (even * v + 1 / 7) * v + 1 / 3 + ((odd * v) + 1 / 5) * w
    return x * r + 2 * (1 + x) * r * w * more


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
