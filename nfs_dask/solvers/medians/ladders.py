"""The edges of a class and those of all classes together, in one order, so that a value is looked for once for both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nfs_dask.solvers.solution import Array


@dataclass(frozen=True)
class Ladders:
    """Of each class, the different ones of its own edges and the pooled ones, ascending: the *steps* of its ladder.

    What equals step j is in cell 2j + 1 of a class, what lies between the steps before and at j in cell 2j.
    """

    steps: Array  # (C, U, E + 1), infinities behind the last
    pooled: Array  # (C, U, B + 1) which step each pooled edge is, and E

    @classmethod
    def of(cls, edges: Array) -> Ladders:
        """Of edges (C + 1, B, U) that ascend along B and may repeat: those of each class, and last the pooled ones."""
        every = [_steps(own.T, edges[-1].T) for own in edges[:-1]]
        return cls(np.stack([steps for steps, _ in every]), np.stack([pooled for _, pooled in every]))


def _steps(own: Array, pooled: Array) -> tuple[Array, Array]:
    """Steps (U, E + 1) of two kinds of edges (U, B), and which ones the second kind are (U, B + 1)."""
    every = np.concatenate((own, pooled), axis=1)
    order = np.argsort(every, axis=1, kind="stable")
    ordered = np.take_along_axis(every, order, axis=1)
    is_new = np.ones(ordered.shape, bool)
    is_new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    numbers = np.cumsum(is_new, axis=1) - 1
    steps = np.full((len(every), every.shape[1] + 1), np.inf)
    np.put_along_axis(steps, numbers, ordered, axis=1)
    places = np.full(steps.shape, every.shape[1])
    np.put_along_axis(places, order, numbers, axis=1)
    return steps, places[:, own.shape[1] :]
