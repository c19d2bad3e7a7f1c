"""Sparse Bernoulli naive Bayes, solved exactly for any number of classes: the k features of largest gain.

z_i = sum_c n_c KL( Bern(f_c[i] / n_c) || Bern(g_i / n) )

References: NFS20 (Askari et al. 2020) Theorem 1, (8) to (10); NFS Theorem 3.1, (7) to (9), with the sets of (9) the
right way round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nfs_dask.arrays.compiling import kernel
from nfs_dask.solvers.naive_bayes.directory import Directory, Listed
from nfs_dask.solvers.naive_bayes.equal_columns import Cells, group
from nfs_dask.solvers.naive_bayes.gains import difference, exact_sum, part
from nfs_dask.solvers.naive_bayes.objectives import pooled
from nfs_dask.solvers.naive_bayes.outward import Rounding, of_counts
from nfs_dask.solvers.naive_bayes.problem import Posing, comfortable, forced_features, pose, refuse_heavy
from nfs_dask.solvers.naive_bayes.ties import split_ties
from nfs_dask.solvers.naive_bayes.topk import TopFeatures, kth_largest, sums_of_first
from nfs_dask.solvers.solution import Array, Solution, nothing


@dataclass(frozen=True)
class Scored:
    """Documents with each feature by class, grouped, and the gain of each group."""

    cells: Cells
    where: Directory | None  # which features a cell stands for; None if cells are features
    alpha: float
    documents: Array  # (C, ) documents of each class
    gain: Array  # (M, ) z of each cell, under smoothing
    posing: Posing | None = None  # which holds what several k have in common; None: each is posed anew

    @property
    def n_features(self) -> int:
        return self.cells.n_features

    @property
    def mass(self) -> float:
        """All documents under smoothing."""
        return float(self.documents.sum()) + 2 * len(self.documents) * self.alpha

    @property
    def rounding(self) -> Rounding:
        """What sums of gains may be wrong by."""
        return of_counts(self.cells.grouped, self.alpha, self.mass)

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


def score_cells(
    cells: Cells, where: Directory | None, documents: Array, alpha: float = 0.0, posing: Posing | None = None
) -> Scored:
    """As `score`, for totals that are grouped already."""
    documents = np.asarray(documents, np.float64)
    gain = gain_of(cells.totals, documents, float(alpha))
    return Scored(cells, where, float(alpha), documents, gain, posing)


def gain_of(totals: Array, documents: Array, alpha: float = 0.0) -> Array:
    """Gain of each column of totals without smoothing."""
    masses, out = documents + 2 * alpha, np.empty(totals.shape[1])
    refuse_heavy(masses)
    totals, scale = totals.astype(np.float64, copy=False), comfortable(float(masses.sum()))
    if scale == 1:
        _bernoulli_gains(totals, documents, alpha, out)
        return out
    _bernoulli_gains(totals * scale, documents * scale, alpha * scale, out)
    return out / scale


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
    problem = (scored.posing or Posing(scored.cells, scored.alpha))(k, forced, forced_cells)
    gain = np.concatenate((scored.gain[problem.origin], scored.gain[forced_cells]))
    free = len(gain) - len(forced)
    rank = np.concatenate((gain[:free], np.full(len(forced), np.inf)))
    size = min(k, problem.size)
    last = kth_largest(rank, problem.sizes, size)
    near = scored.rounding.near(rank[:free], last, scored.mass) if np.isfinite(last) else np.zeros(free, bool)
    tied = np.flatnonzero(near)
    sure = np.flatnonzero((rank > last) | ~np.isfinite(rank))
    sure = sure[~np.isin(sure, tied)]
    need = size - int(problem.sizes[sure].sum())
    better, equal, settled = split_ties(
        scored.cells.totals[:, problem.origin[tied]], problem.sizes[tied], need, scored.documents, scored.alpha
    )
    sure, equal = np.concatenate((sure, tied[better])), tied[equal]
    taken = TopFeatures(sure, problem.sizes[sure])
    need = size - int(taken.counts.sum())
    n_tied = int(problem.sizes[equal].sum())
    cells = problem.origin[equal]  # equal gains need not be equal cells
    last_ones = cells[:need].astype(np.int64) if scored.where is None else scored.where.lowest(cells, forced, need)
    support = np.sort(np.concatenate((problem.features(taken, scored.where), last_ones)))
    value = exact_sum(gain[sure] * taken.counts) + (need * float(gain[equal[0]]) if need else 0.0)
    bound = float(scored.rounding.above(value, scored.mass))
    gap = 0.0 if settled else 2 * need * float(scored.rounding.of(last, scored.mass))
    return Solution(support, value, bound, gap, n_tied if n_tied > need else 0, 1, point)


def path(scored: Scored, ks: Sequence[int] | Array | None = None) -> Array:
    """The best gain of each k, (len(ks), ); all of 0 to m if not given. One sort serves them all.

    >>> path(score(np.array([[8, 5, 1], [1, 5, 6]]), np.array([10, 10]))).round(3).tolist()
    [0.0, 5.508, 8.476, 8.476]
    """
    ks = np.arange(scored.n_features + 1) if ks is None else np.clip(np.asarray(ks), 0, scored.n_features)
    problem = pose(scored.cells, 0, scored.alpha, np.zeros(0, np.int64), np.zeros(0, np.int64))
    gain = scored.gain[problem.origin]
    order = np.argsort(-gain, kind="stable")
    wanted, place = np.unique(np.minimum(ks, problem.size), return_inverse=True)
    values = sums_of_first(gain[order][None], problem.sizes[order], wanted)[0][place]
    return np.where(ks < scored.n_features, values, exact_sum(scored.gain * scored.cells.sizes))


def null_objective(scored: Scored) -> float:
    """Log likelihood at k = 0: sum of g log(g/n) + (n-g) log(1 - g/n)."""
    g = scored.cells.totals.sum(axis=0)
    return exact_sum(pooled(g, scored.documents, scored.alpha) * scored.cells.sizes)


@kernel
def _bernoulli_gains(totals, documents, alpha, out):
    """Each class adds squares at heart, of f and e documents with and without the feature, F and E those of all.

        z = sum_c n_c / n [ F w(d / F) + E w(-d / E) ],    d = (f E - e F) / n_c,    w(x) = (1 + x) log(1 + x) - x.

    Mirror images, f for e, and two classes exchanged have the same bits: sums of two do not depend on their order, and
    terms of more classes are put in order.
    """
    n_classes = len(totals)
    terms = np.empty(n_classes)
    everybody = 0.0
    for c in range(n_classes):
        everybody += documents[c]
    for i in range(len(out)):
        g = 0.0
        for c in range(n_classes):
            g += totals[c, i]
        F, E = g + n_classes * alpha, max(everybody - g, 0.0) + n_classes * alpha
        n = F + E
        out[i] = 0.0
        if F > 0 and E > 0:
            for c in range(n_classes):
                f, e = totals[c, i] + alpha, max(documents[c] - totals[c, i], 0.0) + alpha
                size = f + e
                terms[c] = 0.0
                if size > 0:
                    d = difference(f, E, e, F) / size
                    p, q = f * (n / size), e * (n / size)
                    z = part(p, d, F, d / F, p / F) + part(q, -d, E, -d / E, q / E)
                    terms[c] = z * (size / n)
            if n_classes > 2:
                terms.sort()
            for c in range(n_classes):
                out[i] += terms[c]
