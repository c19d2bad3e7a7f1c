"""Entries sorted by tiles of columns and by class: what spool files hold, and what panels are folded from.

Columns are cut into tiles, and each tile has one *bucket* for each class, whose counters fit a processor's cache. Each
block leaves a *piece* in every bucket; pieces are in the order of the documents, and so are the entries in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from nfs_dask.arrays import kernels
from nfs_dask.arrays.block import Array, Block, column_type

GATHERED = 1 << 18  # entries that are put together at a time
PACKED = np.dtype(np.uint32)  # a column within its tile, and above it the value


@dataclass(frozen=True)
class Tiling:
    """A cut of columns into tiles of ``2**shift``, and of each tile into one bucket per class."""

    n_features: int
    n_classes: int
    shift: int

    @property
    def n_buckets(self) -> int:
        return -(-self.n_features // (1 << self.shift)) * self.n_classes

    def buckets(self, first: int, last: int) -> tuple[int, int]:
        """Buckets of the columns ``first .. last - 1``; both ends lie on tiles, or on the end of the columns."""
        return (first >> self.shift) * self.n_classes, -(-last // (1 << self.shift)) * self.n_classes

    @property
    def column_type(self) -> np.dtype[np.unsignedinteger]:
        """The type of columns within a tile."""
        return np.dtype(np.uint16 if self.shift <= 16 else np.uint32)


def packs(values: np.dtype[np.generic], shift: int) -> bool:
    """Return True if each value of a type has room beside a column within its tile."""
    return values.kind == "u" and 8 * values.itemsize + shift <= 8 * PACKED.itemsize


@dataclass(frozen=True)
class SortedEntries:
    """The entries of one block, bucket by bucket."""

    ends: Array  # (buckets,) where each ends
    columns: Array  # within their tile; without ``values`` packed together with them
    values: Array | None
    weights: Array | None

    @classmethod
    def of(cls, block: Block, tiling: Tiling) -> SortedEntries:
        indptr, indices, data, codes = block.entries
        cut = tiling.shift, tiling.n_classes
        ends = np.zeros(tiling.n_buckets, np.int64)
        kernels.bucket_sizes(indptr, indices, codes, *cut, ends)
        starts = np.cumsum(ends) - ends
        ends = starts.copy()
        packed = packs(data.dtype, tiling.shift)
        columns = np.empty(block.nnz, PACKED if packed else tiling.column_type)
        values = None if packed else np.empty(block.nnz, data.dtype)
        kernels.bucket_entries(indptr, indices, data, codes, *cut, ends, columns, values)
        if block.weights is None:
            return cls(ends, columns, values, None)
        rows = np.empty(block.nnz, np.int32)
        kernels.bucket_rows(indptr, indices, codes, *cut, starts, rows)
        return cls(ends, columns, values, block.weights[rows])

    def tiled(self, tiling: Tiling) -> TiledEntries:
        """The same as a single piece of all tiles."""
        borders = np.concatenate(([0], self.ends))[:, None]
        return TiledEntries(tiling, tiling.n_features, borders, self.columns, self.values, self.weights)


@dataclass(frozen=True)
class TiledEntries:
    """Entries of neighboring tiles, of some pieces.

    Bucket b of piece p lies at ``borders[b, p] .. borders[b + 1, p] - 1`` of the arrays.
    """

    tiling: Tiling
    width: int  # columns of these tiles
    borders: Array  # (buckets + 1, pieces)
    columns: Array
    values: Array | None
    weights: Array | None

    def of_columns(self, first: int, last: int) -> TiledEntries:
        """Those of some of the columns, counted from the first one here; both ends lie on tiles, or on the end."""
        start, stop = self.tiling.buckets(first, last)
        return replace(self, width=last - first, borders=self.borders[start : stop + 1])

    def blocks(self) -> Iterator[Block]:
        """Blocks over these columns, in the order of the documents.

        Each is of some tiles, or of a part of one, whose entries are put together and used while they are in cache.
        """
        n_classes, shift = self.tiling.n_classes, self.tiling.shift
        of_tiles = np.cumsum(np.diff(self.borders[::n_classes], axis=0).sum(axis=1))
        for tile, beyond in _shares(of_tiles):
            borders = self.borders[tile * n_classes : beyond * n_classes + 1]
            for part in [borders] if beyond - tile > 1 else _parts(borders):
                yield self._block(part, tile << shift)

    def _block(self, borders: Array, first: int) -> Block:
        """One block of the tiles from a column on.

        Its rows are (tile, class) pairs: each tile's columns are visited once, while they are in cache.
        """
        sizes = np.diff(borders, axis=0).sum(axis=1)
        indptr = np.concatenate(([0], np.cumsum(sizes)))
        total, n_classes = int(indptr[-1]), self.tiling.n_classes
        indices = np.empty(total, column_type(self.width))
        values = np.empty(total, PACKED if self.values is None else self.values.dtype)
        weights = None if self.weights is None else np.empty(total, self.weights.dtype)
        given = (None if a is None else kernels.read_only(a) for a in (self.columns, self.values, self.weights))
        cut = self.tiling.shift, n_classes, first
        kernels.gather_entries(borders, *given, *cut, indices, values, weights)
        codes = np.tile(np.arange(n_classes, dtype=np.int32), len(sizes) // n_classes)
        if weights is not None:  # every entry has a weight of its own: a row each
            indptr, codes = np.arange(total + 1), np.repeat(codes, sizes)
        return Block(indptr, indices, values, codes, self.width, weights)


def _shares(ends: Array) -> Iterator[tuple[int, int]]:
    """Ranges of neighbors with few enough entries to put together, or of one alone; not of those that have none."""
    start = 0
    while start < len(ends):
        done = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + GATHERED, side="right")))
        if ends[stop - 1] > done:
            yield start, stop
        start = stop


def _parts(borders: Array) -> Iterator[Array]:
    """Borders of one tile, some pieces at a time, and of a large piece some entries at a time."""
    for start, stop in _shares(np.cumsum(borders[-1] - borders[0])):
        some = np.ascontiguousarray(borders[:, start:stop])
        if stop - start > 1:
            yield some
        else:
            for at in range(int(some[0, 0]), int(some[-1, 0]), GATHERED):
                yield np.clip(some, at, at + GATHERED)
