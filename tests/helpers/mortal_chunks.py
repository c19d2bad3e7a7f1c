"""A Dask array whose chunks say when they are read, take their time, and may be the end of a worker."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
from scipy import sparse

CHUNKS, ROWS, COLUMNS = 40, 50, 60
Y = np.arange(CHUNKS * ROWS) % 3


def rows(i: int) -> Any:
    return sparse.csr_array(np.random.default_rng(i).poisson(0.2, (ROWS, COLUMNS)))


def array(log: Path, seconds: float, kill_at: int | None = None) -> da.Array:
    """Chunks write a line to the log; the first reading of one of them ends its process."""

    def chunk(i: int) -> Any:
        time.sleep(seconds)
        with open(log, "a") as file:
            file.write(f"{i}\n")
        mark = f"{log}.killed"
        if i == kill_at and not os.path.exists(mark):
            open(mark, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return rows(i)

    read = dask.delayed(chunk, pure=True)
    meta = sparse.csr_array((0, COLUMNS), dtype=int)
    return da.concatenate([da.from_delayed(read(i), (ROWS, COLUMNS), meta=meta) for i in range(CHUNKS)])
