"""Log likelihoods of supports, as sums of terms that are all below 0, so that they lose no digits.

With N(x) = sum x log(x / X), X the sum of x, the multinomial one of a support D is

    N(g outside of D, and B) + sum_c N(f_c on D),    B = sum_D g,

as features outside, and all of D together, are one distribution for all classes, and each class has its own on D.

Each term is right to 10 u, u = 2^-53, but for counts that are sums over C classes, C u, and for sums X of more than
`gains.exact_sum` adds exactly, 50 u, which a logarithm of a share of at most a half feels at most 1.5 times. Where a
share is more than that, the sum of all others stands for it in log1p. `ROUNDING` is 512 u.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nfs_dask.solvers.directory import Directory
from nfs_dask.solvers.gains import exact_sum
from nfs_dask.solvers.grouping import Cells
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
    taken = x > 0 if sizes is None else (x > 0) & (sizes > 0)
    x = x[taken]
    weighed = x if sizes is None else x * sizes[taken]
    if not len(x):
        return 0.0
    total, largest = exact_sum(weighed), int(np.argmax(weighed))
    if x[largest] <= total / 2:
        return exact_sum(_log_share(x, total) * weighed)
    rest = np.delete(weighed, largest)
    others = exact_sum(rest)
    total = others + x[largest]
    return exact_sum(np.append(_log_share(np.delete(x, largest), total) * rest, larger_part(x[largest], others, total)))


def larger_part(part: float, rest: float, total: float) -> float:
    """The term part * log(part / total) of a part that is more than ``rest``, where total = part + rest."""
    return part * math.log1p(-rest / total)


def yes_or_no(present: Array, absent: Array) -> Array:
    """N of each pair: f log(f / n) + e log(e / n), n = f + e."""
    more, less = np.maximum(present, absent), np.minimum(present, absent)
    some = less > 0
    out, more, less = np.zeros(np.shape(more)), more[some], less[some]
    out[some] = more * np.log1p(-less / (more + less)) + less * _log_share(less, more + less)
    return out


def _log_share(x: Array, total: Array | float) -> Array:
    """Logarithms of shares, also of those too small for a double."""
    share = x / total
    if share.min(initial=1.0) > _SMALLEST:
        return np.asarray(np.log(share))
    return np.where(share > _SMALLEST, np.log(np.maximum(share, _SMALLEST)), np.log(x) - np.log(total))


def multinomial(cells: Cells, where: Directory | None, alpha: float, support: Array, columns: Array) -> float:
    """Log likelihood at the best shares; ``columns`` (C, k) are the totals of the support, without smoothing."""
    g, chosen = (totals.sum(axis=0) + len(totals) * alpha for totals in (cells.totals, columns))
    outside, sizes = _others(g, cells.sizes, where, support, chosen)
    together = exact_sum(chosen)
    smooth = columns + alpha
    return surprise(np.append(outside, together), np.append(sizes, 1)) + sum(surprise(row) for row in smooth)


def bernoulli(
    cells: Cells, where: Directory | None, documents: Array, alpha: float, support: Array, columns: Array
) -> float:
    """Log likelihood at the best rates; ``columns`` (C, k) are the totals of the support, without smoothing."""
    g, chosen = (totals.sum(axis=0) for totals in (cells.totals, columns))
    outside, sizes = _others(g, cells.sizes, where, support, chosen)
    return exact_sum(pooled(outside, documents, alpha) * sizes) + exact_sum(split(columns, documents, alpha))


def pooled(g: Array, documents: Array, alpha: float) -> Array:
    """What each feature adds where all classes share a rate; ``g`` of all documents have it, without smoothing."""
    prior = len(documents) * alpha
    return yes_or_no(g + prior, np.maximum(documents.sum() - g, 0.0) + prior)


def split(totals: Array, documents: Array, alpha: float) -> Array:
    """What each feature adds where each class has its rate; ``totals`` (C, n) without smoothing."""
    n = documents[:, None]
    return np.asarray(yes_or_no(totals + alpha, np.maximum(n - totals, 0.0) + alpha).sum(axis=0))


def _others(g: Array, sizes: Array, where: Directory | None, support: Array, chosen: Array) -> tuple[Array, Array]:
    """Amounts of features outside of a support, and how many have each; ``chosen`` are the amounts inside."""
    if where is None:
        left = np.ones(len(g), bool)
        left[support] = False
        return g[left], np.ones(len(g) - len(support), np.int64)
    amounts, place = np.unique(np.concatenate((g, chosen)), return_inverse=True)
    left = np.zeros(len(amounts), np.int64)
    np.add.at(left, place, np.concatenate((sizes, -np.ones(len(chosen), np.int64))))
    return amounts, left
