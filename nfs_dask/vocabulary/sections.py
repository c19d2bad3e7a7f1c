"""Files of named arrays, of which any part can be read alone.

    data     the arrays one after another, little-endian, each from a multiple of eight bytes on
    trailer  JSON: where each array lies, a checksum for each stretch of it, facts
             | its length | its CRC-32 | magic, 8 bytes each

A file appears whole or not at all, and writing the same again leaves the same bytes.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any

import google_crc32c
import numpy as np

from nfs_dask.block import Array
from nfs_dask.errors import StoreError
from nfs_dask.storage.folder import Folder

MAGIC = b"NFSSEC01"
TAIL = 65536  # bytes read at once from the end; they hold the trailer of most files
STRETCH = 1 << 17  # bytes under one checksum: what reading a single number costs

_ENDING = 24  # bytes after the JSON
_KINDS = "biuf"


def write_sections(folder: Folder, name: str, arrays: Mapping[str, Array], facts: Mapping[str, Any]) -> int:
    """Write one-dimensional arrays and facts, which are what JSON holds; the bytes written."""
    with folder.create(name) as file:
        sections, offset = {}, 0
        for key, array in arrays.items():
            values = np.ascontiguousarray(array, np.dtype(array.dtype).newbyteorder("<"))
            assert values.ndim == 1 and values.dtype.kind in _KINDS
            checks = _append(file, values)
            sections[key] = {"offset": offset, "dtype": values.dtype.str, "n": len(values), "crc32c": checks}
            offset += values.nbytes + -values.nbytes % 8
        trailer = json.dumps({"sections": sections, "facts": dict(facts)}, allow_nan=False).encode()
        length, crc = len(trailer).to_bytes(8, "little"), zlib.crc32(trailer).to_bytes(8, "little")
        file.write(trailer + length + crc + MAGIC)
    return offset + len(trailer) + _ENDING


def _append(file: IO[bytes], values: Array) -> str:
    """Write an array up to a multiple of eight bytes; its checksums."""
    content = values.view(np.uint8)
    checks = []
    for at in range(0, len(content), STRETCH):
        stretch = content[at : at + STRETCH].tobytes()
        checks.append(google_crc32c.value(stretch))
        file.write(stretch)
    file.write(bytes(-len(content) % 8))
    return np.array(checks, "<u4").tobytes().hex()


@dataclass(frozen=True)
class Sections:
    """A finished file: its facts, and its arrays by range. What is read is checked against its checksums."""

    folder: Folder
    name: str
    facts: dict[str, Any]
    _sections: dict[str, _Section]

    @classmethod
    def open(cls, folder: Folder, name: str) -> Sections:
        tail = folder.read(name, start=-TAIL)
        length, crc = (int.from_bytes(tail[at : at + 8], "little") for at in (-24, -16))
        if tail[-8:] != MAGIC:
            raise damaged(folder, name)
        if length + _ENDING > len(tail):
            if length + _ENDING > folder.size(name):
                raise damaged(folder, name)
            tail = folder.read(name, start=-(length + _ENDING))
        content = tail[-_ENDING - length : -_ENDING]
        if len(content) != length or zlib.crc32(content) != crc:
            raise damaged(folder, name)
        trailer = json.loads(content)
        sections = {key: _Section.from_json(found) for key, found in trailer["sections"].items()}
        return cls(folder, name, trailer["facts"], sections)

    def __contains__(self, key: str) -> bool:
        return key in self._sections

    def length(self, key: str) -> int:
        """Numbers in an array."""
        return self._sections[key].n

    def dtype(self, key: str) -> np.dtype[Any]:
        return self._sections[key].dtype

    def nbytes(self, key: str) -> int:
        return self._sections[key].nbytes

    def read(self, key: str, start: int = 0, stop: int | None = None) -> Array:
        """Numbers ``start .. stop - 1`` of an array, or all that follow."""
        section = self._sections[key]
        stop = section.n if stop is None else stop
        if not 0 <= start <= stop <= section.n:
            raise self.damaged()
        size = section.dtype.itemsize
        first, last = start * size // STRETCH, -(-stop * size // STRETCH)  # stretches
        low, high = first * STRETCH, min(last * STRETCH, section.nbytes)
        if start == stop:
            return np.frombuffer(b"", section.dtype)  # read-only as others are: kernels are compiled once
        content = self.folder.read(self.name, section.offset + low, section.offset + high)
        if len(content) != high - low:
            raise self.damaged()
        for at, check in zip(range(0, len(content), STRETCH), section.checks[first:last], strict=True):
            if google_crc32c.value(content[at : at + STRETCH]) != check:
                raise self.damaged()
        return np.frombuffer(content, section.dtype, stop - start, start * size - low)

    def damaged(self) -> StoreError:
        """What to raise where the content contradicts itself."""
        return damaged(self.folder, self.name)


@dataclass(frozen=True, slots=True)
class _Section:
    """Where an array lies."""

    offset: int
    dtype: np.dtype[Any]
    n: int
    checks: Array  # of each stretch

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> _Section:
        return cls(
            found["offset"], np.dtype(found["dtype"]), found["n"], np.frombuffer(bytes.fromhex(found["crc32c"]), "<u4")
        )

    @property
    def nbytes(self) -> int:
        return self.n * self.dtype.itemsize


def damaged(folder: Folder, name: str) -> StoreError:
    return StoreError(
        f"{folder.path(name)} is truncated, damaged or not a file of counted texts; delete it and run again"
    )
