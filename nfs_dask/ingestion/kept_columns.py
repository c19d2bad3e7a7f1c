"""Further columns of documents, kept as text beside what was counted of them, for the store's table of rows.

Of each segment a column is a list of its distinct texts, and a code for each document. Tasks read what they write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from nfs_dask.arrays.block import UNLABELLED, Array
from nfs_dask.errors import InputError
from nfs_dask.files.arrayfile import ArrayFile
from nfs_dask.files.folder import Folder
from nfs_dask.sources.conditions import text_of
from nfs_dask.store.row_columns import MOST_CATEGORIES, TEXT, RowColumn, is_keepable
from nfs_dask.text.strings import Strings

_NBYTES = 120  # of a text that is held, besides its characters


@dataclass
class KeptTexts:
    """The values of one column, of the documents of a segment that is still open."""

    codes: dict[str, int] = field(default_factory=dict)
    parts: list[Array] = field(default_factory=list)
    nbytes: int = 0

    def add(self, values: Iterable[Any], n: int) -> None:
        """Values of ``n`` documents; missing ones stay missing."""
        before = len(self.codes)
        texts = (value if isinstance(value, str) else text_of(value) for value in values)  # texts stay as they are
        part = np.fromiter((self.codes.setdefault(t, len(self.codes)) if t else UNLABELLED for t in texts), np.int32, n)
        self.parts.append(part)
        self.nbytes += part.nbytes + (len(self.codes) - before) * _NBYTES
        self.nbytes += sum(map(len, list(self.codes)[before:]))


def columns_of(segment: Mapping[str, KeptTexts]) -> dict[str, Array]:
    """What a segment's file holds of its columns."""
    arrays = {}
    for number, column in enumerate(segment.values()):
        texts = Strings.of(text.encode(errors="replace") for text in column.codes)
        for name, array in zip(_names(number), (np.concatenate(column.parts), texts.offsets, texts.text), strict=True):
            arrays[name] = array
    return arrays


def _names(number: int) -> tuple[str, str, str]:
    return f"kept{number}.codes", f"kept{number}.offsets", f"kept{number}.text"


@dataclass(frozen=True)
class KeptColumns:
    """The columns of all segments that follow each other, as the table of rows of a source."""

    folder: Folder
    kept: tuple[str, ...]
    segments: tuple[str, ...]
    first_rows: tuple[int, ...]  # of the segments, and how many rows there are
    distinct: tuple[tuple[int, ...], ...]  # texts of each column, by segment

    labels: ClassVar[None] = None
    named: ClassVar[bool] = False

    def columns(self) -> list[RowColumn]:
        """Categories, but for columns of very many texts."""
        return [self._column(number, name) for number, name in enumerate(self.kept)]

    def _column(self, number: int, name: str) -> RowColumn:
        found: set[str] = set()
        for segment, counts in zip(self.segments, self.distinct, strict=True):
            if counts[number] <= MOST_CATEGORIES:  # one with more says enough by their number
                found.update(self._texts(ArrayFile.open(self.folder, segment), number))
            if counts[number] > MOST_CATEGORIES or len(found) > MOST_CATEGORIES:
                return RowColumn(name, TEXT)
        return RowColumn.of_categories(name, sorted(found))

    def read(self, name: str, start: int, stop: int) -> Array:
        """Texts of rows ``start .. stop - 1``, None where there is none."""
        number = self.kept.index(name)
        parts = [np.zeros(0, object)]
        for segment, row, end in zip(self.segments, self.first_rows[:-1], self.first_rows[1:], strict=True):
            if end <= start or row >= stop:
                continue
            file = ArrayFile.open(self.folder, segment)
            codes = file.read(_names(number)[0], max(start, row) - row, min(stop, end) - row)
            texts = np.array([*self._texts(file, number), None], object)
            if len(codes) and not UNLABELLED <= int(codes.min()) <= int(codes.max()) < len(texts) - 1:
                raise file.damaged()
            parts.append(texts[codes])  # -1 picks the last
        return np.concatenate(parts)

    def _texts(self, file: ArrayFile, number: int) -> list[str]:
        _, offsets, text = _names(number)
        return Strings(file.read(offsets), file.read(text)).to_list()


def check_keepable(names: Sequence[str]) -> None:
    """Refuse columns that a store has no place for."""
    for name in names:
        if not is_keepable(name):
            raise InputError(f"keep={name!r} cannot be the name of a folder, as columns of a store are; rename it")
    if len(set(names)) < len(names):
        raise InputError(f"keep={list(names)!r} names a column more than once; name each once")
