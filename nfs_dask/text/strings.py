"""Many strings as bytes, one after another, as kernels read them and disks hold them; and texts as counts of some."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError
from nfs_dask.text import text_kernels as kernels

MOST = (1 << 31) - 1  # terms, and entries: they are numbered in 32 bits


def grown(array: Array, size: int) -> Array:
    """The same content with room for ``size`` and more."""
    if size <= len(array):
        return array
    larger = np.empty(max(size, 2 * len(array)), array.dtype)
    larger[: len(array)] = array
    return larger


@dataclass(frozen=True, slots=True)
class Strings:
    """String i is ``text[offsets[i] : offsets[i + 1]]``, valid UTF-8. ``offsets[0]`` need not be 0."""

    offsets: Array  # (n + 1,) int64
    text: Array  # (nbytes,) uint8

    @classmethod
    def of(cls, strings: Iterable[str | bytes]) -> Strings:
        """From Python's strings; a surrogate, which UTF-8 cannot hold, raises UnicodeEncodeError."""
        encoded = [s.encode() if isinstance(s, str) else s for s in strings]
        offsets = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum([len(s) for s in encoded], out=offsets[1:])
        return cls(offsets, np.frombuffer(b"".join(encoded), np.uint8))

    @classmethod
    def encoded(cls, texts: Sequence[str]) -> Strings:
        """As `of`, of Python's strings alone, all at once."""
        offsets = np.zeros(len(texts) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=offsets[1:])
        text = np.frombuffer("".join(texts).encode(), np.uint8)
        if len(text) > offsets[-1]:
            kernels.offsets_of_bytes(text, offsets)
        return cls(offsets, text)

    @classmethod
    def joined(cls, parts: Sequence[Strings]) -> Strings:
        """The strings of all parts, in order."""
        offsets, n = np.zeros(1 + sum(map(len, parts)), np.int64), 0
        for part in parts:
            np.add(part.offsets, offsets[n] - part.offsets[0], out=offsets[n : n + len(part) + 1])
            n += len(part)
        text = [part.text[part.offsets[0] : part.offsets[-1]] for part in parts] or [np.zeros(0, np.uint8)]
        return cls(offsets, np.concatenate(text))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> bytes:
        return self.text[self.offsets[i] : self.offsets[i + 1]].tobytes()

    @property
    def nbytes(self) -> int:
        """Of the strings and their offsets."""
        return int(self.offsets[-1] - self.offsets[0]) + self.offsets.nbytes

    def part(self, start: int, stop: int) -> Strings:
        """Strings ``start .. stop - 1``; shares memory."""
        return Strings(self.offsets[start : stop + 1], self.text)

    def after(self, heads: Array | bytes) -> Strings:
        """The strings with bytes before each: all the same, or a row of ``heads``, (n, width) uint8."""
        if isinstance(heads, bytes):
            heads = np.broadcast_to(np.frombuffer(heads, np.uint8), (len(self), len(heads)))
        width = heads.shape[1]
        if not width:
            return self
        offsets = self.offsets - self.offsets[0] + width * np.arange(len(self.offsets))
        text, own = np.empty(int(offsets[-1]), np.uint8), np.ones(int(offsets[-1]), bool)
        for j in range(width):
            text[offsets[:-1] + j], own[offsets[:-1] + j] = heads[:, j], False
        text[own] = self.text[self.offsets[0] : self.offsets[-1]]
        return Strings(offsets, text)

    def beyond(self, width: int) -> Strings:
        """The strings without their first ``width`` bytes, which each of them has."""
        offsets = self.offsets - self.offsets[0]
        own = np.ones(int(offsets[-1]), bool)
        for j in range(width):
            own[offsets[:-1] + j] = False
        text = self.text[self.offsets[0] : self.offsets[-1]]
        return Strings(offsets - width * np.arange(len(offsets)), text[own])

    def to_list(self) -> list[str]:
        """As Python's strings."""
        content = self.text[self.offsets[0] : self.offsets[-1]].tobytes()
        edges = (self.offsets - self.offsets[0]).tolist()
        return [content[a:b].decode() for a, b in pairwise(edges)]


def invalid_utf8(strings: Strings) -> list[int]:
    """Which strings are not valid UTF-8; looks at them one by one only if together they are not."""
    content = strings.text[strings.offsets[0] : strings.offsets[-1]]
    if not len(content) or content.max() < 0x80:
        return []
    starts = strings.offsets[:-1][np.diff(strings.offsets) > 0]
    try:
        codecs.utf_8_decode(content.data, "strict", True)
        # All is valid if no border lies within a character, whose bytes after the first are 0b10xxxxxx.
        if not np.any(strings.text[starts] & 0xC0 == 0x80):
            return []
    except UnicodeDecodeError:
        pass
    return [i for i in range(len(strings)) if not _is_utf8(strings[i])]


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class TermCounts:
    """Row i holds terms ``ids[indptr[i] : indptr[i + 1]]``, each at most once, in any order."""

    terms: Strings  # distinct
    indptr: Array  # (n_rows + 1,) int64
    ids: Array  # (nnz,) int32, positions in `terms`
    counts: Array  # (nnz,) int32
    collisions: int = 0  # terms whose 64-bit hash was another's; told apart by their bytes
    totals: tuple[Array, Array] | None = None  # where known, of each term: occurrences, rows that have it

    @property
    def n_rows(self) -> int:
        return len(self.indptr) - 1


class TermIndex:
    """An open-addressing table of distinct terms, which are numbered as they come.

    A slice whose hash is in the table is compared with the name there, byte by byte: terms are told apart exactly.
    """

    def __init__(self, capacity: int) -> None:
        self._slots = np.zeros(kernels.n_slots(capacity), np.uint64)
        self._hashes = np.empty(capacity, np.uint64)
        self._offsets = np.zeros(capacity + 1, np.int64)
        self._names = np.empty(capacity + kernels.SPARE, np.uint8)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays)

    @property
    def arrays(self) -> tuple[Array, Array, Array, Array]:
        """As kernels take them."""
        return self._slots, self._hashes, self._offsets, self._names

    def terms(self, n: int) -> Strings:
        """The first ``n`` terms; shares memory."""
        offsets = self._offsets[: n + 1]
        return Strings(offsets, self._names[: offsets[-1]])

    def reserve(self, n_terms: int, n: int, nbytes: int) -> None:
        """Room for ``n`` terms of so many bytes beside the ``n_terms`` that are there."""
        self._names = grown(self._names, int(self._offsets[n_terms]) + nbytes + kernels.SPARE)
        self._hashes = grown(self._hashes, n_terms + n)
        self._offsets = grown(self._offsets, n_terms + n + 1)
        if kernels.n_slots(n_terms + n) > len(self._slots):
            self._slots = np.zeros(kernels.n_slots(n_terms + n), np.uint64)
            kernels.fill_slots(self._slots, self._hashes, 0, n_terms)


def check_numbers(n_terms: int, n_entries: int, n: int) -> None:
    """Refuse ``n`` more where they could not be numbered."""
    if max(n_terms, n_entries) + n > MOST:
        raise InputError(f"{n_entries:,} entries of {n_terms:,} terms; finish before either reaches 2**31")
