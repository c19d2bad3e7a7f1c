"""A solution in terms of columns of a problem, before it is one of features.

References: docs/mathematics.md 3.6.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from nfs_dask.arrays.compiling import WorthCompiling, kernel
from nfs_dask.solvers.naive_bayes.gains import exact_sum, own_gains, own_point, set_gain
from nfs_dask.solvers.naive_bayes.problem import Problem
from nfs_dask.solvers.naive_bayes.topk import TIED, TopFeatures
from nfs_dask.solvers.solution import Array

_OWN = 2.0**-46  # relative: what a set's own point may be wrong by, its masses summed with an error of 64 u
_NEAR = 2.0**-40  # relative: how near a point has to be to a set's own one to prove something of it


Mixture = tuple[tuple[float, TopFeatures], ...]  # weights, sum 1, and sets of k features


@dataclass(frozen=True)
class Found:
    """A support, its value and a bound."""

    choice: TopFeatures
    value: float
    bound: float  # no set of that size gains more, whatever was rounded
    gap: float  # nor more than this beyond the true gain of this one
    ties: int
    n_evaluations: int
    point: Array  # (C, ) of the classes of the problem
    mix: Callable[[], Mixture]  # of sets, which is best for the second dual; only certificates need it

    def map(self, column: Callable[[Array], Array]) -> Found:
        """The same with other numbers for the columns."""
        return replace(
            self,
            choice=self.choice.map(column),
            mix=lambda: tuple((weight, choice.map(column)) for weight, choice in self.mix()),
        )

    def times(self, scale: float) -> Found:
        """What it is for counts multiplied by a power of two; the bound and the gap are rounded upward."""
        bound, gap = (
            x * scale if x * scale / scale >= x else float(np.nextafter(x * scale, np.inf))
            for x in (self.bound, self.gap)
        )
        return replace(self, value=self.value * scale, bound=bound, gap=gap)


def value_of(problem: Problem, choice: TopFeatures) -> float:
    """The gain of a set."""
    if len(problem.totals) > 2 or not _in_a_loop():
        return set_gain(problem.totals[:, choice.cells], choice.counts)
    terms = np.empty(len(choice.cells))
    _own_gains(problem.totals, choice.cells, choice.counts, len(terms), terms)
    return exact_sum(terms)


@kernel
def _own_gains(totals, cells, counts, n, out):
    own_gains(totals, cells, counts, n, out)


_in_a_loop = WorthCompiling(_own_gains, 600)


def best_of(problem: Problem, choices: list[TopFeatures]) -> tuple[TopFeatures, float]:
    """The first of the sets with the largest gain, and that gain."""
    choices = list({id(choice): choice for choice in choices}.values())  # the ends of a bracket are often one set
    values = [value_of(problem, choice) for choice in choices]
    best = int(np.argmax(values))
    return choices[best], values[best]


def everything(problem: Problem) -> Found:
    """All features: nothing to choose, and nothing lost."""
    choice = TopFeatures(np.arange(len(problem.sizes)), problem.sizes)
    value, point = set_gain(problem.totals, problem.sizes), own_point(problem.totals, problem.sizes)
    bound = problem.rounding.above(value, problem.mass)
    return Found(choice, value, float(bound), 0.0, 0, 1, point, lambda: ((1.0, choice),))


def height_of(choice: TopFeatures, gain: Array) -> float:
    """What the gains of a set add up to."""
    return exact_sum(gain[choice.cells] * choice.counts)


def judged(problem: Problem, value: float, height: float) -> tuple[float, float]:
    """A bound and a gap, of a value and of the height of a best set at some point, rounded outward."""
    rounding, mass = problem.rounding, problem.mass
    bound = rounding.above_one(max(value, height), mass)
    return bound, min(math.nextafter(bound - rounding.below_one(value, mass), math.inf), bound)


def is_best(problem: Problem, choice: TopFeatures, point: Array, gain: Array, n_ties: int) -> bool:
    """Whether a set is proved to be the best of its size: one that is best at its own point, where ``gain`` is near it.

    ``gain`` is that of all columns at ``point``. From there to the set's own point a gain of g counts moves by at most
    g times the largest change in a log share. Columns of equal counts move alike. ``n_ties`` features share the last
    place, some of which a partial problem may not hold.
    """
    if problem.partial and n_ties:
        return False
    masses = choice.sum(problem.totals)
    if not masses.all():
        return False
    mass = float(masses.sum())
    moved = 2 * max(abs(own / mass / a - 1) for own, a in zip(masses.tolist(), point.tolist(), strict=True)) + _OWN
    if not moved <= _NEAR:
        return False
    taken = choice.spread(len(problem.sizes))
    left = taken < problem.sizes
    taken[len(taken) - problem.n_forced :] = 0
    left[len(left) - problem.n_forced :] = False
    counts = problem.totals.sum(axis=0)
    if problem.partial and not moved * problem.mass <= TIED * gain[choice.cells].min():
        return False
    wrong = problem.rounding.share * gain
    if problem.rounding.root:
        wrong += problem.rounding.root * np.sqrt(gain) * np.sqrt(counts)
    wrong += moved * counts
    least, most = gain - wrong, gain + wrong
    inside, outside = np.flatnonzero(taken), np.flatnonzero(left)
    if not len(inside) or not len(outside):
        return True
    close = np.concatenate((inside[least[inside] < most[outside].max()], outside[most[outside] > least[inside].min()]))
    columns = problem.totals[:, close]
    if problem.rounded and len(close):
        return False
    return bool((columns == columns[:, :1]).all())
