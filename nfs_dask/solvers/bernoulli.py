"""Sparse Bernoulli naive Bayes, solved exactly for any number of classes: the k features of largest gain.

z_i = sum_c n_c KL( Bern(f_c[i] / n_c) || Bern(g_i / n) )
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nfs_dask.kernels import kernel
from nfs_dask.solvers.directory import Directory, Listed
from nfs_dask.solvers.gains import entropy_like, exact_sum
from nfs_dask.solvers.grouping import Cells, group
from nfs_dask.solvers.problem import forced_features, pose
from nfs_dask.solvers.screening import kth_largest
from nfs_dask.solvers.solution import RELATIVE, Array, Solution, nothing
from nfs_dask.solvers.topk import Choice


@dataclass(frozen=True)
class Scored:
    """Documents with each feature by class, grouped, and the gain of each group."""

    cells: Cells
    where: Directory | None  # which features a cell stands for; None if cells are features
    alpha: float
    documents: Array  # (C, ) documents of each class
    gain: Array  # (M, ) z of each cell, under smoothing

    @property
    def n_features(self) -> int:
        return self.cells.n_features

    @property
    def present(self) -> Array:
        """The gain of each cell, (M, ); 0 for cells of features that are absent from the data."""
        return np.where(self.cells.totals.any(axis=0), self.gain, 0.0)

    @property
    def scores(self) -> Array:
        """Z of each feature, (m, ) float64; 0 for features absent from the data."""
        if self.where is None:
            return self.present
        return np.concatenate([part for _, part in self.where.spread(self.present)])


def score(totals: Array, documents: Array, alpha: float = 0.0) -> Scored:
    """Gains of all features; ``totals`` (C, m) documents with each feature, ``documents`` (C, ) all of a class.

    ``alpha`` is added to each total, and twice to the documents of each class, as scikit-learn does.

    >>> score(np.array([[8, 5], [1, 5]]), np.array([10, 10])).scores.round(6).tolist()
    [5.507922, 0.0]
    """
    cells, codes = group(np.asarray(totals))
    return score_cells(cells, None if codes is None else Listed(codes), documents, alpha)


def score_cells(cells: Cells, where: Directory | None, documents: Array, alpha: float = 0.0) -> Scored:
    """As `score`, for totals that are grouped already."""
    documents = np.asarray(documents, np.float64)
    gain = gain_of(cells.totals, documents + 2 * alpha, float(alpha))
    return Scored(cells, where, float(alpha), documents, gain)


def gain_of(totals: Array, documents: Array, alpha: float = 0.0) -> Array:
    """Gain of each column under smoothed ``documents``; ``alpha`` is added to totals without smoothing."""
    out = np.empty(totals.shape[1])
    _bernoulli_gains(totals.astype(np.float64, copy=False), documents, alpha, out)
    return out


def solve(scored: Scored, k: int, *, always: Sequence[int] | Array | None = None) -> Solution:
    """The best support of k features, ``always`` ones among them; of equal gains, the lower features are taken.

    >>> solve(score(np.array([[8, 5, 1], [1, 5, 6]]), np.array([10, 10])), 2).support.tolist()
    [0, 2]
    """
    k = max(0, min(int(k), scored.n_features))
    point = scored.documents / max(scored.documents.sum(), 1)
    if k == 0:
        return nothing(point)
    forced = forced_features(None if always is None else np.asarray(always), k, scored.n_features)
    forced_cells = forced if scored.where is None else scored.where.cells_of(forced)
    problem = pose(scored.cells, k, scored.alpha, forced, forced_cells)
    gain = np.concatenate((scored.gain[problem.origin], scored.gain[forced_cells]))
    free = len(gain) - len(forced)
    rank = np.concatenate((gain[:free], np.full(len(forced), np.inf)))
    last = kth_largest(rank, problem.sizes, min(k, problem.size))
    equal = np.abs(rank - last) <= RELATIVE * last if np.isfinite(last) else np.zeros(len(rank), bool)
    sure = np.flatnonzero((rank > last) & ~equal) if np.isfinite(last) else np.arange(free, len(gain))
    taken = Choice(sure, problem.sizes[sure])
    need = min(k, problem.size) - int(taken.counts.sum())
    tied = int(problem.sizes[equal].sum())
    cells = problem.origin[equal[:free]]  # equal gains need not be equal cells
    last_ones = cells[:need].astype(np.int64) if scored.where is None else scored.where.lowest(cells, forced, need)
    support = np.sort(np.concatenate((problem.features(taken, scored.where), last_ones)))
    value = exact_sum(gain[sure] * taken.counts) + need * (last if need else 0.0)
    return Solution(support, value, value, tied if tied > need else 0, 1, point)


def path(scored: Scored, ks: Sequence[int] | Array | None = None) -> Array:
    """The best gain of each k, (len(ks), ); all of 0 to m if not given. One sort serves them all.

    >>> path(score(np.array([[8, 5, 1], [1, 5, 6]]), np.array([10, 10]))).round(3).tolist()
    [0.0, 5.508, 8.476, 8.476]
    """
    ks = np.arange(scored.n_features + 1) if ks is None else np.clip(np.asarray(ks), 0, scored.n_features)
    problem = pose(scored.cells, 0, scored.alpha, np.zeros(0, np.int64), np.zeros(0, np.int64))
    gain = scored.gain[problem.origin]
    order = np.argsort(-gain, kind="stable")
    through = np.concatenate(([0], np.cumsum(problem.sizes[order])))
    sums = np.concatenate(([0.0], np.cumsum(gain[order] * problem.sizes[order])))
    values = np.interp(ks, through, sums)
    return np.where(ks < scored.n_features, values, exact_sum(scored.gain * scored.cells.sizes))


def null_objective(scored: Scored) -> float:
    """Log likelihood at k = 0: sum of g log(g/n) + (n-g) log(1 - g/n)."""
    n = (scored.documents + 2 * scored.alpha).sum()
    g = scored.cells.totals.sum(axis=0) + len(scored.documents) * scored.alpha
    return exact_sum(null_terms(g, n) * scored.cells.sizes)


def null_terms(g: Array, n: float) -> Array:
    """Log likelihood of each feature at k = 0, where ``g`` of n documents have it; smoothing included."""
    terms = np.zeros(len(g))
    inner = (g > 0) & (g < n)
    share = g[inner] / n
    terms[inner] = g[inner] * np.log(share) + (n - g[inner]) * np.log1p(-share)
    return terms


@kernel
def _bernoulli_gains(totals, documents, alpha, out):
    """Each class adds a square at heart: errors in the rates do no harm to first order."""
    n_classes = len(totals)
    n = documents.sum()
    for i in range(len(out)):
        g = 0.0
        for c in range(n_classes):
            g += totals[c, i] + alpha
        z = 0.0
        if 0 < g < n:
            p, q = g / n, (n - g) / n
            for c in range(n_classes):
                if documents[c] > 0:
                    f = totals[c, i] + alpha
                    d = (f * (n - documents[c]) - (g - f) * documents[c]) / n / documents[c]
                    z += documents[c] * (p * entropy_like(d / p) + q * entropy_like(-d / q))
        out[i] = z
