"""Documents of Dask bags, Series and DataFrames: each partition becomes a task, and is read in bounded steps.

A bag holds strings, (text, label) pairs, or dicts. Where no column is named, the first item says which: its partition
is computed when the bag is opened (and those before it, if they are empty).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice, pairwise
from typing import Any, Literal, TypeAlias

import numpy as np

from nfs_dask.arrays.block import UNLABELLED, Array
from nfs_dask.containers import a_type, is_bag, is_frame, listed
from nfs_dask.documents.checking import MISSING_TEXT, Bad, Builder, check_columns, is_missing
from nfs_dask.documents.document_source import Batch, TextColumns
from nfs_dask.documents.texts_in_memory import MemoryRows, text_or_none
from nfs_dask.errors import InputError
from nfs_dask.graphs import lazy_tasks, refusing_to_block
from nfs_dask.sources.dask_matrices import PANDAS_NBYTES, futures_in
from nfs_dask.sources.labels import encode, sample_weights

TEXT = "text"  # the column that is meant when none is named
LABEL = "label"  # stands for the column of labels, where these come in pairs
Kind = Literal["rows", "texts", "pairs", "dicts"]
Where: TypeAlias = Callable[[], str]
Found: TypeAlias = tuple[list[str | None], Any, Any, list[Any] | None] | Bad
"""Texts, label, weight and values of further columns; or what is wrong."""


def as_bag(array: Any) -> Any:
    """A dask array of one dimension as a bag, with a partition for each chunk."""
    import dask.bag as bag

    return bag.from_delayed(delayed_parts(array))


def delayed_parts(collection: Any) -> list[Any]:
    """A Delayed for each partition, or chunk of one dimension; persisted ones keep their futures."""
    # Dask's optimisation would drop the futures of persisted collections.
    return list(collection.to_delayed(optimize_graph=not futures_in(collection)))


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
        for batch in self._rows(piece) if self._kind == "rows" else self._items(piece):
            yield replace(batch, **{what: values[batch.rows + first] for what, values in piece.beside.items()})
            first += batch.seen

    def _rows(self, partition: Partition) -> Iterator[Batch]:
        rows = MemoryRows.of(partition.content, self.columns)
        for start, stop in pairwise(rows.cuts()[0].tolist()):
            yield rows.batch(start, stop, lambda i: f"document {i} of partition {partition.number}")

    def _items(self, partition: Partition) -> Iterator[Batch]:
        def where(i: int) -> str:
            return f"item {i} of partition {partition.number}"

        # A Builder keeps labels if it is told of a column that has them.
        builder = Builder(replace(self.columns, label=LABEL) if self._kind == "pairs" else self.columns, where)
        read = _READERS[self._kind]
        for i, item in enumerate(partition.content):
            if not isinstance(item, str) and is_missing(item):
                builder.bad(i, "missing", MISSING_TEXT)
            else:
                found = read(item, self.columns, partial(where, i))
                if isinstance(found, Bad):
                    builder.bad(i, *found)
                else:
                    builder.add(i, *found)
            if builder.full:
                yield builder.take()
        yield from builder.rest()


def _look(
    collection: Any, columns: TextColumns, parts: Sequence[Any], futures: Sequence[Any]
) -> tuple[Kind, TextColumns]:
    """What the documents are, and the columns that hold them."""
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


def _read_text(item: Any, _columns: TextColumns, where: Where) -> Found:
    return [text_or_none(item, where)], None, None, None


def _read_pair(item: Any, _columns: TextColumns, where: Where) -> Found:
    if not _is_pair(item):
        raise InputError(f"{where()} is {a_type(item)}, while the first item of the bag is a (text, label) pair")
    return [text_or_none(item[0], where)], item[1], None, None


def _read_dict(item: Any, columns: TextColumns, where: Where) -> Found:
    if not isinstance(item, dict):
        raise InputError(f"{where()} is {a_type(item)}; items are dicts where columns are named")
    for name in columns.text:
        if name not in item:
            return Bad("broken", f"the dict has no {name!r}; it has {', '.join(map(repr, item)) or 'nothing'}")
    texts = [text_or_none(item[name], partial("{!r} of {}".format, name, where())) for name in columns.text]
    return texts, item.get(columns.label), item.get(columns.weight), [item.get(name) for name in columns.others]


_READERS: dict[str, Callable[[Any, TextColumns, Where], Found]] = {
    "texts": _read_text,
    "pairs": _read_pair,
    "dicts": _read_dict,
}
