"""What a type says about values that may be texts. Its name says little: each release of pandas has other names."""

from __future__ import annotations

from typing import Any

import numpy as np

from nfs_dask.containers import library_of
from nfs_dask.documents import arrow

STRINGS_OF_POLARS = ("String", "Categorical", "Enum")


def are_strings(dtype: Any) -> bool | None:
    """Whether values of a type of some library are strings; None where only the values themselves can tell.

    >>> are_strings(np.dtype("U3")), are_strings(np.dtype("f8")), are_strings(np.dtype("O"))
    (True, False, None)
    """
    library = library_of(dtype)
    if library == "polars":
        name = str(dtype).partition("(")[0]
        return None if name == "Object" else name in STRINGS_OF_POLARS
    if library == "pyarrow" or hasattr(dtype, "pyarrow_dtype"):
        return arrow.holds_strings(arrow.plain(getattr(dtype, "pyarrow_dtype", dtype)))
    if hasattr(dtype, "categories"):
        return None if dtype.categories is None else are_strings(dtype.categories.dtype)
    kind = getattr(dtype, "type", np.object_)
    return None if kind is np.object_ else isinstance(kind, type) and issubclass(kind, str)


def lie_in_arrow(dtype: Any) -> bool:
    """Whether texts of a type of pandas or pyarrow lie in Arrow's memory, one after another."""
    if library_of(dtype) == "pyarrow" or hasattr(dtype, "pyarrow_dtype"):
        return arrow.lie_in_a_row(getattr(dtype, "pyarrow_dtype", dtype))
    return str(getattr(dtype, "storage", "")).startswith("pyarrow")
