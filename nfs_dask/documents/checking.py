"""The one place that decides about bad documents: what is wrong with them, and whether that ends the reading.

A document whose text is missing is bad; one whose text is empty is a document without words, kept and counted.

Readers hand over what they read, in vectors (`Checker.batch`) or document by document (`Builder`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.containers import of_columns
from nfs_dask.documents.decoding import explain_undecodable, invalid_utf8
from nfs_dask.documents.document_source import BATCH_NBYTES, Batch, DocumentProblem, ProblemKind, TextColumns
from nfs_dask.documents.whitespace import blank
from nfs_dask.errors import InputError, did_you_mean
from nfs_dask.redaction import redacted
from nfs_dask.text.strings import Strings

BATCH_DOCUMENTS = 1 << 16  # most in a batch, so that neither very short documents nor their problems pile up
MISSING_TEXT = "the text is missing (that of a document without words is '')"
GOOD_WEIGHTS = "weights are finite numbers of zero or more"
UNREAD = object()  # stands for a value of a document that could not be read
LONGEST_SHOWN = 40  # characters of a value in a message


class TextColumn(NamedTuple):
    """Values of some documents, and which of them are there."""

    values: Any  # Strings for texts, an array or a list for labels and weights
    present: Array | None = None  # (n,) bool; None: all


class Bad(NamedTuple):
    """What is wrong with a document."""

    kind: ProblemKind
    what: str


@dataclass(frozen=True)
class Checker:
    """Decides as ``columns.on_error`` says: raise InputError at the first bad document, or leave bad ones out."""

    columns: TextColumns

    def batch(
        self,
        texts: Sequence[TextColumn],
        labels: TextColumn | None,
        weights: TextColumn | None,
        where: Callable[[int], str],
        known: Mapping[int, Bad] | None = None,
        others: Mapping[str, Sequence[Any]] | None = None,
    ) -> Batch:
        """The good ones of n documents.

        ``texts`` has a column of n Strings for each region, not checked yet. ``labels`` and ``weights`` are None where
        they were not asked for. ``where(i)`` names the file and the line or row of document i and is asked only for bad
        ones. ``known`` has what the reader itself found wrong; entries of such documents in the columns are fillers.
        ``others`` has the values of ``columns.others``; UNREAD where that is a filler, too.
        """
        others = others or {}
        n = len(texts[0].values) if texts else len(next(iter(others.values())))
        wanted = self._wanted(n, others)
        cleared = tuple(_cleared(column) for column in texts)
        bad = dict(known or {})
        for i, problem in self._found(texts, cleared, labels, weights):
            bad.setdefault(i, problem)
        bad = {i: problem for i, problem in bad.items() if wanted[i]}
        if bad and self.columns.on_error == "fail":
            first = min(bad)
            raise failure(where(first), bad[first].what)
        label_values = None if labels is None else labels.values
        weight_values = None if weights is None else _numbers(weights)
        found = tuple(one.found(v for v in others[one.column] if v is not UNREAD) for one in self.columns.where)
        kept = {name: others[name] for name in self.columns.kept + self.columns.numbers}
        if not bad and wanted.all():
            empty = _n_empty(cleared)
            return Batch(cleared, label_values, weight_values, seen=n, empty=empty, others=kept, found=found)
        good = wanted
        good[list(bad)] = False
        skipped = np.flatnonzero(~good)
        texts_left = tuple(_only(strings, good) for strings in cleared)
        return Batch(
            texts_left,
            label_values if label_values is None else _chosen(label_values, good),
            weight_values if weight_values is None else weight_values[good],
            seen=n,
            skipped=skipped,
            problems=tuple(DocumentProblem(bad[i].kind, redacted(where(i)), bad[i].what) for i in sorted(bad)),
            empty=_n_empty(texts_left),
            others={name: _chosen(values, good) for name, values in kept.items()},
            found=found,
        )

    def _wanted(self, n: int, others: Mapping[str, Sequence[Any]]) -> Array:
        """Which of n documents meet all conditions; those that could not be read are taken for such."""
        wanted = np.ones(n, bool)
        for one in self.columns.where:
            values = others[one.column]
            wanted &= one.holds(values) | np.fromiter((value is UNREAD for value in values), bool, n)
        return wanted

    def _found(
        self,
        texts: Sequence[TextColumn],
        cleared: tuple[Strings, ...],
        labels: TextColumn | None,
        weights: TextColumn | None,
    ) -> Iterator[tuple[int, Bad]]:
        """What is wrong with which document; the first that is said of a document counts."""
        for strings in cleared:
            for i in invalid_utf8(strings):
                yield i, Bad("undecodable", explain_undecodable(strings[i], self.columns.encoding))
        for i in _missing_texts(texts):
            yield i, Bad("missing", MISSING_TEXT)
        if labels is not None:
            for i in np.flatnonzero(_missing_labels(labels)).tolist():
                yield i, Bad("label", "the document has no label")
        if weights is not None:
            yield from _bad_weights(weights)


def failure(where: str, what: str) -> InputError:
    """What ends the reading under ``on_error="fail"``."""
    return InputError(
        f'{where}: {what}; correct it, or leave such documents out with on_error="skip" (--on-error skip)'
    )


def check_columns(path: str, there: Sequence[str], columns: TextColumns) -> Sequence[str]:
    """Return the columns of a table, or refuse to read it where it lacks what is asked for."""
    has = f"{path} {of_columns(there)}"
    if not (columns.text or columns.numbers):
        raise InputError(f"{has}; say which of them hold the texts with text_column=")
    others = [("label_column", columns.label), ("weight_column", columns.weight)]
    others += [("where", one.column) for one in columns.where] + [("keep", name) for name in columns.kept]
    for option, name in others + [("text_column", name) for name in columns.text]:
        if name is not None and (times := there.count(name)) != 1:
            what = f"there {times} times" if times else "not among them"
            raise InputError(f"{has}; {option}={name!r} is {what}{_hint(option, name, there, times)}")
    return there


def _hint(option: str, name: str, there: Sequence[str], times: int) -> str:
    """What to do about a column that is not there."""
    if times:
        return ""
    near = did_you_mean(name, there)
    return near or (", so say which column holds the texts with text_column=" if option == "text_column" else "")


class Builder:
    """Batches from documents that come one by one.

    Parameters
    ----------
    columns : TextColumns
    where : callable
        Makes "file, line" of the ``place`` a document was added with, so that this is spelled out for bad ones only.
    """

    def __init__(self, columns: TextColumns, where: Callable[[Any], str] = str) -> None:
        self._columns = columns
        self._where = where
        self._clear()

    def _clear(self) -> None:
        self._texts: list[list[bytes | None]] = [[] for _ in range(self._columns.n_regions)]
        self._labels: list[Any] = []
        self._weights: list[float] = []
        self._others: dict[str, list[Any]] = {name: [] for name in self._columns.others}
        self._places: list[Any] = []
        self._known: dict[int, Bad] = {}
        self._nbytes = 0

    def add(
        self,
        place: Any,
        texts: Sequence[str | bytes | None],
        label: Any = None,
        weight: Any = None,
        others: Sequence[Any] | None = None,
    ) -> None:
        """A document: the text of each region, None where it is missing; bytes are UTF-8, not checked yet."""
        try:
            encoded = [text.encode() if isinstance(text, str) else text for text in texts]
            if isinstance(label, str):
                label.encode()
        except UnicodeEncodeError as error:
            self.bad(place, *half_a_character(error), others)
            return
        number = 1.0
        if self._columns.weight is not None:
            try:
                number = float(weight)
            except (TypeError, ValueError, OverflowError):
                self.bad(place, *bad_weight(weight), others)
                return
        self._append(place, encoded, label, number, others)

    def bad(self, place: Any, kind: ProblemKind, what: str, others: Sequence[Any] | None = None) -> None:
        """A document that could not be read, or of which no more than the further columns could."""
        self._known[len(self._places)] = Bad(kind, what)
        self._append(place, [b""] * self._columns.n_regions, None, 1.0, others)

    def _append(
        self, place: Any, encoded: Sequence[bytes | None], label: Any, weight: float, others: Sequence[Any] | None
    ) -> None:
        for values, value in zip(self._others.values(), others or [UNREAD] * len(self._others), strict=True):
            values.append(value)
        for region, text in zip(self._texts, encoded, strict=True):
            region.append(text)
            self._nbytes += len(text or b"")
        self._nbytes += 8 * len(self._columns.numbers)
        self._places.append(place)
        self._labels.append(label)
        self._weights.append(weight)

    @property
    def full(self) -> bool:
        """Whether it is time to `take`: also where that raises, unless a bad document is not among those wanted."""
        failed = bool(self._known) and self._columns.on_error == "fail"
        return failed or self._nbytes >= BATCH_NBYTES or len(self._places) >= BATCH_DOCUMENTS

    def take(self) -> Batch:
        """What was added since the last time."""
        places, where = self._places, self._where
        texts = [_column(region) for region in self._texts]
        labels = None if self._columns.label is None else TextColumn(self._labels)
        weights = None if self._columns.weight is None else TextColumn(self._weights)
        known, others = self._known, self._others
        self._clear()
        return Checker(self._columns).batch(texts, labels, weights, lambda i: where(places[i]), known, others)

    def rest(self) -> Iterator[Batch]:
        """The last batch, if anything is in it."""
        if self._places:
            yield self.take()


def half_a_character(error: UnicodeEncodeError) -> Bad:
    """Of a text or a label that UTF-8 cannot hold."""
    return Bad("undecodable", f"U+{ord(error.object[error.start]):04X}, half of a character, has no UTF-8")


def bad_weight(weight: Any) -> Bad:
    """Of a weight that is no number."""
    found = "no weight" if weight is None else f"the weight {_shown(weight)}"
    return Bad("weight", f"the document has {found}; {GOOD_WEIGHTS}")


def _column(texts: Sequence[bytes | None]) -> TextColumn:
    strings = Strings.of(text or b"" for text in texts)
    return TextColumn(strings, np.array([text is not None for text in texts], bool) if None in texts else None)


def _missing_texts(texts: Sequence[TextColumn]) -> list[int]:
    """Documents without a text in any region."""
    present = [column.present for column in texts if column.present is not None]
    if not texts or len(present) < len(texts):
        return []
    return np.flatnonzero(~np.logical_or.reduce(present)).tolist()


def _n_empty(texts: Sequence[Strings]) -> int:
    """How many documents have nothing but white space in all regions."""
    return int(np.count_nonzero(np.logical_and.reduce([blank(strings) for strings in texts]))) if texts else 0


def _missing_labels(labels: TextColumn) -> Array:
    values, present = labels
    if isinstance(values, np.ndarray) and values.dtype.kind in "biu":
        missing = np.zeros(len(values), bool)
    elif isinstance(values, np.ndarray) and values.dtype.kind == "f":
        missing = np.isnan(values)
    elif isinstance(values, np.ndarray) and values.dtype.kind == "U":
        missing = values == ""
    else:
        missing = np.fromiter(_each(is_missing, values), bool, len(values))
    return missing if present is None else missing | ~present


def _each(function: Callable[[Any], Any], values: Sequence[Any]) -> Iterator[Any]:
    """What a function says of each value, which it is asked about once where values that repeat can be told."""
    try:
        answers = {value: function(value) for value in set(values)}
    except TypeError:  # lists and dicts, which are no labels, cannot be looked up
        return map(function, values)
    return map(answers.__getitem__, values)


def is_missing(value: Any) -> bool:
    """Whether a label is None, NaN, NaT, pandas.NA or an empty string."""
    if isinstance(value, str):
        return not value
    if value is None:
        return True
    different = value != value  # NaN and NaT differ from themselves; pandas.NA does not say
    return bool(different) if isinstance(different, (bool, np.bool_)) else type(value).__name__ == "NAType"


def _bad_weights(weights: TextColumn) -> Iterator[tuple[int, Bad]]:
    values = _numbers(weights)
    absent = np.zeros(len(values), bool) if weights.present is None else ~weights.present
    for i in np.flatnonzero(absent | ~(np.isfinite(values) & (values >= 0))).tolist():
        found = "no weight" if absent[i] else f"the weight {values[i]:g}"
        yield i, Bad("weight", f"the document has {found}; {GOOD_WEIGHTS}")


def _numbers(weights: TextColumn) -> Array:
    try:
        return np.asarray(weights.values, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"weights are not all numbers ({error}); give finite numbers of zero or more") from None


def _cleared(column: TextColumn) -> Strings:
    """The texts, empty where they are missing."""
    strings, present = column
    if present is None or not np.diff(strings.offsets)[~present].any():
        return strings
    lengths = np.where(present, np.diff(strings.offsets), 0)
    return Strings(_offsets(lengths), _bytes_of(strings, present))


def _only(strings: Strings, good: Array) -> Strings:
    """Copies of the good ones."""
    return Strings(_offsets(np.diff(strings.offsets)[good]), _bytes_of(strings, good))


def _bytes_of(strings: Strings, chosen: Array) -> Array:
    """The bytes of some of the strings: by a mask of bytes, which takes less memory than their positions."""
    content = strings.text[strings.offsets[0] : strings.offsets[-1]]
    return content[np.repeat(chosen, np.diff(strings.offsets))]


def _offsets(lengths: Array) -> Array:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def _chosen(values: Any, good: Array) -> Any:
    if isinstance(values, np.ndarray):
        return values[good]
    return [value for value, keep in zip(values, good.tolist(), strict=True) if keep]


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."
