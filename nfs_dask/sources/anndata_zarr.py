"""AnnData in Zarr stores of version 2 or 3, of which some are ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.files.folder import Folder
from nfs_dask.sources.anndata_files import AnnDataFile, HeldColumn, StoredArray, StoredColumn, TableColumn
from nfs_dask.store.header import find_header
from nfs_dask.store.hierarchy import Hierarchy
from nfs_dask.store.layout import Numbers, Texts
from nfs_dask.store.shards import ShardReader
from nfs_dask.store.string_arrays import read_texts


class OwnArray:
    """An array of a store of ours, whose values are compared with what was written."""

    def __init__(self, folder: Folder, array: Numbers | Texts) -> None:
        self._folder, self._array = folder, array
        self._reader = ShardReader(folder, array) if isinstance(array, Numbers) else None
        self.dtype = np.dtype(array.dtype if isinstance(array, Numbers) else object)
        self.shape: tuple[int, ...] = (array.length,)
        self.chunks: tuple[int, ...] = (array.chunk,)
        self.chunk_nbytes = array.chunk * self.dtype.itemsize

    def read(self, start: int, stop: int) -> Array:
        """Values ``start .. stop - 1``; of texts ``start`` is the beginning of a chunk."""
        if isinstance(self._array, Texts):
            return np.array(read_texts(self._folder, self._array, start, stop), object)
        assert self._reader is not None
        return self._reader.read(start, stop)


class AnnDataZarr(AnnDataFile):
    """A Zarr store, told by its metadata."""

    ending = "zarr"

    def __init__(self, hierarchy: Hierarchy) -> None:
        self.hierarchy, self.location = hierarchy, hierarchy.folder.location
        header = find_header(hierarchy.root, self.location)
        self._own = {} if header is None else {one.name: one for one in header.arrays()}
        self._held = {} if header is None else {one.name: (one, values) for one, values in header.category_arrays}

    def where(self, path: str) -> str:
        return self.hierarchy.folder.path(path)

    def attributes(self, path: str) -> Mapping[str, Any] | None:
        node = self.hierarchy.find(path)
        return None if node is None else node.attributes

    def is_array(self, path: str) -> bool:
        return self.hierarchy.get(path).array is not None

    def array(self, path: str, *, text: bool = False, strict: bool = False) -> StoredArray:
        from nfs_dask.store.foreign_arrays import ForeignArray

        return ForeignArray(self.hierarchy, path, text=text, strict=strict)

    def values(self, path: str) -> TableColumn:
        if path in self._held:
            array, values = self._held[path]
            return HeldColumn(np.array(values, object if isinstance(array, Texts) else array.dtype), self.where(path))
        if path in self._own:
            return StoredColumn(OwnArray(self.hierarchy.folder, self._own[path]), self.where(path))
        return super().values(path)

    def categories_aside(self, path: str) -> str | None:
        if "categories" not in (self.attributes(path) or {}):
            return None
        table, _, name = path.rpartition("/")
        return f"{table}/__categories/{name}"
