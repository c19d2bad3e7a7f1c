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
    """Return X or a layer; the path of X that is in a file, from where it is read in parts."""
    if data.isbacked and layer is None:
        if data.is_view:
            raise InputError(
                f"this AnnData has some rows or columns of the file {str(data.filename)!r}; give adata.to_memory(), or "
                "all of the file"
            )
        return data.filename
    layers = ", ".join(name for name in data.layers if name is not None) or "none"  # from 0.13 on, None is X
    if layer is not None and layer not in data.layers:
        raise InputError(f"the AnnData has no layer {layer!r}; its layers are: {layers}; leave layer out to read X")
    found = data.X if layer is None else data.layers[layer]
    if found is None:
        raise InputError(f"the AnnData has no X; name a layer of it: open_dataset(adata, layer=...), it has {layers}")
    return found


def by_rows(path: str, matrix: str, ending: str) -> str:
    """Return the lines that write a matrix of a file anew, stored by rows."""
    which = "a.X" if matrix == "X" else f"a.layers[{matrix.removeprefix('layers/')!r}]"
    new = f"{path.rstrip('/').removesuffix(f'.{ending}')}-by-rows.{ending}"
    return (
        "is stored by columns (csc_matrix), and documents are read by rows; in Python: "
        f"a = anndata.read_{ending}({path!r}); {which} = {which}.tocsr(); a.write_{ending}({new!r})"
    )


def column_of(data: Any, name: str) -> Any:
    """A column of the table of rows."""
    if name not in data.obs:
        raise InputError(f"the AnnData has no column {name!r} in obs; it has {', '.join(map(str, data.obs)) or 'none'}")
    return data.obs[name]


def names_of_columns(data: Any) -> Array:
    """The index of the table of columns."""
    return np.asarray(data.var_names, object)
