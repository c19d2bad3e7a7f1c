"""What users may give for folds: a number, a splitter of scikit-learn, or one fold for each row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from nfs_dask.block import Array
from nfs_dask.errors import InputError
from nfs_dask.sources.base import Source
from nfs_dask.sources.folds import Folds
from nfs_dask.sources.labels import encode

ADVICE = "give a number of folds, a splitter of scikit-learn (for data in memory), or one fold for each row"


def folds_of(folds: Any, source: Source, y: Any) -> Folds:
    """Which fold each row of a source is in.

    Parameters
    ----------
    folds
        A number: of data in memory as scikit-learn cuts them (`StratifiedKFold`), else by a hash of the row's number. A
        splitter or its pairs of rows, for data in memory. Or a label for each row: rows with the same one are a fold.
    source
        With labels.
    y
        The labels as they were given; None for labels of a dataset.
    """
    if isinstance(folds, int | np.integer) and not isinstance(folds, bool):
        in_memory = source.in_memory and y is not None
        return _split(int(folds), source, y) if in_memory and folds >= 2 else Folds(int(folds))
    if isinstance(folds, str) or not (isinstance(folds, Iterable) or hasattr(folds, "get_n_splits")):
        raise InputError(f"folds={folds!r}; {ADVICE}")
    if hasattr(folds, "get_n_splits"):
        return _split(folds, source, y)
    if hasattr(folds, "shape"):
        return _labelled(folds, source)
    listed = list(folds)
    return _split(listed, source, y) if listed and isinstance(listed[0], tuple) else _labelled(listed, source)


def _labelled(labels: Any, source: Source) -> Folds:
    """Folds named by a label for each row."""
    n_rows = None if source.n_rows < 0 else source.n_rows
    names, codes = encode(labels, n_rows)
    if (codes < 0).any():
        raise InputError(f"row {int(np.argmax(codes < 0))} has no fold; give one for each row")
    if len(names) < 2:
        raise InputError(f"all rows are in fold {names.tolist()}; give at least two folds")
    return Folds(len(names), codes)


def _split(splitter: Any, source: Source, y: Any) -> Folds:
    """Folds from a splitter of scikit-learn, or from what it returns."""
    from sklearn.model_selection import check_cv

    if not source.in_memory or y is None:
        raise InputError("a splitter needs data in memory; give a number of folds, or one fold for each row")
    labels = np.asarray(y)
    splits = list(check_cv(splitter, labels, classifier=True).split(np.zeros((source.n_rows, 1)), labels))
    found = np.full(source.n_rows, -1, np.int64)
    for fold, pair in enumerate(splits):
        train, test = (_rows(rows, source.n_rows) for rows in pair)
        everything = len(train) + len(test) == source.n_rows and len(np.union1d(train, test)) == source.n_rows
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
    """Numbers of rows, from numbers or a mask."""
    rows = np.asarray(rows)
    rows = np.flatnonzero(rows) if rows.dtype.kind == "b" else rows.astype(np.int64)
    if len(rows) and (rows.min() < 0 or rows.max() >= n_rows):
        raise InputError(f"folds name row {int(rows.max())}, and there are {n_rows}; give those of the data")
    return np.asarray(rows)
