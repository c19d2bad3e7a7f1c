"""The objects of JSON lines, read by compiled code as long as they are regular."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.arrays.kernels import read_only
from nfs_dask.documents import field_kernels as kernels
from nfs_dask.documents.document_source import TextColumns
from nfs_dask.documents.found_rows import MOST_ROWS, FoundRows, Reading
from nfs_dask.text.strings import Strings


@dataclass
class UnreadLines:
    """A block of lines from the first on that was not read yet."""

    text: bytes
    number: int  # of that line
    at: int = 0

    def __bool__(self) -> bool:
        return self.at < len(self.text)

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Line after line with its number, without its end."""
        while self:
            number, end = self.number, self.text.find(b"\n", self.at)
            line = self.text[self.at : end] if end >= 0 else self.text[self.at :]
            self.at, self.number = self.at + len(line) + 1, number + 1
            yield number, line


@dataclass
class RegularObjects:
    """Finds objects with what is asked for, as they stand in a text, for as long as nothing is odd.

    Odd are escapes in names and halves of characters, names that are there twice, values that are no JSON, and texts
    that are no strings.
    """

    columns: TextColumns

    def __post_init__(self) -> None:
        self._reading = Reading(self.columns, kernels.copy_strings, kernels.copy_values, _value)
        names = self._reading.names
        self._names = Strings.of(name.encode("utf-8", "surrogatepass") for name in names)
        self._roles = np.array([self._role(name) for name in names], np.int8)
        self._spans = np.empty((MOST_ROWS, len(names), 2), np.int32)
        self._lines = np.empty(MOST_ROWS, np.int32)

    def _role(self, name: str) -> int:
        return kernels.TEXT * (name in self.columns.text) | kernels.SCALAR * (name == self.columns.label)

    def find(self, unread: UnreadLines) -> tuple[FoundRows, Array]:
        """The next objects, which count as read from now on, and the numbers of their lines."""
        text = np.frombuffer(unread.text, np.uint8)
        n, unread.at, passed, _ = kernels.find_objects(
            read_only(text), unread.at, read_only(self._names.text), read_only(self._names.offsets),
            read_only(self._roles), self._spans, self._lines,
        )  # fmt: skip
        numbers = unread.number + self._lines[:n]
        unread.number += passed
        return FoundRows(self._reading, text, self._spans[:n]), numbers


def is_utf8(block: bytes) -> bool:
    """Whether all of it is, which lines alone then are as well."""
    try:
        return block.isascii() or bool(block.decode())
    except UnicodeDecodeError:
        return False


def _value(token: bytes) -> Any:
    """What stands in a line; None for nothing."""
    return json.loads(token) if token else None
