"""Merging the terms of all segments, one range of names at a time, into the columns of a store.

A range is one file. Terms are compared by their bytes, and equal ones are one term:

    offsets, text   terms that were kept, ascending
    df, cf          of each: documents that have it, and how often it occurs
    columns         of each, where it is not the number of terms kept before it
    others          of each, with hashed columns: how many more terms share its column
    starts          where the part of each segment begins in the two arrays that follow, and where the last one ends
    map             for each id of a segment: its place among the terms kept, or its column where there are `columns`,
                    or -1 for none
    id_df           for each id of a segment: document frequency of its term or column that tf-idf goes by, if asked for

No task holds more than its range, and the driver only numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from nfs_dask.arrays.block import Array, narrow, smallest_integer
from nfs_dask.files.arrayfile import ArrayFile, write_arrays
from nfs_dask.files.folder import Folder
from nfs_dask.ingestion.ranges import Sample, read_range
from nfs_dask.ingestion.term_groups import (
    SegmentTerms,
    StoredFrequencies,
    TermGroups,
    group_columns,
    group_equal,
    group_fixed,
    read_terms,
)
from nfs_dask.units import MiB


class Sampled(Protocol):
    """A file of sorted terms, as far as cutting is concerned: a `Segment`, or a `Fixed` vocabulary."""

    @property
    def terms_nbytes(self) -> int: ...

    @property
    def samples(self) -> tuple[Sample, ...]: ...


def choose_bounds(files: Sequence[Sampled], target_nbytes: int) -> list[bytes]:
    """Where ranges of terms begin, so that each takes about so much in a merge; the first with ``b""``.

    Range i goes from bound i to before bound i + 1, the last to the end. How `merge_nbytes` counts, not bytes of text.
    """
    total = sum(file.terms_nbytes for file in files)
    points = sorted((sample.bound, nbytes) for file in files for sample, nbytes in _stretches(file))
    before = np.cumsum([nbytes for _, nbytes in points])
    n_ranges = -(-total // target_nbytes)
    bounds = [b""]
    for i in range(1, n_ranges):
        at = int(np.searchsorted(before, total * i // n_ranges))
        if at < len(points) and points[at][0] > bounds[-1]:
            bounds.append(points[at][0])
    return bounds


def _stretches(file: Sampled) -> list[tuple[Sample, int]]:
    """Samples of a file, each with what the terms take between the one before and it."""
    before = [0] + [sample.nbytes for sample in file.samples]
    return [(sample, sample.nbytes - last) for sample, last in zip(file.samples, before, strict=False)]


def merge_nbytes(target_nbytes: int) -> int:
    """Most memory that merging a range of about that size takes, as `choose_bounds` was told it."""
    return 7 * target_nbytes // 2 + 8 * MiB  # measured: 2.4 to 2.8 times what the terms of a range take


@dataclass(frozen=True, slots=True)
class RangeCut:
    """Which terms are frequent enough: those above a number of occurrences, and the first few that have just that."""

    above: int = 0
    ties: int = 0


@dataclass(frozen=True, slots=True)
class MergeTask:
    """One range of terms."""

    folder: str  # location
    segments: tuple[str, ...]
    number: int
    low: bytes
    high: bytes | None  # None: no end
    name: str | None  # of the file to write; None: only look
    fewest: float = 1  # documents of a term that is kept
    most: float = float("inf")
    cut: RangeCut = RangeCut()
    with_table: bool = False
    with_df: bool = False  # document frequencies beside the map: what tf-idf needs
    fixed: str | None = None  # name of the vocabulary whose terms are kept, and no others
    hashed: bool = False
    stored: StoredFrequencies | None = None  # of hashed columns, where tf-idf was fitted before


@dataclass(frozen=True, slots=True)
class MergedRange:
    """What became of a range."""

    number: int
    name: str | None
    n_distinct: int  # terms that occur, and with a fixed vocabulary are in it
    n_kept: int  # terms; with hashed columns, columns that have terms
    n_rare: int  # in too few documents
    n_frequent: int  # in too many
    n_cut: int  # left out by the cut
    n_shared: int  # distinct terms that share a hashed column with another
    names_nbytes: int  # of the terms kept
    cf: int  # occurrences of what was kept
    df: int  # sum of their document frequencies
    first_column: int | None  # lowest and highest, where columns are not numbered by their order
    last_column: int | None
    table: tuple[Array, Array] | None  # distinct occurrences, ascending, and how many terms have each


def merge_range(task: MergeTask) -> MergedRange:
    """Merge a range of the segments' terms; doing it again leaves the same bytes and gives the same answer."""
    folder = Folder(task.folder)
    terms = read_terms(folder, task.segments, task.low, task.high)
    groups = _grouped(folder, terms, task)
    rare, frequent = groups.df < task.fewest, groups.df > task.most
    if task.fixed is not None:
        rare = frequent = np.zeros(len(groups.df), bool)
    allowed = ~(rare | frequent)
    table = np.unique(groups.cf[allowed], return_counts=True) if task.with_table else None
    kept = groups.only(allowed & _frequent_enough(groups.cf, allowed, task))
    columns, edges = kept.columns, kept.names.offsets[[0, -1]]
    if task.name is not None:
        id_df = {"id_df": groups.df_of_ids()} if task.with_df else {}
        write_arrays(folder, task.name, _arrays(kept, terms.starts) | id_df, {})
    return MergedRange(
        number=task.number,
        name=task.name,
        n_distinct=groups.n_distinct,
        n_kept=len(kept.df),
        n_rare=int(np.count_nonzero(rare)),
        n_frequent=int(np.count_nonzero(frequent)),
        n_cut=int(np.count_nonzero(allowed)) - len(kept.df),
        n_shared=groups.n_shared,
        names_nbytes=int(edges[1] - edges[0]),
        cf=int(kept.cf.sum()),
        df=int(kept.df.sum()),
        first_column=None if columns is None or not len(columns) else int(columns.min()),
        last_column=None if columns is None or not len(columns) else int(columns.max()),
        table=table,
    )


