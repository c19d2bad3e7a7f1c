"""In how many documents terms or columns are: of texts in memory, or of a partition, to be merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError
from nfs_dask.prediction.counted_rows import Csr
from nfs_dask.text.ordering import find, sort_strings, take
from nfs_dask.text.settings import Filters
from nfs_dask.text.strings import Strings, TermCounts


@dataclass(frozen=True)
class TermTotals:
    """Terms that were found. The same for any split of the documents, merged in any order."""

    terms: Strings  # distinct, ascending
    documents: Array  # (n,) int64, how many have the term
    occurrences: Array  # (n,) int64
    n_documents: int

    @classmethod
    def of(cls, counted: TermCounts, binary: bool) -> TermTotals:
        """Of documents that are rows, and terms in ascending order; ``binary``: a term occurs at most once in each."""
        n_terms = len(counted.terms)
        occurrences = documents = np.bincount(counted.ids, minlength=n_terms)
        if not binary:  # sums of whole numbers below 2^53 are exact in floats
            occurrences = np.bincount(counted.ids, counted.counts, n_terms).astype(np.int64)
        return cls(counted.terms, documents, occurrences, counted.n_rows)

    def merge(self, other: TermTotals) -> TermTotals:
        where = find(self.terms, other.terms)
        shared, new = np.flatnonzero(where >= 0), np.flatnonzero(where < 0)
        documents, occurrences = self.documents.copy(), self.occurrences.copy()
        documents[where[shared]] += other.documents[shared]
        occurrences[where[shared]] += other.occurrences[shared]
        terms = Strings.joined([self.terms, take(other.terms, new)])
        places = sort_strings(terms)
        return TermTotals(
            take(terms, places),
            np.concatenate([documents, other.documents[new]])[places],
            np.concatenate([occurrences, other.occurrences[new]])[places],
            self.n_documents + other.n_documents,
        )

    def kept(self, filters: Filters) -> Array:
        """Positions of the terms that become columns, ascending."""
        if not self.n_documents:
            raise InputError("there are no documents; give at least one")
        low, high = filters.document_range(self.n_documents)
        kept = np.flatnonzero((self.documents >= low) & (self.documents <= high))
        if filters.max_features is not None:
            most = np.argsort(-self.occurrences[kept], kind="stable")[: filters.max_features]
            kept = np.sort(kept[most])
        if not len(kept):
            raise InputError(
                f"no term is left of {len(self.terms):,} in {self.n_documents:,} documents; relax min_df and max_df, "
                "or see whether the documents hold more than stop words"
            )
        return kept


@dataclass(frozen=True)
class ColumnTotals:
    """Columns that were there before the documents."""

    columns: Array  # distinct, ascending
    documents: Array  # (n,) int64, how many have an entry in the column
    n_documents: int

    @classmethod
    def of(cls, rows: Csr) -> ColumnTotals:
        indptr, columns, _ = rows
        return cls(*np.unique(columns, return_counts=True), len(indptr) - 1)

    def merge(self, other: ColumnTotals) -> ColumnTotals:
        columns, where = np.unique(np.concatenate([self.columns, other.columns]), return_inverse=True)
        documents = np.zeros(len(columns), np.int64)
        np.add.at(documents, where, np.concatenate([self.documents, other.documents]))
        return ColumnTotals(columns, documents, self.n_documents + other.n_documents)

    def of_columns(self, columns: Array) -> Array:
        """Documents of each of some columns, int64."""
        out = np.zeros(len(columns), np.int64)
        if len(self.columns):
            places = np.minimum(np.searchsorted(self.columns, columns), len(self.columns) - 1)
            found = self.columns[places] == columns
            out[found] = self.documents[places[found]]
        return out


Totals = TermTotals | ColumnTotals


def merge_totals(parts: Sequence[Totals]) -> Totals:
    """The totals of all documents together; parts are of one kind."""
    return reduce(lambda one, other: one.merge(other), parts)  # type: ignore[arg-type]
