"""Documents that are the rows of CSV files (or TSV), which have a header row.

Quoting is that of RFC 4180, as Python's csv module reads it strictly: a field in double quotes may hold delimiters and
line ends, and a quote when doubled. A large file is cut where a row begins, which only a scan from the start of the
file can tell.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nfs_dask.arrays.kernels import kernel
from nfs_dask.documents.checking import Builder, check_columns
from nfs_dask.documents.compression import split_compression
from nfs_dask.documents.decoding import BOM
from nfs_dask.documents.document_source import BATCH_NBYTES, Batch, TextColumns
from nfs_dask.documents.line_pieces import LONGEST_LINE, FileDocuments, FilePart, blocks_of, can_be_cut, cut_lines, cuts
from nfs_dask.errors import InputError
from nfs_dask.files.data_files import open_binary

QUOTE = ord('"')


@dataclass(frozen=True, slots=True)
class DelimitedRows(FilePart):
    """Some rows of a file."""

    line: int = 1  # number of the first line
    header: tuple[str, ...] | None = None  # None: the part begins with it


class DelimitedDocuments(FileDocuments):
    """Each row is a document. The delimiter is a tab in ``.tsv`` and ``.tab`` files, and a comma in others.

    Blank lines between rows are passed over, as csv.DictReader does. CSV knows no missing values: an empty field is an
    empty text, in quotes or not.
    """

    format = "csv"

    def __init__(self, paths: tuple[str, ...], columns: TextColumns) -> None:
        super().__init__(paths, columns)
        check_columns(paths[0], _header(paths[0], columns.encoding), columns)

    def _parts(self, paths: tuple[str, ...], sizes: list[int]) -> Iterator[tuple[DelimitedRows, int]]:
        encoding = self.columns.encoding
        for path, size in zip(paths, sizes, strict=True):
            if not can_be_cut(path, size, encoding):
                yield from ((DelimitedRows(part.path), nbytes) for part, nbytes in cut_lines(path, size, encoding))
                continue
            header = _header(path, encoding)
            begins = [(0, 1), *row_starts(path, delimiter_of(path), cuts(size)[1:-1]), (size, 0)]
            for (start, line), (stop, _) in pairwise(begins):
                yield DelimitedRows(path, start, stop, line, header if start else None), stop - start

    def _read(self, part: DelimitedRows) -> Iterator[Batch]:
        builder = Builder(self.columns, lambda line: f"{part.path}, line {line}")
        records = _records(part, self.columns.encoding)
        header = part.header or _first(records, part.path)
        check_columns(part.path, header, self.columns)
        texts = [header.index(name) for name in self.columns.text]
        label = None if self.columns.label is None else header.index(self.columns.label)
        weight = None if self.columns.weight is None else header.index(self.columns.weight)
        for line, row in records:
            if isinstance(row, csv.Error):
                builder.bad(line, "broken", f"the row is not CSV ({row})")
            elif len(row) != len(header):
                builder.bad(line, "broken", f"the row has {len(row)} fields, the header has {len(header)}")
            else:
                # Bytes that are no UTF-8 come back as they were, for the check of the documents to find.
                encoded = [row[i].encode("utf-8", "surrogateescape") for i in texts]
                builder.add(
                    line, encoded, None if label is None else row[label], None if weight is None else row[weight]
                )
            if builder.full:
                yield builder.take()
        yield from builder.rest()


def delimiter_of(path: str) -> str:
    return "\t" if split_compression(path)[0].lower().endswith((".tsv", ".tab")) else ","


def _header(path: str, encoding: str) -> tuple[str, ...]:
    return _first(_records(DelimitedRows(path), encoding), path)


def _first(records: Iterator[tuple[int, list[str] | csv.Error]], path: str) -> tuple[str, ...]:
    line, row = next(records, (1, []))
    if isinstance(row, csv.Error):
        raise InputError(f"{path}, line {line}: the header row is not CSV ({row})")
    if not row:
        raise InputError(f"{path} is empty; its first row has to name the columns")
    return tuple(row)


def _records(part: DelimitedRows, encoding: str) -> Iterator[tuple[int, list[str] | csv.Error]]:
    """The rows of a part, each with the number of its first line; an error stands for a row that cannot be parsed."""
    # The limit is one for the process, and meant to stop rows that never end; raising it harms nobody.
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))
    reader = csv.reader(_lines(part, encoding), delimiter=delimiter_of(part.path), strict=True)
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


def row_starts(path: str, delimiter: str, targets: list[int]) -> list[tuple[int, int]]:
    """Where the first row at or after each target begins, and the number of its line; it follows a line feed."""
    found: list[tuple[int, int]] = []
    state = np.zeros(4, np.int64)
    wanted = iter(targets)
    target, before = next(wanted, None), 0
    with open_binary(path) as file:
        while target is not None and (chunk := file.read(BATCH_NBYTES)):
            text = np.frombuffer(chunk, np.uint8)
            at = len(BOM) if not before and chunk.startswith(BOM) else 0
            while target is not None and (at := _next_row(text, at, target - before, ord(delimiter), state)) >= 0:
                found.append((before + at, int(state[2]) + 1))
                while target is not None and target <= before + at:
                    target = next(wanted, None)
            before += len(chunk)
    return found


START, FIELD, QUOTED, CLOSING, BROKEN = range(5)  # what the next byte belongs to, as csv.reader sees it


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
