"""Many classes: cutting planes over the simplex, with a master that is the second dual over mixtures of sets.

Each set D that is best at a point gives a plane in the logarithms of the point. The lowest point under all planes is
dual to the best mixture x = sum w_D 1_D of the sets, of which (D)(x) is a lower value and whose proportions are the
next point.

References: NFS Theorem 3.2 and Proposition 3.7 for C classes: docs/mathematics.md 3.8.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from nfs_dask.solvers.naive_bayes.exchanges import AROUND, ExchangeView, Held
from nfs_dask.solvers.naive_bayes.found import Found, everything, height_of, is_best, judged, value_of
from nfs_dask.solvers.naive_bayes.gains import SMALLEST, divergence
from nfs_dask.solvers.naive_bayes.master import Master
from nfs_dask.solvers.naive_bayes.problem import Problem, comfortable
from nfs_dask.solvers.naive_bayes.rounding import PROMISING, best_whole
from nfs_dask.solvers.naive_bayes.topk import TopFeatures
from nfs_dask.solvers.solution import Array

CLOSED = 1e-13  # relative width at which upper and lower value are one number
_MOST = 300  # evaluations
_FARTHEST = 1e-250  # share of a class, relative to its start, that is as good as none
_MANY = 40  # sets, beyond which those without weight leave the master


@dataclass(frozen=True)
class Plane:
    """A best set, and the sum of its gains at the point it was found at."""

    point: Array
    height: float
    masses: Array  # (C, )
    choice: TopFeatures

    @property
    def gain(self) -> float:
        """Of the set, to the digits that are worth choosing by."""
        return self.height - float(divergence(self.masses[:, None], self.point)[0])


@dataclass(frozen=True)
class Descent:
    """The lowest plane's foot, planes whose sets carry weight or gain most, and their weights."""

    best: Plane
    planes: list[Plane]
    weights: Array
    n_evaluations: int

    @property
    def mixed(self) -> list[tuple[float, TopFeatures]]:
        """Sets that carry weight."""
        pairs = zip(self.weights, self.planes, strict=True)
        return [(float(w), plane.choice) for w, plane in pairs if w > 0]

    @property
    def sets(self) -> list[TopFeatures]:
        """Of the best plane, and of the others."""
        return [self.best.choice, *(plane.choice for plane in self.planes)]

    def map(self, column: Callable[[Array], Array]) -> Descent:
        """The same with other numbers for the columns."""
        best, *planes = (replace(plane, choice=plane.choice.map(column)) for plane in (self.best, *self.planes))
        return replace(self, best=best, planes=planes)


def solve_many(problem: Problem, k: int, start: Array | None = None) -> Found:
    """Solve for k features; ``start`` is a guess of the dual point."""
    scale = comfortable(problem.mass)
    if scale != 1:
        return solve_many(problem.times(scale), k, start).times(1 / scale)
    if k >= problem.size:
        return everything(problem)
    descent = minimise(lambda point: _plane(problem, k, point), problem.start if start is None else start)
    gain = problem.gains(descent.best.point)
    near = problem.top(gain, k + AROUND).cells
    columns = np.unique(np.concatenate((near, *(choice.cells for choice in descent.sets))))
    ties = _n_tied(gain, descent.best, problem.sizes)
    found = settled(
        replace(problem.only(columns), partial=True), k, descent.map(lambda c: np.searchsorted(columns, c)), ties
    )
    return found.map(lambda c: columns[c])


def settled(problem: Problem, k: int, descent: Descent, n_ties: int) -> Found:
    """What a descent leads to, with its bound; ``n_ties`` features share the last place at its best point.

    The problem needs no more columns than those of the descent's sets, and of the next best ones at its best point.
    """
    best, n = descent.best, descent.n_evaluations
    total = sum(w for w, _ in descent.mixed)
    mixture = tuple((w / total, choice) for w, choice in descent.mixed)
    gain = problem.gains(best.point)
    height = height_of(best.choice, gain)
    if is_best(problem, best.choice, best.point, gain, n_ties):
        choice, value = best.choice, value_of(problem, best.choice)
        bound, gap = judged(problem, value, value)[0], 0.0
    else:
        sets = [Held(plane.choice, plane.masses, plane.gain) for plane in (best, *descent.planes)]
        choice, value = best_whole(ExchangeView(problem, k, best.point, gain), mixture, sets, height)
        bound, gap = judged(problem, value, height)
    return Found(choice, value, bound, gap, n_ties, n, best.point, lambda: mixture)


def minimise(evaluate: Callable[[Array], Plane], start: Array) -> Descent:
    """Planes until no new one is lower."""
    best = evaluate(np.maximum(start, SMALLEST))
    planes, weights, n, inside = [best], np.ones(1), 1, 1e-2
    while n < _MOST and best.height > 0:
        weights, floor, point = mix(planes, weights, best.point)
        if best.height - floor <= CLOSED * best.height:
            break
        nearer = False
        if (point < inside * start).any():  # a class with hardly any mass in all sets: look from inside, ever closer
            point = np.maximum(point, inside * start)
            point /= point.sum()
            nearer = inside > _FARTHEST
            inside = max(inside**2, _FARTHEST)
        plane = evaluate(np.maximum(point, SMALLEST))
        n += 1
        best = plane if plane.height < best.height else best
        if _known(plane, planes):
            if nearer:
                continue
            break
        if len(planes) > max(_MANY, 2 * len(start)):
            planes, weights = [kept for kept, w in zip(planes, weights, strict=True) if w > 0], weights[weights > 0]
        planes.append(plane)
        weights = np.append(weights, 0.0)
    promising = np.argsort([-plane.gain for plane in planes], kind="stable")[:PROMISING]
    kept = sorted({*promising.tolist(), *np.flatnonzero(weights).tolist()})
    return Descent(best, [planes[i] for i in kept], weights[kept], n)


def _plane(problem: Problem, k: int, point: Array) -> Plane:
    gain = problem.gains(point)
    choice = problem.top(gain, k)
    return Plane(point, float(choice.sum(gain)), choice.sum(problem.totals), choice)


def _known(plane: Plane, planes: list[Plane]) -> bool:
    """Whether this set is in the master already: then nothing new can come."""
    return any(
        len(plane.choice.cells) == len(other.choice.cells)
        and (plane.masses == other.masses).all()
        and (np.sort(plane.choice.cells) == np.sort(other.choice.cells)).all()
        for other in planes
    )


def _n_tied(gain: Array, best: Plane, sizes: Array) -> int:
    """Features that share the last place at the dual point; 0 if all of them are taken."""
    n, sure = tied(gain, gain[best.choice.cells].min(), sizes)
    return int(n) if n > best.choice.counts.sum() - sure else 0


def tied(gain: Array, last: float, sizes: Array | int = 1) -> Array:
    """How many features have the last gain, up to rounding, and how many a larger one."""
    equal = np.abs(gain - last) <= 1e-9 * last
    return np.array([np.sum(equal * sizes), np.sum(((gain > last) & ~equal) * sizes)], np.int64)


def mix(planes: list[Plane], weights: Array, reference: Array) -> tuple[Array, float, Array]:
    """The best mixture of sets: weights, its value (D)(x), and the lowest point under their planes."""
    masses = np.array([plane.masses for plane in planes]).T
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.array([plane.point for plane in planes]).T / reference[:, None])
    heights = np.array([plane.height for plane in planes])
    heights = heights + np.where(masses > 0, masses * logs, 0.0).sum(axis=0)  # of each set, at the reference
    master = Master(masses, heights, reference)
    weights, point = master.solve(weights)
    return weights, master.value(weights), point
