"""Files in svmlight format, read in ranges of bytes that end at line ends.

A first look reads every file once, each piece on its own: how many rows and columns there are, and which classes. It is
made when something of that is asked for, or before, by tasks. Compressed files cannot be entered in the middle; each
makes one block, handed out in pieces.
"""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import or_
from typing import IO, Any, Literal, TypeAlias

import numpy as np

from nfs_dask.arrays.block import Array, Block, Kind
from nfs_dask.errors import InputError
from nfs_dask.files.data_files import PathLike, expand, fingerprint, open_binary, size_of
from nfs_dask.files.remote import split_query
from nfs_dask.sources.labels import encode, encode_as, merge_classes
from nfs_dask.sources.source import Facts, Mapping, Sizes, Source, one_by_one
from nfs_dask.units import KiB, MiB, format_bytes

PIECE_NBYTES = 16 * MiB  # text parsed together
LONGEST_LINE = 256 * MiB
MOST_COLUMNS = 2**31  # what the parser can number
SKLEARN_NBYTES = 135 * MiB  # measured: what importing sklearn.datasets takes

HEAD_NBYTES = 64 * KiB  # of a file, by which entries are estimated
LINE_NBYTES = 16 * KiB  # read at once to find the end of a line
EXPANSION = 4  # bytes of text in a byte of a compressed file, about

ZeroBased: TypeAlias = bool | Literal["auto"]

_QUERY = re.compile(rb"^[^\S\n]*[^\s#]+[^\S\n]+qid:", re.MULTILINE)


@dataclass(frozen=True)
class SvmlightPiece:
    """Some lines of a file."""

    offset: int  # bytes of text before it
    nbytes: int
    line: int  # number of its first line, from 1
    row: int  # rows of all files before it
    n_rows: int
    nnz: int


@dataclass(frozen=True)
class LookTask:
    """Lines of a file that are looked at together: those of a piece, or of a compressed file."""

    path: str
    offset: int
    nbytes: int | None  # None: all there are
    zero_based: bool


@dataclass(frozen=True)
class LookedAt:
    """What was found in a piece of text."""

    nbytes: int
    n_lines: int
    n_rows: int
    nnz: int
    classes: Array
    values: SeenValues


@dataclass(frozen=True)
class SeenValues:
    """What a look learns of the values, beyond where they are."""

    first_column: int = MOST_COLUMNS
    last_column: int = -1
    low: float = np.inf
    high: float = -np.inf
    whole: bool = True

    @classmethod
    def of(cls, indices: Array, data: Array) -> SeenValues:
        if not len(indices):
            return cls()
        whole = bool(np.all(data == np.floor(data)))
        return cls(int(indices.min()), int(indices.max()), float(data.min()), float(data.max()), whole)

    def __or__(self, other: SeenValues) -> SeenValues:
        return SeenValues(
            min(self.first_column, other.first_column),
            max(self.last_column, other.last_column),
            min(self.low, other.low),
            max(self.high, other.high),
            self.whole and other.whole,
        )

    @property
    def kind(self) -> Kind | None:
        if not (np.isfinite(self.low) and np.isfinite(self.high)):
            return None  # nothing there, or values that will be refused where they are named
        if self.low < 0:
            return "signed"
        if not self.whole:
            return "real"
        return "binary" if self.high <= 1 else "count"


