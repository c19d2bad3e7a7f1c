"""Sparse multinomial naive Bayes over panels of reals: the same steps as in memory, on columns that stream by.

Each evaluation is one look at all panels. What finishes a solution (ties, exchanges, mixtures) works on a problem of
the few columns that take part, and its bound is that of all columns.

References: NFS Theorem 3.2; docs/mathematics.md 3.10.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from nfs_dask.solvers.naive_bayes import multiclass, twoclass
from nfs_dask.solvers.naive_bayes.climbing import n_incoming
from nfs_dask.solvers.naive_bayes.cuts import Cut, minimise
from nfs_dask.solvers.naive_bayes.exchanges import AROUND
from nfs_dask.solvers.naive_bayes.found import Found, everything
from nfs_dask.solvers.naive_bayes.gains import gains, own_point, shares
from nfs_dask.solvers.naive_bayes.multinomial import SWAPPED
from nfs_dask.solvers.naive_bayes.problem import comfortable, forced_features
from nfs_dask.solvers.naive_bayes.stream import Gathered, Stream, TotalsSurvey, TotalsTable
from nfs_dask.solvers.naive_bayes.swaps import ROUNDS, exchange
from nfs_dask.solvers.naive_bayes.tiewalk import within
from nfs_dask.solvers.naive_bayes.topk import TopFeatures
from nfs_dask.solvers.solution import Array, Solution, nothing


def solve(table: TotalsTable, survey: TotalsSurvey, k: int, *, alpha: float, always: Array | None = None) -> Solution:
    """As `multinomial.solve`, panel by panel."""
    k = max(0, min(int(k), table.n_features))
    classes = np.arange(len(survey.counts)) if alpha else np.flatnonzero(survey.counts)
    forced = forced_features(always, k, table.n_features)
    scale = comfortable(survey.mass) if len(classes) > 2 else 1.0
    stream = Stream(table, alpha, k, forced, classes, _shares(survey.masses[classes]), survey.mass * scale, scale)
    if k == 0 or len(classes) < 2:
        return _worthless(stream, len(survey.counts))
    swaps = k <= SWAPPED
    if k >= _size(stream, survey):
        found = _everything(stream)
    else:
        found = _solve_two(stream, swaps) if len(stream.classes) == 2 else _solve_many(stream)
    found = found.times(1 / scale)
    return Solution(
        support=stream.features(found.choice.cells),
        value=found.value,
        bound=found.bound,
        gap=found.gap,
        ties=found.ties,
        n_evaluations=found.n_evaluations,
        point=_all_classes(stream, found.point, len(survey.counts)),
    )


def _size(stream: Stream, survey: TotalsSurvey) -> int:
    """Number of features that can be chosen, forced ones included."""
    if not stream.only_present:
        return stream.table.n_features
    return survey.present + int(np.count_nonzero(~stream.table.at(stream.forced).any(axis=0)))


def _everything(stream: Stream) -> Found:
    gathered = stream.gather(stream.cut(stream.start).choice.cells)
    found = everything(gathered.problem)
    return replace(found, choice=gathered.outward(found.choice))


def _solve_two(stream: Stream, swaps: bool) -> Found:
    minimum = minimise(lambda point, _low, _high: stream.cut(point), stream.start)
    point = minimum.best.point
    sets = [cut.choice.cells for cut in (minimum.best, minimum.low, minimum.high)]
    equal = _Equal.of(stream, minimum.best)
    near = stream.gather(equal.ends, *sets)
    gain = near.problem.gains(point)
    inward = minimum.map(near.inward)
    ties = twoclass.tied(near.problem, stream.k, inward, gain)
    outside = [near.outward(choice) for choice in twoclass.suggested(near.problem, inward, gain, ties)]
    if swaps:
        outside += [_ascend(stream, choice, point) for choice in _distinct(outside)]
    final = stream.gather(*sets, *(choice.cells for choice in outside))
    inside = [choice.map(final.inward) for choice in outside]
    gain_of_all = final.problem.gains(point)
    found = twoclass.settled(final.problem, minimum.map(final.inward), gain_of_all, lambda: inside, ties.n)
    if found.ties:
        apart = ~within(gain[ties.cells], equal.last)
        found = replace(found, ties=equal.n + int(np.count_nonzero(apart)))
    return replace(found, choice=final.outward(found.choice))


@dataclass(frozen=True)
class _Equal:
    """Free features whose gains at a point are the last one of its best set.

    The tie walk takes those of lowest and of highest slope: k of either are held, however many there are.
    """

    ends: Array  # features
    n: int  # of all
    last: float

    @classmethod
    def of(cls, stream: Stream, cut: Cut) -> _Equal:
        point, cells = cut.point, cut.choice.cells
        free = cells[cells < stream.table.n_features]
        if not len(free):
            return cls(free, 0, math.inf)
        last = float(stream.gather(free).problem.gains(point)[: len(free)].min())
        features, slopes, n = np.zeros(0, np.int64), np.zeros(0), 0
        for new, totals in stream.panels():
            tied = np.flatnonzero(within(gains(totals, point), last))
            n += len(tied)
            features = np.concatenate((features, new[tied]))
            slopes = np.concatenate((slopes, point[0] * totals[1, tied] - point[1] * totals[0, tied]))
            if len(features) > 2 * stream.k:
                order = np.argsort(slopes, kind="stable")
                kept = np.sort(np.concatenate((order[: stream.k], order[-stream.k :])))
                features, slopes = features[kept], slopes[kept]
        return cls(features, n, last)


def _solve_many(stream: Stream) -> Found:
    descent = multiclass.minimise(lambda point: _plane(stream, point), stream.start)
    near, _ = stream.best(partial(gains, point=descent.best.point), stream.n_free + AROUND)
    final = stream.gather(near, *(choice.cells for choice in descent.sets))
    ties = _count_ties(stream, final, descent.best)
    found = multiclass.settled(final.problem, stream.k, descent.map(final.inward), ties)
    return replace(found, choice=final.outward(found.choice))


def _plane(stream: Stream, point: Array) -> multiclass.Plane:
    cut = stream.cut(point)
    return multiclass.Plane(point, cut.height, cut.masses, cut.choice)


def _count_ties(stream: Stream, final: Gathered, best: multiclass.Plane) -> int:
    """Features that share the last place at the dual point; 0 if all of them are taken."""
    last = float(final.problem.gains(best.point)[final.inward(best.choice.cells)].min())
    counts = multiclass.tied(gains(stream.forced_totals, best.point), last)
    for _, totals in stream.panels():
        counts = counts + multiclass.tied(gains(totals, best.point), last)
    return int(counts[0]) if counts[0] > stream.k - counts[1] else 0


def _ascend(stream: Stream, choice: TopFeatures, point: Array) -> TopFeatures:
    """As `swaps.ascend`; each exchange is among the columns that can come in, which takes one look at all panels."""
    for _ in range(ROUNDS):
        own = own_point(stream.gather(choice.cells).problem.totals, np.ones(len(choice.cells), np.int64))
        at = own if own.all() else point
        pool, _ = stream.best(partial(gains, point=at), stream.k + n_incoming(stream.k))
        gathered = stream.gather(choice.cells, pool)
        better = exchange(gathered.problem, choice.map(gathered.inward), point)
        if better is None:
            break
        choice = gathered.outward(better)
    return choice


def _distinct(choices: Iterable[TopFeatures]) -> list[TopFeatures]:
    """Each set once, first ones first."""
    return list({np.sort(choice.cells).tobytes(): choice for choice in reversed(list(choices))}.values())[::-1]


def _worthless(stream: Stream, n_classes: int) -> Solution:
    """Nothing to gain: the lowest features that occur will do."""
    lowest, _ = stream.best(lambda columns: np.zeros(columns.shape[1]), stream.n_free)
    return nothing(_all_classes(stream, stream.start, n_classes), stream.features(lowest))


def _shares(masses: Array) -> Array:
    return shares(masses, np.full(len(masses), 1 / max(len(masses), 1)))


def _all_classes(stream: Stream, point: Array, n_classes: int) -> Array:
    out = np.zeros(n_classes)
    out[stream.classes] = point
    return out
