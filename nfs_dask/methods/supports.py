"""Supports of many sizes, as solvers know them and paths show them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.methods.naive_bayes import mass_of, null_multinomial
from nfs_dask.progress import Progress
from nfs_dask.solvers.naive_bayes import bernoulli, multinomial
from nfs_dask.solvers.naive_bayes.path_grid import SolvedPath, solve_path
from nfs_dask.solvers.solution import ABSOLUTE
from nfs_dask.statistics.class_totals import Totals


class Supports(Protocol):
    """What a solver knows of all the k."""

    @property
    def value(self) -> Array:
        """Gain of the support that was found, (K,)."""
        ...

    @property
    def bound(self) -> Array:
        """No support of k features gains more, (K,)."""
        ...

    @property
    def gap(self) -> Array:
        """Nor by more than this more, (K,)."""
        ...

    @property
    def null(self) -> float:
        """The objective at k = 0."""
        ...

    @property
    def objective(self) -> Array:
        """Of the support that was found for each k, (K,)."""
        ...

    @property
    def noise(self) -> Array | float:
        """Gains closer than this are the same number; one for all k, or (K,)."""
        ...

    def support(self, k: int) -> Array:
        """Features of one of the k, ascending."""
        ...


@dataclass(frozen=True)
class Ranking:
    """Supports of many sizes, and how they came about."""

    supports: Supports
    rows: int  # that they were found in
    reused: bool  # whether the statistics had been kept, so that no document was read


@dataclass(frozen=True)
class BernoulliSupports:
    """Exact for every k: the features of largest gain."""

    scored: bernoulli.ScoredColumns
    value: Array
    bound: Array
    null: float
    noise: float = 0.0

    @classmethod
    def solve(cls, totals: Totals, class_count: Array, alpha: float, ks: Array) -> BernoulliSupports:
        scored = bernoulli.score_columns(*totals.grouped(), class_count, alpha)
        value = bernoulli.path(scored, ks)
        bound = scored.rounding.above(value, scored.mass)
        return cls(scored, value, bound, bernoulli.null_objective(scored))

    @property
    def gap(self) -> Array:
        return np.zeros(len(self.value))

    @property
    def objective(self) -> Array:
        return self.null + self.value

    def support(self, k: int) -> Array:
        return bernoulli.solve(self.scored, k).support


@dataclass(frozen=True)
class MultinomialSupports:
    """A value and a bound for every k."""

    solution: SolvedPath
    null: float
    mass: float  # all counts

    @classmethod
    def solve(cls, totals: Totals, alpha: float, ks: Array) -> MultinomialSupports:
        counted = multinomial.GroupedCounts(*totals.grouped(), float(alpha))
        with Progress(len(ks), "solving", "values of k") as progress:
            solution = solve_path(counted, ks, tick=progress.advance)
        return cls(solution, null_multinomial(counted), mass_of(counted))

    @property
    def noise(self) -> Array:
        """Of sums of all counts, or of log likelihoods where these are less, as fits have it."""
        return ABSOLUTE * np.minimum(self.mass, -self.objective)

    @property
    def value(self) -> Array:
        return self.solution.value

    @property
    def bound(self) -> Array:
        return self.solution.bound

    @property
    def gap(self) -> Array:
        return self.solution.gap

    @property
    def objective(self) -> Array:
        return self.null + self.value

    def support(self, k: int) -> Array:
        return self.solution.support(k)
