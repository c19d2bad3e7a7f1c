"""Shards: Zarr's sharded chunks of numbers, written as a stream and read by range.

An object holds whole chunks one after another, each compressed by blosc and followed by its crc32c, then a table of
their offsets and sizes with a crc32c of its own. zarr and anndata read what is written here. We read it ourselves
because that takes half the time of zarr's slicing on one thread, a third on two, asks an object store for one range
instead of one per chunk, and can tell a missing chunk from zeros.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Any

import google_crc32c
import numpy as np
from numcodecs import blosc

from nfs_dask.arrays.block import Array
from nfs_dask.errors import StoreError
from nfs_dask.files.folder import Folder
from nfs_dask.files.sealed import MOST_JSON
from nfs_dask.store.layout import Numbers, Texts

DIGEST_NBYTES = 16
_CRC_NBYTES = 4
_PAIR_NBYTES = 16  # offset and size, 64 bits each
_ABSENT = 2**64 - 1
_TABLES = 4  # remembered by a reader
_BLOSC_HEADER = 16  # bytes; the second word of it is the size once unpacked
_OVERHEAD = 1 << 12  # most that compression and the checksum add to a chunk


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was written as one shard: a digest of its values, and its size on disk in bytes."""

    digest: bytes
    nbytes: int
    checks: tuple[int, ...] = ()  # of the values of each chunk, without what fills the last one


def checksum(content: bytes | Array) -> bytes:
    return check_of(content).to_bytes(_CRC_NBYTES, "little")


def check_of(content: bytes | Array) -> int:
    return int(google_crc32c.value(content))


def write_checks(folder: Folder, name: str, checks: dict[str, list[int]]) -> tuple[str, str]:
    """Write the checksums of all chunks, by array; what arrays are to carry to be compared with them."""
    content = json.dumps(checks).encode()
    folder.write(name, content)
    return name, _digest(content)


@functools.lru_cache(maxsize=8)
def read_checks(folder: Folder, name: str, digest: str) -> dict[str, Array]:
    """What `write_checks` wrote; once in each process, as it has four bytes for a million values."""
    content = folder.read(name, 0, MOST_JSON)
    if _digest(content) != digest:
        raise StoreError(f"{folder.path(name)} is not the one that was written; restore it from a copy")
    return {array: np.array(checks, np.uint32) for array, checks in json.loads(content).items()}


def checks_of(folder: Folder, array: Numbers | Texts) -> Array | None:
    """Those of an array; None where none were kept."""
    found = None if array.checks is None else read_checks(folder, *array.checks).get(array.name)
    if found is not None and len(found) != array.n_chunks:
        raise StoreError(f"{folder.path(array.name)} has checksums of {len(found)} chunks; the store is damaged")
    return found


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=DIGEST_NBYTES).hexdigest()


def compressed(values: Array) -> bytes:
    """One chunk as it stands in an object."""
    packed = bytes(blosc.compress(values, b"lz4", 5, blosc.SHUFFLE))
    return packed + checksum(packed)


class ShardWriter:
    """Writes one shard from values that come in pieces; holds one chunk of them.

    The object appears when the ``with`` block ends without an error, and replaces an older one whole. Digests take as
    long as all else: where no receipt is ``wanted`` there is none.
    """

    def __init__(self, folder: Folder, numbers: Numbers, shard: int, wanted: bool = True) -> None:
        self._numbers = numbers
        self._folder, self._name = folder, numbers.object_name(shard)
        self._chunk = np.empty(numbers.chunk, np.dtype(numbers.dtype).newbyteorder("<"))
        self._filled = 0
        self._offset = 0
        self._table: list[tuple[int, int]] = []
        self._checks: list[int] = []
        self._digest = hashlib.blake2b(digest_size=DIGEST_NBYTES) if wanted else None
        self._stack = ExitStack()

    def __enter__(self) -> ShardWriter:
        self._file: IO[bytes] = self._stack.enter_context(self._folder.create(self._name))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._finish()
        self._stack.__exit__(kind, error, trace)

    def add(self, values: Array) -> None:
        done = 0
        while done < len(values):
            n = min(len(values) - done, len(self._chunk) - self._filled)
            self._chunk[self._filled : self._filled + n] = values[done : done + n]
            self._filled += n
            done += n
            if self._filled == len(self._chunk):
                self._flush()

    @property
    def receipts(self) -> list[Receipt]:
        """That of the shard, if one was wanted."""
        return [] if self._digest is None else [Receipt(self._digest.digest(), self._offset, tuple(self._checks))]

    def _flush(self) -> None:
        if self._digest is not None:
            self._digest.update(self._chunk[: self._filled].data)
            self._checks.append(check_of(self._chunk[: self._filled]))
        self._chunk[self._filled :] = 0
        content = compressed(self._chunk)
        self._table.append((self._offset, len(content)))
        self._file.write(content)
        self._offset += len(content)
        self._filled = 0

    def _finish(self) -> None:
        if self._filled:
            self._flush()
        slots = self._numbers.shard // self._numbers.chunk
        pairs = self._table + [(_ABSENT, _ABSENT)] * (slots - len(self._table))
        table = np.array(pairs, "<u8").tobytes()
        self._file.write(table + checksum(table))
        self._offset += len(table) + _CRC_NBYTES


