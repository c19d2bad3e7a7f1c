"""Matrices in the tables that documents come in, CSV and Parquet: each column of numbers is a feature."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np

from nfs_dask.arrays.block import UNLABELLED, Array, Block, full_rows
from nfs_dask.documents.document_source import Batch, TextColumns
from nfs_dask.documents.in_memory import TEXT
from nfs_dask.documents.lines import FileDocuments
from nfs_dask.documents.locations import FORMATS, format_of
from nfs_dask.documents.open_documents import checked_delimiter
from nfs_dask.documents.parameters import DocumentParameters
from nfs_dask.errors import InputError
from nfs_dask.files.data_files import expand
from nfs_dask.sources.conditions import conditions
from nfs_dask.sources.labels import encode, encode_as, merge_classes
from nfs_dask.sources.source import Facts, Mapping, Sizes, Source, one_by_one

LOOKED_AT = 100  # rows by which a table of numbers is told from one of texts
ENTRY_NBYTES = 8 + 12  # of the dense values, and of the block that is made of them


def open_numbers(source: Any, asked: DocumentParameters) -> NumberTable | None:
    """Return the matrix in one file, those of a pattern, or a list of `Path`; None where these hold no such table.

    That is one without a column ``text``, in which all columns but those of labels, weights and conditions begin with
    numbers. What else is wrong with a file, whoever reads it as texts will say.
    """
    given = source if isinstance(source, (list, tuple)) and source else [source]
    paths_given = all(isinstance(one, os.PathLike) or one is source for one in given)
    if not (isinstance(given[0], (str, os.PathLike)) and paths_given) or asked.text_column or asked.regions:
        return None
    maker: Any = FORMATS.get(format_of(os.fspath(given[0])) or "")
    if not hasattr(maker, "names_in"):
        return None
    columns = TextColumns((), asked.label_column, asked.weight_column, asked.encoding, where=conditions(asked.where))
    columns = replace(columns, delimiter=checked_delimiter(asked.delimiter))
    with suppress(InputError):
        paths = expand(given)
        there = maker.names_in(paths[0], columns)
        numbers = tuple(name for name in there if name not in (columns.label, columns.weight, *columns.others))
        if TEXT in there or not numbers:
            return None
        columns = replace(columns, numbers=numbers)
        head = next(maker(paths, replace(columns, on_error="skip")).head(), None)
        if head is None or not head.n_documents:
            return None
        for name, values in head.others.items():
            for value in values[:LOOKED_AT]:
                _number(value, name, 0)
        return NumberTable(maker(paths, columns))
    return None


class NumberTable(Source):
    """Rows of numbers in files, a piece of them a block, which may be handed out in parts.

    A first look reads all files once: how many rows they have, and which labels.

    Parameters
    ----------
    documents
        Whose ``columns.numbers`` are the features.
    """

    in_memory = False

    def __init__(self, documents: FileDocuments) -> None:
        self._documents, self.there = documents, documents.there
        self._names = list(documents.columns.numbers)
        self._rows: list[int] = []  # before each piece, and in all

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
        return (self._documents.nbytes or 0) // 4  # told without a look

    def look(self, mapping: Mapping = one_by_one) -> None:
        if self._rows:
            return
        documents, width = self._documents, len(self._names)
        documents.look(mapping)
        found = mapping(_looked_at, [documents.only(i, i + 1) for i in range(documents.n_pieces)])
        self._rows = [0, *accumulate(rows for rows, _, _ in found)]
        most = max(largest for _, largest, _ in found)
        labels = merge_classes(classes for _, _, classes in found) if documents.labelled else None
        self._facts = Facts(
            self._rows[-1],
            width,
            len(found),
            classes=labels,
            weighted=documents.weighted,
            import_nbytes=documents.import_nbytes,
            fingerprint=documents.fingerprint,
        )
        self._sizes = Sizes(most * (width * ENTRY_NBYTES + 20) + 8, most * width, documents.nbytes or 0)

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        for number in range(start, stop):
            row = self._rows[number]
            for batch in self._documents.batches(number):
                codes = np.full(batch.n_documents, UNLABELLED, np.int32)
                if self.classes is not None:
                    codes = encode_as(batch.labels, self.classes)
                indptr, indices, data, full = full_rows(values_of(batch, row))
                yield Block(indptr, indices, data, codes, len(self._names), batch.weights, row, number, full)
                row += batch.n_documents

    def names(self, columns: Array) -> list[str]:
        return [self._names[column] for column in columns]

    @property
    def names_in_memory(self) -> list[str]:
        return self._names


def _looked_at(documents: FileDocuments) -> tuple[int, int, Array]:
    """Rows of the first piece, the most in a batch, and the distinct labels."""
    rows, classes = [0], [merge_classes(())]
    for batch in documents.batches(0):
        rows.append(batch.n_documents)
        if batch.labels is not None:
            classes.append(encode(batch.labels)[0])
    return sum(rows), max(rows), merge_classes(classes)


def values_of(batch: Batch, row: int) -> Array:
    """Return the numbers of a batch whose first row is ``row``, NaN for what is missing; refuse what is no number."""
    names = batch.others.keys()
    values = np.empty((batch.n_documents, len(names)))
    for column, name in enumerate(names):
        try:
            values[:, column] = batch.others[name]
        except (TypeError, ValueError):
            values[:, column] = [_number(value, name, row + i) for i, value in enumerate(batch.others[name])]
    return values


def _number(value: Any, name: str, row: int) -> float:
    """A value as a number."""
    if value is None or value == "":
        return np.nan
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(
            f"row {row}: the column {name!r} holds {value!r:.60}, which is no number; leave the column out, or name "
            "one of texts with text_column="
        ) from None
