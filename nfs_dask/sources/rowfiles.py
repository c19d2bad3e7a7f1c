"""Dense rows in files: what a view hands out, made once and read in many passes.

    rows-00000000-00000008.bin     pieces of blocks 0 .. 7 of the view: values, weights and codes of each in turn
    rows-00000000-00000008.json    where its pieces are; written last, and without it a file does not count

One task writes one file. Whoever writes them again, perhaps after somebody was killed, keeps those that are finished.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from nfs_dask.block import Array, Block, Kind, full_rows
from nfs_dask.errors import StoreError
from nfs_dask.sources.base import Source, is_delayed, is_shipped, origin_of
from nfs_dask.statistics.rows import dense_rows
from nfs_dask.storage.folder import Folder
from nfs_dask.units import MiB

RUN_NBYTES = 128 * MiB  # of what the source reads, for one file
FEW = 16  # files at least, so that all workers have something to do


class Mapping(Protocol):
    """Where files are written: what an engine's `Executor` has of that."""

    def map_items(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]: ...

    def map_values(
        self, function: Callable[[Any, Any], Any], values: Sequence[Any], items: Sequence[Any]
    ) -> list[Any]: ...


@dataclass(frozen=True, slots=True)
class RowsTask:
    """Blocks ``start .. stop - 1`` of a source, which one file is to hold."""

    source: Source | None  # None: the block comes with the task
    start: int
    stop: int
    folder: str

    @property
    def name(self) -> str:
        return f"rows-{self.start:08d}-{self.stop:08d}"


@dataclass(frozen=True, slots=True)
class Piece:
    """Some rows in a file."""

    file: str
    offset: int
    n_rows: int
    first_row: int  # of the data
    checksum: int

    def nbytes(self, n_features: int, weighted: bool) -> int:
        return self.n_rows * (8 * n_features + 4 + 8 * weighted)


def write_row_files(source: Source, folder: Folder, mapping: Mapping) -> RowFiles:
    """Write all rows of a source into files of a folder that all workers reach; the source that reads them.

    Parameters
    ----------
    source
        With labels; its rows are written dense, so they have few columns. Rows in memory are written here.
    folder
        Of these rows alone. Files that an earlier call finished are kept.
    mapping
        Where they are written.
    """
    shipped = is_shipped(source)
    n = source.n_blocks if shipped else min(source.n_blocks, max(FEW, source.read_nbytes // RUN_NBYTES))
    edges = [source.n_blocks * i // n for i in range(n + 1)]
    readable = None if is_delayed(source) else source
    tasks = [RowsTask(readable, a, b, folder.location) for a, b in zip(edges, edges[1:], strict=False)]
    if is_delayed(source):
        listings = mapping.map_values(write_given, source.delayed, tasks)
    else:
        listings = [write_rows(task) for task in tasks] if shipped else mapping.map_items(write_rows, tasks)
    pieces = [Piece(task.name, *numbers) for task, found in zip(tasks, listings, strict=True) for numbers in found]
    return RowFiles(folder, pieces, source)


def write_rows(task: RowsTask) -> list[list[int]]:
    """Write one file, unless it is there; offset, number of rows, first row and checksum of each of its pieces."""
    assert task.source is not None
    return _write(task, task.source.blocks(task.start, task.stop))


def write_given(block: Block, task: RowsTask) -> list[list[int]]:
    """As `write_rows`, for a block that came with the task."""
    return _write(task, iter([block]))


def _write(task: RowsTask, blocks: Iterator[Block]) -> list[list[int]]:
    folder, listing = Folder(task.folder), f"{task.name}.json"
    if folder.exists(listing):
        return _read_listing(folder, listing)
    pieces, offset = [], 0
    with folder.create(f"{task.name}.bin") as file:
        for block in blocks:
            if block.n_rows:
                content = _packed(block)
                file.write(content)
                pieces.append([offset, block.n_rows, block.first_row, zlib.crc32(content)])
                offset += len(content)
    folder.write(listing, json.dumps(pieces).encode())
    return pieces


class RowFiles:
    """A source of the rows in such files, each piece a block: to the data, what the written source was to them."""

    kind: Kind | None = "signed"
    in_memory = False
    trusted = True
    import_nbytes = 0

    def __init__(self, folder: Folder, pieces: list[Piece], source: Source) -> None:
        self._folder, self._pieces = folder, pieces
        self.origin: Source | None = origin_of(source)
        self.n_features, self.n_blocks = source.n_features, len(pieces)
        self.n_rows = sum(piece.n_rows for piece in pieces)
        self.nnz: int | None = self.n_rows * self.n_features
        self.classes, self.weighted = source.classes, source.weighted
        self.fingerprint: str | None = source.fingerprint
        most = max((piece.n_rows for piece in pieces), default=0)
        self.block_entries = most * self.n_features
        self.block_nbytes = most * (12 * self.n_features + 8 + 4 + 8 * self.weighted) + 8
        self.read_nbytes = sum(piece.nbytes(self.n_features, self.weighted) for piece in pieces)

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        for number in range(start, stop):
            yield self._block(number, self._pieces[number])

    def names(self, columns: Array) -> list[str] | None:
        return None

    def _block(self, number: int, piece: Piece) -> Block:
        name, n = f"{piece.file}.bin", piece.n_rows
        end = piece.offset + piece.nbytes(self.n_features, self.weighted)
        content = bytearray(
            self._folder.read(name, piece.offset, end)
        )  # kernels are compiled for arrays they may change
        if zlib.crc32(content) != piece.checksum:
            raise StoreError(f"{self._folder.path(name)} is damaged; delete {self._folder.location}, and run again")
        values = np.frombuffer(content, "<f8", n * self.n_features).reshape(n, self.n_features)
        weights = np.frombuffer(content, "<f8", n, values.nbytes) if self.weighted else None
        codes = np.frombuffer(content, "<i4", n, len(content) - 4 * n)
        indptr, indices, data, full = full_rows(values)
        return Block(indptr, indices, data, codes, self.n_features, weights, piece.first_row, number, full)

    def __getstate__(self) -> dict[str, Any]:
        """The data that the rows were made of stay where they are."""
        return {**self.__dict__, "origin": None}


def _packed(block: Block) -> bytes:
    weights = b"" if block.weights is None else block.weights.astype("<f8").tobytes()
    return dense_rows(block).astype("<f8").tobytes() + weights + block.codes.astype("<i4").tobytes()


def _read_listing(folder: Folder, name: str) -> list[list[int]]:
    try:
        pieces = [[int(number) for number in piece] for piece in json.loads(folder.read(name))]
        if any(len(piece) != 4 or min(piece) < 0 for piece in pieces):
            raise ValueError("its pieces are not ours")
    except (TypeError, ValueError) as error:
        raise StoreError(f"{folder.path(name)} is damaged; delete {folder.location}, and run again") from error
    return pieces
