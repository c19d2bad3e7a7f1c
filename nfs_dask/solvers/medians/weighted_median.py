"""Medians of several classes together, and distances to them, from sorted values and what is known of the others.

References: SC (Calafiore and Fracastoro 2019) (15), (16), (19).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nfs_dask.arrays.doubles import ROUNDING, Pair
from nfs_dask.solvers.medians import median_kernels
from nfs_dask.solvers.medians.half_weight import NEAR, Halves
from nfs_dask.solvers.solution import Array


@dataclass(frozen=True)
class Tails:
    """Weights and sums beyond the known values of some classes (C, U) on one side.

    The sums of weight * value are kept in several doubles (2 or 3, C, U).
    """

    weight: Pair
    sums: Array

    def of_class(self, c: int) -> Tails:
        """One of the classes by itself."""
        return Tails(self.weight.part(slice(c, c + 1)), self.sums[:, c : c + 1])


@dataclass(frozen=True)
class WeightedMedian:
    """All that decides the medians of some classes (C) together in some columns (U).

    Class c has in column u the sorted ``values[u, starts[c, u]:][:counts[c, u]]``, each of weight 1 or of that in
    ``value_weights``; the ``points`` (C, P, U) in ascending order, those of weight 0 being none; and others ``below``
    and ``above`` all of these, of which ``following`` (C, U) is the least above.
    """

    halves: Halves
    values: Array
    value_weights: Array | None
    starts: Array
    counts: Array
    points: Array
    point_weights: Pair
    below: Tails
    above: Tails
    following: Array

    def of_class(self, c: int) -> WeightedMedian:
        """One of the classes by itself."""
        one = slice(c, c + 1)
        return WeightedMedian(
            self.halves.of_class(c),
            self.values,
            self.value_weights,
            self.starts[one],
            self.counts[one],
            self.points[one],
            self.point_weights.part(one),
            self.below.of_class(c),
            self.above.of_class(c),
            self.following[one],
        )

    def medians(self) -> Array:
        """The median (U,) of all classes together, each of which weighs 1."""
        n_classes, n_columns = self.counts.shape
        weight, scales = self.halves.weight, self.halves.scales
        n_less, verdicts = np.zeros((2, n_columns), np.int64)
        middles, status = np.zeros(n_columns), np.zeros(n_columns, np.int64)
        reached = Pair.of(np.zeros((n_classes, n_columns)))
        columns = np.arange(n_columns)
        while len(columns):
            median_kernels.find_medians(
                *self._known(),
                self.below.weight.hi,
                self.below.weight.lo,
                self.following,
                weight.hi,
                weight.lo,
                self.halves.inverse,
                scales,
                NEAR,
                ROUNDING,
                columns,
                n_less,
                verdicts,
                middles,
                reached.hi,
                reached.lo,
                status,
            )
            columns = columns[status[columns] == median_kernels.UNDECIDED]
            for u in columns:
                sign = self.halves.sign(reached.hi[:, u], reached.lo[:, u])
                n_less[u] += sign < 0
                verdicts[u] = (median_kernels.LESS_OR_ASK, median_kernels.EQUAL, median_kernels.MORE)[sign + 1]
        return middles

    def starts_above(self) -> bool:
        """Return True if the median of some column lies below all of its known values."""
        return bool(self.halves.n_classes and self.halves.together(self.below.weight).any())

    def _known(self) -> tuple[Array, ...]:
        weights = np.zeros((0, 0)) if self.value_weights is None else self.value_weights
        points = (self.points, self.point_weights.hi, self.point_weights.lo)
        return (self.values, weights, self.starts, self.counts, *points)

    def dispersions(self, middles: Array) -> tuple[Pair, Array]:
        """Sums (C, U) of weight * |value - middle|, and whether the middle is a median of each class by itself."""
        distances = Pair.of(np.empty(self.counts.shape))
        lesser, greater = (Pair(side.weight.hi.copy(), side.weight.lo.copy()) for side in (self.below, self.above))
        median_kernels.add_distances(
            *self._known(),
            middles,
            self.below.sums,
            self.above.sums,
            *(part for pair in (distances, lesser, greater) for part in (pair.hi, pair.lo)),
        )
        whole = self.halves.weight.part((slice(None), None))
        return distances, np.asarray((lesser.against_half(whole) <= 0) & (greater.against_half(whole) <= 0))
