"""Documents that are the lines of text files."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from nfs_dask.documents.checking import BATCH_DOCUMENTS, Checker, TextColumn
from nfs_dask.documents.document_source import Batch, TextColumns
from nfs_dask.documents.line_pieces import FileDocuments, FilePart, LineNumbers, blocks_of, cut_lines
from nfs_dask.errors import InputError
from nfs_dask.text.strings import Strings

LF, CR = 10, 13


class LineDocuments(FileDocuments):
    """Each line is a document, without labels.

    A line ends with a line feed, or with a carriage return and a line feed; other line ends of Unicode belong to the
    text. The end of the last line may be missing. A blank line is a document without words.
    """

    format = "lines"

    def __init__(self, paths: tuple[str, ...], columns: TextColumns) -> None:
        if columns.text or columns.label is not None or columns.weight is not None or columns.others:
            raise InputError(
                f"{', '.join(paths[:3])}: lines of text have no columns; leave out text_column, label_column, "
                "weight_column and where, and give labels= and weights= as arrays"
            )
        super().__init__(paths, columns)

    def _parts(self, paths: tuple[str, ...], sizes: list[int]) -> Iterator[tuple[FilePart, int]]:
        for path, size in zip(paths, sizes, strict=True):
            yield from cut_lines(path, size, self.columns.encoding)

    def _read(self, part: FilePart) -> Iterator[Batch]:
        checker, numbers, first = Checker(self.columns), LineNumbers(part, self.columns), 0
        for block in blocks_of(part, self.columns.encoding):
            lines = split_lines(block)
            for start in range(0, len(lines), BATCH_DOCUMENTS):
                texts = lines.part(start, min(start + BATCH_DOCUMENTS, len(lines)))
                yield checker.batch([TextColumn(texts)], None, None, partial(numbers.where, first + start))
            first += len(lines)


def split_lines(block: bytes) -> Strings:
    """The lines of some text, without their ends."""
    text = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(text == LF)
    stops = ends if block.endswith(b"\n") else np.append(ends, len(text))
    lengths = stops - np.concatenate([np.zeros(1, np.int64), ends + 1])[: len(stops)]
    returned = (lengths[: len(ends)] > 0) & (text[ends - 1] == CR)
    lengths[: len(ends)] -= returned
    kept = text != LF
    kept[ends[returned] - 1] = False
    return Strings(np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]), text[kept])
