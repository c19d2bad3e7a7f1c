"""What a solver returns: a support, its value, and how far from the best it can be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

RELATIVE = 1e-12  # two gains closer than this, relative to the larger one, are the same number
ABSOLUTE = 1e-14  # and so are two that are closer than this times the total of all counts


@dataclass(frozen=True)
class Certificate:
    """A point x of the second dual: maximise (D)(x) over 0 <= x <= 1 and sum x = k.

    At most C entries are fractions, so that its features (the rounded-up point) number at most k + C - 1.
    """

    features: Array  # (k', ) int64, ascending, those with x > 0; k <= k' <= k + C - 1
    weights: Array  # (k', ) float64, their x in (0, 1]
    value: float  # (D)(x) less its value at k = 0: a lower bound of the bound
    rounded_value: float  # gain of all `features`: at least the bound


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
    certificate: Certificate | None = None

    def certified(self, total: float = 0.0) -> bool:
        """Whether the support is optimal up to rounding; ``total`` is the sum of all counts."""
        return self.gap <= RELATIVE * self.bound + ABSOLUTE * total


def nothing(point: Array, support: Array | None = None) -> Solution:
    """The solution where there is nothing to gain: k = 0, or counts in one class only."""
    support = np.zeros(0, np.int64) if support is None else support
    return Solution(support, 0.0, 0.0, 0.0, 0, 0, point)