class SvmlightSource(Source):
    """Documents and their labels from one or many svmlight files.

    Parameters
    ----------
    paths : a path, a pattern, or a list of them
        Plain, or compressed where the name ends in ``.gz``. Rows follow the order of the files.
    n_features : int, optional
        By default the largest column number that occurs tells.
    zero_based : bool or "auto"
        Whether the first column is number 0; "auto": if a 0 occurs in any of the files.
    look
        Whether to look into the files at once, rather than when it is asked for what is in them.
    """

    in_memory = False

    def __init__(
        self,
        paths: PathLike | Iterable[PathLike],
        n_features: int | None = None,
        zero_based: ZeroBased = "auto",
        look: bool = True,
    ) -> None:
        self._paths = expand(paths)
        self._nbytes = {path: size_of(path) for path in self._paths}
        self._given = (n_features, zero_based)
        self._told = fingerprint(self._paths, "svmlight", n_features, zero_based)
        self._blocks: list[tuple[str, tuple[SvmlightPiece, ...]]] = []
        if look:
            self.look()

    @property
    def facts(self) -> Facts:
        self.look()
        return self._facts

    @property
    def sizes(self) -> Sizes:
        self.look()
        return self._sizes

    @property
    def about_entries(self) -> int:
        """Before anybody has looked, as many as there would be if all text were like the first."""
        if self._blocks:
            return super().about_entries
        with _open_text(self._paths[0]) as file:
            head = file.read(HEAD_NBYTES)
        nbytes = sum(size * (EXPANSION if _compressed(path) else 1) for path, size in self._nbytes.items())
        return head.count(b":") * nbytes // max(1, len(head))

    def look(self, mapping: Mapping = one_by_one) -> None:
        if self._blocks:
            return
        n_features, zero_based = self._given
        tasks = [task for path in self._paths for task in self._tasks(path, zero_based is not False)]
        found = list(zip(tasks, mapping(look_at_lines, tasks), strict=True))
        blocks = self._placed(found)
        pieces = [piece for _, pieces in blocks for piece in pieces]
        parts = [part for _, parts in found for part in parts]
        if not sum(piece.n_rows for piece in pieces):
            raise InputError(f"there are no documents in {', '.join(self._paths[:3])}; check the files")
        seen = reduce(or_, (part.values for part in parts), SeenValues())
        # Columns were numbered as they stand in the files, unless it was said that they begin at 1.
        shifted = zero_based == "auto" and seen.first_column > 0
        self._zero_based = zero_based is not False and not shifted
        self._facts = Facts(
            sum(piece.n_rows for piece in pieces),
            self._width(max(0, seen.last_column + 1 - shifted), n_features),
            len(blocks),
            sum(piece.nnz for piece in pieces),
            seen.kind,
            merge_classes(part.classes for part in parts),
            import_nbytes=SKLEARN_NBYTES,
            fingerprint=self._told,
        )
        # A block is parsed from text that is there with it; the parser's own copies are what a plan adds to any block.
        self._sizes = Sizes(
            max(piece.nnz * 12 + piece.n_rows * 20 + 8 + piece.nbytes for piece in pieces),
            max(piece.nnz for piece in pieces),
            sum(self._nbytes.values()),
        )
        self._blocks = blocks

    def _tasks(self, path: str, zero_based: bool) -> Iterator[LookTask]:
        if _compressed(path):
            yield LookTask(path, 0, None, zero_based)
            return
        for start, stop in pairwise(_cuts(path, self._nbytes[path])):
            yield LookTask(path, start, stop - start, zero_based)

    def _placed(self, found: list[tuple[LookTask, list[LookedAt]]]) -> list[tuple[str, tuple[SvmlightPiece, ...]]]:
        """A block for each task, and where its pieces are: their lines in the file, and their rows in all files."""
        blocks, row, line = [], 0, 1
        for task, parts in found:
            offset, line = task.offset, line if task.offset else 1
            pieces = []
            for part in parts:
                pieces.append(SvmlightPiece(offset, part.nbytes, line, row, part.n_rows, part.nnz))
                offset, line, row = offset + part.nbytes, line + part.n_lines, row + part.n_rows
            blocks.append((task.path, tuple(pieces)))
        return blocks

    def _width(self, found: int, n_features: int | None) -> int:
        if n_features is not None and found > n_features:
            raise InputError(
                f"the files have {found} columns, which is more than n_features={n_features}; leave n_features out, or "
                "give the width of the widest file"
            )
        if not (n_features or found):
            raise InputError(f"there are no features in {', '.join(self._paths[:3])}; check them, or give n_features")
        return n_features or found

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        for number in range(start, stop):
            path, pieces = self._blocks[number]
            if size_of(path) != self._nbytes[path]:
                raise InputError(f"{path} has changed since it was opened; open it again")
            with _open_text(path, pieces[0].offset) as file:
                for piece in pieces:
                    yield self._block(file.read(piece.nbytes), path, piece, number)

    def _block(self, text: bytes, path: str, piece: SvmlightPiece, number: int) -> Block:
        assert self.classes is not None
        indptr, indices, data, labels = parse(text, path, piece.line, self._zero_based)
        if (len(labels), len(data)) != (piece.n_rows, piece.nnz):
            raise InputError(f"{path} has changed since it was opened; open it again")
        codes = encode_as(_plain(labels), self.classes)
        return Block(indptr, indices, data, codes, self.n_features, None, piece.row, number)


def look_at_lines(task: LookTask) -> list[LookedAt]:
    """What there is in some lines, which are a piece, or those of a compressed file in several."""
    found = []
    for line, text in _texts(task):
        try:
            found.append(_looked_at(text, task, line))
        except InputError:  # it names a line, which is to be counted from the beginning of the file
            found.append(_looked_at(text, task, line + _lines_before(task.path, task.offset)))
    return found


def _looked_at(text: bytes, task: LookTask, line: int) -> LookedAt:
    _, indices, data, labels = parse(text, task.path, line, task.zero_based)
    classes, values = _classes_of(labels, task.path, line), SeenValues.of(indices, data)
    return LookedAt(len(text), text.count(b"\n"), len(labels), len(data), classes, values)


