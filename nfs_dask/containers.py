"""What libraries call their tables and columns, and what is inside wrappers of them.

Types are told by the library of their class, or of a class it is derived from, so that looking imports nothing.
"""

from __future__ import annotations

from collections import UserList, deque
from collections.abc import Iterator, KeysView, Mapping, Sequence, Set, ValuesView
from copy import copy
from typing import Any

import numpy as np

from nfs_dask.errors import InputError

LIBRARIES = ("numpy", "scipy", "sparse", "pandas", "polars", "pyarrow", "xarray", "dask")
NAMES = "nfs_dask_names"  # the attribute that holds names of columns, where a library has no place for them
AT_A_TIME = 1 << 14  # values of a column
MOST_NAMED = 20  # columns of a table, in messages


def library_of(data: Any) -> str | None:
    """Which of LIBRARIES a value comes from; of a class derived from one of theirs, such as AnnData's views, that."""
    for cls in type(data).__mro__:
        library = cls.__module__.partition(".")[0]
        if library in LIBRARIES:
            return library
    return None


def is_frame(data: Any) -> bool:
    """Whether this is a table whose columns have names: a DataFrame of any library, or a pyarrow Table."""
    return _is_a(data, "DataFrame") or (_is_a(data, "Table") and library_of(data) == "pyarrow")


def is_series(data: Any) -> bool:
    """Whether this is a Series of any library."""
    return _is_a(data, "Series")


def is_arrow(data: Any) -> bool:
    """Whether this is a column of pyarrow."""
    return library_of(data) == "pyarrow" and (_is_a(data, "Array") or _is_a(data, "ChunkedArray"))


def is_column(data: Any) -> bool:
    """Whether this is one column: a Series of any library, or an array or index of numpy, pandas or pyarrow."""
    in_one = getattr(data, "ndim", 0) == 1 and library_of(data) in ("numpy", "pandas")
    return in_one or is_series(data) or is_arrow(data)


def type_of(column: Any) -> Any:
    """What a column says that its values are."""
    return column.type if is_arrow(column) else getattr(column, "dtype", None)


def column_names(data: Any) -> list[Any] | None:
    """What the columns of a table are called; None for anything else."""
    if not is_frame(data):
        return None
    return list(data.column_names if library_of(data) == "pyarrow" else data.columns)


def column_types(data: Any) -> list[Any]:
    """What the columns of a table say that their values are."""
    return list(data.schema.types if library_of(data) == "pyarrow" else data.dtypes)


def split_off(frame: Any, name: str) -> tuple[Any, Any]:
    """A column of a table, and the table without it."""
    names = column_names(frame) or []
    if name not in names:
        raise InputError(f"the {type(frame).__name__} {of_columns(names)}; {name!r} is not among them")
    library = library_of(frame)
    if library == "pyarrow":
        return frame[name], frame.drop_columns([name])
    return frame[name], frame.drop(name) if library == "polars" else frame.drop(columns=[name])


def of_columns(names: Sequence[Any]) -> str:
    """Which columns a table has, in words."""
    if not names:
        return "has no columns"
    return f"has the columns {', '.join(map(repr, names[:MOST_NAMED]))}{', ...' if len(names) > MOST_NAMED else ''}"


def text_names(data: Any) -> list[str] | None:
    """What the columns of a table are called, if all of them have names that are texts."""
    names = column_names(data)
    return names if names and all(isinstance(name, str) for name in names) else None


def has_nulls(column: Any) -> bool:
    """Whether values of a column of polars or pyarrow are missing."""
    return bool(column.null_count if is_arrow(column) else column.null_count())


def python_values(column: Any) -> Sequence[Any]:
    """The values of a column as Python's, None or NaN where they are missing."""
    if isinstance(column, (list, tuple)):
        return column
    convert = getattr(column, "to_pylist", None) or getattr(column, "tolist", None) or column.to_list
    values: Sequence[Any] = convert()
    return values


def iterated(column: Any) -> Iterator[Any]:
    """The values of a column as Python's, of which few exist at a time."""
    if library_of(column) not in ("polars", "pyarrow"):
        yield from column
        return
    for start in range(0, len(column), AT_A_TIME):
        yield from python_values(column[start : start + AT_A_TIME])


