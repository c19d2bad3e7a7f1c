"""From data on disk to a sparse multinomial model, beside the paper's algorithm in memory.

    python benchmarks/store_to_model.py --case tweets --data DIR [-k 0.001]

The other side adds up the classes of uncompressed .npz blocks with numpy and scipy, then bisects with argpartition, in
one process. Ours reads the store with two worker processes of 1 GiB. Clusters are started, and kernels compiled, before
the clock runs. Peaks of memory are the kernel's high-water marks: of the one process, and of the largest worker.

References: NFS Algorithm 1; sizes as of TWITTER with word bigrams in Experiment 2, Tables 2 and 3.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
from pathlib import Path

import numpy as np
from cases import CASES, npz, store
from loops import numpy_loop
from measure import peak_nbytes, reset_peak, seconds

from nfs_dask import DaskEngine, SparseMultinomialNB
from nfs_dask.methods.number_of_features import number_to_keep
from nfs_dask.solvers.naive_bayes import bisection
from nfs_dask.units import format_bytes


def printed(paths: list[Path], n_features: int, k: int) -> tuple[float, int, np.ndarray]:
    """The paper's algorithm: seconds, peak of the process, support."""
    reset_peak()
    found = []
    times = seconds(lambda: found.append(bisection.solve(numpy_loop(paths, n_features), k, alpha=1.0)), 1)
    return times[0], peak_nbytes(), found[0].support


def main() -> None:
    from distributed import Client, LocalCluster

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=CASES, default="small")
    parser.add_argument("--data", type=Path, default=Path("benchmark-data"))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("-k", type=float, default=0.001)
    options = parser.parse_args()
    dataset, paths = store(options.case, options.data), npz(options.case, options.data)
    k = number_to_keep(options.k, dataset.n_features)
    context = multiprocessing.get_context("spawn")
    theirs: list[tuple[float, int, np.ndarray]] = []
    ours: list[float] = []
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="1GiB", dashboard_address=None) as cluster,
        Client(cluster) as client,
        context.Pool(1) as pool,
    ):
        model = SparseMultinomialNB(k=k, engine=DaskEngine()).fit(dataset)
        client.run(reset_peak)
        for _ in range(options.repeats):
            theirs.append(pool.apply(printed, (paths, dataset.n_features, k)))
            ours += seconds(lambda: model.fit(dataset), 1)
        peak = max(client.run(peak_nbytes).values())
    one, other = statistics.median(t for t, _, _ in theirs), statistics.median(ours)
    common = len(np.intersect1d(theirs[0][2], model.get_support(indices=True)))
    print(f"{options.case}: {dataset!r}, k = {k:,}")
    print(f"the paper's algorithm in memory  {one:6.2f} s, {format_bytes(theirs[0][1])} in its process")
    print(f"nfs-dask, two processes          {other:6.2f} s, {format_bytes(peak)} in the largest worker")
    print(f"{one / other:.1f} times faster; gap {model.dual_gap_:.3g} nats, {common:,} of {k:,} features in common")


if __name__ == "__main__":
    main()
