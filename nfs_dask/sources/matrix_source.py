"""Matrices that are in memory already."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from nfs_dask.arrays.block import UNLABELLED, Array, Block, Kind
from nfs_dask.containers import is_column, python_values, text_names, unwrapped
from nfs_dask.errors import InputError
from nfs_dask.sources.labels import encode, sample_weights
from nfs_dask.sources.matrices import as_rows, check_size, kind_of


class MatrixSource:
    """Blocks of a matrix in memory: views of it where it holds rows, bounded copies where it does not.

    Parameters
    ----------
    X : numpy array, scipy sparse, sparse.COO or GCXS, DataFrame, pyarrow Table; shape (n_rows, n_features)
        Column-wise layouts are converted once, here. A dense array is compressed one block at a time.
    y : (n_rows,) labels, optional
    sample_weight : (n_rows,) numbers of zero or more, optional
    names : (n_features,) strings, optional
        By default a DataFrame's columns, if they are text.
    """

    in_memory = True
    trusted = False
    import_nbytes = 0
    fingerprint: str | None = None

    def __init__(
        self, X: Any, y: Any = None, sample_weight: Any = None, names: Sequence[str] | Array | None = None
    ) -> None:
        self._rows = as_rows(X)
        self.n_rows, self.n_features = self._rows.n_rows, self._rows.n_features
        check_size(self.n_rows, self.n_features)
        self.classes: Array | None = None
        self._codes: Array | None = None
        if y is not None:
            self.classes, self._codes = encode(y, self.n_rows)
        self._weights = None if sample_weight is None else sample_weights(sample_weight, self.n_rows)
        self._names = check_names(text_names(X) if names is None else names, self.n_features)
        self._cuts = self._rows.cut()
        self.n_blocks = self._cuts.n_blocks
        self.block_entries = self._cuts.block_entries
        self.block_nbytes = self._cuts.block_nbytes(self._rows.entry_nbytes)
        self.read_nbytes = self._rows.nbytes
        self.nnz = self._rows.nnz
        self.kind: Kind | None = kind_of(self._rows.dtype)
        self.weighted = self._weights is not None

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        for number in range(start, stop):
            first, last = int(self._cuts.rows[number]), int(self._cuts.rows[number + 1])
            codes = np.full(last - first, UNLABELLED, np.int32) if self._codes is None else self._codes[first:last]
            weights = None if self._weights is None else self._weights[first:last]
            indptr, indices, data, full = self._rows.rows(first, last)
            yield Block(indptr, indices, data, codes, self.n_features, weights, first, number, full)

    def names(self, columns: Array) -> list[str] | None:
        return None if self._names is None else [str(self._names[c]) for c in columns]


def check_names(names: Sequence[str] | Array | None, n_features: int) -> Sequence[str] | Array | None:
    """Refuse names that are not one for each column."""
    names = unwrapped(names, "names")
    if is_column(names) and not isinstance(names, np.ndarray):
        names = python_values(names)
    if names is not None and len(names) != n_features:
        raise InputError(f"X has {n_features} columns but {len(names)} names were given; give one name for each column")
    return names
