"""AnnData that is in memory: its matrix, the names of its columns, and labels and weights in its table of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError

RAW = "raw is no layer, as it has columns of its own; in Python: a.raw.to_adata().write_h5ad(new_path), and read that"


def is_anndata(data: Any) -> bool:
    """Whether this is an AnnData, told without an import of it."""
    return any(cls.__name__ == "AnnData" and cls.__module__.startswith("anndata") for cls in type(data).__mro__)


def matrix_of(data: Any, layer: str | None = None) -> Any:
    """X or a layer. What is in a file is read from there by a path, in parts; AnnData would read it whole."""
    if data.isbacked:
        raise InputError(
            f"this AnnData is backed by {str(data.filename)!r}; give that path, and the file is read in parts, or "
            "adata.to_memory() if its rows, columns or annotations were changed since"
        )
    layers = ", ".join(name for name in data.layers if name is not None) or "none"  # from 0.13 on, None is X
    if layer is not None and layer not in data.layers:
        raise InputError(f"the AnnData has no layer {layer!r}; its layers are: {layers}; leave layer out to read X")
    found = data.X if layer is None else data.layers[layer]
    if found is None:
        raise InputError(f"the AnnData has no X; name a layer of it: open_dataset(adata, layer=...), it has {layers}")
    return found


def column_of(data: Any, name: str) -> Any:
    """A column of the table of rows."""
    if name not in data.obs:
        raise InputError(f"the AnnData has no column {name!r} in obs; it has {', '.join(map(str, data.obs)) or 'none'}")
    return data.obs[name]


def names_of_columns(data: Any) -> Array:
    """The index of the table of columns."""
    return np.asarray(data.var_names, object)
