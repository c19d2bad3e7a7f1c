"""Categories as a store holds them: values of one plain type, in JSON and in arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError
from nfs_dask.files.folder import Folder
from nfs_dask.store.layout import Numbers, Texts
from nfs_dask.store.shards import write_numbers
from nfs_dask.store.string_arrays import write_texts

CHUNK = 1024  # of an array of categories

_TYPES = {"str": np.str_, "int": np.int64, "float": np.float64, "bool": np.bool_}


def plain_classes(classes: Array | Sequence[Any] | None) -> tuple[str | None, tuple[Any, ...]]:
    """Type name and values of the classes, as JSON holds them."""
    if classes is None:
        return None, ()
    values = classes.tolist() if isinstance(classes, np.ndarray) else list(classes)
    for name, kind in (("str", str), ("bool", bool), ("int", int), ("float", float)):
        if all(type(value) is kind for value in values):
            _refuse_unstorable(values)
            return name, tuple(values)
    raise InputError(
        f"labels such as {values[:3]} cannot be stored; give strings, whole numbers or booleans, and one type of them"
    )


def _refuse_unstorable(classes: list[Any]) -> None:
    """Labels go into arrays of UTF-8 or of int64."""
    for value in classes:
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise InputError(f"the label {value} does not fit 64 bits; give smaller numbers, or strings")
        if isinstance(value, str) and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise InputError(f"the label {value!r} is not valid text; remove its surrogates") from None


def plain_array(kind: str | None, values: Sequence[Any]) -> Array:
    """The values in the order of their codes."""
    return np.array(values, dtype=_TYPES[str(kind)])


def categories_at(name: str, kind: str | None, values: Sequence[Any]) -> Numbers | Texts:
    """The array that holds them in a store."""
    if kind == "str":
        return Texts(name, len(values), CHUNK)
    return Numbers(name, np.dtype(_TYPES[str(kind)]).name, len(values), CHUNK, CHUNK)


def write_categories(folder: Folder, array: Numbers | Texts, values: Sequence[Any]) -> None:
    """Write all of them."""
    if isinstance(array, Texts):
        for chunk, first in enumerate(range(0, array.length, array.chunk)):
            write_texts(folder, array, chunk, values[first : first + array.chunk])
    else:
        write_numbers(folder, array, [np.array(values, array.dtype)])
