"""Counts that documents are added to and taken from."""

from __future__ import annotations

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError
from nfs_dask.statistics.remainders import Remainders
from nfs_dask.statistics.statistic import State

_REAL_PREFIX = "real_"


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
    """What there are arrays of, whole numbers or not."""
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
        raise InputError(
            "these documents are not among those the model was fitted on, or not with these labels and weights; "
            "forget only what was given to fit or partial_fit"
        )
    return out
