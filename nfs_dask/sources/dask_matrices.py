"""Dask arrays and data frames: each row of chunks becomes a task that makes one block.

Nothing past this file sees a Dask collection. What a chunk is, is looked up in its task (`chunks`), as the ``meta`` of
a collection is often missing or wrong. Column chunks are put side by side in the task, so that none is rechunked.

Computed eagerly, here: one pass over ``y`` for its classes, which brings its codes along where they are few enough, so
that it is the only one; and one over X for the heights of its chunks, only where they are not known and labels or
weights come in memory.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from copy import copy
from functools import cached_property, partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from nfs_dask.arrays.block import Array, Block
from nfs_dask.containers import a_type, is_bag, is_collection
from nfs_dask.errors import InputError
from nfs_dask.graphs import lazy_tasks, lazy_tree, refusing_to_block
from nfs_dask.sources.chunks import PartLabels, height, make_block, merged, part_labels, weigh, with_folds
from nfs_dask.sources.labels import encode, encode_as, sample_weights, smallest_codes
from nfs_dask.sources.matrices import check_size
from nfs_dask.sources.matrix_source import check_names
from nfs_dask.sources.source import BLOCK_NBYTES, Facts, Sizes, Source
from nfs_dask.text.column_names import Named, names_with, some_of
from nfs_dask.units import MiB

if TYPE_CHECKING:
    from nfs_dask.store.row_columns import Annotations

MOST_CODES = 1 << 20  # labels whose codes come to the client, so that y is read once; of more it is read again
FAN_IN = 16  # classes of that many parts of y are merged together
DENSE_ENTRY_NBYTES = 24  # value and column of an entry, and the dense value it came from
MARGIN = 2.0  # how much fuller than the block that was looked at another one may be
PANDAS_NBYTES = 66 * MiB  # measured: what importing pandas takes

_known: WeakKeyDictionary[Any, dict[Any, PartLabels]] = WeakKeyDictionary()  # by a future of what is persisted


class CollectionSource(Source):
    """Blocks of a dask array or DataFrame, one for each row of chunks.

    Parameters
    ----------
    X : dask array or DataFrame, shape (n_rows, n_features)
        Chunks of numpy, scipy sparse, sparse.COO or GCXS, or pandas; known or unknown (NaN) row chunks.
    y : dask array, dask Series, or anything in memory that holds labels; optional
        Chunked like X where the row chunks of X are unknown.
    sample_weight : like y, optional
    names : (n_features,) strings, optional
    annotations : the table of rows of an AnnData, optional
    """

    delayed: list[Any]

    def __init__(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        names: Sequence[str] | Array | None = None,
        annotations: Annotations | None = None,
    ) -> None:
        self._given = {"X": X, "y": y, "sample_weight": sample_weight, "names": names, "annotations": annotations}
        self._futures = futures_in(X, y, sample_weight)
        chunks, heights, widths = self._take_apart(X)
        self._chunks = chunks
        if heights is None and any(v is not None and not is_collection(v) for v in (y, sample_weight)):
            heights = self._compute(lazy_tasks("height", [(height, row[0]) for row in chunks], [chunks[0][0]]))
        classes: Array | None = None
        codes: Sequence[Any] = [None] * len(chunks)
        if y is not None:
            classes, codes, heights = self._labels(y, heights, "y")
        weights: Sequence[Any] = [None] * len(chunks)
        if sample_weight is not None:
            weights = self._weights(sample_weight, heights)
        self._facts = Facts(
            -1 if heights is None else sum(heights),
            sum(widths),
            len(chunks),
            classes=classes,
            weighted=sample_weight is not None,
            import_nbytes=PANDAS_NBYTES if hasattr(X, "columns") else 0,
        )
        check_size(self.n_rows, self.n_features)
        self._names = check_names(names_with(X) if names is None else names, self.n_features)
        self._heights, self._annotations = heights, annotations
        self.delayed = self._tasks(chunks, codes, weights, heights, widths)

    def _take_apart(self, X: Any) -> tuple[list[list[Any]], list[int] | None, list[int]]:
        """Chunks as [row][column], their heights where known, and their widths."""
        if _dimensions(X) != 2:
            raise InputError(
                f"X is {a_type(X)} of {_dimensions(X)} dimension(s); give a dask array or DataFrame "
                "with one row per document"
            )
        if hasattr(X, "columns"):
            return [[part] for part in self._parts(X)], None, [len(X.columns)]
        rows, widths = X.chunks
        if any(math.isnan(n) for n in widths):
            raise InputError("the number of columns of X is not known; call X.compute_chunk_sizes() first")
        chunks = [list(row) for row in self._parts(X)]
        return chunks, None if any(math.isnan(n) for n in rows) else [int(n) for n in rows], [int(n) for n in widths]

    @property
    def first_chunks(self) -> list[Any]:
        """The first of each row of chunks: of a DataFrame its partitions."""
        return [row[0] for row in self._chunks]

    def _parts(self, collection: Any) -> Any:
        """One Delayed for each chunk. Dask's optimisation would drop the futures of persisted collections."""
        return collection.to_delayed(optimize_graph=not self._futures)

    def given(self, **others: Any) -> CollectionSource:
        """The same rows with other labels, weights or names, where these are not None."""
        return CollectionSource(**self._given | {name: one for name, one in others.items() if one is not None})

    def codes_beside(self, values: Any, name: str) -> tuple[Array, Sequence[Any]]:
        """The distinct values of a column, and their codes for each block: arrays of few rows, else lazy ones."""
        return self._labels(values, self._heights, name)[:2]

    def with_folds(self, folds: Sequence[Any]) -> CollectionSource:
        """The same with a lazy array for each block, of the folds of its rows."""
        some = copy(self)
        tasks = [(with_folds, *both) for both in zip(self.delayed, folds, strict=True)]
        some.delayed = lazy_tasks("folded", tasks, [self.delayed[0], folds[0]])
        return some

    def _labels(self, y: Any, heights: list[int] | None, name: str) -> tuple[Array, Sequence[Any], list[int]]:
        """Classes, codes for each block, and the heights of blocks, which are known once y has been read."""
        if not is_collection(y):
            assert heights is not None
            classes, codes = encode(y, sum(heights))
            return classes, _split(smallest_codes(codes, len(classes)), heights), heights
        parts = self._column(y, name)
        tree, held = _tree(parts, name), futures_in(y)
        known = _known.setdefault(held[0], {}) if held else {}
        found = known.get(tree.key) or self._compute([tree])[0]
        known[tree.key], classes, lengths = found, found.classes, found.lengths
        if found.codes is not None:
            self._check_aligned(len(parts), lengths, heights, name)
            return classes, _split(np.concatenate(found.codes), heights or lengths), heights or lengths
        lazy_codes = lazy_tasks("codes", [(encode_as, part, classes) for part in parts], parts[:1])
        return classes, self._aligned(lazy_codes, lengths, heights, name, np.dtype(np.int32)), heights or lengths

    def _weights(self, weights: Any, heights: list[int] | None) -> Sequence[Any]:
        if not is_collection(weights):
            assert heights is not None
            return _split(sample_weights(weights, sum(heights)), heights)
        given = self._column(weights, "sample_weight")
        parts = lazy_tasks("weights", [(np.asarray, part) for part in given], given[:1])
        known = getattr(weights, "chunks", ((math.nan,),))[0]
        lengths = None if any(math.isnan(n) for n in known) else [int(n) for n in known]
        return self._aligned(parts, lengths, heights, "sample_weight", np.dtype(np.float64))

    def _column(self, values: Any, name: str) -> list[Any]:
        if _dimensions(values) != 1 and not is_bag(values):
            raise InputError(f"{name} is {a_type(values)} without exactly one dimension; give one value per row")
        return list(self._parts(values))

    def _aligned(
        self, parts: list[Any], lengths: list[int] | None, heights: list[int] | None, name: str, dtype: np.dtype[Any]
    ) -> list[Any]:
        """The parts of a column cut where the blocks are cut."""
        self._check_aligned(len(parts), lengths, heights, name)
        if lengths is None or heights is None or lengths == heights:
            return parts
        import dask.array as da

        # The keys of a layer are those of an array's chunks.
        (name,) = parts[0].__dask_layers__()
        whole = da.Array(parts[0].__dask_graph__(), name, (tuple(lengths),), dtype=dtype)
        return list(self._parts(whole.rechunk((tuple(heights),))))

    def _check_aligned(self, n_parts: int, lengths: list[int] | None, heights: list[int] | None, name: str) -> None:
        """Refuse a column that cannot be put beside the rows."""
        if lengths is None or heights is None:
            if n_parts != (n := len(self._chunks)):
                raise InputError(
                    f"X has {n} row chunks and {name} has {n_parts}, of unknown lengths, so they cannot "
                    f"be matched; cut {name} as X is, or make the lengths known with X.compute_chunk_sizes(), for a "
                    "DataFrame with X.to_dask_array(lengths=True)"
                )
        elif sum(lengths) != sum(heights):
            raise InputError(
                f"X has {sum(heights)} rows but {name} has {sum(lengths)}; give one value for each row of X"
            )

    def _tasks(
        self,
        chunks: list[list[Any]],
        codes: Sequence[Any],
        weights: Sequence[Any],
        heights: list[int] | None,
        widths: list[int],
    ) -> list[Any]:
        firsts = [0] * self.n_blocks if heights is None else [0, *accumulate(heights)]
        tasks = []
        for b, row in enumerate(chunks):
            known = None if heights is None else heights[b]
            make = partial(make_block, number=b, first_row=firsts[b], height=known, widths=widths)
            tasks.append((make, row, codes[b], weights[b]))
        return lazy_tasks(
            "block", tasks, [chunks[0][0], *(part for part in (codes[0], weights[0]) if is_collection(part))]
        )

    def _compute(self, tasks: list[Any], scheduler: Any = None) -> list[Any]:
        """Results of lazy tasks, where the futures among their inputs live."""
        import dask

        with refusing_to_block():
            return list(dask.compute(*tasks, scheduler=self._futures[0].client if self._futures else scheduler))

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        """Compute blocks one at a time, in this process, whatever cluster is around; persisted ones where they lie."""
        for task in self.delayed[start:stop]:
            yield self._compute([task], scheduler="threads")[0]

    def names(self, columns: Array) -> list[str] | None:
        return None if self._names is None else some_of(self._names, columns)

    @property
    def names_in_memory(self) -> Named | None:
        return self._names

    @property
    def annotations(self) -> Annotations | None:
        return self._annotations

    @property
    def sizes(self) -> Sizes:
        """Of the largest block and the dense chunk it was made from; a pass reads as if all were as large."""
        entries, nbytes = self._largest
        return Sizes(nbytes, entries, nbytes * self.n_blocks)

    @cached_property
    def _largest(self) -> tuple[int, int]:
        """Entries and bytes of the largest block: a bound where that is small, else an estimate from one block.

        Without reading anything, all entries of the tallest chunk are a bound. Where that is more than a block should
        be, the data are sparse or the chunks large, and the collection cannot be trusted to say which: the tallest
        chunk is computed and looked at. A sparse one is taken ``MARGIN`` times, as others may be fuller.
        """
        tallest = 0 if self._heights is None else int(np.argmax(self._heights))
        cells = math.inf if self._heights is None else self._heights[tallest] * self.n_features
        if cells * DENSE_ENTRY_NBYTES <= BLOCK_NBYTES:
            rows = 0 if self._heights is None else self._heights[tallest]
            return int(cells), int(cells) * DENSE_ENTRY_NBYTES + (rows + 1) * 20
        block = self.delayed[tallest]
        looked_at = lazy_tasks("weigh", [(weigh, self._chunks[tallest], block)], [block])
        n_rows, entries, nbytes, dense = self._compute(looked_at)[0]
        margin = 1.0 if dense and self._heights is not None else MARGIN
        return int(min(entries * margin, max(cells, n_rows))), int(nbytes * margin)


def _tree(parts: list[Any], name: str) -> Any:
    """The classes and lengths of all parts of a column, merged a few at a time."""
    most = MOST_CODES // len(parts)
    tasks = [(part_labels, part, f"chunk {number} of {name}", most) for number, part in enumerate(parts)]
    level = lazy_tasks("classes", tasks, parts[:1])
    return lazy_tree("classes", level, merged, FAN_IN)


def _dimensions(collection: Any) -> int:
    ndim = getattr(collection, "ndim", 0)
    return ndim if isinstance(ndim, int) else 0  # a Delayed has every attribute, as another Delayed


def _split(values: Array, heights: list[int]) -> list[Array]:
    return np.split(values, list(accumulate(heights))[:-1])


def futures_in(*values: Any) -> list[Any]:
    """Futures that persisted collections hold; there are none while nobody has imported distributed."""
    if "distributed" not in sys.modules:
        return []
    from distributed import futures_of

    return list(futures_of([value for value in values if is_collection(value)]))
