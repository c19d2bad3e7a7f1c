"""Class totals of reals that are never in one place: panels of them are read, and O(k) columns are kept.

Reals have hardly any equal columns to group, so solvers look at all features anew for each point, one panel at a time.
What finishes a solution works on the few columns that take part. Features are taken as columns; those that are forced
in come after all others, as in a `Problem`.

References: docs/mathematics.md 3.10.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Protocol

import numpy as np

from nfs_dask.arrays.compiling import kernel
from nfs_dask.solvers.naive_bayes.dual import SupportingSet
from nfs_dask.solvers.naive_bayes.gains import exact_sum, gains, shares
from nfs_dask.solvers.naive_bayes.multinomial import look_up, solve_columns
from nfs_dask.solvers.naive_bayes.objectives import Objective, larger_part, surprise
from nfs_dask.solvers.naive_bayes.primal import AROUND, TIED, everything
from nfs_dask.solvers.naive_bayes.problem import Problem, RowSums, comfortable, forced_features, refuse_heavy
from nfs_dask.solvers.naive_bayes.screening import tie_count
from nfs_dask.solvers.naive_bayes.topk import top
from nfs_dask.solvers.solution import Array, FeatureSet, Solution, nothing

Score = Callable[[Array], Array]  # from totals (C, width), smoothing included, to gains (width, )

_LOG = 2.0**-50  # relative: what a term g log g may be wrong by, with the sums it is in
_LOST = 2.0**-106  # u^2: what a sum that carries what it rounds off may be wrong by, for each pair of its terms


class TotalsTable(Protocol):
    """Totals (C, m) of reals, panel by panel."""

    @property
    def n_features(self) -> int: ...

    def parts(self) -> Iterable[tuple[int, Array]]:
        """Return first feature and totals (C, width) of each panel, in order."""
        ...

    def at(self, columns: Array) -> Array:
        """Return the totals of some columns, in the order asked for."""
        ...


@dataclass(frozen=True)
class TotalsSums:
    """What one look at all totals tells: sums, from which those of a support can be taken off."""

    counts: Array  # (C, ) of all totals, without smoothing
    alpha: float
    n: int  # features
    present: int  # that occur
    largest: float  # amount of a feature: its total of all classes under smoothing
    pairs: tuple[tuple[float, float], ...]  # sums over amounts g of g, and of g log g, to twice the digits

    @classmethod
    def of(cls, table: TotalsTable, alpha: float) -> TotalsSums:
        sums: RowSums | None = None
        present, largest = 0, 0.0
        with np.errstate(over="ignore", invalid="ignore"):  # refused below
            for _, raw in table.parts():
                sums = sums or RowSums(len(raw) + 2)
                g = raw.sum(axis=0, dtype=np.float64) + len(raw) * alpha
                sums.add(np.vstack((raw, g, _entropies(g))))
                largest = max(largest, float(g.max(initial=0.0)))
                present += int(np.count_nonzero(raw.any(axis=0)))
            assert sums is not None
            counts = np.array(sums.rows[:-2])
        found = cls(counts, alpha, table.n_features, present, largest, tuple(sums.pairs[-2:]))
        refuse_heavy(found.masses)
        return found

    @property
    def masses(self) -> Array:
        """Sums of all totals under smoothing, (C, )."""
        return np.asarray(self.counts + self.alpha * self.n)

    def objective(self, columns: Array) -> Objective:
        """Return the log likelihood of a support whose totals are ``columns`` (C, k), without smoothing."""
        own = sum(surprise(row) for row in columns + self.alpha)
        taken, given = columns.sum(axis=0) + len(columns) * self.alpha, np.zeros(0)
        one = exact_sum(taken)
        if self.largest > one:  # at most one amount is more than half of all, so this one is kept apart
            given, one, taken = np.array([one]), self.largest, np.append(taken, self.largest)
        mass, entropy = (
            math.fsum((*pair, *-less, *more))
            for pair, less, more in zip(self.pairs, (taken, _entropies(taken)), (given, _entropies(given)), strict=True)
        )
        if mass <= 0:
            return Objective(float(own))
        total = one + mass
        log = abs(math.log(total))
        value = entropy - mass * math.log(total)
        # Terms g log g add up to no more than twice their log at all and what they make, whatever their signs; of the
        # sums of all, what Neumaier's way leaves is second order.
        wrong = _LOG * (2 * mass * log + abs(value)) + 2.0 * self.n**2 * _LOST * (total * log + abs(self.pairs[1][0]))
        return Objective(min(value + larger_part(one, mass, total), 0.0) + own, wrong)


def _entropies(g: Array) -> Array:
    out = np.empty(len(g))
    _write_entropies(g, out)
    return out


@kernel
def _write_entropies(g, out):
    for i in range(len(g)):
        out[i] = g[i] * math.log(g[i]) if g[i] > 0 else 0.0


@dataclass(frozen=True)
class PanelColumns:
    """The columns that k features are chosen among, as `build_problem` would leave them."""

    table: TotalsTable
    alpha: float
    k: int
    forced: Array  # ascending features; they count in k
    classes: Array  # rows that are left in
    start: Array  # (C, ) shares of these classes in all totals
    n_classes: int
    mass: float = 0.0  # sum of all totals
    scale: float = 1.0  # what totals under smoothing are multiplied by
    raw: bool = False  # whether totals are handed on without smoothing

    @property
    def n_free(self) -> int:
        """Places for features that are not forced."""
        return self.k - len(self.forced)

    def panels(self) -> Iterator[tuple[Array, Array]]:
        """Return the free features of each panel, and their totals under smoothing.

        Features absent from the data, to which smoothing alone gives gains, are left out unless all are chosen.
        """
        for first, raw in self.table.parts():
            free = np.asarray(raw.any(axis=0)) if self.k < self.table.n_features else np.ones(raw.shape[1], bool)
            inside = np.searchsorted(self.forced, (first, first + raw.shape[1]))
            free[self.forced[inside[0] : inside[1]] - first] = False
            columns = np.flatnonzero(free)
            yield first + columns, self._smooth(raw if len(columns) == len(free) else raw[:, columns])

    def best(self, score: Score, n: int) -> tuple[Array, Array]:
        """Return the n free features of largest gain, ascending, and their totals; of equal gains, the lower ones."""
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

    def best_at(self, point: Array) -> SupportingSet:
        features, free = self.best(partial(gains, point=point), self.n_free)
        totals = np.ascontiguousarray(np.concatenate((free, self.forced_totals), axis=1))
        columns = self.with_forced(features)
        taken = FeatureSet(columns, np.ones(len(columns), np.int64))
        return SupportingSet(point, float(gains(totals, point).sum()), totals.sum(axis=1), taken)

    def near(self, point: Array, reach: float) -> tuple[Array, int]:
        features, totals = self.best(partial(gains, point=point), self.n_free + AROUND)
        gain = gains(totals, point)
        last = -np.sort(-gain)[self.n_free - 1] if self.n_free else np.inf
        if not np.isfinite(last):
            return self.with_forced(features), 0
        if len(gain) < self.n_free + AROUND or gain.min() < last * (1 - 2 * TIED):
            return self.with_forced(features), tie_count(gain, np.ones(len(gain)), self.n_free, last)
        equal, ahead = 0, 0
        for _, panel in self.panels():
            gained = gains(panel, point)
            tied = np.abs(gained - last) <= TIED * last
            equal, ahead = equal + int(tied.sum()), ahead + int(((gained > last) & ~tied).sum())
        return self.with_forced(features), equal if equal > self.n_free - ahead else 0

    def only(self, columns: Array) -> Problem:
        free = columns[: len(columns) - len(self.forced)]
        totals = np.concatenate((self._smooth(self.table.at(free)), self.forced_totals), axis=1)
        return Problem(
            totals=np.ascontiguousarray(totals),
            sizes=np.ones(len(columns), np.int64),
            origin=free,
            forced=self.forced,
            start=self.start,
            classes=self.classes,
            n_classes=self.n_classes,
            mass=self.mass,
            exact=False,
            rounded=self.alpha > 0,
            partial=True,
        )

    def with_features(self, found: Solution) -> Solution:
        """Return a solution in columns with its features, of all classes."""
        point = np.zeros(self.n_classes)
        point[self.classes] = found.point
        wide = self.table.n_features, self.forced
        return replace(look_up(found, *wide, lambda columns, _: (columns, np.arange(len(columns)))), point=point)

    @cached_property
    def forced_totals(self) -> Array:
        return self._smooth(self.table.at(self.forced))

    def with_forced(self, features: Array) -> Array:
        return np.concatenate((features, self.table.n_features + np.arange(len(self.forced))))

    def _smooth(self, raw: Array) -> Array:
        rows = raw if len(self.classes) == len(raw) else raw[self.classes]
        rows = np.ascontiguousarray(rows, np.float64)
        smooth = rows if self.raw else rows + self.alpha
        return smooth if self.scale == 1 else smooth * self.scale


def solve(table: TotalsTable, sums: TotalsSums, k: int, always: Array | None = None) -> Solution:
    """Return what `multinomial.solve` does, panel by panel."""
    k, alpha = max(0, min(int(k), table.n_features)), sums.alpha
    classes = np.arange(len(sums.counts)) if alpha else np.flatnonzero(sums.counts)
    forced, mass = forced_features(always, k, table.n_features), exact_sum(sums.masses)
    scale, start = comfortable(mass), shares(sums.masses[classes])
    columns = PanelColumns(table, alpha, k, forced, classes, start, len(sums.counts), mass * scale, scale)
    if k == 0 or len(classes) < 2:  # nothing to gain: the lowest features that occur will do
        lowest, _ = columns.best(lambda totals: np.zeros(totals.shape[1]), columns.n_free)
        taken = FeatureSet(columns.with_forced(lowest), np.ones(len(lowest) + len(forced), np.int64))
        return columns.with_features(replace(nothing(start), chosen=taken, mixture=taken))
    absent = int(np.count_nonzero(~table.at(forced).any(axis=0)))
    if k < (table.n_features if k == table.n_features else sums.present + absent):
        found = solve_columns(columns, k, start)
    else:
        held = np.sort(columns.best_at(start).features.columns)
        found = everything(columns.only(held)).map(lambda c: held[c])
    return columns.with_features(found.times(1 / scale))


def _top(gain: Array, n: int) -> Array:
    return top(gain, np.ones(len(gain), np.int64), n).columns
