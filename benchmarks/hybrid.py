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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cases import CASES, store
from limits import lookup_limit
from measure import peak_nbytes, reset_peak

from nfs_dask import SparseMultinomialNB
from nfs_dask.engine.distributed import DaskEngine
from nfs_dask.methods.hybrid import HybridFit, HybridSettings, fit_hybrid
from nfs_dask.units import format_bytes

K = 1_000  # words of the multinomial model


@dataclass
class Cost:
    """What the fits of a method took."""

    seconds: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)  # seconds of workers and client together
    peak: int = 0  # bytes of the largest worker

    @contextmanager
    def measured(self, client: Any) -> Iterator[None]:
        """One fit."""
        client.run(reset_peak)
        used, started = processor_seconds(client), time.perf_counter()
        yield
        self.seconds.append(time.perf_counter() - started)
        self.processor.append(processor_seconds(client) - used)
        self.peak = max(self.peak, *client.run(peak_nbytes).values())

    def __str__(self) -> str:
        each = f" ({', '.join(f'{t:.1f}' for t in self.seconds)})" if len(self.seconds) > 1 else ""
        processor = f"{statistics.median(self.processor):.1f} s of processors"
        return f"{statistics.median(self.seconds):6.1f} s{each}, {processor}, {format_bytes(self.peak)} in a worker"


def processor_seconds(client: Any) -> float:
    """Used so far, by workers and client together."""
    return time.process_time() + sum(client.run(time.process_time).values())


def report(fit: HybridFit, hybrid: Cost, plain: Cost) -> None:
    for one in fit.passes:
        planned = "" if one.plan is None else f", {format_bytes(one.plan.peak_nbytes)} planned"
        print(f"  {one.name:10} {one.seconds:6.2f} s{planned}")
    steps = f"{fit.logistic.n_evaluations} evaluations, gradient {fit.logistic.gradient:.0e}"
    print(f"  theta {fit.theta.round(4).tolist()}: {steps}")
    print(f"  hybrid      {hybrid}")
    print(f"  multinomial {plain}")
    times = statistics.median(hybrid.seconds) / statistics.median(plain.seconds)
    processor = statistics.median(hybrid.processor) / statistics.median(plain.processor)
    print(f"  {times:.2f} times the multinomial's seconds, {processor:.2f} times those of processors")


def main() -> None:
    from distributed import Client, LocalCluster

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=CASES, default="small")
    parser.add_argument("--data", type=Path, default=Path("benchmark-data"))
    parser.add_argument("--regions", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--limit", action="store_true", help="time one look-up an entry, in memory, beside")
    options = parser.parse_args()
    options.data.mkdir(parents=True, exist_ok=True)
    dataset, small = store(options.case, options.data), store("small", options.data)
    settings = HybridSettings(options.regions)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="1GiB", dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        fit_hybrid(small, settings, DaskEngine())
        SparseMultinomialNB(k=K, engine=DaskEngine()).fit(small)
        plain, hybrid = Cost(), Cost()
        for _ in range(options.repeats):
            with plain.measured(client):
                SparseMultinomialNB(k=K, engine=DaskEngine()).fit(dataset)
            with hybrid.measured(client):
                fit = fit_hybrid(dataset, settings, DaskEngine())
    print(f"{options.case} as {options.regions} regions: {dataset!r}")
    report(fit, hybrid, plain)
    if options.limit:
        print(f"  one look-up an entry, in memory, two threads: {lookup_limit(dataset, options.regions):.2f} s")


if __name__ == "__main__":
    main()
