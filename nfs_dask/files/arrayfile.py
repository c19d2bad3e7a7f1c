"""The format of files that passes and ingests leave: named arrays, any part of which can be read alone and checked.

    arrays   one after another, little-endian, each from a multiple of eight bytes on
    checks   CRC-32C of each stretch of 16 KiB of each array, 4 bytes each, in the order of the arrays
    trailer  JSON: the name of the file, names, types and shapes of the arrays, and facts
    ending   bytes of checks and of trailer | CRC-32C of all from the checks to here | magic with version, 8 bytes each

A file appears whole or not at all, and writing the same again leaves the same bytes. As the name is inside, one file
in the place of another is noticed too. Whoever resumes looks at all of a file and can make it again, so files are not
forced to the disk.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any

import google_crc32c
import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import StoreError
from nfs_dask.files.folder import Folder

logger = logging.getLogger("nfs_dask")

MAGIC = b"NFSARR01"
STRETCH = 1 << 14  # bytes under one checksum: what reading a single number costs
TAIL = 1 << 17  # bytes read at once from the end; they hold checks and trailer of most files

_ENDING = 32  # bytes after the trailer
_AT_A_TIME = 1 << 24  # bytes that `verify` holds
_KINDS = "biuf"


class ArrayFileWriter:
    """Writes one file: arrays in turn, then the facts that complete it."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file, self._name = file, name
        self._arrays: list[tuple[str, str, list[int]]] = []
        self._checks: list[int] = []
        self.nbytes = 0  # written so far

    def add(self, key: str, array: Array) -> None:
        """Write an array of any shape."""
        values = np.asarray(array, np.dtype(array.dtype).newbyteorder("<"), order="C")
        assert values.dtype.kind in _KINDS
        content = values.reshape(-1).view(np.uint8)
        self._checks += _checks(content)
        self._file.write(content.data)
        self._file.write(bytes(-len(content) % 8))
        self._arrays.append((key, values.dtype.str, list(array.shape)))
        self.nbytes += len(content) + -len(content) % 8

    def close(self, facts: Mapping[str, Any]) -> None:
        """Write what makes the file complete. Facts are what JSON holds."""
        words = {"name": self._name, "arrays": self._arrays, "facts": dict(facts)}
        checks, trailer = np.array(self._checks, "<u4").tobytes(), json.dumps(words, allow_nan=False).encode()
        covered = checks + trailer + _number(len(checks)) + _number(len(trailer))
        self._file.write(covered + _number(google_crc32c.value(covered)) + MAGIC)
        self.nbytes += len(covered) + 16