def parse(text: bytes, path: str, line: int, zero_based: bool) -> tuple[Array, Array, Array, Array]:
    """Row pointers, columns from 0, values and labels of some lines; ``line`` is the number of the first."""
    if b"qid:" in text and (match := _QUERY.search(text)):
        number = line + text.count(b"\n", 0, match.start())
        raise InputError(f"{path}, line {number}: the file has query ids (qid:), for ranking; remove them to classify")
    try:
        matrix, labels = _load(text, zero_based)
    except (ValueError, OverflowError) as error:
        raise _explained(text, path, line, zero_based, error) from None
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data, labels


def _load(text: bytes, zero_based: bool) -> Any:
    from sklearn.datasets import load_svmlight_file  # the one place that needs it on a worker; see import_nbytes

    return load_svmlight_file(io.BytesIO(text), n_features=MOST_COLUMNS, zero_based=zero_based)


def _explained(text: bytes, path: str, line: int, zero_based: bool, error: Exception) -> InputError:
    """Find the first line that cannot be read by halving, as lines do not depend on each other."""
    lines = text.splitlines(keepends=True)
    low, high = 0, len(lines)  # the first bad line is in lines[low:high]
    while high - low > 1:
        middle = (low + high) // 2
        try:
            _load(b"".join(lines[low:middle]), zero_based)
            low = middle
        except (ValueError, OverflowError) as found:
            high, error = middle, found
    bad = lines[low].strip()
    where = f"{path}, line {line + low}: {bad[:60].decode('utf-8', 'replace')!r}"
    if isinstance(error, OverflowError):
        return InputError(f"{where} has a column beyond {MOST_COLUMNS:,}; give the columns that occur smaller numbers")
    if b"," in bad.split(None, 1)[0]:
        return InputError(f"{where} has several labels; only one label for each document can be used")
    return InputError(f"{where} is not 'label column:value ...' with increasing columns ({error})")


def _plain(labels: Array) -> Array:
    """Labels that are whole numbers as integers, as they stand in most files."""
    return labels.astype(np.int64) if np.all(labels == np.floor(labels)) else labels


def _classes_of(labels: Array, path: str, line: int) -> Array:
    try:
        return encode(_plain(labels))[0]
    except InputError as error:
        raise InputError(f"{path}, from line {line}: {error}") from None


def _compressed(path: str) -> bool:
    return split_query(path)[0].endswith(".gz")


@contextmanager
def _open_text(path: str, offset: int = 0) -> Iterator[IO[bytes]]:
    with open_binary(path) as file:
        if not _compressed(path):
            file.seek(offset)
            yield file
            return
        with gzip.open(file) as text:
            try:
                yield text  # type: ignore[misc]
            except (gzip.BadGzipFile, EOFError) as error:
                raise InputError(f"{path} is damaged or cut short ({error}); get it again") from None


def _texts(task: LookTask) -> Iterator[tuple[int, bytes]]:
    """Text of pieces that end at line ends, each with the number of its first line among those of the task, from 1."""
    with _open_text(task.path, task.offset) as file:
        if task.nbytes is not None:
            yield 1, file.read(task.nbytes)
            return
        line = 1
        while text := file.read(PIECE_NBYTES):
            if not text.endswith(b"\n"):
                text += file.readline(LONGEST_LINE)
                if len(text) >= LONGEST_LINE:
                    raise _endless(task.path, line)
            yield line, text
            line += text.count(b"\n")


def _cuts(path: str, size: int) -> list[int]:
    """Where pieces begin, and the end of the last: at the first line end after so many bytes, which alone is read."""
    cuts = [0]
    with _open_text(path) as file:
        while (end := cuts[-1] + PIECE_NBYTES) < size:
            file.seek(end - 1)
            length = 0  # of the rest of the line
            while length < LONGEST_LINE and (chunk := file.read(LINE_NBYTES)):
                found = chunk.find(b"\n")
                length += len(chunk) if found < 0 else found + 1
                if found >= 0:
                    break
            if length > 1 and PIECE_NBYTES + length - 1 >= LONGEST_LINE:
                raise _endless(path, 1 + _lines_before(path, cuts[-1]))
            cuts.append(end - 1 + length)
    return [*cuts, size] if cuts[-1] < size else cuts


def _endless(path: str, line: int) -> InputError:
    return InputError(f"{path}, after line {line}: a line is longer than {format_bytes(LONGEST_LINE)}")


def _lines_before(path: str, offset: int) -> int:
    """Line ends before a byte of a file, which are counted only when a line is to be named."""
    count = 0
    with _open_text(path) as file:
        while offset and (chunk := file.read(min(offset, PIECE_NBYTES))):
            count += chunk.count(b"\n")
            offset -= len(chunk)
    return count
