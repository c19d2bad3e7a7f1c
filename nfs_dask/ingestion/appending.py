"""Documents for a store that has some: they are read as the first ones were, and counted under its columns."""

from __future__ import annotations

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError
from nfs_dask.files.folder import Folder
from nfs_dask.ingestion.term_groups import StoredFrequencies
from nfs_dask.store.header import read_header
from nfs_dask.store.shards import ShardReader
from nfs_dask.store.stored_terms import StoredTerms, checked_numbers, without_prefix
from nfs_dask.store.text_facts import TextFacts
from nfs_dask.text.strings import Strings


def stored_facts(store: Folder) -> TextFacts:
    """How the texts of a store were read; refused where it was not made of texts."""
    facts = read_header(store).text
    if facts is None:
        raise InputError(
            f"{store.location} was not made of texts; append rows of a matrix with its columns, or ingest the "
            "documents into a new store"
        )
    return facts


def stored_frequencies(store: Folder) -> StoredFrequencies | None:
    """The document frequencies of a store's columns, which weigh what is appended; None where it keeps none."""
    numbers = read_header(store).frequencies
    return None if numbers is None else StoredFrequencies(store, numbers)


def stored_vocabulary(store: Folder) -> tuple[Strings, Array, Array] | None:
    """The terms of a store, sorted, with the column and the document frequency of each; None for hashed columns.

    All of them are held here for a while, some tens of bytes each.
    """
    terms = StoredTerms.of_store(store, read_header(store))
    reader = terms.reader()
    if reader is None:
        return None
    names = without_prefix(reader.read(0, terms.n_terms), len(terms.prefix.encode()))
    columns = np.arange(terms.n_terms)
    if terms.columns is not None:
        columns = checked_numbers(ShardReader(store, terms.columns), 0, terms.n_terms, terms.n_terms)
    frequencies = ShardReader(store, terms.frequencies).read(0, terms.n_terms)
    return names, columns, frequencies[columns]
