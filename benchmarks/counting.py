"""Counting per class from the store on disk, beside what a user would write instead.

    python benchmarks/counting.py --case tweets --data DIR [--peers dask-ml map-blocks]

Sides: ours on two worker processes of 1 GiB and on two threads; a single-process numpy/scipy loop over the same blocks
as uncompressed .npz files; with --peers, dask-ml's Incremental(MultinomialNB), and dense partials of map_blocks summed
by a tree of fan-in 2. All counts are compared. Clusters are started, and kernels compiled, before the clock runs.

References: sizes as of TWITTER with word bigrams in NFS Experiment 2, Table 2.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from cases import CASES, npz, store
from limits import counting_limit
from loops import dask_ml, map_blocks, numpy_loop
from measure import interleaved, peak_nbytes, reset_peak

from nfs_dask import DaskEngine
from nfs_dask.dataset import Dataset
from nfs_dask.units import format_bytes


def ours(dataset: Dataset, engine: DaskEngine, client: Any) -> np.ndarray:
    with client.as_current():
        return dataset.reduce(dataset.class_counts(), engine).state.arrays["sums"]


def main() -> None:
    from distributed import Client, LocalCluster

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=CASES, default="small")
    parser.add_argument("--data", type=Path, default=Path("benchmark-data"))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--memory-limit", default="1GiB")
    parser.add_argument("--limit", action="store_true", help="time one compiled loop over the data in memory beside")
    parser.add_argument("--peers", nargs="*", choices=("dask-ml", "map-blocks"), default=())
    options = parser.parse_args()
    dataset, paths = store(options.case, options.data), npz(options.case, options.data)
    m = dataset.n_features
    common = {"dashboard_address": None, "n_workers": 2, "threads_per_worker": 1}
    with (
        LocalCluster(**common, memory_limit=options.memory_limit) as processes,
        Client(processes, set_as_default=False) as two_processes,
        LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as threads,
        Client(threads, set_as_default=False) as two_threads,
    ):
        ways = {
            "numpy/scipy loop, one process": lambda: numpy_loop(paths, m),
            "nfs-dask, two processes": lambda: ours(dataset, DaskEngine(), two_processes),
            "nfs-dask, two threads": lambda: ours(dataset, DaskEngine(), two_threads),
        }
        truth = numpy_loop(paths, m)
        for name in list(ways)[1:]:
            assert (ways[name]() == truth).all(), name
        two_processes.run(reset_peak)
        times = interleaved(ways, options.repeats)
        peak = max(two_processes.run(peak_nbytes).values())
    if options.peers:  # these need 2 GiB a worker, and would not finish in one
        with LocalCluster(**common, memory_limit="4GiB") as cluster, Client(cluster, set_as_default=False) as client:
            peers = {"dask-ml": dask_ml, "map-blocks": map_blocks}
            ways = {name: lambda f=peers[name]: f(client, paths, m) for name in options.peers}
            times |= interleaved(ways, 2)
    base = times["numpy/scipy loop, one process"]
    print(f"{options.case}: {dataset!r}")
    for name, t in times.items():
        print(f"{name:32s} {t:7.2f} s   {base / t:5.2f} x the numpy/scipy loop's speed")
    if options.limit:
        limit = counting_limit(dataset)
        ratio = times["nfs-dask, two processes"] / limit
        print(f"one compiled loop in memory, two threads: {limit:.2f} s; two processes take {ratio:.2f} times that")
    print(f"peak of a worker process: {format_bytes(peak)} of {options.memory_limit}")


if __name__ == "__main__":
    main()
