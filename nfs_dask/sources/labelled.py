"""Labels, weights or names that are in memory, for data that are not."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nfs_dask.arrays.block import UNLABELLED, Array, Block
from nfs_dask.sources.labels import encode, sample_weights, smallest_codes
from nfs_dask.sources.matrix_source import check_names
from nfs_dask.sources.source import Source
from nfs_dask.store.row_columns import Annotations, annotations_of


class Labelled:
    """Another source with labels, weights or names of the caller's instead of its own.

    They travel with the source, a label in one byte where there are few classes.
    """

    def __init__(
        self, source: Source, y: Any = None, sample_weight: Any = None, names: Sequence[str] | Array | None = None
    ) -> None:
        self._source = source
        self._codes: Array | None = None
        self.classes = source.classes
        if y is not None:
            self.classes, codes = encode(y, source.n_rows)
            self._codes = smallest_codes(codes, len(self.classes))
        self._weights = None if sample_weight is None else sample_weights(sample_weight, source.n_rows)
        self._names = check_names(names, source.n_features)
        self.weighted = source.weighted or self._weights is not None
        self.n_rows, self.n_features, self.n_blocks = source.n_rows, source.n_features, source.n_blocks
        self.nnz, self.kind = source.nnz, source.kind
        self.in_memory, self.trusted = source.in_memory, source.trusted
        self.block_nbytes, self.block_entries = source.block_nbytes, source.block_entries
        self.read_nbytes, self.import_nbytes = source.read_nbytes, source.import_nbytes
        self.text = getattr(source, "text", None) if names is None else None  # other names are not those of terms
        self.location: str | None = getattr(source, "location", None) if names is None else None  # that has the names
        if names is None:
            for own in ("strings", "names_sorted", "frequencies"):  # what a source of texts knows of its columns
                if hasattr(source, own):
                    setattr(self, own, getattr(source, own))
        self.fingerprint = None if source.fingerprint is None else self._digest(source.fingerprint)

    @property
    def annotations(self) -> Annotations | None:
        """The table of rows of the source."""
        return annotations_of(self._source)

    @property
    def first_unlabelled(self) -> int | None:
        """The first row without a label of the caller's; None where there is none, or no labels were given."""
        if self._codes is None or not (missing := self._codes == UNLABELLED).any():
            return None
        return int(np.argmax(missing))

    def _digest(self, fingerprint: str) -> str:
        digest = hashlib.blake2b(fingerprint.encode(), digest_size=16)
        for array in (self.classes, self._codes, self._weights):
            digest.update(b"none" if array is None else repr((array.dtype.str, array.shape)).encode())
            digest.update(b"" if array is None else np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        for block in self._source.blocks(start, stop):
            rows = slice(block.first_row, block.first_row + block.n_rows)
            codes = block.codes if self._codes is None else self._codes[rows]
            yield replace(block, codes=codes, weights=block.weights if self._weights is None else self._weights[rows])

    def names(self, columns: Array) -> list[str] | None:
        if self._names is None:
            return self._source.names(columns)
        return [str(self._names[c]) for c in columns]

    def table(self) -> Any:
        """The vocabulary of texts, where `text` says that rows were texts."""
        return self._source.table() if self.text is not None else None  # type: ignore[attr-defined]
