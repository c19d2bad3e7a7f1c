"""Documents in memory and in Dask: lists, arrays and Series of strings, columns of pyarrow, tables, and bags.

One text a document is a list, tuple, numpy array, Series or column of strings; several texts a document, its regions,
are columns of a table, or tuples or dicts, one for each document. A partition of a Dask collection is read as what it
holds; a bag holds strings, (text, label) pairs or dicts. All are read some megabytes at a time, cut by characters.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from typing import Any, Literal

import numpy as np

from nfs_dask.arrays.block import UNLABELLED, Array
from nfs_dask.containers import (
    a_type,
    column_names,
    column_types,
    is_arrow,
    is_bag,
    is_collection,
    is_column,
    is_frame,
    is_series,
    iterated,
    listed,
    python_values,
    type_of,
)
from nfs_dask.documents.arrow import are_strings, in_arrow, lie_in_arrow, strings_by_arrow, texts_of
from nfs_dask.documents.checking import (
    BATCH_DOCUMENTS,
    MISSING_TEXT,
    UNREAD,
    Bad,
    Checker,
    TextColumn,
    check_columns,
    cleared,
    half_a_character,
    is_missing,
    later,
)
from nfs_dask.documents.document_source import BATCH_NBYTES, PIECE_NBYTES, Batch, TextColumns
from nfs_dask.errors import InputError
from nfs_dask.graphs import lazy_tasks, refusing_to_block
from nfs_dask.sources.dask_matrices import PANDAS_NBYTES, futures_in
from nfs_dask.sources.labels import encode, sample_weights
from nfs_dask.text.counting import TermCounter, TermCounts
from nfs_dask.text.strings import Strings

PIECE_BATCHES = PIECE_NBYTES // BATCH_NBYTES
FEW_TEXTS = 100  # that are encoded without Arrow
PLAIN = ("",)  # the regions of documents that are texts themselves
TEXT = "text"  # the column that is meant when none is named
Kind = Literal["rows", "texts", "pairs", "dicts"]
Where = Callable[[int], str]

_ADVICE: dict[Any, str] = {
    (bytes, bytearray): "decode it first, as in text.decode('latin-1')",
    list: "join its words, ' '.join(words), and give labels apart",
    tuple: "give labels apart, with labels=",
    dict: "make a DataFrame of dicts, and name its column of texts with text_column=",
    object: "give a string for each, '' for an empty one",
}


# What a user gave


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


# DocumentRows


@dataclass(frozen=True)
class DocumentRows:
    """Documents side by side with their labels, weights and further columns."""

    columns: TextColumns
    texts: Sequence[Any]  # for each region a list, tuple or column
    labels: Any = None  # column
    weights: Any = None  # column
    others: Mapping[str, Any] = field(default_factory=dict)  # columns by their names
    known: Mapping[int, Bad] = field(default_factory=dict)  # what is wrong with some, whose values are fillers

    @classmethod
    def of(cls, data: Any, columns: TextColumns) -> DocumentRows:
        """Of a DataFrame; anything else is documents alone."""
        if not is_frame(data):
            if getattr(data, "ndim", 1) != 1:
                raise InputError(
                    f"documents of shape {data.shape}; give one string for each document, in one dimension"
                )
            return cls(columns, (data,))
        check_columns(f"the {type(data).__name__}", column_names(data) or [], columns)
        labels, weights = (None if name is None else data[name] for name in (columns.label, columns.weight))
        texts = [data[name] for name in columns.text]
        return cls(columns, texts, labels, weights, {name: data[name] for name in columns.others})

    def cuts(self) -> tuple[list[int], int]:
        """Where batches begin and end; and about how many bytes all texts have."""
        lengths = [_lengths(texts) for texts in self.texts]
        ends = np.cumsum(lengths[0] if len(lengths) == 1 else np.sum(lengths, axis=0, dtype=np.int64))
        if 0 < len(ends) <= BATCH_DOCUMENTS and ends[-1] <= BATCH_NBYTES:
            return [0, len(ends)], int(ends[-1])
        cuts = [0]
        while cuts[-1] < len(ends):
            start = cuts[-1]
            before = ends[start - 1] if start else 0
            full = int(np.searchsorted(ends, before + BATCH_NBYTES)) + 1
            cuts.append(min(full, start + BATCH_DOCUMENTS, len(ends)))
        return cuts, int(ends[-1]) if len(ends) else 0

    def encoded(self, start: int, stop: int, where: Where) -> tuple[list[TextColumn], dict[int, Bad]]:
        """The texts of some documents, and those that UTF-8 cannot hold; ``where`` names document i of all."""
        bad: dict[int, Bad] = {}
        names = self.columns.text or PLAIN
        texts = []
        for name, values in zip(names, self.texts, strict=True):
            texts.append(_texts(_part(values, start, stop), later(where, start), name, bad))
        return texts, bad

    def batch(self, start: int, stop: int, where: Where) -> Batch:
        """Documents ``start .. stop - 1`` without those that are bad."""
        texts, bad = self.encoded(start, stop, where)
        labels, weights = (
            None if values is None else TextColumn(_values(_part(values, start, stop)))
            for values in (self.labels, self.weights)
        )
        others = {name: python_values(_part(values, start, stop)) for name, values in self.others.items()}
        bad |= self.known
        return Checker(self.columns).batch(texts, labels, weights, later(where, start), bad, others)

    def strictly(self, start: int, stop: int, where: Where) -> Strings:
        """The texts of documents ``start .. stop - 1``, one document after another; all have to be there."""
        texts, bad = self.encoded(start, stop, where)
        if len(texts) == 1 and not bad and texts[0].present is None:
            return texts[0].values
        if bad:
            raise InputError(
                f"{where(start + min(bad))} has a lone surrogate, which is no character; replace it, "
                "text.encode('utf-8', 'replace').decode()"
            )
        missing = np.logical_and.reduce([np.zeros(stop - start, bool) if p is None else ~p for _, p in texts])
        if missing.any():
            i = start + int(missing.argmax())
            value = python_values(_part(self.texts[0], i, i + 1))[0]
            raise _no_text(value, where(i), (*self.columns.text, "")[0])
        return Batch(tuple(map(cleared, texts))).document_by_document()


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
    try:
        return np.fromiter(map(len, iterated(texts)), np.int64, len(texts))
    except TypeError:
        return np.fromiter((len(x) if isinstance(x, str) else 0 for x in iterated(texts)), np.int64, len(texts))


def _texts(values: Any, where: Where, name: str, bad: dict[int, Bad]) -> TextColumn:
    """Texts as UTF-8, and which are there; anything but strings is refused, as it was no text that got lost."""
    if _is_arrow(values):
        array = in_arrow(values)
        return texts_of(array.combine_chunks() if hasattr(array, "chunks") else array, "utf-8")
    texts = python_values(values)
    if set(map(type, texts)) <= {str, np.str_}:
        try:
            # Arrow takes a third of the time for many, but most of a second to load.
            many = len(texts) > FEW_TEXTS and "pyarrow" in sys.modules
            return TextColumn((strings_by_arrow if many else Strings.encoded)(texts))
        except UnicodeEncodeError:
            pass  # which of them, the loop finds
    encoded: list[bytes | None] = []
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            if not is_missing(text):
                raise _no_text(text, where(i), name)
            encoded.append(None)
            continue
        try:
            encoded.append(text.encode())
        except UnicodeEncodeError as error:
            bad.setdefault(i, half_a_character(error))
            encoded.append(b"")
    present = np.array([text is not None for text in encoded], bool)
    return TextColumn(Strings.of(text or b"" for text in encoded), present)


def _no_text(value: Any, where: str, name: str) -> InputError:
    kind = next(kind for kind in _ADVICE if isinstance(value, kind))
    shown = f"{value!r:.40}" if kind is object and np.ndim(value) == 0 else a_type(value)
    return InputError(f"{where}{name and f', {name!r}'} is {shown}, not a string; {_ADVICE[kind]}")


def _values(column: Any) -> Any:
    """Plain numbers as an array, anything else as a list."""
    dtype = getattr(column, "dtype", None)
    return column.to_numpy() if isinstance(dtype, np.dtype) and dtype.kind in "biuf" else python_values(column)


# Texts alone, for models and vectorizers


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
    columns = TextColumns(() if tuple(regions) == PLAIN else tuple(regions))
    for first, texts in _columns_of(given, tuple(regions), where):
        rows = DocumentRows(columns, texts)
        for start, stop in pairwise(rows.cuts()[0]):
            yield rows.strictly(start, stop, later((where + " {:,}").format, first))


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


def _columns_of(given: Any, regions: tuple[str, ...], where: str) -> Iterator[tuple[int, Sequence[Any]]]:
    """Documents as a column of texts for each region, some at a time, with the number of the first of them."""
    if is_frame(given):
        if regions == PLAIN:
            raise InputError("a DataFrame was given, and texts without a name are wanted; give its column of texts")
        if missing := [region for region in regions if region not in (column_names(given) or ())]:
            raise InputError(
                f"the data have no column {missing[0]!r}; the texts of a document are in {_listed(regions)}"
            )
        yield 0, [given[region] for region in regions]
    elif regions == PLAIN and (isinstance(given, (list, tuple)) or is_column(given)):
        yield 0, (given,)
    elif (
        len(regions) > 1
        and isinstance(given, (list, tuple))
        and any(isinstance(part, list) or is_column(part) for part in given)
    ):
        if len(given) != len(regions):
            raise InputError(
                f"{len(given)} lists of texts were given; give one for each region, {_listed(regions)}, or a tuple or "
                "dict for each document"
            )
        if len(set(map(len, given))) > 1:
            raise InputError(
                f"the lists of texts are not equally long: one has {min(map(len, given)):,}, and others have more"
            )
        yield 0, given
    else:
        for first, chunk in _chunks(given):
            if regions == PLAIN:
                yield first, (chunk,)
            else:
                made = (_regions_of(document, regions, f"{where} {first + i:,}") for i, document in enumerate(chunk))
                yield first, [list(texts) for texts in zip(*made, strict=True)]


def _chunks(items: Iterable[Any]) -> Iterator[tuple[int, list[Any]]]:
    """Items with about so much text as a batch has, and the number of the first of them."""
    first, chunk, nbytes = 0, list[Any](), 0
    for item in items:
        chunk.append(item)
        parts = item.values() if isinstance(item, Mapping) else item if isinstance(item, (list, tuple)) else (item,)
        nbytes += sum(len(part) for part in parts if isinstance(part, str))
        if nbytes >= BATCH_NBYTES or len(chunk) >= BATCH_DOCUMENTS:
            yield first, chunk
            first, chunk, nbytes = first + len(chunk), [], 0
    if chunk:
        yield first, chunk


def _regions_of(document: Any, regions: tuple[str, ...], where: str) -> Sequence[Any]:
    """The texts of one document, which has them by name or in the order of the regions."""
    if isinstance(document, Mapping):
        if missing := [region for region in regions if region not in document]:
            raise InputError(f"{where} has no {missing[0]!r}; give a text, '' for none, for each of {_listed(regions)}")
        return [document[region] for region in regions]
    if isinstance(document, tuple) and len(document) == len(regions):
        return document
    if isinstance(document, str) and len(regions) == 1:
        return (document,)
    found = f"a tuple of {len(document)}" if isinstance(document, tuple) else f"a {type(document).__name__}"
    raise InputError(
        f"{where} is {found}; give a DataFrame with columns {_listed(regions)}, or for each document a "
        "dict of these, or a tuple of its texts in this order"
    )


def _listed(regions: Sequence[str]) -> str:
    return ", ".join(map(repr, regions))


# Sources of documents


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
        self._rows = DocumentRows.of(data, columns)
        self.nbytes: int | None
        self._cuts, self.nbytes = self._rows.cuts()
        self.n_pieces = -(-(len(self._cuts) - 1) // PIECE_BATCHES)
        if not self.n_pieces:
            raise InputError(f"no documents were given: the {type(data).__name__} is empty")

    def batches(self, piece: int) -> Iterator[Batch]:
        for start, stop in pairwise(self._cuts[piece * PIECE_BATCHES : (piece + 1) * PIECE_BATCHES + 1]):
            yield self._rows.batch(start, stop, "document {}".format)


@dataclass(frozen=True)
class Partition:
    """A computed partition, and which it is."""

    number: int
    content: Any  # list, iterator, Series or DataFrame
    beside: dict[str, Array] = field(default_factory=dict)  # labels and weights that do not come with the documents


def _beside(what: str, piece: Partition, values: Any) -> Partition:
    """The partition with labels or weights beside it."""
    content, values = listed(piece.content), listed(values)
    try:
        if what == "weights":
            column = sample_weights(values, len(content))
        else:
            classes, codes = encode(values, len(content))
            if (missing := codes == UNLABELLED).any():
                raise InputError(f"labels= has none for document {np.argmax(missing)}; leave it out beforehand")
            column = classes[codes]
    except InputError as error:
        raise InputError(f"partition {piece.number}: {error}") from None
    return replace(piece, content=content, beside={**piece.beside, what: column})


class DaskDocuments:
    """Documents of a Dask bag, Series or DataFrame. Messages number partitions, and documents in each, from 0.

    Where no column of a bag is named, its first item says what it holds: its partition is computed when the bag is
    opened (and those before it, if they are empty).

    Parameters
    ----------
    collection : dask bag, Series or DataFrame
    columns : TextColumns
        Names the columns of a DataFrame, or the keys of dicts in a bag.
    """

    in_memory = False
    region_names: Sequence[str] = ()
    nbytes: int | None = None
    fingerprint: str | None = None

    def __init__(self, collection: Any, columns: TextColumns) -> None:
        futures = futures_in(collection)
        parts = delayed_parts(collection)
        if not parts:
            raise InputError(f"the {type(collection).__name__} has no partitions; give at least one document")
        self._kind, self.columns = _look(collection, columns, parts, futures)
        self.labelled = columns.label is not None or self._kind == "pairs"
        self.weighted = columns.weight is not None
        self.import_nbytes = PANDAS_NBYTES if self._kind == "rows" else 0
        self.n_pieces = len(parts)
        tasks = [(Partition, number, part) for number, part in enumerate(parts)]
        self.delayed: Sequence[Any] | None = lazy_tasks("documents", tasks, parts[:1])

    def put_beside(self, **given: Any) -> None:
        """Take labels or weights of Dask, cut as the documents are, in place of those that documents bring."""
        assert self.delayed is not None
        self.labelled, self.weighted = self.labelled or "labels" in given, self.weighted or "weights" in given
        for what, column in given.items():
            values = delayed_parts(column)
            if len(values) != self.n_pieces:
                raise InputError(
                    f"the documents lie in {self.n_pieces} partitions and {what}= in {len(values)}; cut both alike, by "
                    "repartition"
                )
            tasks = [(_beside, what, *both) for both in zip(self.delayed, values, strict=True)]
            self.delayed = lazy_tasks(what, tasks, [self.delayed[0], values[0]])

    def batches(self, piece: Partition) -> Iterator[Batch]:
        """The documents of one computed partition."""
        first = 0
        for batch in self._read(piece.content, f"of partition {piece.number}"):
            yield replace(batch, **{what: values[batch.rows + first] for what, values in piece.beside.items()})
            first += batch.seen

    def _read(self, content: Any, of: str) -> Iterator[Batch]:
        if self._kind == "rows":
            rows = DocumentRows.of(content, self.columns)
            for start, stop in pairwise(rows.cuts()[0]):
                yield rows.batch(start, stop, f"document {{}} {of}".format)
            return
        for first, items in _chunks(content):
            where = later(f"item {{}} {of}".format, first)
            yield _rows_of(self._kind, items, self.columns, where).batch(0, len(items), where)


def _rows_of(kind: Kind, items: list[Any], columns: TextColumns, where: Where) -> DocumentRows:
    """Some items of a bag."""
    if kind == "texts":
        return DocumentRows(columns, (items,))
    absent = {i for i, item in enumerate(items) if not isinstance(item, (tuple, dict)) and is_missing(item)}
    if kind == "pairs":
        found = [(None, None) if i in absent else item for i, item in enumerate(items)]
        if (odd := next((i for i, item in enumerate(found) if not _is_pair(item)), None)) is not None:
            said = "while the first item of the bag is a (text, label) pair"
            raise InputError(f"{where(odd)} is {a_type(items[odd])}, {said}")
        return DocumentRows(columns, ([text for text, _ in found],), [label for _, label in found])
    known = {i: Bad("missing", MISSING_TEXT) for i in absent}
    for i, item in enumerate(items):
        if i in absent:
            continue
        if not isinstance(item, dict):
            raise InputError(f"{where(i)} is {a_type(item)}; items are dicts where columns are named")
        if lacking := [name for name in columns.text if name not in item]:
            has = ", ".join(map(repr, item)) or "nothing"
            known[i] = Bad("broken", f"the dict has no {lacking[0]!r}; it has {has}")
    dicts = [{} if i in known else item for i, item in enumerate(items)]
    texts = [[item.get(name) for item in dicts] for name in columns.text]
    labels, weights = (name and [item.get(name) for item in dicts] for name in (columns.label, columns.weight))
    others = {
        name: [UNREAD if i in known else item.get(name) for i, item in enumerate(dicts)] for name in columns.others
    }
    return DocumentRows(columns, texts, labels, weights, others, known)


def _look(
    collection: Any, columns: TextColumns, parts: Sequence[Any], futures: Sequence[Any]
) -> tuple[Kind, TextColumns]:
    """The kind of documents, and the columns that hold them."""
    if not is_bag(collection):
        if is_frame(collection):
            check_columns(f"the {type(collection).__name__}", list(collection.columns), columns)
        return "rows", columns
    if columns.text:
        return "dicts", columns
    first = _first(parts, futures)
    if isinstance(first, dict):
        if TEXT not in first:
            raise InputError(
                f"the bag holds dicts with {', '.join(map(repr, first))}; name the text among them with text_column="
            )
        return "dicts", replace(columns, text=(TEXT,))
    others = [("where", name) for name in columns.others]
    for name, value in [("label_column", columns.label), ("weight_column", columns.weight), *others]:
        if value is not None:
            raise InputError(f"{name}={value!r} names a key of dicts, but the bag holds {a_type(first)}")
    return ("pairs" if _is_pair(first) else "texts"), columns


def _first(parts: Sequence[Any], futures: Sequence[Any]) -> Any:
    """The first item that is there; partitions are computed one by one until one has such an item."""
    import dask

    for part in parts:
        (head,) = lazy_tasks("head", [(_head, part)], [part])
        with refusing_to_block():
            (found,) = dask.compute(head, scheduler=futures[0].client if futures else None)
        if found:
            return found[0]
    raise InputError("the bag has no items; give at least one document")


def _head(partition: Iterable[Any]) -> list[Any]:
    return list(islice((item for item in partition if isinstance(item, str) or not is_missing(item)), 1))


def _is_pair(item: Any) -> bool:
    return isinstance(item, tuple) and len(item) == 2


def as_bag(array: Any) -> Any:
    """A dask array of one dimension as a bag, with a partition for each chunk."""
    import dask.bag as bag

    return bag.from_delayed(delayed_parts(array))


def delayed_parts(collection: Any) -> list[Any]:
    """A Delayed for each partition, or chunk of one dimension; persisted ones keep their futures."""
    # Dask's optimisation would drop the futures of persisted collections.
    return list(collection.to_delayed(optimize_graph=not futures_in(collection)))
