"""AnnData ``.h5ad`` files, read where they lie. The file is opened in each task and never held open between two."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from nfs_dask.arrays.block import UNLABELLED, Array, Block
from nfs_dask.errors import InputError, NfsDaskError, StoreError
from nfs_dask.files.data_files import expand, fingerprint, open_binary, size_of
from nfs_dask.files.remote import is_url
from nfs_dask.sources.anndata_files import AnnDataFile, CsrArrays, DenseArray
from nfs_dask.sources.anndata_memory import RAW
from nfs_dask.sources.row_tables import StoredRows
from nfs_dask.sources.source import Facts, Source
from nfs_dask.sources.stored_labels import ColumnLabels
from nfs_dask.units import MiB

# What h5py and numpy make of damaged bytes.
_DAMAGE = (ArithmeticError, AttributeError, LookupError, OSError, RuntimeError, SystemError, TypeError, ValueError)
H5PY_NBYTES = 12 * MiB  # measured: what importing h5py takes


class H5adSource(Source):
    """Blocks of the matrix of an AnnData file.

    Parameters
    ----------
    path
        Local path or fsspec URL.
    labels : str, optional
        Column of ``obs`` that holds the labels: categorical, text, whole numbers or booleans.
    layer : str, optional
        Layer that is read instead of X.
    """

    def __init__(self, path: str | os.PathLike[str], labels: str | None = None, layer: str | None = None) -> None:
        (self._path,) = expand(path)
        self.location = self._path
        self._name = "X" if layer is None else f"layers/{layer}"
        self._column = labels
        told, read_nbytes = fingerprint([self._path], "h5ad", labels, layer), size_of(self._path)
        with opened(self._path) as file:
            file.check_inside()
            matrix = self._matrix(file)
            self._cuts = matrix.cut()
            self._sizes = self._cuts.sizes(matrix.entry_nbytes, read_nbytes)
            n_rows, n_features = matrix.shape
            file.index("var", n_features)  # refused at once, if it cannot be read
            self._facts = Facts(
                n_rows,
                n_features,
                self._cuts.n_blocks,
                matrix.nnz,
                matrix.kind,
                None if labels is None else ColumnLabels(file.column(labels, n_rows)).classes,
                import_nbytes=H5PY_NBYTES,
                fingerprint=told,
            )

    def _matrix(self, file: H5adFile) -> CsrArrays | DenseArray:
        if file.attributes(self._name) is None:
            layers = ", ".join(file.root.get("layers", ())) or "none"
            hint = RAW if self._name == "layers/raw" and "raw" in file.root else "leave layer out to read X"
            raise InputError(f"{self._path} has no {self._name}; its layers are: {layers}; {hint}")
        return file.matrix(self._name)

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        with opened(self._path) as file:
            matrix = self._matrix(file)
            labels = self._column and ColumnLabels(file.column(self._column, self.n_rows), self.classes)
            for number, (first, last) in enumerate(pairwise(self._cuts.rows[start : stop + 1].tolist()), start):
                codes = labels.read(first, last) if labels else np.full(last - first, UNLABELLED, np.int8)
                indptr, indices, data, full = matrix.rows(first, last)
                yield Block(indptr, indices, data, codes, self.n_features, None, first, number, full)

    @property
    def annotations(self) -> StoredRows | None:
        with opened(self._path) as file:
            known = file.attributes("obs") is not None
        return StoredRows(partial(opened, self._path), self.n_rows, self._column) if known else None

    def names(self, columns: Array) -> list[str] | None:
        with opened(self._path) as file:
            return file.names(columns, self.n_features)


class H5Array:
    """A dataset of an open file, or a field of a compound one."""

    def __init__(self, dataset: Any, field: str | None = None) -> None:
        self._values = dataset if field is None else dataset.fields(field)
        self.shape: tuple[int, ...] = dataset.shape
        self.dtype: np.dtype[Any] = dataset.dtype if field is None else dataset.dtype[field]
        self.chunks: tuple[int, ...] = dataset.chunks or (1,) * len(self.shape)

    @property
    def chunk_nbytes(self) -> int:
        return math.prod(self.chunks) * self.dtype.itemsize

    def read(self, start: int, stop: int) -> Array:
        values = np.asarray(self._values[start:stop])
        return values.astype(values.dtype.newbyteorder("="), copy=False) if values.dtype.kind in "iuf" else values


class H5adFile(AnnDataFile):
    """An open file."""

    ending = "h5ad"

    def __init__(self, root: Any, location: str) -> None:
        self.root, self.location = root, location

    def where(self, path: str) -> str:
        return f"{self.location}: {path}"

    def attributes(self, path: str) -> Mapping[str, Any] | None:
        table, _, name = path.partition("/")
        if fields := self._fields(table):
            index = next((one for one in ("index", "_index") if one in fields), fields[0])
            if name:
                return {} if name in fields else None
            return {"_index": index, "column-order": [one for one in fields if one != index]}
        if path not in self.root:
            return None
        found: Mapping[str, Any] = self.root[path].attrs
        if path == "obs" and "column-order" not in found and not self.is_array(path):
            names = [one for one in self.root[path] if not one.startswith("__") and one != found.get("_index")]
            return {"_index": found.get("_index", "_index"), "column-order": names}
        return found

    def is_array(self, path: str) -> bool:
        table, _, name = path.partition("/")
        return bool(name) if self._fields(table) else hasattr(self.root[path], "shape")

    def array(self, path: str, *, text: bool = False, strict: bool = False) -> H5Array:
        table, _, name = path.partition("/")
        if self._fields(table):
            return H5Array(self.root[table], name)
        self._get(path)
        node = self.root[path]
        if not isinstance(getattr(node, "shape", None), tuple) or node.dtype.names:
            raise StoreError(f"{self.where(path)} is damaged: it is no array of numbers or text")
        return H5Array(node)

    def categories_aside(self, path: str) -> str | None:
        table, _, name = path.rpartition("/")
        aside = f"uns/{name}_categories" if self._fields(table) else f"{table}/__categories/{name}"
        return aside if aside in self.root else None

    def _fields(self, path: str) -> tuple[str, ...]:
        """Names of the fields of a table that is one compound dataset."""
        node = self.root.get(path) if path in ("obs", "var") else None
        return getattr(getattr(node, "dtype", None), "names", None) or ()

    def check_inside(self) -> None:
        """Refuse a file that would have others read, which could be any that this process may read."""
        from h5py import h5l

        def elsewhere(name: bytes, link: Any) -> bytes | None:
            return None if link.type in (h5l.TYPE_HARD, h5l.TYPE_SOFT) else name

        def outside(name: str, node: Any) -> str | None:
            return name if getattr(node, "external", None) or getattr(node, "is_virtual", False) else None

        found = self.root.id.links.visit(elsewhere, info=True) or self.root.visititems(outside)
        if found is not None:
            name = found.decode(errors="replace") if isinstance(found, bytes) else found
            raise StoreError(
                f"{self.location}: {name} lies in another file, which is not read; store all of it in one file"
            )


@contextmanager
def opened(path: str) -> Iterator[H5adFile]:
    try:
        import h5py  # only for these files
    except ImportError:
        raise InputError(".h5ad files need h5py; install it with: pip install 'nfs-dask[anndata]'") from None
    with ExitStack() as stack:
        content = stack.enter_context(open_binary(path))  # says what is missing better than HDF5 does
        try:
            file = stack.enter_context(h5py.File(content if is_url(path) else path, "r"))
        except OSError as error:
            raise StoreError(f"{path} is not an HDF5 file, or is damaged or cut short ({error})") from None
        try:
            yield H5adFile(file, path)
        except NfsDaskError:
            raise
        except _DAMAGE as error:
            raise StoreError(f"{path} is damaged ({type(error).__name__}: {error}); restore it from a copy") from None
