"""Exact medians of classes by two worker processes of 1 GiB: passes, how often the data are read, seconds, peaks.

    python benchmarks/medians.py --data DIR [--cases dense tweets] [--repeats 3]

The dense case is 8 GB of float32 in an AnnData store, the sparse one the tweets of the other benchmarks. Clusters are
started, and kernels compiled by a run over other data, before the clock runs. Some columns are read again, to be
compared with numpy's medians. A bare read of the same store by Zarr alone, in this process, is timed beside.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
from cases import CASES, DENSE, dense, store
from measure import peak_nbytes, reset_peak

from nfs_dask.dataset import Dataset
from nfs_dask.engine.distributed import DaskEngine
from nfs_dask.methods.class_medians import MedianResult, class_medians
from nfs_dask.sources.views import some_columns
from nfs_dask.units import format_bytes

COMPARED = 5  # columns


def opened(case: str, data: Path) -> Dataset:
    """The data of a case, dense or sparse."""
    return dense(case, data) if case in DENSE else store(case, data)


def warm_up(client: Any, case: str, data: Path) -> None:
    """Compile on each worker what the case takes, on some columns of the small one."""
    small = opened("dense-small" if case in DENSE else "small", data)
    class_medians(small, DaskEngine(address=client.scheduler.address))


def differences(dataset: Dataset, result: MedianResult) -> int:
    """Medians of classes, among some columns, that numpy finds elsewhere."""
    medians, columns = result.medians, result.medians.columns
    places = np.unique(np.linspace(0, len(columns) - 1, COMPARED).astype(int)) if len(columns) else np.zeros(0, int)
    wrong = 0
    if len(places):
        source = some_columns(dataset.source, columns[places])
        rows: list[list[Any]] = [[] for _ in medians.weight]
        for block in source.blocks(0, source.n_blocks):
            lengths = np.diff(block.indptr)
            matrix = np.zeros((block.n_rows, block.n_features))
            matrix[np.repeat(np.arange(block.n_rows), lengths), block.indices] = block.data
            for c, part in enumerate(rows):
                part.append(matrix[block.codes == c])
        for c, part in enumerate(rows):
            wrong += np.count_nonzero(np.median(np.concatenate(part), axis=0) != medians.centers[c, places])
    return wrong


def bare_read(case: str, data: Path) -> float | None:
    """Seconds in which Zarr alone reads all values of a dense store, one block after another."""
    if case not in DENSE:
        return None
    import zarr

    array: Any = zarr.open_array(data / f"{case}.zarr" / "X", mode="r")
    started = time.perf_counter()
    for first in range(0, array.shape[0], 2 * array.chunks[0]):
        array[first : first + 2 * array.chunks[0]]
    return time.perf_counter() - started


def report(result: MedianResult, times: list[float], peak: int, wrong: int, bare: float | None) -> None:
    planned = max(one.plan.peak_nbytes for one in result.passes if one.plan is not None)
    print(f"  {len(result.medians.columns):,} columns are not mostly zero")
    for one in result.passes:
        print(f"  {one.name:10} {one.share:5.2f} of the data  {one.seconds:6.2f} s")
    print(f"  {len(result.passes)} passes, {result.reads:.2f} reads, {statistics.median(times):.1f} s", end="")
    print(f" ({', '.join(f'{t:.1f}' for t in times)})" if len(times) > 1 else "")
    print(f"  {format_bytes(peak)} in the largest worker, {format_bytes(planned)} planned")
    print(f"  {wrong} of {COMPARED * len(result.medians.weight)} compared medians differ from numpy's")
    if bare is not None:
        print(f"  a bare read by Zarr alone, in one process: {bare:.1f} s")


def main() -> None:
    from distributed import Client, LocalCluster

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=[*CASES, *DENSE], default=["dense-small", "small"])
    parser.add_argument("--data", type=Path, default=Path("benchmark-data"))
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    options.data.mkdir(parents=True, exist_ok=True)
    for case in options.cases:
        dataset = opened(case, options.data)
        bare = bare_read(case, options.data)
        with (
            LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="1GiB", dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            warm_up(client, case, options.data)
            client.run(reset_peak)
            results = [class_medians(dataset, DaskEngine()) for _ in range(options.repeats)]
            peak = max(client.run(peak_nbytes).values())
        print(f"{case}: {dataset!r}")
        report(results[-1], [one.seconds for one in results], peak, differences(dataset, results[-1]), bare)


if __name__ == "__main__":
    main()
