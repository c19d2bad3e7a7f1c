"""Spool files: the entries of some blocks, sorted by column tile and class.

One file holds the pieces of one batch of a run. A task that folds panels reads the range of their columns from each
piece, and holds them side by side (`nfs_dask.arrays.tiles`). Within a tile and class the entries keep the order of the
documents, so that real sums do not depend on how many panels, workers or runs there are.

Of piece i, the file has the arrays

    i.columns   within their tile; without values of their own packed with them, 32 bits an entry
    i.values    where they are not
    i.weights   weighted data only
    i.ends      of buckets

and of all pieces together

    tiles       how many entries each tile has

A file appears whole or not at all (see `nfs_dask.files.arrayfile`), so a file that is there is a checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import IO, Any

import numpy as np

from nfs_dask.arrays.block import Array, Block
from nfs_dask.arrays.tiles import PACKED, SortedEntries, TiledEntries, Tiling
from nfs_dask.files.ahead import ahead
from nfs_dask.files.arrayfile import ArrayFile, ArrayFileWriter
from nfs_dask.files.folder import Folder

TILES = "tiles"
MOST_PLACES = 1 << 14  # of arrays in files that are remembered, some 5 MB


class SpoolWriter:
    """Writes one spool file; give it the blocks of a batch in order, then close it with its facts."""

    def __init__(self, file: IO[bytes], name: str, tiling: Tiling) -> None:
        self._writer = ArrayFileWriter(file, name)
        self._tiling = tiling
        self._pieces = 0
        self.tiles = np.zeros(tiling.n_buckets // tiling.n_classes, np.int64)  # entries of each tile so far

    def add(self, block: Block) -> None:
        """Sort a block's entries into buckets and append them."""
        piece = SortedEntries.of(block, self._tiling)
        self.tiles += np.diff(piece.ends[self._tiling.n_classes - 1 :: self._tiling.n_classes], prepend=0)
        for name in ("columns", "values", "ends", "weights"):
            if (array := getattr(piece, name)) is not None:
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
            n, values = file.length(f"{number}.columns"), f"{number}.values"
            if file.length(f"{number}.ends") != tiling.n_buckets or (values in file and file.length(values) != n):
                raise file.damaged()
            ends = file.read(f"{number}.ends", max(start - 1, 0), stop)
            borders = ends if start > 0 else np.concatenate(([0], ends))
            if not 0 <= borders[0] <= borders[-1] <= n or np.any(borders[1:] < borders[:-1]):
                raise file.damaged()
            if borders[-1] > borders[0]:
                yield SpooledPiece(file, number, borders)


class OpenedFiles:
    """The files of one pass that this process has looked into, as every task that folds panels looks into all of them.

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
    borders: Array  # (buckets + 1,) where each bucket begins, and the end of the last one

    def __len__(self) -> int:
        return int(self.borders[-1] - self.borders[0])

    @property
    def types(self) -> dict[str, np.dtype[Any]]:
        """Its arrays besides the borders, and their types."""
        names = {part: f"{self.number}.{part}" for part in ("columns", "values", "weights")}
        return {part: self.file.dtype(name) for part, name in names.items() if name in self.file}

    @property
    def family(self) -> tuple[str, ...]:
        """Entries that may lie together: whole numbers with whole numbers, packed and weighted alike."""
        types = self.types
        return *types, "real" if "values" in types and types["values"].kind == "f" else "", str(types.get("weights"))

    def read(self, part: str) -> Array:
        return self.file.read(f"{self.number}.{part}", int(self.borders[0]), int(self.borders[-1]))

    def check(self, columns: Array, tiling: Tiling, last: int) -> Array:
        """The columns as they are, unless some lie beyond their tile, or beyond ``last``: kernels check no bounds."""
        size = 1 << tiling.shift
        if "values" not in self.types:
            if columns.dtype != PACKED:
                raise self.file.damaged()
        elif tiling.shift != 8 * columns.itemsize and columns.max() >> tiling.shift:
            raise self.file.damaged()
        in_last_tile = (last - 1) % size + 1
        before = int(self.borders[-tiling.n_classes - 1] - self.borders[0])
        if in_last_tile < size and (columns[before:] & (size - 1)).max(initial=0) >= in_last_tile:
            raise self.file.damaged()
        return columns


def read_pieces(
    pieces: Sequence[SpooledPiece], tiling: Tiling, first: int, last: int, in_flight: int = 1
) -> TiledEntries:
    """The entries of columns ``first .. last - 1`` of some pieces of one family, side by side in memory."""
    starts = np.cumsum([0, *map(len, pieces)])
    borders = np.empty((len(pieces[0].borders), len(pieces)), np.int64)
    for number, piece in enumerate(pieces):
        borders[:, number] = piece.borders + (starts[number] - piece.borders[0])
    held: dict[str, Array] = {}
    for part in pieces[0].types:
        found = ahead(partial(SpooledPiece.read, part=part), pieces, min(in_flight, len(pieces)))
        if part == "columns":
            found = (piece.check(array, tiling, last) for piece, array in zip(pieces, found, strict=True))
        held[part] = _side_by_side(found, starts, np.result_type(*{piece.types[part] for piece in pieces}))
    return TiledEntries(tiling, last - first, borders, held["columns"], held.get("values"), held.get("weights"))


def _side_by_side(arrays: Iterator[Array], starts: Array, dtype: np.dtype[Any]) -> Array:
    """Arrays one after another; a single one as it is."""
    if len(starts) == 2:
        return next(arrays)
    held = np.empty(int(starts[-1]), dtype)
    for array, start in zip(arrays, starts.tolist(), strict=False):
        held[start : start + len(array)] = array
    return held
