"""Documents that are the lines of JSON files: an object on each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any

from nfs_dask.documents.checking import Builder, check_columns, is_missing
from nfs_dask.documents.decoding import explain_undecodable
from nfs_dask.documents.document_source import Batch, TextColumns
from nfs_dask.documents.found_rows import where_of
from nfs_dask.documents.json_objects import RegularObjects, UnreadLines, is_utf8
from nfs_dask.documents.line_pieces import FileDocuments, FilePart, LineNumbers, blocks_of, cut_lines
from nfs_dask.errors import InputError

MOST_NAMED = 10  # fields in a message
HEAD_LINES = 100  # that are looked at when a file is opened


class JsonDocuments(FileDocuments):
    """Each line is an object with the texts of a document; lines of nothing but white space are passed over.

    A text of null or NaN is missing.
    """

    format = "jsonl"

    def __init__(self, paths: tuple[str, ...], columns: TextColumns) -> None:
        if not columns.text:
            raise InputError(f'{", ".join(paths[:3])}: say which fields hold the texts, such as text_column="text"')
        super().__init__(paths, columns)
        self._check_head(paths[0])

    def _check_head(self, path: str) -> None:
        """Refuse a file whose first objects all lack what is asked for, before the rest is read."""
        head = next(blocks_of(FilePart(path), self.columns.encoding), b"")
        lines = head.split(b"\n", HEAD_LINES)[:HEAD_LINES]
        objects = [found for line in lines if isinstance(found := _object(line), dict)]
        if objects:
            self.there = check_columns(
                path, list(dict.fromkeys(name for found in objects for name in found)), self.columns
            )

    def _parts(self, paths: tuple[str, ...], sizes: list[int]) -> Iterator[tuple[FilePart, int]]:
        for path, size in zip(paths, sizes, strict=True):
            yield from cut_lines(path, size, self.columns.encoding)

    def _read(self, part: FilePart) -> Iterator[Batch]:
        where, regular, number = partial(LineNumbers(part, self.columns).where, 0), RegularObjects(self.columns), 0
        for block in blocks_of(part, self.columns.encoding):
            unread = UnreadLines(block, number)
            yield from (
                self._objects(unread, regular, where) if is_utf8(block) else self._strictly(unread.lines(), where)
            )
            number = unread.number

    def _objects(self, unread: UnreadLines, regular: RegularObjects, where: Callable[[int], str]) -> Iterator[Batch]:
        odd = 1
        while unread:
            found, numbers = regular.find(unread)
            if len(numbers):
                yield found.batch(where_of(numbers, where))
            elif unread:
                # The more lines are odd, the fewer are looked at twice.
                yield from self._strictly(islice(unread.lines(), odd), where)
                odd *= 2

    def _strictly(self, lines: Iterable[tuple[int, bytes]], where: Callable[[int], str]) -> Iterator[Batch]:
        """Documents of lines that Python's reader has read, or says what is wrong with."""
        builder = Builder(self.columns, where)
        for number, line in lines:
            if line and not line.isspace():
                self._add(builder, number, line)
                if builder.full:
                    yield builder.take()
        yield from builder.rest()

    def _add(self, builder: Builder, number: int, line: bytes) -> None:
        try:
            found = json.loads(line.decode())
        except UnicodeDecodeError:
            builder.bad(number, "undecodable", explain_undecodable(line, self.columns.encoding))
            return
        except (ValueError, RecursionError) as error:
            builder.bad(number, "broken", f"the line is not JSON ({error})")
            return
        others = [found.get(name) for name in self.columns.others] if isinstance(found, dict) else None
        if wrong := self._wrong(found):
            builder.bad(number, "broken", wrong, others)
            return
        label = None if self.columns.label is None else found.get(self.columns.label)
        weight = None if self.columns.weight is None else found.get(self.columns.weight)
        texts = [found[name] for name in self.columns.text]
        builder.add(number, [text if isinstance(text, str) else None for text in texts], label, weight, others)

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


def _object(line: bytes) -> Any:
    """The value of a line; None where it has none."""
    try:
        return json.loads(line.decode())
    except (ValueError, RecursionError):
        return None


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
