"""Two classes: curved cuts for the bound, the tie walk and single exchanges for the support.

References: NFS Theorem 3.2, section 3.5; docs/mathematics.md 3.4 and 3.5.
"""

from __future__ import annotations

import numpy as np

from nfs_dask.solvers.naive_bayes.cuts import Cut, Minimum, minimise
from nfs_dask.solvers.naive_bayes.found import Found, best_of, everything, height_of, is_best, judged, value_of
from nfs_dask.solvers.naive_bayes.problem import Problem
from nfs_dask.solvers.naive_bayes.sieve import evaluator
from nfs_dask.solvers.naive_bayes.swaps import ascend, n_incoming
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
        return recover(problem, k, minimum, swaps)
    place = np.empty(len(problem.sizes), np.int64)
    place[columns] = np.arange(len(columns))
    return recover(problem.only(columns), k, minimum.map(lambda c: place[c]), swaps).map(lambda c: columns[c])


def recover(problem: Problem, k: int, minimum: Minimum, swaps: bool) -> Found:
    """The best support that the minimum suggests."""
    gain = problem.gains(minimum.best.point)
    candidates, ties = suggested(problem, k, minimum, gain)
    if swaps:
        candidates += ascend(problem, candidates, minimum.best.point)
    return settled(problem, minimum, gain, candidates, ties.n)


def suggested(problem: Problem, k: int, minimum: Minimum, gain: Array) -> tuple[list[TopFeatures], Ties]:
    """Supports that meet at the minimum, and what is tied there; ``gain`` is that of all columns at its point."""
    point = minimum.best.point
    ties = _ties(problem, gain, k, minimum)
    candidates = [minimum.best.choice, minimum.low.choice, minimum.high.choice]
    if ties.n:
        candidates.append(walk(ties, gain, problem.totals, point))
    return candidates, ties


def settled(problem: Problem, minimum: Minimum, gain: Array, candidates: list[TopFeatures], n_ties: int) -> Found:
    """The best of the candidates, with the bound of the minimum."""
    top, point = minimum.best.choice, minimum.best.point
    if is_best(problem, top, point, gain, n_ties):
        choice, value = top, value_of(problem, top)
        bound, gap = judged(problem, value, value)[0], 0.0
    else:
        choice, value = best_of(problem, candidates)
        bound, gap = judged(problem, value, height_of(top, gain))
    return Found(
        choice=choice,
        value=value,
        bound=bound,
        gap=gap,
        ties=n_ties,
        n_evaluations=minimum.n_evaluations,
        point=point,
        mixture=_mixture(problem, minimum),
    )


def _ties(problem: Problem, gain: Array, k: int, minimum: Minimum) -> Ties:
    n = len(problem.sizes)
    if problem.n_forced:
        gain = gain.copy()
        gain[n - problem.n_forced :] = np.inf
    apart = np.flatnonzero(minimum.low.choice.spread(n) != minimum.high.choice.spread(n))
    return find_ties(gain, problem.totals, problem.sizes, minimum.best.point, k, minimum.best.choice, apart)


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
