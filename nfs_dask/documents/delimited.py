"""Documents that are the rows of CSV files (or TSV), which have a header row.

Quoting is that of RFC 4180, as Python's csv module reads it strictly: a field in double quotes may hold delimiters and
line ends, and a quote when doubled. A large file is cut where a row begins, which only a scan from the start of the
file can tell. That scan is made of tasks: each goes through its piece from every state that it may begin in, and where
one ends tells in which of them the next began.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Any

import numpy as np

from nfs_dask.arrays.kernels import kernel
from nfs_dask.documents.checking import Builder, check_columns
from nfs_dask.documents.compression import split_compression
from nfs_dask.documents.decoding import BOM
from nfs_dask.documents.document_source import BATCH_NBYTES, Batch, TextColumns
from nfs_dask.documents.line_pieces import (
    LONGEST_LINE,
    FileDocuments,
    FilePart,
    blocks_of,
    can_be_cut,
    cut_lines,
    cuts,
    grouped,
)
from nfs_dask.errors import InputError
from nfs_dask.files.data_files import open_binary
from nfs_dask.sources.source import Mapping, one_by_one

QUOTE = ord('"')
LOOK_NBYTES = 1 << 16  # gone through at once in search of rows


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
        check_columns(paths[0], _header(paths[0], columns), columns)

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
            begins = [(0, 1), *_starts(islice(seen, len(cuts(size)) - 1)), (size, 0)]
            for (start, line), (stop, _) in pairwise(begins):
                yield DelimitedRows(path, start, stop, line, header if start else None), stop - start

    def _whole(self, path: str) -> DelimitedRows:
        return DelimitedRows(path)

    def _looks(self, path: str, size: int) -> Iterator[RowLook]:
        """The tasks that find out where rows begin in a large file."""
        return _row_looks(path, cuts(size)[1:-1], _delimiter(path, self.columns))

    def _read(self, part: DelimitedRows) -> Iterator[Batch]:
        builder = Builder(self.columns, lambda line: f"{part.path}, line {line}")
        records = _records(part, self.columns)
        header = part.header or _first(records, part.path)
        check_columns(part.path, header, self.columns)
        texts = [header.index(name) for name in self.columns.text]
        label = None if self.columns.label is None else header.index(self.columns.label)
        weight = None if self.columns.weight is None else header.index(self.columns.weight)
        others = [header.index(name) for name in self.columns.others]
        for line, row in records:
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


def delimiter_of(path: str) -> str:
    return "\t" if split_compression(path)[0].lower().endswith((".tsv", ".tab")) else ","


def _delimiter(path: str, columns: TextColumns) -> str:
    return columns.delimiter or delimiter_of(path)


def _header(path: str, columns: TextColumns) -> tuple[str, ...]:
    return _first(_records(DelimitedRows(path), columns), path)


def _first(records: Iterator[tuple[int, list[str] | csv.Error]], path: str) -> tuple[str, ...]:
    line, row = next(records, (1, []))
    if isinstance(row, csv.Error):
        raise InputError(f"{path}, line {line}: the header row is not CSV ({row})")
    if not row:
        raise InputError(f"{path} is empty; its first row has to name the columns")
    return tuple(row)


def _records(part: DelimitedRows, columns: TextColumns) -> Iterator[tuple[int, list[str] | csv.Error]]:
    """The rows of a part, each with the number of its first line; an error stands for a row that cannot be parsed."""
    # The limit is one for the process, and meant to stop rows that never end; raising it harms nobody.
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))
    reader = csv.reader(_lines(part, columns.encoding), delimiter=_delimiter(part.path, columns), strict=True)
    while True:
        line = part.line + reader.line_num
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield line, error
            continue
        if row:
            yield line, row


def _lines(part: DelimitedRows, encoding: str) -> Iterator[str]:
    for block in blocks_of(part, encoding, ends=b"\r\n"):
        yield from io.StringIO(block.decode("utf-8", "surrogateescape"), newline="")


@dataclass(frozen=True, slots=True)
class RowLook:
    """Bytes of a file in which the first row that begins is looked for."""

    path: str
    start: int
    stop: int | None  # None: the end of the file
    delimiter: str


@dataclass(frozen=True, slots=True)
class RowSeen:
    """What there is in some bytes, for whoever comes to them in a state."""

    start: int  # where the first row begins; -1: nowhere in them
    before: int  # line ends before it, or all of them
    lines: int  # line ends
    end: int  # the state after them


def row_starts(path: str, targets: list[int], mapping: Mapping) -> list[tuple[int, int]]:
    """Where the first row at or after each target begins, and the number of its line; it follows a line feed."""
    tasks = list(_row_looks(path, targets, delimiter_of(path)))
    return list(_starts(zip(tasks, mapping(look_for_rows, tasks), strict=True)))


def _row_looks(path: str, targets: list[int], delimiter: str) -> Iterator[RowLook]:
    for start, stop in pairwise([0, *targets, None]):
        assert start is not None
        yield RowLook(path, start, stop, delimiter)


def _starts(seen: Iterable[tuple[RowLook, list[RowSeen]]]) -> Iterator[tuple[int, int]]:
    """Where rows begin, by what was seen in one piece of a file after another."""
    state, lines = FRESH, 0
    for look, states in seen:
        found = states[state]
        if look.start and found.start >= 0:
            yield found.start, lines + found.before + 1
        state, lines = found.end, lines + found.lines


def look_for_rows(look: RowLook) -> list[RowSeen]:
    """What is seen from each state in which the bytes may begin.

    Soon most of them are the same: those within quotes, and the others. From there on, one is looked at for all.
    """
    delimiter = ord(look.delimiter)
    with open_binary(look.path) as file:
        file.seek(max(0, look.start - 1))
        previous = file.read(1)[0] if look.start else 0
        states = [np.array([state % FRESH, previous, 0, state < FRESH], np.int64) for state in range(FRESH + 1)]
        firsts = [(-1, 0)] * len(states)
        leaders = list(range(len(states)))  # the state that has become the same as each; a leader leads itself
        position, step = look.start, min(BATCH_NBYTES, LOOK_NBYTES)
        while chunk := file.read(step if look.stop is None else min(step, look.stop - position)):
            text = np.frombuffer(chunk, np.uint8)
            skipped = len(BOM) if not position and chunk.startswith(BOM) else 0
            alike: dict[tuple[int, int, bool], int] = {}
            for number, state in enumerate(states):
                if leaders[number] != number:
                    continue
                at = skipped
                if firsts[number][0] < 0 and (at := _next_row(text, at, 0, delimiter, state)) >= 0:
                    firsts[number] = (position + at, int(state[2]))
                if at >= 0:
                    _next_row(text, at, len(text), delimiter, state)
                leaders[number] = alike.setdefault((state[0], state[3], firsts[number][0] < 0), number)
            position += len(chunk)
    seen: list[RowSeen] = []
    for number, leader in enumerate(leaders):  # leaders come before those they lead
        state, (start, before) = states[number], firsts[number]
        if leader == number:
            seen.append(RowSeen(start, before, int(state[2]), int(state[0]) if state[3] else FRESH))
        else:
            seen.append(seen[leader] if start < 0 else replace(seen[leader], start=start, before=before))
    return seen


START, FIELD, QUOTED, CLOSING, BROKEN = range(5)  # what the next byte belongs to, as csv.reader sees it
FRESH = 5  # as at the start, and nothing but line ends has been seen of the file


@kernel
def _next_row(text, at, target, delimiter, state):
    """Position, from ``at`` on and no less than ``target``, where a row begins; -1: not in this text.

    ``state`` has where the parser is, the byte before, the line ends so far, and whether a row was begun.
    """
    mode, previous, lines, begun = state[0], state[1], state[2], state[3]
    for i in range(at, len(text)):
        byte = text[i]
        if previous == 10 or (previous == 13 and byte != 10):
            lines += 1
            if mode == START and previous == 10 and begun and i >= target:
                state[0], state[1], state[2], state[3] = mode, 0, lines, begun
                return i
        if byte == 10 or byte == 13:
            if mode != QUOTED:
                mode = START
        else:
            begun = 1
            if mode == QUOTED:
                if byte == QUOTE:
                    mode = CLOSING
            elif mode == CLOSING and byte == QUOTE:
                mode = QUOTED
            elif mode == CLOSING and byte != delimiter:
                mode = BROKEN
            elif mode == START and byte == QUOTE:
                mode = QUOTED
            elif mode != BROKEN:
                mode = START if byte == delimiter else FIELD
        previous = byte
    state[0], state[1], state[2], state[3] = mode, previous, lines, begun
    return -1
