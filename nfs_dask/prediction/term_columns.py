"""Which columns terms of raw text have, and what they weigh."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError
from nfs_dask.models.model import Model
from nfs_dask.store.term_table import TermTable
from nfs_dask.text.features import TextFeatures
from nfs_dask.text.hashed_columns import hash_columns
from nfs_dask.text.strings import Strings
from nfs_dask.text.tfidf import inverse_document_frequencies


class Known(NamedTuple):
    """What is known of some terms."""

    columns: Array  # (m,) int64, ascending: the distinct columns of the terms, of one region; -1 for terms without one
    ranks: Array  # (n,) which of these is the column of each term
    idf: Array | None = None  # (m,) float64; None where values are weighed after columns were selected

    @classmethod
    def of(cls, columns: Array, idf: Array | None = None) -> Known:
        """From the column of each term, and its idf."""
        distinct, first, ranks = np.unique(columns, return_index=True, return_inverse=True)
        return cls(distinct, ranks, None if idf is None else idf[first])


class TermColumns(Protocol):
    """How columns are found."""

    counted: Strings | None  # the only terms to count; None: all that there are

    def look_up(self, terms: Strings) -> Known:
        """What is known of some terms; of ``counted``, where that is not None."""
        ...


def terms_for(model: Model) -> TermColumns:
    """How a model of text finds the columns of terms."""
    features = model.text
    assert features is not None, "models of other data read no text"
    if features.needs_vocabulary:
        return VocabularyTerms(features)
    if features.settings.hashed is not None:
        return HashedTerms(features.settings.hashed)
    return SelectedTerms(model.support, features)


class SelectedTerms:
    """The terms that a model selected; of others it need not know."""

    def __init__(self, support: Array, features: TextFeatures) -> None:
        assert features.terms is not None, "only hashed columns have no names"
        columns, first = np.unique(support % features.n_terms, return_index=True)
        self.counted: Strings | None = Strings.of(features.terms[i] for i in first)
        self._known = Known(columns, np.arange(len(columns)))

    def look_up(self, terms: Strings) -> Known:
        return self._known


class HashedTerms:
    """Columns that are hashes of terms."""

    counted: Strings | None = None

    def __init__(self, bits: int) -> None:
        self._bits = bits

    def look_up(self, terms: Strings) -> Known:
        return Known.of(hash_columns(terms, self._bits))


class VocabularyTerms:
    """All terms of the training data, looked up on disk."""

    counted: Strings | None = None

    def __init__(self, features: TextFeatures) -> None:
        if features.vocabulary is None:
            raise InputError(
                "this model needs the vocabulary of the data it was fitted to, as its features depend on all terms of "
                "a document, or are too many to be named in it, and the vocabulary is not beside it; fit it on the "
                "store and save it, or give a matrix"
            )
        self._table, self._n_documents = TermTable.open(features.vocabulary), features.n_documents

    def look_up(self, terms: Strings) -> Known:
        columns, frequencies = self._table.look_up(terms)
        return Known.of(columns, inverse_document_frequencies(frequencies, self._n_documents))
