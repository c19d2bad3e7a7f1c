"""Sparse multinomial naive Bayes: the k features of largest gain, with a bound that says how far from best.

    phi(k) = max over |D| <= k of min over a of sum_{i in D} h_i(a)  <=  psi(k) = min over a of the k largest h_i(a)

One algorithm for any number of classes: the bound by simplicial decomposition of the second dual (`dual`), the support
by rounding its point and by exchanges (`primal`). Whole-number counts are grouped first.

References: NFS20 (Askari et al. 2020) Theorem 2; NFS Theorem 3.2, (USMNB), (13).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from nfs_dask.solvers.naive_bayes.distinct import DistinctColumns, FeatureIndex, group
from nfs_dask.solvers.naive_bayes.dual import minimize_dual
from nfs_dask.solvers.naive_bayes.primal import everything, recover
from nfs_dask.solvers.naive_bayes.problem import Problem, build_problem, comfortable, forced_features
from nfs_dask.solvers.naive_bayes.screening import WORTHWHILE, AllColumns, Columns, ScreenedColumns
from nfs_dask.solvers.naive_bayes.topk import union
from nfs_dask.solvers.solution import Array, Solution, nothing


@dataclass(frozen=True)
class GroupedCounts:
    """Class totals, grouped once and solved for any k."""

    distinct: DistinctColumns
    index: FeatureIndex | None  # which features have each distinct column; None if columns are features
    alpha: float
    _built: dict[bytes, Problem] = field(default_factory=dict, repr=False)  # what all k but the largest have in common

    @property
    def n_features(self) -> int:
        return self.distinct.n_features

    def problem(self, k: int, always: Sequence[int] | Array | None = None) -> Problem:
        """Return the problem of k features of these counts."""
        forced = forced_features(None if always is None else np.asarray(always), k, self.n_features)
        key = forced.tobytes()
        if k < self.n_features and key in self._built:
            return self._built[key]
        columns = forced if self.index is None else self.index.columns_of(forced)
        problem = build_problem(self.distinct, k, self.alpha, forced, columns)
        if k < self.n_features:
            self._built.clear()
            self._built[key] = problem
        return problem

    def with_features(self, found: Solution, problem: Problem) -> Solution:
        """Return a solution in columns with its features, of all classes."""
        found = replace(found, point=problem.all_classes(found.point))
        wide = problem.n_free, problem.forced
        index = self.index
        if index is None:
            return look_up(found, *wide, lambda columns, _: (problem.origin[columns], np.arange(len(columns))))

        def members(columns: Array, most: Array) -> tuple[Array, Array]:
            wanted = np.zeros(len(self.distinct.sizes), np.int64)
            wanted[problem.origin[columns]] = most
            features, distinct = index.members(wanted, problem.forced)
            return features, np.searchsorted(problem.origin[columns], distinct)

        return look_up(found, *wide, members)


def look_up(
    found: Solution, n_free: int, forced: Array, members: Callable[[Array, Array], tuple[Array, Array]]
) -> Solution:
    """Return a solution in columns with its features.

    Columns from ``n_free`` on are ``forced`` features. ``members`` finds the lowest features, ascending, of other
    columns, ascending, as many of each as is said, and the place of the column of each feature.
    """
    assert found.chosen is not None and found.mixture is not None
    columns = union(found.chosen.columns, found.mixture.columns)
    columns = columns[columns < n_free]
    wanted, amounts = np.zeros(len(columns), np.int64), np.zeros(len(columns))
    for out, one in (wanted, found.chosen), (amounts, found.mixture):
        free = one.columns < n_free
        out[np.searchsorted(columns, one.columns[free])] = one.counts[free]
    up = np.ceil(amounts).astype(np.int64)
    features, place = members(columns, np.maximum(wanted, up))
    order = np.argsort(place, kind="stable")  # to count features of a column from its lowest one on
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - np.searchsorted(place[order], place[order])
    mixed = rank < up[place]
    weights = np.minimum(amounts[place] - rank, 1.0)[mixed]  # the last one of a column may be a fraction
    second = np.concatenate((features[mixed], forced)).astype(np.int64)
    weights, order = np.concatenate((weights, np.ones(len(forced)))), np.argsort(second)
    support = np.sort(np.concatenate((features[rank < wanted[place]], forced))).astype(np.int64)
    return replace(found, support=support, second_dual=(second[order], weights[order]), chosen=None, mixture=None)


def count(totals: Array, alpha: float = 0.0) -> GroupedCounts:
    """Prepare class totals (C, m), int64 or float64 and non-negative; ``alpha`` is added to each when solving."""
    return GroupedCounts(*group(np.asarray(totals)), float(alpha))


def solve(counted: GroupedCounts, k: int, *, always: Sequence[int] | Array | None = None) -> Solution:
    """Return a support of k features, its gain, and a bound of all such gains.

    ``always`` features are in the support and count in k.

    >>> solution = solve(count(np.array([[7, 7, 2, 6, 5, 6, 8], [1, 8, 1, 1, 7, 4, 0]])), 2)
    >>> solution.support.tolist(), round(solution.value, 6), solution.gap
    ([4, 6], 4.798614, 0.0)
    """
    k = max(0, min(int(k), counted.n_features))
    problem = counted.problem(k, always)
    if k > 0 and len(problem.classes) > 1:
        return counted.with_features(solve_problem(problem, k), problem)
    # nothing to gain: any features that occur will do
    chosen = problem.top(np.zeros(len(problem.sizes)), k)
    return counted.with_features(replace(nothing(problem.start), chosen=chosen, mixture=chosen), problem)


def solve_problem(problem: Problem, k: int, start: Array | None = None) -> Solution:
    """Solve in columns; ``start`` is a guess of the dual point."""
    scale = comfortable(problem.mass)
    if scale != 1:
        return solve_problem(problem.times(scale), k, start).times(1 / scale)
    if k >= problem.size:
        return everything(problem)
    columns = (AllColumns if problem.totals.size < WORTHWHILE else ScreenedColumns)(problem, k)
    return solve_columns(columns, k, problem.start if start is None else start)


def solve_columns(columns: Columns, k: int, start: Array) -> Solution:
    """Solve where less than all features are chosen."""
    dual = minimize_dual(columns.best_at, start)
    # no better set has a feature whose gain is farther from the last one than this
    reach = dual.best.height - max(one.value for one in (dual.best, *dual.sets))
    near, n_ties = columns.near(dual.best.point, 1.1 * max(reach, 0.0))
    held = union(near, *(one.features.columns for one in (dual.best, *dual.sets)))
    found = recover(columns.only(held), k, dual.map(lambda c: np.searchsorted(held, c)), n_ties)
    return found.map(lambda c: held[c])
