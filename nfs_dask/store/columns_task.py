"""Writing what a new store knows of its columns: their names, AnnData's index of them, and the vocabulary of texts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nfs_dask.files.folder import Folder
from nfs_dask.store.header import Header
from nfs_dask.store.layout import Texts
from nfs_dask.store.names import (
    Names,
    distinct_names,
    given_names,
    names_of,
    write_column_ids,
    write_names,
)
from nfs_dask.store.receipts import Receipts
from nfs_dask.store.survey import SurveyedRows
from nfs_dask.store.vocabulary import write_vocabulary


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
    header, more = write_vocabulary(folder, header, source, in_order=in_order)
    return header, receipts | more
