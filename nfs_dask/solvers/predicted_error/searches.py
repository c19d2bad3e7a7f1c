"""Searches for the k features with which the predicted error is smallest.

None but branch and bound is sure to find them. All try a feature in O(1) for each pair of classes. Where errors are
equal, to 1 part in 10^12, lower features are added and higher ones taken away: what is found is the same everywhere.

References: ERR section 1, which names the searches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nfs_dask.errors import InputError
from nfs_dask.solvers.predicted_error.bound_kernels import TIES
from nfs_dask.solvers.predicted_error.candidates import Candidates
from nfs_dask.solvers.predicted_error.estimate import ErrorProblem, estimate
from nfs_dask.solvers.predicted_error.kept_set import KeptSet
from nfs_dask.solvers.predicted_error.prefixes import distinct_features, prefix_errors
from nfs_dask.solvers.solution import Array

Progress = Callable[[int, int], None]  # features chosen so far, and how many there are to be


@dataclass(frozen=True)
class SearchResult:
    """The features a search has found."""

    features: Array  # (k,) int64, ascending
    error: float  # predicted with these features
    order: Array | None  # (k,) in the order they were taken, where each set is part of the next
    sizes: Array  # (n,) ascending sizes of the sets that were visited
    errors: Array  # (n,) the smallest error seen of each size
    n_evaluated: int  # candidates whose error was worked out
    optimal: bool = False  # whether no other set of this size has a smaller error


def ranked(problem: ErrorProblem, k: int, order: Array, progress: Progress | None = None) -> SearchResult:
    """The first k features of an order.

    >>> problem = ErrorProblem.of([[0.6, 0.1, 0.3], [0.2, 0.5, 0.3]], n_tokens=6)
    >>> ranked(problem, 1, np.array([2, 1, 0])).errors.round(3).tolist()
    [0.5, 0.5]
    """
    order = distinct_features(order, problem.n_features)[: max(0, int(k))]
    errors = prefix_errors(problem, order)
    _tell(progress, len(order), len(order))
    return _result(problem, order, dict(enumerate(errors.tolist())), len(errors), order)


def best_individual(
    problem: ErrorProblem, k: int, among: Array | None = None, progress: Progress | None = None
) -> SearchResult:
    """The k features that are best when each is kept alone; what they are worth together is not looked at."""
    candidates, k = _open(problem, k, among)
    errors = candidates.all_errors(KeptSet(problem))
    order = candidates.features[np.argsort(_rounded(errors), kind="stable")[:k]]
    found = ranked(problem, k, order, progress)
    return _result(problem, order, dict(enumerate(found.errors.tolist())), candidates.n_evaluated, order)


def forward(
    problem: ErrorProblem, k: int, among: Array | None = None, progress: Progress | None = None
) -> SearchResult:
    """Sequential forward selection: add the feature that makes the error smallest, k times.

    >>> problem = ErrorProblem.of([[0.6, 0.1, 0.3], [0.2, 0.5, 0.3]], n_tokens=6)
    >>> forward(problem, 2).order.tolist()
    [1, 0]
    """
    candidates, k = _open(problem, k, among)
    walk = _Walk(problem, candidates, k, progress)
    walk.grow(k)
    return walk.result(np.array(walk.kept.members, np.int64))


def plus_minus(
    problem: ErrorProblem,
    k: int,
    add: int = 2,
    drop: int = 1,
    among: Array | None = None,
    progress: Progress | None = None,
) -> SearchResult:
    """Add the best ``add`` features one by one, take the worst ``drop`` away, and so on until there are k.

    With more to drop than to add it starts with all features. The last round ends at k.
    """
    if min(add, drop) < 0 or add == drop:
        raise InputError(f"add={add} and drop={drop} get nowhere; give two different numbers of 0 or more")
    candidates, k = _open(problem, k, among)
    walk = _Walk(problem, candidates, k, progress)
    if add > drop:
        most = len(candidates.features)
        while walk.size < k:
            walk.grow(min(walk.size + add, most))
            walk.shrink(k if walk.size == most else min(walk.size - drop, k))
    else:
        walk.start_with_all()
        while walk.size > k:
            walk.shrink(max(walk.size - drop, 0))
            walk.grow(k if walk.size == 0 else max(walk.size + add, k))
    return walk.result()


def floating(
    problem: ErrorProblem, k: int, among: Array | None = None, progress: Progress | None = None
) -> SearchResult:
    """Sequential floating forward selection: after each addition, take away features while that beats what is known.

    What is known is the best set seen of each size, and the search goes on from no worse one.
    """
    candidates, k = _open(problem, k, among)
    walk = _Walk(problem, candidates, k, progress)
    known: dict[int, list[int]] = {}
    while walk.size < k:
        walk.grow(walk.size + 1)
        if walk.improved:
            known[walk.size] = list(walk.kept.members)
        else:
            walk.become(known[walk.size])
        while walk.size > 1 and walk.shrink_if_better():
            known[walk.size] = list(walk.kept.members)
    return walk.result()


class _Walk:
    """A set that grows and shrinks, the candidates outside of it, and the smallest error seen of each size."""

    def __init__(self, problem: ErrorProblem, candidates: Candidates, k: int, progress: Progress | None) -> None:
        self.kept = KeptSet(problem)
        self.improved = True  # whether the last step led to a smaller error than was known of that size
        self._problem, self._candidates, self._k, self._progress = problem, candidates, k, progress
        self._n_without = 0
        self._furthest = 0
        self._best: dict[int, float] = {}
        self._note()

    @property
    def size(self) -> int:
        return len(self.kept)

    def start_with_all(self) -> None:
        features = self._candidates.features.tolist()
        for feature in features:
            self._candidates.take(feature)
        self.kept = KeptSet(self._problem, features)
        self._best.clear()
        self._note()

    def become(self, members: list[int]) -> None:
        """Another set."""
        for feature in set(self.kept.members) - set(members):
            self._candidates.give_back(feature)
        for feature in set(members) - set(self.kept.members):
            self._candidates.take(feature)
        self.kept = KeptSet(self._problem, members)

    def grow(self, size: int) -> None:
        """Add the best features, one by one."""
        while self.size < size:
            feature = self._candidates.best(self.kept)
            assert feature is not None  # sizes are at most the number of candidates
            self._candidates.take(feature)
            self.kept.add(feature)
            self._note()

    def shrink(self, size: int) -> None:
        """Take away what is missed least, one by one."""
        while self.size > size:
            self._drop(self._least_missed()[0])

    def shrink_if_better(self) -> bool:
        """Take away what is missed least, if that leaves a better set than is known of its size."""
        feature, error = self._least_missed()
        known = self._best[self.size - 1] * (1 - TIES)
        if error >= known:
            return False
        smaller = KeptSet(self._problem, [member for member in self.kept.members if member != feature])
        if smaller.error >= known:  # errors are rounded: without this, a search could go round in circles
            return False
        self._drop(feature)
        return True

    def result(self, order: Array | None = None) -> SearchResult:
        n_evaluated = self._candidates.n_evaluated + self._n_without
        return _result(self._problem, np.array(self.kept.members, np.int64), self._best, n_evaluated, order)

    def _least_missed(self) -> tuple[int, float]:
        members, errors = self.kept.errors_without()
        self._n_without += len(members)
        least = errors.min()
        return int(members[errors <= least * (1 + TIES)][-1]), float(least)

    def _drop(self, feature: int) -> None:
        self.kept.remove(feature)
        self._candidates.give_back(feature)
        self._note()

    def _note(self) -> None:
        error = self.kept.error
        self.improved = error < self._best.get(self.size, np.inf) * (1 - TIES)
        if self.improved:
            self._best[self.size] = error
        if self._progress is not None and min(self.size, self._k) > self._furthest:
            self._furthest = min(self.size, self._k)
            self._progress(self._furthest, self._k)


def _open(problem: ErrorProblem, k: int, among: Array | None) -> tuple[Candidates, int]:
    """The features to choose from, and how many to choose of them."""
    among = None if among is None else distinct_features(among, problem.n_features)
    candidates = Candidates(problem, among)
    return candidates, max(0, min(int(k), len(candidates.features)))


def _result(
    problem: ErrorProblem, members: Array, best: dict[int, float], n_evaluated: int, order: Array | None
) -> SearchResult:
    features = np.sort(members).astype(np.int64)
    sizes = np.array(sorted(best), np.int64)
    errors = np.array([best[size] for size in sizes.tolist()])
    return SearchResult(features, estimate(problem, features).error, order, sizes, errors, n_evaluated)


def _rounded(errors: Array) -> Array:
    """Errors to 40 bits, so that those equal up to rounding are equal."""
    fraction, exponent = np.frexp(errors)
    return np.asarray(np.ldexp(np.round(np.ldexp(fraction, 40)), exponent - 40))


def _tell(progress: Progress | None, done: int, total: int) -> None:
    if progress is not None and total:
        progress(done, total)
