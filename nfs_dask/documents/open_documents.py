"""From whatever a user has to documents, and whether it is documents at all rather than a matrix.

A string or a path, or a list of paths, is files; any other list or Series of strings is documents.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, TypeGuard, get_args

import numpy as np

from nfs_dask.containers import (
    a_type,
    column_names,
    is_bag,
    is_collection,
    is_column,
    is_frame,
    is_series,
    iterated,
    type_of,
    unwrapped,
)
from nfs_dask.documents.arrow import are_strings
from nfs_dask.documents.checking import BATCH_DOCUMENTS, is_missing
from nfs_dask.documents.decoding import check_encoding
from nfs_dask.documents.document_source import BATCH_NBYTES, Batch, DocumentSource, TextColumns
from nfs_dask.documents.in_memory import TEXT, DaskDocuments, MemoryDocuments, as_bag
from nfs_dask.documents.lines import FileDocuments
from nfs_dask.documents.locations import looks_like_path, open_places, place_is_matrix
from nfs_dask.documents.parameters import DocumentParameters, OnError
from nfs_dask.errors import InputError
from nfs_dask.sources.conditions import conditions

DEFAULTS = DocumentParameters()
LOOKED_AT = 1_000  # values among which one is searched that is there
ACCEPTED = (
    "a path, URL or pattern of files, folders or archives; a list of pathlib.Path; a list, tuple, numpy array, Series "
    "or pyarrow column of strings; a DataFrame or pyarrow Table with text_column=; a Dask bag, Series or array"
)


def open_documents(source: Any, asked: DocumentParameters = DEFAULTS) -> DocumentSource:
    """Open documents in memory, in Dask, or in files. Nothing is read but names, heads and the first item of a bag.

    Parameters
    ----------
    source
        Files (Parquet, CSV, JSON lines, lines of text), folders or tar archives with a folder for each class: a path,
        URL or pattern, or a list of `Path`. Or a list, tuple, numpy array, Series or pyarrow column of strings; a
        DataFrame or pyarrow Table; a Dask bag of strings, (text, label) pairs or dicts, or a Dask Series or array.
    asked
        What to read of them, and how.

    Returns
    -------
    DocumentSource
        With ``region_names``, one for each region; none where documents are one text each.
    """
    source = unwrapped(source, "source")
    if is_opened(source):
        if asked != DEFAULTS:
            raise InputError("these documents were opened already; say how to read them when they are opened")
        return source
    names, wanted = _regions(asked.text_column, asked.regions)
    columns = TextColumns(
        wanted,
        asked.label_column,
        asked.weight_column,
        asked.encoding,
        _checked_on_error(asked.on_error),
        conditions(asked.where),
        _checked_keep(asked.keep),
        checked_delimiter(asked.delimiter),
    )
    _check_names(label_column=asked.label_column, weight_column=asked.weight_column)
    check_encoding(asked.encoding)
    opened: Any = _open(source, columns)
    opened.region_names = names
    return opened


def is_opened(source: Any) -> TypeGuard[DocumentSource]:
    """Whether these are documents that were opened already."""
    return hasattr(type(source), "batches") and hasattr(source, "columns")


def head_of(documents: DocumentSource) -> Iterator[Batch]:
    """The first documents, of a few megabytes of text at most; nothing of lazy ones."""
    if documents.delayed is not None:
        return
    nbytes = seen = 0
    for batch in documents.head() if isinstance(documents, FileDocuments) else documents.batches(0):
        yield batch
        nbytes += sum(strings.nbytes for strings in batch.texts)
        seen += batch.seen
        if nbytes >= BATCH_NBYTES or seen >= BATCH_DOCUMENTS:
            return


def is_documents(source: Any, asked: DocumentParameters = DEFAULTS) -> bool:
    """Whether a source is documents rather than a matrix. Naming a column of texts says so."""
    source = unwrapped(source, "source")
    if is_opened(source) or asked.text_column is not None or asked.regions is not None:
        return True
    if isinstance(source, (str, os.PathLike)):
        return not place_is_matrix(source)
    if isinstance(source, (list, tuple)):
        first = _first_present(source)
        if isinstance(first, os.PathLike):
            return not place_is_matrix(first)
        return first is None or _stands_for_text(first)
    if is_bag(source):
        return True
    if is_frame(source):
        return TEXT in (column_names(source) or ()) and _holds_texts(source[TEXT])
    return (is_column(source) or getattr(source, "ndim", 0) == 1) and _holds_texts(source)


def _open(source: Any, columns: TextColumns) -> DocumentSource:
    if isinstance(source, (str, os.PathLike)):
        return open_places([source], columns)
    if isinstance(source, (list, tuple)) and any(isinstance(item, os.PathLike) for item in source):
        _check_all_paths(source)
        return open_places(source, columns)
    if columns.delimiter is not None:
        raise InputError(
            f"delimiter={columns.delimiter!r} is that of CSV files, and {a_type(source)} is none; leave it out"
        )
    if columns.encoding != DEFAULTS.encoding:
        raise InputError(
            f"encoding={columns.encoding!r} is that of files, but {a_type(source)} holds strings; leave it out"
        )
    if is_bag(source):
        return DaskDocuments(source, columns)
    if is_frame(source):
        columns = columns if columns.text else replace(columns, text=(TEXT,))
        return DaskDocuments(source, columns) if is_collection(source) else MemoryDocuments(source, columns)
    _refuse_columns(source, columns)
    if is_collection(source) and getattr(source, "ndim", 0) == 1:
        return DaskDocuments(source if is_series(source) else as_bag(source), columns)
    if is_column(source) or isinstance(source, (list, tuple, np.ndarray)):
        _refuse_list_of_paths(source)
        return MemoryDocuments(source, columns)
    raise InputError(f"documents were given as {a_type(source)}; accepted are: {ACCEPTED}")


def _regions(
    text_column: str | None, regions: Sequence[str] | Mapping[str, str] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of regions, and the columns that hold the texts."""
    _check_names(text_column=text_column)
    if regions is None:
        return (), (() if text_column is None else (text_column,))
    if text_column is not None:
        raise InputError("text_column and regions both say which columns hold the texts; give one of them")
    names = tuple(regions)
    columns = tuple(regions.values()) if isinstance(regions, Mapping) else names
    if isinstance(regions, str) or not columns or not all(isinstance(name, str) and name for name in names + columns):
        raise InputError(
            f"regions={regions!r}; give names of columns, as in ['subject', 'body'], or columns by names of regions"
        )
    if twice := {name for name in columns if columns.count(name) > 1}:
        raise InputError(f"regions names the column {twice.pop()!r} twice; a text can be one region only")
    return names, columns


