"""Documents that are the rows of CSV files (or TSV), which have a header row.

Quoting is that of RFC 4180, as Python's csv module reads it strictly: a field in double quotes may hold delimiters and
line ends, and a quote when doubled.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, pairwise
from typing import Any

from nfs_dask.documents.checking import Builder, check_columns
from nfs_dask.documents.compression import split_compression
from nfs_dask.documents.csv_rows import RegularRows, UnreadRows, records
from nfs_dask.documents.document_source import Batch, TextColumns
from nfs_dask.documents.found_rows import where_of
from nfs_dask.documents.line_pieces import (
    FileDocuments,
    FilePart,
    blocks_of,
    can_be_cut,
    cut_lines,
    cuts,
    grouped,
)
from nfs_dask.documents.row_starts import RowLook, look_for_rows, row_looks, starts
from nfs_dask.errors import InputError
from nfs_dask.sources.source import Mapping, one_by_one

_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
Record = tuple[int, list[str] | csv.Error]  # the number of its first line, and its fields or why it has none


@dataclass(frozen=True, slots=True)
class DelimitedRows(FilePart):
    """Some rows of a file."""

    line: int = 1  # number of the first line
    header: tuple[str, ...] | None = None  # None: the part begins with it


class DelimitedDocuments(FileDocuments):
    """Each row is a document. Unless it is given, the delimiter is a tab in ``.tsv`` and ``.tab`` files, else a comma.

    Blank lines between rows are passed over, as csv.DictReader does. CSV knows no missing values: an empty field is an
    empty text, in quotes or not.
    """

    format = "csv"

    def __init__(self, paths: tuple[str, ...], columns: TextColumns) -> None:
        super().__init__(paths, columns)
        self.there = _checked(paths[0], _header(paths[0], columns), columns)

    @staticmethod
    def names_in(path: str, columns: TextColumns) -> Sequence[str]:
        """The columns of a file."""
        return _header(path, columns)

    def _cut(self, paths: tuple[str, ...], sizes: list[int]) -> None:
        """Leave large files for later: where to cut them, they have to be read for."""
        self._uncut: tuple[tuple[str, ...], list[int]] | None = (paths, sizes)
        if not any(can_be_cut(path, size, self.columns.encoding) for path, size in zip(paths, sizes, strict=True)):
            self.look(one_by_one)

    @property
    def pieces(self) -> Sequence[Any]:
        self.look(one_by_one)
        return self._pieces

    @pieces.setter
    def pieces(self, pieces: Sequence[Any]) -> None:
        self._pieces, self._uncut = pieces, None

    def look(self, mapping: Mapping) -> None:
        if self._uncut is not None:
            self.pieces = grouped(self._parts(*self._uncut, mapping))

    def _parts(
        self, paths: tuple[str, ...], sizes: list[int], mapping: Mapping = one_by_one
    ) -> Iterator[tuple[DelimitedRows, int]]:
        encoding = self.columns.encoding
        large = [can_be_cut(path, size, encoding) for path, size in zip(paths, sizes, strict=True)]
        files = list(zip(paths, sizes, large, strict=True))
        tasks = [task for path, size, cut in files if cut for task in self._looks(path, size)]
        seen = iter(zip(tasks, mapping(look_for_rows, tasks) if tasks else [], strict=True))
        for path, size, cut in files:
            if not cut:
                yield from ((DelimitedRows(part.path), nbytes) for part, nbytes in cut_lines(path, size, encoding))
                continue
            header = _header(path, self.columns)
            begins = [(0, 1), *starts(islice(seen, len(cuts(size)) - 1)), (size, 0)]
            for (start, line), (stop, _) in pairwise(begins):
                yield DelimitedRows(path, start, stop, line, header if start else None), stop - start

    def _whole(self, path: str) -> DelimitedRows:
        return DelimitedRows(path)

    def _looks(self, path: str, size: int) -> Iterator[RowLook]:
        """The tasks that find out where rows begin in a large file."""
        return row_looks(path, cuts(size)[1:-1], _delimiter(path, self.columns))

    def _read(self, part: DelimitedRows) -> Iterator[Batch]:
        unread, delimiter = _unread(part, self.columns), _delimiter(part.path, self.columns)
        header = part.header or _first(records(unread, delimiter), part.path)
        _checked(part.path, header, self.columns)
        regular, odd = RegularRows(self.columns, header, delimiter), 1
        while unread.nbytes or unread.more():
            found, lines = regular.find(unread)
            if len(lines):
                yield found.batch(where_of(lines, partial(_where, part)))
            elif regular.need_more(unread):
                unread.more()
                odd = 1
            elif unread.nbytes:
                # The more rows are odd, the fewer are looked at twice.
                yield from self._strictly(islice(records(unread, delimiter), odd), part, header)
                odd *= 2

    def _strictly(self, found: Iterable[Record], part: DelimitedRows, header: tuple[str, ...]) -> Iterator[Batch]:
        """Documents of rows that Python's reader has read, or says what is wrong with."""
        builder = Builder(self.columns, partial(_where, part))
        texts = [header.index(name) for name in self.columns.text]
        label = None if self.columns.label is None else header.index(self.columns.label)
        weight = None if self.columns.weight is None else header.index(self.columns.weight)
        others = [header.index(name) for name in self.columns.others]
        for line, row in found:
            if isinstance(row, csv.Error):
                builder.bad(line, "broken", f"the row is not CSV ({row})")
            elif len(row) != len(header):
                builder.bad(line, "broken", f"the row has {len(row)} fields, the header has {len(header)}")
            else:
                # Bytes that are no UTF-8 come back as they were, for the check of the documents to find.
                encoded = [row[i].encode("utf-8", "surrogateescape") for i in texts]
                own = (None if label is None else row[label], None if weight is None else row[weight])
                builder.add(line, encoded, *own, [row[i] for i in others])
            if builder.full:
                yield builder.take()
        yield from builder.rest()


def _checked(path: str, header: Sequence[str], columns: TextColumns) -> Sequence[str]:
    """Return the columns, or refuse a header without those that are asked for, which another delimiter may find."""
    asked = {*columns.text, *columns.others, columns.label, columns.weight} - {None}
    delimiter = _delimiter(path, columns)
    line = delimiter.join(header)
    for other, name in _DELIMITERS.items() if not asked <= set(header) else ():
        if other != delimiter and other in line and (len(header) == 1 or asked <= set(line.split(other))):
            typed = "\\t" if other == "\t" else other
            raise InputError(f'{path} looks {name}-separated: it begins with {line[:80]!r}; add delimiter="{typed}"')
    return check_columns(path, header, columns)


def delimiter_of(path: str) -> str:
    return "\t" if split_compression(path)[0].lower().endswith((".tsv", ".tab")) else ","


def _delimiter(path: str, columns: TextColumns) -> str:
    return columns.delimiter or delimiter_of(path)


def _header(path: str, columns: TextColumns) -> tuple[str, ...]:
    return _first(records(_unread(DelimitedRows(path), columns), _delimiter(path, columns)), path)


def _unread(part: DelimitedRows, columns: TextColumns) -> UnreadRows:
    return UnreadRows(blocks_of(part, columns.encoding, ends=b"\r\n"), part.line)


def _where(part: DelimitedRows, line: int) -> str:
    return f"{part.path}, line {line}"


def _first(found: Iterator[Record], path: str) -> tuple[str, ...]:
    line, row = next(found, (1, []))
    if isinstance(row, csv.Error):
        raise InputError(f"{path}, line {line}: the header row is not CSV ({row})")
    if not row:
        raise InputError(f"{path} is empty; its first row has to name the columns")
    return tuple(row)
