"""Log likelihoods of supports, as sums of terms that are all below 0, so that they lose no digits.

With N(x) = sum x log(x / X), X the sum of x, the multinomial one of a support D is

    N(g outside of D, and B) + sum_c N(f_c on D),    B = sum_D g,

as features outside, and all of D together, are one distribution for all classes, and each class has its own on D.

Each term is right to 10 u, u = 2^-53, but for counts that are sums over C classes, C u, and for sums X of more than
`gains.exact_sum` adds exactly, 50 u, which a logarithm of a share of at most a half feels at most 1.5 times. Where a
share is more than that, the sum of all others stands for it in log1p. `ROUNDING` is 512 u.

References: NFS (5), (13); docs/mathematics.md 10.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numba
import numpy as np

from nfs_dask.arrays.compiling import kernel
from nfs_dask.solvers.naive_bayes.distinct import DistinctColumns
from nfs_dask.solvers.naive_bayes.gains import exact_sum
from nfs_dask.solvers.solution import Array

ROUNDING = 2.0**-44  # relative
_SMALLEST = 2.0**-1000
_LEAST = 2.0**-1040  # terms so small that doubles lose digits there, 2^-1074 each, do not add up to more


@dataclass(frozen=True)
class Objective:
    """A log likelihood, and what it may be wrong by."""

    value: float
    more: float = 0.0  # error beyond rounding

    @property
    def error(self) -> float:
        return self.more - ROUNDING * self.value + _LEAST


def surprise(x: Array, sizes: Array | None = None) -> float:
    """N(x): what items of the amounts ``x``, each ``sizes`` times, add to a log likelihood by their shares.

    >>> surprise(np.array([1e9, 1.0])) == math.log1p(-1 / (1e9 + 1)) * 1e9 - math.log(1e9 + 1)
    True
    """
    x = np.ascontiguousarray(x, np.float64)
    sizes = np.ones(len(x), np.int64) if sizes is None else sizes
    weighed = x * sizes
    total = exact_sum(weighed)
    if total == 0:
        return 0.0
    largest, terms = int(np.argmax(weighed)), np.empty(len(x))
    if x[largest] <= total / 2:
        _add_logs(x, weighed, total, terms)
        return exact_sum(terms)
    weighed[largest] = 0.0
    others = exact_sum(weighed)
    total = others + float(x[largest])
    _add_logs(x, weighed, total, terms)
    terms[largest] = larger_part(float(x[largest]), others, total)
    return exact_sum(terms)


def larger_part(part: float, rest: float, total: float) -> float:
    """The term part * log(part / total) of a part that is more than ``rest``, where total = part + rest."""
    return part * math.log1p(-rest / total)


def yes_or_no(present: Array, absent: Array) -> Array:
    """N of each pair: f log(f / n) + e log(e / n), n = f + e."""
    out = np.empty(np.shape(present))
    _yes_or_no(np.ravel(present), np.ravel(absent), out.ravel())
    return out


@numba.njit(nogil=True)
def log_share(x, total):
    """Logarithm of a share, also of one too small for a double."""
    share = x / total
    return math.log(share) if share > _SMALLEST else math.log(x) - math.log(total)


@kernel
def _add_logs(x, weighed, total, out):
    for i in range(len(x)):
        out[i] = weighed[i] * log_share(x[i], total) if weighed[i] > 0 else 0.0


@kernel
def _yes_or_no(present, absent, out):
    for i in range(len(out)):
        more, less = max(present[i], absent[i]), min(present[i], absent[i])
        n = more + less
        out[i] = more * math.log1p(-less / n) + less * log_share(less, n) if less > 0 else 0.0


def multinomial(distinct: DistinctColumns, alpha: float, support: Array, columns: Array) -> float:
    """Return the log likelihood at the best shares; ``columns`` (C, k) are totals of the support, not smoothed."""
    g, chosen = (totals.sum(axis=0) + len(totals) * alpha for totals in (distinct.totals, columns))
    outside, sizes = _others(g, distinct, support, chosen)
    together = exact_sum(chosen)
    smooth = columns + alpha
    return surprise(np.append(outside, together), np.append(sizes, 1)) + sum(surprise(row) for row in smooth)


def bernoulli(distinct: DistinctColumns, documents: Array, alpha: float, support: Array, columns: Array) -> float:
    """Return the log likelihood at the best rates; ``columns`` (C, k) are totals of the support, not smoothed."""
    g, chosen = (totals.sum(axis=0) for totals in (distinct.totals, columns))
    outside, sizes = _others(g, distinct, support, chosen)
    return exact_sum(pooled(outside, documents, alpha) * sizes) + exact_sum(split(columns, documents, alpha))


def pooled(g: Array, documents: Array, alpha: float) -> Array:
    """Return what each feature adds where all classes share a rate; ``g`` documents have it, without smoothing."""
    prior = len(documents) * alpha
    return yes_or_no(g + prior, np.maximum(documents.sum() - g, 0.0) + prior)


def split(totals: Array, documents: Array, alpha: float) -> Array:
    """Return what each feature adds where each class has its rate; ``totals`` (C, n) without smoothing."""
    n = documents[:, None]
    return np.asarray(yes_or_no(totals + alpha, np.maximum(n - totals, 0.0) + alpha).sum(axis=0))


def _others(g: Array, distinct: DistinctColumns, support: Array, chosen: Array) -> tuple[Array, Array]:
    """Return amounts of features outside of a support, and how many have each; ``chosen`` are those inside."""
    if not distinct.grouped:
        left = np.ones(len(g), bool)
        left[support] = False
        return g[left], np.ones(len(g) - len(support), np.int64)
    amounts, place = np.unique(g, return_inverse=True)
    left = np.zeros(len(amounts), np.int64)
    np.add.at(left, place, distinct.sizes)
    return amounts, left - np.bincount(np.searchsorted(amounts, chosen), minlength=len(amounts))
