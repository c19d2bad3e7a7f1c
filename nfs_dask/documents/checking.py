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
from nfs_dask.documents.decoding import explain_undecodable
from nfs_dask.documents.document_source import BATCH_NBYTES, Batch, DocumentProblem, ProblemKind, TextColumns
from nfs_dask.errors import InputError, did_you_mean
from nfs_dask.redaction import redacted
from nfs_dask.text.strings import Strings, invalid_utf8

BATCH_DOCUMENTS = 1 << 16  # most in a batch, so that neither very short documents nor their problems pile up
MISSING_TEXT = "the text is missing (that of a document without words is '')"
GOOD_WEIGHTS = "weights are finite numbers of zero or more"
_SPACES = np.array([*range(9, 14), *range(28, 33)], np.uint8)
_WIDE_SPACES = np.array([0xC285, 0xC2A0, 0xE19A, 0xE280, 0xE281, 0xE380], np.uint16)  # first two bytes
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


NO_LABEL = Bad("label", "the document has no label")


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
        wanted = np.ones(n, bool)
        for one in self.columns.where:  # documents that could not be read are taken for wanted
            wanted &= one.holds(others[one.column]) | np.fromiter((v is UNREAD for v in others[one.column]), bool, n)
        strings = tuple(cleared(column) for column in texts)
        bad = dict(known or {})
        label_values = None if labels is None else labels.values
        weight_values, bad_weights = (None, {}) if weights is None else _numbers(weights)
        for i, problem in (*self._found(texts, strings, labels), *bad_weights.items()):
            bad.setdefault(i, problem)
        bad = {i: problem for i, problem in bad.items() if wanted[i]}
        if bad and self.columns.on_error == "fail":
            first = min(bad)
            raise failure(where(first), bad[first].what)
        found = tuple(one.found(v for v in others[one.column] if v is not UNREAD) for one in self.columns.where)
        kept = {name: others[name] for name in self.columns.kept + self.columns.numbers}
        if bad or not wanted.all():
            wanted[list(bad)] = False
            strings = tuple(_only(region, wanted) for region in strings)
            label_values = None if labels is None else _chosen(label_values, wanted)
            weight_values = None if weight_values is None else weight_values[wanted]
            kept = {name: _chosen(values, wanted) for name, values in kept.items()}
        return Batch(
            strings,
            label_values,
            weight_values,
            seen=n,
            skipped=np.flatnonzero(~wanted),
            problems=tuple(DocumentProblem(bad[i].kind, redacted(where(i)), bad[i].what) for i in sorted(bad)),
            empty=int(np.count_nonzero(np.logical_and.reduce([*map(blank, strings)]))) if strings else 0,
            others=kept,
            found=found,
        )

    def _found(
        self,
        texts: Sequence[TextColumn],
        cleared: tuple[Strings, ...],
        labels: TextColumn | None,
    ) -> Iterator[tuple[int, Bad]]:
        """What is wrong with which document; the first that is said of a document counts."""
        for strings in cleared:
            for i in invalid_utf8(strings):
                yield i, Bad("undecodable", explain_undecodable(strings[i], self.columns.encoding))
        present = [column.present for column in texts if column.present is not None]
        if texts and len(present) == len(texts):
            yield from (
                (i, Bad("missing", MISSING_TEXT)) for i in np.flatnonzero(~np.logical_or.reduce(present)).tolist()
            )
        if labels is not None:
            yield from _bad_labels(labels)


