"""Counted terms as rows of documents: CSR over a few numbered columns, ascending within each row."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from nfs_dask.arrays.block import Array, column_type
from nfs_dask.text.ordering import sort_rows
from nfs_dask.text.settings import TextSettings
from nfs_dask.text.strings import TermCounts
from nfs_dask.text.tfidf import weigh

Csr: TypeAlias = tuple[Array, Array, Array]  # indptr int64, columns int32, values


def documents(counted: TermCounts, ranks: Array, wanted: Array, n_regions: int = 1) -> Csr:
    """Documents whose regions are rows of the counter, one after another.

    Parameters
    ----------
    counted
        With ``n_regions`` rows for each document.
    ranks : (n_terms,) whole numbers below n
        The column of each term within its region; several terms may share one, and are added up.
    wanted : (n_regions * n,) bool
        Which columns to keep; those of region r begin at ``r * n``.
    n_regions
        Texts of a document.
    """
    n = len(wanted) // n_regions
    columns = ranks.astype(np.int32)[counted.ids]
    if n_regions > 1:
        regions = np.arange(counted.n_rows, dtype=np.int32) % n_regions
        columns += np.repeat(regions * np.int32(n), np.diff(counted.indptr))
    kept, rows = wanted[columns], (counted.indptr, columns, counted.counts)
    indptr, columns, counts = (*rows[:2], rows[2].copy()) if kept.all() else chosen(rows, kept)
    indptr = indptr[::n_regions]
    sort_rows(indptr, columns, counts)
    return _added_up(indptr, columns, counts.astype(np.int64))


def joined(parts: list[Csr]) -> Csr:
    """Rows of several parts, one after another."""
    ends = np.cumsum([0, *(len(data) for _, _, data in parts)])
    pointers = [indptr[1:] + first for (indptr, _, _), first in zip(parts, ends[:-1], strict=True)]
    return (
        np.concatenate([np.zeros(1, np.int64), *pointers]),
        np.concatenate([indices for _, indices, _ in parts]),
        np.concatenate([data for _, _, data in parts]),
    )


def narrowed(rows: Csr, width: int) -> Csr:
    """The same rows, columns and row pointers both in 32 bits where that does: much of scikit-learn takes no others.

    >>> [array.dtype.name for array in narrowed((np.array([0, 1]), np.array([5]), np.array([1.0])), 6)]
    ['int32', 'int32', 'float64']
    """
    indptr, columns, values = rows
    number = column_type(max(width, len(values)))
    return indptr.astype(number, copy=False), columns.astype(number, copy=False), values


def as_scipy(rows: Csr, width: int) -> Any:
    """The rows as a scipy CSR array of so many columns."""
    from scipy import sparse

    indptr, columns, values = narrowed(rows, width)
    return sparse.csr_array((values, columns, indptr), shape=(len(indptr) - 1, width))


def no_rows(settings: TextSettings) -> Csr:
    """What there is of no documents."""
    return np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float64 if settings.tfidf else np.int64)


def chosen(rows: Csr, kept: Array) -> Csr:
    """Only some of the entries."""
    indptr, columns, values = rows
    through = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])
    return through[indptr], columns[kept], values[kept]


def renumbered(rows: Csr, numbers: Array) -> Csr:
    """The same entries in columns of other numbers, which ascend as the old ones do."""
    return rows[0], numbers[rows[1]], rows[2]


def weighed(rows: Csr, settings: TextSettings, idf: Array | None) -> Csr:
    """Counts as the values that settings make of them; ``idf`` has one number for each column."""
    if not (settings.binary or settings.tfidf):
        return rows
    indptr, columns, counts = rows
    return indptr, columns, weigh(indptr, columns, counts, settings, idf)


def _added_up(indptr: Array, columns: Array, counts: Array) -> Csr:
    """Rows in which each column stands once, of rows in which equal ones stand together."""
    again = 1 + np.flatnonzero(columns[1:] == columns[:-1])
    again = again[indptr[np.searchsorted(indptr, again)] > again]  # rather than in the next row
    if not len(again):
        return indptr, columns, counts
    first = np.ones(len(columns), bool)
    first[again] = False
    through = np.concatenate([np.zeros(1, np.int64), np.cumsum(first)])
    return through[indptr], columns[first], np.add.reduceat(counts, np.flatnonzero(first))
