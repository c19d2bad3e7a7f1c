"""Features added one after another in a given order: the predicted error of every prefix, in one sweep.

References: ERR section 2.4, section 4.2.
"""

from __future__ import annotations

import numpy as np

from nfs_dask.errors import InputError
from nfs_dask.solvers.predicted_error import error_kernels
from nfs_dask.solvers.predicted_error.estimate import ErrorProblem, mode_of
from nfs_dask.solvers.solution import Array


def prefix_errors(problem: ErrorProblem, order: Array, variance: str = "exact") -> Array:
    """Errors with the first 0, 1, ..., n features of an order kept, (n + 1,); O(n) for each pair of classes.

    >>> problem = ErrorProblem.of([[0.6, 0.1, 0.3], [0.2, 0.5, 0.3]], n_tokens=6)
    >>> prefix_errors(problem, np.array([0, 1])).round(6).tolist()
    [0.5, 0.134767, 0.086094]
    """
    order = distinct_features(order, problem.n_features)
    out = np.empty(len(order) + 1)
    sums = problem.whole(), problem.least
    error_kernels.prefix_errors(problem.P, order, mode_of(variance), *sums, *problem.task, out)
    return out


def prefix_moments(
    problem: ErrorProblem, order: Array, i: int, k: int, j: int, variance: str = "exact"
) -> tuple[Array, Array]:
    """Means and variances of L_ik under class j for the same prefixes, (n + 1,) each; over all lengths of documents."""
    order = distinct_features(order, problem.n_features)
    mean, spread = np.empty(len(order) + 1), np.empty(len(order) + 1)
    sums = problem.whole(), problem.least
    error_kernels.prefix_moments(problem.P, order, mode_of(variance), *sums, i, k, j, mean, spread)
    lengths = problem.lengths
    return lengths.mean * mean, lengths.mean * spread + lengths.variance * mean**2


def distinct_features(features: Array, n_features: int) -> Array:
    """Checked indices of features, int64 in the order given."""
    given = np.asarray(features)
    whole = given.astype(np.int64) if given.dtype.kind in "iu" or not given.size else None
    if given.ndim != 1 or whole is None or ((whole < 0) | (whole >= n_features)).any():
        raise InputError(f"features are not indices from 0 to {n_features - 1}; give a list of such numbers")
    ordered = np.sort(whole)
    twice = np.flatnonzero(ordered[1:] == ordered[:-1])
    if len(twice):
        raise InputError(f"feature {ordered[twice[0]]} is given twice; give each of them once")
    return whole
