"""Branch and bound: the best k of few features.

References: ERR section 1, branch and bound; docs/mathematics.md 8.3.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from nfs_dask.errors import InputError
from nfs_dask.solvers.predicted_error.bound_kernels import SAFE, search_subtree
from nfs_dask.solvers.predicted_error.estimate import ErrorProblem, estimate
from nfs_dask.solvers.predicted_error.searches import Progress, SearchResult, best_individual, floating
from nfs_dask.solvers.solution import Array

MOST_FEATURES = 62  # sets are bits of a whole number
MOST_SETS = 10**9  # a quarter of an hour, should no bound help
HEAD = 6  # decisions made here, so that progress can be told


def bounded(
    problem: ErrorProblem,
    k: int,
    among: Array | None = None,
    assume_monotone: bool = False,
    progress: Progress | None = None,
) -> SearchResult:
    """The k features with the smallest predicted error, of at most 62 candidates.

    Sets that cannot be the best are cut off by a bound that always holds: more features never make the mean of a
    comparison smaller, what is kept bounds its variance from below, and how far values are from each other bounds it
    from above. It is taken so wide that rounding cuts off nothing either.

    ``assume_monotone`` takes the error of all features that are left for the bound instead, as is customary. It cuts
    off far more, but supposes that features never do harm. Of the true error that holds; of its normal approximation
    it does not, so the best set may be cut off, and the result is not said to be optimal.

    >>> problem = ErrorProblem.of([[0.5, 0.1, 0.2, 0.2], [0.1, 0.5, 0.3, 0.1]], n_tokens=4)
    >>> found = bounded(problem, 2)
    >>> found.features.tolist(), found.optimal
    ([1, 2], True)
    """
    start = floating(problem, k, among)
    order = best_individual(problem, problem.n_features, among).order
    assert order is not None
    k, n = len(start.features), len(order)
    if n > MOST_FEATURES or math.comb(n, k) > MOST_SETS:
        raise InputError(
            f"there are {math.comb(n, k):.3g} sets of {k} of {n} features; branch and bound is for up to "
            f"{MOST_FEATURES} features and {MOST_SETS:,} sets, so give fewer candidates or take a floating search"
        )
    bits = np.left_shift(1, np.argsort(np.argsort(order)))  # of equally good sets the one with the lower features
    P, others = problem.P[:, order], np.delete(problem.P, order, axis=1).sum(axis=1)
    # A little above, so that the start is found again and all sets are compared by one arithmetic.
    best, chosen = np.full(2, start.error * (1 + SAFE)), np.array([bits[np.isin(order, start.features)].sum()])
    counts = np.zeros(2, np.int64)
    heads = list(_heads(n, k))
    for done, head in enumerate(heads, 1):
        search_subtree(P, bits, k, head, assume_monotone, others, best, chosen, counts, *problem.task)
        if progress is not None:
            progress(done, len(heads))
    features = np.sort(order[(bits & chosen[0]) != 0])
    error = estimate(problem, features).error
    return replace(
        start,
        features=features,
        error=error,
        sizes=np.array([k]),
        errors=np.array([error]),
        n_evaluated=start.n_evaluated + int(counts.sum()),
        optimal=not assume_monotone,
    )


def _heads(n: int, k: int) -> Iterator[Array]:
    """Ways to decide about the first features, those with the most kept first."""
    length = min(HEAD, n)
    for head in itertools.product((1, 0), repeat=length):
        if sum(head) <= k <= n - length + sum(head):
            yield np.array(head, np.int64)