def _check_names(**columns: Any) -> None:
    for option, name in columns.items():
        if name is not None and not (isinstance(name, str) and name):
            raise InputError(f"{option}={name!r}; give the name of one column")


def _checked_on_error(on_error: Any) -> OnError:
    if on_error not in get_args(OnError):
        raise InputError(f"on_error={on_error!r}; give one of {', '.join(map(repr, get_args(OnError)))}")
    return on_error


def _checked_keep(keep: Any) -> tuple[str, ...]:
    if isinstance(keep, str) or not all(isinstance(name, str) and name for name in keep):
        raise InputError(f"keep={keep!r}; give a list of names of columns, such as keep=['split']")
    return tuple(keep)


def checked_delimiter(delimiter: Any) -> str | None:
    one = isinstance(delimiter, str) and len(delimiter) == 1 and delimiter.isascii()
    if delimiter is not None and (not one or delimiter in '"\r\n'):
        raise InputError(f'delimiter={delimiter!r}; give one character of ASCII, such as ";" or "\\t", and no quote')
    return delimiter


def _first_present(values: Any) -> Any:
    """The first of some values that is there."""
    return next(
        (value for value in islice(iterated(values), LOOKED_AT) if isinstance(value, str) or not is_missing(value)),
        None,
    )


def _holds_texts(column: Any) -> bool:
    """Whether an array or a Series is strings, told by its type, or where that is any object by its first values."""
    dtype = type_of(column)
    if getattr(dtype, "kind", "") == "S":
        return True  # bytes, which are refused as documents
    told = False if dtype is None else are_strings(dtype)
    if told is not None:
        return told
    return is_collection(column) or isinstance(_first_present(column), str)


def _stands_for_text(value: Any) -> bool:
    """Whether this is a text, or what somebody gave in place of one: bytes, tokens, a text with its label."""
    tokens = isinstance(value, (list, tuple)) and any(isinstance(part, (str, bytes)) for part in value)
    return tokens or isinstance(value, (str, bytes, bytearray, Mapping))


def _check_all_paths(source: Sequence[Any]) -> None:
    for position, item in enumerate(source):
        if not isinstance(item, os.PathLike):
            raise InputError(
                f"item {position} of the list is {a_type(item)}, and others are paths; make each of them a pathlib.Path"
            )


def _refuse_columns(source: Any, columns: TextColumns) -> None:
    text = "text_column or regions" if columns.text else None
    label, weight = columns.label and "label_column", columns.weight and "weight_column"
    where = columns.others and "where"
    if name := text or label or weight or where:
        raise InputError(
            f"{name} was given, but {a_type(source)} has no columns; leave it out, and give labels=, weights= as arrays"
        )


def _refuse_list_of_paths(source: Any) -> None:
    if len(source) and all(looks_like_path(text) for text in iterated(source)):
        raise InputError(
            f"the list holds paths, such as {next(iterated(source))!r}, while strings in a list are documents; give "
            "files as pathlib.Path, or as one pattern"
        )
