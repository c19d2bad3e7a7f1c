"""Comparison of weights with half of all: exact, as ties are common and choose which value is a median.

The rows of every class weigh 1 together, so the question for several classes is whether sum_c cum_c / W_c >= C / 2. In
floats, sums of 1 / W_c are seldom what they ought to be. Whole numbers over a common denominator decide where they stay
small; beyond, fractions do where floats come within 1e-9.

References: SC (Calafiore and Fracastoro 2019) (15), (16), decided exactly: docs/mathematics.md 4.3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from nfs_dask.arrays.doubles import Pair
from nfs_dask.solvers.solution import Array

NEAR = 1e-9  # of all weights: floats that come nearer to a half decide nothing
_MOST = 2**62


@dataclass(frozen=True)
class Halves:
    """The weights of some classes, all positive, and what it takes to compare with half of them."""

    weight: Pair  # (C,)
    whole: bool  # whether the weights of all rows are whole numbers

    @classmethod
    def of(cls, totals: Mapping[str, Array], seen: Array) -> Halves:
        """Of some classes, as statistics count them."""
        weight = Pair(totals["weight"][seen], totals["weight_low"][seen])
        return cls(weight, not totals["fractional"][seen].any())

    def of_class(self, c: int) -> Halves:
        """One of the classes by itself."""
        return Halves(self.weight.part(slice(c, c + 1)), self.whole)

    @property
    def n_classes(self) -> int:
        return len(self.weight.hi)

    @property
    def inverse(self) -> Array:
        return np.asarray(1.0 / self.weight.hi)

    @property
    def scales(self) -> Array:
        """The common multiple of the weights divided by each, in int64; zeros where that is too large or not whole."""
        if self.whole:
            weights = [int(high) + int(low) for high, low in zip(*self._lists, strict=True)]
            common = math.lcm(*weights)
            if 2 * self.n_classes * common < _MOST:
                return np.array([common // w for w in weights], np.int64)
        return np.zeros(self.n_classes, np.int64)

    @property
    def _lists(self) -> tuple[list[float], list[float]]:
        return self.weight.hi.tolist(), self.weight.lo.tolist()

    def own(self, below: Pair) -> Array:
        """Mark weights (C, U) that are at least half of their own class."""
        return np.asarray(below.against_half(self.weight.part((slice(None), None))) >= 0)

    def together(self, below: Pair) -> Array:
        """Mark where the weights (C, U) of all classes, each divided by that of its class, reach half."""
        scales = self.scales
        if scales.all():
            whole = below.hi.astype(np.int64) + below.lo.astype(np.int64)
            half = (self.weight.hi.astype(np.int64) + self.weight.lo.astype(np.int64)) @ scales
            return np.asarray(2 * (whole * scales[:, None]).sum(axis=0) >= half)
        over = (below.hi * self.inverse[:, None]).sum(axis=0) - self.n_classes / 2
        out = np.asarray(over >= 0)
        for u in np.flatnonzero(np.abs(over) <= NEAR * self.n_classes):
            out[u] = self.sign(below.hi[:, u], below.lo[:, u]) >= 0
        return out

    def sign(self, high: Array, low: Array) -> int:
        """-1, 0 or 1, as weights (C,) of all classes together are below half, half, or above, by fractions."""
        terms = zip(high.tolist(), low.tolist(), *self._lists, strict=True)
        parts = [(Fraction(a) + Fraction(b)) / (Fraction(w) + Fraction(v)) for a, b, w, v in terms]
        over = 2 * sum(parts, Fraction(0)) - self.n_classes
        return (over > 0) - (over < 0)
