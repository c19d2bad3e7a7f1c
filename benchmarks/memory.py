"""Memory: what the plan says, what workers take, and what ten times the documents change.

    python benchmarks/memory.py --data DIR [--cases tweets tweets-x10 wide]

Two worker processes: of 1 GiB for 12 million features, of 512 MiB for 10^8. The peak of a worker is the kernel's
high-water mark during the passes; the plan is made before each pass, by the workers as they are then.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cases import CASES, store
from measure import peak_nbytes, reset_peak, seconds

from nfs_dask import DaskEngine
from nfs_dask.units import format_bytes

LIMITS = {"wide": "512MiB", "wide-x10": "512MiB"}


@dataclass(frozen=True)
class Outcome:
    seconds: float
    peak: int
    planned: int
    limit: str
    strategy: str


def measure(name: str, data: Path, repeats: int) -> Outcome:
    """Passes over one case on a cluster of its own."""
    from distributed import Client, LocalCluster

    dataset, limit = store(name, data), LIMITS.get(name, "1GiB")
    counts = dataset.class_counts()
    plans: list[Any] = []

    def one_pass() -> None:
        plans.append(dataset.reduce(counts, DaskEngine()).plan)

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=limit, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        one_pass()  # compiles, imports
        client.run(reset_peak)
        times = seconds(one_pass, repeats)
        peak = max(client.run(peak_nbytes).values())
    planned = max(plan.peak_nbytes for plan in plans)
    strategy = f"{plans[-1].strategy}, {plans[-1].panels} panels"
    return Outcome(statistics.median(times), peak, planned, limit, strategy)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=("tweets", "tweets-x10", "wide"))
    parser.add_argument("--data", type=Path, default=Path("benchmark-data"))
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    outcomes = {}
    for name in options.cases:
        outcomes[name] = o = measure(name, options.data, options.repeats)
        print(
            f"{name:11s} {o.seconds:6.2f} s   peak {format_bytes(o.peak):>10s} of {o.limit}   "
            f"planned {format_bytes(o.planned):>10s} = {o.planned / o.peak:.2f} x the peak   ({o.strategy})"
        )
    if {"tweets", "tweets-x10"} <= outcomes.keys():
        one, ten = outcomes["tweets"], outcomes["tweets-x10"]
        time, peak = ten.seconds / one.seconds, ten.peak / one.peak
        print(f"ten times the documents: {time:.2f} x the time, {peak:.2f} x the peak")


if __name__ == "__main__":
    main()
