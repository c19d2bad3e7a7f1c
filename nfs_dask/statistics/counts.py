"""Class counts: how often each feature occurs in each class, and in how many documents."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nfs_dask.arrays import kernels
from nfs_dask.arrays.block import Array, Block, Kind, smallest_integer
from nfs_dask.arrays.tiles import TiledEntries
from nfs_dask.errors import InputError
from nfs_dask.statistics.lengths import N_BINS, add_lengths
from nfs_dask.statistics.statistic import EntrywiseStatistic, State, Statistic, array_of

_MOST = 2**62  # sums of integers stay below this, so that int64 never wraps


@dataclass(frozen=True)
class ClassCounts(EntrywiseStatistic):
    """``f_c[i]``, the total of feature i over class c, and ``d_c[i]``, its documents of value above ``threshold``.

    Whole numbers, under whole-number weights, add up in int64 and are exact for any order and partition. A block
    that holds other numbers adds to a float64 array beside; `sums` and `documents` put the two together.
    """

    n_classes: int
    with_sums: bool = True
    with_documents: bool = False
    threshold: float = 0.0
    with_lengths: bool = False  # total "lengths": documents by the sum of their values, see `statistics.lengths`

    name: ClassVar[str] = "class_counts"
    accepts: ClassVar[Kind] = "real"

    @property
    def needs_distinct(self) -> bool:
        return self.with_documents  # a sum does not mind its terms in pieces

    def supersets(self) -> tuple[Statistic, ...]:
        threshold = self.threshold if self.with_documents else 0.0
        mine = (self.with_sums, self.with_documents, self.with_lengths)
        more = [
            ClassCounts(self.n_classes, sums, documents, threshold, lengths)
            for sums, documents, lengths in itertools.product(*((one, True) if not one else (True,) for one in mine))
        ]
        return tuple(other for other in more if other != self)

    def zero(self) -> State:
        zeros = np.zeros(self.n_classes, np.int64)
        totals = {"rows": zeros, "weight": zeros.astype(np.float64), "mass": np.zeros(1, np.int64)}
        return State({}, totals | ({"lengths": np.zeros(N_BINS, np.int64)} if self.with_lengths else {}))

    def update_totals(self, totals: dict[str, Array], block: Block) -> None:
        codes = block.codes.astype(np.intp)
        totals["rows"] += np.bincount(codes, minlength=self.n_classes)
        totals["weight"] += np.bincount(codes, block.weights, minlength=self.n_classes)
        totals["mass"] += _mass(block)
        if self.with_lengths:
            add_lengths(block, totals["lengths"])
        _guard(totals)

    def merge(self, left: State, right: State) -> State:
        merged = super().merge(left, right)
        _guard(merged.totals)
        return merged

    def update_arrays(self, arrays: dict[str, Array], block: Block) -> None:
        if self.with_sums:
            self._add_sums(arrays, block)
        if self.with_documents:
            self._add_documents(arrays, block)

    def _add_sums(self, arrays: dict[str, Array], block: Block) -> None:
        whole = block.data.dtype.kind != "f" and _whole(block.weights)
        name, dtype = ("sums", "int64") if whole else ("real_sums", "float64")
        out = array_of(arrays, name, self.n_classes, block.n_features, dtype)
        if block.full:
            kernels.add_rows(block.matrix, block.entries.codes, block.weights, False, out)
        else:
            kernels.add_values(*block.entries, block.weights, out)

    def _add_documents(self, arrays: dict[str, Array], block: Block) -> None:
        whole = _whole(block.weights)
        name, dtype = ("documents", "int64") if whole else ("real_documents", "float64")
        out = array_of(arrays, name, self.n_classes, block.n_features, dtype)
        if block.full:
            kernels.add_rows_above(block.matrix, block.entries.codes, float(self.threshold), block.weights, out)
        else:
            kernels.add_documents(*block.entries, float(self.threshold), block.weights, out)

    def update_tiles(self, arrays: dict[str, Array], entries: TiledEntries) -> None:
        if entries.values is not None or entries.weights is not None:
            super().update_tiles(arrays, entries)
            return
        if self.with_sums:
            _count_tiles(arrays, "sums", entries, None)
        if self.with_documents:
            _count_tiles(arrays, "documents", entries, float(self.threshold))

    def array_nbytes(self, n_features: int, kind: Kind | None, weighted: bool) -> int:
        # A source of unknown or real kind may need the exact array and the float one beside it.
        sums = 1 if kind in ("binary", "count") and not weighted else 2
        arrays = sums * self.with_sums + (2 if weighted else 1) * self.with_documents
        return arrays * self.n_classes * n_features * 8


def sums(arrays: dict[str, Array]) -> Array:
    """Totals f (C, columns): int64 when every value was whole, else float64."""
    return _together(arrays, "sums", "real_sums")


def documents(arrays: dict[str, Array]) -> Array:
    """Document frequencies d (C, columns): int64 under whole-number weights, else float64."""
    return _together(arrays, "documents", "real_documents")


def _count_tiles(arrays: dict[str, Array], name: str, entries: TiledEntries, threshold: float | None) -> None:
    """Count packed entries bucket by bucket, each in wide numbers that stay in cache.

    The array has the smallest type that holds what there is so far: most counts are small, and touching memory is dear.
    """
    n_classes, borders = entries.tiling.n_classes, entries.borders
    out = arrays.get(name, np.zeros((n_classes, entries.width), np.uint8))
    packed = kernels.read_only(entries.columns)
    counts = np.empty(1 << entries.tiling.shift, np.int64)
    for bucket in np.flatnonzero(np.any(borders[1:] > borders[:-1], axis=1)).tolist():
        tile, c = divmod(bucket, n_classes)
        here = out[c, tile * len(counts) : (tile + 1) * len(counts)]
        counts[: len(here)] = here
        kernels.count_bucket(borders[bucket], borders[bucket + 1], packed, entries.tiling.shift, threshold, counts)
        found = counts[: len(here)]
        if (most := int(found.max())) > np.iinfo(out.dtype).max:
            out = out.astype(smallest_integer(0, most))
            here = out[c, tile * len(counts) : (tile + 1) * len(counts)]
        here[:] = found
    arrays[name] = out


def _together(arrays: dict[str, Array], whole: str, real: str) -> Array:
    if real not in arrays:
        return arrays[whole]
    return arrays[real] + arrays[whole] if whole in arrays else arrays[real]


def _whole(weights: Array | None) -> bool:
    return weights is None or weights.dtype.kind != "f"


def _mass(block: Block) -> int:
    """Sum of all whole-number values under their weights: no single count can be larger."""
    if block.data.dtype.kind == "f" or not _whole(block.weights):
        return 0
    indptr, _, data, _ = block.entries
    if data.dtype.itemsize == 8:  # of narrower types, no block has entries enough to wrap
        _refuse_overflow(kernels.about_sum(data))
    exact = int(kernels.mass(indptr, data, None))
    if block.weights is None:
        return exact
    _refuse_overflow(float(exact) * int(block.weights.max(initial=0)))
    return int(kernels.mass(indptr, data, block.weights))


def _guard(totals: dict[str, Array]) -> None:
    _refuse_overflow(float(totals["mass"][0]))


def _refuse_overflow(mass: float) -> None:
    if mass >= _MOST:
        raise InputError(
            "the counts add up to 2^62 or more, beyond exact integers; scale the values or the weights down"
        )
