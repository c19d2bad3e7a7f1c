"""Tables of features as files: CSV for people and their spreadsheets, Parquet for programs."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import IO, Any

# What spreadsheets take a cell for a formula by, also in the wide forms of East Asian keyboards
_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_NUMBER = re.compile(r"[-+]?[0-9]+(?:\.[0-9]*)?")
AT_A_TIME = 1 << 12  # rows


def harmless(text: str) -> str:
    r"""The text as a cell that no spreadsheet takes for a formula: with an apostrophe before it, as OWASP advises.

    >>> harmless("=1+1"), harmless("tea"), harmless("-tea"), harmless("a=b"), harmless("-1")
    ("'=1+1", 'tea', "'-tea", 'a=b', '-1')
    """
    return f"'{text}" if text.startswith(_FORMULAS) and not _NUMBER.fullmatch(text) else text


def write_csv(file: IO[bytes], columns: Mapping[str, Any]) -> None:
    """UTF-8 with the mark that makes spreadsheets read it as such, and all texts in quotes.

    Numbers have all their digits, and no quotes.
    """
    file.write(codecs.BOM_UTF8)
    file.write(_lines([list(map(harmless, columns))]))
    values = list(columns.values())
    for start in range(0, len(values[0]), AT_A_TIME):
        some = [_cells(column[start : start + AT_A_TIME]) for column in values]
        file.write(_lines(zip(*some, strict=True)))


def write_parquet(file: IO[bytes], tables: Iterable[Mapping[str, Any]]) -> None:
    """Write tables of the same columns one below the other, the values as they are."""
    import pyarrow as pa
    from pyarrow import parquet

    with ExitStack() as stack:
        writer = None
        for columns in tables:
            table = pa.table({name: pa.array(values) for name, values in columns.items()})
            writer = writer or stack.enter_context(parquet.ParquetWriter(file, table.schema))
            writer.write_table(table)


def _cells(values: Any) -> list[Any]:
    plain = values.tolist() if hasattr(values, "tolist") else values
    return [harmless(value) if isinstance(value, str) else value for value in plain]


def _lines(rows: Any) -> bytes:
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\r\n").writerows(rows)
    return out.getvalue().encode()