def choose_cuts(ranges: Sequence[MergedRange], max_features: int) -> list[RangeCut]:
    """The cut of each range, by which so many of the most frequent terms are kept, of equal ones the first."""
    tables = [merged.table for merged in ranges if merged.table is not None]
    assert len(tables) == len(ranges)
    values, places = np.unique(np.concatenate([values for values, _ in tables]), return_inverse=True)
    sizes = np.zeros(len(values), np.int64)
    np.add.at(sizes, places, np.concatenate([sizes for _, sizes in tables]))
    at_least = np.cumsum(sizes[::-1])[::-1]  # terms that occur that often or more
    too_many = np.flatnonzero(at_least > max_features)
    if not len(too_many):
        return [RangeCut()] * len(ranges)
    above = int(values[too_many[-1]])
    left = max_features - (int(at_least[too_many[-1]]) - int(sizes[too_many[-1]]))
    cuts = []
    for values, sizes in tables:
        ties = min(left, int(sizes[values == above].sum()))
        cuts.append(RangeCut(above, ties))
        left -= ties
    return cuts


def _grouped(folder: Folder, terms: SegmentTerms, task: MergeTask) -> TermGroups:
    if task.hashed:
        return group_columns(terms, task.stored)
    if task.fixed is None:
        return group_equal(terms)
    fixed = ArrayFile.open(folder, task.fixed)
    first, names = read_range(fixed, task.low, task.high)
    stop = first + len(names)
    df = fixed.read("df", first, stop) if "df" in fixed else None
    return group_fixed(terms, names, fixed.read("columns", first, stop), df)


def _frequent_enough(cf: Array, allowed: Array, task: MergeTask) -> Array:
    if task.cut == RangeCut():
        return np.ones(len(cf), bool)
    ties = np.flatnonzero(allowed & (cf == task.cut.above))
    enough = cf > task.cut.above
    enough[ties[: task.cut.ties]] = True
    return enough


def _arrays(groups: TermGroups, starts: Array) -> dict[str, Array]:
    """What the file of a range holds, of the groups that were kept."""
    offsets, text = groups.names.offsets, groups.names.text
    arrays = {"offsets": narrow(offsets), "text": text, "df": narrow(groups.df), "cf": narrow(groups.cf)}
    columns_of = groups.of_id
    if groups.columns is not None:
        arrays["columns"] = groups.columns
        wide = smallest_integer(-1, int(groups.columns.max(initial=2**31 - 1)))
        columns_of = np.append(groups.columns, -1).astype(wide)[groups.of_id]  # the last is for those in no group
    if groups.others is not None:
        arrays["others"] = groups.others
    return arrays | {"starts": starts, "map": columns_of}
