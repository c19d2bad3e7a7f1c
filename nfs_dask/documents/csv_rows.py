"""Documents that are the rows of CSV files (or TSV), which have a header row.

Quoting is that of RFC 4180, as Python's csv module reads it strictly: a field in double quotes may hold delimiters and
line ends, and a quote when doubled. Arrow reads the rows that this module has found to be so; other rows are left to
Python's reader, which says what is wrong with them.

Only a scan from the start of a file tells where its rows begin. For large files that scan is made of tasks: each goes
through a piece from every state that it may begin in, and the end of one piece tells in which state the next began.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice, pairwise
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.arrays.compiling import kernel, kernel_part
from nfs_dask.arrays.kernels import read_only
from nfs_dask.documents.arrow import batches_of
from nfs_dask.documents.checking import BATCH_DOCUMENTS, Builder, check_columns
from nfs_dask.documents.decoding import BOM
from nfs_dask.documents.document_source import BATCH_NBYTES, Batch, TextColumns
from nfs_dask.documents.lines import (
    ARROW_NBYTES,
    LONGEST_LINE,
    FileDocuments,
    FilePart,
    blocks_of,
    can_be_cut,
    cut_lines,
    cuts,
    grouped,
    split_compression,
)
from nfs_dask.errors import InputError
from nfs_dask.files.data_files import open_binary
from nfs_dask.sources.source import Mapping, one_by_one

LF, CR, QUOTE = 10, 13, ord('"')
SCAN_NBYTES = 1 << 16  # of a file, scanned from every state before more is read
_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)?")


@dataclass(frozen=True, slots=True)
class CsvPart(FilePart):
    """Some rows of a file."""

    line: int = 1  # number of the first line
    header: tuple[str, ...] | None = None  # None: the part begins with it


class CsvDocuments(FileDocuments):
    """Each row is a document. Unless it is given, the delimiter is a tab in ``.tsv`` and ``.tab`` files, else a comma.

    Blank lines between rows are passed over, as csv.DictReader does. CSV knows no missing values: an empty field is an
    empty text, in quotes or not.
    """

    format = "csv"
    import_nbytes = ARROW_NBYTES

    def __init__(self, paths: tuple[str, ...], columns: TextColumns) -> None:
        super().__init__(paths, columns)
        self.there = _checked(paths[0], self.names_in(paths[0], columns), columns)

    @staticmethod
    def names_in(path: str, columns: TextColumns) -> tuple[str, ...]:
        """The columns of a file."""
        return _header(_unread(CsvPart(path), columns), path, columns)

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
            self.pieces = grouped(self._parts(*self._uncut, mapping=mapping))

    def _parts(
        self, paths: tuple[str, ...], sizes: list[int], mapping: Mapping = one_by_one
    ) -> Iterator[tuple[CsvPart, int]]:
        encoding = self.columns.encoding
        files = [(path, size, can_be_cut(path, size, encoding)) for path, size in zip(paths, sizes, strict=True)]
        tasks = [task for path, size, cut in files if cut for task in self._scans(path, size)]
        scanned = iter(zip(tasks, mapping(scan, tasks) if tasks else [], strict=True))
        for path, size, cut in files:
            if not cut:
                yield from ((CsvPart(part.path), nbytes) for part, nbytes in cut_lines(path, size, encoding))
                continue
            header = self.names_in(path, self.columns)
            begins = [(0, 1), *starts(islice(scanned, len(cuts(size)) - 1)), (size, 0)]
            for (start, line), (stop, _) in pairwise(begins):
                yield CsvPart(path, start, stop, line, header if start else None), stop - start

    def _scans(self, path: str, size: int) -> Iterator[CsvScan]:
        targets = cuts(size)[1:-1]
        for start, stop in zip([0, *targets], [*targets, None], strict=True):
            yield CsvScan(path, start, stop, _delimiter(path, self.columns))

    def _whole(self, path: str) -> CsvPart:
        return CsvPart(path)

    def _read(self, part: CsvPart) -> Iterator[Batch]:
        unread, delimiter = _unread(part, self.columns), _delimiter(part.path, self.columns)
        header = part.header or _header(unread, part.path, self.columns)
        _checked(part.path, header, self.columns)
        odd = 1
        while unread.nbytes or unread.more():
            content, lines, broken = unread.regular(delimiter, len(header))
            if len(lines):
                table = _by_arrow(content, delimiter, header, self.columns)
                yield from batches_of(table, self.columns, partial(_where, part, lines))
            elif unread.nbytes and (broken or unread.nbytes > BATCH_NBYTES or not unread.more()):
                # A row that never ends is not waited for. The more rows are odd, the fewer are looked at twice.
                yield from self._strictly(islice(records(unread, delimiter), odd), part, header)
                odd *= 2
            else:
                odd = 1

    def _strictly(self, found: Iterable[Record], part: CsvPart, header: tuple[str, ...]) -> Iterator[Batch]:
        """Documents of rows that Python's reader has read, or says what is wrong with."""
        columns = self.columns
        builder = Builder(columns, lambda line: f"{part.path}, line {line}")
        place = {name: header.index(name) for name in columns.names}
        for line, row in found:
            if isinstance(row, csv.Error):
                builder.bad(line, "broken", f"the row is not CSV ({row})")
            elif len(row) != len(header):
                builder.bad(line, "broken", f"the row has {len(row)} fields, the header has {len(header)}")
            else:
                # Bytes that are no UTF-8 come back as they were, for the check of the documents to find.
                texts = [row[place[name]].encode("utf-8", "surrogateescape") for name in columns.text]
                label, weight = (row[place[name]] if name else None for name in (columns.label, columns.weight))
                builder.add(line, texts, label, weight, [row[place[name]] for name in columns.others])
            if builder.full:
                yield builder.take()
        yield from builder.rest()


