"""What is found of the rows of a Dask data frame or Series, as one: with their index, and the divisions it has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nfs_dask.arrays.block import Array
from nfs_dask.containers import is_collection, is_frame, is_series
from nfs_dask.graphs import lazy_tasks


def has_index(X: Any) -> bool:
    """Whether this is a Dask data frame or Series."""
    return is_collection(X) and (is_frame(X) or is_series(X))


def with_index_of(X: Any, parts: Sequence[Any], found: Any, columns: Sequence[Any]) -> Any:
    """A lazy array of the rows of X as a Dask Series, or if it has two dimensions as a data frame.

    Parameters
    ----------
    X : Dask DataFrame or Series
    parts
        A Delayed for each of its partitions, those that ``found`` is made of, so that none is made twice.
    found : dask array, with a chunk for each partition
    columns
        What to call those of a data frame.
    """
    import dask.dataframe as dd
    from dask.array.utils import meta_from_array
    from dask.dataframe.utils import make_meta

    chunks = list(found.to_delayed(optimize_graph=False).ravel())
    tasks = [(index_chunk, chunk, part, columns) for chunk, part in zip(chunks, parts, strict=True)]
    indexed = lazy_tasks("indexed", tasks, [chunks[0], parts[0]])
    meta = index_chunk(meta_from_array(found), make_meta(X), columns)
    return dd.from_delayed(indexed, meta=meta, divisions=X.divisions, verify_meta=False)


def index_chunk(chunk: Array, part: Any, columns: Sequence[Any]) -> Any:
    """One partition: what was found of the rows of a part, with their index."""
    import pandas as pd

    if chunk.ndim == 1:
        return pd.Series(chunk, part.index)
    return pd.DataFrame(chunk.reshape(-1, len(columns)), part.index, columns)
