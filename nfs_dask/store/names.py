"""Names of the columns, kept so that a few of them can be read without the rest.

All names stand one after another as UTF-8 bytes, with the position of each in an array of offsets. They come as bytes
from sources of texts, which promise that they are unique, and as Python's strings from users and other sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError, StoreError
from nfs_dask.files.folder import Folder
from nfs_dask.store.header import Header
from nfs_dask.store.layout import Numbers, Texts
from nfs_dask.store.shards import ArrayWriter, Receipt
from nfs_dask.store.stored_strings import StringsReader, StringsWriter, same_strings
from nfs_dask.store.string_arrays import write_ids, write_strings
from nfs_dask.store.survey import SurveyedRows
from nfs_dask.text.strings import Strings

Names = Iterable[str | Sequence[str]]  # one by one, or in lists


@dataclass(frozen=True, slots=True)
class WrittenNames:
    """Size of the names, and the receipts of their two arrays."""

    nbytes: int
    offsets: list[Receipt]
    text: list[Receipt]


# Where names come from.


def names_of(source: SurveyedRows, step: int) -> Iterator[Strings] | None:
    """Names of all columns of a source, ``step`` of them at a time; None where it has none."""
    spans = [(first, min(first + step, source.n_features)) for first in range(0, source.n_features, step)]
    if source.strings(0, 0) is not None:
        return (strings for first, stop in spans if (strings := source.strings(first, stop)) is not None)
    if source.names(np.arange(1)) is None:
        return None
    return given_names((source.names(np.arange(first, stop)) or [] for first, stop in spans), step)


def given_names(names: Names, step: int) -> Iterator[Strings]:
    """Names that a user gave, ``step`` of them at a time; anything but text is refused."""
    single = (name for item in names for name in ([item] if isinstance(item, str) else _texts(item)))
    first = 0
    while chunk := list(islice(single, step)):
        yield Strings.of(_encoded(name, column) for column, name in enumerate(chunk, first))
        first += len(chunk)


def distinct_names(names: Iterator[Strings]) -> Iterator[Strings]:
    """The same names, until one comes again. Only for as many names as AnnData's index, and so memory, may hold."""
    seen: dict[bytes, int] = {}
    for chunk in names:
        for i in range(len(chunk)):
            column = len(seen)
            earlier = seen.setdefault(chunk[i], column)
            if earlier != column:
                name = chunk[i].decode()
                raise InputError(f"columns {earlier} and {column} are both named {name!r}; give each a name of its own")
        yield chunk


def _texts(names: Any) -> Iterator[str]:
    for name in names if isinstance(names, (list, tuple, np.ndarray)) else [names]:
        if not isinstance(name, str):
            raise InputError(f"a feature is named {name!r}, which is not text; give strings, [str(n) for n in names]")
        yield name


def _encoded(name: str, column: int) -> bytes:
    try:
        return name.encode()
    except UnicodeEncodeError:
        raise InputError(f"the name of column {column}, {name!r}, is not valid text; remove its surrogates") from None


# At rest.


def write_names(folder: Folder, header: Header, names: Iterable[Strings]) -> WrittenNames:
    """Write the names of all columns, and AnnData's index of them where it holds names.

    ``header`` says where they go and how many there must be; its ``names_nbytes`` is not known yet. Names come in
    chunks of the layout's ``row_chunk``.
    """
    index = header.column_ids
    count = 0
    with StringsWriter(folder, header.name_offsets, header.name_bytes) as writer:
        for chunk in names:
            _check_count(count + len(chunk), header.n_features, at_end=False)
            writer.add(chunk)
            if isinstance(index, Texts):
                write_strings(folder, index, count // index.chunk, chunk)
            count += len(chunk)
    _check_count(count, header.n_features, at_end=True)
    return WrittenNames(writer.nbytes, writer.offsets.receipts, writer.text.receipts)


def names_reader(folder: Folder, header: Header) -> StringsReader | None:
    """Reads the names of a store's columns; None where it has none."""
    return None if header.names_nbytes is None else StringsReader(folder, header.name_offsets, header.name_bytes)


def read_names(folder: Folder, header: Header, columns: Array) -> list[str] | None:
    """Names of the given columns, in their order; None where the store has none.

    Columns are taken chunk by chunk, so what is held at once is the names of one chunk of columns.
    """
    reader = names_reader(folder, header)
    if reader is None:
        return None
    columns = checked_columns(columns, header.n_features)
    names = [""] * len(columns)
    order = np.argsort(columns, kind="stable")
    chunks = columns[order] // header.layout.row_chunk
    for group in np.split(order, np.flatnonzero(np.diff(chunks)) + 1):
        if len(group):
            first, last = int(columns[group[0]]), int(columns[group[-1]])
            found = reader.read(first, last + 1)
            try:
                if np.array_equal(columns[group], np.arange(first, last + 1)):
                    decoded = found.to_list()  # three times as fast as one by one
                else:
                    decoded = [found[column - first].decode() for column in columns[group].tolist()]
            except UnicodeDecodeError as error:
                where = folder.path(reader.text.numbers.name)
                raise StoreError(f"{where} is damaged: {error.object!r} is not valid text; take a copy") from None
            for position, name in zip(group.tolist(), decoded, strict=True):
                names[position] = name
    return names


def checked_columns(columns: Array, n_features: int) -> Array:
    """Column numbers as int64; refuses those outside of the data."""
    columns = np.asarray(columns, dtype=np.int64)
    if len(columns) and not (int(columns.min()) >= 0 and int(columns.max()) < n_features):
        bad = int(columns[(columns < 0) | (columns >= n_features)][0])
        raise InputError(f"column {bad} was asked for; the data have {n_features} columns, 0 to {n_features - 1}")
    return columns


def check_same_names(folder: Folder, header: Header, names: Iterable[Strings]) -> None:
    """Refuse names that are not, one by one, those of the store."""
    reader = names_reader(folder, header)
    if reader is None:
        raise InputError(f"names were given, but {folder.location} has none; leave them out to append by column number")
    count = 0
    for theirs in names:
        _check_count(count + len(theirs), header.n_features, at_end=False)
        ours = reader.read(count, count + len(theirs))
        if not same_strings(ours, theirs):
            i = next(i for i in range(len(ours)) if ours[i] != theirs[i])
            raise InputError(
                f"column {count + i} is named {ours[i].decode(errors='replace')!r} in {folder.location} and "
                f"{theirs[i].decode()!r} in the rows to append; "
                "make them with the store's vocabulary, or ingest everything into a new store"
            )
        count += len(theirs)
    _check_count(count, header.n_features, at_end=True)


def _check_count(count: int, n_features: int, at_end: bool) -> None:
    if count > n_features or (at_end and count < n_features):
        given = f"{count}" if at_end else f"{count} or more"
        raise InputError(f"{given} names for {n_features} columns; give one name for each column, or none at all")


def write_column_ids(folder: Folder, header: Header) -> None:
    """Fill AnnData's index of the columns with their numbers, where it holds no names."""
    index = header.column_ids
    if isinstance(index, Numbers):
        step = index.chunk
        with ArrayWriter(folder, index, wanted=False) as writer:
            for first in range(0, index.length, step):
                writer.add(np.arange(first, min(first + step, index.length)))
    elif header.names_nbytes is None:
        write_ids(folder, index, 0, index.length)
