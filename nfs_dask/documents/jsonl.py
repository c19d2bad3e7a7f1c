"""Documents that are the lines of JSON files: an object on each.

Arrow reads blocks of lines that it is sure to read as Python's json module does; other blocks are left to that, which
says what is wrong with their lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from nfs_dask.documents.arrow import batches_of
from nfs_dask.documents.checking import Builder, check_columns, is_missing
from nfs_dask.documents.decoding import explain_undecodable
from nfs_dask.documents.document_source import Batch, TextColumns
from nfs_dask.documents.lines import ARROW_NBYTES, FileDocuments, FilePart, LineNumbers, blocks_of, cut_lines
from nfs_dask.errors import InputError

MOST_NAMED = 10  # fields in a message
HEAD_LINES = 100  # that are looked at when a file is opened
ODD_NBYTES = 1 << 16  # of lines that Python reads where one of them is odd
KINDS = {
    str: "string",
    bool: "bool",
    int: "int64",
    float: "double",
    type(None): "string",
}  # Arrow's names of what values of fields may be
_LOOSE = re.compile(rb"Inf\s*[,}\]]|-NaN")  # numbers to Arrow, and not to Python
_NAMES = {dict: "an object", list: "an array", str: "a string", bool: "true or false", type(None): "null"}


class JsonDocuments(FileDocuments):
    """Each line is an object with the texts of a document; lines of nothing but white space are passed over.

    A text of null or NaN is missing.
    """

    format = "jsonl"
    import_nbytes = ARROW_NBYTES

    def __init__(self, paths: tuple[str, ...], columns: TextColumns) -> None:
        if not columns.text:
            raise InputError(f'{", ".join(paths[:3])}: say which fields hold the texts, such as text_column="text"')
        super().__init__(paths, columns)
        self._check_head(paths[0])

    def _check_head(self, path: str) -> None:
        """Refuse a file whose first objects all lack what is asked for, before the rest is read."""
        head = next(blocks_of(FilePart(path), self.columns.encoding), b"")
        lines = head.split(b"\n", HEAD_LINES)[:HEAD_LINES]
        objects = [found for line in lines if isinstance(found := _value(line), dict)]
        if objects:
            there = list(dict.fromkeys(name for found in objects for name in found))
            self.there = check_columns(path, there, self.columns)

    def _parts(self, paths: tuple[str, ...], sizes: list[int]) -> Iterator[tuple[FilePart, int]]:
        for path, size in zip(paths, sizes, strict=True):
            yield from cut_lines(path, size, self.columns.encoding)

    def _read(self, part: FilePart) -> Iterator[Batch]:
        where, number = LineNumbers(part, self.columns).where, 0
        for block in blocks_of(part, self.columns.encoding):
            yield from self._lines(block, number, where)
            number += block.count(b"\n")

    def _lines(self, block: bytes, number: int, where: Callable[[int, int], str]) -> Iterator[Batch]:
        """Documents of a block of lines; of one that Arrow refuses, half by half."""
        names, table = partial(where, number), _by_arrow(block, self.columns)
        if table is None and not _has_an_object_a_line(block.rstrip()):  # there may be blank lines, and spaces at ends
            lines = [(i, line.strip(b" \t\r")) for i, line in enumerate(block.split(b"\n"))]
            numbers = [i for i, line in lines if line]
            table = _by_arrow(b"\n".join(line for _, line in lines if line), self.columns)
            names = partial(_later, names, numbers)
        if table is not None:
            yield from batches_of(table, self.columns, names)
        elif len(block) > ODD_NBYTES and 0 < (middle := block.find(b"\n", len(block) // 2) + 1) < len(block):
            yield from self._lines(block[:middle], number, where)
            yield from self._lines(block[middle:], number + block.count(b"\n", 0, middle), where)
        else:
            yield from self._strictly(block, partial(where, number))

    def _strictly(self, block: bytes, where: Callable[[int], str]) -> Iterator[Batch]:
        """Documents of lines that Python's reader has read, or says what is wrong with."""
        builder = Builder(self.columns, where)
        for number, line in enumerate(block.split(b"\n")):
            if line and not line.isspace():
                self._add(builder, number, line)
                if builder.full:
                    yield builder.take()
        yield from builder.rest()

    def _add(self, builder: Builder, number: int, line: bytes) -> None:
        columns = self.columns
        try:
            found = json.loads(line.decode())
        except UnicodeDecodeError:
            builder.bad(number, "undecodable", explain_undecodable(line, columns.encoding))
            return
        except (ValueError, RecursionError) as error:
            builder.bad(number, "broken", f"the line is not JSON ({error})")
            return
        others = [found.get(name) for name in columns.others] if isinstance(found, dict) else None
        if wrong := self._wrong(found):
            builder.bad(number, "broken", wrong, others)
            return
        texts = [text if isinstance(text := found[name], str) else None for name in columns.text]
        label, weight = (None if name is None else found.get(name) for name in (columns.label, columns.weight))
        builder.add(number, texts, label, weight, others)

    def _wrong(self, found: Any) -> str | None:
        """Why the value of a line is no document."""
        if not isinstance(found, dict):
            hint = "; write each element on a line of its own, without the brackets" if isinstance(found, list) else ""
            return f"the line is {_kind(found)}, not an object{hint}"
        for name in self.columns.text:
            if name not in found:
                there = ", ".join(map(repr, list(found)[:MOST_NAMED])) or "nothing"
                return f"there is no field {name!r}; the line has {there}"
            if not (isinstance(found[name], str) or is_missing(found[name])):
                return f"the field {name!r} is {_kind(found[name])}, not a string"
        if self.columns.label is not None and isinstance(found.get(self.columns.label), (dict, list)):
            return f"the label {self.columns.label!r} is {_kind(found[self.columns.label])}, not a string or a number"
        return None


