"""What is left of sums of real numbers when some of their terms are taken away, and whether it can be told at all.

A sum rounds by the size it has, so terms beside much larger ones lose digits, and taking those away does not bring them
back. What is left is then refused, rather than taken for what the other terms add up to.
"""

from __future__ import annotations

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError

# By the number of doubles of a sum, shares of it: what rounding may leave of nothing, what has too few digits left; and
# how large what may be hidden can be beside what is usual.
_SHARES = {1: (1e-12, 1e-6, 1e-6), 2: (2.0**-90, 2.0**-72, 1e-9), 3: (2.0**-140, 2.0**-125, 1e-9)}


class Remainders:
    """Differences of sums of one kind, of classes of which ``rows`` (C,) are left; some columns at a time.

    A difference of nothing may have hidden some terms. What these could be is compared with the other classes in the
    same place, and where nothing is left of these either, with the least that is left in any place.
    """

    def __init__(self, rows: Array, n_doubles: int) -> None:
        self._seen = rows > 0
        self._nothing, self._few, self._beside = _SHARES[n_doubles]
        self._least, self._hidden = np.inf, 0.0

    def is_nothing(self, whole: Array, rest: Array) -> Array:
        """Where nothing but rounding is left of sums ``whole`` (C, ...); ``rest`` is their difference.

        >>> Remainders(np.array([1, 1]), 1).is_nothing(np.array([5.0, 5.0]), np.array([1e-15, 2.0])).tolist()
        [True, False]
        """
        whole, left = np.abs(whole), np.abs(rest)
        gone = left <= self._nothing * whole
        seen = np.reshape(self._seen, (-1,) + (1,) * (whole.ndim - 1))
        hidden = np.where(gone & seen, self._nothing * whole, 0.0)
        usual = np.where(gone, np.inf, left).min(axis=0, initial=np.inf)
        known = np.isfinite(usual)
        if (seen & ~gone & (left < self._few * whole)).any() or (known & (hidden > self._beside * usual)).any():
            raise _lost()
        self._least = min(self._least, float(usual.min(initial=np.inf)))
        self._hidden = max(self._hidden, float(np.where(known, 0.0, hidden).max(initial=0.0)))
        return np.asarray(gone)

    def check(self) -> None:
        """Refuse what may have been hidden anywhere; when all columns have gone by."""
        if self._hidden > (self._beside * self._least if np.isfinite(self._least) else 0.0):
            raise _lost()


def _lost() -> InputError:
    return InputError(
        "the documents to forget have values, or weights, so much larger than the others that sums have lost the "
        "digits of these; fit the other documents anew"
    )
