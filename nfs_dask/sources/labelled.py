"""Labels, weights or names that are in memory, for data that are not."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nfs_dask.arrays.block import UNLABELLED, Array, Block
from nfs_dask.sources.labels import encode, sample_weights, smallest_codes
from nfs_dask.sources.matrix_source import check_names
from nfs_dask.sources.source import Source

if TYPE_CHECKING:
    from nfs_dask.store.row_columns import Annotations
    from nfs_dask.store.term_table import TermTable
    from nfs_dask.text.strings import Strings


class Labelled(Source):
    """Another source with labels, weights or names of the caller's instead of its own.

    They travel with the source, a label in one byte where there are few classes. With other names, columns are not
    those of terms any more, and no other place knows them.
    """

    def __init__(
        self, source: Source, y: Any = None, sample_weight: Any = None, names: Sequence[str] | Array | None = None
    ) -> None:
        self._source = source
        self._codes: Array | None = None
        classes = source.classes
        if y is not None:
            classes, codes = encode(y, source.n_rows)
            self._codes = smallest_codes(codes, len(classes))
        self._weights = None if sample_weight is None else sample_weights(sample_weight, source.n_rows)
        self._names = check_names(names, source.n_features)
        self._sizes = source.sizes
        weighted = source.weighted or self._weights is not None
        self._facts = replace(source.facts, classes=classes, weighted=weighted, fingerprint=self._digest(classes))
        if self._names is None:
            self.text, self.location, self.names_sorted = source.text, source.location, source.names_sorted

    @property
    def annotations(self) -> Annotations | None:
        return self._source.annotations

    @property
    def first_unlabelled(self) -> int | None:
        """The first row without a label of the caller's; None where there is none, or no labels were given."""
        if self._codes is None or not (missing := self._codes == UNLABELLED).any():
            return None
        return int(np.argmax(missing))

    def _digest(self, classes: Array | None) -> str | None:
        """The fingerprint of the source with what was given."""
        if self._source.fingerprint is None:
            return None
        digest = hashlib.blake2b(self._source.fingerprint.encode(), digest_size=16)
        for array in (classes, self._codes, self._weights):
            digest.update(b"none" if array is None else repr((array.dtype.str, array.shape)).encode())
            digest.update(b"" if array is None else np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        return self._labelled(self._source.blocks(start, stop))

    def rows_of_blocks(self) -> Array | None:
        return self._source.rows_of_blocks()

    def outlines(self, start: int, stop: int) -> Iterator[Block]:
        return self._labelled(self._source.outlines(start, stop))

    def _labelled(self, blocks: Iterator[Block]) -> Iterator[Block]:
        for block in blocks:
            rows = slice(block.first_row, block.first_row + block.n_rows)
            codes = block.codes if self._codes is None else self._codes[rows]
            yield replace(block, codes=codes, weights=block.weights if self._weights is None else self._weights[rows])

    def names(self, columns: Array) -> list[str] | None:
        return self._source.names(columns) if self._names is None else [str(self._names[c]) for c in columns]

    def strings(self, start: int, stop: int) -> Strings | None:
        return self._source.strings(start, stop) if self._names is None else None

    def frequencies(self, start: int, stop: int) -> Array | None:
        return self._source.frequencies(start, stop) if self._names is None else None

    def table(self) -> TermTable | None:
        return self._source.table() if self._names is None else None
