"""Class totals that are never in one place: panels of them stream by, and what is kept is as long as the answer.

Reals have hardly any equal columns to group, so solvers over panels look at all features anew for each point, one panel
at a time. Features are taken as columns; those that are forced in come after all others, as in a `Problem`.

References: docs/mathematics.md 3.10.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Protocol

import numpy as np

from nfs_dask.arrays.compiling import kernel
from nfs_dask.solvers.naive_bayes.cuts import Cut
from nfs_dask.solvers.naive_bayes.gains import exact_sum, gains
from nfs_dask.solvers.naive_bayes.objectives import Objective, larger_part, surprise
from nfs_dask.solvers.naive_bayes.problem import Problem, refuse_heavy
from nfs_dask.solvers.naive_bayes.sums import Sums
from nfs_dask.solvers.naive_bayes.topk import TopFeatures, top
from nfs_dask.solvers.solution import Array

Score = Callable[[Array], Array]  # from totals (C, width), smoothing included, to gains (width, )

_LOG = 2.0**-50  # relative: what a term g log g may be wrong by, with the sums it is in
_LOST = 2.0**-106  # u^2: what a sum that carries what it rounds off may be wrong by, for each pair of its terms


class TotalsTable(Protocol):
    """Totals (C, m) of reals, panel by panel."""

    @property
    def n_features(self) -> int: ...

    def parts(self) -> Iterable[tuple[int, Array]]:
        """First feature and totals (C, width) of each panel, in order."""
        ...

    def at(self, columns: Array) -> Array:
        """The totals of some columns, in the order asked for."""
        ...


@dataclass(frozen=True)
class TotalsSurvey:
    """What one look at all totals tells. Smoothing is included, but in ``counts``."""

    counts: Array  # (C, ) sums of all totals
    masses: Array  # (C, ) the same under smoothing
    amounts: Amounts  # the totals of features, of all classes together
    present: int  # features that occur

    @classmethod
    def of(cls, table: TotalsTable, alpha: float) -> TotalsSurvey:
        sums: Sums | None = None
        present, largest = 0, 0.0
        with np.errstate(over="ignore", invalid="ignore"):  # refused below
            for _, raw in table.parts():
                sums = sums or Sums(len(raw) + 2)
                g = raw.sum(axis=0, dtype=np.float64) + len(raw) * alpha
                sums.add(np.vstack((raw, *Amounts.terms(g))))
                largest = max(largest, float(g.max(initial=0.0)))
                present += int(np.count_nonzero(raw.any(axis=0)))
            assert sums is not None
            counts = np.array(sums.rows[:-2])
        masses = counts + alpha * table.n_features
        refuse_heavy(masses)
        return cls(counts, masses, Amounts(tuple(sums.pairs[-2:]), alpha, largest, table.n_features), present)

    def objective(self, columns: Array) -> Objective:
        """Log likelihood of a support whose totals are ``columns`` (C, k), without smoothing."""
        own = sum(surprise(row) for row in columns + self.amounts.alpha)
        shared = self.amounts.without(columns)
        return Objective(shared.value + own, shared.more)

    @property
    def mass(self) -> float:
        """Sum of all totals under smoothing."""
        return exact_sum(self.masses)


@dataclass(frozen=True)
class Amounts:
    """Sums over the amounts g of all features, in pairs, so that those of a support can be taken off."""

    sums: tuple[tuple[float, float], ...]  # of g, and of g log g
    alpha: float
    largest: float
    n: int  # how many there are

    @staticmethod
    def terms(g: Array) -> tuple[Array, Array]:
        """What amounts add to the sums."""
        out = np.empty(len(g))
        _entropies(g, out)
        return g, out

    def without(self, columns: Array) -> Objective:
        """N(g outside of a support, and all of it together); ``columns`` (C, k) are its totals without smoothing."""
        taken, given = columns.sum(axis=0) + len(columns) * self.alpha, np.zeros(0)
        one = exact_sum(taken)
        if self.largest > one:  # at most one amount is more than half of all, so this one is kept apart
            given, one, taken = np.array([one]), self.largest, np.append(taken, self.largest)
        mass, entropy = (
            math.fsum((*pair, *-less, *more))
            for pair, less, more in zip(self.sums, self.terms(taken), self.terms(given), strict=True)
        )
        if mass <= 0:
            return Objective(0.0)
        total = one + mass
        log = abs(math.log(total))
        value = entropy - mass * math.log(total)
        # Terms g log g add up to no more than twice their log at all and what they make, whatever their signs; of the
        # sums of all, what Neumaier's way leaves is second order.
        wrong = _LOG * (2 * mass * log + abs(value)) + 2.0 * self.n**2 * _LOST * (total * log + abs(self.sums[1][0]))
        return Objective(min(value + larger_part(one, mass, total), 0.0), wrong)


@kernel
def _entropies(g, out):
    for i in range(len(g)):
        out[i] = g[i] * math.log(g[i]) if g[i] > 0 else 0.0


@dataclass(frozen=True)
class Stream:
    """The columns that k features are chosen among, as `problem.pose` would leave them."""

    table: TotalsTable
    alpha: float
    k: int
    forced: Array  # ascending features; they count in k
    classes: Array  # rows that are left in
    start: Array  # shares of these classes in all totals
    mass: float = 0.0  # sum of all totals
    scale: float = 1.0  # what totals under smoothing are multiplied by
    raw: bool = False  # whether totals are handed on without smoothing

    @property
    def n_free(self) -> int:
        """Places for features that are not forced."""
        return self.k - len(self.forced)

    @property
    def only_present(self) -> bool:
        """Whether features absent from the data are left out, to which smoothing alone gives gains."""
        return self.k < self.table.n_features

    def panels(self) -> Iterator[tuple[Array, Array]]:
        """Free features of each panel, and their totals under smoothing."""
        for first, raw in self.table.parts():
            free = np.asarray(raw.any(axis=0)) if self.only_present else np.ones(raw.shape[1], bool)
            inside = np.searchsorted(self.forced, (first, first + raw.shape[1]))
            free[self.forced[inside[0] : inside[1]] - first] = False
            columns = np.flatnonzero(free)
            yield first + columns, self._smooth(raw if len(columns) == len(free) else raw[:, columns])

    def best(self, score: Score, n: int) -> tuple[Array, Array]:
        """The n free features of largest gain, ascending, and their totals; of equal gains, the lower features."""
        features, gain = np.zeros(0, np.int64), np.zeros(0)
        totals = np.zeros((len(self.classes), 0))
        for new, columns in self.panels():
            gained = score(columns)
            near = _top(gained, n)
            if len(gain) == n and n:
                near = near[gained[near] > gain.min()]
            features, gain = np.concatenate((features, new[near])), np.concatenate((gain, gained[near]))
            totals = np.concatenate((totals, columns[:, near]), axis=1)
            kept = _top(gain, n)
            features, gain, totals = features[kept], gain[kept], totals[:, kept]
        return features, totals

    def cut(self, point: Array) -> Cut:
        """The best set at a point, in columns."""
        features, free = self.best(partial(gains, point=point), self.n_free)
        totals = np.ascontiguousarray(np.concatenate((free, self.forced_totals), axis=1))
        return Cut.of(point, float(gains(totals, point).sum()), totals.sum(axis=1), ones(self.with_forced(features)))

    def with_forced(self, features: Array) -> Array:
        """Columns of free features, and of all forced ones."""
        return np.concatenate((features, self.table.n_features + np.arange(len(self.forced))))

    def features(self, columns: Array) -> Array:
        """Features that columns stand for, ascending."""
        free = columns[columns < self.table.n_features]
        return np.sort(np.concatenate((free, self.forced))).astype(np.int64)

    def gather(self, *sets: Array) -> Gathered:
        """The columns of some sets, and the forced ones, as a problem in memory."""
        columns = np.unique(np.concatenate((self.with_forced(np.zeros(0, np.int64)), *sets)))
        free = columns[: len(columns) - len(self.forced)]
        totals = np.concatenate((self._smooth(self.table.at(free)), self.forced_totals), axis=1)
        problem = Problem(
            totals=np.ascontiguousarray(totals),
            sizes=np.ones(len(columns), np.int64),
            n_forced=len(self.forced),
            origin=free,
            start=self.start,
            n_cells=self.table.n_features,
            forced=self.forced,
            classes=self.classes,
            mass=self.mass,
            exact=False,
            rounded=self.alpha > 0,
            partial=True,
        )
        return Gathered(problem, columns)

    @cached_property
    def forced_totals(self) -> Array:
        return self._smooth(self.table.at(self.forced))

    def _smooth(self, raw: Array) -> Array:
        rows = raw if len(self.classes) == len(raw) else raw[self.classes]
        rows = np.ascontiguousarray(rows, np.float64)
        smooth = rows if self.raw else rows + self.alpha
        return smooth if self.scale == 1 else smooth * self.scale


@dataclass(frozen=True)
class Gathered:
    """A few columns of a stream in memory."""

    problem: Problem
    columns: Array  # (M, ) ascending, of the stream

    def inward(self, columns: Array) -> Array:
        """Columns of the stream as columns of the problem."""
        return np.searchsorted(self.columns, columns)

    def outward(self, choice: TopFeatures) -> TopFeatures:
        """A choice in the problem as one in the stream."""
        return choice.map(lambda cells: self.columns[cells])


def ones(columns: Array) -> TopFeatures:
    """Each of the columns once."""
    return TopFeatures(columns, np.ones(len(columns), np.int64))


def _top(gain: Array, n: int) -> Array:
    return top(gain, np.ones(len(gain), np.int64), n).cells
