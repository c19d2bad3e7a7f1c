"""Proofs of how good a bound is: points of the second dual, and the rounded-up point.

(D): maximise sum x_i c_i + B(x) log B(x) - sum_c B_c(x) log B_c(x) over 0 <= x <= 1, sum x <= k. Its value at any x
is at most psi(k), and equal to it at a mixture of best sets whose masses are in the proportions of the dual point.

References: NFS Proposition 3.7, (D) without the term - x.g; Proposition 3.8.
"""

from __future__ import annotations

import numpy as np

from nfs_dask.solvers.naive_bayes.directory import Directory
from nfs_dask.solvers.naive_bayes.found import Found
from nfs_dask.solvers.naive_bayes.gains import set_gain
from nfs_dask.solvers.naive_bayes.problem import Problem
from nfs_dask.solvers.naive_bayes.settling import settled_amounts
from nfs_dask.solvers.naive_bayes.topk import TopFeatures
from nfs_dask.solvers.solution import Array, Certificate


def dual_value(totals: Array, x: Array) -> float:
    """(D)(x) less its value at x = 0, for totals (C, M) and x (M, ).

    >>> round(dual_value(np.array([[7.0, 1.0, 4.0], [1.0, 7.0, 4.0]]), np.array([1.0, 1.0, 0.5])), 6)
    5.062032
    """
    return set_gain(totals, x)


def certify(problem: Problem, found: Found, where: Directory | None) -> Certificate:
    """A point of the second dual with at most C fractions, from the mixture of a solution."""
    amounts = settled_amounts(problem, found.mix(), found.point)
    whole = np.floor(amounts)
    cells = np.flatnonzero(amounts)
    up = TopFeatures(cells, np.ceil(amounts[cells]).astype(np.int64))
    features, weights = _weights(problem, up, amounts - whole, where)
    return Certificate(
        features=features,
        weights=weights,
        value=dual_value(problem.totals[:, cells], amounts[cells]),
        rounded_value=set_gain(problem.totals[:, cells], up.counts),
    )


def _weights(problem: Problem, up: TopFeatures, fractions: Array, where: Directory | None) -> tuple[Array, Array]:
    """Features of a rounded-up choice and their x: 1, but the fraction for the last one of a cell with a fraction."""
    features = problem.features(up, where)
    weights = np.ones(len(features))
    free = len(problem.sizes) - problem.n_forced
    for cell in np.flatnonzero(fractions):
        if cell >= free:  # forced features are whole
            continue
        one = TopFeatures(up.cells[up.cells == cell], up.counts[up.cells == cell])
        mine = [problem.origin[cell]] if where is None else where.members(problem.wanted(one), problem.forced)
        weights[np.searchsorted(features, mine[-1])] = fractions[cell]
    return features, weights
