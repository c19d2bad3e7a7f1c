"""How often multinomial supports are the best, and how often that is proved, against all supports of small problems.

    python benchmarks/certificates.py [--classes 3 5] [--cases 500]

Different columns: 6 to 13 of them, or, for k above 50, 54 to 64 of which three are left out. Equal columns: three to
five kinds, up to 200 features, and all amounts of each kind. Counts are small whole numbers, reals, or Poisson counts.

References: after NFS20 Experiment 4, Figure 3, and NFS Experiment 6, Figure 4, with the best supports beside.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator

import numpy as np
from scipy.special import xlogy

from nfs_dask.solvers.naive_bayes.multinomial import count, solve

Case = tuple[np.ndarray, int, float]  # class totals, k, and the largest gain of k features


def gains(own: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """Of sets, by the definition: ``own`` is the sum of f log f - g log g over each, ``masses`` are (C, n)."""
    return own + xlogy(masses.sum(axis=0), masses.sum(axis=0)) - xlogy(masses, masses).sum(axis=0)


def own_parts(totals: np.ndarray) -> np.ndarray:
    g = totals.sum(axis=0)
    return xlogy(totals, totals).sum(axis=0) - xlogy(g, g)


def draw(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Class totals of one of several kinds."""
    kind = rng.integers(5)
    if kind == 0:
        return rng.integers(0, 7, shape)
    if kind == 1:
        return rng.poisson(rng.gamma(0.5, 4, shape))
    if kind == 2:
        return rng.integers(0, 2, shape) * rng.integers(1, 5, shape)
    if kind == 3:
        return 3 * np.eye(*shape, dtype=np.int64) + rng.integers(0, 3, shape)
    return rng.random(shape).round(3)


def of_different_columns(rng: np.random.Generator, n_classes: int, large: bool) -> Case:
    m = int(rng.integers(54, 65) if large else rng.integers(6, 14))
    k = m - 3 if large else int(rng.integers(2, m))
    F = draw(rng, (n_classes, m))
    totals, own = F.astype(float), own_parts(F.astype(float))
    if large:
        out = np.array(list(itertools.combinations(range(m), m - k)))
        masses = totals.sum(axis=1)[:, None] - totals[:, out].sum(axis=2)
        return F, k, float(gains(own.sum() - own[out].sum(axis=1), masses).max())
    sets = np.array(list(itertools.combinations(range(m), k)))
    return F, k, float(gains(own[sets].sum(axis=1), totals[:, sets].sum(axis=2)).max())


def of_equal_columns(rng: np.random.Generator, n_classes: int, large: bool) -> Case:
    n_kinds = int(rng.integers(3, 6))
    kinds = np.unique(draw(rng, (n_classes, n_kinds)), axis=1)
    sizes = rng.integers(5, {3: 70, 4: 40, 5: 20}[n_kinds], kinds.shape[1])
    if large:
        sizes = sizes + max(0, 100 - int(sizes.sum())) // len(sizes) + 1
    m = int(sizes.sum())
    k = int(rng.integers(51, m - 9)) if large else int(rng.integers(2, min(m, 51)))
    ways = np.array(list(itertools.product(*(range(size + 1) for size in sizes[:-1])))).T
    ways = np.vstack((ways, k - ways.sum(axis=0)))
    ways = ways[:, (ways[-1] >= 0) & (ways[-1] <= sizes[-1])]
    totals = kinds.astype(float)
    best = float(gains(own_parts(totals) @ ways, totals @ ways).max())
    return np.repeat(kinds, sizes, axis=1)[:, rng.permutation(m)], k, best


def cases(n_classes: int, equal: bool, large: bool, n: int) -> Iterator[Case]:
    """Problems in which all classes have counts, and something can be gained."""
    rng = np.random.default_rng([n_classes, equal, large])
    made = 0
    while made < n:
        F, k, best = (of_equal_columns if equal else of_different_columns)(rng, n_classes, large)
        if F.any(axis=1).all() and best > 1e-6 and k < F.shape[1]:
            made += 1
            yield F, k, best


def row(n_classes: int, equal: bool, large: bool, n: int) -> str:
    """A line of the table."""
    losses, gaps, seconds, certified = [], [], [], 0
    for F, k, best in cases(n_classes, equal, large, n):
        counted = count(F)
        start = time.perf_counter()
        solution = solve(counted, k)
        seconds.append(time.perf_counter() - start)
        noise = 1e-11 * best + 1e-14 * float(F.sum())  # of the definition, which subtracts sums of all logarithms
        assert solution.bound >= best - noise, "a bound below the best gain"
        losses.append(max(best - solution.value, 0.0) / best)
        gaps.append(solution.gap / solution.bound)
        certified += solution.certified(float(F.sum()))
    optimal = np.mean(np.array(losses) <= 1e-10)
    columns, range_of_k = "equal" if equal else "different", "above 50" if large else "2 to 50"
    return (
        f"| {n_classes} | {columns} | {range_of_k} | {optimal:.1%} | {certified / n:.1%} | {np.max(losses):.1e} "
        f"| {np.median(gaps):.1e} | {np.max(gaps):.1e} | {1e3 * np.median(seconds):.1f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--classes", type=int, nargs="+", default=[2, 3, 5])
    parser.add_argument("--cases", type=int, default=500)
    options = parser.parse_args()
    print("| classes | columns | k | best | certified | largest loss | median gap | largest gap | ms |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for n_classes, equal, large in itertools.product(options.classes, (False, True), (False, True)):
        print(row(n_classes, equal, large, options.cases), flush=True)


if __name__ == "__main__":
    main()
