"""Sums and values from which medians and dispersions follow, once each median lies in a narrow bracket."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from nfs_dask.arrays.block import Array, Block, Kind
from nfs_dask.arrays.doubles import Pair, two_sum
from nfs_dask.errors import InputError, NfsDaskError
from nfs_dask.statistics.medians import bracket_kernels
from nfs_dask.statistics.medians.bracket_kernels import INSIDE
from nfs_dask.statistics.medians.cells import digest
from nfs_dask.statistics.medians.class_weights import (
    LEAST,
    LOW,
    add_rows,
    by_column,
    check_representable,
    merged,
    no_rows,
    put_pair,
    row_weights,
)
from nfs_dask.statistics.medians.full_rows import LISTS_NBYTES, by_class, hulls, room, rounded_inwards
from nfs_dask.statistics.medians.signs import add_absolute
from nfs_dask.statistics.statistic import State, Statistic


@dataclass(frozen=True, eq=False)
class Pinned(Statistic):
    """Entries besides zeros in and around the bracket of each view and feature, and the values inside of it.

    ``lows`` and ``highs`` (C + 1, columns) bound the median of each class, and last that of the classes pooled; a class
    has two views, within brackets of its own [0, c] and within the pooled ones [1, c]. ``capacities`` (2, C, columns)
    are how many entries lie strictly inside: known beforehand, so a state is as large as it needs to be.

    Arrays: "counts" (2, C, 5, columns) of entries, by where they lie; with sample weights their "weights" as pairs;
    "sums_below" and "sums_above" (2, C, columns) of weight * value, as pairs, with sample weights as triples; "next"
    (2, C, columns), the least value above; and "values", in which each column has its views one after another, each
    sorted, and with sample weights "value_weights" beside. ``absolute`` asks for the total of weight * |value| of each
    class as well.
    """

    n_classes: int
    lows: Array
    highs: Array
    capacities: Array
    absolute: bool = False

    name: ClassVar[str] = "pinned"
    accepts: ClassVar[Kind] = "signed"

    def __post_init__(self) -> None:
        n = self.lows.shape[-1]
        shapes = (self.lows.shape, self.highs.shape, self.capacities.shape)
        if shapes != ((self.n_classes + 1, n), (self.n_classes + 1, n), (2, self.n_classes, n)):
            raise InputError(f"brackets and capacities of shapes {shapes} for {self.n_classes} classes")
        if not (np.isfinite(self.lows) & np.isfinite(self.highs) & (self.lows <= self.highs)).all():
            raise InputError("brackets must be finite, and their lows not above their highs")

    @cached_property
    def _bounds(self) -> Array:
        """Lows and highs (C + 1, 2, columns) in doubles."""
        return np.ascontiguousarray(np.stack((self.lows, self.highs), axis=1), np.float64)

    @cached_property
    def _hull(self) -> Array:
        return hulls(self._bounds)

    @cached_property
    def starts(self) -> Array:
        """First places of the values of each view, (2, C, columns)."""
        flat = self.capacities.reshape(-1, self.capacities.shape[-1]).astype(np.int64)
        return np.ascontiguousarray((np.cumsum(flat, axis=0) - flat).reshape(self.capacities.shape))

    @cached_property
    def height(self) -> int:
        """Places for values in each column."""
        return max(1, int(self.capacities.sum(axis=(0, 1)).max(initial=0)))

    def small(self) -> Pinned:
        return Pinned(2, np.zeros((3, 4)), np.zeros((3, 4)), np.zeros((2, 2, 4), np.int64), self.absolute)

    def zero(self) -> State:
        totals = no_rows(self.n_classes)
        if self.absolute:
            put_pair(totals, "absolute", Pair.of(np.zeros(self.n_classes)))
        return State({}, totals)

    def update(self, state: State, block: Block) -> None:
        check_representable(block)
        add_rows(state.totals, block)
        if self.absolute:
            add_absolute(state.totals, block)
        self._update_arrays(state.arrays, block)

    def _update_arrays(self, arrays: dict[str, Array], block: Block) -> None:
        if block.n_features != self.lows.shape[-1]:
            raise InputError(f"a block of {block.n_features} columns, but brackets of {self.lows.shape[-1]}")
        if block.n_rows == 0:
            return
        weighted = block.weights is not None
        if not arrays:
            arrays.update(self._nothing(weighted))
        _check_alike(weighted, "weights" in arrays)
        into = (self._bounds, self.starts, self._ends, arrays["counts"], *(arrays[name] for name in _PLAIN))
        entries = block.entries
        values = by_column(arrays, "values")
        if weighted:
            least = (arrays["sums_below" + LEAST], arrays["sums_above" + LEAST])
            weights = (arrays["weights"], arrays["weights" + LOW], by_column(arrays, "value_weights"))
            fits = bracket_kernels.fold_weighted(*entries, row_weights(block), *into, values, *least, *weights)
        elif block.full:
            matrix = entries.data.reshape(block.n_rows, block.n_features)
            order = by_class(block.codes, self.n_classes)
            hull = rounded_inwards(self._hull, matrix.dtype)
            fits = bracket_kernels.fold_full(matrix, *order, hull, *into, values, room(matrix, hull))
        else:
            fits = bracket_kernels.fold(*entries, *into, values)
        _check_fits(fits)
        _settle(arrays)

    @cached_property
    def _ends(self) -> Array:
        return self.starts + self.capacities

    def _nothing(self, weighted: bool) -> dict[str, Array]:
        n, c = self.lows.shape[-1], self.n_classes
        out = {"counts": np.zeros((2, c, 5, n), np.int64), "next": np.full((2, c, n), np.inf)}
        for name in ("sums_below", "sums_above"):
            put_pair(out, name, Pair.of(np.zeros((2, c, n))))
            if weighted:
                out[name + LEAST] = np.zeros((2, c, n))
        out["values"] = np.zeros((self.height, n), order="F")
        if weighted:
            put_pair(out, "weights", Pair.of(np.zeros((2, c, 5, n))))
            out["value_weights"] = np.zeros((self.height, n), order="F")
        return out

    def settle(self, state: State) -> None:
        """Sort the values of each view."""
        if state.arrays:
            self._sort(state.arrays, np.zeros_like(self.capacities, np.int64))

    def _sort(self, arrays: dict[str, Array], before: Array) -> None:
        """Merge what was added to each view into the sorted values that it had before."""
        counts = (self.starts, before, arrays["counts"][:, :, INSIDE].copy())
        if "weights" in arrays:
            bracket_kernels.sort_weighted(by_column(arrays, "values"), by_column(arrays, "value_weights"), *counts)
        else:
            bracket_kernels.sort_values(by_column(arrays, "values"), *counts)

    def merge(self, left: State, right: State) -> State:
        if not (left.arrays and right.arrays):
            return merged(left, right)
        _check_alike("weights" in left.arrays, "weights" in right.arrays)
        apart = ("next", "values", "value_weights")
        out = merged(*(State(_without(side.arrays, apart), side.totals) for side in (left, right)))
        out.arrays["next"] = np.minimum(left.arrays["next"], right.arrays["next"])
        before, more = (side.arrays["counts"][:, :, INSIDE].copy() for side in (left, right))
        _check_fits(bool((before + more <= self.capacities).all()))
        for name in apart[1:]:
            if name in left.arrays:
                out.arrays[name] = np.array(left.arrays[name], order="F")
                added = np.ascontiguousarray(right.arrays[name].T)
                bracket_kernels.append(out.arrays[name].T, added, self.starts, before, more)
        self._sort(out.arrays, before)
        _check_sums(out.arrays)
        return out

    def array_nbytes(self, n_features: int, kind: Kind | None, weighted: bool) -> int:
        views = 2 * self.n_classes
        wide = views * (5 + 4 + 1) + ((2 * 5 + 2) * views if weighted else 0)
        return (wide + self.height * (2 if weighted else 1)) * n_features * 8

    def working_nbytes(self, n_features: int) -> int:
        """Lists of values."""
        return LISTS_NBYTES

    def describe(self) -> dict[str, Any]:
        arrays = {name: digest(getattr(self, name)) for name in ("lows", "highs", "capacities")}
        return {**self.in_short(), "doubles": 3, **arrays}  # fewer are summed anew

    def in_short(self) -> dict[str, Any]:
        return {"statistic": self.name, "n_classes": self.n_classes, "absolute": self.absolute}


_PLAIN = (
    "sums_below",
    "sums_below_low",
    "sums_above",
    "sums_above_low",
    "next",
)  # in the order in which kernels take them


def _without(arrays: dict[str, Array], names: tuple[str, ...]) -> dict[str, Array]:
    return {name: array for name, array in arrays.items() if name not in names}


def _settle(arrays: dict[str, Array]) -> None:
    """Round the whole of each pair to its first double, so that equal sums have equal bits; triples are so already."""
    for name in ("sums_below", "sums_above"):
        if name + LEAST in arrays:
            continue
        with np.errstate(over="ignore", invalid="ignore"):
            put_pair(arrays, name, Pair(*two_sum(arrays[name], arrays[name + LOW])))
    _check_sums(arrays)


def _check_sums(arrays: dict[str, Array]) -> None:
    for name in ("sums_below", "sums_above"):
        if not np.isfinite(arrays[name]).all():
            column = int(np.argmax(~np.isfinite(arrays[name]).all(axis=tuple(range(arrays[name].ndim - 1)))))
            raise InputError(f"the values in column {column} add up beyond the largest double; scale this column down")


def _check_alike(weighted: bool, others: bool) -> None:
    if weighted != others:
        raise NfsDaskError("some blocks have sample weights and others have none; give weights for all rows or none")


def _check_fits(fits: bool) -> None:
    if not fits:
        raise NfsDaskError(
            "there are more values in a bracket than were counted there before; the data changed while they were read: "
            "start again with data that stay as they are"
        )
