"""Class totals that are never in one place: panels of them stream by, and what is kept is as long as the answer.

Reals have hardly any equal columns to group, so solvers over panels look at all features anew for each point, one panel
at a time. Features are taken as columns; those that are forced in come after all others, as in a `Problem`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Protocol

import numpy as np

from nfs_dask.errors import InputError
from nfs_dask.solvers.cuts import Cut
from nfs_dask.solvers.gains import exact_sum, gains
from nfs_dask.solvers.problem import Problem
from nfs_dask.solvers.solution import Array
from nfs_dask.solvers.sums import Sums
from nfs_dask.solvers.topk import Choice, top

Score = Callable[[Array], Array]  # from totals (C, width), smoothing included, to gains (width, )


class Table(Protocol):
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
class Survey:
    """What one look at all totals tells. Smoothing is included, but in ``counts``."""

    counts: Array  # (C, ) sums of all totals
    masses: Array  # (C, ) the same under smoothing
    entropy: float  # sum of g log g over all features, g the total of all classes
    present: int  # features that occur

    @classmethod
    def of(cls, table: Table, alpha: float) -> Survey:
        sums: Sums | None = None
        present = 0
        for _, raw in table.parts():
            sums = sums or Sums(len(raw) + 1)
            with np.errstate(over="ignore"):  # refused below
                g = raw.sum(axis=0, dtype=np.float64) + len(raw) * alpha
                sums.add(np.vstack((raw, g * np.log(g, out=np.zeros(len(g)), where=g > 0))))
            present += int(np.count_nonzero(raw.any(axis=0)))
        assert sums is not None
        *counts, entropy = sums.rows
        if not np.isfinite(sum(counts)):
            raise InputError("values under their weights add up to more than a float holds; scale them down")
        return cls(np.array(counts), np.array(counts) + alpha * table.n_features, entropy, present)

    @property
    def null(self) -> float:
        """Log likelihood at k = 0: sum of g log(g / S), S the sum of all g."""
        return self.entropy - (self.mass * math.log(self.mass) if self.mass > 0 else 0.0)

    @property
    def mass(self) -> float:
        """Sum of all totals under smoothing."""
        return exact_sum(self.masses)


@dataclass(frozen=True)
class Stream:
    """The columns that k features are chosen among, as `problem.pose` would leave them."""

    table: Table
    alpha: float
    k: int
    forced: Array  # ascending features; they count in k
    classes: Array  # rows that are left in
    start: Array  # shares of these classes in all totals
    mass: float = 0.0  # sum of all totals
    scale: float = 1.0  # what totals under smoothing are multiplied by

    @property
    def n_free(self) -> int:
        """Places for features that are not forced."""
        return self.k - len(self.forced)

    @property
    def only_present(self) -> bool:
        """Whether features absent from the data are left out: smoothing alone would make them look alike."""
        return self.alpha > 0 and self.k < self.table.n_features

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
        return Cut(point, float(gains(totals, point).sum()), totals.sum(axis=1), ones(self.with_forced(features)))

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
        )
        return Gathered(problem, columns)

    @cached_property
    def forced_totals(self) -> Array:
        return self._smooth(self.table.at(self.forced))

    def _smooth(self, raw: Array) -> Array:
        rows = raw if len(self.classes) == len(raw) else raw[self.classes]
        smooth = np.ascontiguousarray(rows, np.float64) + self.alpha
        return smooth if self.scale == 1 else smooth * self.scale


@dataclass(frozen=True)
class Gathered:
    """A few columns of a stream in memory."""

    problem: Problem
    columns: Array  # (M, ) ascending, of the stream

    def inward(self, columns: Array) -> Array:
        """Columns of the stream as columns of the problem."""
        return np.searchsorted(self.columns, columns)

    def outward(self, choice: Choice) -> Choice:
        """A choice in the problem as one in the stream."""
        return choice.map(lambda cells: self.columns[cells])


def ones(columns: Array) -> Choice:
    """Each of the columns once."""
    return Choice(columns, np.ones(len(columns), np.int64))


def _top(gain: Array, n: int) -> Array:
    return top(gain, np.ones(len(gain), np.int64), n).cells
