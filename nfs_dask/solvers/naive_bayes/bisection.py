"""The reference for two classes: bisection on the dual point with a partition at each step, in plain numpy.

This is the paper's algorithm, with the misprints of its primal point set right: shares of the chosen features are
(B/S) f_c / B_c. Its support is a best set at the last point, whichever side of a kink that is on.

References: NFS Algorithm 1, with line 6 as in (13); NFS20 (Askari et al. 2020) Theorem 2.
"""

from __future__ import annotations

import numpy as np

from nfs_dask.solvers.naive_bayes.gains import gains, set_gain
from nfs_dask.solvers.naive_bayes.rounding_error import TWO_CLASSES
from nfs_dask.solvers.solution import Array, Solution, nothing

TOLERANCE = 1e-10  # on the dual point


def solve(totals: Array, k: int, *, alpha: float = 0.0, tolerance: float = TOLERANCE) -> Solution:
    """A support of k features by bisection; ``totals`` is (2, m), to each of which ``alpha`` is added.

    >>> solution = solve(np.array([[7, 7, 2, 6, 5, 6, 8], [1, 8, 1, 1, 7, 4, 0]]), 2)
    >>> solution.support.tolist(), round(solution.value, 6)
    ([4, 6], 4.798614)
    """
    f, columns = _selectable(totals, k, alpha)
    n_features = f.shape[1]
    k = max(0, min(k, n_features))
    masses = f.sum(axis=1)
    if k == 0 or not masses.all():
        share = masses / masses.sum() if masses.sum() else np.full(2, 0.5)
        return nothing(share, columns[:k])
    constant = _entropies(f)
    low, high, steps = 0.0, 1.0, 0
    while high - low > tolerance:
        a = (low + high) / 2
        chosen = _best(f, constant, a, k)
        steps += 1
        plus, minus = f[:, chosen].sum(axis=1)
        low, high = (a, high) if a * minus < (1 - a) * plus else (low, a)
    a = (low + high) / 2
    chosen = _best(f, constant, a, k)
    value, point, mass = set_gain(f[:, chosen], np.ones(k)), np.array([a, 1 - a]), float(masses.sum())
    bound = float(TWO_CLASSES.above(np.sort(gains(f, point))[n_features - k :].sum(), mass))
    gap = max(0.0, float(np.nextafter(bound - TWO_CLASSES.below(value, mass), np.inf)))
    return Solution(np.sort(columns[chosen]), value, bound, gap, 0, steps + 1, point)


def _selectable(totals: Array, k: int, alpha: float) -> tuple[Array, Array]:
    f = np.asarray(totals, np.float64)
    columns = np.arange(f.shape[1])
    if k < len(columns):
        columns = np.flatnonzero(f.any(axis=0))
        f = f[:, columns]
    return f + alpha, columns


def _entropies(f: Array) -> Array:
    """sum_c f_c log f_c - g log g of each feature."""
    g = f.sum(axis=0)
    return np.asarray(sum(_xlogx(row) for row in f) - _xlogx(g))


def _xlogx(x: Array) -> Array:
    return x * np.log(np.where(x > 0, x, 1.0))


def _best(f: Array, constant: Array, a: float, k: int) -> Array:
    """The k best features at ``a``."""
    gain = constant - f[0] * np.log(a) - f[1] * np.log1p(-a)
    return np.argpartition(gain, len(gain) - k)[len(gain) - k :]