def later(where: Callable[[int], str], first: int) -> Callable[[int], str]:
    """Names documents by their places after the one that is ``first``."""
    return lambda i: where(first + i)


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
        self._weights: list[Any] = []
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
        except UnicodeEncodeError as error:
            self.bad(place, *half_a_character(error), others)
        else:
            self._append(place, encoded, label, weight, others)

    def bad(self, place: Any, kind: ProblemKind, what: str, others: Sequence[Any] | None = None) -> None:
        """A document that could not be read, or of which no more than the further columns could."""
        self._known[len(self._places)] = Bad(kind, what)
        self._append(place, [b""] * self._columns.n_regions, None, 1.0, others)

    def _append(
        self, place: Any, encoded: Sequence[bytes | None], label: Any, weight: Any, others: Sequence[Any] | None
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


def _column(texts: Sequence[bytes | None]) -> TextColumn:
    strings = Strings.of(text or b"" for text in texts)
    return TextColumn(strings, np.array([text is not None for text in texts], bool) if None in texts else None)


def _bad_labels(labels: TextColumn) -> Iterator[tuple[int, Bad]]:
    values, present = labels
    kind = values.dtype.kind if isinstance(values, np.ndarray) else "O"
    if kind in "biuf":
        missing = np.isnan(values) if kind == "f" else np.zeros(len(values), bool)
        for i in np.flatnonzero(missing if present is None else missing | ~present).tolist():
            yield i, Bad("label", "the document has no label")
        return
    try:
        wrong = {value: bad for value in set(values) if (bad := _wrong_with_label(value))}
        found = {i: wrong[value] for i, value in enumerate(values) if value in wrong} if wrong else {}
    except TypeError:  # lists and dicts, which are no labels, cannot be looked up
        found = {i: bad for i, value in enumerate(values) if (bad := _wrong_with_label(value))}
    absent = [] if present is None else np.flatnonzero(~present).tolist()
    yield from (found | dict.fromkeys(absent, NO_LABEL)).items()


def _wrong_with_label(label: Any) -> Bad | None:
    if is_missing(label):
        return NO_LABEL
    try:
        if isinstance(label, str):
            label.encode()
    except UnicodeEncodeError as error:
        return half_a_character(error)
    return None


def is_missing(value: Any) -> bool:
    """Whether a label is None, NaN, NaT, pandas.NA or an empty string."""
    if isinstance(value, str):
        return not value
    if value is None:
        return True
    different = value != value  # NaN and NaT differ from themselves; pandas.NA does not say
    return bool(different) if isinstance(different, (bool, np.bool_)) else type(value).__name__ == "NAType"


def _numbers(weights: TextColumn) -> tuple[Array, dict[int, Bad]]:
    """Weights as numbers, and what is wrong with some."""
    (values, present), said = weights, dict[int, str]()
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        numbers = np.asarray(values, np.float64)
    else:
        try:
            numbers = np.fromiter(map(float, values), np.float64, len(values))
        except (TypeError, ValueError, OverflowError):
            numbers = np.zeros(len(values))
            for i, value in enumerate(values):
                try:
                    numbers[i] = float(value)
                except (TypeError, ValueError, OverflowError):
                    said[i] = "no weight" if value is None else f"the weight {_shown(value)}"
    for i in [] if present is None else np.flatnonzero(~present).tolist():
        said[i] = "no weight"
    for i in np.flatnonzero(~(np.isfinite(numbers) & (numbers >= 0))).tolist():
        said.setdefault(i, f"the weight {numbers[i]:g}")
    return numbers, {i: Bad("weight", f"the document has {what}; {GOOD_WEIGHTS}") for i, what in said.items()}


def cleared(column: TextColumn) -> Strings:
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


def blank(strings: Strings) -> Array:
    """Which strings have nothing but white space, as ``str.isspace`` sees it."""
    starts, stops = strings.offsets[:-1], strings.offsets[1:]
    found = starts == stops
    some = np.flatnonzero(~found)
    first = strings.text[starts[some]]
    second = strings.text[np.minimum(starts[some] + 1, stops[some] - 1)]
    # Only those that begin as white space does are looked at by Python.
    likely = np.isin(first, _SPACES) | np.isin(first.astype(np.uint16) << 8 | second, _WIDE_SPACES)
    for i in some[likely].tolist():
        found[i] = not strings[i].decode("utf-8", "surrogateescape").strip()
    return found
