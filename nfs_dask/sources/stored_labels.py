"""Labels of stored rows as class codes: from our own column, from somebody's column, or given by the caller."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from nfs_dask.block import UNLABELLED, Array
from nfs_dask.errors import InputError, StoreError
from nfs_dask.sources.labels import MOST_CLASSES, encode, encode_as, merge_classes, smallest_codes
from nfs_dask.storage.folder import Folder
from nfs_dask.storage.header import Header
from nfs_dask.storage.hierarchy import Hierarchy
from nfs_dask.storage.shards import ShardReader

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
        self.classes, self._rank = _ranked(header.class_array())
        self._codes = ShardReader(folder, header.codes)

    def read(self, start: int, stop: int) -> Array:
        return _recoded(self._codes.read(start, stop), self._rank, self._codes.numbers.name)

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


class CategoricalLabels:
    """A categorical column in AnnData's encoding: codes, and the categories they number."""

    def __init__(self, hierarchy: Hierarchy, path: str) -> None:
        from nfs_dask.storage.foreign import ForeignArray

        self._hierarchy, self._path = hierarchy, path
        self._codes = ForeignArray(hierarchy, f"{path}/codes")
        if len(self._codes.shape) != 1 or self._codes.dtype.kind not in "iu":
            raise StoreError(f"{hierarchy.folder.path(path)}/codes are not whole numbers; the column is damaged")
        categories = ForeignArray(hierarchy, f"{path}/categories", text=True)
        if categories.length > MOST_CLASSES:
            raise InputError(
                f"{path} has {categories.length:,} categories; identifiers or measurements are not classes"
            )
        values = categories.read(0, categories.length)
        self.classes, self._rank = _ranked(np.array(values.tolist()) if len(values) else np.empty(0, np.str_))

    @property
    def length(self) -> int:
        return self._codes.length

    def read(self, start: int, stop: int) -> Array:
        return _recoded(self._codes.read(start, stop), self._rank, self._codes.path)

    def fingerprint(self) -> str:
        return listing(self._hierarchy, self._path)


class ColumnLabels:
    """A column of strings, whole numbers or booleans. It is read through once to find the classes."""

    def __init__(self, hierarchy: Hierarchy, path: str) -> None:
        from nfs_dask.storage.foreign import ForeignArray

        self._hierarchy, self._path = hierarchy, path
        self._values = ForeignArray(hierarchy, path, text=True)
        self._last: tuple[int, Array] | None = None  # the chunk that was read last, and its codes
        self.classes = merge_classes(classes for classes in self._classes())

    @property
    def length(self) -> int:
        return self._values.length

    def read(self, start: int, stop: int) -> Array:
        size = self._values.chunks[0]
        first = start // size
        parts = [self._chunk(number) for number in range(first, -(-stop // size))]
        codes = parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.int32), *parts])
        return codes[start - first * size : stop - first * size]

    def _chunk(self, number: int) -> Array:
        """The codes of one chunk. Blocks are read in order, and unpacking strings for each would take longer than X."""
        last = self._last
        if last is None or last[0] != number:
            size = self._values.chunks[0]
            values = self._plain(number * size, min((number + 1) * size, self.length))
            last = self._last = (number, encode_as(values, self.classes).astype(np.int32, copy=False))
        return last[1]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_last": None}

    def fingerprint(self) -> str:
        return listing(self._hierarchy, self._path)

    def _classes(self) -> Iterator[Array]:
        """Distinct labels so far after each piece, so that no more than these are held."""
        found: list[Array] = []
        for start in range(0, self._values.length, _PIECE):
            found = [merge_classes([*found, encode(self._plain(start, min(start + _PIECE, self._values.length)))[0]])]
        yield from found

    def _plain(self, start: int, stop: int) -> Array:
        values = self._values.read(start, stop)
        return values if values.dtype.kind in "biuf" else np.array(values.tolist(), dtype=object)


def column_labels(hierarchy: Hierarchy, name: str, n_rows: int) -> Labels:
    """The labels in a column of AnnData's table of rows."""
    path = f"obs/{name}"
    node = hierarchy.find(path) if name else None
    if node is None or name.startswith("."):
        frame = hierarchy.find("obs")
        known = frame.attributes.get("column-order", []) if frame is not None else []
        raise InputError(f"{hierarchy.folder.location} has no column {name!r}; it has {', '.join(known) or 'none'}")
    labels: CategoricalLabels | ColumnLabels
    if node.encoding == "categorical" and node.array is None:
        labels = CategoricalLabels(hierarchy, path)
    elif node.array is not None and node.encoding in ("array", "string-array", ""):
        labels = ColumnLabels(hierarchy, path)
    else:
        raise InputError(
            f"column {name!r} is a {node.encoding!r}; labels are categories, strings, whole numbers or booleans"
        )
    if labels.length != n_rows:
        raise StoreError(
            f"{hierarchy.folder.path(path)} has {labels.length} labels for {n_rows} rows; the store is damaged"
        )
    return labels


def listing(hierarchy: Hierarchy, *paths: str) -> str:
    """A fingerprint by names, sizes and tags or times of all objects below some paths."""
    from nfs_dask.storage.foreign import objects

    digest = hashlib.blake2b(digest_size=16)
    for path in paths:
        for name, size, tag in objects(hierarchy.folder, path):
            digest.update(json.dumps([path, name, size, tag]).encode())
    return digest.hexdigest()


def _ranked(classes: Array) -> tuple[Array, Array]:
    """Sorted classes, and the position among them of each class as it is stored; the last stands for none."""
    order = np.argsort(classes, kind="stable")
    rank = np.empty(len(classes) + 1, np.int32)
    rank[order] = np.arange(len(classes))
    rank[-1] = UNLABELLED
    if len(np.unique(classes)) < len(classes):
        raise StoreError("two categories of the label column are the same; the store is damaged")
    return classes[order], rank


def _recoded(codes: Array, rank: Array, name: str) -> Array:
    """Stored codes as positions among the sorted classes. Codes come from outside, so their range is checked."""
    codes = codes.astype(np.int64)
    if len(codes) and not (codes.min() >= UNLABELLED and codes.max() < len(rank) - 1):
        raise StoreError(f"{name} is damaged: it holds a code that stands for no category")
    return rank[codes]  # -1 takes the last
