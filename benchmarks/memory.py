"""Memory: what the plan says, what workers take, and what ten times the documents change.

    python benchmarks/memory.py --data DIR [--cases tweets tweets-x10 wide wide-x10] [--fit K] [--profiles]

Two worker processes: of 1 GiB for 12 million features, of 512 MiB for 10^8 and 10^9. The peak of a worker is the
kernel's high-water mark during the passes; the plan is made before each pass, by the workers as they are then. Workers
grow by what they take after the last pass more than after the first. With --fit, a fit follows of K features, and the
client's peak is told too; --repeats 0 leaves the passes before it out. With --profiles, workers keep profiles, as those
of Dask's own clusters do.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cases import CASES, store
from measure import peak_nbytes, reset_peak, resident_nbytes, seconds

from nfs_dask import DaskEngine
from nfs_dask.cluster.local_cluster import SETTINGS, start_cluster
from nfs_dask.cluster.worker_settings import PROFILES
from nfs_dask.units import format_bytes, parse_bytes

LIMITS = {"wide": "512MiB", "wide-x10": "512MiB"}


@dataclass(frozen=True)
class Outcome:
    seconds: float
    peak: int
    planned: int
    limit: str
    strategy: str
    grown: float  # bytes in a thousand tasks of a worker
    fit: str


def measure(name: str, data: Path, repeats: int, k: int | None) -> Outcome:
    """Passes over one case on a cluster of its own."""
    dataset, limit = store(name, data), LIMITS.get(name, "1GiB")
    counts = dataset.class_counts()
    plans: list[Any] = []
    with start_cluster(2, 1, parse_bytes(limit)) as client:

        def one_pass() -> None:
            plans.append(dataset.reduce(counts, DaskEngine(client)).plan)

        dataset.plan(counts, DaskEngine(client))  # compiles, imports
        if repeats:
            one_pass()
        before = sum(client.run(resident_nbytes).values())
        client.run(reset_peak)
        times = seconds(one_pass, repeats)
        peak = max(client.run(peak_nbytes).values())
        grown = sum(client.run(resident_nbytes).values()) - before
        fitted = "" if k is None else fit(dataset, k, client)
    tasks = sum(plan.tasks for plan in plans[1:])
    planned = max((plan.peak_nbytes for plan in plans), default=0)
    strategy = f"{plans[-1].strategy}, {plans[-1].panels} panels" if plans else ""
    middle = statistics.median(times) if times else 0.0
    return Outcome(middle, peak, planned, limit, strategy, 1000 * grown / max(1, tasks), fitted)


def fit(dataset: Any, k: int, client: Any) -> str:
    """A fit of k features, with what it takes."""
    from nfs_dask.estimators.multinomial import MultinomialClassifier

    reset_peak()
    client.run(reset_peak)
    before = resident_nbytes()
    (took,) = seconds(lambda: MultinomialClassifier(k, engine=DaskEngine(client)).fit(dataset), 1)
    worker, here = max(client.run(peak_nbytes).values()), peak_nbytes()
    return (
        f"fit of {k:,} features {took:.2f} s, peak of a worker {format_bytes(worker)}, of the client "
        f"{format_bytes(here)}, {format_bytes(here - before)} more than before"
    )


def outcome_of(name: str, o: Outcome) -> str:
    return (
        f"{name:11s} {o.seconds:6.2f} s   peak {format_bytes(o.peak):>10s} of {o.limit}   "
        f"planned {format_bytes(o.planned):>10s} = {o.planned / o.peak:.2f} x the peak   ({o.strategy})   "
        f"grown by {format_bytes(o.grown)} in a thousand tasks"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=("tweets", "tweets-x10", "wide"))
    parser.add_argument("--data", type=Path, default=Path("benchmark-data"))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--fit", type=int, metavar="K")
    parser.add_argument("--profiles", action="store_true")
    options = parser.parse_args()
    if options.profiles:
        SETTINGS[PROFILES] = True
    outcomes = {}
    for name in options.cases:
        outcomes[name] = o = measure(name, options.data, options.repeats, options.fit)
        if options.repeats:
            print(outcome_of(name, o))
        if o.fit:
            print(f"{name:11s} {o.fit}")
    if options.repeats and {"tweets", "tweets-x10"} <= outcomes.keys():
        one, ten = outcomes["tweets"], outcomes["tweets-x10"]
        time, peak = ten.seconds / one.seconds, ten.peak / one.peak
        print(f"ten times the documents: {time:.2f} x the time, {peak:.2f} x the peak")


if __name__ == "__main__":
    main()
