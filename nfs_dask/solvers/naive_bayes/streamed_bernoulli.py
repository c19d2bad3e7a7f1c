"""Sparse Bernoulli naive Bayes over panels of reals: the k features of largest gain, in two looks at all of them.

References: NFS20 (Askari et al. 2020) Theorem 1; NFS Theorem 3.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from nfs_dask.solvers.naive_bayes.bernoulli import gain_of
from nfs_dask.solvers.naive_bayes.gains import exact_sum
from nfs_dask.solvers.naive_bayes.objectives import pooled, split
from nfs_dask.solvers.naive_bayes.outward import TWO
from nfs_dask.solvers.naive_bayes.problem import forced_features
from nfs_dask.solvers.naive_bayes.stream import Score, Stream, Sums, TotalsTable
from nfs_dask.solvers.naive_bayes.ties import split_ties
from nfs_dask.solvers.solution import Array, Solution, nothing


def solve(table: TotalsTable, documents: Array, k: int, *, alpha: float, always: Array | None = None) -> Solution:
    """As `bernoulli.solve`, panel by panel; ``documents`` (C, ) all of a class."""
    k = max(0, min(int(k), table.n_features))
    point = documents / max(documents.sum(), 1)
    if k == 0:
        return nothing(point)
    forced = forced_features(always, k, table.n_features)
    stream = Stream(table, alpha, k, forced, np.arange(len(documents)), point, raw=True)
    score = partial(gain_of, documents=documents, alpha=alpha)
    best, totals = stream.best(score, stream.n_free)
    gain = score(totals)
    mass = float(documents.sum()) + 2 * len(documents) * alpha
    near = _Near.of(stream, score, float(gain.min()) if len(best) else math.inf, mass)
    sure = best[~near.among(gain)]
    need = len(best) - len(sure)
    better, equal, settled = split_ties(near.totals, near.sizes, need, documents, alpha)
    taken = np.concatenate((sure, *(near.features[i] for i in better)))
    last_ones = np.sort(np.concatenate((best[:0], *(near.features[i] for i in equal))))[: len(best) - len(taken)]
    inside = np.sort(np.concatenate((taken, last_ones, forced)))
    gained = score(table.at(inside))
    n_tied = int(near.sizes[equal].sum())
    value = exact_sum(gained)
    bound = float(TWO.above(value, mass))
    gap = 0.0 if settled else 2 * need * float(TWO.of(near.last, mass))
    return Solution(inside, value, bound, gap, n_tied if n_tied > len(last_ones) else 0, 1, point)


def objective(table: TotalsTable, documents: Array, alpha: float, columns: Array) -> float:
    """As `objectives.bernoulli`, panel by panel; ``columns`` (C, k) are the totals of the support."""
    sums = Sums(1)
    for _, raw in table.parts():
        sums.add(pooled(raw.sum(axis=0), documents, alpha)[None])
    inside = split(columns, documents, alpha), -pooled(columns.sum(axis=0), documents, alpha)
    return min(math.fsum((*sums.pairs[0], *inside[0], *inside[1])), 0.0)


@dataclass(frozen=True)
class _Near:
    """Distinct columns of free features that may gain as much as the last one."""

    totals: Array  # (C, n)
    sizes: Array  # (n, ) how many features have them
    features: list[Array]  # the lowest k of each, or all
    last: float
    mass: float

    def among(self, gain: Array) -> Array:
        """Which gains are that near."""
        return TWO.near(gain, self.last, self.mass)

    @classmethod
    def of(cls, stream: Stream, score: Score, last: float, mass: float) -> _Near:
        found: dict[bytes, tuple[Array, int, Array]] = {}
        nothing_yet = (np.zeros(0), 0, np.zeros(0, np.int64))
        for features, totals in stream.panels() if stream.n_free else ():
            tied = np.flatnonzero(TWO.near(score(totals), last, mass))
            columns, which = np.unique(totals[:, tied], axis=1, return_inverse=True)
            for i, column in enumerate(columns.T):
                mine = features[tied[which.ravel() == i]]
                _, n, lowest = found.get(column.tobytes(), nothing_yet)
                found[column.tobytes()] = (column, n + len(mine), np.concatenate((lowest, mine))[: stream.k])
        columns_found = [column for column, _, _ in found.values()]
        totals = np.array(columns_found).T if columns_found else np.zeros((len(stream.classes), 0))
        sizes = np.array([n for _, n, _ in found.values()], np.int64)
        return cls(totals, sizes, [lowest for _, _, lowest in found.values()], last, mass)
