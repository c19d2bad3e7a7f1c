"""Spool files: the entries of some blocks, sorted by column tile and class.

One file holds the pieces of one batch of a run. A panel task reads the byte range of its columns from each piece and
puts the pieces together as one block whose rows are (tile, class) pairs, tiles in order. Within a tile and class the
entries keep the order of the documents, so that real sums do not depend on how many panels, workers or runs there are.

    piece    columns within their tile | values | weights (weighted data only) | bucket ends, int64
    trailer  JSON with the pieces' offsets, the totals and the coverage | its length | its CRC-32 | magic, 8 bytes each

A file appears whole or not at all (see `Folder.create`), so a file that is there is a checkpoint.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from nfs_dask import kernels
from nfs_dask.block import Array, Block
from nfs_dask.errors import StoreError
from nfs_dask.storage.folder import Folder

MAGIC = b"NFSSPL02"
TAIL = 65536  # bytes read at once from the end; they hold the trailer of all but the largest files


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

    def __init__(self, file: IO[bytes], tiling: Tiling) -> None:
        self._file = file
        self._tiling = tiling
        self._offset = 0
        self._pieces: list[dict[str, Any]] = []
        self.tiles = np.zeros(tiling.n_buckets // tiling.n_classes, np.int64)  # entries of each tile so far

    def add(self, block: Block) -> None:
        """Sort a block's entries into buckets and append them."""
        tiling = self._tiling
        sizes = np.zeros(tiling.n_buckets, np.int64)
        kernels.bucket_sizes(block.indptr, block.indices, block.codes, tiling.shift, tiling.n_classes, sizes)
        self.tiles += sizes.reshape(-1, tiling.n_classes).sum(axis=1)
        starts = np.cumsum(sizes) - sizes
        ends = starts.copy()
        columns = np.empty(block.nnz, np.uint16 if tiling.shift <= 16 else np.uint32)
        values = np.empty(block.nnz, block.data.dtype)
        kernels.bucket_entries(
            block.indptr, block.indices, block.data, block.codes, tiling.shift, tiling.n_classes, ends, columns, values
        )
        piece = {"columns": self._append(columns), "values": self._append(values), "weights": None}
        if block.weights is not None:
            rows = np.empty(block.nnz, np.int32)
            kernels.bucket_rows(block.indptr, block.indices, block.codes, tiling.shift, tiling.n_classes, starts, rows)
            piece["weights"] = self._append(block.weights[rows])
        self._pieces.append({**piece, "ends": self._append(ends)})

    def _append(self, array: Array) -> dict[str, Any]:
        """Write an array; where it lies and of which type it is."""
        at = {"offset": self._offset, "dtype": array.dtype.str, "n": len(array)}
        self._file.write(array.view(np.uint8).data)
        self._offset += array.nbytes
        return at

    def close(self, facts: dict[str, Any]) -> None:
        """Write the trailer, which makes the file complete."""
        trailer = json.dumps({"pieces": self._pieces, "facts": facts}).encode()
        length, crc = len(trailer).to_bytes(8, "little"), zlib.crc32(trailer).to_bytes(8, "little")
        self._file.write(trailer + length + crc + MAGIC)


