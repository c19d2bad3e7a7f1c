"""Mixtures of sets as amounts of each cell, moved until hardly any amount is a fraction.

References: NFS Propositions 3.9 and 3.10, (34), without a linear program.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from nfs_dask.solvers.naive_bayes.problem import Problem
from nfs_dask.solvers.naive_bayes.topk import TopFeatures
from nfs_dask.solvers.solution import Array

_WHOLE = 1e-9  # a share this close to a whole number is one


def settled_amounts(problem: Problem, mixture: Iterable[tuple[float, TopFeatures]], point: Array) -> Array:
    """How much a mixture takes of each cell, (M, ), with at most C fractions; weights add up to 1.

    It is moved along directions that keep the sum and the proportions of the masses, in which the second dual is flat.
    """
    amounts = np.zeros(len(problem.sizes))
    for weight, choice in mixture:
        amounts[choice.cells] += weight * choice.counts
    nearest = np.round(amounts)
    amounts = np.where(np.abs(amounts - nearest) <= _WHOLE, nearest, amounts)
    n_classes = len(problem.totals)
    loose = np.flatnonzero(amounts % 1)
    while len(loose) > n_classes:
        some = loose[: n_classes + 1]
        amounts[some] = _moved(problem.totals[:, some], amounts[some], point)
        loose = np.concatenate((some[amounts[some] % 1 > 0], loose[n_classes + 1 :]))
    return amounts


def _moved(f: Array, amounts: Array, point: Array) -> Array:
    """C + 1 amounts moved until one of them is whole: only the two that enclose a fraction are bounds for it."""
    rows = np.vstack((f - point[:, None] * f.sum(axis=0), np.ones(len(amounts))))[1:]
    rows /= np.maximum(np.abs(rows).max(axis=1, keepdims=True), np.finfo(float).tiny)
    direction = np.linalg.svd(rows)[2][-1]
    room = np.where(direction > 0, np.ceil(amounts) - amounts, amounts - np.floor(amounts))
    moving = np.abs(direction) > 1e-12 * np.abs(direction).max()
    steps = np.where(moving, room / np.maximum(np.abs(direction), np.finfo(float).tiny), np.inf)
    moved = amounts + steps.min() * direction
    nearest = np.round(moved)
    return np.where((steps == steps.min()) | (np.abs(moved - nearest) <= _WHOLE), nearest, moved)
