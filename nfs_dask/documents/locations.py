"""Documents by path or URL: which files, folders and archives are meant, and how each sort is opened."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from nfs_dask.documents.archives import SUFFIXES, ArchiveDocuments, in_archive, split_archive
from nfs_dask.documents.csv_rows import CsvDocuments
from nfs_dask.documents.document_source import DocumentSource, TextColumns
from nfs_dask.documents.excel import WorkbookDocuments
from nfs_dask.documents.folders import FolderDocuments, LeftOut, documents_in, printable
from nfs_dask.documents.in_memory import TEXT
from nfs_dask.documents.jsonl import JsonDocuments
from nfs_dask.documents.lines import OPENERS, LineDocuments, split_compression
from nfs_dask.documents.parquet import ParquetDocuments
from nfs_dask.errors import InputError, StoreError
from nfs_dask.files.data_files import PathLike, expand
from nfs_dask.files.folder import Folder
from nfs_dask.files.remote import file_system_of, is_on_the_web, is_url, split_query
from nfs_dask.sources.open_source import SVMLIGHT
from nfs_dask.store.header import MODEL

Maker: TypeAlias = Callable[[tuple[str, ...], TextColumns], DocumentSource]

FORMATS: dict[str, Maker] = {
    ".parquet": ParquetDocuments,
    ".pq": ParquetDocuments,
    ".csv": CsvDocuments,
    ".tsv": CsvDocuments,
    ".tab": CsvDocuments,
    ".xlsx": WorkbookDocuments,
    ".xlsm": WorkbookDocuments,
    ".jsonl": JsonDocuments,
    ".ndjson": JsonDocuments,
    ".json": JsonDocuments,
    ".txt": LineDocuments,
    ".text": LineDocuments,
}
MATRICES = (".npz", ".npy", ".h5ad", ".zarr", *SVMLIGHT, *(f"{suffix}.gz" for suffix in SVMLIGHT))
STORE_FILES = ("zarr.json", ".zgroup", ".zattrs")
LONGEST_SHOWN = 100  # characters of what may be a text in place of a path

Sort = Literal["folders", "archives", "files"]


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
    if columns.delimiter is not None and maker is not CsvDocuments:
        raise InputError(f"delimiter={columns.delimiter!r} is that of CSV, and {paths[0]} is none; leave it out")
    return maker(tuple(paths), columns)


def open_places(given: Iterable[PathLike], columns: TextColumns) -> DocumentSource:
    """The documents of files, folders or archives, in the order given; patterns stand for their sorted matches."""
    places = [place for path in given for place in _expanded(path)]
    if not places:
        raise StoreError("no folder matches; check the pattern")
    sorts: dict[Sort, str] = {}
    for place in places:
        sorts.setdefault(_sort_of(place, alone=len(places) == 1), place)
    if len(sorts) > 1:
        found = " and ".join(f"{printable(place)} is one of the {sort}" for sort, place in sorts.items())
        raise InputError(f"{found}; give those of one sort, and folders by a pattern that ends in a slash, such as */")
    (sort,) = sorts
    if sort == "files":
        return _open_files(places, columns)
    if sort == "folders" and len(places) == 1 and (suffix := format_of(places[0])):
        return _open_files(_tables_in(places[0], suffix), columns)
    _refuse_columns(places[0], sort, columns)
    if sort == "archives":
        return ArchiveDocuments([split for place in places if (split := split_archive(place))], columns)
    return FolderDocuments(places, columns)


def place_is_matrix(path: PathLike) -> bool:
    """Whether a path or URL is that of a matrix or a store; a pattern is as its first match."""
    text = _text_of(path)
    if split_archive(text):
        return False
    if split_query(text)[0].rstrip("/").lower().endswith(MATRICES):
        return True
    if format_of(text):
        return False
    first = text
    if not is_url(text):
        try:
            first = expand(text)[0]
        except StoreError:  # no match, as whoever opens it will say
            return False
    folder = Folder.of(first)
    return any(folder.exists(name) for name in STORE_FILES)


def looks_like_path(text: Any) -> bool:
    """Whether a string is more likely to be a path or URL than a document."""
    if not isinstance(text, str):
        return False
    if is_url(text):
        return not any(c.isspace() for c in text) and bool(format_of(text) or split_archive(text))
    return os.path.exists(text)


def _text_of(path: PathLike) -> str:
    text = os.fspath(path)
    if not isinstance(text, str) or not text:
        raise InputError(f"{text!r} is no path; give paths as strings or pathlib.Path")
    return text


def _expanded(path: PathLike) -> Iterator[str]:
    """The files, folders or archives meant by one path, URL or pattern."""
    text = _text_of(path)
    archived = split_archive(text)
    if archived:
        archive, inside = archived
        yield from (in_archive(found, inside) for found in _matches(archive))
    elif split_query(text)[0].endswith("/"):
        yield from (found for found in _matches(text) if is_url(found) or os.path.isdir(found))
    else:
        yield from _matches(text)


def _matches(text: str) -> Sequence[str]:
    if is_url(text) and "*" in split_query(text)[0]:
        with file_system_of(text) as (fs, inside):
            found = [fs.unstrip_protocol(name).rstrip("/") for name in sorted(fs.glob(inside))]
        if not found:
            raise StoreError(f"no file matches {text}")
        return found
    try:
        return expand(text)
    except StoreError as error:  # a question mark makes a pattern of a text
        raise StoreError(f"{_shown(str(error))}{_perhaps_text(text)}") from None


def _sort_of(place: str, alone: bool) -> Sort:
    if split_archive(place):
        return "archives"
    if is_url(place) and format_of(place) and (is_on_the_web(place) or not alone):  # not asked one by one
        return "files"
    if _is_folder(place):
        if place_is_matrix(place):
            raise InputError(f"{printable(place)} is a store, which holds no texts; open it with nfs_dask.open_dataset")
        if _is_model(Folder.of(place)):
            raise InputError(f"{printable(place)} holds a model, and no documents; give a file or folder of documents")
        return "folders"
    if not _exists(place):
        raise StoreError(f"{_shown(place)} is missing; check the path{_perhaps_text(place)}")
    if format_of(place):
        return "files"
    raise InputError(
        f"{printable(place)} is of no known format; documents are in files that end in {', '.join(FORMATS)}, these "
        f"with {', '.join(OPENERS)}, archives ({', '.join(SUFFIXES)}), or folders; matrices in {', '.join(MATRICES)}"
    )


def _is_model(folder: Folder) -> bool:
    return folder.exists(MODEL) and any(name.startswith("arrays-") for name in folder.names())


def _is_folder(place: str) -> bool:
    if not is_url(place):
        return os.path.isdir(place)
    with file_system_of(place) as (fs, inside):
        return bool(fs.isdir(inside))


def _exists(place: str) -> bool:
    if not is_url(place):
        return os.path.exists(place)
    with file_system_of(place) as (fs, inside):
        return bool(fs.exists(inside))


def _open_files(paths: Sequence[str], columns: TextColumns) -> DocumentSource:
    makers = {FORMATS.get(format_of(path) or "") for path in paths}
    if not columns.text and LineDocuments not in makers:
        columns = replace(columns, text=(TEXT,))
    return open_tables(paths, columns)


def _tables_in(folder: str, suffix: str) -> list[str]:
    """The files of a table that was written as a folder of them; names with an underscore are of its writer."""
    _, files = documents_in(folder, LeftOut())
    names = [file.path for file in files if not os.path.basename(file.path).startswith("_")]
    tables = [name for name in names if format_of(name) == suffix]
    if not tables:
        raise InputError(
            f"{printable(folder)} is a folder without {suffix} files; name the files, or rename the folder"
        )
    return tables


def _refuse_columns(place: str, sort: Sort, columns: TextColumns) -> None:
    given: dict[str, Any] = {
        "text_column": columns.text,
        "label_column": columns.label,
        "weight_column": columns.weight,
    }
    given |= {"where": columns.others, "delimiter": columns.delimiter}
    for name, value in given.items():
        if value:
            raise InputError(
                f"{name} was given, but {printable(place)} is one of the {sort}, whose documents are files without "
                "columns; labels are the names of their folders"
            )


def _shown(text: str) -> str:
    """Both ends: the last part of a path tells most."""
    shown = printable(text)
    half = LONGEST_SHOWN // 2
    return shown if len(shown) <= LONGEST_SHOWN else f"{shown[:half]}...{shown[-half:]}"


def _perhaps_text(text: str) -> str:
    return "; if it is a document, put it into a list, [text]" if any(c.isspace() for c in text) else ""
