"""Baselines: features by the odds ratio, and by the weights of a multinomial naive Bayes of all features.

References: NFS section 4.1: odds ratio and thresholded multinomial naive Bayes (TMNB), weights w_m of (6).
"""

from __future__ import annotations

import numpy as np

from nfs_dask.solvers.solution import Array


def log_odds(documents_with: Array, documents: Array, alpha: float = 1.0) -> Array:
    """Largest absolute log odds ratio of each feature, (m, ): of one class against the others together.

    ``documents_with`` (C, m) documents with each feature, ``documents`` (C, ) all of a class; ``alpha`` is added to
    each, and twice to all of a class.

    >>> log_odds(np.array([[8, 5], [1, 5]]), np.array([10, 10]), alpha=0).round(6).tolist()
    [3.583519, 0.0]
    """
    f = np.asarray(documents_with, np.float64)
    n = np.asarray(documents, np.float64)
    best = np.zeros(f.shape[1])
    for c in range(len(f) if len(f) > 2 else 1):
        rest = np.arange(len(f)) != c
        inside, outside = f[c] + alpha, f[rest].sum(axis=0) + alpha
        n_inside, n_outside = n[c] + 2 * alpha, n[rest].sum() + 2 * alpha
        best = np.maximum(best, np.abs(_ratio(inside * (n_outside - outside), outside * (n_inside - inside))))
    return best


def multinomial_weights(totals: Array, alpha: float = 1.0) -> Array:
    """Largest absolute weight of each feature in a multinomial naive Bayes of all features, (m, ).

    The weight is the log share in a class less that in the other; for more classes, less the mean over all.

    >>> multinomial_weights(np.array([[6, 2], [2, 6]]), alpha=0).round(6).tolist()
    [1.098612, 1.098612]
    """
    f = np.asarray(totals, np.float64) + alpha
    with np.errstate(divide="ignore", invalid="ignore"):
        if len(f) == 2:
            return np.abs(_ratio(f[0] * f[1].sum(), f[1] * f[0].sum()))
        logs = np.log(f / f.sum(axis=1, keepdims=True))
        weights = np.nanmax(np.abs(logs - logs.mean(axis=0)), axis=0)
    return np.asarray(np.where(f.any(axis=0), weights, 0.0))


def _ratio(above: Array, below: Array) -> Array:
    """Log of a ratio; 0 where both are 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((above == 0) & (below == 0), 0.0, np.log(above / below))


def best(scores: Array, k: int) -> Array:
    """The k features of largest score, ascending; of equal ones the lower.

    >>> best(np.array([1.0, 3.0, 1.0, 2.0]), 3).tolist()
    [0, 1, 3]
    """
    k = max(0, min(int(k), len(scores)))
    if k == 0:
        return np.zeros(0, np.int64)
    last = np.partition(scores, len(scores) - k)[len(scores) - k]
    above = np.flatnonzero(scores > last)
    return np.sort(np.concatenate((above, np.flatnonzero(scores == last)[: k - len(above)])))
