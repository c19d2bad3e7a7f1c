"""Files of lines, compressed or not: cut into pieces for tasks, read as blocks; and documents that are lines.

A line belongs to the part in which it begins, so a plain file can be cut anywhere without looking into it.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import IO, Any, TypeVar

import numpy as np

from nfs_dask.documents.checking import BATCH_DOCUMENTS, Checker, TextColumn
from nfs_dask.documents.decoding import check_encoding, in_utf8, keeps_ascii
from nfs_dask.documents.document_source import BATCH_NBYTES, PIECE_NBYTES, Batch, ListedPieces, TextColumns
from nfs_dask.errors import InputError
from nfs_dask.files.data_files import digest, open_binary, stamps
from nfs_dask.files.remote import split_query
from nfs_dask.text.strings import Strings
from nfs_dask.units import GiB, KiB, MiB, format_bytes

PYARROW_NBYTES = 50 * MiB  # measured: what importing pyarrow takes at most
# What reading by Arrow keeps besides batches: measured as 4 MiB. The libraries, up to 76 MiB by how much of one the
# system maps at once, are there when a worker is warm.
ARROW_NBYTES = 16 * MiB
LONGEST_LINE = 64 * MiB
FILE_NBYTES = 128 * KiB  # reading this much takes about as long as opening a file far away
EXPANSION = 4  # bytes of text in a byte of a compressed file, about
LINE_NBYTES = 16 * KiB  # read at once to find the end of a line
COUNTED_NBYTES = GiB  # of a file that are read again to tell the number of a line that is left out
T = TypeVar("T")
LF, CR = 10, 13


# Compressed files


def _open_zstd(file: IO[bytes]) -> Any:
    """Through pyarrow, which, unlike others, reads several frames and notices when the last one is cut short."""
    import pyarrow as pa

    return pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd")


OPENERS: Mapping[str, Callable[[Any], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": _open_zstd,
}


def split_compression(path: str) -> tuple[str, str]:
    """A name without the suffix of its compression, and that suffix or an empty one; the query of a URL is no part."""
    name, _ = split_query(path)
    for suffix in OPENERS:
        if name.lower().endswith(suffix):
            return name[: -len(suffix)], suffix
    return name, ""


@contextmanager
def open_content(path: str) -> Iterator[IO[bytes]]:
    """A file to read from, through its compression; a damaged one is an InputError that names it."""
    compression = split_compression(path)[1]
    with open_binary(path) as file:
        if not compression:
            yield file
            return
        with OPENERS[compression](file) as content:
            try:
                yield content
            except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
                raise InputError(
                    f"{path} cannot be read to its end ({error}); it is damaged or cut short, get it again"
                ) from error


# Files in parts


@dataclass(frozen=True, slots=True)
class FilePart:
    """Some bytes of a file: all of its content, or the lines that begin in ``start .. stop - 1``."""

    path: str
    start: int = 0
    stop: int | None = None  # None: the end of the file, which was not cut

    @property
    def whole(self) -> bool:
        return self.stop is None


class FileDocuments(ListedPieces, ABC):
    """What sources of documents in files have in common: parts of files, grouped to pieces."""

    format: str

    def __init__(self, paths: tuple[str, ...], columns: TextColumns) -> None:
        if not paths:
            raise InputError("no files were given; name at least one")
        check_encoding(columns.encoding)
        self.columns = columns
        self.labelled = columns.label is not None
        self.weighted = columns.weight is not None
        found = stamps(paths)
        self.fingerprint = digest(found, self.format, columns.to_json())
        sizes = [int(nbytes) for _, nbytes, _ in found]
        self._first = paths[0]
        self.nbytes = sum(sizes)
        if any(split_compression(path)[1] == ".zst" for path in paths):
            self.import_nbytes += PYARROW_NBYTES
        self._cut(paths, sizes)

    def _cut(self, paths: tuple[str, ...], sizes: list[int]) -> None:
        self.pieces = grouped(self._parts(paths, sizes))

    @abstractmethod
    def _parts(self, paths: tuple[str, ...], sizes: list[int]) -> Iterator[tuple[Any, int]]:
        """Every part of every file, in order, and about how many bytes of text it has."""

    @abstractmethod
    def _read(self, part: Any) -> Iterator[Batch]:
        """The documents of one part."""

    def head(self) -> Iterator[Batch]:
        """The documents from the first on, without finding out where pieces begin."""
        return self._read(self._whole(self._first))

    def _whole(self, path: str) -> Any:
        """All of a file as one part."""
        return FilePart(path)

    def batches(self, piece: Any) -> Iterator[Batch]:
        for part in self.pieces[piece]:
            yield from self._read(part)


def grouped(parts: Iterable[tuple[T, int]]) -> tuple[tuple[T, ...], ...]:
    """Neighbours share a piece as long as they are no more than PIECE_NBYTES together."""
    groups: list[list[T]] = []
    filled = 0
    for part, size in parts:
        nbytes = max(size, FILE_NBYTES)
        if not groups or filled + nbytes > PIECE_NBYTES:
            groups.append([])
            filled = 0
        groups[-1].append(part)
        filled += nbytes
    return tuple(map(tuple, groups))


def cut_lines(path: str, size: int, encoding: str) -> Iterator[tuple[FilePart, int]]:
    """A file of lines in parts of at most PIECE_NBYTES where it can be entered in the middle, and the bytes of each."""
    if not can_be_cut(path, size, encoding):
        yield FilePart(path), size * (EXPANSION if split_compression(path)[1] else 1)
        return
    for start, stop in pairwise(cuts(size)):
        yield FilePart(path, start, stop), stop - start


def can_be_cut(path: str, size: int, encoding: str) -> bool:
    """Whether a file is large, and line ends are found in it without reading what is before."""
    return size > PIECE_NBYTES and not split_compression(path)[1] and keeps_ascii(encoding)


def cuts(size: int) -> list[int]:
    """Where equal parts of so many bytes begin, and the end of the last."""
    n = -(-size // PIECE_NBYTES)
    return [size * i // n for i in range(n + 1)]


def blocks_of(part: FilePart, encoding: str, ends: bytes = b"\n") -> Iterator[bytes]:
    """The lines of a part as UTF-8, some megabytes at a time; every block but the last ends at a line end.

    ``ends`` are the bytes that end a line; a line feed is one of them.
    """
    try:
        yield from _whole_lines(in_utf8(_chunks(part), encoding, at_start=part.start == 0), part.path, ends)
    except UnicodeError as error:
        raise InputError(f"{part.path} is not {encoding} text: {error}; name another encoding=") from None


def _chunks(part: FilePart) -> Iterator[bytes]:
    with open_content(part.path) as file:
        if part.stop is not None:
            yield from _range(file, part.path, part.start, part.stop)
            return
        while chunk := file.read(BATCH_NBYTES):
            yield chunk


def _range(file: IO[bytes], path: str, position: int, stop: int) -> Iterator[bytes]:
    """The lines that begin in ``position .. stop - 1``, read in one go through the file."""
    if position:
        file.seek(position - 1)
        position += len(_rest_of_line(file)) - 1
        file.seek(position)
    while position < stop:
        chunk = file.read(min(BATCH_NBYTES, stop - position))
        if not chunk:
            raise InputError(f"{path} has become shorter since it was opened; open it again")
        position += len(chunk)
        if position == stop and not chunk.endswith(b"\n"):
            chunk += _rest_of_line(file)
        yield chunk


def _rest_of_line(file: IO[bytes]) -> bytes:
    """Up to the next line end, or as much as a line may have; remote files have no readline with a limit."""
    found = bytearray()
    while len(found) < LONGEST_LINE and (chunk := file.read(LINE_NBYTES)):
        end = chunk.find(b"\n") + 1
        found += chunk[: end or None]
        if end:
            break
    return bytes(found)


def _whole_lines(chunks: Iterable[bytes], path: str, ends: bytes) -> Iterator[bytes]:
    rest: list[bytes] = []
    for chunk in chunks:
        cut = _after_last_line(chunk, ends)
        if cut:
            yield b"".join([*rest, chunk[:cut]])
            rest = []
        rest.append(chunk[cut:])
        if sum(map(len, rest)) > LONGEST_LINE:
            raise InputError(f"{path} has a line of more than {format_bytes(LONGEST_LINE)}; is it a file of lines?")
    if last := b"".join(rest):
        yield last


def _after_last_line(chunk: bytes, ends: bytes) -> int:
    cut = chunk.rfind(b"\n") + 1
    if not cut and b"\r" in ends:
        cut = chunk.rfind(b"\r", 0, -1) + 1  # not at the very end, where a line feed may follow
    return cut


@dataclass
class LineNumbers:
    """Names lines of a part by their numbers in the file, which are counted only when a bad line is named."""

    part: FilePart
    columns: TextColumns

    def where(self, first: int, i: int) -> str:
        """Line ``first + i`` of the part, from 0."""
        number = first + i + 1
        if self._before is None:
            return f"{self.part.path}, line {number} of those that begin at byte {self.part.start} or later"
        return f"{self.part.path}, line {self._before + number}"

    @cached_property
    def _before(self) -> int | None:
        """Line ends before the first line of the part; None where too much would be read again for each part."""
        if self.part.start == 0:
            return 0
        if self.columns.on_error == "skip" and self.part.start > COUNTED_NBYTES:
            return None
        found, left = 1, self.part.start - 1  # the line end that the part begins after is not before this
        with open_content(self.part.path) as file:
            while left and (chunk := file.read(min(BATCH_NBYTES, left))):
                found += chunk.count(b"\n")
                left -= len(chunk)
        return found


# Documents


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
