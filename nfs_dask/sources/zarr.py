"""Datasets in Zarr: stores of ours, and AnnData's, opened where they lie and read block by block."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from nfs_dask.arrays.block import UNLABELLED, Array, Block, Csr
from nfs_dask.errors import InputError, StoreError
from nfs_dask.files.ahead import BLOCKS_IN_FLIGHT, ahead
from nfs_dask.files.folder import Folder
from nfs_dask.sources.anndata_files import AnnDataFile
from nfs_dask.sources.anndata_memory import RAW
from nfs_dask.sources.anndata_zarr import AnnDataZarr
from nfs_dask.sources.row_tables import StoredRows
from nfs_dask.sources.source import Facts, Sizes, Source
from nfs_dask.sources.stored_labels import GivenLabels, Labels, OwnLabels, column_labels, listing
from nfs_dask.store.header import Header, find_header
from nfs_dask.store.hierarchy import Hierarchy
from nfs_dask.store.layout import Numbers
from nfs_dask.store.names import checked_columns, read_names
from nfs_dask.store.shards import ShardReader
from nfs_dask.store.term_table import TermTable
from nfs_dask.store.text_facts import TextFacts
from nfs_dask.units import MiB

ZARR_NBYTES = 16 * MiB  # measured: what importing zarr takes (8 MiB); stores of ours are read without it
REMOTE_NBYTES = 60 * MiB  # measured: s3fs and its client, once used (54 MiB)
MOST_UNEVEN = 1 << 12  # blocks; of more of them a run has so many that they need not be alike


class _Matrix(Protocol):
    """What the two kinds of stores have in common."""

    facts: Facts  # without labels
    sizes: Sizes
    text: TextFacts | None

    def edges(self, start: int, stop: int) -> Array:
        """First rows of blocks ``start .. stop``."""
        ...

    def rows(self, start: int, stop: int) -> Csr: ...

    def weights(self, start: int, stop: int) -> Array | None: ...

    def lengths(self, region: int, start: int, stop: int) -> Array | None: ...

    def table(self) -> TermTable | None: ...

    def names(self, columns: Array) -> list[str] | None: ...


class ZarrSource(Source):
    """Blocks of a store of ours, or of an AnnData Zarr store of version 2 or 3.

    All metadata are read here, and travel with the source: a task opens the objects it reads, and lists nothing.

    Parameters
    ----------
    location
        Local path or fsspec URL.
    labels
        A column of ``obs``, or one label for each row. None: the store's own labels, if it has any.
    layer
        Name of a layer to read instead of X.
    """

    def __init__(self, location: str | os.PathLike[str], labels: Any = None, layer: str | None = None) -> None:
        self._folder = folder = Folder.of(location)
        self.location = folder.location
        hierarchy = Hierarchy.open(folder)
        header = find_header(hierarchy.root, folder.location)
        self._opened: Hierarchy | None = hierarchy
        self._label = labels if isinstance(labels, str) else None if header is None else header.label
        matrix: _Matrix = _Foreign(hierarchy, layer) if header is None or layer is not None else _Own(folder, header)
        self._matrix = matrix
        self._labels = _labels(hierarchy, header, labels, matrix.facts.n_rows)
        self._sizes, self.text = matrix.sizes, matrix.text
        self._facts = replace(
            matrix.facts,
            classes=None if self._labels is None else self._labels.classes,
            import_nbytes=matrix.facts.import_nbytes + _remote_nbytes(folder, matrix.sizes),
            fingerprint=_joined(matrix.facts.fingerprint, self._labels),
        )

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        if start >= stop:
            return
        edges = self._matrix.edges(start, stop)

        def read(number: int) -> Block:
            first, last = int(edges[number - start]), int(edges[number - start + 1])
            indptr, indices, data, full = self._matrix.rows(first, last)
            codes = self._codes(first, last)
            weights = self._matrix.weights(first, last)
            return Block(indptr, indices, data, codes, self.n_features, weights, first, number, full)

        yield from ahead(read, range(start, stop), BLOCKS_IN_FLIGHT if self._folder.remote else 1)

    def rows_of_blocks(self) -> Array | None:
        return np.diff(self._matrix.edges(0, self.n_blocks)) if 0 < self.n_blocks <= MOST_UNEVEN else None

    def names(self, columns: Array) -> list[str] | None:
        return self._matrix.names(checked_columns(columns, self.n_features))

    @property
    def annotations(self) -> StoredRows | None:
        hierarchy = self._opened or Hierarchy.open(self._folder)
        if hierarchy.find("obs") is None:
            return None
        return StoredRows(partial(_already_open, AnnDataZarr(hierarchy)), self.n_rows, self._label)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}  # blocks need none of it

    def lengths(self, region: int, start: int, stop: int) -> Array | None:
        """How many terms of the vocabulary a region of rows ``start .. stop - 1`` has; None where that is not kept."""
        return self._matrix.lengths(region, start, stop)

    def table(self) -> TermTable | None:
        return self._matrix.table()

    def _codes(self, start: int, stop: int) -> Array:
        if self._labels is None:
            return np.full(stop - start, UNLABELLED, np.int32)
        return self._labels.read(start, stop)


class _Own:
    """A store of ours: blocks are cut in a table of its own, and every byte read is checked."""

    def __init__(self, folder: Folder, header: Header) -> None:
        self._folder, self._header = folder, header
        read_nbytes = header.read_nbytes + (_read_twice(header) if folder.remote else 0)
        self.sizes = Sizes(header.block_nbytes, header.block_entries, read_nbytes)
        self.facts = Facts(
            header.n_rows,
            header.n_features,
            header.n_blocks,
            header.nnz,
            header.kind,
            weighted=header.weights is not None,
            trusted=True,
            import_nbytes=sum(_kept_nbytes(numbers) for numbers in (header.indptr, header.indices, header.data)),
            fingerprint=header.fingerprint,
        )
        self._indptr, self._indices, self._cuts = (
            ShardReader(folder, numbers) for numbers in (header.indptr, header.indices, header.cuts)
        )
        self._data = ShardReader(folder, header.data, header.narrow_type)
        self._weights = None if header.weights is None else ShardReader(folder, header.weights)
        self._lengths = [ShardReader(folder, numbers) for numbers in header.lengths]
        self.text = header.text

    def edges(self, start: int, stop: int) -> Array:
        n_rows, n_blocks = self.facts.n_rows, self.facts.n_blocks
        edges = self._cuts.read(start, min(stop + 1, n_blocks))
        if stop == n_blocks:
            edges = np.append(edges, n_rows)
        if edges[0] < 0 or edges[-1] > n_rows or np.any(edges[1:] < edges[:-1]):
            raise self._damaged(self._cuts, "blocks are not in order")
        return edges

    def rows(self, start: int, stop: int) -> Csr:
        if (stop - start) * 12 > self.sizes.block_nbytes:
            raise self._damaged(self._cuts, "a block is larger than the largest")
        indptr = self._indptr.read(start, stop + 1).astype(np.int64, copy=False)
        first, last = int(indptr[0]), int(indptr[-1])
        if np.any(indptr[1:] < indptr[:-1]) or not 0 <= last - first <= self.sizes.block_entries:
            raise self._damaged(self._indptr, f"row pointers are not in order after row {start}")
        indices = self._indices.read(first, last)
        # Kernels index without bounds checks. Seen as unsigned, a negative column is a very large one.
        unsigned = indices.view(np.uint32 if indices.itemsize == 4 else np.uint64)
        if len(indices) and int(unsigned.max()) >= self.facts.n_features:
            raise self._damaged(self._indices, f"a column is not below {self.facts.n_features}")
        return Csr(indptr - first, indices, self._data.read(first, last))

    def weights(self, start: int, stop: int) -> Array | None:
        return None if self._weights is None else self._weights.read(start, stop)

    def lengths(self, region: int, start: int, stop: int) -> Array | None:
        return self._lengths[region].read(start, stop) if self._lengths else None

    def table(self) -> TermTable | None:
        return None if self._header.frequencies is None else TermTable.of_store(self._folder, self._header)

    def names(self, columns: Array) -> list[str] | None:
        return read_names(self._folder, self._header, columns)

    def _damaged(self, reader: ShardReader, what: str) -> StoreError:
        return StoreError(f"{self._folder.path(reader.numbers.name)} is damaged: {what}; ingest again, or use a copy")


def _kept_nbytes(numbers: Numbers) -> int:
    """What a reader keeps of an array: the chunk in which a block ended."""
    return min(numbers.chunk, numbers.length) * numbers.itemsize


def _read_twice(header: Header) -> int:
    """Bytes of chunks that have the end of one block and the beginning of the next, where both are read at a time."""
    share = min(1.0, header.indices.chunk / max(1, header.nnz))
    return round((header.n_blocks - 1) * share * header.read_nbytes) if header.n_blocks > 1 else 0


class _Foreign:
    """A store that others wrote; its values are checked by whoever counts them."""

    text: TextFacts | None = None

    def __init__(self, hierarchy: Hierarchy, layer: str | None) -> None:
        from nfs_dask.store.foreign_arrays import objects

        path = "X" if layer is None else f"layers/{layer}"
        if hierarchy.find(path) is None:
            what = "no X in it" if layer is None else f"no layer {layer!r}"
            hint = RAW if layer == "raw" and hierarchy.find("raw") is not None else "give an AnnData store that has one"
            raise StoreError(f"{hierarchy.folder.location} is a Zarr group with {what}; {hint}")
        self._file = AnnDataZarr(hierarchy)
        self._matrix = matrix = self._file.matrix(path)
        self._cuts = cuts = matrix.cut()
        n_rows, n_features = matrix.shape
        self._file.index("var", n_features)  # refused at once, if it cannot be read
        self.facts = Facts(
            n_rows,
            n_features,
            cuts.n_blocks,
            matrix.nnz,
            matrix.kind,
            import_nbytes=ZARR_NBYTES,
            fingerprint=listing(hierarchy, path),
        )
        # The chunks that a block is taken from are unpacked whole beside it.
        nbytes = cuts.block_nbytes(matrix.entry_nbytes) + matrix.chunk_nbytes
        read_nbytes = sum(size for _, size, _ in objects(hierarchy.folder, path))
        self.sizes = Sizes(nbytes, cuts.block_entries, read_nbytes)

    def edges(self, start: int, stop: int) -> Array:
        return self._cuts.rows[start : stop + 1]

    def rows(self, start: int, stop: int) -> Csr:
        return self._matrix.rows(start, stop)

    def weights(self, start: int, stop: int) -> Array | None:
        return None

    def lengths(self, region: int, start: int, stop: int) -> Array | None:
        return None

    def table(self) -> TermTable | None:
        return None

    def names(self, columns: Array) -> list[str] | None:
        return self._file.names(columns, self.facts.n_features)


def _already_open(file: AnnDataFile) -> AbstractContextManager[AnnDataFile]:
    return nullcontext(file)


def _remote_nbytes(folder: Folder, sizes: Sizes) -> int:
    """What reading takes more behind a URL: libraries, and blocks that are read while one is folded."""
    return REMOTE_NBYTES + (BLOCKS_IN_FLIGHT - 1) * sizes.block_nbytes if folder.remote else 0


def _labels(hierarchy: Hierarchy, header: Header | None, labels: Any, n_rows: int) -> Labels | None:
    own = header is not None and header.label is not None
    if header is not None and own and (labels is None or (isinstance(labels, str) and labels == header.label)):
        return OwnLabels(hierarchy.folder, header)
    if labels is None:
        return None
    if isinstance(labels, str):
        return column_labels(hierarchy, labels, n_rows)
    if not hasattr(labels, "__len__"):
        raise InputError(f"labels are a {type(labels).__name__}; give the name of a column, or one label for each row")
    return GivenLabels(labels, n_rows)


def _joined(fingerprint: str | None, labels: Labels | None) -> str | None:
    """The fingerprint of data with labels that are not part of them."""
    extra = "" if labels is None else labels.fingerprint()
    return hashlib.blake2b(f"{fingerprint} {extra}".encode(), digest_size=16).hexdigest() if extra else fingerprint
