"""The lowest bound: minimise the sum of the k largest gains over points, for any number of classes.

A set D of the k largest gains at a point gives a plane in the logarithms of the point, below the sum everywhere. The
lowest point under some planes is dual to the best mixture x = sum w_D 1_D of their sets: (D)(x), the second dual, is a
lower value, and the shares of x are the next point (simplicial decomposition). The best mixture is found by Newton
steps over the sets that carry weight. A step that would make a weight negative stops where it is 0, and that set drops
out; when the others are in balance, the highest of all sets comes in, until none is higher.

References: NFS Theorem 3.2 and Proposition 3.7, (D), for C classes: docs/mathematics.md 3.4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from nfs_dask.arrays.compiling import kernel, kernel_part
from nfs_dask.solvers.naive_bayes.gains import SMALLEST, gains
from nfs_dask.solvers.solution import Array, FeatureSet

CLOSED = 1e-13  # relative width at which upper and lower value are one number
CLOSED_OF_MANY = 1e-6  # of more classes than the following, whose evaluations and mixtures take seconds
MANY = 50  # classes
_MOST = 300  # evaluations; three to twelve are usual
_MOST_SETS = 40  # of fewer than 20 classes, beyond which those without weight leave the mixture
_FARTHEST = 1e-250  # share of a class, relative to its start, that is as good as none
_PROMISING = 8  # sets without weight that are reported
_ENTERING, _STEPS = 500, 60  # sets coming in, and Newton steps between them
_BALANCED = 1e-16  # relative difference of levels that is rounding
_SLACK = 1e-15  # relative loss of a step that is rounding
_FLAT = 1e-14  # curvature that is none, relative to the largest
_TINY = float(np.finfo(float).tiny)
_LEAST = 1e-290  # weight to come in with


@dataclass(frozen=True)
class SupportingSet:
    """A best set at a point, and the sum of its gains there: a plane that supports the bound."""

    point: Array  # (C, )
    height: float
    masses: Array  # (C, ) of the set
    features: FeatureSet

    @property
    def value(self) -> float:
        """Gain of the set, to the digits that are worth choosing by."""
        return self.height - float(gains(self.masses[:, None], self.point)[0])


@dataclass(frozen=True)
class DualSolution:
    """The best point, and the sets whose mixture has the shares of it, or that gain most."""

    best: SupportingSet
    sets: list[SupportingSet]
    weights: Array  # of the sets in the mixture, sum 1
    n_evaluations: int

    def map(self, column: Callable[[Array], Array]) -> DualSolution:
        """Return the same with other numbers for the columns."""
        best, *sets = (replace(one, features=one.features.map(column)) for one in (self.best, *self.sets))
        return replace(self, best=best, sets=sets)


def minimize_dual(evaluate: Callable[[Array], SupportingSet], start: Array) -> DualSolution:
    """Evaluate points until the best mixture of their sets has the value of the lowest of them."""
    best = evaluate(np.maximum(start, SMALLEST))
    sets, weights, n, inside = [best], np.ones(1), 1, 1e-2
    closed = CLOSED if len(start) <= MANY else CLOSED_OF_MANY
    while n < _MOST and best.height > 0:
        weights, floor, point = best_mixture(sets, weights, best.point)
        if best.height - floor <= closed * best.height:
            break
        nearer = bool((point < inside * start).any())
        if nearer:  # a class with hardly any mass in all sets: look from inside, ever closer
            point = np.maximum(point, inside * start)
            point /= point.sum()
            nearer = inside > _FARTHEST
            inside = max(inside**2, _FARTHEST)
        new = evaluate(np.maximum(point, SMALLEST))
        n += 1
        lower = new.height < best.height * (1 - CLOSED)
        best = new if new.height < best.height else best
        known = [i for i, one in enumerate(sets) if _equal(new, one)]
        if known:
            sets[known[0]] = new  # whose plane is known to more digits here
            if nearer or lower:
                continue
            break
        if len(sets) > max(_MOST_SETS, 2 * len(start)):
            sets, weights = [one for one, w in zip(sets, weights, strict=True) if w > 0], weights[weights > 0]
        sets.append(new)
        weights = np.append(weights, 0.0)
    promising = np.argsort([-one.value for one in sets], kind="stable")[:_PROMISING]
    kept = sorted({*promising.tolist(), *np.flatnonzero(weights).tolist()})
    return DualSolution(best, [sets[i] for i in kept], weights[kept] / weights.sum(), n)


def _equal(one: SupportingSet, other: SupportingSet) -> bool:
    return bool((one.masses == other.masses).all()) and np.array_equal(one.features.columns, other.features.columns)


def best_mixture(sets: list[SupportingSet], weights: Array, reference: Array) -> tuple[Array, float, Array]:
    """Return the best weights of some sets, (D) of that mixture, and the lowest point under their planes."""
    masses = np.array([one.masses for one in sets])
    _, exponent = np.frexp(masses.sum(axis=1).max())
    scale = float(np.ldexp(1.0, min(-int(exponent), 1000)))
    heights = np.array([one.height + _rise(one, reference) for one in sets])
    # of masses that weights would make 0, a mixture would know no logarithm
    masses, heights = np.maximum(masses * scale, SMALLEST * (masses > 0)), heights * scale
    weights, (n, n_classes) = weights.copy(), masses.shape
    *work, point = np.empty((3, n)), np.empty((3, n_classes)), np.empty((n, n_classes)), np.empty(n_classes)
    _maximize(masses, heights, reference, weights, point, *work, np.empty((n, n)), np.empty(n, np.int64))
    mixed = (masses.T @ weights)[:, None]
    return weights, float(heights @ weights - gains(mixed, reference)[0]) / scale, point


def _rise(one: SupportingSet, reference: Array) -> float:
    """Return how much the plane of a set rises from its point to the reference, to the digits of near points."""
    first = (one.point - reference) / reference
    if (np.abs(first) < 0.5).all():
        second = one.masses * (np.log1p(first) - first)
        return float((second + (one.masses - one.masses.sum() * reference) * first).sum())
    has = one.masses > 0
    return float((one.masses[has] * np.log(one.point[has] / reference[has])).sum())


# The kernels below work in memory that is given to them, number by number: that compiles in a third of the time.


@kernel
def _maximize(masses, heights, reference, weights, point, of_sets, of_classes, columns, factor, active):
    """Masses are (n, C); ``weights`` are changed in place and ``point`` is filled."""
    levels, n = of_sets[0], len(weights)
    work = of_sets, of_classes, columns, factor, active
    for _ in range(_ENTERING):
        value = _balance(masses, heights, reference, weights, *work)
        highest = 0
        for i in range(n):
            if levels[i] > levels[highest]:
                highest = i
        if weights[highest] > 0 or levels[highest] - value <= 2 * _BALANCED * abs(value):
            break
        if not _admit(masses, heights, reference, weights, highest, of_sets, of_classes):
            break
    _mix(masses, weights, point)


@kernel_part
def _mix(masses, weights, point):
    """Write the shares of a mixture; returns its mass."""
    total = 0.0
    for c in range(len(point)):
        point[c] = 0.0
        for i in range(len(weights)):
            if weights[i] > 0:
                point[c] += weights[i] * masses[i, c]
        total += point[c]
    for c in range(len(point)):
        point[c] /= total
    return total


@kernel_part
def _find_levels(masses, heights, reference, weights, levels, of_classes):
    """Write heights of the planes at the shares p of a mixture; returns their mean under its weights, its value.

    Near the reference a, log(p / a) counts for a set of masses B_c by its part of second order, and by p / a - 1 times
    B_c - B a_c, which is small for sets like the mixture: the digits that p cannot hold do no harm.
    """
    mixed, first, second = of_classes[0], of_classes[1], of_classes[2]
    n_classes = len(mixed)
    _mix(masses, weights, mixed)
    near = True
    for c in range(n_classes):
        near = near and abs(mixed[c] - reference[c]) < 0.5 * reference[c]
    for c in range(n_classes):
        first[c] = (mixed[c] - reference[c]) / reference[c] if near else 0.0
        if near:
            second[c] = math.log1p(first[c]) - first[c]
        else:
            second[c] = math.log(mixed[c] / reference[c]) if mixed[c] > 0 else -np.inf
    value = 0.0
    for i in range(len(levels)):
        mass, level = 0.0, heights[i]
        for c in range(n_classes):
            mass += masses[i, c]
        for c in range(n_classes):
            if masses[i, c] > 0:
                level -= masses[i, c] * second[c]
            level -= (masses[i, c] - mass * reference[c]) * first[c]
        levels[i] = level
        if weights[i] > 0:
            value += weights[i] * level
    return value


@kernel_part
def _spread(levels, active, n):
    """Return how far apart the levels of the active sets are."""
    least = most = levels[active[0]]
    for j in range(1, n):
        least, most = min(least, levels[active[j]]), max(most, levels[active[j]])
    return most - least


@kernel_part
def _balance(masses, heights, reference, weights, of_sets, of_classes, columns, factor, active):
    """Bring the levels of all sets that carry weight into balance, or let sets drop out; returns the value."""
    levels, trial, step = of_sets[0], of_sets[1], of_sets[2]
    value = _find_levels(masses, heights, reference, weights, levels, of_classes)
    least, poor = np.inf, 0
    for _ in range(_STEPS):
        n = 0
        for i in range(len(weights)):
            active[n] = i
            n += int(weights[i] > 0)
        spread = _spread(levels, active, n)
        poor = 0 if spread < 0.5 * least else poor + 1
        least = min(least, spread)
        if spread <= _BALANCED * abs(value) or poor > 3:
            break
        _find_step(masses, weights, levels, active, n, of_classes[0], columns, factor, step)
        longest, blocked = 1.0, -1
        for j in range(n):
            if weights[active[j]] + longest * step[j] <= 0:
                longest, blocked = -weights[active[j]] / step[j], active[j]
        length, moved = longest, value
        while length > 1e-12 * longest:
            total = 0.0
            for i in range(len(weights)):
                trial[i] = 0.0
            for j in range(n):
                i = active[j]
                if i != blocked or length < longest:
                    trial[i] = max(weights[i] + length * step[j], 0.0)
                total += trial[i]
            for i in range(len(weights)):
                trial[i] /= total
            moved = _find_levels(masses, heights, reference, trial, levels, of_classes)
            # beside large masses values are rounded by more than a step gains, but levels still tell
            if moved >= value - _SLACK * abs(value) or _spread(levels, active, n) <= 0.5 * spread:
                break
            length /= 4
        if blocked >= 0 and length == longest:
            least, poor = np.inf, 0
        for i in range(len(weights)):
            weights[i] = trial[i]
        value = moved
    return value


@kernel_part
def _find_step(masses, weights, levels, active, n, mixed, columns, factor, step):
    """Write the Newton step of the active weights, sum 0, where curvature step = slope.

    It is relative to the set of largest weight. The curvature is U'U with a column of U for each other set; U has no
    part along the mixture. Solved by Cholesky's method; where there is no curvature it is given a little.
    """
    n_classes, total = len(mixed), _mix(masses, weights, mixed)
    pivot = 0
    for j in range(n):
        pivot = j if weights[active[j]] > weights[active[pivot]] else pivot
    base, base_mass = active[pivot], 0.0
    for c in range(n_classes):
        base_mass += masses[base, c]
    largest = 0.0
    for i in range(n):
        surplus = -base_mass
        for c in range(n_classes):
            surplus += masses[active[i], c]
        for c in range(n_classes):
            columns[i, c] = 0.0
            if mixed[c] > 0:
                difference = masses[active[i], c] - masses[base, c] - surplus * mixed[c]
                columns[i, c] = difference / math.sqrt(mixed[c] * total)
        step[i] = levels[active[i]] - levels[base]
        for j in range(i + 1):
            factor[i, j] = 0.0
            for c in range(n_classes):
                factor[i, j] += columns[i, c] * columns[j, c]
        largest = max(largest, factor[i, i])
    least = max(_FLAT * largest, _TINY)
    for i in range(n):  # the row of the pivot is 0, and so is its part of the solution
        for j in range(i + 1):
            for c in range(j):
                factor[i, j] -= factor[i, c] * factor[j, c]
            factor[i, j] = math.sqrt(max(factor[i, i], least)) if i == j else factor[i, j] / factor[j, j]
        for c in range(i):
            step[i] -= factor[i, c] * step[c]
        step[i] /= factor[i, i]
    rest = 0.0
    for i in range(n - 1, -1, -1):
        for c in range(i + 1, n):
            step[i] -= factor[c, i] * step[c]
        step[i] /= factor[i, i]
        rest += step[i]
    step[pivot] -= rest


@kernel_part
def _admit(masses, heights, reference, weights, new, of_sets, of_classes):
    """Give a set as much weight as does not take it below the others; False if that is none."""
    levels, old, share = of_sets[0], of_sets[1], 0.5
    for i in range(len(weights)):
        old[i] = weights[i]
    while share > _LEAST:
        for i in range(len(weights)):
            weights[i] = (1 - share) * old[i]
        weights[new] = share
        _find_levels(masses, heights, reference, weights, levels, of_classes)
        others = 0.0
        for i in range(len(weights)):
            if old[i] > 0:
                others += old[i] * levels[i]
        if levels[new] >= others:
            return True
        share *= 0.25
    for i in range(len(weights)):
        weights[i] = old[i]
    return False
