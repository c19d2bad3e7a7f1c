"""The best mixture of sets: maximise the second dual (D)(sum w_D 1_D) over weights on the simplex.

Newton steps with a logarithmic barrier come close; Newton steps on the optimality conditions give the last digits.
"""

from __future__ import annotations

import numpy as np

from nfs_dask.solvers.gains import divergence
from nfs_dask.solvers.solution import Array

_LEAST = 1e-15  # last barrier, relative
_LEVEL = 1e-5  # how much lower, relatively, a plane may be that could carry a little weight
_ACTIVE = 3e-8  # weight from which on a set counts as carrying some
_POLISHED = 4  # Newton steps


class Master:
    """Sets by their masses (C, n) and the sums of their gains at a reference point (C, ), (n, )."""

    def __init__(self, masses: Array, heights: Array, reference: Array) -> None:
        self.masses, self.heights, self.reference = masses, heights, reference

    def value(self, weights: Array) -> float:
        """(D) of a mixture, less its value at 0."""
        mixed = self.masses @ weights
        return float(self.heights @ weights - divergence(mixed[:, None], self.reference)[0])

    def solve(self) -> Array:
        """Weights, by a barrier that is lowered."""
        n = len(self.heights)
        weights = np.full(n, 1 / n)
        if n == 1:
            return weights
        barrier = max(float(np.ptp(self.heights)), 1e-3 * float(self.heights.max()))
        least = _LEAST * max(float(self.heights.max()), np.finfo(float).tiny)
        while barrier > least:
            barrier *= 0.1
            for _ in range(30):
                step, decrement = self._newton(weights, barrier)
                if decrement <= 1e-8:
                    break
                weights = self._move(weights, step, barrier)
        return weights

    def polish(self, weights: Array) -> tuple[Array, Array]:
        """The last digits of weights, to which the height at a corner is sensitive, and the lowest point.

        Sets of hardly any weight may or may not take part; whichever way leaves the smallest gap is right.
        """
        mixed = self.masses @ weights
        point = mixed / mixed.sum()
        present = np.flatnonzero(mixed)
        levels = self._levels(point, present)
        best = (weights, point, levels.max() - self.value(weights))
        for active in (weights > _ACTIVE, (weights > _ACTIVE) | (levels > levels.max() * (1 - _LEVEL))):
            polished, exact = self._solve_equations(weights, np.flatnonzero(active), present)
            gap = self._levels(exact, present).max() - self.value(polished)
            if gap < best[2]:
                best = (polished, exact, gap)
        return best[0], best[1]

    def _levels(self, point: Array, present: Array) -> Array:
        """Heights of all planes at a point; the largest is a lower bound of the best height."""
        logs = np.log(point[present] / self.reference[present])
        return np.asarray(self.heights - self.masses[present].T @ logs)

    def _solve_equations(self, weights: Array, active: Array, present: Array) -> tuple[Array, Array]:
        """Newton steps towards all active planes equally high, with the shares of their mixture as the point's."""
        masses = self.masses[present][:, active]
        scale = (masses @ weights[active]).sum()
        masses, heights, reference = masses / scale, self.heights[active] / scale, self.reference[present]
        w = weights[active] / weights[active].sum()
        logs = wanted = _log_shares(masses, w, reference)
        for _ in range(_POLISHED):
            step = _equalise(masses, heights, w, logs, wanted)
            w, logs = np.maximum(w + step[: len(w)], 0.0), logs + step[len(w) : -1]
            w /= w.sum()
            wanted = _log_shares(masses, w, reference)
        polished, exact = np.zeros_like(weights), np.zeros(len(self.reference))
        polished[active] = w
        exact[present] = np.maximum(reference * np.exp(np.clip(logs, -600, 600)), np.finfo(float).tiny)
        return polished, exact / exact.sum()

    def _newton(self, weights: Array, barrier: float) -> tuple[Array, float]:
        """Newton step on sum w = 1, in units of the weights, and its decrement in units of the barrier.

        The matrix is 1 + U'U / barrier with U of at most C rows; its singular vectors keep the digits it would lose.
        """
        present = self.masses.any(axis=1)
        masses = self.masses[present]
        mixed = masses @ weights
        slope = self.heights - masses.T @ np.log(mixed / mixed.sum() / self.reference[present])
        scaled = masses * weights
        root = (scaled - np.outer(mixed, scaled.sum(axis=0)) / mixed.sum()) / np.sqrt(mixed)[:, None]
        _, sigma, rows = np.linalg.svd(root, full_matrices=False)
        shrink = sigma**2 / (barrier + sigma**2)
        right = np.stack((slope * weights / barrier, weights, np.ones_like(weights)))
        solved = right - ((right @ rows.T) * shrink) @ rows
        ahead = solved[0] + solved[2]
        step = ahead - solved[1] * (weights @ ahead) / (weights @ solved[1])
        return step, float(step @ step + ((root @ step) ** 2).sum() / barrier)

    def _move(self, weights: Array, step: Array, barrier: float) -> Array:
        """A step that stays inside and does not lose, beyond rounding."""
        length = min(1.0, 0.95 / max(float(-step.min()), 0.95))
        before = self.value(weights)
        slack = 10 * np.finfo(float).eps * float(self.heights.max())
        while True:
            moved = weights * (1 + length * step)
            moved /= moved.sum()
            gained = self.value(moved) - before + barrier * float(np.log(moved / weights).sum())
            if gained >= -slack or length < 1e-6:
                return moved
            length /= 2


def _log_shares(masses: Array, w: Array, reference: Array) -> Array:
    mixed = masses @ w
    return np.log(np.maximum(mixed / mixed.sum(), np.finfo(float).tiny) / reference)


def _equalise(masses: Array, heights: Array, w: Array, logs: Array, wanted: Array) -> Array:
    """Newton step in the weights, the logs of the point, and the common height."""
    levels = heights - masses.T @ logs
    height = w @ levels
    error = np.concatenate((height - levels, wanted - logs, [1 - w.sum()]))
    by_weight = masses / np.maximum(masses @ w, np.finfo(float).tiny)[:, None] - masses.sum(axis=0) / masses.sum(
        axis=0
    ).dot(w)
    matrix = np.block(
        [
            [np.zeros((len(w), len(w))), -masses.T, -np.ones((len(w), 1))],
            [-by_weight, np.eye(len(logs)), np.zeros((len(logs), 1))],
            [np.ones((1, len(w))), np.zeros((1, len(logs) + 1))],
        ]
    )
    return np.asarray(np.linalg.lstsq(matrix, error, rcond=1e-13)[0])
