"""The best support that a dual solution leads to: rounding of the mixture, and local search by exchanges.

The mixture is moved until it has at most C fractions, so that there are few ways to round it to k features. The best of
these, and the best of the sets that were mixed, are then improved by exchanges of one feature for another. A set that
gains more than one in hand loses less than the gap at the dual point. So features whose gains there are farther than
the gap from the last one are in all better sets or in none: few are left, and equal ones are as one.

References: NFS Propositions 3.8 to 3.10, (34), for C classes and without a linear program: docs/mathematics.md
3.5 to 3.7.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from nfs_dask.solvers.naive_bayes.distinct import bits, group
from nfs_dask.solvers.naive_bayes.dual import MANY, DualSolution
from nfs_dask.solvers.naive_bayes.gains import exact_sum, gains, set_gain, shares
from nfs_dask.solvers.naive_bayes.problem import Problem
from nfs_dask.solvers.solution import Array, FeatureSet, Solution

AROUND = 64  # groups of equal columns on either side of the last place that take part, at most
TIED = 1e-9  # relative: gains this close to the k-th one at the dual point count as tied
_WHOLE = 1e-9  # a share this close to a whole number is one
_MARGIN = 1e-13  # relative: less than this is rounding
_UNSURE = 10  # fractions that may be rounded either way, at most: 252 ways
_PROMISING = 8  # sets that are improved
_EXACT = 2  # of the best sets, how many are compared to the last digit
_ROUNDS = 100  # of exchanges
_WORK = 1 << 21  # gains of single classes in a round of exchanges, about
_OWN = 2.0**-46  # relative: what a set's own point may be wrong by, its masses summed with an error of 64 u
_NEAR = 2.0**-40  # relative: how near a point has to be to a set's own one to prove something of it


@dataclass(frozen=True)
class _Candidate:
    """A set of k features, its masses, and its gain to the digits that are worth choosing by."""

    features: FeatureSet
    masses: Array  # (C, )
    value: float


def recover(problem: Problem, k: int, dual: DualSolution, n_ties: int) -> Solution:
    """Return the solution in columns; ``n_ties`` features share the last place at the dual point.

    The problem needs no more columns than those of the dual's sets, and of the next best ones at its point.
    """
    best = dual.best
    gain = problem.gains(best.point)
    height = exact_sum(gain[best.features.columns] * best.features.counts)
    rounding, mass = problem.rounding, problem.mass
    proved = _is_best(problem, best.features, best.point, gain, n_ties)
    if proved:
        chosen = best.features
        value = height = _value_of(problem, chosen)
        mixture = chosen
    else:
        amounts = _settle(problem, dual)
        chosen, value = _best_set(problem, k, dual, amounts, gain, height)
        mixture = FeatureSet.of(amounts)
    bound = float(rounding.above(max(value, height), mass))
    gap = 0.0 if proved else min(float(np.nextafter(bound - rounding.below(value, mass), np.inf)), bound)
    nobody = np.zeros(0, np.int64)
    return Solution(nobody, value, bound, gap, n_ties, dual.n_evaluations, best.point, None, chosen, mixture)


def everything(problem: Problem) -> Solution:
    """Return the solution that takes all features: nothing to choose, and nothing lost."""
    chosen = FeatureSet(np.arange(len(problem.sizes)), problem.sizes)
    value, masses = _value_of(problem, chosen), chosen.sum(problem.totals)
    bound, nobody = float(problem.rounding.above(value, problem.mass)), np.zeros(0, np.int64)
    return Solution(nobody, value, bound, 0.0, 0, 1, shares(masses), None, chosen, chosen)


def _value_of(problem: Problem, features: FeatureSet) -> float:
    return set_gain(problem.totals[:, features.columns], features.counts)


def _is_best(problem: Problem, features: FeatureSet, point: Array, gain: Array, n_ties: int) -> bool:
    """Return whether a set is proved to be the best of its size: one that is best at its own point.

    ``gain`` is that of all columns at ``point``. From there to the set's own point a gain of g counts moves by at most
    g times the largest change in a log share. Columns of equal counts move alike. ``n_ties`` features share the last
    place, some of which a partial problem may not hold.
    """
    masses = features.sum(problem.totals)
    if (problem.partial and n_ties) or not masses.all():
        return False
    moved = 2 * float(np.abs(masses / masses.sum() / point - 1).max()) + _OWN
    if not moved <= _NEAR:
        return False
    if problem.partial and not moved * problem.mass <= TIED * gain[features.columns].min():
        return False
    counts = problem.totals.sum(axis=0)
    wrong = problem.rounding.of(gain, counts) + moved * counts
    taken = features.spread(len(gain))[: problem.n_free]
    inside, outside = np.flatnonzero(taken), np.flatnonzero(taken < problem.sizes[: problem.n_free])
    if not len(inside) or not len(outside):
        return True
    least, most = gain - wrong, gain + wrong
    close = np.concatenate((inside[least[inside] < most[outside].max()], outside[most[outside] > least[inside].min()]))
    columns = problem.totals[:, close]
    return bool((columns == columns[:, :1]).all()) and not (problem.rounded and len(close))


def _settle(problem: Problem, dual: DualSolution) -> Array:
    """Return how much a mixture takes of each column, (M, ), with at most C fractions; of many classes, as it is.

    It is moved along directions that keep the sum and the proportions of the masses, in which the second dual is flat.
    """
    amounts = np.zeros(len(problem.sizes))
    for weight, one in zip(dual.weights.tolist(), dual.sets, strict=True):
        if weight > 0:
            amounts[one.features.columns] += weight * one.features.counts
    nearest = np.round(amounts)
    amounts = np.where(np.abs(amounts - nearest) <= _WHOLE, nearest, amounts)
    point, n_classes = dual.best.point, len(problem.totals)
    loose = np.flatnonzero(amounts % 1)
    while n_classes < len(loose) and n_classes <= MANY:
        some = loose[: n_classes + 1]
        f = problem.totals[:, some]
        rows = np.vstack((f - point[:, None] * f.sum(axis=0), np.ones(len(some))))[1:]
        rows /= np.maximum(np.abs(rows).max(axis=1, keepdims=True), np.finfo(float).tiny)
        direction = np.linalg.svd(rows)[2][-1]
        room = np.where(direction > 0, np.ceil(amounts[some]) - amounts[some], amounts[some] - np.floor(amounts[some]))
        moving = np.abs(direction) > 1e-12 * np.abs(direction).max()
        steps = np.where(moving, room / np.maximum(np.abs(direction), np.finfo(float).tiny), np.inf)
        moved = amounts[some] + steps.min() * direction
        nearest = np.round(moved)
        amounts[some] = np.where((steps == steps.min()) | (np.abs(moved - nearest) <= _WHOLE), nearest, moved)
        loose = np.concatenate((some[amounts[some] % 1 > 0], loose[n_classes + 1 :]))
    return amounts


def _best_set(
    problem: Problem, k: int, dual: DualSolution, amounts: Array, gain: Array, height: float
) -> tuple[FeatureSet, float]:
    """Return a set and its gain, which is at most ``height``; at least as good as those of the dual."""
    sets = [_Candidate(one.features, one.masses, one.value) for one in (dual.best, *dual.sets)]
    starts = _distinct([*sets, *_roundings(problem, k, amounts, dual.best.point, gain)], _PROMISING)
    exact = [(_value_of(problem, one.features), one.features) for one in starts[:_EXACT]]
    value, chosen = max(exact, key=lambda pair: pair[0])
    if height - value <= _MARGIN * height:
        return chosen, value
    search = _LocalSearch(problem, k, dual.best.point, gain, height - value)
    better = _distinct([search.ascend(one) for one in starts], _EXACT)
    exact = [(value, chosen), *((_value_of(problem, one.features), one.features) for one in better)]
    value, chosen = max(exact, key=lambda pair: pair[0])
    return chosen, value


def _distinct(candidates: list[_Candidate], n: int) -> list[_Candidate]:
    """Return the n best sets, each once; of equal ones the first."""
    found: dict[bytes, _Candidate] = {}
    for one in sorted(candidates, key=lambda one: -one.value):
        found.setdefault(one.features.columns.tobytes() + one.features.counts.tobytes(), one)
        if len(found) == n:
            break
    return list(found.values())


def _values(heights: Array | float, masses: Array, point: Array) -> Array:
    """Gains of sets, from the sums of their gains at the point, (n, ), and their masses, (C, n)."""
    return np.asarray(heights - gains(np.maximum(masses, 0.0), point))


def _roundings(problem: Problem, k: int, amounts: Array, point: Array, gain: Array) -> list[_Candidate]:
    """Return the best ways to round the fractions of a mixture such that k features result."""
    low = np.floor(amounts)
    loose = np.flatnonzero(amounts - low)
    loose = loose[np.argsort(low[loose] - amounts[loose], kind="stable")]  # largest fractions first
    n_up = k - int(low.sum())
    if not 0 <= n_up <= len(loose):  # more was rounded off than the mixture can spare
        return []
    n_fixed = min(max(n_up - _UNSURE // 2, 0), max(len(loose) - _UNSURE, 0))
    low[loose[:n_fixed]] += 1
    unsure = loose[n_fixed : n_fixed + _UNSURE]
    ways = np.array(list(itertools.combinations(range(len(unsure)), n_up - n_fixed)), np.intp)
    raised = np.zeros((len(unsure), len(ways)))
    raised[ways.T, np.arange(len(ways))] = 1
    masses = (problem.totals @ low)[:, None] + problem.totals[:, unsure] @ raised
    values = _values(low @ gain + gain[unsure] @ raised, masses, point)
    found = []
    for i in np.argsort(-values, kind="stable")[:_PROMISING]:
        counts = low.astype(np.int64)
        counts[unsure] += raised[:, i].astype(np.int64)
        found.append(_Candidate(FeatureSet.of(counts), masses[:, i], float(values[i])))
    return found


class _LocalSearch:
    """Exchanges among columns whose gains at the dual point are within a gap of the last one.

    Equal columns are groups, in order of falling gains, of which sets take some features beside the fixed columns.
    """

    def __init__(self, problem: Problem, k: int, point: Array, gain: Array, gap: float) -> None:
        self.problem, self.point = problem, point
        n, k = problem.n_free, k - len(problem.forced)
        free, sizes = gain[:n], problem.sizes[:n]
        order = np.argsort(-free, kind="stable")
        last = free[order[np.searchsorted(np.cumsum(sizes[order]), k)]] if k < sizes.sum() else 0.0
        near = order[np.abs(free[order] - last) <= gap]
        ahead = np.flatnonzero(free > last + gap)
        group_of, leaders = _group_equal(problem.totals[:, near])
        in_groups = np.bincount(group_of, sizes[near], len(leaders)).astype(np.int64)
        need = k - int(sizes[ahead].sum())
        place = int(np.searchsorted(np.cumsum(in_groups), need))
        around = min(AROUND, max(8, int((_WORK / len(point)) ** 0.5) // 2))
        first, end = max(place - around, 0), place + around + 1
        part = (group_of >= first) & (group_of < end)
        self.columns, self.group_of = near[part], group_of[part] - first
        self.sizes, self.need = in_groups[first:end], need - int(in_groups[:first].sum())
        self.gain, self.totals = gain[near[leaders[first:end]]], problem.totals[:, near[leaders[first:end]]]
        self.fixed = np.concatenate((ahead, near[group_of < first], np.arange(n, len(gain))))
        self._met: set[bytes] = set()

    def ascend(self, start: _Candidate) -> _Candidate:
        """Return a set improved by exchanges; itself, where none gains or it lacks something fixed."""
        counts = start.features.spread(len(self.problem.sizes))
        amounts = np.bincount(self.group_of, counts[self.columns], len(self.sizes)).astype(np.int64)
        if amounts.sum() != self.need or (counts[self.fixed] < self.problem.sizes[self.fixed]).any():
            return start
        masses, value, before = start.masses, start.value, amounts
        height = value + float(gains(masses[:, None], self.point)[0])
        for _ in range(_ROUNDS):
            out, into = np.flatnonzero(amounts), np.flatnonzero(amounts < self.sizes)
            if not len(out) or not len(into) or amounts.tobytes() in self._met:
                break
            self._met.add(amounts.tobytes())
            heights = height + self.gain[into] - self.gain[out][:, None]
            after = masses[:, None, None] + self.totals[:, None, into] - self.totals[:, out][:, :, None]
            values = _values(heights.ravel(), after.reshape(len(masses), -1), self.point)
            best = int(np.argmax(values))
            if values[best] <= value * (1 + _MARGIN):
                break
            amounts, value = amounts.copy(), float(values[best])
            amounts[out[best // len(into)]] -= 1
            amounts[into[best % len(into)]] += 1
            height, masses = float(heights.ravel()[best]), after.reshape(len(masses), -1)[:, best]
        return start if amounts is before else _Candidate(self._expand(amounts), masses, value)

    def _expand(self, amounts: Array) -> FeatureSet:
        """Return a set by how many features it takes of each group: those of the lowest columns."""
        order = np.lexsort((self.columns, self.group_of))
        columns, group_of = self.columns[order], self.group_of[order]
        sizes = self.problem.sizes[columns]
        before = np.cumsum(sizes) - sizes
        before -= before[np.searchsorted(group_of, group_of)]
        counts = np.zeros(len(self.problem.sizes), np.int64)
        counts[columns] = np.clip(amounts[group_of] - before, 0, sizes)
        counts[self.fixed] = self.problem.sizes[self.fixed]
        return FeatureSet.of(counts)


def _group_equal(totals: Array) -> tuple[Array, Array]:
    """Return the group of equal columns that each column is in, in order of appearance, and the first of each."""
    if len(totals) > MANY:
        return np.arange(totals.shape[1]), np.arange(totals.shape[1])
    distinct, index = group(bits(totals))
    assert index is not None
    return index.columns_of(np.arange(totals.shape[1])), distinct.firsts