@dataclass(frozen=True)
class SpoolFile:
    """A finished spool file: its trailer, and its entries by range of buckets."""

    folder: Folder
    name: str
    pieces: list[dict[str, Any]]
    facts: dict[str, Any]

    @classmethod
    def open(cls, folder: Folder, name: str) -> SpoolFile:
        tail = folder.read(name, start=-TAIL)
        length, crc = (int.from_bytes(tail[at : at + 8], "little") for at in (-24, -16))
        if tail[-8:] != MAGIC:
            raise _damaged(folder, name)
        if length + 24 > len(tail) and length + 24 <= folder.size(name):
            tail = folder.read(name, start=-(length + 24))
        content = tail[-24 - length : -24]
        if len(content) != length or zlib.crc32(content) != crc:
            raise _damaged(folder, name)
        trailer = json.loads(content)
        return cls(folder, name, trailer["pieces"], trailer["facts"])

    def entries(self, tiling: Tiling, first: int, last: int) -> Iterator[Entries]:
        """Of each piece, the entries of columns ``first .. last - 1``; both ends lie on tiles.

        Kernels index without bounds checks, so borders and columns are looked at here.
        """
        start, stop = tiling.buckets(first, last)
        in_last_tile = (last - 1) % (1 << tiling.shift) + 1  # columns of the last tile
        for piece in self.pieces:
            ends = self._array(piece["ends"], max(start - 1, 0), stop)
            begin, ends = (int(ends[0]), ends[1:]) if start > 0 else (0, ends)
            n = piece["columns"]["n"]
            if piece["ends"]["n"] != tiling.n_buckets or not 0 <= begin <= ends[0] <= ends[-1] <= n:
                raise _damaged(self.folder, self.name)
            if ends[-1] == begin:
                continue
            parts = (piece["columns"], piece["values"], piece["weights"])
            columns, values, weights = (None if at is None else self._array(at, begin, int(ends[-1])) for at in parts)
            ends = ends - begin
            assert columns is not None and values is not None
            before = int(ends[-tiling.n_classes - 1]) if len(ends) > tiling.n_classes else 0
            too_far = columns[before:].max(initial=0) >= in_last_tile or (
                tiling.shift != 8 * columns.itemsize and columns.max() >> tiling.shift
            )
            if too_far or np.any(ends[1:] < ends[:-1]):
                raise _damaged(self.folder, self.name)
            yield Entries(ends, columns, values, weights)

    def _array(self, at: dict[str, Any], start: int, stop: int) -> Array:
        dtype = np.dtype(at["dtype"])
        first, last = (at["offset"] + i * dtype.itemsize for i in (start, stop))
        content = self.folder.read(self.name, first, last)
        if stop > at["n"] or len(content) != last - first:
            raise _damaged(self.folder, self.name)
        return np.frombuffer(content, dtype)


def _damaged(folder: Folder, name: str) -> StoreError:
    return StoreError(f"{folder.path(name)} is truncated, damaged or not a spool file; delete it and run again")


@dataclass(frozen=True)
class Entries:
    """Entries of consecutive buckets of one piece."""

    ends: Array  # (buckets,) where each bucket ends
    columns: Array  # within their tile
    values: Array
    weights: Array | None

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def family(self) -> tuple[bool, str]:
        """Entries that may share a block: whole numbers with whole numbers, weighted alike."""
        return self.values.dtype.kind == "f", "" if self.weights is None else self.weights.dtype.str


def as_block(parts: Sequence[Entries], tiling: Tiling, width: int) -> Block:
    """One block over a panel of ``width`` columns, from entries of one family, in the order of the documents.

    Its rows are the panel's (tile, class) pairs: each tile's columns are visited once, while they are in cache.
    """
    sizes = sum((np.diff(part.ends, prepend=0) for part in parts), np.zeros(len(parts[0].ends), np.int64))
    indptr = np.concatenate(([0], np.cumsum(sizes)))
    total = int(indptr[-1])
    indices = np.empty(total, np.uint32)
    values = np.empty(total, np.result_type(*{part.values.dtype for part in parts}))
    weights = None if parts[0].weights is None else np.empty(total, parts[0].weights.dtype)
    starts = indptr[:-1].copy()
    for part in parts:
        if weights is not None:
            kernels.gather_weights(part.ends, part.weights, starts.copy(), weights)
        kernels.gather_entries(
            part.ends, part.columns, part.values, tiling.shift, tiling.n_classes, starts, indices, values
        )
    codes = np.tile(np.arange(tiling.n_classes, dtype=np.int32), len(sizes) // tiling.n_classes)
    if weights is not None:  # every entry has a weight of its own: a row each
        indptr, codes = np.arange(total + 1), np.repeat(codes, sizes)
    return Block(indptr, indices, values, codes, width, weights)
