"""Classes as a store holds them: values of one plain type, numbered by the codes of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError
from nfs_dask.files.folder import Folder
from nfs_dask.store.header import Header
from nfs_dask.store.layout import Texts
from nfs_dask.store.shards import write_numbers
from nfs_dask.store.string_arrays import write_texts


def plain_classes(classes: Array | None) -> tuple[str | None, tuple[Any, ...]]:
    """Type name and values of the classes, as JSON holds them."""
    if classes is None:
        return None, ()
    values = np.asarray(classes).tolist()
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


def merged_classes(old: Header, classes: Array | None) -> tuple[tuple[Any, ...], Array | None]:
    """The store's classes with new ones at the end, and the stored code of each class of the source."""
    if old.label is None:
        if classes is not None:
            raise InputError(
                "the store has no labels, and the rows to append have; ingest all rows together into a new store"
            )
        return (), None
    if classes is None or len(classes) == 0:
        raise InputError(
            f"the rows of the store have labels ({old.label}), and the rows to append have none; give one label for "
            "each row, as labels= or by the column that holds them"
        )
    class_type, values = plain_classes(classes)
    if old.classes and class_type != old.class_type:
        raise InputError(
            f"the store's labels are of type {old.class_type}, those of the rows to append of type {class_type}; "
            "convert them before appending"
        )
    merged = {value: code for code, value in enumerate(old.classes)}
    codes = np.array([merged.setdefault(value, len(merged)) for value in values])
    return tuple(merged), codes


def write_categories(folder: Folder, header: Header) -> None:
    """Write the values of the classes."""
    categories = header.categories
    if isinstance(categories, Texts):
        for chunk in range(categories.n_chunks):
            first = chunk * categories.chunk
            write_texts(folder, categories, chunk, header.classes[first : first + categories.chunk])
    elif categories is not None:
        write_numbers(folder, categories, [header.class_array()])
