"""Documents that are the rows of Excel workbooks, of their first sheet, below a header row.

A workbook is a zip archive of XML, and its texts are one list for all sheets, which has to be in memory. So workbooks
are bounded: what they unpack to is looked at, member by member and up to the checksum, before a row is read. Rows come
one by one. A sheet has at most about a million; what has more is better kept as CSV or Parquet.
"""

from __future__ import annotations

import datetime as dt
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from xml.etree.ElementTree import ParseError

from nfs_dask.documents.archive_members import BoundedFile
from nfs_dask.documents.checking import Builder, check_columns
from nfs_dask.documents.document_source import Batch, TextColumns
from nfs_dask.documents.lines import FileDocuments, FilePart, split_compression
from nfs_dask.errors import DataWarning, InputError, warn
from nfs_dask.files.data_files import open_binary
from nfs_dask.units import MiB, format_bytes

WORKBOOK_NBYTES = 256 * MiB  # unpacked
OPENPYXL_NBYTES = 112 * MiB  # measured: what importing openpyxl and reading rows takes, without the list of texts
TEXTS_EXPANSION = 4  # memory of the list of texts for a byte of it, at most: short ones take most beside their content
CHUNK_NBYTES = 1 << 20
MISSING = "reading Excel needs openpyxl, which is not installed; pip install 'nfs-dask[excel]'"
_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, EOFError, ParseError, NotImplementedError, RuntimeError),
    *(ValueError, TypeError, LookupError, AttributeError),  # what openpyxl lets through from XML of nonsense
)

Cells = tuple[Any, ...]


class WorkbookDocuments(FileDocuments):
    """Each row is a document; rows are numbered as Excel does.

    Empty rows are passed over. As in CSV, an empty cell is an empty text; a number or date is text as Python writes it.
    Labels are the values of their cells. Of formulas there is what Excel worked out last.
    """

    format = "excel"
    import_nbytes = OPENPYXL_NBYTES

    def __init__(self, paths: tuple[str, ...], columns: TextColumns) -> None:
        _import_openpyxl()
        if named := [path for path in paths if split_compression(path)[1]]:
            raise InputError(f"{named[0]} is compressed as a whole; Excel files are so inside, unpack it")
        super().__init__(paths, columns)
        with _rows(paths[0]) as (rows, others):
            self.there = check_columns(paths[0], _header(paths[0], rows), columns)
        if others:
            shown = ", ".join(map(repr, others[:5])) + (", ..." if len(others) > 5 else "")
            warn(
                f"{paths[0]} has more sheets than the first, which is read: {shown}; save those as files of their own",
                DataWarning,
            )

    def _parts(self, paths: tuple[str, ...], sizes: list[int]) -> Iterator[tuple[FilePart, int]]:
        """A part for each workbook. How much memory texts take is known from what their list unpacks to."""
        most = 0
        for path in paths:
            with open_binary(path) as file, _damage_told(path), zipfile.ZipFile(BoundedFile(file)) as archive:
                _refuse_large(path, archive)
                members = archive.infolist()
            most = max(most, *(info.file_size for info in members if info.filename.endswith("sharedStrings.xml")), 0)
            yield FilePart(path), sum(info.file_size for info in members)
        self.import_nbytes += TEXTS_EXPANSION * most

    def _read(self, part: FilePart) -> Iterator[Batch]:
        columns = self.columns
        builder = Builder(columns, lambda row: f"{part.path}, row {row}")
        with _rows(part.path) as (rows, _):
            header = _header(part.path, rows)
            check_columns(part.path, header, columns)
            places = {name: place for place, name in enumerate(header)}
            for number, row in rows:
                cells = {name: row[place] if place < len(row) else None for name, place in places.items()}
                label = None if columns.label is None else _value(cells[columns.label])
                weight = None if columns.weight is None else cells[columns.weight]
                texts = [_text(cells[name]) for name in columns.text]
                builder.add(number, texts, label, weight, [_value(cells[name]) for name in columns.others])
                if builder.full:
                    yield builder.take()
        yield from builder.rest()


@contextmanager
def _rows(path: str) -> Iterator[tuple[Iterator[tuple[int, Cells]], list[str]]]:
    """The rows of the first sheet that are not empty, each with its number, and the names of the other sheets."""
    openpyxl = _import_openpyxl()
    with open_binary(path) as file:
        with _damage_told(path):
            _check_size(path, file)
            file.seek(0)
            book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
        try:
            if not book.worksheets:
                raise InputError(f"{path} has no sheet of cells")
            sheet, *others = book.worksheets
            sheet.reset_dimensions()  # they are what the file says of itself
            yield _filled(path, sheet), [other.title for other in others]
        finally:
            book.close()


def _filled(path: str, sheet: Any) -> Iterator[tuple[int, Cells]]:
    with _damage_told(path):
        for number, row in enumerate(sheet.iter_rows(values_only=True), 1):
            if any(cell is not None for cell in row):
                yield number, row


def _check_size(path: str, file: Any) -> None:
    """Refuse what would unpack to more than is allowed, whatever it says of its size."""
    with zipfile.ZipFile(BoundedFile(file)) as archive:
        _refuse_large(path, archive)
        for info in archive.infolist():
            with archive.open(info) as member:
                while member.read(CHUNK_NBYTES):
                    pass


def _refuse_large(path: str, archive: zipfile.ZipFile) -> None:
    nbytes = sum(info.file_size for info in archive.infolist())
    if nbytes > WORKBOOK_NBYTES:
        raise InputError(
            f"{path} unpacks to {format_bytes(nbytes)}, where {format_bytes(WORKBOOK_NBYTES)} are allowed; save it as "
            "CSV, which may be of any size"
        )


@contextmanager
def _damage_told(path: str) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except _DAMAGE as error:
        raise InputError(f"{path} is damaged, encrypted or no workbook of Excel ({error}); save it anew") from None


def _header(path: str, rows: Iterator[tuple[int, Cells]]) -> tuple[str, ...]:
    _, first = next(rows, (1, ()))
    if not first:
        raise InputError(f"{path} is empty; the first row of its first sheet has to name the columns")
    return tuple(_text(cell) for cell in first)


def _text(cell: Any) -> str:
    value = _value(cell)
    return "" if value is None else value if isinstance(value, str) else str(value)


def _value(cell: Any) -> Any:
    """What labels and conditions are compared by: dates and times as texts."""
    if isinstance(cell, dt.datetime | dt.date | dt.time):
        return cell.isoformat()
    return str(cell) if isinstance(cell, dt.timedelta) else cell


def _import_openpyxl() -> Any:
    try:
        import openpyxl
    except ImportError:
        raise InputError(MISSING) from None
    return openpyxl
