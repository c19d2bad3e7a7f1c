"""The terms of several segments put together: which of them are the same, or share a column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from nfs_dask.arrays.block import Array, smallest_integer
from nfs_dask.arrays.compiling import kernel
from nfs_dask.files.arrayfile import ArrayFile
from nfs_dask.files.folder import Folder
from nfs_dask.ingestion.ranges import read_range
from nfs_dask.store.layout import Numbers
from nfs_dask.store.shards import ShardReader
from nfs_dask.text.hashed_columns import COLUMN_NBYTES, columns_of
from nfs_dask.text.ordering import find, take
from nfs_dask.text.sorted_runs import merge_runs
from nfs_dask.text.strings import Strings

_WINDOW = 1 << 18  # columns whose frequencies are read together


@dataclass(frozen=True, slots=True)
class SegmentTerms:
    """A range of the terms of all segments, one segment after another."""

    names: Strings  # ascending within a segment
    runs: Array  # (n_segments + 1,) int64, first term of each segment
    cf: Sequence[Array]  # of each segment (n_terms,), as narrow as they lie in its file
    ids: Array | None  # (n_terms,) which id each term has, with hashed columns; None: its own number
    df: Sequence[Array]  # of each segment (n_ids,), its documents that have the id
    starts: Array  # (n_segments + 1,) int64, first id of each segment


@dataclass(frozen=True, slots=True)
class TermGroups:
    """Distinct terms, or columns that have terms, in ascending order."""

    of_id: Array  # (n_ids,) int32, which group each id is in; -1: none
    names: Strings
    cf: Array  # (n_groups,) int64
    df: Array  # (n_groups,) int64
    n_distinct: int  # terms
    n_shared: int = 0  # terms that share their column with another
    columns: Array | None = None  # (n_groups,) int64, where they are not the numbers of the groups
    others: Array | None = None  # (n_groups,) int32, how many more terms a column has
    fitted_df: Array | None = None  # (n_groups,) int64, what tf-idf goes by where that is not `df`

    def only(self, kept: Array) -> TermGroups:
        """Those that are kept, by a bool for each; ids of others are in none."""
        if kept.all():
            return self
        places = np.flatnonzero(kept)
        numbers = np.full(len(kept) + 1, -1, np.int32)
        numbers[places] = np.arange(len(places), dtype=np.int32)
        return replace(
            self,
            of_id=numbers[self.of_id],  # the last of the numbers is for those in no group
            names=take(self.names, places),
            cf=self.cf[places],
            df=self.df[places],
            columns=None if self.columns is None else self.columns[places],
            others=None if self.others is None else self.others[places],
            fitted_df=None if self.fitted_df is None else self.fitted_df[places],
        )

    def df_of_ids(self) -> Array:
        """For each id what tf-idf goes by, (n_ids,)."""
        df = np.append(self.df if self.fitted_df is None else self.fitted_df, 0)
        return df.astype(smallest_integer(0, int(df.max())))[self.of_id]


@dataclass(frozen=True, slots=True)
class StoredFrequencies:
    """The document frequencies that a store keeps, one for each of its columns."""

    folder: Folder
    numbers: Numbers

    def read(self, columns: Array) -> Array:
        """Those of some ascending columns, read window by window; (n,) int64."""
        reader, df = ShardReader(self.folder, self.numbers), np.empty(len(columns), np.int64)
        cuts = np.flatnonzero(np.diff(columns // _WINDOW)) + 1
        for low, high in pairwise([0, *cuts.tolist(), len(columns)]):
            if low < high:
                first, last = int(columns[low]), int(columns[high - 1])
                df[low:high] = reader.read(first, last + 1)[columns[low:high] - first]
        return df


def read_terms(folder: Folder, segments: Sequence[str], low: bytes, high: bytes | None) -> SegmentTerms:
    """The terms of segments from ``low`` to before ``high``."""
    names, cf, ids, df = [], [], [], []
    starts, runs = np.zeros(len(segments) + 1, np.int64), np.zeros(len(segments) + 1, np.int64)
    for number, name in enumerate(segments):
        file = ArrayFile.open(folder, name)
        first, part = read_range(file, low, high)
        stop = first + len(part)
        names.append(part)
        runs[number + 1] = runs[number] + len(part)
        cf.append(file.read("cf", first, stop))
        if "columns" in file:
            columns = file.read("columns", first, stop)
            first, stop = (int(columns[0]), int(columns[-1]) + 1) if len(columns) else (0, 0)
            if len(columns) and (int(columns.min()) != first or int(columns.max()) >= stop):
                raise file.damaged()
            ids.append(columns - first + starts[number])
        df.append(file.read("df", first, stop))
        starts[number + 1] = starts[number] + stop - first
    return SegmentTerms(Strings.joined(names), runs, cf, np.concatenate(ids) if ids else None, df, starts)


def group_equal(terms: SegmentTerms) -> TermGroups:
    """Every distinct term is a group."""
    of_term, names, cf = _distinct(terms)
    return TermGroups(of_term, names, cf, _added(of_term, terms.df, len(names)), len(names))


def group_columns(terms: SegmentTerms, stored: StoredFrequencies | None = None) -> TermGroups:
    """Every column that has terms is a group, under the name of its most frequent term, of several the first.

    ``stored`` are the document frequencies of all columns where tf-idf was fitted before.
    """
    assert terms.ids is not None
    of_term, names, cf = _distinct(terms)
    columns = columns_of(names)
    of_name = np.cumsum(np.diff(columns, prepend=columns[:1]) > 0, dtype=np.int32)
    n = int(of_name[-1]) + 1 if len(names) else 0
    of_id = np.empty(terms.starts[-1], np.int32)
    of_id[terms.ids] = of_name[of_term]
    sizes = np.bincount(of_name, minlength=n)
    best = np.full(n, -1, np.int64)
    _most_frequent(of_name, cf, best)
    return TermGroups(
        of_id,
        take(names, best).beyond(COLUMN_NBYTES),
        _added(of_name, [cf], n),
        _added(of_id, terms.df, n),
        n_distinct=len(names),
        n_shared=int(sizes[sizes > 1].sum()),
        columns=columns[best],
        others=(sizes - 1).astype(np.int32),
        fitted_df=None if stored is None else stored.read(columns[best]),
    )


def group_fixed(terms: SegmentTerms, names: Strings, columns: Array, fitted_df: Array | None = None) -> TermGroups:
    """Every given name is a group, whether it occurs or not; other terms are in none."""
    of_term = find(names, terms.names).astype(np.int32)
    cf = _added(of_term, terms.cf, len(names))
    df = _added(of_term, terms.df, len(names))
    return TermGroups(of_term, names, cf, df, int(np.count_nonzero(cf)), columns=columns, fitted_df=fitted_df)


def _distinct(terms: SegmentTerms) -> tuple[Array, Strings, Array]:
    """For each term which distinct one it is; those, ascending; how often they occur."""
    of_term, places = merge_runs(terms.names, terms.runs)
    return of_term, take(terms.names, places), _added(of_term, terms.cf, len(places))


def _added(groups: Array, parts: Sequence[Array], n_groups: int) -> Array:
    """Sums of values by group, of values that come in parts."""
    sums, at = np.zeros(n_groups, np.int64), 0
    for values in parts:
        _add(groups[at : at + len(values)], values.astype(np.int64, copy=False), sums)
        at += len(values)
    return sums


@kernel
def _add(groups, values, sums):
    """sums[group] += value, but for values in no group."""
    for i in range(len(groups)):
        if groups[i] >= 0:
            sums[groups[i]] += values[i]


@kernel
def _most_frequent(groups, values, best):
    """best[group] = position of its largest value, the first of several; -1 before."""
    for i in range(len(groups)):
        g = groups[i]
        if best[g] < 0 or values[i] > values[best[g]]:
            best[g] = i
