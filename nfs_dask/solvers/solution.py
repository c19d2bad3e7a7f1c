"""What a solver returns: a support, its value, and how far from the best it can be."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

RELATIVE = 1e-12  # two gains closer than this, relative to the larger one, are the same number
ABSOLUTE = 1e-14  # and so are two that are closer than this times the total of all counts


@dataclass(frozen=True)
class FeatureSet:
    """A set of features: how many it takes of which columns, each of which may stand for several equal features."""

    columns: Array  # (n, ) intp, ascending
    counts: Array  # (n, ) int64, each at least 1; of a mixture of sets float64, above 0

    @classmethod
    def of(cls, counts: Array) -> FeatureSet:
        """Make a set from the number of features of each column, (M, )."""
        columns = np.flatnonzero(counts)
        return cls(columns, counts[columns])

    def spread(self, n_columns: int) -> Array:
        """Return the counts of all columns, (n_columns, )."""
        out = np.zeros(n_columns, self.counts.dtype)
        out[self.columns] = self.counts
        return out

    def map(self, column: Callable[[Array], Array]) -> FeatureSet:
        """Return the same set with other numbers for the columns."""
        return FeatureSet(column(self.columns), self.counts)

    def sum(self, values: Array) -> Array:
        """Return the sum over the features of ``values``, (M, ) or (n, M)."""
        return np.asarray((values.take(self.columns, axis=-1) * self.counts).sum(axis=-1))


@dataclass(frozen=True)
class Solution:
    """A support of at most k features. Gains are likelihoods less the likelihood at k = 0, in nats.

    The k of a solver is clipped to [0, m]. The support has min(k, m) members, except that under smoothing, and for
    k < m, features absent from the counts are never members; some members may have gain 0.
    """

    support: Array  # (k, ) int64, ascending feature indices
    value: float  # gain of this support
    bound: float  # no support of k features has a larger gain, whatever was rounded
    gap: float  # nor one that is larger by more than this than the true gain of this support; never negative
    ties: int  # features that share the last place at the dual point, 0 if the choice was not among equals
    n_evaluations: int  # how often all gains were evaluated
    point: Array  # (C, ) float64, the dual point: shares of the classes, sum 1
    second_dual: tuple[Array, Array] | None = None  # its features, (k', ) ascending, and their weights in (0, 1]
    chosen: FeatureSet | None = None  # in columns of a problem, while features are not looked up
    mixture: FeatureSet | None = None  # the point of the second dual, likewise

    def certified(self, total: float = 0.0) -> bool:
        """Return whether the support is optimal up to rounding; ``total`` is the sum of all counts."""
        return self.gap <= RELATIVE * self.bound + ABSOLUTE * total

    def times(self, scale: float) -> Solution:
        """Return it for counts multiplied by a power of two; the bound and the gap are rounded upward."""
        if scale == 1:
            return self
        bound, gap = (
            x * scale if x * scale / scale >= x else math.nextafter(x * scale, math.inf) for x in (self.bound, self.gap)
        )
        return replace(self, value=self.value * scale, bound=bound, gap=gap)

    def map(self, column: Callable[[Array], Array]) -> Solution:
        """Return the same with other numbers for the columns."""
        assert self.chosen is not None and self.mixture is not None
        return replace(self, chosen=self.chosen.map(column), mixture=self.mixture.map(column))


def nothing(point: Array, support: Array | None = None) -> Solution:
    """Return the solution where there is nothing to gain: k = 0, or counts in one class only."""
    support = np.zeros(0, np.int64) if support is None else support
    return Solution(support, 0.0, 0.0, 0.0, 0, 0, point, (support, np.ones(len(support))))
