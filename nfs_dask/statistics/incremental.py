"""Counts that documents are added to and taken from, and remainders of sums that some terms are taken away from.

A sum rounds by the size it has, so terms beside much larger ones lose digits, and taking those away does not bring them
back. What is left is then refused, rather than taken for what the other terms add up to.
"""

from __future__ import annotations

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError
from nfs_dask.statistics.statistic import State

_REAL_PREFIX = "real_"

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
        """Mark sums of which nothing but rounding is left, of ``whole`` (C, ...); ``rest`` is their difference.

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


def not_among_them() -> InputError:
    """The refusal of documents that were never added."""
    return InputError(
        "these documents are not among those the model was fitted on, or not with these labels and weights; "
        "forget only what was given to fit or partial_fit"
    )


def lift(state: State, positions: Array, common: tuple[str, ...] = ()) -> State:
    """The state under another numbering: class c becomes ``positions[c]``; classes beyond must be empty.

    ``common`` names arrays that are not by class.

    >>> state = State({"sums": np.array([[1, 2], [3, 4], [0, 0]])}, {"rows": np.array([5, 6, 0])})
    >>> lift(state, np.array([2, 0])).arrays["sums"].tolist()
    [[3, 4], [0, 0], [1, 2]]
    """
    if np.array_equal(positions, np.arange(len(positions))):
        return state

    def moved(array: Array) -> Array:
        out = np.zeros_like(array)
        out[positions] = array[: len(positions)]
        return out

    n_classes = len(state.totals["rows"])
    totals = {name: moved(a) if len(a) == n_classes and name != "mass" else a for name, a in state.totals.items()}
    return State({name: array if name in common else moved(array) for name, array in state.arrays.items()}, totals)


def subtract(state: State, part: State) -> State:
    """The counts without some of the documents in them; neither argument is changed.

    Whole numbers give exactly what the other documents alone would have given.
    """
    rows = state.totals["rows"] - part.totals["rows"]
    # One of them may have been kept with more than is needed, such as documents beside sums.
    both = [name for name in state.totals if name in part.totals and name != "mass"]
    totals = {name: _rest(state.totals[name], part.totals[name], rows) for name in both}
    # The mass guards against overflow, and depends on which documents shared a block: a bound is enough.
    totals["mass"] = np.maximum(state.totals["mass"] - part.totals["mass"], 0)
    arrays: dict[str, Array] = {}
    for name in _kinds(state) & _kinds(part):
        real = _REAL_PREFIX + name
        if real in state.arrays or real in part.arrays:
            arrays[real] = _rest(_all(state, name), _all(part, name), rows)
        else:
            arrays[name] = _rest(state.arrays[name], part.arrays[name], rows)
    return State(arrays, totals)


def _kinds(state: State) -> set[str]:
    """Return the names of counts, whole numbers or not."""
    return {name.removeprefix(_REAL_PREFIX) for name in state.arrays}


def _all(state: State, name: str) -> Array:
    parts = [state.arrays[key] for key in (_REAL_PREFIX + name, name) if key in state.arrays]
    return np.asarray(sum(parts[1:], parts[0].astype(np.float64)))


def _rest(whole: Array, part: Array, rows: Array) -> Array:
    """The difference; what rounding leaves of a real total is nothing. So many rows are left of each class."""
    out = np.asarray(whole - part)
    if out.dtype.kind == "f":
        left = Remainders(rows, n_doubles=1)
        out[left.is_nothing(whole, out)] = 0.0
        left.check()
    if (out < 0).any():
        raise not_among_them()
    return out
