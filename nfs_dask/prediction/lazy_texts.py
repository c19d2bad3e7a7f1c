"""Texts in Dask collections: one task reads one partition. Nothing is computed here."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from nfs_dask.graphs import lazy_array, lazy_tasks, lazy_tree, lazy_value

FAN_IN = 8  # results that are merged together


def partitions(texts: Any) -> list[Any]:
    """A Delayed for each partition of a bag, Series or DataFrame, or chunk of an array, in order."""
    parts = texts.to_delayed(optimize_graph=False)  # optimisation would drop the futures of persisted partitions
    return list(parts if isinstance(parts, list) else parts.ravel())


def map_partitions(
    texts: Any, task: Callable[..., Any], shared: Any, label: str, *, meta: Any, width: int | None = None
) -> Any:
    """A lazy array with one chunk of rows for each partition of texts; how many rows, nobody knows yet.

    Parameters
    ----------
    texts
        A bag, Series, DataFrame or array with one document for each item or row.
    task : callable
        Makes a chunk of ``shared``, a partition and its number.
    shared
        What all tasks need; it is in the graph once.
    label
        What to call the tasks.
    meta
        An empty chunk.
    width
        Columns; None: the array has one dimension.
    """
    tasks, parents = _tasks(texts, task, shared, label)
    rows = (math.nan,) * len(tasks)
    return lazy_array(label, tasks, parents, (rows,) if width is None else (rows, (width,)), meta)


def fold_partitions(
    texts: Any, task: Callable[..., Any], merge: Callable[[list[Any]], Any], shared: Any, label: str
) -> Any:
    """A Delayed of what ``task`` makes of ``shared``, a partition and its number, merged a few at a time, in order."""
    tasks, parents = _tasks(texts, task, shared, label)
    return lazy_tree(label, lazy_tasks(label, tasks, parents), merge, FAN_IN)


def _tasks(texts: Any, task: Callable[..., Any], shared: Any, label: str) -> tuple[list[tuple[Any, ...]], list[Any]]:
    """A task for each partition, and their parents."""
    parts, carried = partitions(texts), lazy_value(f"{label}-shared", shared)
    return [(task, carried, part, number) for number, part in enumerate(parts)], [parts[0], carried]
