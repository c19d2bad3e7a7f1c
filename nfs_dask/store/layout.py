"""How a dataset lies in its folder: which arrays there are, how they are cut, and the Zarr metadata that says so.

::

    zarr.json                    AnnData's root group, our header, and the metadata of all below but nfs_dask/
    X/{data,indices,indptr}      the matrix as CSR, in AnnData's encoding
    obs/_index, obs/<label>/...  names or numbers of rows, labels as a categorical; obs/weight where rows have weights
    obs/<column>                 other columns that came with the rows, such as those of AnnData
    obs/length_<region>          how long each region of a document is, where rows are counts of several
    var/_index                   names of the columns, or their numbers where there are millions
    nfs_dask/cuts                first row of each block
    nfs_dask/names/...           all names, readable in part
    nfs_dask/frequencies         of texts: in how many documents each term of the vocabulary was
    nfs_dask/sorted/...          of texts: the terms by name, and their columns, where columns are not in that order
    nfs_dask/receipts/<n>        digest and size of every shard, for generation n
    nfs_dask/receipts/<n>.json   checksums of the values of every chunk, by array; our header has the digest of it

AnnData reads everything that the root lists, so ``nfs_dask/`` is not listed there; our header says what is in it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from nfs_dask.errors import InputError, StoreError

Json = dict[str, Any]

OWN = "nfs_dask"  # our attribute in the root, and our folder beside AnnData's
INDEX = "_index"
WEIGHT = "weight"
MAX_CHUNK_NBYTES = 1 << 30  # blosc takes less than 2 GiB; far below, so that a made-up chunk size is refused
MAX_CHUNKS_PER_SHARD = 1 << 16


@dataclass(frozen=True, slots=True)
class Layout:
    """Where arrays are cut. A chunk is what is compressed and checked together, a shard is one object."""

    chunk: int = 1 << 20  # entries; small chunks decode faster, a shard of many keeps the objects few
    shard: int = 1 << 24  # entries
    row_chunk: int = 1 << 17
    row_shard: int = 1 << 20  # rows; no block reaches over one, so empty rows cannot make a block large
    block: int = 1 << 22  # entries a block aims at: a smaller read decodes the same chunk again and again

    def __post_init__(self) -> None:
        numbers = (self.chunk, self.shard, self.row_chunk, self.row_shard, self.block)
        if not all(isinstance(number, int) for number in numbers):
            raise InputError(f"chunks, shards and blocks of {numbers} values; give whole numbers")
        for chunk, shard in ((self.chunk, self.shard), (self.row_chunk, self.row_shard)):
            if not (0 < chunk <= shard and shard % chunk == 0 and shard // chunk <= MAX_CHUNKS_PER_SHARD):
                raise InputError(
                    f"shards of {shard} in chunks of {chunk}: a shard is 1 to {MAX_CHUNKS_PER_SHARD} whole chunks"
                )
            if 8 * chunk > MAX_CHUNK_NBYTES:
                raise InputError(f"chunks of {chunk} values are too large; {MAX_CHUNK_NBYTES // 8} is the most")
        if self.block < 1:
            raise InputError(f"blocks of {self.block} entries: 1 is the least")


@dataclass(frozen=True, slots=True)
class Numbers:
    """A one-dimensional array of numbers at rest, in shards of equal chunks."""

    name: str  # path inside the store
    dtype: str  # numpy's name of it
    length: int
    chunk: int
    shard: int
    edition: int = 0  # how often the array was written anew in a wider type
    checks: tuple[str, str] | None = None  # the object with checksums of its chunks' values, and the digest of that

    @property
    def itemsize(self) -> int:
        return int(np.dtype(self.dtype).itemsize)

    @property
    def n_shards(self) -> int:
        return -(-self.length // self.shard)

    @property
    def n_chunks(self) -> int:
        return -(-self.length // self.chunk)

    def object_name(self, shard: int) -> str:
        """Each edition names its objects in another way, so that readers of the one before go on reading it."""
        return f"{self.name}/{_KEYS[self.edition % len(_KEYS)].prefix}{shard}"

    def metadata(self, **attributes: Any) -> Json:
        endian: Json = (
            {"name": "bytes"} if self.itemsize == 1 else {"name": "bytes", "configuration": {"endian": "little"}}
        )
        sharding = {
            "chunk_shape": [self.chunk],
            "codecs": [endian, _blosc(self.itemsize), {"name": "crc32c"}],
            "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
            "index_location": "end",
        }
        codecs = [{"name": "sharding_indexed", "configuration": sharding}]
        fill = 0.0 if np.dtype(self.dtype).kind == "f" else False if self.dtype == "bool" else 0
        keys = _KEYS[self.edition % len(_KEYS)].encoding
        return _array(self.length, self.shard, self.dtype, codecs, fill, attributes, keys)


@dataclass(frozen=True, slots=True)
class Texts:
    """A one-dimensional array of strings at rest, where AnnData wants one. One object for each chunk."""

    name: str
    length: int
    chunk: int
    checks: tuple[str, str] | None = None  # as those of numbers

    @property
    def n_chunks(self) -> int:
        return -(-self.length // self.chunk)

    def object_name(self, chunk: int) -> str:
        return f"{self.name}/c/{chunk}"

    def metadata(self) -> Json:
        codecs = [{"name": "vlen-utf8", "configuration": {}}, _blosc(1), {"name": "crc32c"}]
        attributes = {"encoding-type": "string-array", "encoding-version": "0.2.0"}
        return _array(self.length, self.chunk, "string", codecs, "", attributes)


def column_metadata(column: Numbers | Texts) -> Json:
    """Metadata of an array that AnnData reads on its own account, not as a part of something."""
    if isinstance(column, Texts):
        return column.metadata()
    return column.metadata(**{"encoding-type": "array", "encoding-version": "0.2.0"})


def group_metadata(encoding: str, version: str, **attributes: Any) -> Json:
    return {
        "zarr_format": 3,
        "node_type": "group",
        "attributes": {"encoding-type": encoding, "encoding-version": version, **attributes},
    }


def consolidated(root: Json, nodes: dict[str, Json]) -> Json:
    """The root's metadata with that of all nodes inside, so that one object switches every shape at once.

    zarr wants folders before what is in them, what is in one folder in a row, and folders marked as consolidated.
    """
    empty = _inline({})
    listed = {
        path: {**node, "consolidated_metadata": empty} if node["node_type"] == "group" else node
        for path, node in sorted(nodes.items(), key=lambda item: (item[0].count("/"), item[0]))
    }
    return {**root, "consolidated_metadata": _inline(listed)}


def _inline(metadata: Json) -> Json:
    return {"kind": "inline", "must_understand": False, "metadata": metadata}


def check_label_name(name: str) -> None:
    if not name or "/" in name or name.startswith((".", "_")) or name == WEIGHT:
        raise InputError(
            f"label column {name!r}: the name becomes a folder; use one without '/', "
            f"that does not start with '.' or '_' and is not {WEIGHT!r}, such as 'label'"
        )


def check_numbers(numbers: Numbers, where: str) -> None:
    """Refuse sizes that a store of ours never has, before anything is allocated by them."""
    fits = 0 < numbers.chunk <= numbers.shard and numbers.shard % max(numbers.chunk, 1) == 0
    if not fits or numbers.length < 0 or numbers.shard // numbers.chunk > MAX_CHUNKS_PER_SHARD:
        raise StoreError(
            f"{where}: {numbers.name} claims shards of {numbers.shard} in chunks of {numbers.chunk}; it is damaged"
        )
    if numbers.chunk * numbers.itemsize > MAX_CHUNK_NBYTES:
        raise StoreError(
            f"{where}: {numbers.name} claims chunks of {numbers.chunk * numbers.itemsize} bytes; it is damaged"
        )


def _blosc(itemsize: int) -> Json:
    configuration = {"typesize": itemsize, "cname": "lz4", "clevel": 5, "shuffle": "shuffle", "blocksize": 0}
    return {"name": "blosc", "configuration": configuration}


@dataclass(frozen=True, slots=True)
class _Keys:
    """A way that Zarr has of naming the objects of an array."""

    prefix: str
    encoding: Json


_KEYS = (
    _Keys("c/", {"name": "default", "configuration": {"separator": "/"}}),
    _Keys("c.", {"name": "default", "configuration": {"separator": "."}}),
    _Keys("", {"name": "v2", "configuration": {"separator": "."}}),
)


def other_editions(numbers: Numbers, names: list[str]) -> list[str]:
    """Of the names in an array's folder, those of objects that belong to its other editions."""
    patterns = [r"c", r"c\.\d+", r"\d+"]  # of the objects of each edition, or of the folder they are in
    del patterns[numbers.edition % len(_KEYS)]
    return [name for name in names if any(re.fullmatch(pattern, name) for pattern in patterns)]


def _array(
    length: int,
    chunk: int,
    dtype: str,
    codecs: list[Json],
    fill: Any,
    attributes: Json,
    keys: Json = _KEYS[0].encoding,
) -> Json:
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [length],
        "data_type": dtype,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [chunk]}},
        "chunk_key_encoding": keys,
        "fill_value": fill,
        "codecs": codecs,
        "attributes": attributes,
        "storage_transformers": [],
    }
