"""The hybrid naive Bayes beside the multinomial one, by two worker processes of 1 GiB: seconds of each pass, and peaks.

    python benchmarks/hybrid.py --data DIR [--case tweets] [--regions 2] [--repeats 3]

The tweets of the other benchmarks are taken for documents of so many regions over one vocabulary. Both methods start
from data of which nothing is kept. Clusters are started, and kernels compiled by a run over other data, before the
clock runs; the two take turns.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

from cases import CASES, store
from measure import peak_nbytes, reset_peak

from nfs_dask import SparseMultinomialNB
from nfs_dask.dataset import Dataset
from nfs_dask.engine.distributed import DaskEngine
from nfs_dask.procedures.hybrid import HybridFit, HybridSettings, fit_hybrid
from nfs_dask.units import format_bytes

K = 1_000  # words of the multinomial model


def multinomial(dataset: Dataset) -> float:
    """Seconds of a sparse multinomial fit."""
    started = time.perf_counter()
    SparseMultinomialNB(k=K, engine=DaskEngine()).fit(dataset)
    return time.perf_counter() - started


def peak_of(client: Any) -> int:
    """Most memory of any worker since the last call."""
    peak = max(client.run(peak_nbytes).values())
    client.run(reset_peak)
    return int(peak)


def report(fit: HybridFit, hybrid: list[float], plain: list[float], peaks: dict[str, int]) -> None:
    for one in fit.passes:
        planned = "" if one.plan is None else f", {format_bytes(one.plan.peak_nbytes)} planned"
        print(f"  {one.name:10} {one.seconds:6.2f} s{planned}")
    steps = f"{fit.logistic.n_evaluations} evaluations, gradient {fit.logistic.gradient:.0e}"
    print(f"  theta {fit.theta.round(4).tolist()}: {steps}")
    for name, times in (("hybrid", hybrid), ("multinomial", plain)):
        each = f" ({', '.join(f'{t:.1f}' for t in times)})" if len(times) > 1 else ""
        print(f"  {name:12} {statistics.median(times):6.1f} s{each}, {format_bytes(peaks[name])} in the largest worker")
    print(f"  {statistics.median(hybrid) / statistics.median(plain):.2f} times the multinomial's time")


def main() -> None:
    from distributed import Client, LocalCluster

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=CASES, default="small")
    parser.add_argument("--data", type=Path, default=Path("benchmark-data"))
    parser.add_argument("--regions", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    options.data.mkdir(parents=True, exist_ok=True)
    dataset, small = store(options.case, options.data), store("small", options.data)
    settings = HybridSettings(options.regions)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="1GiB", dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        fit_hybrid(small, settings, DaskEngine())
        client.run(reset_peak)
        fits, plain, peaks = [], [], {"hybrid": 0, "multinomial": 0}
        for _ in range(options.repeats):
            plain.append(multinomial(dataset))
            peaks["multinomial"] = max(peaks["multinomial"], peak_of(client))
            fits.append(fit_hybrid(dataset, settings, DaskEngine()))
            peaks["hybrid"] = max(peaks["hybrid"], peak_of(client))
    print(f"{options.case} as {options.regions} regions: {dataset!r}")
    report(fits[-1], [fit.seconds for fit in fits], plain, peaks)


if __name__ == "__main__":
    main()
