"""Documents in memory: lists of strings, numpy arrays and Series of them, columns of pyarrow, and tables.

They are cut by their characters, so that what is converted at a time stays small, however long a document is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.containers import a_type, column_names, is_arrow, is_frame, is_series, iterated, python_values, type_of
from nfs_dask.documents.arrow import in_arrow, lie_in_arrow, texts_of
from nfs_dask.documents.checking import BATCH_DOCUMENTS, Bad, Checker, TextColumn, check_columns, is_missing
from nfs_dask.documents.document_source import BATCH_NBYTES, PIECE_NBYTES, Batch, TextColumns
from nfs_dask.errors import InputError
from nfs_dask.text.strings import Strings

PIECE_BATCHES = PIECE_NBYTES // BATCH_NBYTES

Where = Callable[[int], str]


@dataclass(frozen=True)
class MemoryRows:
    """Documents side by side with their labels and weights."""

    columns: TextColumns
    texts: tuple[Any, ...]  # for each region a list, tuple or column
    labels: Any = None  # column
    weights: Any = None  # column
    others: Mapping[str, Any] = field(default_factory=dict)  # further columns, by their names

    @classmethod
    def of(cls, data: Any, columns: TextColumns) -> MemoryRows:
        """Of a DataFrame; anything else is documents alone."""
        if not is_frame(data):
            if getattr(data, "ndim", 1) != 1:
                raise InputError(
                    f"documents of shape {data.shape}; give one string for each document, in one dimension"
                )
            return cls(columns, (data,))
        check_columns(f"the {type(data).__name__}", column_names(data) or [], columns)
        labels, weights = (None if name is None else data[name] for name in (columns.label, columns.weight))
        others = {name: data[name] for name in columns.others}
        return cls(columns, tuple(data[name] for name in columns.text), labels, weights, others)

    def cuts(self) -> tuple[Array, int]:
        """Where batches begin and end; and about how many bytes all texts have."""
        ends = np.cumsum(np.sum([_lengths(texts) for texts in self.texts], axis=0, dtype=np.int64))
        cuts = [0]
        while cuts[-1] < len(ends):
            start = cuts[-1]
            before = ends[start - 1] if start else 0
            full = int(np.searchsorted(ends, before + BATCH_NBYTES)) + 1
            cuts.append(min(full, start + BATCH_DOCUMENTS, len(ends)))
        return np.array(cuts), int(ends[-1]) if len(ends) else 0

    def batch(self, start: int, stop: int, where: Where) -> Batch:
        """Documents ``start .. stop - 1``; ``where`` names document i of all."""
        known: dict[int, Bad] = {}
        texts = [_texts(_part(values, start, stop), lambda i: where(start + i), known) for values in self.texts]
        labels = None if self.labels is None else TextColumn(_labels(_part(self.labels, start, stop)))
        weights = None if self.weights is None else TextColumn(_numbers(_part(self.weights, start, stop), known))
        others = {name: python_values(_part(values, start, stop)) for name, values in self.others.items()}
        return Checker(self.columns).batch(texts, labels, weights, lambda i: where(start + i), known, others)


class MemoryDocuments:
    """Documents of a list, a tuple, a numpy array, a Series, a column of pyarrow, or a table; numbered from 0."""

    in_memory = True
    region_names: Sequence[str] = ()
    delayed: Sequence[Any] | None = None
    import_nbytes = 0
    fingerprint: str | None = None

    def __init__(self, data: Any, columns: TextColumns) -> None:
        self.columns = columns
        self.labelled = columns.label is not None
        self.weighted = columns.weight is not None
        self._rows = MemoryRows.of(data, columns)
        self.nbytes: int | None
        self._cuts, self.nbytes = self._rows.cuts()
        self.n_pieces = -(-(len(self._cuts) - 1) // PIECE_BATCHES)
        if not self.n_pieces:
            raise InputError(f"no documents were given: the {type(data).__name__} is empty")

    def batches(self, piece: int) -> Iterator[Batch]:
        cuts = self._cuts[piece * PIECE_BATCHES : (piece + 1) * PIECE_BATCHES + 1].tolist()
        for start, stop in pairwise(cuts):
            yield self._rows.batch(start, stop, "document {}".format)


def _part(values: Any, start: int, stop: int) -> Any:
    return values.iloc[start:stop] if hasattr(values, "iloc") else values[start:stop]


def _is_arrow(values: Any) -> bool:
    """Whether the strings of a column lie in Arrow's memory."""
    return (is_series(values) or is_arrow(values)) and lie_in_arrow(type_of(values))


