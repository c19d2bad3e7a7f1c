"""Names of the columns, kept so that a few of them can be read without the rest.

All names stand one after another as UTF-8 bytes, with the position of each in an array of offsets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from nfs_dask.block import Array
from nfs_dask.errors import InputError, StoreError
from nfs_dask.storage.folder import Folder
from nfs_dask.storage.header import Header
from nfs_dask.storage.layout import Numbers, Texts
from nfs_dask.storage.shards import ArrayWriter, Receipt, ShardReader
from nfs_dask.storage.texts import write_ids, write_texts


@dataclass(frozen=True, slots=True)
class WrittenNames:
    """Size of the names, and the receipts of their two arrays."""

    nbytes: int
    offsets: list[Receipt]
    text: list[Receipt]


def in_chunks(names: Iterable[str | Sequence[str]], size: int) -> Iterator[list[str]]:
    """Names in lists of ``size``, from single names or from lists of them."""
    single = (name for item in names for name in ([item] if isinstance(item, str) else _texts(item)))
    while chunk := list(islice(single, size)):
        yield chunk


def _texts(names: Any) -> Iterator[str]:
    for name in names if isinstance(names, (list, tuple, np.ndarray)) else [names]:
        if not isinstance(name, str):
            raise InputError(f"a feature is named {name!r}, which is not text; give strings, [str(n) for n in names]")
        yield name


def write_names(folder: Folder, header: Header, names: Iterable[str | Sequence[str]]) -> WrittenNames:
    """Write the names of all columns, and AnnData's index of them where it holds names.

    ``header`` says where they go and how many there must be; its ``names_nbytes`` is not known yet.
    """
    index = header.column_ids
    unique = _Unique()
    nbytes = count = 0
    with ExitStack() as stack:
        offsets = stack.enter_context(ArrayWriter(folder, header.name_offsets))
        text = stack.enter_context(ArrayWriter(folder, header.name_bytes))
        offsets.add(np.zeros(1, np.int64))
        for chunk in in_chunks(names, header.layout.row_chunk):
            encoded = [_encoded(name, count + i) for i, name in enumerate(chunk)]
            ends = nbytes + np.cumsum([len(name) for name in encoded], dtype=np.int64)
            offsets.add(ends)
            text.add(np.frombuffer(b"".join(encoded), np.uint8))
            if isinstance(index, Texts):
                unique.check(chunk, count)
                write_texts(folder, index, count // index.chunk, chunk)
            nbytes, count = int(ends[-1]), count + len(chunk)
            _check_count(count, header.n_features, at_end=False)
    _check_count(count, header.n_features, at_end=True)
    return WrittenNames(nbytes, offsets.receipts, text.receipts)


def read_names(folder: Folder, header: Header, columns: Array) -> list[str] | None:
    """Names of the given columns, in their order; None where the store has none.

    Columns are taken chunk by chunk, so what is held at once is the names of one chunk of columns.
    """
    if header.names_nbytes is None:
        return None
    columns = checked_columns(columns, header.n_features)
    offsets, text = ShardReader(folder, header.name_offsets), ShardReader(folder, header.name_bytes)
    names = [""] * len(columns)
    order = np.argsort(columns, kind="stable")
    chunks = columns[order] // header.layout.row_chunk
    for group in np.split(order, np.flatnonzero(np.diff(chunks)) + 1):
        if len(group):
            _read_group(offsets, text, columns, group, names)
    return names


def checked_columns(columns: Array, n_features: int) -> Array:
    """Column numbers as int64; refuses those outside of the data."""
    columns = np.asarray(columns, dtype=np.int64)
    if len(columns) and not (int(columns.min()) >= 0 and int(columns.max()) < n_features):
        bad = int(columns[(columns < 0) | (columns >= n_features)][0])
        raise InputError(f"column {bad} was asked for; the data have {n_features} columns, 0 to {n_features - 1}")
    return columns


def check_same_names(folder: Folder, header: Header, names: Iterable[str | Sequence[str]]) -> None:
    """Refuse names that are not, one by one, those of the store."""
    count = 0
    for chunk in in_chunks(names, header.layout.row_chunk):
        here = np.arange(count, min(count + len(chunk), header.n_features))
        stored = read_names(folder, header, here)
        if stored is None:
            raise InputError(
                f"names were given, but {folder.location} has none; leave them out to append by column number"
            )
        for i, (ours, theirs) in enumerate(zip(stored, chunk, strict=False)):
            if ours != theirs:
                raise InputError(
                    f"column {count + i} is named {ours!r} in {folder.location} and {theirs!r} in the rows to append; "
                    "make them with the store's vocabulary, or ingest everything into a new store"
                )
        count += len(chunk)
        _check_count(count, header.n_features, at_end=False)
    _check_count(count, header.n_features, at_end=True)


def _read_group(offsets: ShardReader, text: ShardReader, columns: Array, group: Array, names: list[str]) -> None:
    wanted = columns[group]
    first = int(wanted[0])
    ends = offsets.read(first, int(wanted[-1]) + 2)
    if np.any(ends[1:] < ends[:-1]):
        raise StoreError(f"{offsets.folder.path(offsets.numbers.name)} is damaged: its offsets are not in order")
    start = int(ends[0])
    content = text.read(start, int(ends[-1])).tobytes()
    for position, column in zip(group, wanted - first, strict=True):
        names[position] = content[int(ends[column]) - start : int(ends[column + 1]) - start].decode()


def _encoded(name: object, column: int) -> bytes:
    if not isinstance(name, str):
        raise InputError(f"the name of column {column} is {name!r}; names are strings")
    try:
        return name.encode()
    except UnicodeEncodeError:
        raise InputError(f"the name of column {column}, {name!r}, is not valid text; remove its surrogates") from None


def _check_count(count: int, n_features: int, at_end: bool) -> None:
    if count > n_features or (at_end and count < n_features):
        given = f"{count}" if at_end else f"{count} or more"
        raise InputError(f"{given} names for {n_features} columns; give one name for each column, or none at all")


class _Unique:
    """Refuses a name that came before. Asked only where AnnData's index, and so a bounded set, holds the names."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def check(self, chunk: list[str], first: int) -> None:
        for column, name in enumerate(chunk, first):
            earlier = self._seen.setdefault(name, column)
            if earlier != column:
                raise InputError(f"columns {earlier} and {column} are both named {name!r}; give each a name of its own")


def write_column_ids(folder: Folder, header: Header) -> None:
    """Fill AnnData's index of the columns with their numbers, where it holds no names."""
    index = header.column_ids
    if isinstance(index, Numbers):
        step = index.chunk
        with ArrayWriter(folder, index) as writer:
            for first in range(0, index.length, step):
                writer.add(np.arange(first, min(first + step, index.length)))
    elif header.names_nbytes is None:
        write_ids(folder, index, 0, index.length)
