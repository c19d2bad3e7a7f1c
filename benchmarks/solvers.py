"""The multinomial solver beside bisection, both in memory and on one thread.

    python benchmarks/solvers.py [--features 12080000] [--repeats 3] [--scaling] [--shares]

Counts have the shape of the "tweets" case: a Zipf head of 200,000 words, the rest spread evenly, so that most counts
are tiny. Reals are the same with noise. ``--scaling`` keeps k/m = 0.05 and lets m grow; ``--shares`` takes reals of
1,000 to a million features and k/m of 0.001 to 0.9. A sweep is one evaluation of the gains of all features. Loops are
compiled before.

References: NFS Algorithm 1; with --scaling Experiment 3, Figure 2 (right).
"""

from __future__ import annotations

import argparse

import numpy as np
from measure import interleaved

from nfs_dask.solvers.naive_bayes import bisection
from nfs_dask.solvers.naive_bayes.gains import gains
from nfs_dask.solvers.naive_bayes.multinomial import count, solve
from nfs_dask.solvers.naive_bayes.path_grid import solve_path

HEAD = 200_000
WORDS = 3.4  # of the corpus, for each feature


def counted(m: int, seed: int = 0) -> np.ndarray:
    """Class totals (2, m) of a corpus of m * WORDS words."""
    rng = np.random.default_rng(seed)
    n = int(m * WORDS / 2)
    totals = np.empty((2, m), np.int64)
    tilt = np.exp(rng.normal(0, 0.2, min(HEAD, m)))
    for c in range(2):
        head = (np.exp(rng.random(int(0.6 * n)) * np.log(min(HEAD, m))) - 1).astype(np.int64)
        totals[c] = np.bincount(head, minlength=m)
        totals[c, : len(tilt)] = totals[c, : len(tilt)] * (tilt if c else 1 / tilt)
        totals[c] += np.bincount(rng.integers(m, size=n - len(head)), minlength=m)
    return totals


def noisy(totals: np.ndarray, seed: int = 1) -> np.ndarray:
    """The same as reals, hardly two of which are equal."""
    return totals * np.random.default_rng(seed).uniform(0.5, 1.5, totals.shape)


def compare(name: str, totals: np.ndarray, k: int, repeats: int) -> float:
    """Print both times for one k; returns bisection's."""
    ours, theirs = solve(count(totals), k), bisection.solve(totals, k)
    assert theirs.value <= ours.value * (1 + 1e-9) and abs(theirs.bound - ours.bound) <= 1e-6 * ours.bound
    reals = totals.astype(np.float64)
    ways = {
        "bisection": lambda: bisection.solve(totals, k),
        "cuts": lambda: solve(count(totals), k),
        "sweep": lambda: gains(reals, ours.point),
    }
    times = interleaved(ways, repeats)
    n, gap, sweeps = ours.n_evaluations, ours.gap / ours.bound, times["cuts"] / times["sweep"]
    print(
        f"{name:8s} m={totals.shape[1]:>10,} k={k:>8,}  bisection {times['bisection']:8.5f} s"
        f"  cuts {times['cuts']:8.5f} s  {times['bisection'] / times['cuts']:6.1f} times faster"
        f"  ({n} evaluations, gap {gap:.1e}, {sweeps:.1f} sweeps)",
        flush=True,
    )
    return times["bisection"]


def paths(totals: np.ndarray, one: float, repeats: int) -> None:
    """Print the time of 200 k beside bisection's for one."""
    m = totals.shape[1]
    table = count(totals)
    ks = np.unique(np.geomspace(1, 0.05 * m, 230).astype(int))[-200:]
    time = interleaved({"path": lambda: solve_path(table, ks)}, repeats)["path"]
    print(f"path of {len(ks)} k, counts known: {time:.3f} s, {time / one:.2f} of bisection's time for one")


def whole_path(repeats: int) -> None:
    rng = np.random.default_rng(0)
    for name, totals in (("reals", rng.random((2, 3000))), ("counts", rng.poisson(20, (2, 3000)))):
        table = count(totals)
        path = solve_path(table)
        time = interleaved({"path": lambda table=table: solve_path(table)}, repeats)["path"]
        print(f"all k of 3,000 features ({name}) to 1e-6: {time:.3f} s, {path.n_evaluations} evaluations")


def compile_loops() -> None:
    """Solve a problem, so that loops are compiled."""
    solve(count(noisy(counted(200_000))), 10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", type=int, default=12_080_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--scaling", action="store_true")
    parser.add_argument("--shares", action="store_true")
    options = parser.parse_args()
    compile_loops()
    if options.shares:
        for m in (1_000, 10_000, 100_000, 1_000_000):
            totals = noisy(counted(m))
            for share in (0.001, 0.01, 0.05, 0.2, 0.5, 0.9):
                compare("reals", totals, max(2, int(share * m)), options.repeats * max(1, 100_000 // m))
        return
    if options.scaling:
        for m in (1_000, 10_000, 100_000, 1_000_000, options.features):
            totals, repeats = counted(m), options.repeats * max(1, 100_000 // m)
            compare("counts", totals, m // 20, repeats)
            compare("reals", noisy(totals), m // 20, repeats)
        return
    totals = counted(options.features)
    thousandth = max(2, options.features // 1000)
    one = compare("counts", totals, thousandth, options.repeats)
    paths(totals, one, options.repeats)
    whole_path(options.repeats)
    reals = noisy(totals)
    for k in (max(2, thousandth // 100), thousandth, options.features // 20):
        compare("reals", reals, k, options.repeats)


if __name__ == "__main__":
    main()
