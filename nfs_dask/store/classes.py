"""Classes of rows that are appended, numbered as the store numbers its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError
from nfs_dask.store.header import Header
from nfs_dask.store.plain_values import plain_classes


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
