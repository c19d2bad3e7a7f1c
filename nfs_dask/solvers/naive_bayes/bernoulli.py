"""Sparse Bernoulli naive Bayes, solved exactly for any number of classes: the k features of largest gain.

z_i = sum_c n_c KL( Bern(f_c[i] / n_c) || Bern(g_i / n) )

Different columns may gain the same: mirror images have equal bits, but 2 of 4 documents in one class and 4 of 8 in the
other gain as much as none. Gains within rounding of the last one are compared to as many digits as it takes; of equal
ones, the lower features are taken.

References: NFS20 (Askari et al. 2020) Theorem 1, (8) to (10); NFS Theorem 3.1, (7) to (9), with the sets of (9) the
right way round.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from functools import partial

import numpy as np

from nfs_dask.arrays.compiling import kernel
from nfs_dask.solvers.naive_bayes.distinct import DistinctColumns, FeatureIndex, group
from nfs_dask.solvers.naive_bayes.gains import difference, exact_sum, part
from nfs_dask.solvers.naive_bayes.objectives import pooled, split
from nfs_dask.solvers.naive_bayes.panel_columns import PanelColumns, Score, TotalsTable
from nfs_dask.solvers.naive_bayes.problem import RowSums, build_problem, comfortable, forced_features, refuse_heavy
from nfs_dask.solvers.naive_bayes.rounding_error import EXACT_COUNTS, TWO_CLASSES, RoundingError, is_exact
from nfs_dask.solvers.naive_bayes.topk import kth_largest, sums_of_first
from nfs_dask.solvers.solution import Array, Solution, nothing

_MOST_DISTINCT = 10_000  # columns that are compared digit by digit
_DIGITS = 120
_EQUAL = Decimal(10) ** -90  # of all documents: gains closer than this are the same number


@dataclass(frozen=True)
class ScoredColumns:
    """Documents with each feature by class, grouped, and the gain of each group."""

    distinct: DistinctColumns
    index: FeatureIndex | None  # which features have each distinct column; None if columns are features
    alpha: float
    documents: Array  # (C, ) documents of each class
    gain: Array  # (M, ) z of each distinct column, under smoothing

    @property
    def n_features(self) -> int:
        return self.distinct.n_features

    @property
    def mass(self) -> float:
        """All documents under smoothing."""
        return float(self.documents.sum()) + 2 * len(self.documents) * self.alpha

    @property
    def rounding(self) -> RoundingError:
        """Error of sums of gains, of up to a hundred classes."""
        return EXACT_COUNTS if is_exact(self.distinct.grouped, self.alpha, self.mass) else TWO_CLASSES

    @property
    def scores(self) -> Array:
        """Z of each feature, (m, ) float64; 0 for features absent from the data."""
        present = np.where(self.distinct.totals.any(axis=0), self.gain, 0.0)
        return present if self.index is None else self.index.spread(present)


def score(totals: Array, documents: Array, alpha: float = 0.0) -> ScoredColumns:
    """Return gains of all features; ``totals`` (C, m) documents with each feature, ``documents`` (C, ) of a class.

    ``alpha`` is added to each total, and twice to the documents of each class, as scikit-learn does.

    >>> score(np.array([[8, 5], [1, 5]]), np.array([10, 10])).scores.round(6).tolist()
    [5.507922, 0.0]
    """
    return score_columns(*group(np.asarray(totals)), documents, alpha)


def score_columns(
    distinct: DistinctColumns, index: FeatureIndex | None, documents: Array, alpha: float = 0.0
) -> ScoredColumns:
    """Return what `score` does, for totals that are grouped already."""
    documents = np.asarray(documents, np.float64)
    gain = _gains(distinct.totals, documents, float(alpha))
    return ScoredColumns(distinct, index, float(alpha), documents, gain)


def _gains(totals: Array, documents: Array, alpha: float) -> Array:
    """Gain of each column of totals without smoothing."""
    masses, out = documents + 2 * alpha, np.empty(totals.shape[1])
    refuse_heavy(masses)
    totals, scale = totals.astype(np.float64, copy=False), comfortable(float(masses.sum()))
    _bernoulli_gains(*(x if scale == 1 else x * scale for x in (totals, documents, alpha)), out)
    return out / scale


def solve(scored: ScoredColumns, k: int, *, always: Sequence[int] | Array | None = None) -> Solution:
    """Return the best support of k features, ``always`` ones among them; of equal gains, the lower features.

    >>> solve(score(np.array([[8, 5, 1], [1, 5, 6]]), np.array([10, 10])), 2).support.tolist()
    [0, 2]
    """
    k = max(0, min(int(k), scored.n_features))
    point = scored.documents / max(scored.documents.sum(), 1)
    if k == 0:
        return nothing(point)
    forced = forced_features(None if always is None else np.asarray(always), k, scored.n_features)
    index, totals = scored.index, scored.distinct.totals
    sizes = scored.distinct.sizes
    of_forced = forced if index is None else index.columns_of(forced)
    if len(forced):
        sizes = sizes - np.bincount(of_forced, minlength=len(sizes))
    if k < scored.n_features:
        sizes = np.where(totals.any(axis=0), sizes, 0)
    free = np.flatnonzero(sizes)
    n, gain = min(k - len(forced), int(sizes.sum())), scored.gain[free]
    last = kth_largest(gain, sizes[free], n)
    near = scored.rounding.near(gain, last, scored.mass) if np.isfinite(last) else np.zeros(len(free), bool)
    fixed, tied = free[(gain > last) & ~near], free[near]
    better, equal, settled = _split_ties(
        totals[:, tied], sizes[tied], n - int(sizes[fixed].sum()), scored.documents, scored.alpha
    )
    fixed, equal = np.concatenate((fixed, tied[better])), tied[equal]
    need, n_tied = n - int(sizes[fixed].sum()), int(sizes[equal].sum())
    wanted = np.zeros(len(sizes), np.int64)
    wanted[fixed] = sizes[fixed]
    if index is None:
        chosen = np.concatenate((fixed, np.sort(equal)[:need]))
    else:
        chosen = np.concatenate((index.members(wanted, forced)[0], index.lowest(equal, forced, need)))
    gained = exact_sum(np.concatenate((scored.gain[of_forced], scored.gain[fixed] * sizes[fixed])))
    value = gained + (need * float(scored.gain[equal[0]]) if need else 0.0)
    support = np.sort(np.concatenate((chosen, forced))).astype(np.int64)
    gap = 0.0 if settled else 2 * need * float(scored.rounding.of(last, scored.mass))
    bound = float(scored.rounding.above(value, scored.mass))
    return Solution(support, value, bound, gap, n_tied if n_tied > need else 0, 1, point)


def path(scored: ScoredColumns, ks: Sequence[int] | Array | None = None) -> Array:
    """Return the best gain of each k, (len(ks), ); all of 0 to m if not given. One sort serves them all.

    >>> path(score(np.array([[8, 5, 1], [1, 5, 6]]), np.array([10, 10]))).round(3).tolist()
    [0.0, 5.508, 8.476, 8.476]
    """
    ks = np.arange(scored.n_features + 1) if ks is None else np.clip(np.asarray(ks), 0, scored.n_features)
    nobody = np.zeros(0, np.int64)
    problem = build_problem(scored.distinct, 0, scored.alpha, nobody, nobody)
    gain = scored.gain[problem.origin]
    order = np.argsort(-gain, kind="stable")
    wanted, place = np.unique(np.minimum(ks, problem.size), return_inverse=True)
    values = sums_of_first(gain[order][None], problem.sizes[order], wanted)[0][place]
    return np.where(ks < scored.n_features, values, exact_sum(scored.gain * scored.distinct.sizes))


def null_objective(scored: ScoredColumns) -> float:
    """Return the log likelihood at k = 0: sum of g log(g/n) + (n-g) log(1 - g/n)."""
    g = scored.distinct.totals.sum(axis=0)
    return exact_sum(pooled(g, scored.documents, scored.alpha) * scored.distinct.sizes)


def solve_panels(
    table: TotalsTable, documents: Array, k: int, *, alpha: float, always: Array | None = None
) -> Solution:
    """Return what `solve` does, in two looks at panels of reals; ``documents`` (C, ) all of a class."""
    k = max(0, min(int(k), table.n_features))
    point = documents / max(documents.sum(), 1)
    if k == 0:
        return nothing(point)
    forced, n_classes = forced_features(always, k, table.n_features), len(documents)
    columns = PanelColumns(table, alpha, k, forced, np.arange(n_classes), point, n_classes, raw=True)
    gains_of = partial(_gains, documents=documents, alpha=alpha)
    best, totals = columns.best(gains_of, columns.n_free)
    gain, mass = gains_of(totals), float(documents.sum()) + 2 * n_classes * alpha
    last = float(gain.min()) if len(best) else math.inf
    tied, sizes, members = _near_in_panels(columns, gains_of, last, mass)
    fixed = best[~TWO_CLASSES.near(gain, last, mass)]
    better, equal, settled = _split_ties(tied, sizes, len(best) - len(fixed), documents, alpha)
    fixed = np.concatenate((fixed, *(members[i] for i in better)))
    need = len(best) - len(fixed)
    lowest = np.sort(np.concatenate((best[:0], *(members[i] for i in equal))))[:need]
    support = np.sort(np.concatenate((fixed, lowest, forced)))
    value = exact_sum(gains_of(table.at(support)))
    gap = 0.0 if settled else 2 * need * float(TWO_CLASSES.of(last, mass))
    bound, n_tied = float(TWO_CLASSES.above(value, mass)), int(sizes[equal].sum())
    return Solution(support, value, bound, gap, n_tied if n_tied > need else 0, 1, point)


def panels_objective(table: TotalsTable, documents: Array, alpha: float, columns: Array) -> float:
    """Return what `objectives.bernoulli` does; ``columns`` (C, k) are the totals of the support."""
    sums = RowSums(1)
    for _, raw in table.parts():
        sums.add(pooled(raw.sum(axis=0), documents, alpha)[None])
    inside = split(columns, documents, alpha), -pooled(columns.sum(axis=0), documents, alpha)
    return min(math.fsum((*sums.pairs[0], *inside[0], *inside[1])), 0.0)


def _near_in_panels(columns: PanelColumns, score: Score, last: float, mass: float) -> tuple[Array, Array, list[Array]]:
    """Return distinct columns that may gain as much as the last one, their sizes, and the lowest k features of each."""
    found: dict[bytes, tuple[Array, int, Array]] = {}
    for features, totals in columns.panels() if columns.n_free else ():
        tied = np.flatnonzero(TWO_CLASSES.near(score(totals), last, mass))
        distinct, which = np.unique(totals[:, tied], axis=1, return_inverse=True)
        for i, column in enumerate(distinct.T):
            mine = features[tied[which.ravel() == i]]
            _, n, lowest = found.get(column.tobytes(), (column, 0, mine[:0]))
            found[column.tobytes()] = (column, n + len(mine), np.concatenate((lowest, mine))[: columns.k])
    tied_columns = np.array([column for column, _, _ in found.values()]).reshape(len(found), len(columns.classes)).T
    return tied_columns, np.array([n for _, n, _ in found.values()], np.int64), [low for _, _, low in found.values()]


def _split_ties(totals: Array, sizes: Array, need: int, documents: Array, alpha: float) -> tuple[Array, Array, bool]:
    """Of columns (C, n) that may gain the same, those sure to be among the ``need`` best, and those that share the end.

    Each stands for as many features as its size. Positions, ascending, and whether those are settled: more than
    `_MOST_DISTINCT` distinct columns are not, and count as equal.
    """
    everyone = np.arange(len(sizes))
    if need in (0, int(sizes.sum())):
        return everyone[:0], everyone, True
    distinct, which = np.unique(totals, axis=1, return_inverse=True)
    if not 1 < distinct.shape[1] <= _MOST_DISTINCT:
        return everyone[:0], everyone, distinct.shape[1] == 1
    place = _ranks(distinct, documents, alpha)[which.ravel()]
    last = int(np.searchsorted(np.cumsum(np.bincount(place, weights=sizes)), need))
    return everyone[place < last], everyone[place == last], True


def _ranks(totals: Array, documents: Array, alpha: float) -> Array:
    """The place of each distinct column (C, n) by its gain, (n, ): 0 for the largest; equal ones share a place."""
    with localcontext(Context(prec=_DIGITS)):
        logs: dict[Decimal, Decimal] = {Decimal(0): Decimal(0)}

        def x_log_x(x: Decimal) -> Decimal:
            if x not in logs:
                logs[x] = x * x.ln()
            return logs[x]

        a, n = Decimal(alpha), [Decimal(size) for size in documents.tolist()]
        gains = []
        for column in totals.T.tolist():
            present = [Decimal(f) + a for f in column]
            absent = [max(size - Decimal(f), Decimal(0)) + a for f, size in zip(column, n, strict=True)]
            own = sum(x_log_x(x) for x in (*present, *absent))
            gains.append(own - x_log_x(sum(present, Decimal(0))) - x_log_x(sum(absent, Decimal(0))))
        near, order = _EQUAL * sum(n), sorted(range(len(gains)), key=lambda i: -gains[i])
        places = np.zeros(len(gains), np.int64)
        for before, after in zip(order, order[1:], strict=False):
            places[after] = places[before] + (gains[before] - gains[after] > near)
    return places


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
