"""Texts as matrices over columns that are known: a vocabulary in memory, or hashes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.documents.in_memory import PLAIN, batches, counts
from nfs_dask.prediction.counted_rows import Csr, documents, joined, no_rows, renumbered, weighed
from nfs_dask.prediction.document_frequencies import ColumnTotals, TermTotals
from nfs_dask.text.counting import TermCounter
from nfs_dask.text.hashed_columns import hash_columns
from nfs_dask.text.ordering import order
from nfs_dask.text.settings import TextSettings, Tokenizer
from nfs_dask.text.strings import Strings, TermCounts
from nfs_dask.text.tfidf import inverse_document_frequencies

DOCUMENT = "document"  # what one is called in messages


@dataclass(frozen=True)
class Splitter:
    """How texts become terms. Travels to workers."""

    settings: TextSettings
    tokenizer: Tokenizer | None = None

    def count(self, given: Any, where: str = DOCUMENT) -> TermCounts:
        """All terms of texts in memory, ascending, and a row for each text."""
        counter = self.counter()
        for texts in batches(given, PLAIN, where):
            counter.add(texts)
        return order(counter.finish())

    def count_totals(self, given: Any, where: str = DOCUMENT) -> TermTotals:
        return TermTotals.of(self.count(given, where), self.settings.binary)

    def counter(self, known: Strings | None = None) -> TermCounter:
        return TermCounter(self.settings, known=known, tokenizer=self.tokenizer)


@dataclass(frozen=True)
class KnownColumns:
    """How terms become columns. Travels to workers."""

    splitter: Splitter
    n_columns: int
    terms: Strings | None  # (n_columns,) in the order of the columns; None: columns are hashes
    frequencies: ColumnTotals | None = None  # what idf is of: of hashes, of columns that were met
    idfs: Array | None = None  # (n_columns,) float64, of terms

    def matrix(self, given: Any, where: str = DOCUMENT) -> Csr:
        """Texts in memory as weighed rows."""
        return joined(
            [no_rows(self.splitter.settings), *(self._weighed(*counted) for counted in self._counted(given, where))]
        )

    def matrix_of(self, counted: TermCounts, kept: Array) -> Csr:
        """Counted texts as weighed rows; ``kept`` are the terms that have columns, in their order."""
        ranks = np.full(len(counted.terms), self.n_columns)
        ranks[kept] = np.arange(self.n_columns)
        wanted = np.append(np.ones(self.n_columns, bool), False)
        return self._weighed(documents(counted, ranks, wanted), np.arange(self.n_columns))

    def count_totals(self, given: Any, where: str = DOCUMENT) -> ColumnTotals:
        counted = self._counted(given, where)
        return ColumnTotals.of(
            joined([no_rows(self.splitter.settings), *(renumbered(rows, columns) for rows, columns in counted)])
        )

    def with_idf(self, frequencies: ColumnTotals) -> KnownColumns:
        """With idf, if the settings ask for it."""
        if not self.splitter.settings.tfidf:
            return self
        made = replace(self, frequencies=frequencies)
        return made if self.terms is None else replace(made, idfs=made.idf(np.arange(self.n_columns)))

    def idf(self, columns: Array) -> Array | None:
        """Inverse document frequencies of some columns; None where values are counts."""
        if self.idfs is not None:
            return self.idfs[columns]
        if self.frequencies is None:
            return None
        return inverse_document_frequencies(self.frequencies.of_columns(columns), self.frequencies.n_documents)

    def _counted(self, given: Any, where: str) -> Iterator[tuple[Csr, Array]]:
        """Counts of some megabytes of text at a time, as rows over numbered columns, and which columns these are."""
        for counted in counts(self.splitter.counter(self.terms), given, PLAIN, where):
            if self.terms is not None:
                columns = ranks = np.arange(self.n_columns)
            else:  # there may be far more columns than memory holds numbers
                assert self.splitter.settings.hashed is not None
                columns = hash_columns(counted.terms, self.splitter.settings.hashed)
                columns, ranks = np.unique(columns, return_inverse=True)
            yield documents(counted, ranks, np.ones(len(columns), bool)), columns

    def _weighed(self, rows: Csr, columns: Array) -> Csr:
        return renumbered(weighed(rows, self.splitter.settings, self.idf(columns)), columns)
