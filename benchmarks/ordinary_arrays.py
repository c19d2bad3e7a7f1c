"""Fits of ordinary arrays: in memory beside scikit-learn, persisted on two workers beside class sums by `delayed`.

    python benchmarks/ordinary_arrays.py [--only dask] [--share 0.1]

Workers are warm, and so is each way: it has run once. dask-ml has no multinomial naive Bayes of its own; its
`Incremental` walks scikit-learn's through the chunks, and is left out where it is not installed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from measure import interleaved
from scipy import sparse

import nfs_dask as nfs

RNG = np.random.default_rng(0)
Ways = dict[str, Callable[[], Any]]


def dense(n: int, m: int, *, real: bool = False) -> tuple[np.ndarray, np.ndarray]:
    X = RNG.poisson(0.3, (n, m)).astype(np.float64)
    return (RNG.standard_normal((n, m)) if real else X), RNG.integers(0, 2, n)


def in_memory(share: float) -> dict[str, Ways]:
    from sklearn.naive_bayes import MultinomialNB
    from sklearn.neighbors import NearestCentroid

    def beside(theirs: Any, ours: Any, X: Any, y: Any) -> Ways:
        return {f"{type(theirs).__name__}.fit": lambda: theirs.fit(X, y), "nfs-dask": lambda: ours.fit(X, y)}

    n = int(200_000 * share)
    X, y = dense(n, 300)
    real, labels = dense(n, 300, real=True)
    genes, groups = dense(200, 12_000, real=True)
    return {
        f"{n:,} x 300 counts, multinomial": beside(MultinomialNB(), nfs.SparseMultinomialNB(k=20), X, y),
        f"{n:,} x 300 counts, l2": beside(NearestCentroid(), nfs.SparseCentroid(k=20), X, y),
        f"{n:,} x 300 reals, l2": beside(NearestCentroid(), nfs.SparseCentroid(k=20), real, labels),
        f"{n:,} x 300 reals, l1": beside(
            NearestCentroid(metric="manhattan"), nfs.SparseCentroid(k=20, metric="manhattan"), real, labels
        ),
        "200 x 12,000 reals, l1": beside(
            NearestCentroid(metric="manhattan"), nfs.SparseCentroid(k=20, metric="manhattan"), genes, groups
        ),
    }


def class_sums(X: Any, y: Any) -> Callable[[], Any]:
    """What a user of Dask would write: sums of each class in each chunk, and their sum."""
    import dask

    def partial_sums(x: Any, codes: Any) -> Any:
        x = x.to_numpy() if hasattr(x, "to_numpy") else x
        return np.stack([np.asarray(x[codes == c].sum(axis=0)).ravel() for c in range(2)])

    parts, labels = (np.ravel(one.to_delayed(optimize_graph=False)) for one in (X, y))
    lazy = dask.delayed(sum)([dask.delayed(partial_sums)(x, c) for x, c in zip(parts, labels, strict=True)])
    return lazy.compute


def on_dask(share: float) -> dict[str, Ways]:
    import dask.array as da
    import dask.dataframe as dd
    import pandas as pd
    from distributed import get_client, wait

    def persisted(X: Any, y: Any) -> tuple[Any, Any]:
        X, y = get_client().persist([X, y])
        wait([X, y])
        return X, y

    def beside(X: Any, y: Any) -> Ways:
        ways: Ways = {
            "delayed": class_sums(X, y),
            "nfs-dask": lambda: nfs.SparseMultinomialNB(k=20).fit(X, y),
        }
        if isinstance(X, da.Array) and isinstance(X._meta, np.ndarray):
            try:
                from dask_ml.wrappers import Incremental
            except ImportError:
                print("dask-ml is not installed, and left out")
            else:
                from sklearn.naive_bayes import MultinomialNB

                ways["dask-ml"] = lambda: Incremental(MultinomialNB()).fit(X, y, classes=[0, 1])
        return ways

    cases = {}
    for n, rows in ((int(800_000 * share), 50_000), (int(200_000 * share), 25_000)):
        rows = int(rows * share)
        X = da.random.default_rng(0).poisson(0.3, (n, 300), chunks=(rows, 300)).astype(np.float64)
        y = da.random.default_rng(1).integers(0, 2, n, chunks=rows)
        cases[f"{n:,} x 300, {n // rows} chunks"] = beside(*persisted(X, y))
    frame = pd.DataFrame(dense(int(200_000 * share), 300)[0], columns=[f"c{i}" for i in range(300)])
    table = dd.from_pandas(frame.assign(y=dense(len(frame), 1)[1]), npartitions=8)
    cases[f"{len(frame):,} x 300, 8 frames"] = beside(*persisted(table[list(frame)], table["y"]))
    n, m = int(400_000 * share), 100_000
    X = sparse.random_array((n, m), density=50 / m, format="csr", rng=RNG, data_sampler=lambda size: np.ones(size))
    blocks = [da.from_array(X[i : i + n // 8], chunks=-1, asarray=False) for i in range(0, n, n // 8)]
    y = da.from_array(RNG.integers(0, 2, n), chunks=n // 8)
    cases[f"{n:,} x {m:,} CSR, 8 chunks"] = beside(*persisted(da.concatenate(blocks), y))
    return cases


def report(where: str, cases: dict[str, Ways], repeats: int) -> None:
    for name, ways in cases.items():
        for way in ways.values():
            way()
        times = interleaved(ways, repeats)
        reference = times[next(iter(ways))]
        told = ", ".join(f"{way} {1e3 * t:.0f} ms ({t / reference:.2f})" for way, t in times.items())
        print(f"{where}: {name}: {told}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["memory", "dask"])
    parser.add_argument("--share", type=float, default=1.0, help="of the rows")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    if options.only != "dask":
        report("memory", in_memory(options.share), options.repeats)
    if options.only != "memory":
        from distributed import Client, LocalCluster

        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
            report("dask", on_dask(options.share), options.repeats)


if __name__ == "__main__":
    main()
