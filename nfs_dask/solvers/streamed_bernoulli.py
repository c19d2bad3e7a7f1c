"""Sparse Bernoulli naive Bayes over panels of reals: the k features of largest gain, in two looks at all of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from nfs_dask.solvers.bernoulli import gain_of, null_terms
from nfs_dask.solvers.gains import exact_sum
from nfs_dask.solvers.problem import forced_features
from nfs_dask.solvers.solution import RELATIVE, Array, Solution, nothing
from nfs_dask.solvers.stream import Score, Stream, Sums, Table


def solve(table: Table, documents: Array, k: int, *, alpha: float, always: Array | None = None) -> Solution:
    """As `bernoulli.solve`, panel by panel; ``documents`` (C, ) all of a class."""
    k = max(0, min(int(k), table.n_features))
    point = documents / max(documents.sum(), 1)
    if k == 0:
        return nothing(point)
    forced = forced_features(always, k, table.n_features)
    stream = Stream(table, alpha, k, forced, np.arange(len(documents)), point)
    score = partial(gain_of, documents=documents + 2 * alpha)
    best, totals = stream.best(score, stream.n_free)
    last = float(score(totals).min()) if len(best) else math.inf
    groups = _Groups.of(stream, score, last)
    need = len(best) - len(groups.sure)
    gain = np.concatenate((groups.gain, score(stream.forced_totals)))
    value = exact_sum(gain) + (need * last if need else 0.0)
    support = np.sort(np.concatenate((groups.sure, groups.equal[:need], forced)))
    return Solution(support, value, value, groups.n_equal if groups.n_equal > need else 0, 1, point)


def null_objective(table: Table, documents: Array, alpha: float) -> float:
    """As `bernoulli.null_objective`, panel by panel."""
    n = (documents + 2 * alpha).sum()
    sums = Sums(1)
    for _, raw in table.parts():
        sums.add(null_terms(raw.sum(axis=0) + len(documents) * alpha, n)[None])
    return sums.rows[0]


@dataclass(frozen=True)
class _Groups:
    """Free features that are better than the last one, and some of those as good as it."""

    sure: Array  # fewer than k features
    gain: Array  # theirs
    equal: Array  # the lowest k features, or all
    n_equal: int

    @classmethod
    def of(cls, stream: Stream, score: Score, last: float) -> _Groups:
        sure, gain, equal, n = [np.zeros(0, np.int64)], [np.zeros(0)], np.zeros(0, np.int64), 0
        for features, totals in stream.panels() if stream.n_free else ():
            gained = score(totals)
            tied = np.abs(gained - last) <= RELATIVE * last
            better = (gained > last) & ~tied
            sure.append(features[better])
            gain.append(gained[better])
            n += int(np.count_nonzero(tied))
            equal = np.concatenate((equal, features[tied][: stream.k - len(equal)]))
        return cls(np.concatenate(sure), np.concatenate(gain), equal, n)
