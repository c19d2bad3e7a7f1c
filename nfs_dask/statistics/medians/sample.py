"""Some rows of each class, drawn so that any partition of the data draws the same ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nfs_dask.arrays.block import Array, Block, Kind
from nfs_dask.arrays.compiling import kernel
from nfs_dask.arrays.hashes import GOLDEN, mixed
from nfs_dask.statistics.medians.class_weights import add_rows, check_representable, merged, no_rows, row_weights
from nfs_dask.statistics.statistic import State, Statistic

_NO_ROW = np.uint64(2**64 - 1)  # the key of a place that is free; larger than those of rows


@dataclass(frozen=True)
class RowSample(Statistic):
    """Up to ``size`` rows of each class, as they are: those whose keys are the smallest.

    A key is a hash of the block's number and the row's place in it, so whichever rows meet first, the same stay. They
    are kept in the order of their keys. Rows of weight 0 are passed over. Array "sample" (C, size, columns) is float32
    where that holds all values; totals "keys" and "sample_weights" (C, size) tell which places are taken.
    """

    n_classes: int
    size: int

    name: ClassVar[str] = "row_sample"
    accepts: ClassVar[Kind] = "signed"

    def small(self) -> RowSample:
        return RowSample(2, 2)

    def zero(self) -> State:
        places = (self.n_classes, self.size)
        drawn = {"keys": np.full(places, _NO_ROW), "sample_weights": np.zeros(places)}
        return State({}, {**no_rows(self.n_classes), **drawn})

    def update(self, state: State, block: Block) -> None:
        check_representable(block)
        add_rows(state.totals, block)
        weights = row_weights(block)
        keys = np.where(weights > 0, row_keys(block), _NO_ROW)
        if "sample" not in state.arrays:
            state.arrays["sample"] = np.zeros((self.n_classes, self.size, block.n_features), _value_type(block))
        state.arrays["sample"] = state.arrays["sample"].astype(_value_type(block, state.arrays["sample"]), copy=False)
        for c in np.unique(block.codes):
            rows = np.flatnonzero(block.codes == c)
            self._draw(state, int(c), block, rows[np.argsort(keys[rows])][: self.size], keys, weights)

    def _draw(self, state: State, c: int, block: Block, rows: Array, keys: Array, weights: Array) -> None:
        """Let some rows of a class, in the order of their keys, compete for its places."""
        sample, totals = state.arrays["sample"], state.totals
        rows = rows[keys[rows] < totals["keys"][c, -1]]
        if not len(rows):
            return
        old, stay, new, come = _smallest(totals["keys"][c], keys[rows])
        rows = rows[come]
        if not np.array_equal(old, stay):
            sample[c, old] = sample[c, stay]
        if block.full:
            sample[c, new] = block.matrix[rows]
        else:
            sample[c, new] = 0
            _fill(*block.entries[:3], rows, sample[c], new)
        for name, values in (("keys", keys), ("sample_weights", weights)):
            totals[name][c, old] = totals[name][c, stay]
            totals[name][c, new] = values[rows]

    def merge(self, left: State, right: State) -> State:
        drawn = ("keys", "sample_weights")
        plain = [State({}, {k: v for k, v in side.totals.items() if k not in drawn}) for side in (left, right)]
        out = merged(*plain)
        for name in drawn:
            out.totals[name] = left.totals[name].copy()
        samples = [side.arrays["sample"] for side in (left, right) if side.arrays]
        if samples:
            out.arrays["sample"] = np.zeros(samples[0].shape, np.result_type(*samples))
        for c in range(self.n_classes):
            old, stay, new, come = _smallest(left.totals["keys"][c], right.totals["keys"][c])
            for places, chosen, side in ((old, stay, left), (new, come, right)):
                for name in drawn:
                    out.totals[name][c, places] = side.totals[name][c, chosen]
                if side.arrays:
                    out.arrays["sample"][c, places] = side.arrays["sample"][c, chosen]
        return out

    def array_nbytes(self, n_features: int, kind: Kind | None, weighted: bool) -> int:
        return self.n_classes * self.size * (8 * n_features + 16)


def is_complete(totals: Mapping[str, Array]) -> bool:
    """Return True if a sample holds every row that has a weight."""
    return bool((totals["present"] <= totals["keys"].shape[1]).all())


def row_keys(block: Block) -> Array:
    """A number below 2^64 - 1 for each row, by its block and its place there, that looks like chance."""
    x = np.arange(block.n_rows, dtype=np.uint64) + (np.uint64(block.number) << np.uint64(32))
    x = (mixed(x) + GOLDEN) * np.uint64(0xD6E8FEB86659FD93)
    return np.minimum(x ^ (x >> np.uint64(32)), _NO_ROW - np.uint64(1))


def _smallest(here: Array, there: Array) -> tuple[Array, Array, Array, Array]:
    """Of two ascending lists of keys, the smallest: for each list, the places they go to and those they are at."""
    keys = np.concatenate((here, there))
    order = np.argsort(keys, kind="stable")[: len(here)]
    order = order[keys[order] != _NO_ROW]
    is_new = order >= len(here)
    return np.flatnonzero(~is_new), order[~is_new], np.flatnonzero(is_new), order[is_new] - len(here)


def _value_type(block: Block, beside: Array | None = None) -> np.dtype[np.floating]:
    """float32 if it holds the values of a block, and those beside it; else float64."""
    narrow = block.data.dtype.itemsize <= (4 if block.data.dtype.kind == "f" else 2)
    return np.dtype(np.float32 if narrow and (beside is None or beside.dtype == np.float32) else np.float64)


@kernel
def _fill(indptr: Array, indices: Array, data: Array, rows: Array, sample: Array, places: Array) -> None:
    """Write some rows into some places, which hold zeros."""
    for k in range(len(rows)):
        for j in range(indptr[rows[k]], indptr[rows[k] + 1]):
            sample[places[k], indices[j]] = data[j]
