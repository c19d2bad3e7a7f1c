"""Rows whose fields compiled code has found in a text: columns of them, and what is wrong with some."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.arrays.kernels import read_only
from nfs_dask.documents import field_kernels as kernels
from nfs_dask.documents.checking import BATCH_DOCUMENTS, Bad, Checker, TextColumn, bad_weight, half_a_character
from nfs_dask.documents.document_source import Batch, TextColumns
from nfs_dask.text.strings import Strings

MOST_ROWS = BATCH_DOCUMENTS  # found at a time


@dataclass(frozen=True)
class Reading:
    """How values are made of fields."""

    columns: TextColumns
    copy_texts: Callable[..., None]  # a kernel
    copy_values: Callable[..., None]  # a kernel
    value: Callable[[bytes], Any]  # of a label, a weight or a further column

    @property
    def names(self) -> list[str]:
        """The columns that have a span in each row."""
        columns = self.columns
        return list(dict.fromkeys([*columns.text, *filter(None, (columns.label, columns.weight)), *columns.others]))


@dataclass(frozen=True)
class FoundRows:
    """Where the fields of some rows are in a text."""

    reading: Reading
    text: Array
    spans: Array  # (n, names, 2)

    def batch(self, where: Callable[[int], str]) -> Batch:
        """The good ones; ``where`` names row i."""
        columns, known = self.reading.columns, dict[int, Bad]()
        texts = [TextColumn(self._strings(name, self.reading.copy_texts)) for name in columns.text]
        labels = None if columns.label is None else TextColumn(self._labels(columns.label, known))
        weights = None if columns.weight is None else TextColumn(self._weights(columns.weight, known))
        others = {name: self._values(name)[0] for name in columns.others}
        return Checker(columns).batch(texts, labels, weights, where, known, others)

    def _labels(self, name: str, known: dict[int, Bad]) -> list[Any]:
        values, distinct = self._values(name)
        for label in filter(_is_text, distinct):
            try:
                label.encode()
            except UnicodeEncodeError as error:
                known |= {i: half_a_character(error) for i, value in enumerate(values) if value == label}
        return values

    def _weights(self, name: str, known: dict[int, Bad]) -> Array:
        weights = np.ones(len(self.spans))
        for i, value in enumerate(self._values(name)[0]):
            try:
                weights[i] = float(value)
            except (TypeError, ValueError, OverflowError):
                known.setdefault(i, bad_weight(value))
        return weights

    def _values(self, name: str) -> tuple[list[Any], list[Any]]:
        """What a column holds, and its distinct values: each is made once."""
        fields = self._strings(name, self.reading.copy_values)
        n = len(fields)
        firsts, codes = np.empty(n, np.int64), np.empty(n, np.int32)
        table = np.full(1 << (2 * n + 1).bit_length(), -1, np.int32)
        n_distinct = kernels.number_values(fields.text, fields.offsets, table, firsts, codes)
        distinct = np.empty(n_distinct, object)
        distinct[:] = [self.reading.value(fields[i]) for i in firsts[:n_distinct].tolist()]
        return distinct[codes].tolist(), distinct.tolist()

    def _strings(self, name: str, copy: Callable[..., None]) -> Strings:
        slot = self.reading.names.index(name)
        starts, stops = self.spans[:, slot, 0], self.spans[:, slot, 1]
        out = np.empty(int((stops - np.where(starts < 0, ~starts, starts)).sum()), np.uint8)
        offsets = np.zeros(len(self.spans) + 1, np.int64)
        copy(read_only(self.text), self.spans, slot, out, offsets)
        return Strings(offsets, out)


def where_of(lines: Array, where: Callable[[int], str]) -> Callable[[int], str]:
    """Names row i, from what names its line."""
    return lambda i: where(int(lines[i]))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)
