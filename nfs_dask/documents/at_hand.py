"""Texts that a user has at hand: what counts as such, and how they are read, some megabytes at a time.

One text a document is a list, tuple, numpy array or Series of strings, a dask bag or a dask Series. Several texts a
document, its regions, are the columns of a DataFrame, or tuples or dicts, one for each document.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.containers import (
    column_names,
    column_types,
    is_arrow,
    is_bag,
    is_collection,
    is_column,
    is_frame,
    iterated,
    type_of,
)
from nfs_dask.documents.arrow import are_strings, strings_by_arrow, strings_in_arrow
from nfs_dask.documents.checking import is_missing
from nfs_dask.documents.document_source import BATCH_NBYTES
from nfs_dask.errors import InputError
from nfs_dask.text.counting import TermCounter, TermCounts
from nfs_dask.text.strings import Strings

TEXT_NBYTES = 16  # that a text takes in a batch besides its bytes
AT_A_TIME = 1 << 13  # of Python's strings, looked at and encoded while the cache of a core has them
PLAIN = ("",)  # the regions of documents that are texts themselves


def holds_texts(X: Any, regions: Sequence[str] = PLAIN) -> bool:
    """Whether X is documents, rather than a matrix; nothing of a Dask collection is computed.

    Parameters
    ----------
    X
        Whatever a user gave.
    regions
        Columns in which a DataFrame would hold the texts.
    """
    if isinstance(X, str) or is_bag(X):
        return True
    if is_frame(X):
        names = column_names(X) or ()
        nothing = not is_collection(X) and not len(X)  # whose types say nothing
        return any(region in names and (nothing or _may_be_text(type_of(X[region]))) for region in regions if region)
    if is_arrow(X) or hasattr(type(X), "dtype"):
        one_column = getattr(X, "ndim", 1) == 1 and _may_be_text(type_of(X))
        return one_column and (is_collection(X) or any(isinstance(value, str) for value in iterated(X)))
    return isinstance(X, (list, tuple)) and _is_document(next((one for one in X if one is not None), None))


def holds_no_text(X: Any) -> bool:
    """Whether X is documents without a text: none, or beginning with None or bytes, which `batches` explains."""
    if is_column(X):
        return getattr(type_of(X), "kind", "") == "S" or not (is_collection(X) or len(X))
    return isinstance(X, (list, tuple)) and (not len(X) or X[0] is None or isinstance(X[0], (bytes, bytearray)))


def text_columns(frame: Any) -> list[Any]:
    """Names of the columns of a DataFrame that may hold texts."""
    names, kinds = column_names(frame) or [], column_types(frame)
    return [name for name, kind in zip(names, kinds, strict=True) if _may_be_text(kind)]


def _may_be_text(dtype: Any) -> bool:
    return are_strings(dtype) is not False


def _is_document(value: Any) -> bool:
    """A text; or its regions by name or position; or the column of one region."""
    if isinstance(value, (list, tuple)) or (is_column(value) and _may_be_text(type_of(value))):
        return any(isinstance(part, str) for part in iterated(value))
    return isinstance(value, (str, Mapping))


def batches(given: Any, regions: Sequence[str] = PLAIN, where: str = "document") -> Iterator[Strings]:
    """Texts in memory, document after document and region after region, some megabytes at a time.

    Parameters
    ----------
    given
        In memory: as for `holds_texts`, or any iterable of documents.
    regions
        One name for each text of a document.
    where
        What to call a document in messages; its number follows.
    """
    if isinstance(given, (str, bytes)):
        raise InputError("one string was given in place of many documents; put it into a list, [text]")
    if tuple(regions) != PLAIN or is_frame(given):
        yield from _one_by_one(_texts(given, tuple(regions), where), regions, where)
    elif (strings := strings_in_arrow(given)) is not None:
        for texts in strings:
            yield from map(texts.part, *_cut(np.diff(texts.offsets)))
    elif (values := _objects(given)) is not None:
        for first in range(0, len(values), AT_A_TIME):
            yield from _together(values[first : first + AT_A_TIME], where, first)
    else:
        yield from _one_by_one(iterated(given), regions, where)


def counts(
    counter: TermCounter, given: Any, regions: Sequence[str] = PLAIN, where: str = "document"
) -> Iterator[TermCounts]:
    """What a counter finds in texts in memory, those of some megabytes together; of no texts nothing.

    Parameters
    ----------
    counter
        Has a row for each text, document after document and region after region.
    given, regions, where
        As for `batches`.
    """
    nbytes = 0
    for texts in batches(given, regions, where):
        counter.add(texts)
        nbytes += texts.nbytes
        if nbytes >= BATCH_NBYTES:
            yield counter.finish()
            nbytes = 0
    if nbytes:
        yield counter.finish()


def _objects(given: Any) -> Any:
    """Documents that are Python's strings already, where they can be cut; None where they are in another form."""
    if isinstance(given, (list, tuple)):
        return given
    values = given.values if is_column(given) and hasattr(given, "iloc") else given
    return values if isinstance(values, np.ndarray) and values.dtype == object and values.ndim == 1 else None


def _together(texts: Any, where: str, first: int) -> Iterator[Strings]:
    """Some documents, encoded many at a time if all are plain strings; document ``first`` is the first of them."""
    texts = texts.tolist() if isinstance(texts, np.ndarray) else texts
    if set(map(type, texts)) != {str}:
        yield from _one_by_one(texts, PLAIN, where, first)
        return
    if sum(map(len, texts)) + TEXT_NBYTES * len(texts) <= BATCH_NBYTES:
        yield _encoded(texts, where, first, 1)
        return
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    for start, stop in zip(*_cut(lengths), strict=True):
        yield _encoded(texts[start:stop], where, first + start, 1)


