"""Dense rows in files: what a view hands out, made once and read in many passes.

    rows-00000000-00000008.rows    of blocks 0 .. 7 of the view

Array i of a file has the bytes of the values, weights and codes of a block, so that one read brings all of them; the
facts are the numbers of rows, and the first row of each. One task writes one file. Whoever writes them again, perhaps
after somebody was killed, keeps those that are whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from nfs_dask.arrays.block import Block, full_rows
from nfs_dask.files.arrayfile import ArrayFile, ArrayFileWriter, intact
from nfs_dask.files.folder import Folder
from nfs_dask.sources.source import Sizes, Source
from nfs_dask.statistics.collected_rows import dense_rows
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
class RowFileTask:
    """Blocks ``start .. stop - 1`` of a source, which one file is to hold."""

    source: Source | None  # None: the block comes with the task
    start: int
    stop: int
    folder: str

    @property
    def name(self) -> str:
        return f"rows-{self.start:08d}-{self.stop:08d}.rows"


@dataclass(frozen=True, slots=True)
class RowPiece:
    """Some rows in a file."""

    file: str
    number: int  # in the file
    n_rows: int
    first_row: int  # of the data

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
    shipped = source.is_shipped
    n = source.n_blocks if shipped else min(source.n_blocks, max(FEW, source.read_nbytes // RUN_NBYTES))
    edges = [source.n_blocks * i // n for i in range(n + 1)]
    readable = None if source.delayed is not None else source
    tasks = [RowFileTask(readable, a, b, folder.location) for a, b in zip(edges, edges[1:], strict=False)]
    if source.delayed is not None:
        listings = mapping.map_values(write_given, source.delayed, tasks)
    else:
        listings = [write_rows(task) for task in tasks] if shipped else mapping.map_items(write_rows, tasks)
    pieces = [
        RowPiece(task.name, number, n_rows, first_row)
        for task, found in zip(tasks, listings, strict=True)
        for number, (n_rows, first_row) in enumerate(found)
    ]
    return RowFiles(folder, pieces, source)


def write_rows(task: RowFileTask) -> list[list[int]]:
    """Write one file, unless it is there and whole; number of rows and first row of each of its pieces."""
    assert task.source is not None
    return _write(task, task.source.blocks(task.start, task.stop))


def write_given(block: Block, task: RowFileTask) -> list[list[int]]:
    """As `write_rows`, for a block that came with the task."""
    return _write(task, iter([block]))


def _write(task: RowFileTask, blocks: Iterator[Block]) -> list[list[int]]:
    folder = Folder(task.folder)
    if (finished := intact(folder, task.name)) is not None:
        found: list[list[int]] = finished.facts["pieces"]
        return found
    pieces: list[list[int]] = []
    with folder.scratch.create(task.name) as file:
        writer = ArrayFileWriter(file, task.name)
        for block in blocks:
            if block.n_rows:
                writer.add(str(len(pieces)), np.frombuffer(_packed(block), np.uint8))
                pieces.append([block.n_rows, block.first_row])
        writer.close({"pieces": pieces})
    return pieces


class RowFiles(Source):
    """A source of the rows in such files, each piece a block: to the data, what the written source was to them."""

    def __init__(self, folder: Folder, pieces: list[RowPiece], source: Source) -> None:
        self._folder, self._pieces = folder, pieces
        self._origin: Source | None = source.origin
        width, weighted = source.n_features, source.weighted
        n_rows = sum(piece.n_rows for piece in pieces)
        self._facts = replace(
            source.facts,
            n_rows=n_rows,
            n_blocks=len(pieces),
            nnz=n_rows * width,
            kind="signed",
            in_memory=False,
            trusted=True,
            import_nbytes=0,
        )
        most = max((piece.n_rows for piece in pieces), default=0)
        self._sizes = Sizes(
            most * (12 * width + 8 + 4 + 8 * weighted) + 8,
            most * width,
            sum(piece.nbytes(width, weighted) for piece in pieces),
        )

    @property
    def origin(self) -> Source:
        return self._origin or self

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        file: ArrayFile | None = None
        for number in range(start, stop):
            piece = self._pieces[number]
            if file is None or file.name != piece.file:
                file = ArrayFile.open(self._folder, piece.file)
            yield self._block(file, number, piece)

    def _block(self, file: ArrayFile, number: int, piece: RowPiece) -> Block:
        n, content = piece.n_rows, file.read(str(piece.number)).copy()  # kernels are compiled for what they may change
        if len(content) != piece.nbytes(self.n_features, self.weighted):
            raise file.damaged()
        values = np.frombuffer(content, "<f8", n * self.n_features).reshape(n, self.n_features)
        weights = np.frombuffer(content, "<f8", n, values.nbytes) if self.weighted else None
        codes = np.frombuffer(content, "<i4", n, len(content) - 4 * n)
        indptr, indices, data, full = full_rows(values)
        return Block(indptr, indices, data, codes, self.n_features, weights, piece.first_row, number, full)

    def __getstate__(self) -> dict[str, Any]:
        """The data that the rows were made of stay where they are."""
        return {**self.__dict__, "_origin": None}


def _packed(block: Block) -> bytes:
    weights = b"" if block.weights is None else block.weights.astype("<f8").tobytes()
    return dense_rows(block).astype("<f8").tobytes() + weights + block.codes.astype("<i4").tobytes()
