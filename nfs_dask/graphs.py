"""Lazy tasks of Dask, in graphs of their own. Equal tasks have equal names, by which Dask knows work that it has done.

Tasks that share a graph share the price of it: made one by one, thousands would take their graphs apart each time.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from nfs_dask.errors import InputError

FAN_IN = 16  # parts that are merged together
IN_A_THREAD = "call it in a thread, without an engine: await asyncio.to_thread(model.fit, X, y)"


def lazy_tasks(
    label: str, tasks: Sequence[tuple[Any, ...]], parents: Sequence[Any], *, fused: bool = False
) -> list[Any]:
    """A Delayed for each task.

    Parameters
    ----------
    label
        What to call the tasks.
    tasks
        A function and its arguments each. Arguments that are Delayed, alone or in a list, are computed before.
    parents
        Delayed in whose graphs all of these are. Those of one collection share a graph: any of them will do.
    fused
        Let each task compute its Delayed arguments itself, but for those in a list, as nothing else needs them; and
        give the tasks names that no others have.
    """
    from dask.delayed import Delayed

    name = f"nfs-{label}-{uuid.uuid4().hex}" if fused else _name(label, tasks)
    keys = [(name, number) for number in range(len(tasks))]
    if fused:
        tasks = [tuple(one.dask[one.key] if isinstance(one, Delayed) else one for one in task) for task in tasks]
    graph = _graph(name, keys, tasks, parents)
    return [Delayed(key, graph, layer=name) for key in keys]


def lazy_value(label: str, value: Any) -> Any:
    """A value as a Delayed, so that tasks need not each bring it along."""
    return lazy_tasks(label, [(_itself, value)], [])[0]


def lazy_array(
    label: str,
    tasks: Sequence[tuple[Any, ...]],
    parents: Sequence[Any],
    chunks: tuple[tuple[float, ...], ...],
    meta: Any,
) -> Any:
    """A dask array with a row of chunks for each task, as `lazy_tasks` takes them; ``meta`` is an empty chunk."""
    import dask.array as da

    name = _name(label, tasks)
    keys = [(name, number, *(0 for _ in chunks[1:])) for number in range(len(tasks))]
    return da.Array(_graph(name, keys, tasks, parents), name, chunks, meta=meta)


def lazy_tree(label: str, level: list[Any], merge: Callable[[list[Any]], Any], fan_in: int) -> Any:
    """One Delayed of what many are, merged ``fan_in`` neighbors at a time, in order."""
    while len(level) > 1:
        groups = [level[first : first + fan_in] for first in range(0, len(level), fan_in)]
        level = lazy_tasks(label, [(merge, group) for group in groups], level[:1])
    return level[0]


def computed(value: Any) -> Any:
    """The value of a Dask collection, by the current client or threads; anything else as it is.

    Bags would start processes, which a script without a guard of ``__main__`` dies of.
    """
    if not hasattr(type(value), "__dask_graph__"):
        return value
    from dask.base import get_scheduler

    with refusing_to_block():
        return value.compute(scheduler=None if get_scheduler() else "threads")


@contextmanager
def refusing_to_block() -> Iterator[None]:
    """Say in words of ours that a client in an event loop cannot be waited for."""
    try:
        yield
    except RuntimeError as error:
        if "asynchronous Client" not in str(error):
            raise
        raise InputError(f"the client is asynchronous, and what it computes is waited for; {IN_A_THREAD}") from error


def reduced(label: str, function: Callable[..., Any], merge: Callable[[list[Any]], Any], columns: Sequence[Any]) -> Any:
    """What a function makes of the partitions of collections that lie side by side, merged; cut as the first one is.

    A list has what belongs to each partition.
    """
    heights = getattr(columns[0], "chunks", (None,))[0]
    parts = []
    for given in columns:
        column = given
        if heights and sum(heights) == sum(getattr(column, "chunks", ((math.nan,),))[0]):  # NaN: not known
            column = column.rechunk((heights, *((n,) for n in column.shape[1:])))
        whole = column if isinstance(column, list) else column.to_delayed(optimize_graph=False)
        parts.append(np.ravel(np.array(whole, object)).tolist())
    if len({len(part) for part in parts}) > 1:
        raise InputError(
            f"the data lie in {' and '.join(str(len(part)) for part in parts)} partitions; cut labels and weights as "
            "the rows are, such as by rechunk or repartition"
        )
    shared = lazy_value(f"{label}-shared", function)
    tasks = [(_called, shared, *row) for row in zip(*parts, strict=True)]
    parents = [shared, *(one for one in tasks[0][2:] if hasattr(one, "__dask_graph__"))]
    return computed(lazy_tree(f"{label}-merge", lazy_tasks(label, tasks, parents), merge, FAN_IN))


def added(parts: list[Any]) -> Any:
    """The sum of some parts, in their order."""
    return sum(parts[1:], parts[0])


def _called(function: Callable[..., Any], *given: Any) -> Any:
    return function(*given)


def _name(label: str, tasks: Sequence[tuple[Any, ...]]) -> str:
    from dask.base import tokenize

    return f"nfs-{label}-{tokenize(tasks)}"


def _graph(name: str, keys: list[Any], tasks: Sequence[tuple[Any, ...]], parents: Sequence[Any]) -> Any:
    from dask.highlevelgraph import HighLevelGraph
    from dask.task_spec import Task

    layer = {
        key: Task(key, function, *map(_argument, arguments))
        for key, (function, *arguments) in zip(keys, tasks, strict=True)
    }
    return HighLevelGraph.from_collections(name, layer, dependencies=parents)


def _argument(value: Any) -> Any:
    """An argument as a task takes it; what it names is told from what it is, so that no text is taken for a name."""
    from dask.delayed import Delayed
    from dask.task_spec import List, TaskRef

    if isinstance(value, Delayed):
        return TaskRef(value.key)
    if isinstance(value, list) and any(isinstance(item, Delayed) for item in value):
        return List(*map(_argument, value))
    return value


def _itself(value: Any) -> Any:
    return value


def token(estimator: Any) -> Any:
    """The Dask token of an estimator, equal for equal states."""
    from dask.base import normalize_token

    return normalize_token((type(estimator), estimator.__getstate__()))
