"""The best mixture of sets: maximise the second dual (D)(sum w_D 1_D) over weights on the simplex.

Newton steps over the sets that carry weight. A step that would make a weight negative stops where it is 0, and that
set drops out; when the others are in balance, the highest of all sets comes in, until none is higher.

References: NFS Proposition 3.7, (D), over mixtures of sets: docs/mathematics.md 3.8.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from nfs_dask.arrays.compiling import kernel
from nfs_dask.solvers.naive_bayes.gains import SMALLEST, divergence
from nfs_dask.solvers.solution import Array

_MOST = 500  # sets coming in
_STEPS = 60  # Newton steps between them
_BALANCED = 1e-16  # relative difference of levels that is rounding
_SLACK = 1e-15  # relative loss of a step that is rounding
_FLAT = 1e-14  # curvature that is none, relative to the largest
_TINY = float(np.finfo(float).tiny)
_LEAST = 1e-290  # weight to come in with


class Master:
    """Sets by their masses (C, n) and the sums of their gains at a reference point (C, ), (n, )."""

    def __init__(self, masses: Array, heights: Array, reference: Array) -> None:
        _, exponent = np.frexp(masses.sum(axis=0).max())
        self.scale = float(np.ldexp(1.0, min(-int(exponent), 1000)))
        # of masses that weights would make 0, a mixture would know no logarithm
        self.masses = np.maximum(masses * self.scale, SMALLEST * (masses > 0))
        self.heights, self.reference = heights * self.scale, reference

    def value(self, weights: Array) -> float:
        """(D) of a mixture, less its value at 0."""
        mixed = self.masses @ weights
        return float(self.heights @ weights - divergence(mixed[:, None], self.reference)[0]) / self.scale

    def solve(self, weights: Array) -> tuple[Array, Array]:
        """The best weights, from some that add up to 1, and the lowest point under the planes of the sets."""
        weights, point = weights.copy(), np.empty(len(self.reference))
        _solve(np.ascontiguousarray(self.masses.T), self.heights, self.reference, weights, point)
        return weights, point


@kernel
def _solve(masses, heights, reference, weights, point):
    """Masses are (n, C); ``weights`` are changed in place and ``point`` is filled."""
    levels = np.empty(len(heights))
    for _ in range(_MOST):
        value = _balance(masses, heights, reference, weights, levels)
        highest = np.argmax(levels)
        if weights[highest] > 0 or levels[highest] - value <= 2 * _BALANCED * abs(value):
            break
        if not _admit(masses, heights, reference, weights, levels, highest):
            break
    _mix(masses, weights, point)
    point /= point.sum()


@numba.njit(nogil=True)
def _mix(masses, weights, mixed):
    mixed[:] = 0
    for i in range(len(weights)):
        if weights[i] > 0:
            for c in range(len(mixed)):
                mixed[c] += weights[i] * masses[i, c]


@numba.njit(nogil=True)
def _levels(masses, heights, reference, weights, levels):
    """Heights of the planes at the shares p of a mixture, and their mean under its weights, which is its value.

    Near the reference a, log(p / a) counts for a set of masses B_c by its part of second order, and by p / a - 1 times
    B_c - B a_c, which is small for sets like the mixture: the digits that p cannot hold do no harm.
    """
    n_classes = masses.shape[1]
    mixed, first, second = np.empty(n_classes), np.zeros(n_classes), np.zeros(n_classes)
    _mix(masses, weights, mixed)
    mixed /= mixed.sum()
    near = (np.abs(mixed - reference) < 0.5 * reference).all()
    for c in range(n_classes):
        if near:
            first[c] = (mixed[c] - reference[c]) / reference[c]
            second[c] = math.log1p(first[c]) - first[c]
        else:
            second[c] = math.log(mixed[c] / reference[c]) if mixed[c] > 0 else -np.inf
    value = 0.0
    for i in range(len(levels)):
        mass = masses[i].sum()
        levels[i] = heights[i]
        for c in range(n_classes):
            if masses[i, c] > 0:
                levels[i] -= masses[i, c] * second[c]
            levels[i] -= (masses[i, c] - mass * reference[c]) * first[c]
        if weights[i] > 0:
            value += weights[i] * levels[i]
    return value


@numba.njit(nogil=True)
def _balance(masses, heights, reference, weights, levels):
    """Bring the levels of all sets that carry weight into balance, or let sets drop out; returns the value."""
    value = _levels(masses, heights, reference, weights, levels)
    trial, least, poor = np.empty_like(weights), np.inf, 0
    for _ in range(_STEPS):
        active = np.flatnonzero(weights)
        spread = levels[active].max() - levels[active].min()
        poor = 0 if spread < 0.5 * least else poor + 1
        least = min(least, spread)
        if spread <= _BALANCED * abs(value) or poor > 3:
            break
        step = _direction(masses, weights, levels, active)
        longest, blocked = 1.0, -1
        for j in range(len(active)):
            if weights[active[j]] + longest * step[j] <= 0:
                longest, blocked = -weights[active[j]] / step[j], active[j]
        length, moved = longest, value
        while length > 1e-12 * longest:
            trial[:] = weights
            for j in range(len(active)):
                trial[active[j]] = max(weights[active[j]] + length * step[j], 0.0)
            if blocked >= 0 and length == longest:
                trial[blocked] = 0.0
            trial /= trial.sum()
            moved = _levels(masses, heights, reference, trial, levels)
            # beside large masses values are rounded by more than a step gains, but levels still tell
            if moved >= value - _SLACK * abs(value) or levels[active].max() - levels[active].min() <= 0.5 * spread:
                break
            length /= 4
        if blocked >= 0 and length == longest:
            least, poor = np.inf, 0
        weights[:] = trial
        value = moved
    return value


@numba.njit(nogil=True)
def _direction(masses, weights, levels, active):
    """Newton step of the active weights, sum 0: curvature step = slope, relative to the set of largest weight.

    The curvature is U'U with a column of U for each set, less that of the largest one; U has no part along the mixture.
    """
    n, n_classes = len(active), masses.shape[1]
    mixed = np.empty(n_classes)
    _mix(masses, weights, mixed)
    total, pivot = mixed.sum(), np.argmax(weights[active])
    columns, slope = np.zeros((n - 1, n_classes)), np.empty(n - 1)
    base = masses[active[pivot]]
    j = 0
    for i in range(n):
        if i == pivot:
            continue
        other = masses[active[i]]
        surplus = (other.sum() - base.sum()) / total
        for c in range(n_classes):
            if mixed[c] > 0:
                columns[j, c] = (other[c] - base[c] - surplus * mixed[c]) / math.sqrt(mixed[c])
        slope[j] = levels[active[i]] - levels[active[pivot]]
        j += 1
    found = _solve_normal(columns, slope)
    step = np.empty(n)
    step[:pivot] = found[:pivot]
    step[pivot + 1 :] = found[pivot:]
    step[pivot] = -found.sum()
    return step


@numba.njit(nogil=True)
def _solve_normal(columns, right):
    """Solve U'U x = right by Cholesky's method, U' given by rows; where there is no curvature it is given a little."""
    n = len(right)
    factor, x, largest = np.zeros((n, n)), right.copy(), 0.0
    for i in range(n):
        for j in range(i + 1):
            for c in range(columns.shape[1]):
                factor[i, j] += columns[i, c] * columns[j, c]
        largest = max(largest, factor[i, i])
    least = max(_FLAT * largest, _TINY)
    for i in range(n):
        for j in range(i + 1):
            for c in range(j):
                factor[i, j] -= factor[i, c] * factor[j, c]
            factor[i, j] = math.sqrt(max(factor[i, i], least)) if i == j else factor[i, j] / factor[j, j]
    for i in range(n):
        for c in range(i):
            x[i] -= factor[i, c] * x[c]
        x[i] /= factor[i, i]
    for i in range(n - 1, -1, -1):
        for c in range(i + 1, n):
            x[i] -= factor[c, i] * x[c]
        x[i] /= factor[i, i]
    return x


@numba.njit(nogil=True)
def _admit(masses, heights, reference, weights, levels, new):
    """Give a set as much weight as does not take it below the others; False if that is none."""
    old, share = weights.copy(), 0.5
    while share > _LEAST:
        weights[:] = (1 - share) * old
        weights[new] = share
        _levels(masses, heights, reference, weights, levels)
        others = 0.0
        for i in range(len(old)):
            if old[i] > 0:
                others += old[i] * levels[i]
        if levels[new] >= others:
            return True
        share *= 0.25
    weights[:] = old
    return False
