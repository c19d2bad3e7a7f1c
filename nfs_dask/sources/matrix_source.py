"""Matrices that are in memory already."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nfs_dask.arrays.block import UNLABELLED, Array, Block
from nfs_dask.containers import is_column, python_values, unwrapped
from nfs_dask.errors import InputError
from nfs_dask.sources.labels import encode, sample_weights
from nfs_dask.sources.matrices import as_rows, check_size, kind_of
from nfs_dask.sources.source import Facts, Source
from nfs_dask.text.column_names import Named, names_with, some_of

if TYPE_CHECKING:
    from nfs_dask.store.row_columns import Annotations


class MatrixSource(Source):
    """Blocks of a matrix in memory: views of it where it holds rows, bounded copies where it does not.

    Parameters
    ----------
    X : numpy array, scipy sparse, sparse.COO or GCXS, DataFrame, pyarrow Table; shape (n_rows, n_features)
        Column-wise layouts are converted once, here. Blocks of a dense array have all columns.
    y : (n_rows,) labels, optional
    sample_weight : (n_rows,) numbers of zero or more, optional
    names : (n_features,) strings, optional
        By default a DataFrame's columns, if they are text, or what the matrix of a TextVectorizer carries.
    annotations : the table of rows of an AnnData, optional
    """

    def __init__(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        names: Sequence[str] | Array | None = None,
        annotations: Annotations | None = None,
    ) -> None:
        self._rows = rows = as_rows(X)
        check_size(rows.n_rows, rows.n_features)
        classes: Array | None = None
        self._codes: Array | None = None
        if y is not None:
            classes, self._codes = encode(y, rows.n_rows)
        self._weights = None if sample_weight is None else sample_weights(sample_weight, rows.n_rows)
        self._names = check_names(names_with(X) if names is None else names, rows.n_features)
        self._annotations = annotations
        self._cuts = rows.cut()
        self._sizes = self._cuts.sizes(rows.entry_nbytes, rows.nbytes)
        self._facts = Facts(
            rows.n_rows,
            rows.n_features,
            self._cuts.n_blocks,
            rows.nnz,
            kind_of(rows.dtype),
            classes,
            weighted=self._weights is not None,
            in_memory=True,
        )

    @property
    def annotations(self) -> Annotations | None:
        return self._annotations

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        for number in range(start, stop):
            first, last = int(self._cuts.rows[number]), int(self._cuts.rows[number + 1])
            codes = np.full(last - first, UNLABELLED, np.int32) if self._codes is None else self._codes[first:last]
            weights = None if self._weights is None else self._weights[first:last]
            indptr, indices, data, full = self._rows.rows(first, last)
            yield Block(indptr, indices, data, codes, self.n_features, weights, first, number, full)

    def names(self, columns: Array) -> list[str] | None:
        return None if self._names is None else some_of(self._names, columns)

    @property
    def names_in_memory(self) -> Named | None:
        return self._names


def check_names(names: Named | None, n_features: int) -> Named | None:
    """Refuse names that are not one for each column."""
    names = unwrapped(names, "names")
    if is_column(names) and not isinstance(names, np.ndarray):
        names = python_values(names)
    if names is not None and len(names) != n_features:
        raise InputError(f"X has {n_features} columns but {len(names)} names were given; give one name for each column")
    return names