def listed(data: Any) -> Any:
    """A list of what comes one after another: of an iterator, a deque, a view of a dict; anything else as it is.

    Sets and mappings are refused, as their members are in no order that labels could be in.
    """
    if isinstance(data, (Iterator, deque, UserList, KeysView, ValuesView)):
        return list(data)
    if library_of(data) is None and isinstance(data, (Set, Mapping)):
        hint = "list(X.values())" if isinstance(data, Mapping) else "sorted(X)"
        raise InputError(f"X is {a_type(data)}, whose members have no place; give a list, such as {hint}")
    return data


def unwrapped(data: Any, name: str = "X") -> Any:
    """What is inside a wrapper: the array of an xarray DataArray, the data of a masked array that masks nothing.

    Texts along the second dimension of a DataArray are names of columns: a numpy array then comes as a DataFrame, and
    another one carries them.

    Parameters
    ----------
    data
        Whatever a user gave. What is not wrapped comes back as it is.
    name
        What to call it in messages.
    """
    if isinstance(data, np.ma.MaskedArray):
        if np.ma.is_masked(data):
            raise InputError(
                f"{name} is a masked array, and masked is not zero; decide with {name}.filled(0), or leave the masked "
                "rows out"
            )
        return np.ma.getdata(data)
    library = library_of(data)
    if library == "xarray":
        return _of_xarray(data, name)
    if library == "polars" and type(data).__name__ == "LazyFrame":
        raise InputError(f"{name} is a lazy frame of polars; give {name}.collect()")
    if library == "pyarrow" and type(data).__name__ == "RecordBatch":
        import pyarrow as pa

        return pa.Table.from_batches([data])
    return data if library is not None else _of_others(data, name)


def _of_others(data: Any, name: str) -> Any:
    """The table of pyarrow that is in a relation of DuckDB, a dataset of Hugging Face, or what else hands out one."""
    module, kind = type(data).__module__.partition(".")[0], type(data).__name__
    if module == "datasets" and kind == "Dataset":
        return data.with_format("arrow")[:]
    if module == "datasets" and kind in ("DatasetDict", "IterableDatasetDict"):
        raise InputError(f"{name} has several splits; give one of them, such as {name}[{next(iter(data), 'train')!r}]")
    if module == "datasets" and kind == "IterableDataset":
        raise InputError(f"{name} is a stream of Hugging Face; load it with streaming=False, or give Parquet files")
    if hasattr(type(data), "__arrow_c_stream__"):
        import pyarrow as pa

        return pa.chunked_array(data) if is_series(data) else pa.table(data)
    return data


def _of_xarray(data: Any, name: str) -> Any:
    if not (_is_a(data, "DataArray") or _is_a(data, "NamedArray")):
        raise InputError(
            f"{name} is an xarray {type(data).__name__} of several variables; give one of them, such as "
            f"{name}[{next(iter(data), 'counts')!r}]"
        )
    inner = unwrapped(data.data, name)
    coordinate = data.coords.get(data.dims[1]) if len(data.dims) == 2 and hasattr(data, "coords") else None
    names = [] if coordinate is None else coordinate.values.tolist()
    if not names or not all(isinstance(one, str) for one in names):
        return inner
    if isinstance(inner, np.ndarray):
        import pandas as pd

        return pd.DataFrame(inner, columns=names, copy=False)
    inner = copy(inner)  # the user's own stays as it is
    setattr(inner, NAMES, names)
    return inner


def is_collection(data: Any) -> bool:
    """Whether this is a Dask collection, told without importing Dask."""
    return hasattr(type(data), "__dask_graph__")


def is_bag(data: Any) -> bool:
    """Whether this is a Dask bag."""
    return is_collection(data) and type(data).__module__.startswith("dask.bag")


def a_type(value: Any) -> str:
    """What a value is, with its article: "a list", "an Index"."""
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}"


def _is_a(data: Any, name: str) -> bool:
    """Whether the class of a value, or one that it is derived from, has this name."""
    return any(cls.__name__ == name for cls in type(data).__mro__)
