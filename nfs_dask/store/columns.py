"""Writing what a new store knows of its columns: their names, AnnData's index of them, and the vocabulary of texts.

A vocabulary has document frequencies, and the terms by name where columns have another order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nfs_dask.errors import InputError
from nfs_dask.files.folder import Folder
from nfs_dask.store.header import Header
from nfs_dask.store.layout import Texts
from nfs_dask.store.names import (
    Names,
    distinct_names,
    given_names,
    names_of,
    names_reader,
    write_column_ids,
    write_names,
)
from nfs_dask.store.receipts import Receipts
from nfs_dask.store.shards import write_numbers
from nfs_dask.store.stored_strings import StringsWriter
from nfs_dask.store.stored_terms import without_prefix
from nfs_dask.store.survey import SurveyedRows
from nfs_dask.store.text_facts import TextFacts
from nfs_dask.text.features import column_prefix
from nfs_dask.text.ordering import sort_strings, take


def check_text(text: TextFacts, source: SurveyedRows, *, new: bool) -> None:
    """Refuse facts that are not about this source; ``new``: it makes a vocabulary, rather than use that of a store."""
    text.check()
    if text.n_features != source.n_features:
        raise InputError(
            f"the data have {source.n_features} columns, but {text.n_terms} terms in {text.n_regions} regions are "
            f"{text.n_features}; give the number of terms of one region"
        )
    if new and text.settings.tfidf and source.frequencies(0, 0) is None:
        raise InputError("tf-idf needs document frequencies, and the source has none; count the terms first")


@dataclass(frozen=True, slots=True)
class ColumnsTask:
    """All columns of a new store."""

    source: SurveyedRows
    location: str
    header: Header
    names: Names | None  # None: those of the source, if it has any


def write_columns(task: ColumnsTask) -> tuple[Header, Receipts]:
    """The header that says what was written, and receipts."""
    source, folder, header, names = task.source, Folder(task.location), task.header, task.names
    receipts: Receipts = {}
    step = header.layout.row_chunk
    given = names_of(source, step) if names is None else given_names(names, step)
    if given is not None:
        trusted = names is None and source.strings(0, 0) is not None
        indexed = isinstance(header.column_ids, Texts)
        written = write_names(folder, header, distinct_names(given) if indexed and not trusted else given)
        header = replace(header, names_nbytes=written.nbytes)
        receipts = {header.name_offsets.name: written.offsets, header.name_bytes.name: written.text}
    write_column_ids(folder, header)
    in_order = names is None and source.names_sorted
    header, more = _write_vocabulary(folder, header, source, in_order=in_order)
    return header, receipts | more


def _write_vocabulary(
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
    counted = source.frequencies(0, 0) is not None
    header = replace(header, text=replace(text, frequencies=counted, sorted_nbytes=None))
    if (frequencies := header.frequencies) is not None:
        step = header.layout.row_chunk
        parts = (source.frequencies(first, min(first + step, text.n_terms)) for first in range(0, text.n_terms, step))
        numbers = (part for part in parts if part is not None)
        receipts[frequencies.name] = write_numbers(folder, frequencies, numbers)
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
