"""Dask collections of rows or of texts: one task takes one chunk or partition. Nothing is computed here."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from nfs_dask.graphs import lazy_array, lazy_tasks, lazy_tree, lazy_value

FAN_IN = 8  # results that are merged together


def partitions(texts: Any) -> list[Any]:
    """A Delayed for each partition of a bag, Series or DataFrame, or chunk of an array, in order."""
    parts = texts.to_delayed(optimize_graph=False)  # optimisation would drop the futures of persisted partitions
    return list(parts if isinstance(parts, list) else parts.ravel())


def heights(X: Any) -> tuple[float, ...]:
    """Rows of each chunk of a Dask collection; NaN where they are not known."""
    return tuple(X.chunks[0]) if hasattr(X, "chunks") else (math.nan,) * X.npartitions


def map_chunks(
    chunks: Sequence[Any],
    task: Callable[..., Any],
    shared: Any,
    label: str,
    *,
    rows: tuple[float, ...] | None = None,
    meta: Any,
    width: int | None = None,
) -> Any:
    """A lazy array with a chunk of rows for each of some lazy values, or lists of them.

    Parameters
    ----------
    chunks
        Those of a collection: Delayed, or lists of Delayed that lie side by side.
    task : callable
        Makes a chunk of ``shared``, one of ``chunks`` and its number.
    shared
        What all tasks need; it is in the graph once.
    label
        What to call the tasks.
    rows
        Of each chunk; None: nobody knows yet.
    meta
        An empty chunk.
    width
        Columns; None: the array has one dimension.
    """
    tasks, parents = _tasks(chunks, task, shared, label)
    rows = (math.nan,) * len(tasks) if rows is None else rows
    return lazy_array(label, tasks, parents, (rows,) if width is None else (rows, (width,)), meta)


def fold_partitions(
    texts: Any, task: Callable[..., Any], merge: Callable[[list[Any]], Any], shared: Any, label: str
) -> Any:
    """A Delayed of what ``task`` makes of ``shared``, a partition and its number, merged a few at a time, in order."""
    tasks, parents = _tasks(partitions(texts), task, shared, label)
    return lazy_tree(label, lazy_tasks(label, tasks, parents), merge, FAN_IN)


def _tasks(
    chunks: Sequence[Any], task: Callable[..., Any], shared: Any, label: str
) -> tuple[list[tuple[Any, ...]], list[Any]]:
    """A task for each chunk, and their parents."""
    carried = lazy_value(f"{label}-shared", shared)
    first = chunks[0][0] if isinstance(chunks[0], list) else chunks[0]
    return [(task, carried, chunk, number) for number, chunk in enumerate(chunks)], [first, carried]
