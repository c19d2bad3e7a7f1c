"""Arrays whose chunks are nothing but their numbers, row after row, which need no unpacking."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from nfs_dask.store.layout import Json


def has_plain_rows(document: Json, version: int, dtype: np.dtype[Any]) -> bool:
    """Whether the metadata of an array say that a chunk is some whole rows, as they would be in memory."""
    if version == 2:
        whole = _whole_rows(document["shape"], document["chunks"])
        bare = document.get("compressor") is None and not document.get("filters") and document.get("order") == "C"
        return whole and bare and str(document["dtype"])[0] in ("|", "<" if sys.byteorder == "little" else ">")
    grid, codecs = document["chunk_grid"], document["codecs"]
    if grid["name"] != "regular" or [one["name"] for one in codecs] != ["bytes"]:
        return False
    order = (codecs[0].get("configuration") or {}).get("endian", sys.byteorder)
    return (order == sys.byteorder or dtype.itemsize == 1) and _whole_rows(
        document["shape"], grid["configuration"]["chunk_shape"]
    )


def _whole_rows(shape: list[int], chunks: list[int]) -> bool:
    return math.prod(shape[1:]) > 0 and list(shape[1:]) == list(chunks[1:])
