"""Many classes: cutting planes over the simplex, with a master that is the second dual over mixtures of sets.

Each set D that is best at a point gives a plane in the logarithms of the point. The lowest point under all planes is dual to
the best mixture x = sum w_D 1_D of the sets, of which (D)(x) is a lower value and whose proportions are the next point. The
master is solved by Newton steps on w with a logarithmic barrier; it has as many variables as there are sets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nfs_dask.solvers.found import Found, best_of, everything
from nfs_dask.solvers.gains import divergence, exact_sum
from nfs_dask.solvers.problem import Problem
from nfs_dask.solvers.solution import Array
from nfs_dask.solvers.swaps import ascend
from nfs_dask.solvers.topk import Choice

CLOSED = 1e-13  # relative width at which upper and lower value are one number
_LEAST = 1e-15  # last barrier, relative
_ACTIVE = 1e-7  # weight from which on a set counts as carrying some
_POLISHED = 4  # Newton steps
_MOST = 300  # evaluations
_FORGET = 1e-9  # weight below which a set leaves the master, once there are many
_FARTHEST = 1e-250  # share of a class, relative to its start, that is as good as none
_MANY = 40  # sets


@dataclass(frozen=True)
class Plane:
    """A best set, and the sum of its gains at the point it was found at."""

    point: Array
    height: float
    masses: Array  # (C, )
    choice: Choice


def solve_many(problem: Problem, k: int, swaps: bool, start: Array | None = None) -> Found:
    """Solve for k features; ``start`` is a guess of the dual point."""
    if k >= problem.size:
        return everything(problem)
    best, planes, weights, n = _minimise(problem, k, problem.start if start is None else start)
    mixed = [(float(w), plane.choice) for w, plane in zip(weights, planes, strict=True) if w > _FORGET]
    total = sum(w for w, _ in mixed)
    candidates = [plane.choice for plane in planes]
    if swaps:
        candidates += [ascend(problem, choice, best.point) for _, choice in mixed]
    choice, value = best_of(problem, candidates)
    gain = problem.gains(best.point)
    bound = exact_sum(gain[best.choice.cells] * best.choice.counts)
    return Found(
        choice=choice,
        value=value,
        bound=max(value, bound),
        ties=_tied(problem, gain, best.choice, k),
        n_evaluations=n,
        point=best.point,
        mixture=tuple((w / total, choice) for w, choice in mixed),
    )


def _minimise(problem: Problem, k: int, start: Array) -> tuple[Plane, list[Plane], Array, int]:
    """The lowest plane's foot, the planes of the last master, and their weights."""
    best = _plane(problem, k, start)
    planes, weights, n, inside = [best], np.ones(1), 1, 1e-2
    while n < _MOST and best.height > 0:
        weights, floor, point = mix(planes, best.point)
        if best.height - floor <= CLOSED * best.height:
            break
        nearer = False
        if (point < inside * start).any():  # a class with hardly any mass in all sets: look from inside, ever closer
            point = np.maximum(point, inside * start)
            point /= point.sum()
            nearer = inside > _FARTHEST
            inside = max(inside**2, _FARTHEST)
        plane = _plane(problem, k, point)
        n += 1
        best = plane if plane.height < best.height else best
        if _known(plane, planes):
            if nearer:
                continue
            break
        if len(planes) > _MANY:
            planes = [kept for kept, w in zip(planes, weights, strict=True) if w > _FORGET]
        planes.append(plane)
        weights = np.append(weights, 0.0)
    return best, planes, weights, n


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


def _tied(problem: Problem, gain: Array, choice: Choice, k: int) -> int:
    last = gain[choice.cells].min()
    tied = np.abs(gain - last) <= 1e-9 * last
    sure = int(problem.sizes[(gain > last) & ~tied].sum())
    n = int(problem.sizes[tied].sum())
    return n if n > k - sure else 0


def mix(planes: list[Plane], reference: Array) -> tuple[Array, float, Array]:
    """The best mixture of sets: weights, its value (D)(x), and the lowest point under their planes."""
    masses = np.array([plane.masses for plane in planes]).T
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.array([plane.point for plane in planes]).T / reference[:, None])
    heights = np.array([plane.height for plane in planes])
    heights = heights + np.where(masses > 0, masses * logs, 0.0).sum(axis=0)  # of each set, at the reference
    master = _Master(masses, heights, reference)
    weights = master.solve()
    weights, point = master.polish(weights)
    return weights, master.value(weights), point


class _Master:
    """Maximise (D)(sum w_D 1_D) over weights on the simplex, by a barrier."""

    def __init__(self, masses: Array, heights: Array, reference: Array) -> None:
        self.masses, self.heights, self.reference = masses, heights, reference

    def value(self, weights: Array) -> float:
        mixed = self.masses @ weights
        return float(self.heights @ weights - divergence(mixed[:, None], self.reference)[0])

    def solve(self) -> Array:
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
        """Newton steps on the equations of the sets that carry weight: all planes equally high, shares as the point's.

        The barrier leaves the last digits of the weights open, to which the height at a corner is sensitive.
        """
        mixed = self.masses @ weights
        point = mixed / mixed.sum()
        active = np.flatnonzero(weights > _ACTIVE)
        if len(active) < 2 or (point <= 0).any():
            return weights, point
        masses, heights = self.masses[:, active] / mixed.sum(), self.heights[active] / mixed.sum()
        w, log_point = weights[active], np.log(point / self.reference)
        for _ in range(_POLISHED):
            total = masses.sum(axis=0) @ w
            shares = masses @ w / total
            if not (shares > 0).all():
                return weights, point
            levels = heights - masses.T @ log_point
            height = w @ levels
            error = np.concatenate((height - levels, np.log(shares / self.reference) - log_point, [1 - w.sum()]))
            by_weight = masses / (masses @ w)[:, None] - masses.sum(axis=0) / total
            matrix = np.block(
                [
                    [np.zeros((len(w), len(w))), -masses.T, -np.ones((len(w), 1))],
                    [-by_weight, np.eye(len(shares)), np.zeros((len(shares), 1))],
                    [np.ones((1, len(w))), np.zeros((1, len(shares) + 1))],
                ]
            )
            step = np.linalg.lstsq(matrix, error, rcond=1e-13)[0]
            w = np.maximum(w + step[: len(w)], 0.0)
            log_point = log_point + step[len(w) : -1]
        polished = np.zeros_like(weights)
        polished[active] = w / w.sum()
        exact = self.reference * np.exp(log_point)
        exact /= exact.sum()
        better = np.isfinite(exact).all() and self.height(exact) <= self.height(point)
        return (polished, exact) if better else (weights, point)

    def height(self, point: Array) -> float:
        """The largest plane at a point: a lower bound of the best height."""
        return float((self.heights - self.masses.T @ np.log(point / self.reference)).max())

    def _newton(self, weights: Array, barrier: float) -> tuple[Array, float]:
        """Newton step on sum w = 1, in units of the weights, and its decrement in units of the barrier.

        The matrix is 1 + U'U / barrier with U of at most C rows: its singular vectors keep the digits that it would lose.
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