class ArrayWriter:
    """Writes consecutive shards of an array from values that come in pieces; one chunk is held.

    ``numbers.length`` need not be known yet. An error leaves the shards that were finished, and no part of another.
    Arrays of which a store keeps no receipts need none, as `ShardWriter` says.
    """

    def __init__(self, folder: Folder, numbers: Numbers, first_shard: int = 0, wanted: bool = True) -> None:
        self._folder, self._numbers, self._shard, self._wanted = folder, numbers, first_shard, wanted
        self._writer: ShardWriter | None = None
        self._room = 0
        self.receipts: list[Receipt] = []

    def __enter__(self) -> ArrayWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writer is not None:
            self._writer.__exit__(kind, error, trace)
            if error is None:
                self.receipts += self._writer.receipts

    def add(self, values: Array) -> None:
        while len(values):
            if self._writer is None:
                self._writer = ShardWriter(self._folder, self._numbers, self._shard, self._wanted).__enter__()
                self._room = self._numbers.shard
            part, values = values[: self._room], values[self._room :]
            self._writer.add(part)
            self._room -= len(part)
            if not self._room:
                self._next()

    def _next(self) -> None:
        writer, self._writer = self._writer, None
        assert writer is not None
        writer.__exit__(None, None, None)
        self.receipts += writer.receipts
        self._shard += 1


def write_numbers(folder: Folder, numbers: Numbers, pieces: Iterable[Array]) -> list[Receipt]:
    """Write all shards of an array, one after another."""
    with ArrayWriter(folder, numbers) as writer:
        for piece in pieces:
            writer.add(piece)
    return writer.receipts