def _cut(lengths: Array) -> tuple[list[int], list[int]]:
    """Where batches of texts of these lengths begin and end."""
    ends = np.cumsum(lengths + TEXT_NBYTES)
    cuts = [0]
    while cuts[-1] < len(ends):
        before = ends[cuts[-1] - 1] if cuts[-1] else 0
        cuts.append(min(int(np.searchsorted(ends, before + BATCH_NBYTES)) + 1, len(ends)))
    return cuts[:-1], cuts[1:]


def _one_by_one(texts: Iterable[Any], regions: Sequence[str], where: str, first: int = 0) -> Iterator[Strings]:
    """Texts of any kind, the first of them number ``first``; those that are none are refused."""
    chunk: list[str] = []
    nbytes = 0
    for number, text in enumerate(texts, first):
        if type(text) is not str and not isinstance(text, str):  # the first is quick, and nearly always enough
            raise _no_text(text, f"{where} {number // len(regions):,}", regions, number % len(regions))
        chunk.append(text)
        nbytes += len(text) + TEXT_NBYTES
        if nbytes >= BATCH_NBYTES and (number + 1) % len(regions) == 0:
            yield _encoded(chunk, where, first, len(regions))
            first, chunk, nbytes = number + 1, [], 0
    if chunk:
        yield _encoded(chunk, where, first, len(regions))


def _texts(given: Any, regions: tuple[str, ...], where: str) -> Iterator[Any]:
    """All texts, document after document."""
    if is_frame(given):
        yield from _filled(_across([given[region] for region in _columns(given, regions)]))
    elif len(regions) > 1 and isinstance(given, (list, tuple)) and _are_columns(given):
        if len(given) != len(regions):
            raise InputError(
                f"{len(given)} lists of texts were given; give one for each region, {_listed(regions)}, or a tuple or "
                "dict for each document"
            )
        yield from _filled(_across(given))
    else:
        yield from _filled(_regions_of(document, regions, where, number) for number, document in enumerate(given))


def _are_columns(given: Sequence[Any]) -> bool:
    return any(isinstance(part, list) or is_column(part) for part in given)


def _filled(documents: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
    """The texts of all documents; a region without a text is empty where another one has a text."""
    for document in documents:
        there = [isinstance(text, str) for text in document]
        if any(there) and not all(there):
            yield from ("" if is_missing(text) else text for text in document)
        else:
            yield from document


def _across(columns: Sequence[Iterable[Any]]) -> Iterator[tuple[Any, ...]]:
    """Rows of columns that are equally long."""
    missing = object()
    for number, row in enumerate(zip_longest(*map(iterated, columns), fillvalue=missing)):
        if any(text is missing for text in row):
            raise InputError(f"the lists of texts are not equally long: one has {number:,}, and others have more")
        yield row


def _columns(frame: Any, regions: tuple[str, ...]) -> tuple[str, ...]:
    if regions == PLAIN:
        raise InputError("a DataFrame was given, and texts without a name are wanted; give its column of texts")
    missing = [region for region in regions if region not in (column_names(frame) or ())]
    if missing:
        raise InputError(f"the data have no column {missing[0]!r}; the texts of a document are in {_listed(regions)}")
    return regions


def _regions_of(document: Any, regions: tuple[str, ...], where: str, number: int) -> tuple[Any, ...]:
    """The texts of one document, which has them by name or in the order of the regions."""
    if isinstance(document, Mapping):
        for region in regions:
            if region not in document:
                raise InputError(
                    f"{where} {number:,} has no {region!r}; give a text, '' for none, for each of {_listed(regions)}"
                )
        return tuple(document[region] for region in regions)
    if isinstance(document, tuple) and len(document) == len(regions):
        return document
    if isinstance(document, str) and len(regions) == 1:
        return (document,)
    found = f"a tuple of {len(document)}" if isinstance(document, tuple) else f"a {type(document).__name__}"
    raise InputError(
        f"{where} {number:,} is {found}; give a DataFrame with columns {_listed(regions)}, or for each document a "
        "dict of these, or a tuple of its texts in this order"
    )


def _listed(regions: Sequence[str]) -> str:
    return ", ".join(map(repr, regions))


def _no_text(value: Any, name: str, regions: Sequence[str], region: int) -> InputError:
    inside = f", {regions[region]!r}" if regions[region] else ""
    shown = f"a {type(value).__name__}" if isinstance(value, (bytes, bytearray, list, tuple, dict)) else repr(value)
    advice = "give a string for each, '' for an empty one"
    if isinstance(value, (bytes, bytearray)):
        advice = "decode it first"
    elif isinstance(value, (list, tuple)):
        advice = "join its words, ' '.join(words), and give labels apart"
    return InputError(f"{name}{inside} is {shown}, not a string; {advice}")


def _encoded(texts: Sequence[str], where: str, first: int, n_regions: int) -> Strings:
    encode = strings_by_arrow if "pyarrow" in sys.modules else Strings.encoded  # which takes three times as long
    try:
        return encode(texts)
    except UnicodeEncodeError:
        bad = next(number for number, text in enumerate(texts, first) if not _is_encodable(text))
        raise InputError(
            f"{where} {bad // n_regions:,} has a lone surrogate, which is no character; replace it, "
            "text.encode('utf-8', 'replace').decode()"
        ) from None


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
