"""Columns that are hashes of terms: terms in the order of their columns, and what to call such columns.

The column of a term is the upper bits of its hash. Where terms lie by column, each has its column's number before it,
in five big-endian bytes, so that the order of bytes is the order of columns, and of names within a column.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba.extending import register_jitable

from nfs_dask.arrays.block import Array
from nfs_dask.arrays.compiling import kernel
from nfs_dask.text.counting import hash_strings
from nfs_dask.text.ordering import sort_rows, take
from nfs_dask.text.strings import Strings, TermCounts

COLUMN_NBYTES = 5  # of a column's number before a name


@dataclass(frozen=True, slots=True)
class ByColumn:
    """Counted texts whose ids are columns that have a term, numbered from 0 in ascending order."""

    terms: Strings  # with their columns before them, ascending
    places: Array  # (n_terms,) which of the terms given each is
    columns: Array  # (n_terms,) int32, the id of each term's column
    n_columns: int
    indptr: Array
    ids: Array
    counts: Array


def by_column(counted: TermCounts, bits: int) -> ByColumn:
    """Add up within each row the terms of one column. The terms given are in ascending order."""
    columns = hash_columns(counted.terms, bits)
    places = np.argsort(columns, kind="stable")
    columns = columns[places]
    heads = columns.astype(">u8").view(np.uint8).reshape(-1, 8)[:, -COLUMN_NBYTES:]
    terms = take(counted.terms, places).after(heads)
    ranks = np.cumsum(np.diff(columns, prepend=columns[:1]) > 0, dtype=np.int32)
    of_term = np.empty(len(places), np.int32)
    of_term[places] = ranks
    ids, counts = of_term[counted.ids], counted.counts.copy()
    sort_rows(counted.indptr, ids, counts)
    indptr = np.zeros_like(counted.indptr)
    nnz = _add_equal(counted.indptr, ids, counts, indptr)
    n_columns = int(ranks[-1]) + 1 if len(ranks) else 0
    return ByColumn(terms, places, ranks, n_columns, indptr, ids[:nnz], counts[:nnz])


def hash_columns(terms: Strings, bits: int) -> Array:
    """The column of each term, (n,) int64."""
    return (hash_strings(terms) >> np.uint64(64 - bits)).astype(np.int64)


def columns_of(terms: Strings) -> Array:
    """The columns that stand before terms, (n,) int64."""
    columns = np.zeros(len(terms), np.int64)
    for at in range(COLUMN_NBYTES):
        columns = (columns << 8) | terms.text[terms.offsets[:-1] + at]
    return columns


def name_columns(first: int, stop: int, columns: Array, names: Strings, others: Array) -> Strings:
    """Names of columns ``first .. stop - 1``, each of them unique.

    A column with one term has its name. One that ``others`` share says how many, and its number: ``good +3 #4711``.
    One without terms has its number: ``#12``. A term that itself ends in such a number has the column's added as well.

    Parameters
    ----------
    columns, names, others
        Ascending columns that have terms, the most frequent term of each, and how many more there are.
    """
    offsets = np.zeros(stop - first + 1, np.int64)
    _name_columns(first, columns, names.offsets, names.text, others, offsets, np.empty(0, np.uint8), False)
    np.cumsum(offsets, out=offsets)
    text = np.empty(int(offsets[-1]), np.uint8)
    _name_columns(first, columns, names.offsets, names.text, others, offsets, text, True)
    return Strings(offsets, text)


@kernel
def _add_equal(indptr, ids, counts, out):
    """Add up entries of a row with the same id, which lie side by side, in place; the entries left."""
    n = 0
    for row in range(len(indptr) - 1):
        start = n
        for i in range(indptr[row], indptr[row + 1]):
            if n > start and ids[n - 1] == ids[i]:
                counts[n - 1] += counts[i]
            else:
                ids[n], counts[n] = ids[i], counts[i]
                n += 1
        out[row + 1] = n
    return n


@register_jitable
def _digits(number):
    n = 1
    while number >= 10:
        number //= 10
        n += 1
    return n


@register_jitable
def _put_number(out, to, before, sign, number):
    """Write an optional space, a sign and a number; where it ends."""
    if before:
        out[to] = 32
        to += 1
    out[to] = sign
    end = to + 1 + _digits(number)
    for at in range(end - 1, to, -1):
        out[at] = 48 + number % 10
        number //= 10
    return end


@register_jitable
def _ends_in_number(text, start, stop):
    """Whether a name ends in a number sign and digits, as the names made here do."""
    i = stop - 1
    while i >= start and 48 <= text[i] <= 57:
        i -= 1
    return i >= start and i < stop - 1 and text[i] == 35


@kernel
def _name_columns(first, columns, offsets, text, others, out_offsets, out, write):
    """Lengths of the names of columns from ``first`` on, or the names themselves."""
    k = 0
    for i in range(len(out_offsets) - 1):
        column = np.int64(first + i)
        to = out_offsets[i] if write else 0
        known = k < len(columns) and columns[k] == column
        if not known:
            if write:
                _put_number(out, to, False, 35, column)
            else:
                out_offsets[i + 1] = 1 + _digits(column)
            continue
        start, stop = offsets[k], offsets[k + 1]
        more = np.int64(others[k])
        numbered = more > 0 or _ends_in_number(text, start, stop)
        k += 1
        if write:
            for j in range(start, stop):
                out[to] = text[j]
                to += 1
            if more > 0:
                to = _put_number(out, to, True, 43, more)
            if numbered:
                _put_number(out, to, True, 35, column)
        else:
            length = stop - start
            if more > 0:
                length += 2 + _digits(more)
            if numbered:
                length += 2 + _digits(column)
            out_offsets[i + 1] = length
