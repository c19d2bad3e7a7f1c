"""Writing the vocabulary of a new store: document frequencies, and terms by name where columns have another order."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol, TypeGuard

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError
from nfs_dask.files.folder import Folder
from nfs_dask.store.header import Header
from nfs_dask.store.names import names_reader
from nfs_dask.store.receipts import Receipts
from nfs_dask.store.shards import write_numbers
from nfs_dask.store.stored_strings import StringsWriter
from nfs_dask.store.stored_terms import without_prefix
from nfs_dask.store.survey import SurveyedRows
from nfs_dask.store.text_facts import TextFacts
from nfs_dask.text.features import column_prefix
from nfs_dask.text.ordering import sort_strings, take


class TextRows(SurveyedRows, Protocol):
    """A source of texts that knows the frequencies of its terms."""

    def frequencies(self, start: int, stop: int) -> Array:
        """In how many documents terms ``start .. stop - 1`` of the vocabulary were."""
        ...


def has_frequencies(source: SurveyedRows) -> TypeGuard[TextRows]:
    """Whether the source knows in how many documents its terms were."""
    return hasattr(source, "frequencies")


def check_text(text: TextFacts, source: SurveyedRows, *, new: bool) -> None:
    """Refuse facts that are not about this source; ``new``: it makes a vocabulary, rather than use that of a store."""
    text.check()
    if text.n_features != source.n_features:
        raise InputError(
            f"the data have {source.n_features} columns, but {text.n_terms} terms in {text.n_regions} regions are "
            f"{text.n_features}; give the number of terms of one region"
        )
    if new and text.settings.tfidf and not has_frequencies(source):
        raise InputError("tf-idf needs document frequencies, and the source has none; count the terms first")


def write_vocabulary(
    folder: Folder, header: Header, source: SurveyedRows, *, in_order: bool
) -> tuple[Header, Receipts]:
    """Write what a store keeps of its terms besides their names; the header that says so.

    ``in_order`` says that columns are numbered in the order of their names. Where they are not, all names are held at
    once: such a vocabulary was handed over in memory.
    """
    receipts: Receipts = {}
    text = header.text
    if text is None:
        return header, receipts
    header = replace(header, text=replace(text, frequencies=has_frequencies(source), sorted_nbytes=None))
    frequencies = header.frequencies
    if frequencies is not None and has_frequencies(source):
        step = header.layout.row_chunk
        spans = ((first, min(first + step, text.n_terms)) for first in range(0, text.n_terms, step))
        receipts[frequencies.name] = write_numbers(folder, frequencies, (source.frequencies(*span) for span in spans))
    if header.names_nbytes is not None and not in_order and text.settings.hashed is None:
        header, more = _write_sorted(folder, header, text)
        receipts |= more
    return header, receipts


def _write_sorted(folder: Folder, header: Header, text: TextFacts) -> tuple[Header, Receipts]:
    names = names_reader(folder, header)
    assert names is not None
    terms = without_prefix(names.read(0, text.n_terms), len(column_prefix(text.regions, 0).encode()))
    assert header.text is not None
    header = replace(header, text=replace(header.text, sorted_nbytes=int(terms.offsets[-1] - terms.offsets[0])))
    assert header.sorted_terms is not None
    offsets, content, columns = header.sorted_terms
    order = sort_strings(terms)
    step = header.layout.row_chunk
    with StringsWriter(folder, offsets, content) as writer:
        for first in range(0, text.n_terms, step):
            writer.add(take(terms, order[first : first + step]))
    return header, {
        offsets.name: writer.offsets.receipts,
        content.name: writer.text.receipts,
        columns.name: write_numbers(folder, columns, [np.asarray(order, np.int64)]),
    }
