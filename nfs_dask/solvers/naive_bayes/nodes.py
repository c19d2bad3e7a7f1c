"""The nodes of a path for two classes: what a sort of the gains at one point says about every k.

References: docs/mathematics.md 3.9.
"""

from __future__ import annotations

import numpy as np

from nfs_dask.solvers.naive_bayes.cuts import near, point_at, propose
from nfs_dask.solvers.naive_bayes.gains import divergence
from nfs_dask.solvers.naive_bayes.problem import Problem
from nfs_dask.solvers.naive_bayes.topk import sums_of_first
from nfs_dask.solvers.solution import Array

_MOST_ROUNDS = 500
_STRIDE = 4.0  # how far beyond the only known node the first looks go, in t


class Nodes:
    """Brackets of all k of a path, closed in on by common nodes. Each k is from 1 to less than all features."""

    def __init__(self, problem: Problem, ks: Array, tolerance: float) -> None:
        self.problem, self.ks, self.tolerance = problem, ks, tolerance
        n = len(ks)
        self.low = np.full((n, 4), np.nan)  # (t, height, B+, B-) of the nearest node of negative slope
        self.high = np.full((n, 4), np.nan)  # of positive slope
        self.value, self.value_point = np.full(n, -np.inf), np.zeros((n, 2))
        self.value_height = np.zeros(n)  # which the loss at the point was taken off
        self.bound, self.bound_point = np.full(n, np.inf), np.zeros((n, 2))
        self.floor, self.proposal = np.zeros(n), np.zeros(n)
        self.open = np.ones(n, bool)
        self.n_evaluations = 0

    def run(self) -> None:
        """Evaluate nodes until every bracket is closed."""
        nodes = [self.problem.start]
        for n in range(1, _MOST_ROUNDS):
            if not self.open.any():
                break
            for point in nodes:
                self._evaluate(point)
            nodes = self._wanted(n)

    def _wanted(self, n: int) -> list[Array]:
        """For each bracket that holds open k, the median of where they would go next."""
        open_ = np.flatnonzero(self.open)
        t = self.proposal[open_]
        low, high = self.low[open_, 0], self.high[open_, 0]
        t = np.where(np.isnan(high), np.minimum(t, low + _STRIDE * n), t)
        t = np.where(np.isnan(low), np.maximum(t, high - _STRIDE * n), t)
        bracket = np.where(np.isnan(low), -np.inf, low)  # brackets do not overlap: the lower end says which
        order = np.lexsort((t, bracket))
        bracket, t = bracket[order], t[order]
        starts = np.flatnonzero(np.concatenate(([True], bracket[1:] != bracket[:-1])))[: len(t)]
        ends = np.append(starts[1:], len(t))[: len(starts)]
        return [point_at(t[(start + end) // 2]) for start, end in zip(starts, ends, strict=True)]

    def _evaluate(self, point: Array) -> None:
        height, masses = self._sums(point)
        self.n_evaluations += 1
        t = float(np.log(point[0]) - np.log(point[1]))
        value = self._sure(height, divergence(masses, point))
        better = value > self.value
        self.value[better], self.value_point[better], self.value_height[better] = value[better], point, height[better]
        bound = self.problem.rounding.above(height, self.problem.mass)
        better = bound < self.bound
        self.bound[better], self.bound_point[better] = bound[better], point
        self._tighten(
            t, point[0] * masses[1] - point[1] * masses[0], np.vstack((np.full(len(height), t), height, masses))
        )

    def _sure(self, height: Array, loss: Array) -> Array:
        """What sets are sure to gain whose gains at a point add up to a height, of which the point costs a loss."""
        rounding, mass = self.problem.rounding, self.problem.mass
        gained = rounding.below(height, mass) - rounding.above(loss, mass)
        return np.maximum(np.nextafter(gained, -np.inf), 0.0)

    def _sums(self, point: Array) -> tuple[Array, Array]:
        """Sum of the k largest gains and masses (2, ) of those features, for each k."""
        gain, sizes = self.problem.gains(point), self.problem.sizes
        order = np.argsort(-gain, kind="stable")
        columns = np.vstack((gain, self.problem.totals))[:, order]
        sums = sums_of_first(columns, sizes[order], self.ks)
        return sums[0], sums[1:]

    def _tighten(self, t: float, slope: Array, cut: Array) -> None:
        """Move the ends of the brackets this node is in, and see which are closed."""
        inside = self.open & ~(t <= self.low[:, 0]) & ~(t >= self.high[:, 0])
        rising, falling = inside & (slope >= 0), inside & (slope <= 0)
        self.high[rising], self.low[falling] = cut.T[rising], cut.T[falling]
        touched = np.flatnonzero(inside)
        proposal, floor = np.empty(len(touched)), np.empty(len(touched))
        propose(self.low[touched], self.high[touched], proposal, floor)
        self.proposal[touched] = proposal
        self.floor[touched] = np.maximum(self.floor[touched], floor)
        closed = self.bound - self.floor <= self.tolerance * self.bound
        finite = np.where(np.isfinite(self.proposal), self.proposal, np.nan)
        for end in (self.low[:, 0], self.high[:, 0]):
            closed |= np.abs(finite - end) <= near(finite)
        self.open &= ~closed
