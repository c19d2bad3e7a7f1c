"""A solution in terms of columns of a problem, before it is one of features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from nfs_dask.solvers.gains import set_gain
from nfs_dask.solvers.problem import Problem
from nfs_dask.solvers.solution import Array
from nfs_dask.solvers.topk import Choice


@dataclass(frozen=True)
class Found:
    """A support, its value and a bound; the mixture of sets is best for the second dual."""

    choice: Choice
    value: float
    bound: float
    ties: int
    n_evaluations: int
    point: Array  # (C, ) of the classes of the problem
    mixture: tuple[tuple[float, Choice], ...]  # weights, sum 1, and sets of k features

    def map(self, column: Callable[[Array], Array]) -> Found:
        """The same with other numbers for the columns."""
        mixture = tuple((weight, choice.map(column)) for weight, choice in self.mixture)
        return replace(self, choice=self.choice.map(column), mixture=mixture)

    def times(self, scale: float) -> Found:
        """What it is for counts multiplied by a power of two; the bound is rounded upward."""
        bound = self.bound * scale
        bound = bound if bound / scale >= self.bound else float(np.nextafter(bound, np.inf))
        return replace(self, value=self.value * scale, bound=bound)


def value_of(problem: Problem, choice: Choice) -> float:
    """The gain of a set."""
    return set_gain(problem.totals[:, choice.cells], choice.counts)[0]


def best_of(problem: Problem, choices: list[Choice]) -> tuple[Choice, float]:
    """The first of the sets with the largest gain, and that gain."""
    choices = list({id(choice): choice for choice in choices}.values())  # the ends of a bracket are often one set
    values = [value_of(problem, choice) for choice in choices]
    best = int(np.argmax(values))
    return choices[best], values[best]


def everything(problem: Problem) -> Found:
    """All features: nothing to choose, and nothing lost."""
    choice = Choice(np.arange(len(problem.sizes)), problem.sizes)
    value, point = set_gain(problem.totals, problem.sizes)
    return Found(choice, value, value, 0, 1, point, ((1.0, choice),))
