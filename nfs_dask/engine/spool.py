"""Spool files: the entries of some blocks, sorted by column tile and class.

One file holds the pieces of one batch of a run. A panel task reads the byte range of its columns from each piece and
puts the pieces together as one block whose rows are (tile, class) pairs, tiles in order. Within a tile and class the
entries keep the order of the documents, so that real sums do not depend on how many panels, workers or runs there are.

    piece    columns within their tile | values | weights (weighted data only) | bucket ends, int64
    trailer  JSON with the pieces' offsets, the totals and the coverage | its length (8 bytes) | magic (8 bytes)

A file appears whole or not at all (see `Folder.create`), so a file that is there is a checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from nfs_dask import kernels
from nfs_dask.block import Array, Block
from nfs_dask.errors import StoreError
from nfs_dask.storage.folder import Folder

MAGIC = b"NFSSPL01"


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

    def add(self, block: Block) -> None:
        """Sort a block's entries into buckets and append them."""
        tiling = self._tiling
        sizes = np.zeros(tiling.n_buckets, np.int64)
        kernels.bucket_sizes(block.indptr, block.indices, block.codes, tiling.shift, tiling.n_classes, sizes)
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
        at = {"offset": self._offset, "dtype": array.dtype.str}
        self._file.write(array.view(np.uint8).data)
        self._offset += array.nbytes
        return at

    def close(self, facts: dict[str, Any]) -> None:
        """Write the trailer, which makes the file complete."""
        trailer = json.dumps({"pieces": self._pieces, "facts": facts}).encode()
        self._file.write(trailer + len(trailer).to_bytes(8, "little") + MAGIC)


@dataclass(frozen=True)
class SpoolFile:
    """A finished spool file: its trailer, and its entries by range of buckets."""

    folder: Folder
    name: str
    pieces: list[dict[str, Any]]
    facts: dict[str, Any]

    @classmethod
    def open(cls, folder: Folder, name: str) -> SpoolFile:
        # One read takes the trailer of all but the largest files.
        tail = folder.read(name, start=-65536)
        if tail[-8:] != MAGIC:
            raise StoreError(f"{folder.path(name)} is truncated or not a spool file; delete it and run again")
        length = int.from_bytes(tail[-16:-8], "little")
        if length + 16 > len(tail):
            tail = folder.read(name, start=-(length + 16))
        trailer = json.loads(tail[-16 - length : -16])
        return cls(folder, name, trailer["pieces"], trailer["facts"])

    def entries(self, first: int, last: int) -> Iterable[Entries]:
        """Of each piece, the entries of buckets ``first .. last - 1``."""
        for piece in self.pieces:
            before = max(first - 1, 0)
            ends = self._array(piece["ends"], before, last)
            start, ends = (int(ends[0]), ends[1:]) if first > 0 else (0, ends)
            stop = int(ends[-1]) if len(ends) else start
            if stop > start:
                weights = piece["weights"]
                yield Entries(
                    ends - start,
                    self._array(piece["columns"], start, stop),
                    self._array(piece["values"], start, stop),
                    None if weights is None else self._array(weights, start, stop),
                )

    def _array(self, at: dict[str, Any], start: int, stop: int) -> Array:
        dtype = np.dtype(at["dtype"])
        first, last = (at["offset"] + i * dtype.itemsize for i in (start, stop))
        content = self.folder.read(self.name, first, last)
        if len(content) != last - first:
            raise StoreError(f"{self.folder.path(self.name)} is truncated; delete it and run again")
        return np.frombuffer(content, dtype)


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
