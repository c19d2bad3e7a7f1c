"""Many strings as bytes, one after another: what kernels read, and what lies on disk. And texts as counts of some."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.text.text_kernels import offsets_of_bytes


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
            offsets_of_bytes(text, offsets)
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

    def to_list(self) -> list[str]:
        """As Python's strings."""
        content = self.text[self.offsets[0] : self.offsets[-1]].tobytes()
        edges = (self.offsets - self.offsets[0]).tolist()
        return [content[a:b].decode() for a, b in pairwise(edges)]


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