class ShardReader:
    """Reads ranges of an array of shards. Remembers the chunk tables of the few shards it read last, and one chunk.

    That is the one in which a range ended: the next block most often begins there. ``dtype`` is a narrower type that
    holds all values: chunks are turned into it one by one, while they are in caches.
    """

    def __init__(self, folder: Folder, numbers: Numbers, dtype: str | None = None) -> None:
        self.folder, self.numbers = folder, numbers
        self._dtype = np.dtype(numbers.dtype).newbyteorder("<")
        self._wanted = self._dtype if dtype is None else np.dtype(dtype).newbyteorder("<")
        self._tables: dict[int, Array] = {}
        self._last: tuple[int, int, Array] | None = None  # shard, chunk, and what is in it

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_tables": {}, "_last": None}

    def read(self, start: int, stop: int) -> Array:
        """Values ``start .. stop - 1``."""
        if not 0 <= start <= stop <= self.numbers.length:
            raise StoreError(
                f"{self.folder.path(self.numbers.name)} has {self.numbers.length} values, "
                f"but {start} to {stop} were asked for; the store is damaged"
            )
        shards = range(start // self.numbers.shard, -(-stop // self.numbers.shard)) if stop > start else range(0)
        for shard in shards:
            self._named(shard, self._table)  # sizes that metadata claim are believed when the objects are there
        out = np.empty(stop - start, self._wanted)
        for shard in shards:
            first = shard * self.numbers.shard
            low, high = max(start, first), min(stop, first + self.numbers.shard)
            self._named(shard, self._decode, low - first, high - first, out[low - start : high - start])
        return out

    def _named(self, shard: int, look: Callable[..., Any], *arguments: Any) -> None:
        """Look into a shard; damage is reported with the shard's name."""
        try:
            look(shard, *arguments)
        except _Damage:
            # An append may have replaced the object between two reads of it; then the new one says the same.
            self._tables.clear()
            self._last = None
            try:
                look(shard, *arguments)
            except _Damage as damage:
                name = self.folder.path(self.numbers.object_name(shard))
                raise StoreError(f"{name} is damaged: {damage}; restore it from a copy, or ingest again") from None

    def _decode(self, shard: int, low: int, high: int, out: Array) -> None:
        chunk = self.numbers.chunk
        first, last = low // chunk, -(-high // chunk)
        remembered = self._last  # once: another thread may be reading, too
        if remembered is not None and remembered[:2] == (shard, first):
            beyond = min(high, (first + 1) * chunk)
            out[: beyond - low] = remembered[2][low - first * chunk : beyond - first * chunk]
            first += 1
        if first == last:
            return
        table = self._table(shard)[first:last]
        begin, end = int(table[0, 0]), int(table[-1].sum())
        in_order = np.all(table >= 0) and np.all(table[1:, 0] == table[:-1].sum(axis=1))
        if not in_order or end - begin > len(table) * self._most():
            raise _Damage("its table of chunks is not in order")
        content = self.folder.read_array(self.numbers.object_name(shard), begin, end)
        if len(content) != end - begin:
            raise _Damage("it is truncated")
        checks = checks_of(self.folder, self.numbers)
        aside = np.empty(chunk, self._dtype)  # for chunks of which not all is wanted, or not as it is
        for i, (offset, size) in enumerate(table):
            here = (first + i) * chunk
            packed = content[int(offset) - begin : int(offset) - begin + int(size)]
            a, b = max(low, here), min(high, here + chunk)
            number = shard * (self.numbers.shard // chunk) + first + i
            check = None if checks is None else checks[number]
            self._unpack(packed, number, check, slice(a - here, b - here), out[a - low : b - low], aside)
        if high < last * chunk:
            self._last = shard, last - 1, aside

    def _unpack(self, packed: Array, number: int, check: int | None, wanted: slice, out: Array, aside: Array) -> None:
        body, crc = packed[:-_CRC_NBYTES], packed[-_CRC_NBYTES:]
        if len(body) < _BLOSC_HEADER or checksum(body) != crc.tobytes():
            raise _Damage("a checksum does not fit its content")
        if int.from_bytes(body[4:8].tobytes(), "little") != self.numbers.chunk * self.numbers.itemsize:
            raise _Damage("a chunk is not of the size the metadata say")
        whole = len(out) == self.numbers.chunk and out.dtype == self._dtype
        target = out if whole else aside
        try:
            blosc.decompress(body, target)
        except RuntimeError as error:
            raise _Damage(str(error)) from None
        # Of a chunk that an append has filled up since, only the beginning was there when the checksum was made.
        if check is not None and check_of(target[: self.numbers.length - number * self.numbers.chunk]) != check:
            raise _Damage("a chunk holds other values than were written there")
        if not whole:
            out[:] = target[wanted]

    def _most(self) -> int:
        return self.numbers.chunk * self.numbers.itemsize + _OVERHEAD

    def _table(self, shard: int) -> Array:
        known = self._tables.get(shard)  # once: another thread may clear them
        if known is not None:
            return known
        nbytes = self.numbers.shard // self.numbers.chunk * _PAIR_NBYTES
        tail = self.folder.read(self.numbers.object_name(shard), -(nbytes + _CRC_NBYTES))
        if len(tail) != nbytes + _CRC_NBYTES or checksum(tail[:nbytes]) != tail[nbytes:]:
            raise _Damage("it is truncated, or its table of chunks was altered")
        pairs = np.frombuffer(tail, "<u8", nbytes // 8).reshape(-1, 2)
        if np.any((pairs >= 2**48) & (pairs != _ABSENT)):
            raise _Damage("its table of chunks is not in order")
        table = np.where(pairs == _ABSENT, -1, pairs.astype(np.int64))
        if len(self._tables) >= _TABLES:
            self._tables.clear()
        self._tables[shard] = table
        return table


class _Damage(Exception):
    """What is wrong with an object; its name is added where it is known."""
