"""Two classes: curved cuts for the bound, the tie walk and single exchanges for the support.

References: NFS Theorem 3.2, section 3.5; docs/mathematics.md 3.4 and 3.5.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from nfs_dask.solvers.naive_bayes.climbing import n_incoming
from nfs_dask.solvers.naive_bayes.cuts import Cut, Minimum, minimise
from nfs_dask.solvers.naive_bayes.found import Found, best_of, everything, height_of, is_best, judged, value_of
from nfs_dask.solvers.naive_bayes.problem import Problem
from nfs_dask.solvers.naive_bayes.sieve import evaluator
from nfs_dask.solvers.naive_bayes.swaps import ascend
from nfs_dask.solvers.naive_bayes.tiewalk import Ties, find_ties, walk
from nfs_dask.solvers.naive_bayes.topk import TopFeatures
from nfs_dask.solvers.solution import Array


def solve_two(problem: Problem, k: int, swaps: bool, start: Array | None = None) -> Found:
    """Solve for k features; ``start`` is a guess of the dual point."""
    if k >= problem.size:
        return everything(problem)
    start = problem.start if start is None else start
    evaluate = evaluator(problem, k, start, n_incoming(k) if swaps else 0)
    minimum = minimise(evaluate, evaluate.start)
    columns = evaluate.columns(minimum)
    if columns is None:
        return recover(problem, k, minimum, evaluate.gains(minimum.best), swaps)
    place = np.empty(len(problem.sizes), np.int64)
    place[columns] = np.arange(len(columns))
    problem, minimum = problem.only(columns), minimum.map(lambda c: place[c])
    return recover(problem, k, minimum, problem.gains(minimum.best.point), swaps).map(lambda c: columns[c])


def recover(problem: Problem, k: int, minimum: Minimum, gain: Array, swaps: bool) -> Found:
    """The best support that the minimum suggests; ``gain`` is that of all columns at its point."""
    point = minimum.best.point
    ties = tied(problem, k, minimum, gain)

    def candidates() -> list[TopFeatures]:
        meeting = suggested(problem, minimum, gain, ties)
        return meeting + ascend(problem, meeting, point) if swaps else meeting

    return settled(problem, minimum, gain, candidates, ties.n)


def tied(problem: Problem, k: int, minimum: Minimum, gain: Array) -> Ties:
    """What is tied at the minimum; ``gain`` is that of all columns at its point."""
    sets = (cut.choice for cut in (minimum.best, minimum.low, minimum.high))
    return find_ties(gain, problem.sizes, problem.n_forced, k, *sets)


def suggested(problem: Problem, minimum: Minimum, gain: Array, ties: Ties) -> list[TopFeatures]:
    """Supports that meet at the minimum."""
    meeting = [minimum.best.choice, minimum.low.choice, minimum.high.choice]
    return [*meeting, walk(ties, gain, problem.totals, minimum.best.point)] if ties.n else meeting


def settled(
    problem: Problem, minimum: Minimum, gain: Array, candidates: Callable[[], list[TopFeatures]], n_ties: int
) -> Found:
    """The best support, with the bound of the minimum; unless its own set is proved best, one of the ``candidates``."""
    top, point = minimum.best.choice, minimum.best.point
    if is_best(problem, top, point, gain, n_ties):
        choice, value = top, value_of(problem, top)
        bound, gap = judged(problem, value, value)[0], 0.0
    else:
        choice, value = best_of(problem, candidates())
        bound, gap = judged(problem, value, height_of(top, gain))
    return Found(
        choice=choice,
        value=value,
        bound=bound,
        gap=gap,
        ties=n_ties,
        n_evaluations=minimum.n_evaluations,
        point=point,
        mix=partial(_mixture, problem, minimum),
    )


def _mixture(problem: Problem, minimum: Minimum) -> tuple[tuple[float, TopFeatures], ...]:
    """Both sets of a kink, weighted such that the slopes at it cancel."""
    a, b = minimum.best.point

    def slope(cut: Cut) -> float:
        masses = cut.choice.sum(problem.totals)
        return float(a * masses[1] - b * masses[0])

    low, high = slope(minimum.low), slope(minimum.high)
    if not low < 0 < high:
        flat: TopFeatures = (minimum.low if abs(low) <= abs(high) else minimum.high).choice
        return ((1.0, flat),)
    weight = high / (high - low)
    return ((weight, minimum.low.choice), (1 - weight, minimum.high.choice))
