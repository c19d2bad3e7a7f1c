"""What cross-validation asks of a method: models of every k and alpha, from one pass or from several."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

from nfs_dask.arrays.block import Array
from nfs_dask.dataset import Dataset
from nfs_dask.methods.procedure import Procedure
from nfs_dask.models.model import Model
from nfs_dask.statistics.panels import Panels
from nfs_dask.statistics.statistic import Statistic

Fit = Callable[[int, "float | None"], Model]  # the model of a k and an alpha


@runtime_checkable
class FitOfMany(Protocol):
    """A `Fit` that makes models of several k at once, which share what they have in common."""

    def __call__(self, k: int, alpha: float | None) -> Model: ...

    def many(self, ks: Array) -> Sequence[Model]:
        """Those of some k, in their order; they do not smooth."""
        ...


class Recipe(Protocol):
    """How a method makes models from what is counted in one pass."""

    def statistic(self, n_classes: int) -> Statistic:
        """What is counted, of so many classes."""
        ...

    def fitting(self, classes: Array, panels: Panels) -> Fit:
        """Makes models of the documents that were counted in ``panels``; their evidence may be left out."""
        ...


@dataclass(frozen=True)
class Grid:
    """What is validated."""

    method: str  # by its name
    ks: Array  # (K,) int64, ascending
    alphas: tuple[float | None, ...]  # (None,) of a method that does not smooth
    parameters: Mapping[str, Any] = field(default_factory=dict)  # of the method, for people

    def models(self, fit: Fit) -> Sequence[Model]:
        """All of them, by alpha, then k."""
        if isinstance(fit, FitOfMany):
            return fit.many(self.ks)
        return tuple(fit(k, alpha) for k, alpha in self.pairs())

    def pairs(self) -> list[tuple[int, float | None]]:
        """Every k and alpha, in the same order."""
        return [(k, alpha) for alpha in self.alphas for k in self.ks.tolist()]

    def cells(self) -> list[Grid]:
        """Grids of one k and one alpha each, in the same order."""
        return [replace(self, ks=self.ks[j : j + 1], alphas=(a,)) for a in self.alphas for j in range(len(self.ks))]


@runtime_checkable
class LongRecipe(Protocol):
    """How a method makes models in several passes."""

    @property
    def one_by_one(self) -> bool:
        """Whether each k and alpha takes passes of its own."""
        ...

    def learn(self, dataset: Dataset, grid: Grid) -> Procedure[tuple[Array, Sequence[Model]]]:
        """The documents of each class under their weights, (C,), and the models of a grid; none without documents."""
        ...
