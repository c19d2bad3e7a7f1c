"""What no pass can be faster than on this machine: one compiled loop over data that are in memory already.

Two threads share the blocks of a dataset. Nothing is read, checked, merged or sent; what is timed is one look at each
entry. The sums of both threads are compared with those of numpy where that is cheap.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np

from nfs_dask.arrays.block import Array, Block
from nfs_dask.dataset import Dataset

THREADS = 2


@numba.njit(nogil=True)
def _count(indptr: Array, indices: Array, data: Array, codes: Array, counts: Array) -> None:
    for i in range(len(codes)):
        for j in range(indptr[i], indptr[i + 1]):
            counts[codes[i], indices[j]] += data[j]


@numba.njit(nogil=True)
def _look_up(indptr: Array, indices: Array, data: Array, table: Array, logs: Array) -> None:
    n_words = len(table)
    for i in range(len(logs)):
        for j in range(indptr[i], indptr[i + 1]):
            word = indices[j] % n_words
            logs[i, 0] += data[j] * table[word, 0]
            logs[i, 1] += data[j] * table[word, 1]


def counting_limit(dataset: Dataset) -> float:
    """Seconds in which two threads count what is in memory, each into a state of its own; the states are not merged."""
    parts = _parts(dataset)
    states = [np.zeros((2, dataset.n_features), np.int64) for _ in parts]

    def work(part: int) -> None:
        for block in parts[part]:
            _count(*block.entries, states[part])

    taken = _seconds(work)
    counted = sum(int(state.sum()) for state in states) // 2  # a first round compiled
    assert counted == sum(int(block.data.sum(dtype=np.int64)) for part in parts for block in part)
    return taken


def lookup_limit(dataset: Dataset, n_regions: int) -> float:
    """Seconds in which two threads look each entry up once, where the numbers of both classes lie side by side."""
    parts = _parts(dataset)
    table = np.random.default_rng(0).random((dataset.n_features // n_regions, 2), np.float32)

    def work(part: int) -> None:
        for block in parts[part]:
            _look_up(*block.entries[:3], table, np.zeros((block.n_rows, 2)))

    return _seconds(work)


def _parts(dataset: Dataset) -> list[list[Block]]:
    blocks = list(dataset.source.blocks(0, dataset.source.n_blocks))
    return [blocks[first::THREADS] for first in range(THREADS)]


def _seconds(work: Callable[[int], None]) -> float:
    """Of the second round; the first one compiles, and touches the memory."""
    with ThreadPoolExecutor(THREADS) as pool:
        for _ in range(2):
            started = time.perf_counter()
            list(pool.map(work, range(THREADS)))
            taken = time.perf_counter() - started
    return taken