def _lengths(texts: Any) -> Array:
    """Characters of each text, or bytes; 0 for what is no text."""
    if isinstance(texts, np.ndarray) and texts.dtype.kind == "U":
        return np.full(len(texts), texts.dtype.itemsize // 4)
    if _is_arrow(texts):
        import pyarrow.compute as pc

        return np.asarray(pc.fill_null(pc.binary_length(in_arrow(texts)), 0)).astype(np.int64)
    return np.fromiter((len(text) if isinstance(text, str) else 0 for text in iterated(texts)), np.int64, len(texts))


def _texts(values: Any, where: Where, known: dict[int, Bad]) -> TextColumn:
    """Strings of one region, and what is wrong with some."""
    if _is_arrow(values):
        array = in_arrow(values)
        return texts_of(array.combine_chunks() if hasattr(array, "chunks") else array, "utf-8")
    texts = python_values(values)
    if {str, np.str_}.issuperset(map(type, texts)):
        try:
            return TextColumn(Strings.of(texts))
        except UnicodeEncodeError:
            pass  # which of them, the loop finds
    encoded = [_encoded(text, i, where, known) for i, text in enumerate(texts)]
    present = np.array([text is not None for text in encoded], bool)
    return TextColumn(Strings.of(text or b"" for text in encoded), present)


def _encoded(text: Any, i: int, where: Where, known: dict[int, Bad]) -> bytes | None:
    if (checked := text_or_none(text, lambda: where(i))) is None:
        return None
    try:
        return checked.encode()
    except UnicodeEncodeError as error:
        half = ord(checked[error.start])
        known.setdefault(i, Bad("undecodable", f"U+{half:04X}, half of a character, has no UTF-8"))
        return b""


def text_or_none(text: Any, where: Callable[[], str]) -> str | None:
    """The text, or None where it is missing; anything else is refused, as it was no text that got lost."""
    if isinstance(text, str):
        return text
    if is_missing(text):
        return None
    raise InputError(f"{where()} is {a_type(text)}; documents are strings{_advice(text)}")


def _advice(value: Any) -> str:
    return next((advice for kind, advice in _ADVICE.items() if isinstance(value, kind)), "")


_ADVICE: dict[Any, str] = {
    (bytes, bytearray): ": decode it first, as in text.decode('latin-1')",
    tuple: ": give labels apart, with labels=",
    dict: ": make a DataFrame of dicts, and name its column of texts with text_column=",
    list: ": join its words with spaces",
}


def _is_numbers(column: Any) -> bool:
    """Whether a column is a plain array of numbers without missing ones."""
    dtype = getattr(column, "dtype", None)
    return isinstance(dtype, np.dtype) and dtype.kind in "biuf"


def _labels(series: Any) -> Any:
    """Numbers as an array, anything else as a list."""
    if _is_numbers(series):
        return series.to_numpy()
    return python_values(series)


def _numbers(series: Any, known: dict[int, Bad]) -> Array:
    if _is_numbers(series):
        return series.to_numpy(np.float64)
    out = np.full(len(series), np.nan)
    for i, value in enumerate(python_values(series)):
        if not is_missing(value):
            try:
                out[i] = value
            except (TypeError, ValueError, OverflowError):
                known.setdefault(i, Bad("weight", f"the weight {value!r:.40} is not a number"))
    return out
