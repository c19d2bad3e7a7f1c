"""Folds from what users give: a number, a splitter of scikit-learn, one label for each row, or a column of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.containers import unwrapped
from nfs_dask.dataset import Dataset
from nfs_dask.errors import InputError
from nfs_dask.graphs import computed
from nfs_dask.sources.chosen_rows import ChosenRows
from nfs_dask.sources.folds import Folds, column_folds, labelled_folds
from nfs_dask.sources.labels import as_column
from nfs_dask.sources.source import Source
from nfs_dask.sources.zarr import ZarrSource

ADVICE = (
    "give a number of folds, a splitter of scikit-learn (for data in memory), one label for each row, or the column of "
    "a store, an AnnData or a table that has them"
)


def folds_of(folds: Any, dataset: Dataset, y: Any) -> Folds:
    """Return the fold of each row of a dataset.

    Parameters
    ----------
    folds
        A number: of data in memory as scikit-learn cuts them (`StratifiedKFold`), else by a hash of the row's number. A
        splitter or its pairs of rows, for data in memory. Or a label for each row, or the name of a column of a store
        or an AnnData that has them: rows with the same one are a fold.
    dataset
        With labels.
    y
        The labels as they were given; None for those of the dataset itself.
    """
    source = dataset.source
    if isinstance(folds, int | np.integer) and not isinstance(folds, bool):
        in_memory = source.in_memory and y is not None
        return _split(int(folds), source, y) if in_memory and folds >= 2 else Folds(int(folds))
    if isinstance(folds, str):
        return _column(folds, dataset)
    if hasattr(folds, "get_n_splits"):
        return _split(folds, source, y)
    if not isinstance(folds, Iterable):
        raise InputError(f"folds={folds!r}; {ADVICE}")
    folds = unwrapped(folds, "folds")
    given: Any = folds if hasattr(folds, "shape") else list(folds)
    if isinstance(given, list) and given and isinstance(given[0], tuple):
        return _split(given, source, y)
    return labelled_folds(computed(given))


def _column(name: str, dataset: Dataset) -> Folds:
    source = dataset.source
    chosen = isinstance(source, ChosenRows)  # of a store with more rows
    if dataset.location is not None and isinstance(source.origin, ZarrSource) and not chosen:
        return column_folds(dataset.location, name, dataset.n_rows)
    if source.annotations is None or dataset.n_rows < 0:
        raise InputError(f"folds={name!r} names a column, and {dataset!r} has no table of rows; {ADVICE}")
    return labelled_folds(source.annotations.read(name, 0, dataset.n_rows))


def _split(splitter: Any, source: Source, y: Any) -> Folds:
    """Folds from a splitter of scikit-learn, or from what it returns."""
    from sklearn.model_selection import check_cv

    if not source.in_memory or y is None:
        raise InputError("a splitter needs data in memory; give a number of folds, or one fold for each row")
    labels = np.asarray(as_column(y, "y"))
    splits = list(check_cv(splitter, labels, classifier=True).split(np.zeros((source.n_rows, 1)), labels))
    found = np.full(source.n_rows, -1, np.int64)
    for fold, pair in enumerate(splits):
        train, test = (_rows(rows, source.n_rows) for rows in pair)
        there = np.zeros(source.n_rows, bool)
        there[train] = there[test] = True
        everything = len(train) + len(test) == source.n_rows and there.all()
        if not everything or (found[test] >= 0).any():
            raise InputError(
                f"{splitter!r} does not cut the rows into folds, each of which is judged by a model of all the others: "
                "take KFold, StratifiedKFold or GroupKFold, say"
            )
        found[test] = fold
    if (found < 0).any():
        raise InputError(f"row {int(np.argmax(found < 0))} is in no fold; give a splitter that puts each row in one")
    return Folds(len(splits), found)


def _rows(rows: Any, n_rows: int) -> Array:
    """Return numbers of rows, from numbers or a mask."""
    rows = np.asarray(rows)
    rows = np.flatnonzero(rows) if rows.dtype.kind == "b" else rows.astype(np.int64)
    if len(rows) and (rows.min() < 0 or rows.max() >= n_rows):
        raise InputError(f"folds name row {int(rows.max())}, and there are {n_rows}; give those of the data")
    return np.asarray(rows)
