"""Spool files: the entries of some blocks, sorted by column tile and class.

One file holds the pieces of one batch of a run. A panel task reads the range of its columns from each piece and puts
the pieces together as one block whose rows are (tile, class) pairs, tiles in order. Within a tile and class the entries
keep the order of the documents, so that real sums do not depend on how many panels, workers or runs there are.

Of piece i, the file has the arrays

    i.columns   within their tile
    i.values
    i.weights   weighted data only
    i.ends      of buckets

and of all pieces together

    tiles       how many entries each tile has

A file appears whole or not at all (see `nfs_dask.files.arrayfile`), so a file that is there is a checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from nfs_dask.arrays import kernels
from nfs_dask.arrays.block import Array, Block, column_type
from nfs_dask.arrays.spare import spare
from nfs_dask.files.arrayfile import ArrayFile, ArrayFileWriter
from nfs_dask.files.folder import Folder

TILES = "tiles"
MOST_PLACES = 1 << 14  # of arrays in files that are remembered, some 5 MB
GATHERED = 1 << 18  # entries of the tiles that are put together at a time, or more where a single tile has more


@dataclass(frozen=True)
class Tiling:
    """How columns are cut: tiles of ``2**shift`` columns, and for each tile one bucket per class."""

    n_features: int
    n_classes: int
    shift: int

    @property
    def n_buckets(self) -> int:
        return -(-self.n_features // (1 << self.shift)) * self.n_classes

    def buckets(self, first: int, last: int) -> tuple[int, int]:
        """Buckets of the columns ``first .. last - 1``; both ends lie on tiles."""
        return (first >> self.shift) * self.n_classes, -(-last // (1 << self.shift)) * self.n_classes


class SpoolWriter:
    """Writes one spool file; give it the blocks of a batch in order, then close it with its facts."""

    def __init__(self, file: IO[bytes], name: str, tiling: Tiling) -> None:
        self._writer = ArrayFileWriter(file, name)
        self._tiling = tiling
        self._pieces = 0
        self.tiles = np.zeros(tiling.n_buckets // tiling.n_classes, np.int64)  # entries of each tile so far

    def add(self, block: Block) -> None:
        """Sort a block's entries into buckets and append them."""
        tiling = self._tiling
        sizes = np.zeros(tiling.n_buckets, np.int64)
        indptr, indices, data, codes = block.entries
        kernels.bucket_sizes(indptr, indices, codes, tiling.shift, tiling.n_classes, sizes)
        self.tiles += sizes.reshape(-1, tiling.n_classes).sum(axis=1)
        starts = np.cumsum(sizes) - sizes
        ends = starts.copy()
        columns = spare((block.nnz,), np.uint16 if tiling.shift <= 16 else np.uint32)
        values = spare((block.nnz,), block.data.dtype)
        kernels.bucket_entries(indptr, indices, data, codes, tiling.shift, tiling.n_classes, ends, columns, values)
        piece = {"columns": columns, "values": values, "ends": ends}
        if block.weights is not None:
            rows = np.empty(block.nnz, np.int32)
            kernels.bucket_rows(indptr, indices, codes, tiling.shift, tiling.n_classes, starts, rows)
            piece["weights"] = block.weights[rows]
        for name, array in piece.items():
            self._writer.add(f"{self._pieces}.{name}", array)
        self._pieces += 1

    def close(self, facts: dict[str, Any]) -> None:
        """Write what makes the file complete."""
        self._writer.add(TILES, self.tiles)
        self._writer.close({**facts, "pieces": self._pieces})


@dataclass(frozen=True)
class SpoolFile:
    """A finished spool file: its facts, and its entries by range of buckets."""

    file: ArrayFile

    @classmethod
    def open(cls, folder: Folder, name: str) -> SpoolFile:
        return cls(ArrayFile.open(folder, name))

    @property
    def facts(self) -> dict[str, Any]:
        return self.file.facts

    def pieces(self, tiling: Tiling, first: int, last: int) -> Iterator[SpooledPiece]:
        """Of each piece that has some, where the entries of columns ``first .. last - 1`` are; both ends lie on tiles.

        Kernels index without bounds checks, so borders are looked at here.
        """
        file = self.file
        start, stop = tiling.buckets(first, last)
        for number in range(file.facts["pieces"]):
            n = file.length(f"{number}.columns")
            if file.length(f"{number}.ends") != tiling.n_buckets or file.length(f"{number}.values") != n:
                raise file.damaged()
            ends = file.read(f"{number}.ends", max(start - 1, 0), stop)
            begin, ends = (int(ends[0]), ends[1:]) if start > 0 else (0, ends)
            if not 0 <= begin <= ends[0] <= ends[-1] <= n or np.any(ends[1:] < ends[:-1]):
                raise file.damaged()
            if ends[-1] > begin:
                yield SpooledPiece(file, number, begin, ends - begin)


