"""The columns that all ranges make together: which of them a segment's ids have, their names and frequencies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import StoreError
from nfs_dask.files.arrayfile import ArrayFile
from nfs_dask.files.folder import Folder
from nfs_dask.ingestion.given_vocabulary import Fixed, read_columns_names
from nfs_dask.ingestion.merging import MergedRange
from nfs_dask.ingestion.ranges import read_strings
from nfs_dask.text.hashed_columns import name_columns
from nfs_dask.text.strings import Strings


@dataclass(frozen=True, slots=True)
class _Range:
    """The file of a range, and the columns it may have: ``first .. stop - 1``."""

    name: str
    first: int
    stop: int


@dataclass(frozen=True, slots=True)
class MergedColumns:
    """Columns of a vocabulary. They are numbered range by range, unless hashes or a given vocabulary number them."""

    folder: Folder
    n_columns: int
    ranges: tuple[_Range, ...]  # all, in the order of names
    hashed: bool
    fixed: str | None
    ascending: bool  # whether columns have the order of names

    @classmethod
    def of(cls, folder: Folder, ranges: Sequence[MergedRange], bits: int | None, fixed: Fixed | None) -> MergedColumns:
        numbered = bits is None and fixed is None
        found, first = [], 0
        for merged in sorted(ranges, key=lambda merged: merged.number):
            assert merged.name is not None
            if numbered:
                found.append(_Range(merged.name, first, first + merged.n_kept))
                first += merged.n_kept
            else:
                low, high = merged.first_column, merged.last_column
                found.append(_Range(merged.name, low or 0, 0 if high is None else high + 1))
        n_columns = 1 << bits if bits is not None else fixed.n_terms if fixed is not None else first
        name = None if fixed is None else fixed.name
        return cls(folder, n_columns, tuple(found), bits is not None, name, fixed is None or fixed.in_order)

    @property
    def numbered(self) -> bool:
        """Whether the number of a column is the number of terms before it."""
        return not self.hashed and self.fixed is None

    def of_segment(
        self, number: int, n_ids: int, dtype: np.dtype[Any], *, with_df: bool = False
    ) -> tuple[Array, Array | None]:
        """The column of each id of a segment, or -1, (n_ids,); if asked for, also its document frequency, int64."""
        columns, df = np.empty(n_ids, dtype), np.empty(n_ids, np.int64) if with_df else None
        n = 0
        for merged in self.ranges:
            file = ArrayFile.open(self.folder, merged.name)
            start, stop = file.read("starts", number, number + 2).tolist()
            end = n + stop - start
            if end <= n_ids:
                columns[n:end] = self._columns(merged, file, start, stop)
                if df is not None:
                    df[n:end] = file.read("id_df", start, stop)
            n = end
        if n != n_ids:
            raise StoreError(
                f"the ranges in {self.folder.location} know {n} terms of segment {number}, which has {n_ids}; "
                "merge all segments again"
            )
        return columns, df

    def _columns(self, merged: _Range, file: ArrayFile, start: int, stop: int) -> Array:
        """The columns of some ids; refuses those that are outside of the matrix."""
        found = file.read("map", start, stop)
        n = merged.stop - merged.first if self.numbered else self.n_columns
        if len(found) and not -1 <= int(found.min()) <= int(found.max()) < n:
            raise file.damaged()
        if not self.numbered or merged.first == 0:
            return found
        return np.where(found >= 0, found + np.int64(merged.first), -1)

    def names(self, start: int, stop: int) -> Strings:
        """Names of columns ``start .. stop - 1``."""
        if self.fixed is not None:
            return read_columns_names(ArrayFile.open(self.folder, self.fixed), start, stop)
        if self.hashed:
            return self._hashed_names(start, stop)
        return Strings.joined([read_strings(file, low, high) for file, low, high in self._within(start, stop)])

    def frequencies(self, start: int, stop: int) -> Array:
        """Documents that have the term of each column, or one of its terms; (stop - start,) int64."""
        df = np.zeros(stop - start, np.int64)
        if self.numbered:
            n = 0
            for file, low, high in self._within(start, stop):
                df[n : n + high - low] = file.read("df", low, high)
                n += high - low
            return df
        for merged in self.ranges:
            if merged.first < stop and merged.stop > start:
                file = ArrayFile.open(self.folder, merged.name)
                columns = file.read("columns")
                inside = (columns >= start) & (columns < stop)
                df[columns[inside] - start] = file.read("df")[inside]
        return df

    def _within(self, start: int, stop: int) -> Iterator[tuple[ArrayFile, int, int]]:
        """Ranges that have some of the columns ``start .. stop - 1``, and which of theirs these are."""
        for merged in self.ranges:
            low, high = max(start, merged.first), min(stop, merged.stop)
            if low < high:
                yield ArrayFile.open(self.folder, merged.name), low - merged.first, high - merged.first

    def _hashed_names(self, start: int, stop: int) -> Strings:
        columns, names, others = [np.zeros(0, np.int64)], [], [np.zeros(0, np.int32)]
        for merged in self.ranges:
            if merged.first < stop and merged.stop > start:
                file = ArrayFile.open(self.folder, merged.name)
                own = file.read("columns")
                low, high = np.searchsorted(own, [start, stop]).tolist()
                if low < high:
                    columns.append(own[low:high])
                    names.append(read_strings(file, low, high))
                    others.append(file.read("others", low, high))
        return name_columns(start, stop, np.concatenate(columns), Strings.joined(names), np.concatenate(others))
