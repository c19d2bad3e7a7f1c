"""Candidates for the next feature: the best of millions is found by looking at few.

Nothing is given up for it. Equal features, of which whole-number counts have many, are one candidate. Candidates that
are alike lie in a box; bounds say how small an error any feature in a box could lead to, and boxes that cannot hold the
best one are passed over. For many classes boxes are wide and bounds weak: more is looked at, and the same is found.

References: docs/mathematics.md 8.3.
"""

from __future__ import annotations

import math

import numpy as np

from nfs_dask.solvers.predicted_error.bound_kernels import TIES, box_bounds
from nfs_dask.solvers.predicted_error.estimate import ErrorProblem, log_ratio
from nfs_dask.solvers.predicted_error.kept_set import KeptSet
from nfs_dask.solvers.solution import Array

LEAF = 64  # candidates of a box, at most, where there are few


def leaf_of(n: int) -> int:
    """Return the size of a box for n candidates: bounds of boxes then take as long as the best ones themselves."""
    return max(LEAF, math.isqrt(n // 8))


class Candidates:
    """Features outside of a set, in groups of equal ones (cells) in boxes of like ones."""

    def __init__(self, problem: ErrorProblem, among: Array | None = None, leaf: int | None = None) -> None:
        columns = np.arange(problem.n_features) if among is None else np.sort(among)
        self._members, starts = _equal(problem.P, columns)
        points = np.ascontiguousarray(problem.P[:, self._members[starts[:-1]]].T)
        order, self._edges = _boxes(points, leaf or leaf_of(len(points)))
        self._points = points[order]
        self._ends, self._begins = starts[1:][order], starts[:-1][order]
        self._next = self._begins.copy()  # where in ``_members`` the lowest free feature of each cell is
        self._cell = np.full(problem.n_features, -1, np.int64)
        self._cell[self._members] = np.repeat(np.argsort(order), np.diff(starts))
        self._taken = np.zeros(problem.n_features, bool)
        self._low, self._high, self._ratios = _extents(self._points, self._edges)
        self.n_evaluated = 0  # candidates whose error was worked out

    @property
    def features(self) -> Array:
        """All of them, taken or not, ascending."""
        return np.sort(self._members)

    def take(self, feature: int) -> None:
        """No longer a candidate."""
        cell = self._cell[feature]
        self._taken[feature] = True
        while self._next[cell] < self._ends[cell] and self._taken[self._members[self._next[cell]]]:
            self._next[cell] += 1
        if self._next[cell] == self._ends[cell]:
            self._fit_box(cell)

    def give_back(self, feature: int) -> None:
        """A candidate again."""
        cell = self._cell[feature]
        self._taken[feature] = False
        gone = self._next[cell] == self._ends[cell]
        among = self._members[self._begins[cell] : self._ends[cell]]
        self._next[cell] = min(self._next[cell], self._begins[cell] + np.searchsorted(among, feature))
        if gone:
            self._fit_box(cell)

    def best(self, kept: KeptSet) -> int | None:
        """The feature that makes the error of a set smallest, the lowest of equal ones; None if there is none left."""
        bounds = self._bounds(kept)
        order = np.argsort(bounds, kind="stable")
        order = order[np.isfinite(bounds[order])]
        cells, errors, least = [], [], np.inf
        first, step = 0, 1
        while first < len(order) and bounds[order[first]] <= least * (1 + TIES):
            part = self._free(order[first : first + step])
            found = kept.errors_with(self._points[part])
            cells.append(part)
            errors.append(found)
            least = min(least, found.min())
            first, step = first + step, 2 * step
        if not cells:
            return None
        self.n_evaluated += sum(map(len, cells))
        near = np.concatenate(cells)[np.concatenate(errors) <= least * (1 + TIES)]
        return int(self._members[self._next[near]].min())

    def all_errors(self, kept: KeptSet) -> Array:
        """The error with each candidate, (n,), in the order of `features`; none may be taken."""
        self.n_evaluated += len(self._points)
        return kept.errors_with(self._points)[self._cell[self.features]]

    def _bounds(self, kept: KeptSet) -> Array:
        """(B,) no feature of a box leads to a smaller error; inf for boxes without any."""
        out = np.zeros(len(self._edges) - 1)
        if len(out) == 1 or len(kept) + 1 == kept.problem.n_features:
            out[self._low[:, 0] > self._high[:, 0]] = np.inf
        else:
            boxes = (self._low, self._high, self._ratios)
            box_bounds(*boxes, *kept.moments, *kept.problem.task, out)
        return out

    def _free(self, boxes: Array) -> Array:
        """Cells in some boxes that have features left."""
        cells = np.concatenate([np.arange(self._edges[box], self._edges[box + 1]) for box in boxes])
        return cells[self._next[cells] < self._ends[cells]]

    def _fit_box(self, cell: int) -> None:
        """Fit the box of a cell to what is left in it."""
        box = int(np.searchsorted(self._edges, cell, side="right")) - 1
        cells = self._free(np.array([box]))
        if len(cells):
            low, high, ratios = _extents(self._points[cells], np.array([0, len(cells)]))
            self._low[box], self._high[box], self._ratios[box] = low[0], high[0], ratios[0]
        else:
            self._low[box], self._high[box] = np.inf, 0.0


def _equal(P: Array, columns: Array) -> tuple[Array, Array]:
    """Columns with equal ones side by side, ascending among each other, and where each group starts, and the end."""
    ordered = columns[np.lexsort(P[:, columns])]
    differs = np.ones(len(ordered), bool)
    differs[1:] = False
    for row in P:
        differs[1:] |= row[ordered[1:]] != row[ordered[:-1]]
    return ordered, np.append(np.flatnonzero(differs), len(ordered))


def _boxes(points: Array, leaf: int) -> tuple[Array, Array]:
    """An order of points (n, C) in which like ones are side by side, and the edges of boxes of at most ``leaf``.

    Halves of halves, each time by what differs most: how probable a feature is, or by how much more so in a class.
    """
    logs = np.log(points)
    size = logs.mean(axis=1, keepdims=True)
    views = np.concatenate((size, logs - size), axis=1)
    order, edges, waiting = np.arange(len(points)), [len(points)], [(0, len(points))]
    while waiting:
        start, stop = waiting.pop()
        if stop - start <= leaf:
            edges.append(start)
            continue
        part = order[start:stop]
        seen = views[part]
        widest = int(np.argmax(seen.max(axis=0) - seen.min(axis=0)))
        middle = (stop - start) // 2
        order[start:stop] = part[np.argpartition(seen[:, widest], middle)]
        waiting += [(start, start + middle), (start + middle, stop)]
    return order, np.array(sorted(set(edges)))


def _extents(points: Array, edges: Array) -> tuple[Array, Array, Array]:
    """Least and largest probabilities, (B, C), and log ratios of pairs of classes, (B, 2, pairs), of boxes."""
    n, starts = points.shape[1], edges[:-1]
    pairs = [(j, k) for j in range(n) for k in range(j + 1, n)]
    ratios = np.empty((len(starts), 2, len(pairs)))
    for number, (j, k) in enumerate(pairs):
        ratio = log_ratio(points[:, j], points[:, k])
        ratios[:, 0, number] = np.minimum.reduceat(ratio, starts)
        ratios[:, 1, number] = np.maximum.reduceat(ratio, starts)
    return np.minimum.reduceat(points, starts), np.maximum.reduceat(points, starts), ratios
