"""What a sample of the columns tells: about where the dual point is, and how much is gained by the last one chosen.

The columns of most counts are all in the sample: they are few, and have most of what decides the point. Of the others
every so many-th is, and stands for those between. What is guessed is proved on all columns later, or not used.

References: docs/mathematics.md 3.4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from nfs_dask.arrays.compiling import kernel
from nfs_dask.solvers.naive_bayes.cuts import Minimum, point_at
from nfs_dask.solvers.naive_bayes.problem import Problem
from nfs_dask.solvers.naive_bayes.shares import ShareTable
from nfs_dask.solvers.naive_bayes.topk import kth_largest
from nfs_dask.solvers.solution import Array

_SURE = 5.0  # standard errors


@dataclass(frozen=True)
class ColumnSample:
    """A problem of a few columns that is like one of many."""

    problem: Problem
    light: Array  # (M, ) bool: columns that stand for more than themselves

    @classmethod
    def of(cls, problem: Problem, stride: int) -> ColumnSample:
        """About two of ``stride`` columns."""
        counts = problem.totals[:, ::stride].sum(axis=0)
        last = len(counts) - 1 - len(counts) // stride
        heavy = _heavy(problem.totals, float(np.partition(counts, last)[last]))
        light = np.setdiff1d(np.arange(0, len(problem.sizes), stride), heavy, assume_unique=True)
        columns = np.concatenate((heavy, light))
        weights = np.repeat((1, stride), (len(heavy), len(light)))
        small = replace(
            problem, totals=problem.totals[:, columns], sizes=problem.sizes[columns] * weights, origin=columns
        )
        return cls(small, weights > 1)

    def guess(self, k: int, minimum: Minimum, parts: int, spare: int = 0) -> Guess:
        """What the problem's minimum says of that of all columns.

        The best ``spare`` columns beyond k should be above the floor. By chance another column, and so its slope and
        its place, might have been in the sample for each light one.
        """
        best, totals, sizes = minimum.best, self.problem.totals, self.problem.sizes
        weights = sizes * self.light
        slopes = weights * (best.point[1] * totals[0] - best.point[0] * totals[1])
        chosen = best.choice.cells
        turn = math.hypot(np.linalg.norm(slopes[chosen]), np.abs(slopes).max())
        half = _SURE * turn / float(best.masses.sum() * best.point.prod())
        low, high = point_at(best.t - half), point_at(best.t + half)
        table = ShareTable.over(low, high, parts)
        least, most = table.of(totals)
        ranks = int(_SURE * math.hypot(np.linalg.norm(weights[chosen]), weights.max()))
        floor, ceiling = kth_largest(least, sizes, k + spare + ranks), kth_largest(most, sizes, k - ranks)
        return Guess(best.point, low, high, table, floor, ceiling)


@dataclass(frozen=True)
class Guess:
    """Where the minimum is expected."""

    point: Array  # (2, ) most likely
    low: Array  # points it is likely between
    high: Array
    table: ShareTable  # of the points between
    floor: float  # gains that the last one chosen is likely between
    ceiling: float


def _heavy(totals: Array, above: float) -> Array:
    """Columns of more counts than ``above``."""
    out = np.empty(totals.shape[1] + 1, np.int64)
    return out[: _collect_heavy(totals, above, out)].copy()


@kernel
def _collect_heavy(totals, above, out):
    n = 0
    for i in range(totals.shape[1]):
        out[n] = i
        n += int(totals[0, i] + totals[1, i] > above)
    return n
