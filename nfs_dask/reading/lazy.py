"""Texts in Dask collections: one task reads one partition. Nothing is computed here."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable
from typing import Any

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
    import dask.array as da
    from dask.highlevelgraph import HighLevelGraph

    parts = partitions(texts)
    name = f"nfs-{label}-{uuid.uuid4().hex}"
    key = f"{name}-shared"
    rest: tuple[int, ...] = () if width is None else (0,)
    layer: dict[Any, Any] = {key: shared}
    layer |= {(name, number, *rest): (task, key, part.key, number) for number, part in enumerate(parts)}
    graph = HighLevelGraph.from_collections(name, layer, dependencies=parts[:1])
    rows = (math.nan,) * len(parts)
    return da.Array(graph, name, (rows,) if width is None else (rows, (width,)), meta=meta)


def fold_partitions(
    texts: Any, task: Callable[..., Any], merge: Callable[[list[Any]], Any], shared: Any, label: str
) -> Any:
    """A Delayed of what ``task`` makes of ``shared``, a partition and its number, merged a few at a time, in order."""
    from dask.delayed import Delayed
    from dask.highlevelgraph import HighLevelGraph

    parts = partitions(texts)
    name = f"nfs-{label}-{uuid.uuid4().hex}"
    key = f"{name}-shared"
    level = [(name, 0, number) for number in range(len(parts))]
    layer: dict[Any, Any] = {key: shared}
    layer |= {(name, 0, number): (task, key, part.key, number) for number, part in enumerate(parts)}
    while len(level) > 1:
        groups = [level[first : first + FAN_IN] for first in range(0, len(level), FAN_IN)]
        level = [(name, level[0][1] + 1, number) for number in range(len(groups))]
        layer |= {made: (merge, group) for made, group in zip(level, groups, strict=True)}
    graph = HighLevelGraph.from_collections(name, layer, dependencies=parts[:1])
    return Delayed(level[0], graph, layer=name)
