"""Files in svmlight format, read in ranges of bytes that end at line ends.

The first scan reads every file once, piece by piece: how many rows and columns there are, where the ranges begin, and
which classes. Compressed files cannot be entered in the middle; each makes one block, handed out in pieces.
"""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, Literal, TypeAlias

import numpy as np

from nfs_dask.arrays.block import Array, Block, Kind
from nfs_dask.errors import InputError
from nfs_dask.files.data_files import PathLike, expand, fingerprint, open_binary, size_of
from nfs_dask.sources.labels import encode, encode_as, merge_classes
from nfs_dask.sources.source import Facts, Sizes, Source
from nfs_dask.units import MiB, format_bytes

PIECE_NBYTES = 16 * MiB  # text parsed together
LONGEST_LINE = 256 * MiB
MOST_COLUMNS = 2**31  # what the parser can number
SKLEARN_NBYTES = 135 * MiB  # measured: what importing sklearn.datasets takes

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


@dataclass
class SeenValues:
    """What a scan learns of the values, beyond where they are."""

    first_column: int = MOST_COLUMNS
    last_column: int = -1
    low: float = np.inf
    high: float = -np.inf
    whole: bool = True

    def see(self, indices: Array, data: Array) -> None:
        if not len(indices):
            return
        self.first_column = min(self.first_column, int(indices.min()))
        self.last_column = max(self.last_column, int(indices.max()))
        self.low, self.high = min(self.low, float(data.min())), max(self.high, float(data.max()))
        self.whole = self.whole and bool(np.all(data == np.floor(data)))

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
    """

    def __init__(
        self,
        paths: PathLike | Iterable[PathLike],
        n_features: int | None = None,
        zero_based: ZeroBased = "auto",
    ) -> None:
        self._paths = expand(paths)
        self._nbytes = {path: size_of(path) for path in self._paths}
        self._blocks: list[tuple[str, tuple[SvmlightPiece, ...]]] = []
        told = fingerprint(self._paths, "svmlight", n_features, zero_based)
        seen, classes = self._scan(zero_based is not False)
        # Columns were numbered as they stand in the files, unless it was said that they begin at 1.
        shifted = zero_based == "auto" and seen.first_column > 0
        self._zero_based = zero_based is not False and not shifted
        pieces = [piece for _, pieces in self._blocks for piece in pieces]
        self.facts = Facts(
            sum(piece.n_rows for piece in pieces),
            self._width(max(0, seen.last_column + 1 - shifted), n_features),
            len(self._blocks),
            sum(piece.nnz for piece in pieces),
            seen.kind,
            classes,
            import_nbytes=SKLEARN_NBYTES,
            fingerprint=told,
        )
        # A block is parsed from text that is there with it; the parser's own copies are what a plan adds to any block.
        self._sizes = Sizes(
            max(piece.nnz * 12 + piece.n_rows * 20 + 8 + piece.nbytes for piece in pieces),
            max(piece.nnz for piece in pieces),
            sum(self._nbytes.values()),
        )

    def _scan(self, zero_based: bool) -> tuple[SeenValues, Array]:
        seen, classes, row = SeenValues(), merge_classes(()), 0
        for path in self._paths:
            pieces = []
            for offset, line, text in _texts(path):
                _, indices, data, labels = parse(text, path, line, zero_based)
                seen.see(indices, data)
                classes = merge_classes([classes, _classes_of(labels, path, line)])
                pieces.append(SvmlightPiece(offset, len(text), line, row, len(labels), len(data)))
                row += len(labels)
            self._blocks += [(path, tuple(pieces))] if _compressed(path) else [(path, (piece,)) for piece in pieces]
        if row == 0:
            raise InputError(f"there are no documents in {', '.join(self._paths[:3])}; check the files")
        return seen, classes

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
    return path.endswith(".gz")


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


def _texts(path: str) -> Iterator[tuple[int, int, bytes]]:
    """Offset, first line number and text of pieces that end at line ends."""
    offset, line = 0, 1
    with _open_text(path) as file:
        while text := file.read(PIECE_NBYTES):
            if not text.endswith(b"\n"):
                text += file.readline(LONGEST_LINE)
                if len(text) >= LONGEST_LINE:
                    raise InputError(f"{path}, after line {line}: a line is longer than {format_bytes(LONGEST_LINE)}")
            yield offset, line, text
            offset += len(text)
            line += text.count(b"\n")