def write_arrays(folder: Folder, name: str, arrays: Mapping[str, Array], facts: Mapping[str, Any]) -> int:
    """Write a file in one go; the bytes written."""
    with folder.scratch.create(name) as file:
        writer = ArrayFileWriter(file, name)
        for key, array in arrays.items():
            writer.add(key, array)
        writer.close(facts)
    return writer.nbytes


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an array lies."""

    offset: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    first_check: int

    @property
    def n(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.n * self.dtype.itemsize


@dataclass(frozen=True)
class ArrayFile:
    """A finished file: its facts, and its arrays by range. What is read is checked against its checksums."""

    folder: Folder
    name: str
    facts: dict[str, Any]
    _places: dict[str, _Place]
    _all_checks: Array

    @classmethod
    def open(cls, folder: Folder, name: str) -> ArrayFile:
        try:
            return cls._open(folder, name)
        except StoreError:
            if not folder.remote:
                raise
            return cls._open(folder, name)  # an answer that ended early looks like damage, once

    @classmethod
    def _open(cls, folder: Folder, name: str) -> ArrayFile:
        tail = folder.read(name, start=-TAIL)
        n_checks, n_trailer = (int.from_bytes(tail[at : at + 8], "little") for at in (-32, -24))
        if tail[-8:] != MAGIC:
            raise damaged(folder, name)
        whole = n_checks + n_trailer + _ENDING
        if whole > len(tail):
            if whole > folder.size(name):
                raise damaged(folder, name)
            tail = folder.read(name, start=-whole)
        covered = tail[-whole:-16]
        if len(covered) != whole - 16 or _number(google_crc32c.value(covered)) != tail[-16:-8]:
            raise damaged(folder, name)
        try:
            words = json.loads(covered[n_checks : n_checks + n_trailer])
            places, n_stretches = _places_of(words["arrays"])
            if words["name"] != name or 4 * n_stretches != n_checks:
                raise ValueError("another file, or other arrays")
            return cls(folder, name, dict(words["facts"]), places, np.frombuffer(covered, "<u4", n_stretches))
        except (LookupError, TypeError, ValueError, RecursionError) as error:
            raise damaged(folder, name) from error

    def __contains__(self, key: str) -> bool:
        return key in self._places

    @property
    def keys(self) -> list[str]:
        """Names of the arrays."""
        return list(self._places)

    def length(self, key: str) -> int:
        """Numbers in an array."""
        return self._place(key).n

    def dtype(self, key: str) -> np.dtype[Any]:
        return self._place(key).dtype

    def array(self, key: str) -> Array:
        """An array in its shape."""
        return self.read(key).reshape(self._place(key).shape)

    def read(self, key: str, start: int = 0, stop: int | None = None) -> Array:
        """Numbers ``start .. stop - 1`` of an array, or all that follow, whatever its shape."""
        place = self._place(key)
        stop = place.n if stop is None else stop
        if not 0 <= start <= stop <= place.n:
            raise self.damaged()
        if start == stop:
            return np.frombuffer(b"", place.dtype)  # read-only as others are: kernels are compiled once
        size = place.dtype.itemsize
        first, last = start * size // STRETCH, -(-stop * size // STRETCH)  # stretches
        low, high = first * STRETCH, min(last * STRETCH, place.nbytes)
        content = self.folder.read_array(self.name, place.offset + low, place.offset + high)
        checks = self._all_checks[place.first_check + first : place.first_check + last]
        if len(content) != high - low or _checks(content) != checks.tolist():
            raise self.damaged()
        return content[start * size - low : stop * size - low].view(place.dtype)

    def verify(self) -> None:
        """Read all of it."""
        for key, place in self._places.items():
            step = _AT_A_TIME // place.dtype.itemsize
            for start in range(0, place.n, step):
                self.read(key, start, min(start + step, place.n))

    def damaged(self) -> StoreError:
        """What to raise where the content contradicts itself."""
        return damaged(self.folder, self.name)

    def _place(self, key: str) -> _Place:
        try:
            return self._places[key]
        except KeyError:
            raise self.damaged() from None


def intact(folder: Folder, name: str) -> ArrayFile | None:
    """A file that an earlier try finished, with all of it read; None where there is none, or it is damaged.

    Whoever resumes makes it again then: files are replaced whole.
    """
    if not folder.exists(name):
        return None
    try:
        file = ArrayFile.open(folder, name)
        file.verify()
    except StoreError as error:
        logger.warning("%s; making it again", error)
        return None
    return file


def damaged(folder: Folder, name: str) -> StoreError:
    return StoreError(f"{folder.path(name)} is truncated, damaged or another file; run again, and it is made again")


def _places_of(arrays: Any) -> tuple[dict[str, _Place], int]:
    """Where arrays lie that follow each other, and the number of stretches."""
    places, offset, check = {}, 0, 0
    for key, dtype, shape in arrays:
        place = _Place(offset, np.dtype(dtype), tuple(shape), check)
        if place.dtype.kind not in _KINDS or not all(type(n) is int and n >= 0 for n in place.shape):
            raise ValueError(f"an array of {dtype}, {shape}")
        places[str(key)] = place
        offset += place.nbytes + -place.nbytes % 8
        check += -(-place.nbytes // STRETCH)
    return places, check


def _checks(content: Array) -> list[int]:
    """The checksum of each stretch."""
    value = google_crc32c.value
    return [value(content[at : at + STRETCH]) for at in range(0, len(content), STRETCH)]


def _number(n: int) -> bytes:
    return n.to_bytes(8, "little")