def _by_arrow(content: Any, delimiter: str, header: tuple[str, ...], columns: TextColumns) -> Any:
    """A table of the columns that are asked for, as bytes, of rows that are as csv.reader wants them."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    numbers = {name: str(header.index(name)) for name in columns.names}
    table = arrow_csv.read_csv(
        pa.py_buffer(content),
        arrow_csv.ReadOptions(
            use_threads=False, block_size=len(content), column_names=[str(i) for i in range(len(header))]
        ),
        arrow_csv.ParseOptions(delimiter=delimiter),  # where rows end, was found before
        arrow_csv.ConvertOptions(
            check_utf8=False,
            column_types=dict.fromkeys(numbers.values(), pa.binary()),
            include_columns=list(numbers.values()),
        ),
        memory_pool=pa.system_memory_pool(),
    )
    return table.rename_columns(list(numbers))


def _checked(path: str, header: Sequence[str], columns: TextColumns) -> Sequence[str]:
    """Return the columns, or refuse a header without those that are asked for, which another delimiter may find."""
    asked, delimiter = set(columns.names), _delimiter(path, columns)
    line = delimiter.join(header)
    for other, name in _DELIMITERS.items() if not asked <= set(header) else ():
        if other != delimiter and other in line and (len(header) == 1 or asked <= set(line.split(other))):
            typed = "\\t" if other == "\t" else other
            raise InputError(f'{path} looks {name}-separated: it begins with {line[:80]!r}; add delimiter="{typed}"')
    return check_columns(path, header, columns)


def _delimiter(path: str, columns: TextColumns) -> str:
    tabs = split_compression(path)[0].lower().endswith((".tsv", ".tab"))
    return columns.delimiter or ("\t" if tabs else ",")


def _where(part: CsvPart, lines: Array, i: int) -> str:
    return f"{part.path}, line {lines[i]}"


def _unread(part: CsvPart, columns: TextColumns) -> UnreadRows:
    return UnreadRows(blocks_of(part, columns.encoding, ends=b"\r\n"), part.line)


def _header(unread: UnreadRows, path: str, columns: TextColumns) -> tuple[str, ...]:
    line, row = next(records(unread, _delimiter(path, columns)), (1, []))
    if isinstance(row, csv.Error):
        raise InputError(f"{path}, line {line}: the header row is not CSV ({row})")
    if not row:
        raise InputError(f"{path} is empty; its first row has to name the columns")
    return tuple(row)


# Rows

Record = tuple[int, list[str] | csv.Error]  # the number of its first line, and its fields or why it has none


@dataclass
class UnreadRows:
    """The text of a part from the first row on that was not read yet, of which some blocks of lines are at hand."""

    blocks: Iterator[bytes]
    line: int  # number of the next one
    text: bytes = b""
    at: int = 0

    @property
    def nbytes(self) -> int:
        """At hand."""
        return len(self.text) - self.at

    def more(self) -> bool:
        """Have one more block at hand, or the last line ended; False where neither can be."""
        rest = self.text[self.at :]
        more = next(self.blocks, b"") or (b"\n" if rest and rest[-1] not in (LF, CR) else b"")
        self.text, self.at = rest + more, 0
        return bool(more)

    def lines(self) -> Iterator[str]:
        """Line after line, each with its end, and bytes that are no UTF-8 as halves of characters."""
        while self.nbytes or self.more():
            found = _LINE.match(self.text, self.at)
            assert found is not None
            self.at = found.end()
            self.line += 1
            yield found.group().decode("utf-8", "surrogateescape")

    def regular(self, delimiter: str, width: int) -> tuple[memoryview, Array, bool]:
        """Take the next rows at hand, up to the first that is not plain CSV with so many fields.

        Returns
        -------
        their text, the number of the first line of each, and whether such a row follows
        """
        lines, start = np.empty(BATCH_DOCUMENTS, np.int64), self.at
        text = read_only(np.frombuffer(self.text, np.uint8))
        n, end, passed, broken = regular_rows(text, start, ord(delimiter), width, lines)
        if end - start > LONGEST_LINE or self.text.startswith(BOM, start):  # which Arrow would leave out
            return memoryview(b""), lines[:0], True
        lines += self.line
        self.at, self.line = end, self.line + passed
        return memoryview(self.text)[start:end], lines[:n], broken


def records(unread: UnreadRows, delimiter: str) -> Iterator[Record]:
    """The rows as Python reads them; an error stands for a row that cannot be parsed."""
    # The limit is one for the process, and meant to stop rows that never end; raising it harms nobody.
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))
    reader = csv.reader(unread.lines(), delimiter=delimiter, strict=True)
    while True:
        line = unread.line
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield line, error
            continue
        if row:
            yield line, row


START, FIELD, QUOTED, CLOSING, BROKEN = range(5)  # what the next byte belongs to, as csv.reader sees it
FRESH = 5  # as at the start, and nothing but line ends has been seen of the file


@kernel_part
def _state_after(state, byte, delimiter):
    """The state after a byte that ends no line; `START` after a delimiter only."""
    if state == QUOTED:
        return CLOSING if byte == QUOTE else QUOTED
    if byte == QUOTE and state in (START, CLOSING):
        return QUOTED
    if state == BROKEN or (state == CLOSING and byte != delimiter):
        return BROKEN
    return START if byte == delimiter else FIELD


@kernel_part
def _end_of_run(text, i, state, delimiter):
    """The last of the bytes from ``i`` on that leave the state as it is."""
    if state in (FIELD, QUOTED):
        last = QUOTE if state == QUOTED else delimiter
        while i + 1 < len(text) and text[i + 1] != last and text[i + 1] != LF and text[i + 1] != CR:
            i += 1
    return i


@kernel
def regular_rows(text, at, delimiter, width, lines):
    """Rows of ``width`` fields that are plain CSV, and end; ``lines`` gets the line ends before each.

    Returns
    -------
    rows, position and line ends after them, and whether a row follows that is not so
    """
    n, end, passed, before, state, fields = 0, at, 0, 0, START, 0
    i = at
    while i < len(text) and n < len(lines):
        byte = text[i]
        if byte in (LF, CR):
            passed += not (byte == LF and i > 0 and text[i - 1] == CR)
            if state != QUOTED:
                if fields and (fields != width or state == BROKEN):
                    return n, end, before, True
                n += fields > 0
                end, before, state, fields = i + 1, passed, START, 0
        else:
            if not fields:
                lines[n], fields = passed, 1
            state = _state_after(state, byte, delimiter)
            fields += state == START
            i = _end_of_run(text, i, state, delimiter)
        i += 1
    return n, end, before, False


# Where rows of large files begin


@dataclass(frozen=True, slots=True)
class CsvScan:
    """Bytes of a file in which the first row that begins is looked for."""

    path: str
    start: int
    stop: int | None  # None: the end of the file
    delimiter: str


@dataclass(frozen=True, slots=True)
class BytesScanned:
    """Some bytes of a file, for a scan that comes to them in one of the states."""

    start: int  # where the first row begins; -1: nowhere in them
    before: int  # line ends before it, or all of them
    lines: int  # line ends
    end: int  # the state after them


def starts(scanned: Iterable[tuple[CsvScan, list[BytesScanned]]]) -> Iterator[tuple[int, int]]:
    """Where rows begin, and their lines, by what was seen in one piece of a file after another."""
    state, lines = FRESH, 0
    for task, states in scanned:
        found = states[state]
        if task.start and found.start >= 0:
            yield found.start, lines + found.before + 1
        state, lines = found.end, lines + found.lines


def scan(task: CsvScan) -> list[BytesScanned]:
    """Go through some bytes from each state in which they may begin.

    Soon most of these are the same: those within quotes, and the others. From there on, one is followed for all.
    """
    delimiter = ord(task.delimiter)
    with open_binary(task.path) as file:
        file.seek(max(0, task.start - 1))
        previous = file.read(1)[0] if task.start else 0
        states = [np.array([state % FRESH, previous, 0, state < FRESH], np.int64) for state in range(FRESH + 1)]
        firsts = [(-1, 0)] * len(states)
        leaders = list(range(len(states)))  # the state that has become the same as each; a leader leads itself
        position, step = task.start, min(BATCH_NBYTES, SCAN_NBYTES)
        while chunk := file.read(step if task.stop is None else min(step, task.stop - position)):
            text = read_only(np.frombuffer(chunk, np.uint8))
            skipped = len(BOM) if not position and chunk.startswith(BOM) else 0
            alike: dict[tuple[int, int, bool], int] = {}
            for number, state in enumerate(states):
                if leaders[number] != number:
                    continue
                at = skipped
                if firsts[number][0] < 0 and (at := next_row(text, at, 0, delimiter, state)) >= 0:
                    firsts[number] = (position + at, int(state[2]))
                if at >= 0:
                    next_row(text, at, len(text), delimiter, state)
                leaders[number] = alike.setdefault((state[0], state[3], firsts[number][0] < 0), number)
            position += len(chunk)
    seen: list[BytesScanned] = []
    for number, leader in enumerate(leaders):  # leaders come before those they lead
        state, (start, before) = states[number], firsts[number]
        if leader == number:
            seen.append(BytesScanned(start, before, int(state[2]), int(state[0]) if state[3] else FRESH))
        else:
            seen.append(seen[leader] if start < 0 else replace(seen[leader], start=start, before=before))
    return seen


@kernel
def next_row(text, at, target, delimiter, place):
    """Position, from ``at`` on and no less than ``target``, where a row begins after a line feed; -1: not in this text.

    ``place`` has the state, the byte before, the line ends so far, and whether a row was begun.
    """
    state, previous, lines, begun = place[0], place[1], place[2], place[3]
    i = at
    while i < len(text):
        byte = text[i]
        if previous == LF or (previous == CR and byte != LF):
            lines += 1
            if state == START and previous == LF and begun and i >= target:
                place[0], place[1], place[2], place[3] = state, 0, lines, begun
                return i
        if byte in (LF, CR):
            state = QUOTED if state == QUOTED else START
        else:
            begun, state = 1, _state_after(state, byte, delimiter)
            i = _end_of_run(text, i, state, delimiter)
            byte = text[i]
        previous = byte
        i += 1
    place[0], place[1], place[2], place[3] = state, previous, lines, begun
    return -1
