"""Arrays that others wrote: read with zarr, after their metadata were found harmless.

Metadata decide how much is allocated and which code unpacks it. So types, codecs and chunk sizes are looked at first,
and codecs that could run code from the data, such as pickle, are never reached.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import zarr
from zarr.storage import FsspecStore, LocalStore, StorePath, WrapperStore

from nfs_dask.arrays.block import Array
from nfs_dask.errors import StoreError
from nfs_dask.files.folder import Folder
from nfs_dask.store.hierarchy import Hierarchy
from nfs_dask.store.layout import MAX_CHUNK_NBYTES, Json
from nfs_dask.units import format_bytes

_NUMBERS = {f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)} | {"bool"}
_NUMBERS |= {"float16", "float32", "float64"}
_NAMES_V2 = {np.dtype(name).str[1:]: name for name in _NUMBERS}
_CODECS_V3 = {"bytes", "blosc", "gzip", "zstd", "crc32c", "sharding_indexed", "vlen-utf8", "transpose"}
_CODECS_V2 = {"blosc", "zlib", "gzip", "zstd", "lz4", "lzma", "bz2", "shuffle", "delta", "crc32", "crc32c", "vlen-utf8"}
_MAX_CHUNKS_PER_SHARD = 1 << 20


class ForeignArray:
    """An array of numbers or strings in a store that is not ours. Carries its metadata, opens nothing until read.

    With ``strict`` a chunk that is not there is an error. Zarr takes it for zeros, and writers may leave out chunks
    of zeros; but the parts of a sparse matrix have none, so there it is damage.
    """

    def __init__(self, hierarchy: Hierarchy, path: str, *, text: bool = False, strict: bool = False) -> None:
        self.folder, self.path, self.strict = hierarchy.folder, path, strict
        self._version = hierarchy.version
        self._document = hierarchy.array(path)
        self._opened: Any = None
        where = self.folder.path(path)
        try:
            self.shape = tuple(int(n) for n in self._document["shape"])
            self.chunks = _checked_chunks(self._document, self._version)
            self.dtype = _checked_dtype(self._document, self._version, text)
            _check_codecs(self._document, self._version)
            self._plain = not self.folder.remote and _has_plain_rows(self._document, self._version, self.dtype)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"{where}: its metadata cannot be used ({error}); convert it with anndata first") from None
        if any(n < 0 or n >= 2**62 for n in self.shape):
            raise StoreError(f"{where}: its metadata claim a shape of {self.shape}; the store is damaged")
        if math.prod(self.chunks) * max(self.dtype.itemsize, 1) > MAX_CHUNK_NBYTES:
            size = format_bytes(math.prod(self.chunks) * self.dtype.itemsize)
            raise StoreError(
                f"{where} has chunks of {size}, more than {format_bytes(MAX_CHUNK_NBYTES)}; rechunk it first"
            )

    @property
    def length(self) -> int:
        return self.shape[0]

    @property
    def chunk_nbytes(self) -> int:
        return math.prod(self.chunks) * self.dtype.itemsize

    def read(self, start: int, stop: int) -> Array:
        """Rows ``start .. stop - 1``; damage is reported by the name of the object."""
        if not 0 <= start <= stop <= self.length:
            raise StoreError(
                f"{self.folder.path(self.path)} has {self.length} values, {stop} were asked for; it is damaged"
            )
        values = self._read_plain(start, stop) if self._plain else None
        if values is None:
            values = self._unpacked(start, stop)
        return values if values.dtype.kind not in "biuf" else values.astype(values.dtype.newbyteorder("="), copy=False)

    def _read_plain(self, start: int, stop: int) -> Array | None:
        """The rows as they lie in their chunks, without a copy between; None where these are not as they should be."""
        values = np.empty((stop - start, *self.shape[1:]), self.dtype)
        flat, row_nbytes = values.reshape(-1).view(np.uint8), math.prod(self.shape[1:]) * self.dtype.itemsize
        for number, low, high in self._pieces(start, stop, self.chunks[0]):
            out = flat[(low - start) * row_nbytes : (high - start) * row_nbytes]
            offset = (low - number * self.chunks[0]) * row_nbytes
            if not self.folder.read_into(self._name_of(number), offset, out, self.chunk_nbytes):
                return None
        return values

    def _unpacked(self, start: int, stop: int) -> Array:
        """The rows as Zarr finds them."""
        array = self._open()
        try:
            return np.asarray(array[start:stop])
        except (StoreError, OSError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever a codec makes of damaged bytes
            name = self._first_damaged(start, stop)
            raise StoreError(f"{self.folder.path(name)} is damaged: {error}; restore it from a copy") from None

    def __getstate__(self) -> Json:
        return {**self.__dict__, "_opened": None}

    def _open(self) -> Any:
        if self._opened is None:
            store = _Guarded(_zarr_store(self.folder), self)
            try:
                self._opened = zarr.Array.from_dict(StorePath(store, self.path), self._document)
            except (KeyError, TypeError, ValueError) as error:
                where = self.folder.path(self.path)
                raise StoreError(
                    f"{where}: its metadata cannot be used ({error}); convert it with anndata first"
                ) from None
        return self._opened

    def _first_damaged(self, start: int, stop: int) -> str:
        """Name of the first object along the rows that cannot be read."""
        array = self._open()
        for number, low, high in self._pieces(start, stop, (array.shards or array.chunks)[0]):
            try:
                array[low:high]
            except Exception:  # noqa: BLE001 - which one it was is known already
                return self._name_of(number)
        return self.path

    @staticmethod
    def _pieces(start: int, stop: int, height: int) -> Iterator[tuple[int, int, int]]:
        """Objects of that many rows that have some of these: their number along the rows, and which ones."""
        for number in range(start // height, -(-stop // height)):
            yield number, max(start, number * height), min(stop, (number + 1) * height)

    def _name_of(self, number: int) -> str:
        """Name of the first object at that place along the rows."""
        return f"{self.path}/{self._open().metadata.encode_chunk_key((number, *([0] * (len(self.shape) - 1))))}"


class _Guarded(WrapperStore[Any]):
    """Reads nothing but files, as a pipe would be waited for; a strict array has all of its chunks."""

    def __init__(self, store: Any, array: ForeignArray) -> None:
        super().__init__(store)
        self._array = array

    async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
        path = self._array.folder.path(key)
        if not self._array.folder.remote and os.path.exists(path) and not os.path.isfile(path):
            raise StoreError(f"{path} is not a file, and one must be there; it is damaged")
        found = await self._store.get(key, prototype, byte_range)
        if found is None and self._array.strict:
            raise StoreError(f"{path} is missing; restore it from a copy")
        return found


def objects(folder: Folder, path: str) -> Iterator[tuple[str, int, str]]:
    """Name, size and tag or time of every object below a path, in order."""
    if not folder.remote:
        yield from _local_objects(folder, path)
        return
    import fsspec

    fs, root = fsspec.core.url_to_fs(folder.path(path), use_listings_cache=False)
    for name, info in sorted(fs.find(root, detail=True).items()):
        tag = next((str(info[key]) for key in ("ETag", "etag", "LastModified", "mtime", "updated") if key in info), "")
        yield name[len(root) :], int(info["size"] or 0), tag


def _local_objects(folder: Folder, path: str) -> Iterator[tuple[str, int, str]]:
    top = folder.path(path)
    for where, inside, names in os.walk(top):
        inside.sort()
        for name in sorted(names):
            found = os.stat(os.path.join(where, name))
            yield os.path.relpath(os.path.join(where, name), top), found.st_size, str(found.st_mtime_ns)


def _zarr_store(folder: Folder) -> Any:
    if folder.remote:
        return FsspecStore.from_url(folder.location, read_only=True)
    return LocalStore(folder.location, read_only=True)


def _checked_dtype(document: Json, version: int, text: bool) -> np.dtype[Any]:
    name = document["data_type"] if version == 3 else document["dtype"]
    if text and name in ("string", "|O"):
        if version == 2 and [one.get("id") for one in document.get("filters") or []] != ["vlen-utf8"]:
            raise StoreError("objects that are not UTF-8 strings are never read")
        return np.dtype(object)
    known = name if version == 3 else _NAMES_V2.get(str(name).lstrip("<>|="))
    if not isinstance(name, str) or known not in _NUMBERS:
        raise StoreError(f"values of type {name} are not numbers")
    return np.dtype(known)


def _checked_chunks(document: Json, version: int) -> tuple[int, ...]:
    """The shape of what is unpacked at once."""
    shape = document["shape"]
    outer = document["chunks"] if version == 2 else document["chunk_grid"]["configuration"]["chunk_shape"]
    chunks = tuple(int(n) for n in outer)
    for codec in document.get("codecs", []) if version == 3 else []:
        if codec["name"] == "sharding_indexed":
            chunks = tuple(int(n) for n in codec["configuration"]["chunk_shape"])
    if len(chunks) != len(shape) or len(outer) != len(shape) or min(chunks, default=1) < 1:
        raise StoreError(f"chunks of {chunks} do not cut a shape of {shape}")
    if math.prod(-(-int(whole) // part) for whole, part in zip(outer, chunks, strict=True)) > _MAX_CHUNKS_PER_SHARD:
        raise StoreError(f"shards of {outer} in chunks of {chunks} are too many to list")
    return chunks


def _check_codecs(document: Json, version: int) -> None:
    names = _codec_names_v3(document["codecs"]) if version == 3 else _codec_names_v2(document)
    unknown = sorted(set(names) - (_CODECS_V3 if version == 3 else _CODECS_V2))
    if unknown:
        raise StoreError(f"codec {unknown[0]!r} is not one of those that are read")


def _codec_names_v3(codecs: list[Json]) -> list[str]:
    names = []
    for codec in codecs:
        names.append(str(codec["name"]))
        inner = codec.get("configuration", {})
        if codec["name"] == "sharding_indexed":
            if any(one["name"] == "sharding_indexed" for one in inner["codecs"]):
                raise StoreError("shards inside shards are not read")
            names += _codec_names_v3([*inner["codecs"], *inner.get("index_codecs", [])])
    return names


def _codec_names_v2(document: Json) -> list[str]:
    used = [*(document.get("filters") or []), document.get("compressor")]
    return [str(codec["id"]) for codec in used if codec is not None]


def _has_plain_rows(document: Json, version: int, dtype: np.dtype[Any]) -> bool:
    """Tell by its metadata that a chunk of an array is whole rows as they are in memory, with nothing to unpack."""
    if version == 2:
        whole = _whole_rows(document["shape"], document["chunks"])
        bare = document.get("compressor") is None and not document.get("filters") and document.get("order") == "C"
        return whole and bare and str(document["dtype"])[0] in ("|", "<" if sys.byteorder == "little" else ">")
    grid, codecs = document["chunk_grid"], document["codecs"]
    if grid["name"] != "regular" or [one["name"] for one in codecs] != ["bytes"]:
        return False
    order = (codecs[0].get("configuration") or {}).get("endian", sys.byteorder)
    return (order == sys.byteorder or dtype.itemsize == 1) and _whole_rows(
        document["shape"], grid["configuration"]["chunk_shape"]
    )


def _whole_rows(shape: list[int], chunks: list[int]) -> bool:
    return math.prod(shape[1:]) > 0 and list(shape[1:]) == list(chunks[1:])
