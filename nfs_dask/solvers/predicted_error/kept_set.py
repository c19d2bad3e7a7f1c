"""A set of kept features that grows and shrinks, and its predicted error.

References: ERR section 2.4.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from nfs_dask.solvers.predicted_error import error_kernels
from nfs_dask.solvers.predicted_error.estimate import ErrorProblem
from nfs_dask.solvers.solution import Array


class KeptSet:
    """Running moments of a set of features: what one more or one less makes of the error takes O(1) for each pair."""

    def __init__(self, problem: ErrorProblem, features: Iterable[int] = ()) -> None:
        self.problem = problem
        self._restart(list(features))

    def __len__(self) -> int:
        return len(self.members)

    @property
    def error(self) -> float:
        """The predicted error with these features."""
        return float(error_kernels.error_now(*self._moments, self._rest, *self.problem.task))

    def add(self, feature: int) -> None:
        self.members.append(feature)
        self._keep([feature])

    def remove(self, feature: int) -> None:
        """Moments are made anew: nothing of the feature is left in them."""
        self._restart([member for member in self.members if member != feature])

    def errors_with(self, points: Array) -> Array:
        """Errors, (n,), with one more feature each, of probabilities ``points`` (n, C)."""
        out, last = np.empty(len(points)), len(self) + 1 == self.problem.n_features
        error_kernels.errors_with(points, *self.moments, last, self.problem.least, *self.problem.task, out)
        return out

    def errors_without(self) -> tuple[Array, Array]:
        """Members, ascending, and the error without each of them."""
        members, out = np.sort(self.members), np.empty(len(self))
        points = np.ascontiguousarray(self.problem.P[:, members].T)
        error_kernels.errors_without(points, self._rest, *self.problem.task, out)
        return members, out

    @property
    def moments(self) -> tuple[Array, Array, Array, Array]:
        """Weight, mean, spread and rest, as kernels want them."""
        return (*self._moments, self._rest)

    def _restart(self, features: list[int]) -> None:
        n = self.problem.n_classes
        self.members: list[int] = features
        self._moments = (np.zeros(n), np.zeros((n, n)), np.zeros((n, n)))
        self._rest = self.problem.whole()
        self._keep(features)

    def _keep(self, features: list[int]) -> None:
        error_kernels.keep(self.problem.P, np.array(features, np.int64), *self._moments, self._rest)
        if len(self) == self.problem.n_features:
            self._rest[:] = 0.0
        elif (lost := self._rest[0] < self.problem.least).any():
            self._rest[:, lost] = self.problem.least[lost], np.zeros(lost.sum())
