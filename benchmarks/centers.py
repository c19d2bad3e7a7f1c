"""Sparse l2 and Mahalanobis centers beside the multinomial model, from a store, by two worker processes of 1 GiB.

    python benchmarks/centers.py --data DIR [--case tweets] [--repeats 5] [-k 0.001]

All three read the same store, of which nothing is kept, and take turns. Clusters are started, and kernels compiled by a
fit to other data, before the clock runs. A pass is what the workers do, a fit also what follows from it; peaks are the
high-water marks of the largest worker, reset before each fit.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from typing import Any

from cases import CASES, store
from measure import peak_nbytes, reset_peak, seconds

from nfs_dask import DaskEngine, SparseCentroid, SparseMultinomialNB
from nfs_dask.units import format_bytes

METHODS: dict[str, Any] = {
    "multinomial": lambda k: SparseMultinomialNB(k, engine=DaskEngine()),
    "l2": lambda k: SparseCentroid(k, engine=DaskEngine()),
    "mahalanobis": lambda k: SparseCentroid(k, metric="mahalanobis", engine=DaskEngine()),
}


def main() -> None:
    from distributed import Client, LocalCluster

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=CASES, default="small")
    parser.add_argument("--data", type=Path, default=Path("benchmark-data"))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("-k", type=float, default=0.001)
    options = parser.parse_args()
    dataset, small = store(options.case, options.data), store("small", options.data)
    passes: dict[str, list[float]] = {name: [] for name in METHODS}
    fits: dict[str, list[float]] = {name: [] for name in METHODS}
    peaks: dict[str, int] = dict.fromkeys(METHODS, 0)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="1GiB", dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        for make in METHODS.values():
            make(options.k).fit(small)
        for _ in range(options.repeats):
            for name, make in METHODS.items():
                client.run(reset_peak)
                model = make(options.k)
                fits[name] += seconds(lambda model=model: model.fit(dataset), 1)  # type: ignore[misc]
                passes[name].append(model.provenance_["seconds"]["counts"])
                peaks[name] = max(peaks[name], *client.run(peak_nbytes).values())
    print(f"{options.case}: {dataset!r}")
    base = statistics.median(passes["multinomial"]), statistics.median(fits["multinomial"])
    for name in METHODS:
        one, whole = statistics.median(passes[name]), statistics.median(fits[name])
        print(
            f"{name:12} pass {one:5.2f} s ({one / base[0]:.2f} times the multinomial's), fit {whole:5.2f} s "
            f"({whole / base[1]:.2f} times), {format_bytes(peaks[name])} in the largest worker"
        )


if __name__ == "__main__":
    main()
