"""Labels of stored rows as class codes: from our own column, from somebody's column, or given by the caller."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from nfs_dask.arrays.block import UNLABELLED, Array
from nfs_dask.errors import InputError, StoreError
from nfs_dask.files.folder import Folder
from nfs_dask.sources.anndata_files import Categorical, TableColumn
from nfs_dask.sources.labels import MOST_CLASSES, encode, encode_as, merge_classes, smallest_codes
from nfs_dask.store.header import Header
from nfs_dask.store.hierarchy import Hierarchy
from nfs_dask.store.shards import ShardReader

_PIECE = 1 << 20  # labels looked at together


class Labels(Protocol):
    """Class codes of rows, under sorted classes."""

    classes: Array

    def read(self, start: int, stop: int) -> Array:
        """Codes of rows ``start .. stop - 1``, int32."""
        ...

    def fingerprint(self) -> str:
        """What the fingerprint of the data has to be joined with; empty for labels that are part of it."""
        ...


class OwnLabels:
    """The label column of a store of ours."""

    def __init__(self, folder: Folder, header: Header) -> None:
        assert header.codes is not None
        self.classes, self._rank = _ranked(header.class_array(), folder.location)
        self._codes = ShardReader(folder, header.codes)

    def read(self, start: int, stop: int) -> Array:
        return _recoded(self._codes.read(start, stop), self._rank, self._codes.folder.path(self._codes.numbers.name))

    def fingerprint(self) -> str:
        return ""


class GivenLabels:
    """One label for each row, handed over by the caller; they travel with the source, in one byte if they can."""

    def __init__(self, labels: Any, n_rows: int) -> None:
        self.classes, codes = encode(labels, n_rows)
        self._codes = smallest_codes(codes, len(self.classes))

    def read(self, start: int, stop: int) -> Array:
        return self._codes[start:stop].astype(np.int32)

    def fingerprint(self) -> str:
        digest = hashlib.blake2b(json.dumps(self.classes.tolist()).encode(), digest_size=16)
        digest.update(self._codes.tobytes())
        return digest.hexdigest()


class ColumnLabels:
    """Labels in a column of AnnData's table of rows. Classes are what rows have: a category without rows is none.

    Parameters
    ----------
    column
        Text, categories, whole numbers or booleans; read through once to find the classes, unless they are known.
    classes
        What an earlier look at the column has found.
    fingerprint
        Changes when the column does.
    """

    def __init__(self, column: TableColumn, classes: Array | None = None, fingerprint: str = "") -> None:
        self._column, self._fingerprint = column, fingerprint
        self._codes: Array | None = None  # of the categories, and of none at the end
        if isinstance(column, Categorical):
            own, self._codes = _encoded_categories(column)
            self.classes = self._used(column, own, self._codes) if classes is None else classes
            self._codes = _among(self.classes, own)[self._codes]
        else:
            self.classes = self._found() if classes is None else classes

    def read(self, start: int, stop: int) -> Array:
        if self._codes is not None and isinstance(self._column, Categorical):
            return self._codes[self._column.read_codes(start, stop)]
        return encode_as(self._column.read(start, stop), self.classes).astype(np.int32, copy=False)

    def fingerprint(self) -> str:
        return self._fingerprint

    def _pieces(self) -> Iterator[tuple[int, int]]:
        for start in range(0, self._column.length, _PIECE):
            yield start, min(start + _PIECE, self._column.length)

    def _used(self, column: Categorical, own: Array, codes: Array) -> Array:
        """The categories that rows have."""
        used = np.zeros(len(own) + 1, bool)
        for start, stop in self._pieces():
            used[codes[column.read_codes(start, stop)]] = True
        return own[used[:-1]]

    def _found(self) -> Array:
        """The distinct values, a piece at a time, so that no more than these are held."""
        found = merge_classes(())
        for start, stop in self._pieces():
            found = merge_classes([found, encode(self._column.read(start, stop))[0]])
        return found


def column_labels(hierarchy: Hierarchy, name: str, n_rows: int) -> ColumnLabels:
    """The labels in a column of the table of rows of a Zarr store."""
    from nfs_dask.sources.anndata_zarr import AnnDataZarr

    file = AnnDataZarr(hierarchy)
    column = file.column(name, n_rows)
    aside = file.categories_aside(f"obs/{name}")
    paths = [f"obs/{name}"] if aside is None else [f"obs/{name}", aside]
    return ColumnLabels(column, fingerprint=listing(hierarchy, *paths))


def _encoded_categories(column: Categorical) -> tuple[Array, Array]:
    """Sorted categories, and the place among them of each as it is stored; the last one stands for none."""
    n = column.categories.length
    if n > MOST_CLASSES:
        raise InputError(f"{column.where} has {n:,} categories; identifiers or measurements are not classes")
    classes, codes = encode(column.categories.read(0, n))
    if len(classes) < np.count_nonzero(codes != UNLABELLED):
        raise StoreError(f"two categories of {column.where} are the same; it is damaged")
    return classes, np.append(codes, UNLABELLED)


def _among(classes: Array, own: Array) -> Array:
    """The place among the classes of each category; of those without rows, and of none at the end, no place."""
    places = np.full(len(own) + 1, UNLABELLED, np.int32)
    if len(own) and len(classes):
        position = np.minimum(np.searchsorted(classes, own), len(classes) - 1)
        places[:-1] = np.where(classes[position] == own, position, UNLABELLED)
    return places


def listing(hierarchy: Hierarchy, *paths: str) -> str:
    """A fingerprint by names, sizes and tags or times of all objects below some paths."""
    from nfs_dask.store.foreign_arrays import objects

    digest = hashlib.blake2b(digest_size=16)
    for path in paths:
        for name, size, tag in objects(hierarchy.folder, path):
            digest.update(json.dumps([path, name, size, tag]).encode())
    return digest.hexdigest()


def _ranked(classes: Array, where: str) -> tuple[Array, Array]:
    """Sorted classes, and the position among them of each class as it is stored; the last stands for none."""
    order = np.argsort(classes, kind="stable")
    rank = np.empty(len(classes) + 1, np.int32)
    rank[order] = np.arange(len(classes))
    rank[-1] = UNLABELLED
    if len(np.unique(classes)) < len(classes):
        raise StoreError(
            f"{where} is damaged: two categories of its label column are the same; ingest again, or use a copy"
        )
    return classes[order], rank


def _recoded(codes: Array, rank: Array, name: str) -> Array:
    """Stored codes as positions among the sorted classes. Codes come from outside, so their range is checked."""
    codes = codes.astype(np.int64)
    if len(codes) and not (codes.min() >= UNLABELLED and codes.max() < len(rank) - 1):
        raise StoreError(f"{name} is damaged: it holds a code that stands for no category; ingest again, or use a copy")
    return rank[codes]  # -1 takes the last
