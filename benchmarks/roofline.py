"""How near passes are to what this machine can do: bytes and operations of each entry, beside measured rates.

    python benchmarks/roofline.py --data DIR [--case tweets]

Rates are measured on both processors at once, by a process for each: bytes that are read from the cache of the file
system, checked by CRC-32C, unpacked (blosc, of a chunk of the store's own columns) and added up in order, and counters
that are raised at random places, of a table as large as the state and of one that fits a processor's own cache. What a
pass has to do is written down in `PASSES`, for each entry. Its bound is the time that this takes on both processors
at these rates, with nothing else and nothing twice: no scheduling, no messages, no finding of features.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import google_crc32c
import numba
import numpy as np
from cases import CASES, store
from measure import interleaved
from numcodecs import blosc

from nfs_dask import DaskEngine
from nfs_dask.dataset import Dataset
from nfs_dask.statistics.moments import ClassMoments

MIB = 1 << 20
NEAR_NBYTES = MIB // 2  # of a table in a processor's own cache
SECONDS = 0.5  # of each measurement
PROCESSES = 2


def machine(folder: Path, state_nbytes: int) -> dict[str, Callable[[], int]]:
    """For each rate, a function that does a piece of work and returns how much that was."""
    largest = max(folder.glob("X/indices/c/*"), key=lambda path: path.stat().st_size)
    content = largest.read_bytes()[: 64 * MIB]
    columns = np.sort(np.random.default_rng(1).integers(0, 1 << 24, MIB).astype(np.int32))
    packed = bytes(blosc.compress(columns, b"lz4", 5, blosc.SHUFFLE))
    large = np.zeros(32 * MIB)
    far, near = (np.zeros(nbytes // 8, np.int64) for nbytes in (state_nbytes, NEAR_NBYTES))
    return {
        "read": lambda: len(largest.read_bytes()),
        "check": lambda: google_crc32c.value(content) * 0 + len(content),
        "unpack": lambda: blosc.decompress(packed, columns).nbytes,
        "stream": lambda: int(large.sum()) + large.nbytes,
        "far": counting(far),
        "near": counting(near),
    }


def counting(table: np.ndarray) -> Callable[[], int]:
    """Raise counters at random places of a table."""
    places = np.random.default_rng(2).integers(0, len(table), 8 * MIB).astype(np.int32)

    def work() -> int:
        raise_counters(places, table)
        return len(places)

    return work


@numba.njit(nogil=True)
def raise_counters(places, table):
    for i in range(len(places)):
        table[places[i]] += 1


def one_process(folder: Path, state_nbytes: int, gate: Any) -> dict[str, float]:
    """Rates of one process, while others measure the same."""
    rates = {}
    for name, work in machine(folder, state_nbytes).items():
        work()
        gate.wait()
        done, began = 0, time.perf_counter()
        while time.perf_counter() - began < SECONDS:
            done += work()
        rates[name] = done / (time.perf_counter() - began)
    return rates


def rates_of_machine(folder: Path, state_nbytes: int) -> dict[str, float]:
    """Rates of all processors together."""
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, context.Pool(PROCESSES) as pool:
        gate = manager.Barrier(PROCESSES)
        found = pool.starmap(one_process, [(folder, state_nbytes, gate)] * PROCESSES)
    return {name: sum(one[name] for one in found) for name in found[0]}


@dataclass(frozen=True)
class Work:
    """What a pass has to do for each entry: bytes, or places to raise, by the rate that they go at."""

    title: str
    each: Mapping[str, float]
    run: Callable[[], Any]

    def bound(self, entries: int, rates: Mapping[str, float]) -> dict[str, float]:
        """Seconds, by rate."""
        return {name: entries * amount / rates[name] for name, amount in self.each.items()}


def passes(dataset: Dataset, client: Any, threads: Any, packed: float) -> list[Work]:
    """Passes over a store whose entries take so many bytes, packed, and 8 unpacked."""

    def run(where: Any, statistic: Any, **options: Any) -> None:
        with where.as_current():
            dataset.reduce(statistic, DaskEngine(**options))

    counts, moments = dataset.class_counts(), ClassMoments(len(dataset.known_classes()), squares=True)
    read = {"read": packed, "check": packed, "unpack": 8.0}
    spooled = {"read": packed + 3, "check": packed + 6, "unpack": 8.0, "near": 2.0, "stream": 3.0}
    return [
        Work("counts, one whole state, two threads", read | {"far": 1.0}, partial(run, threads, counts)),
        Work("counts, panels, two processes", spooled, partial(run, client, counts)),
        Work("sums and squares, panels, two processes", spooled | {"near": 3.0}, partial(run, client, moments)),
    ]


def main() -> None:
    from distributed import Client, LocalCluster

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=CASES, default="small")
    parser.add_argument("--data", type=Path, default=Path("benchmark-data"))
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    dataset = store(options.case, options.data)
    folder = options.data / f"{options.case}.zarr"
    rates = rates_of_machine(folder, 16 * dataset.n_features)
    print("; ".join(f"{name} {rate / 1e9:.2f}" for name, rate in rates.items()), "(GB or G operations a second)")
    entries, nbytes = dataset.nnz, dataset.source.read_nbytes
    common = {"dashboard_address": None}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="1GiB", **common) as processes,
        Client(processes, set_as_default=False) as client,
        LocalCluster(n_workers=1, threads_per_worker=2, processes=False, **common) as cluster,
        Client(cluster, set_as_default=False) as threads,
    ):
        works = passes(dataset, client, threads, nbytes / entries)
        for work in works:
            work.run()
        times = interleaved({work.title: work.run for work in works}, options.repeats)
    for work in works:
        bound = work.bound(entries, rates)
        parts = ", ".join(f"{name} {seconds:.2f}" for name, seconds in bound.items())
        took, least = times[work.title], sum(bound.values())
        print(f"{work.title:42s} {took:5.2f} s, bound {least:5.2f} s ({parts}): {took / least:.1f} times the bound")


if __name__ == "__main__":
    main()
