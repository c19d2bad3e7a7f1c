"""Rounding outward: error bounds of sums of gains, so that bounds are bounds and gaps are gaps.

A gain is wrong by a share of itself (`gains`). Counts that were rounded, as f + alpha mostly is, add to that: with
relative errors of u = 2^-53 in the counts, a gain h of g counts changes by at most

    u sum_c f_c |log(p_c / a_c)| + 2 u^2 g  <=  u (h + sqrt(2 g h)) + 2 u^2 g,

as the terms of the sum below 0 add up to no more than g |p - a| <= sqrt(g h / 2), |p - a| half the sum of differences
(Pinsker). Over a set of gain H and counts B these are at most u H + u sqrt(2 B H) + 2 u^2 B (Cauchy and Schwarz).
Masses of a set, summed with an error of up to 64 u, move its own point, where its gain is smallest, so that this costs
at most (64 u)^2 B.

References: docs/mathematics.md 10.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nfs_dask.solvers.naive_bayes.gains import ROUNDING
from nfs_dask.solvers.solution import Array


@dataclass(frozen=True)
class RoundingError:
    """An error of sums of gains: ``share`` H + ``root`` sqrt(B H) + ``floor`` B, for sums H over sets of counts B."""

    share: float
    root: float
    floor: float

    def of(self, gain: Any, mass: Any) -> Any:
        """Return the error of ``gain`` (numbers or an array), a sum over sets of at most ``mass`` counts."""
        return self.share * gain + self.root * np.sqrt(gain) * np.sqrt(mass) + self.floor * mass

    def above(self, gain: Any, mass: float) -> Any:
        """Return an upper bound of the exact sum."""
        wrong = self.of(gain, mass)
        return np.where(wrong > 0, np.nextafter(gain + wrong, np.inf), gain)[()]

    def below(self, gain: Any, mass: float) -> Any:
        """Return a lower bound of the exact sum."""
        return np.maximum(np.nextafter(gain - self.of(gain, mass), -np.inf), 0.0)[()]

    def near(self, gain: Array, last: float, mass: float) -> Array:
        """Return which gains may equal the last one."""
        return np.asarray(np.abs(gain - last) <= self.of(gain, mass) + self.of(last, mass))


EXACT_COUNTS = RoundingError(ROUNDING, 0.0, 0.0)  # of two classes, counts and masses without rounding
TWO_CLASSES = RoundingError(ROUNDING, 2.0**-52, 2.0**-93)  # of two classes, rounded
# Of more classes D / g is wrong by 5 u (f_c + g a_c), which costs up to 5 u (h + 5 sqrt(g h)), where p_c is below a
# tenth of a_c up to 300 u h, and (5 u)^2 g for each class, of which there may be a hundred.
MANY_CLASSES = RoundingError(4 * ROUNDING, 2.0**-48, 2.0**-90)
_FINEST = 1024  # parts of a count that smoothing may add to whole numbers without rounding


def is_exact(whole: bool, alpha: float, mass: float) -> bool:
    """Return whether counts under smoothing, ``mass`` in all, and sums of them are doubles."""
    return whole and (alpha * _FINEST).is_integer() and mass * _FINEST < 2.0**53
