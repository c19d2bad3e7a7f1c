"""Sparse multinomial naive Bayes: the k features of largest gain, with a bound that says how far from best.

    phi(k) = max over |D| <= k of min over a of sum_{i in D} h_i(a)  <=  psi(k) = min over a of the k largest h_i(a)

Two classes are solved by curved cuts, more by cutting planes. Whole-number counts are grouped first.

References: NFS20 (Askari et al. 2020) Theorem 2; NFS Theorem 3.2, (USMNB), (13).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nfs_dask.solvers.naive_bayes.certificates import certify
from nfs_dask.solvers.naive_bayes.directory import Directory, Listed
from nfs_dask.solvers.naive_bayes.equal_columns import Cells, group
from nfs_dask.solvers.naive_bayes.found import Found
from nfs_dask.solvers.naive_bayes.multiclass import solve_many
from nfs_dask.solvers.naive_bayes.problem import Posing, Problem, forced_features
from nfs_dask.solvers.naive_bayes.twoclass import solve_two
from nfs_dask.solvers.solution import Array, Solution, nothing

SWAPPED = 50  # up to this k, single exchanges are tried by default for two classes


@dataclass(frozen=True)
class GroupedCounts:
    """Class totals, grouped once and solved for any k."""

    cells: Cells
    where: Directory | None  # which features a cell stands for; None if cells are features
    alpha: float
    posing: Posing | None = None  # which holds what several k have in common; None: each is posed anew

    @property
    def n_features(self) -> int:
        return self.cells.n_features


def count(totals: Array, alpha: float = 0.0) -> GroupedCounts:
    """Prepare class totals (C, m), int64 or float64 and non-negative; ``alpha`` is added to each when solving."""
    cells, codes = group(np.asarray(totals))
    return GroupedCounts(cells, None if codes is None else Listed(codes), float(alpha))


def solve(
    counted: GroupedCounts,
    k: int,
    *,
    always: Sequence[int] | Array | None = None,
    swaps: bool | None = None,
    certificate: bool = False,
    start: Array | None = None,
) -> Solution:
    """A support of k features, its gain, and a bound of all such gains.

    ``always`` features are in the support and count in k. ``swaps``: improve the support of two classes by single
    exchanges (default: for k up to 50); that of more classes always is. ``certificate``: find a point of the second
    dual. ``start``: a guess of the dual point.

    >>> solution = solve(count(np.array([[7, 7, 2, 6, 5, 6, 8], [1, 8, 1, 1, 7, 4, 0]])), 2)
    >>> solution.support.tolist(), round(solution.value, 6), solution.gap
    ([4, 6], 4.798614, 0.0)
    """
    k = max(0, min(int(k), counted.n_features))
    problem = posed(counted, k, always)
    if k == 0 or len(problem.classes) < 2:
        return _worthless(counted, problem, k)
    swaps = k <= SWAPPED if swaps is None else swaps
    found = solve_problem(problem, k, swaps, None if start is None else start[problem.classes])
    return report(counted, problem, found, certificate)


def posed(counted: GroupedCounts, k: int, always: Sequence[int] | Array | None = None) -> Problem:
    """The problem of k features of these counts."""
    forced = forced_features(None if always is None else np.asarray(always), k, counted.n_features)
    forced_cells = forced if counted.where is None else counted.where.cells_of(forced)
    return (counted.posing or Posing(counted.cells, counted.alpha))(k, forced, forced_cells)


def solve_problem(problem: Problem, k: int, swaps: bool, start: Array | None = None) -> Found:
    """Solve on cells; a caller that has its features elsewhere expands ``problem.wanted(found.choice)`` itself."""
    if len(problem.classes) == 2:
        return solve_two(problem, k, swaps, start)
    return solve_many(problem, k, start)


def report(counted: GroupedCounts, problem: Problem, found: Found, certificate: bool = False) -> Solution:
    """The solution in terms of features and of all classes."""
    return Solution(
        support=problem.features(found.choice, counted.where),
        value=found.value,
        bound=found.bound,
        gap=found.gap,
        ties=found.ties,
        n_evaluations=found.n_evaluations,
        point=all_classes(counted, problem, found.point),
        certificate=certify(problem, found, counted.where) if certificate else None,
    )


def _worthless(counted: GroupedCounts, problem: Problem, k: int) -> Solution:
    """Nothing to gain: any features that occur will do."""
    support = problem.features(problem.top(np.zeros(len(problem.sizes)), k), counted.where)
    return nothing(all_classes(counted, problem, problem.start), support)


def all_classes(counted: GroupedCounts, problem: Problem, point: Array) -> Array:
    """A point of the problem's classes as one of all classes."""
    out = np.zeros(len(counted.cells.totals))
    out[problem.classes] = point
    return out
