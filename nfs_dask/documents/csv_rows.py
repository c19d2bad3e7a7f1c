"""The rows of CSV, read by compiled code as long as they are regular, and by Python's csv module where they are not."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.arrays.kernels import read_only
from nfs_dask.documents import field_kernels as kernels
from nfs_dask.documents.document_source import BATCH_NBYTES, TextColumns
from nfs_dask.documents.found_rows import MOST_ROWS, FoundRows, Reading
from nfs_dask.documents.line_pieces import LONGEST_LINE

_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)?")


@dataclass
class UnreadRows:
    """The text of a part from the first row on that was not read yet, of which some blocks of lines are at hand."""

    blocks: Iterator[bytes]
    line: int  # number of the next one
    text: bytes = b""
    at: int = 0
    complete: bool = False  # nothing follows the text

    @property
    def nbytes(self) -> int:
        """At hand."""
        return len(self.text) - self.at

    def more(self) -> bool:
        """Have one more block at hand, if there is one."""
        block = next(self.blocks, b"")
        self.complete = not block
        self.text, self.at = self.text[self.at :] + block, 0
        return bool(block)

    def lines(self) -> Iterator[str]:
        """Line after line, each with its end, and bytes that are no UTF-8 as halves of characters."""
        while self.nbytes or self.more():
            found = _LINE.match(self.text, self.at)
            assert found is not None
            self.at = found.end()
            self.line += 1
            yield found.group().decode("utf-8", "surrogateescape")


def records(unread: UnreadRows, delimiter: str) -> Iterator[tuple[int, list[str] | csv.Error]]:
    """The rows, each with the number of its first line; an error stands for a row that cannot be parsed."""
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


@dataclass
class RegularRows:
    """Finds rows with as many fields as the header, as they stand in a text, for as long as nothing is odd."""

    columns: TextColumns
    header: tuple[str, ...]
    delimiter: str
    why: int = field(default=kernels.DONE, init=False)  # no more rows were found the last time

    def __post_init__(self) -> None:
        self._reading = Reading(self.columns, kernels.copy_fields, kernels.copy_fields, _decoded)
        names = self._reading.names
        self._slots = np.full(len(self.header), -1, np.int32)
        self._slots[[self.header.index(name) for name in names]] = range(len(names))
        self._spans = np.empty((MOST_ROWS, len(names), 2), np.int32)
        self._lines = np.empty(MOST_ROWS, np.int32)

    def find(self, unread: UnreadRows) -> tuple[FoundRows, Array]:
        """The next rows, which count as read from now on, and the numbers of their first lines."""
        text = np.frombuffer(unread.text, np.uint8)
        n, unread.at, passed, self.why = kernels.find_rows(
            read_only(text), unread.at, unread.complete, ord(self.delimiter), read_only(self._slots), LONGEST_LINE,
            self._spans, self._lines,
        )  # fmt: skip
        lines = unread.line + self._lines[:n]
        unread.line += passed
        return FoundRows(self._reading, text, self._spans[:n]), lines

    def need_more(self, unread: UnreadRows) -> bool:
        """Whether a row goes on beyond what is at hand; one that never ends is not waited for."""
        return self.why == kernels.UNFINISHED and unread.nbytes <= BATCH_NBYTES


def _decoded(field: bytes) -> str:
    return field.decode("utf-8", "surrogateescape")
