"""What benchmarks on real sets share: where these are, and a clock."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"

T = TypeVar("T")


def data_folder() -> Path:
    """Where the data sets are: NFS_DASK_DATA, or ../shared/data beside the checkout."""
    return Path(os.environ.get("NFS_DASK_DATA", BESIDE))


def timed(function: Callable[[], T]) -> tuple[T, float]:
    """What a call returns, and its seconds."""
    start = time.perf_counter()
    value = function()
    return value, time.perf_counter() - start
