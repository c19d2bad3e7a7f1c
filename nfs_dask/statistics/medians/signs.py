"""On which side of zero the values of each class lie: enough to know the medians of features that are mostly zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nfs_dask.arrays.block import Array, Block, Kind
from nfs_dask.arrays.compiling import kernel
from nfs_dask.arrays.doubles import Pair, two_sum
from nfs_dask.arrays.exact_kernels import loose_plus, pair_plus, two_product
from nfs_dask.arrays.kernels import add_rows_above
from nfs_dask.statistics.medians.class_weights import LOW, add_rows, merged, no_rows, pair_of, put_pair, row_weights
from nfs_dask.statistics.panels import Panels
from nfs_dask.statistics.statistic import EntrywiseStatistic, State, array_of


@dataclass(frozen=True)
class ClassSigns(EntrywiseStatistic):
    """Weights of the entries above and below 0, of each class and feature, and of each class the sum of all |x|.

    Arrays "positive" and "negative" appear when first needed, in int64; entries of weighted rows add to pairs of
    doubles, "weighted_positive" and "weighted_negative", instead.
    """

    n_classes: int

    name: ClassVar[str] = "class_signs"
    accepts: ClassVar[Kind] = "signed"

    def small(self) -> ClassSigns:
        return ClassSigns(2)

    def zero(self) -> State:
        nothing = np.zeros(self.n_classes)
        return State({}, {**no_rows(self.n_classes), "absolute": nothing, "absolute_low": nothing.copy()})

    def update_totals(self, totals: dict[str, Array], block: Block) -> None:
        add_rows(totals, block)
        add_absolute(totals, block)

    def update_arrays(self, arrays: dict[str, Array], block: Block) -> None:
        for name, sign in (("positive", 1), ("negative", -1)):
            if sign < 0 and _first_negative(block.entries.data) < 0:
                continue
            entries = block.entries
            if block.weights is None:
                counts = array_of(arrays, name, self.n_classes, block.n_features, "int64")
                if block.full and sign > 0:
                    add_rows_above(block.matrix, entries.codes, 0, None, counts)
                else:
                    _count(*entries, sign, counts)
                continue
            high, low = (
                array_of(arrays, f"weighted_{name}{part}", self.n_classes, block.n_features, "float64")
                for part in ("", LOW)
            )
            _weigh(*entries, row_weights(block), sign, high, low)

    def merge(self, left: State, right: State) -> State:
        return merged(left, right)

    def array_nbytes(self, n_features: int, kind: Kind | None, weighted: bool) -> int:
        signs = 1 if kind in ("binary", "count", "real") else 2
        return signs * (2 if weighted else 1) * self.n_classes * n_features * 8


def add_absolute(totals: dict[str, Array], block: Block) -> None:
    """Add the sum of weight * |value| of each class to the pair "absolute", in place."""
    high, low = np.zeros((2, len(totals["absolute"])))
    indptr, _, data, codes = block.entries
    _add_absolute(indptr, data, codes, row_weights(block), high, low)
    put_pair(totals, "absolute", pair_of(totals, "absolute") + Pair(*two_sum(high, low)))


def unsettled_columns(panels: Panels) -> Array:
    """The columns, ascending, in which some class has half of its weight or more above 0, or below it.

    In all others every median is 0, and so is the gain. Nothing is held but one panel and what is found.
    """
    found = [first + np.flatnonzero(_is_unsettled(state)) for first, state in panels]
    return np.concatenate([np.zeros(0, np.int64), *found]).astype(np.int64)


def _is_unsettled(state: State) -> Array:
    seen = state.totals["present"] > 0
    out = np.zeros(1, bool)
    for sign in ("positive", "negative"):
        out = out | _half_or_more(state, sign)[seen].any(axis=0)
    return out


def _half_or_more(state: State, sign: str) -> Array:
    """Return True if the weight on one side of zero is half of its class, or more, or too near to it to tell."""
    weight = pair_of(state.totals, "weight")
    counts, weighted = state.arrays.get(sign), f"weighted_{sign}"
    if weighted not in state.arrays:
        return np.zeros((len(weight.hi), 1), bool) if counts is None else 2 * counts >= weight.hi[:, None]
    side = pair_of(state.arrays, weighted)
    if counts is not None:
        side = side + counts
    return np.asarray(side.against_half(weight.part((slice(None), None))) >= 0)


@kernel
def _first_negative(data: Array) -> int:
    """Position of the first value below 0; -1 if none."""
    for j in range(len(data)):
        if data[j] < 0:
            return j
    return -1


@kernel
def _count(indptr: Array, indices: Array, data: Array, codes: Array, sign: int, out: Array) -> None:
    """out[class, column] += 1 for each entry of that sign."""
    for i in range(len(codes)):
        c = codes[i]
        for j in range(indptr[i], indptr[i + 1]):
            if (data[j] > 0) if sign > 0 else (data[j] < 0):
                out[c, indices[j]] += 1


@kernel
def _weigh(
    indptr: Array, indices: Array, data: Array, codes: Array, weights: Array, sign: int, high: Array, low: Array
) -> None:
    """As `_count`, adding the weight of the row. Each sum is settled at once, as entries may be few among columns."""
    for i in range(len(codes)):
        c, w = codes[i], weights[i]
        for j in range(indptr[i], indptr[i + 1]):
            if (data[j] > 0) if sign > 0 else (data[j] < 0):
                k = indices[j]
                high[c, k], low[c, k] = pair_plus(high[c, k], low[c, k], w, 0.0)


@kernel
def _add_absolute(indptr: Array, data: Array, codes: Array, weights: Array, high: Array, low: Array) -> None:
    """Sums of weight * |value|; the product is split so that none of its digits are lost."""
    for i in range(len(codes)):
        c, w = codes[i], weights[i]
        row, rest = 0.0, 0.0
        if w == 0:
            continue
        for j in range(indptr[i], indptr[i + 1]):
            row, rest = loose_plus(row, rest, abs(np.float64(data[j])), 0.0)
        if w != 1:
            product, error = two_product(row, w)
            row, rest = product, error + rest * w
        high[c], low[c] = loose_plus(high[c], low[c], row, rest)
