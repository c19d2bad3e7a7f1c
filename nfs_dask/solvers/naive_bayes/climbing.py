"""Compiled: exchanges of features as `swaps.exchange` does them, one after another, to the bit.

References: docs/mathematics.md 3.5.
"""

from __future__ import annotations

import numpy as np

from nfs_dask.arrays.compiling import inlined_part, kernel, kernel_part
from nfs_dask.arrays.exact_kernels import gather
from nfs_dask.arrays.hashes import GOLDEN
from nfs_dask.solvers.naive_bayes.gains import SMALLEST, gain_seen, own_gains, seen_from
from nfs_dask.solvers.naive_bayes.problem import Problem
from nfs_dask.solvers.naive_bayes.set_kernels import kth, pairwise
from nfs_dask.solvers.naive_bayes.topk import TopFeatures
from nfs_dask.solvers.solution import Array

MARGIN = 1e-13  # relative: less than this is rounding
_POOL = 64  # candidates to come in, beyond three for each feature that is in


def n_incoming(k: int) -> int:
    """How many features are tried to come in."""
    return 3 * k + _POOL


class Climb:
    """Exchanges from several sets, and memory for them."""

    def __init__(self, problem: Problem, point: Array, most: int) -> None:
        self.problem, self.point = problem, point
        self.met, self.n_met = np.empty(most, np.uint64), 0
        n = max(len(problem.sizes), 64)
        self.memory = *np.empty((2, n)), *np.empty((3, n), np.int64)

    def from_set(self, start: TopFeatures, rounds: int) -> TopFeatures:
        """Where exchanges lead from a set; itself if nowhere, or as soon as it is one that was met before."""
        problem, n = self.problem, len(start.cells)
        taken = start.spread(len(problem.sizes))
        k = int(start.counts.sum())
        cells, counts = np.empty((2, k + 1), np.int64)
        cells[:n], counts[:n] = start.cells, start.counts
        n, self.n_met, n_done = climb(
            *(problem.totals, problem.sizes, problem.n_forced, self.point, n_incoming(k), rounds),
            *(cells, counts, n, self.met, self.n_met),
            *(taken, np.empty(k), *self.memory),
        )
        return TopFeatures(cells[:n], counts[:n]) if n_done else start


@kernel
def climb(
    totals, sizes, n_forced, dual, most_in, rounds, cells, counts, n, met, n_met,
    taken, terms, gain, values, into, out, ones,
):  # fmt: skip
    """Exchanges in place; returns how many cells a set has then, how many were met, and how many exchanges it took.

    What comes after ``taken``, the features of each cell, is memory to work in.
    """
    value = _sum_exactly(totals, cells, counts, n, terms)
    for n_done in range(rounds):
        name = _name(cells, counts, n)
        for i in range(n_met):
            if met[i] == name:
                return n, n_met, n_done
        met[n_met] = name
        n_met += 1
        comes, goes = _best_pair(
            totals,
            sizes,
            len(sizes) - n_forced,
            dual,
            most_in,
            cells,
            counts,
            n,
            taken,
            gain,
            terms,
            values,
            into,
            out,
            ones,
        )
        if comes < 0:
            return n, n_met, n_done
        taken[goes] -= 1
        taken[comes] += 1
        n_better = np.int64(0)  # whose type is known at once: parts would also be compiled for a literal 0
        for i in range(len(taken)):
            if taken[i] > 0:
                into[n_better] = i
                out[n_better] = taken[i]
                n_better += 1
        gained = _sum_exactly(totals, into, out, n_better, terms)
        if not gained > value * (1 + MARGIN):
            return n, n_met, n_done
        value = gained
        n = n_better
        for j in range(n):
            cells[j] = into[j]
            counts[j] = out[j]
    return n, n_met, rounds


@inlined_part
def _name(cells, counts, n):
    """A number that sets hardly ever have in common, whatever the order of their cells."""
    name = np.uint64(0)
    for j in range(n):
        x = np.uint64(cells[j]) * GOLDEN + np.uint64(counts[j])
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        name += x ^ (x >> np.uint64(31))
    return name


@kernel_part
def _sum_exactly(totals, cells, counts, n, terms):
    """Gain of a set, summed to twice the digits."""
    own_gains(totals, cells, counts, n, terms)
    total = rest = 0.0
    for j in range(n):
        total, rest = gather(total, rest, terms[j])
    return total + rest


@inlined_part
def _best_pair(
    totals, sizes, n_free, dual, most_in, cells, counts, n, taken, gain, terms, values, into, places, ones
):  # fmt: skip
    """Which feature to take in for which, by cells; -1 if there is none."""
    f = e = 0.0
    for j in range(n):  # in the order in which numpy adds up columns
        f += totals[0, cells[j]] * counts[j]
        e += totals[1, cells[j]] * counts[j]
    own = f > 0 and e > 0
    a, b = dual[0], dual[1]
    if own:  # gains at the set's own point say most, but may be infinite at the border
        a, b = max(f / (f + e), SMALLEST), max(e / (f + e), SMALLEST)
    seen = seen_from(a, b)
    for i in range(len(sizes)):
        gain[i] = gain_seen(totals[0, i], totals[1, i], seen)
    least, most = np.inf, 0.0
    for j in range(n):
        if cells[j] < n_free and gain[cells[j]] < least:
            least = gain[cells[j]]
    # no set gains more than its sum at its own point, so that only what gains more can replace what gains less
    n_in = np.int64(0)
    for i in range(len(sizes)):
        if taken[i] < sizes[i] and (not own or gain[i] > least):
            into[n_in] = i
            values[n_in] = gain[i]
            ones[n_in] = 1
            n_in += 1
            most = max(most, gain[i])
    if n_in > most_in:
        n_in = _keep_highest(into, n_in, kth(values, ones, n_in, most_in), most_in, gain)
    sums = _sums(gain, totals, cells, counts, n, terms, values, places)
    best, comes, goes = -np.inf, -1, -1
    for j in range(n):
        o = cells[j]
        if o < n_free and (not own or gain[o] < most):
            for place in range(n_in):
                i = into[place]
                f = sums[1] + totals[0, i] - totals[0, o]
                e = sums[2] + totals[1, i] - totals[1, o]
                after = sums[0] + gain[i] - gain[o] - gain_seen(max(f, 0.0), max(e, 0.0), seen)
                if after > best:
                    best, comes, goes = after, i, o
    return comes, goes


@inlined_part
def _sums(gain, totals, cells, counts, n, terms, values, places):
    """Sums of gains and of totals over a set, as `TopFeatures.sum` has them."""
    for j in range(n):
        terms[j] = gain[cells[j]] * counts[j]
    height = pairwise(terms, n, values, places)
    for j in range(n):
        terms[j] = totals[0, cells[j]] * counts[j]
    f = pairwise(terms, n, values, places)
    for j in range(n):
        terms[j] = totals[1, cells[j]] * counts[j]
    return height, f, pairwise(terms, n, values, places)


@inlined_part
def _keep_highest(cells, n, last, most, gain):
    """Of the first n cells, those of the ``most`` largest gains, the last of which is known; returns how many."""
    for i in range(n):
        if gain[cells[i]] > last:
            most -= 1
    kept = 0
    for i in range(n):
        cell = cells[i]
        cells[kept] = cell
        if gain[cell] > last:
            kept += 1
        elif gain[cell] == last and most > 0:
            kept += 1
            most -= 1
    return kept