def _later(where: Callable[[int], str], numbers: list[int], i: int) -> str:
    return where(numbers[i])


def _by_arrow(block: bytes, columns: TextColumns) -> Any:
    """A table of the fields that are asked for, a row for each line; None where Python might read others.

    Fields that nobody asked for may be nested deeper, and have more digits, than Python takes.
    """
    import pyarrow as pa
    from pyarrow import json as arrow_json

    block = block.rstrip()
    first = _value(block.partition(b"\n")[0])
    if not (isinstance(first, dict) and _has_an_object_a_line(block)):
        return None
    beside = {*columns.others, columns.label}
    kinds = {name: KINDS.get(type(first.get(name)), "") for name in columns.names}
    kinds |= dict.fromkeys(columns.text, "string")
    if columns.weight is not None and kinds[columns.weight] == "int64" and columns.weight not in beside:
        kinds[columns.weight] = "double"  # some of them may be no whole numbers
    if not all(kinds.values()) or ((b"Inf" in block or b"-NaN" in block) and _LOOSE.search(block)):
        return None
    try:
        _ = block.isascii() or block.decode()
        table = arrow_json.read_json(
            pa.BufferReader(block),
            arrow_json.ReadOptions(False, len(block)),
            arrow_json.ParseOptions(pa.schema(kinds.items()), False, "ignore"),
            memory_pool=pa.system_memory_pool(),
        )
    except (pa.ArrowException, UnicodeError):
        return None
    if table.num_rows != block.count(b"\n") + 1 or any(table[name].null_count for name in columns.text):
        return None
    # Python tells 1 from 1.0, and values may be shown and stored as they come.
    for name in (name for name, kind in kinds.items() if kind == "double" and name in beside):
        numbers = table[name].to_numpy()
        if np.any(numbers == np.trunc(numbers)):
            return None
    return table


def _has_an_object_a_line(block: bytes) -> bool:
    """Whether each line begins with a brace and ends with one, so that no object is on several lines."""
    between = block.count(b"}\n{") + (block.count(b"}\r\n{") if b"\r" in block else 0)
    return block.startswith(b"{") and block.endswith(b"}") and between == block.count(b"\n")


def _value(line: bytes) -> Any:
    """The value of a line; None where it has none."""
    try:
        return json.loads(line.decode())
    except (ValueError, RecursionError):
        return None


def _kind(value: Any) -> str:
    return _NAMES.get(type(value), "a number")
