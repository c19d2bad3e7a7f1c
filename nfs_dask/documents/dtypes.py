"""What a type says about values that may be texts. Its name says little: each release of pandas has other names."""

from __future__ import annotations

from typing import Any

import numpy as np

from nfs_dask.documents import arrow


def are_strings(dtype: Any) -> bool | None:
    """Whether values of a type of numpy or pandas are strings; None where only the values themselves can tell.

    >>> are_strings(np.dtype("U3")), are_strings(np.dtype("f8")), are_strings(np.dtype("O"))
    (True, False, None)
    """
    if hasattr(dtype, "pyarrow_dtype"):
        return arrow.holds_strings(arrow.plain(dtype.pyarrow_dtype))
    if hasattr(dtype, "categories"):
        return None if dtype.categories is None else are_strings(dtype.categories.dtype)
    kind = getattr(dtype, "type", np.object_)
    return None if kind is np.object_ else isinstance(kind, type) and issubclass(kind, str)


def lie_in_arrow(dtype: Any) -> bool:
    """Whether texts of a type of pandas lie in Arrow's memory, one after another."""
    if hasattr(dtype, "pyarrow_dtype"):
        return arrow.lie_in_a_row(dtype.pyarrow_dtype)
    return str(getattr(dtype, "storage", "")).startswith("pyarrow")
