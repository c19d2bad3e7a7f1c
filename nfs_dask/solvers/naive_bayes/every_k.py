"""All k at once, or chosen ones: one sort of the gains at a node serves every k.

For each k a node gives an upper value, a support, and on which side of it the dual point is. Every k keeps the two
nodes around its dual point; the curves through them bound it from below. New nodes go where most unfinished k want one.

References: NFS Theorem 3.2 for all k; Theorem 3.6, (24), with k + C - 1 in place of k + 4: docs/mathematics.md 3.3 and
3.9.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from nfs_dask.solvers.naive_bayes.equal_columns import has_equal
from nfs_dask.solvers.naive_bayes.found import Found, value_of
from nfs_dask.solvers.naive_bayes.multinomial import SWAPPED, GroupedCounts, all_classes, posed, solve, solve_problem
from nfs_dask.solvers.naive_bayes.nodes import Nodes
from nfs_dask.solvers.naive_bayes.topk import TopFeatures
from nfs_dask.solvers.solution import Array

_SHARP = 1e-10  # of the bound: what a value may be wrong by
_WIDE = 200_000  # columns from which on each k is solved by itself
TOLERANCE = 1e-6  # width of a certificate, relative to the bound

Tick = Callable[[], object]  # called when one more k is done


def _unheard() -> None:
    pass


@dataclass(frozen=True)
class SolvedPath:
    """Supports of many sizes, each with its gain and a bound."""

    ks: Array  # (K, ) int64, ascending
    value: Array  # (K, ) gain of the support
    bound: Array  # (K, ) no support of k features has a larger gain, whatever was rounded
    gap: Array  # (K, ) nor one that is larger by more than this
    points: Array  # (K, C) dual points
    n_evaluations: int
    counted: GroupedCounts = field(repr=False)
    chosen: tuple[Array | TopFeatures, ...] = field(repr=False)  # of each k: the set, or a point whose best set it is

    def support(self, k: int) -> Array:
        """The features of one of the k, ascending."""
        chosen = self.chosen[int(np.searchsorted(self.ks, k))]
        problem = posed(self.counted, k)
        if k == 0 or len(problem.classes) < 2:
            return solve(self.counted, k).support
        if not isinstance(chosen, TopFeatures):
            chosen = problem.top(problem.gains(chosen), k)
        return problem.features(chosen, self.counted.where)


def solve_path(
    counted: GroupedCounts, ks: Sequence[int] | Array | None = None, tolerance: float = TOLERANCE, tick: Tick = _unheard
) -> SolvedPath:
    """Solve for many k; all of 0 to m if ``ks`` is not given.

    Bounds are within ``tolerance`` of the smallest ones, relatively. A support that is not within ``tolerance`` of its
    bound is looked for as a fit of that k does where features share their counts, or k is small.

    >>> from nfs_dask.solvers.naive_bayes.multinomial import count
    >>> path = solve_path(count(np.array([[7, 7, 2, 6, 5, 6, 8], [1, 8, 1, 1, 7, 4, 0]])))
    >>> path.value.round(3).tolist()[:4], path.support(2).tolist()
    ([0.0, 0.0, 4.799, 5.587], [4, 6])
    """
    m = counted.n_features
    ks = np.arange(m + 1) if ks is None else np.unique(np.clip(np.asarray(ks, np.int64), 0, m))
    problem = posed(counted, 0)
    if len(problem.classes) != 2 or len(problem.sizes) > _WIDE:
        rows = _one_by_one(counted, ks, tick)
    else:
        nodes = Nodes(problem, ks[(ks > 0) & (ks < problem.size)], tolerance)
        nodes.run()
        rows = _with_ends(counted, ks, nodes, tolerance, tick)
    return SolvedPath(
        ks=ks,
        value=np.array([row.value for row in rows]),
        bound=np.array([row.bound for row in rows]),
        gap=np.array([row.gap for row in rows]),
        points=np.array([all_classes(counted, problem, row.point) for row in rows]),
        n_evaluations=sum(row.n_evaluations for row in rows),
        counted=counted,
        chosen=tuple(row.choice for row in rows),
    )


def guaranteed(
    counted: GroupedCounts, ks: Sequence[int] | Array, loss: int | None = None, tolerance: float = TOLERANCE
) -> Array:
    """What the best support of each k is sure to gain before any is known: psi(k - loss), (len(ks), ).

    The ``loss`` is C - 1 features by default, which is proved; the paper's for two classes is 4.
    """
    loss = len(counted.cells.totals) - 1 if loss is None else loss
    smaller = np.clip(np.asarray(ks, np.int64) - loss, 0, counted.n_features)
    path = solve_path(counted, smaller, tolerance)
    return (1 - tolerance) * path.bound[np.searchsorted(path.ks, smaller)]


@dataclass(frozen=True)
class _Row:
    """What a path keeps of one k."""

    choice: Array | TopFeatures
    value: float
    bound: float
    gap: float
    point: Array
    n_evaluations: int


def _one_by_one(counted: GroupedCounts, ks: Array, tick: Tick) -> list[_Row]:
    """Each k by itself: two classes from the dual point of the one before, more as a fit of that k alone."""
    rows: list[_Row] = []
    near = None
    for k in ks:
        row = _single(counted, int(k), near)
        near = row.point if row.n_evaluations > 1 and len(row.point) == 2 else None
        rows.append(row)
        tick()
    return rows


def _single(counted: GroupedCounts, k: int, start: Array | None = None) -> _Row:
    problem = posed(counted, k)
    if k == 0 or len(problem.classes) < 2:
        return _Row(problem.start, 0.0, 0.0, 0.0, problem.start, 0)
    found: Found = solve_problem(problem, k, swaps=k <= SWAPPED, start=start)
    return _Row(found.choice, found.value, found.bound, found.gap, found.point, found.n_evaluations)


def _with_ends(counted: GroupedCounts, ks: Array, nodes: Nodes, tolerance: float, tick: Tick) -> list[_Row]:
    """Rows of the nodes' k, of k = 0 and of all features; ties are looked into where features share counts."""
    grouped = int(nodes.problem.sizes.max(initial=1)) > 1 or has_equal(nodes.problem.totals)
    first = int(np.searchsorted(ks, 1))
    rows = []
    for i, k in enumerate(ks):
        j = i - first
        if not 0 <= j < len(nodes.ks):
            rows.append(_single(counted, int(k)))
        elif (grouped or k <= SWAPPED) and nodes.bound[j] - nodes.value[j] > tolerance * nodes.bound[j]:
            rows.append(_single(counted, int(k), nodes.bound_point[j]))
        else:
            rows.append(_of_node(nodes, j, int(k)))
        tick()
    if rows:
        rows[0] = replace(rows[0], n_evaluations=rows[0].n_evaluations + nodes.n_evaluations)
    return rows


def _of_node(nodes: Nodes, j: int, k: int) -> _Row:
    """The row of the j-th k, whose gain is added up anew where the node was far off."""
    chosen, value, bound, problem = nodes.value_point[j], nodes.value[j], nodes.bound[j], nodes.problem
    if problem.rounding.of(nodes.value_height[j], problem.mass) > _SHARP * bound:
        choice = problem.top(problem.gains(chosen), k)
        value = float(problem.rounding.below(value_of(problem, choice), problem.mass))
    return _Row(chosen, value, bound, max(bound - value, 0.0), nodes.bound_point[j], 0)
