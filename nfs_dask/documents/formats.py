"""Files of documents told by the ends of their names, and opened by what they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from nfs_dask.documents.compression import OPENERS, split_compression
from nfs_dask.documents.delimited import DelimitedDocuments
from nfs_dask.documents.document_source import DocumentSource, TextColumns
from nfs_dask.documents.excel import WorkbookDocuments
from nfs_dask.documents.jsonl import JsonDocuments
from nfs_dask.documents.lines import LineDocuments
from nfs_dask.documents.parquet import ParquetDocuments
from nfs_dask.errors import InputError

Maker: TypeAlias = Callable[[tuple[str, ...], TextColumns], DocumentSource]

FORMATS: dict[str, Maker] = {
    ".parquet": ParquetDocuments,
    ".pq": ParquetDocuments,
    ".csv": DelimitedDocuments,
    ".tsv": DelimitedDocuments,
    ".tab": DelimitedDocuments,
    ".xlsx": WorkbookDocuments,
    ".xlsm": WorkbookDocuments,
    ".jsonl": JsonDocuments,
    ".ndjson": JsonDocuments,
    ".json": JsonDocuments,
    ".txt": LineDocuments,
    ".text": LineDocuments,
}


def format_of(path: str) -> str | None:
    """The suffix that tells how to read a file, compressed or not; None: not one of FORMATS."""
    plain = split_compression(path)[0].lower()
    return next((suffix for suffix in FORMATS if plain.endswith(suffix)), None)


def open_tables(paths: Sequence[str], columns: TextColumns) -> DocumentSource:
    """The documents of files of one format, in the order of the files."""
    makers: dict[Maker, str] = {}
    for path in paths:
        suffix = format_of(path)
        if suffix is None:
            raise InputError(
                f"{path} is none of the files that are read as documents; their names end in {', '.join(FORMATS)}, "
                f"or one of these and {', '.join(OPENERS)}"
            )
        makers.setdefault(FORMATS[suffix], path)
    if not makers:
        raise InputError("no files were given; name at least one")
    if len(makers) > 1:
        one, other, *_ = makers.values()
        raise InputError(f"{one} and {other} are files of different formats; read those of one format at a time")
    maker = next(iter(makers))
    if columns.delimiter is not None and maker is not DelimitedDocuments:
        raise InputError(f"delimiter={columns.delimiter!r} is that of CSV, and {paths[0]} is none; leave it out")
    return maker(tuple(paths), columns)