class OpenedFiles:
    """The files of one pass that this process has looked into, as every panel looks into all of them.

    What is remembered of a file is where its arrays lie and their checksums: reading them tells whether it is still
    there and whole. In a pass files are replaced by equal ones. Of very many files the first ones are remembered.
    """

    def __init__(self) -> None:
        self._of_pass: tuple[str, dict[str, SpoolFile]] = "", {}

    def open(self, folder: Folder, name: str, token: str) -> SpoolFile:
        """A file of the pass with that token."""
        of_pass = self._of_pass
        if of_pass[0] != token:
            of_pass = self._of_pass = token, {}  # one object, as threads may be about different passes
        files = of_pass[1]
        file = files.get(name)
        if file is None:
            file = SpoolFile.open(folder, name)
            if len(files) * len(file.file.keys) < MOST_PLACES:  # files of a pass are alike
                files[name] = file
        return file


@dataclass(frozen=True)
class SpooledPiece:
    """Where one piece of a file has its entries of consecutive buckets."""

    file: ArrayFile
    number: int
    begin: int
    ends: Array  # (buckets,) where each bucket ends, from there on

    def __len__(self) -> int:
        return int(self.ends[-1])

    @property
    def family(self) -> tuple[bool, str]:
        """Entries that may share a block: whole numbers with whole numbers, weighted alike."""
        return self._dtype("values").kind == "f", self._dtype("weights").str if self._weighted else ""

    @property
    def _weighted(self) -> bool:
        return f"{self.number}.weights" in self.file

    def _dtype(self, part: str) -> np.dtype[Any]:
        return self.file.dtype(f"{self.number}.{part}")

    def _read(self, part: str) -> Array:
        return self.file.read(f"{self.number}.{part}", self.begin, self.begin + len(self))

    def read(self, tiling: Tiling, last: int) -> SpooledEntries:
        """The entries, of columns before ``last``. Kernels index without bounds checks: none lies beyond."""
        columns, values = self._read("columns"), self._read("values")
        in_last_tile = (last - 1) % (1 << tiling.shift) + 1  # columns of the last tile
        before = int(self.ends[-tiling.n_classes - 1]) if len(self.ends) > tiling.n_classes else 0
        too_far = columns[before:].max(initial=0) >= in_last_tile or (
            tiling.shift != 8 * columns.itemsize and columns.max() >> tiling.shift
        )
        if too_far:
            raise self.file.damaged()
        return SpooledEntries(self.ends, columns, values, self._read("weights") if self._weighted else None)


@dataclass(frozen=True)
class SpooledEntries:
    """Entries of consecutive buckets of one piece."""

    ends: Array  # (buckets,) where each bucket ends
    columns: Array  # within their tile
    values: Array
    weights: Array | None

    def of_buckets(self, start: int, stop: int) -> SpooledEntries:
        """Those of some of the buckets."""
        begin, end = (int(self.ends[i - 1]) if i else 0 for i in (start, stop))
        columns, values = (kernels.read_only(array[begin:end]) for array in (self.columns, self.values))
        weights = None if self.weights is None else self.weights[begin:end]
        return SpooledEntries(self.ends[start:stop] - begin, columns, values, weights)


def as_blocks(parts: Sequence[SpooledEntries], tiling: Tiling, width: int) -> Iterator[Block]:
    """Blocks over a panel of ``width`` columns, from entries of one family, in the order of the documents.

    Each is of some tiles, whose entries are put together and used while they are in cache.
    """
    sizes = sum((np.diff(part.ends, prepend=0) for part in parts), np.zeros(len(parts[0].ends), np.int64))
    of_tiles = np.cumsum(sizes.reshape(-1, tiling.n_classes).sum(axis=1))
    tile = 0
    while tile < len(of_tiles):
        done = int(of_tiles[tile - 1]) if tile else 0
        beyond = max(tile + 1, int(np.searchsorted(of_tiles, done + GATHERED, side="right")))
        start, stop = tile * tiling.n_classes, beyond * tiling.n_classes
        if of_tiles[beyond - 1] > done:
            some = [part.of_buckets(start, stop) for part in parts]
            yield _together(some, sizes[start:stop], tiling, tile << tiling.shift, width)
        tile = beyond


def _together(parts: Sequence[SpooledEntries], sizes: Array, tiling: Tiling, first: int, width: int) -> Block:
    """One block of tiles from column ``first`` of a panel on.

    Its rows are (tile, class) pairs: each tile's columns are visited once, while they are in cache.
    """
    indptr = np.concatenate(([0], np.cumsum(sizes)))
    total = int(indptr[-1])
    indices = spare((total,), column_type(width))
    values = spare((total,), np.result_type(*{part.values.dtype for part in parts}))
    weights = None if parts[0].weights is None else spare((total,), parts[0].weights.dtype)
    starts = indptr[:-1].copy()
    for part in parts:
        if weights is not None:
            kernels.gather_weights(part.ends, part.weights, starts.copy(), weights)
        given = part.ends, part.columns, part.values
        kernels.gather_entries(*given, tiling.shift, tiling.n_classes, first, starts, indices, values)
    codes = np.tile(np.arange(tiling.n_classes, dtype=np.int32), len(sizes) // tiling.n_classes)
    if weights is not None:  # every entry has a weight of its own: a row each
        indptr, codes = np.arange(total + 1), np.repeat(codes, sizes)
    return Block(indptr, indices, values, codes, width, weights)
