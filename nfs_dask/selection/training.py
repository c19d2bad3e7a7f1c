"""Documents by fold and without one of them, and what is counted of all folds but one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from nfs_dask.arrays.block import Array
from nfs_dask.dataset import Dataset
from nfs_dask.files.folder import Folder
from nfs_dask.sources.folds import Folds, by_fold, without_fold
from nfs_dask.sources.source import Source
from nfs_dask.statistics.panels import Panels
from nfs_dask.statistics.statistic import State, Statistic
from nfs_dask.store.cache import Described, Kept
from nfs_dask.store.states import StoredPanels


class FoldedDataset(Dataset):
    """A view of a dataset by its folds, whose statistics are kept beside those of all documents, under more words."""

    def __init__(self, dataset: Dataset, source: Source, words: dict[str, Any]) -> None:
        super().__init__(source, dataset.location, reuse=dataset.reuse)
        kept = dataset.statistics
        self._kept = None if kept is None else KeptByFold(kept.folder, kept.fingerprint, words)

    @property
    def statistics(self) -> Kept | None:
        return self._kept


def dataset_by_fold(dataset: Dataset, folds: Folds) -> Dataset:
    """The documents under the classes of each fold."""
    return FoldedDataset(dataset, by_fold(dataset.source, folds), folds.describe())


def dataset_without_fold(dataset: Dataset, folds: Folds, fold: int) -> Dataset:
    """The documents outside of a fold."""
    return FoldedDataset(dataset, without_fold(dataset.source, folds, fold), {**folds.describe(), "without": fold})


class TrainingPanels(Panels):
    """The state of the rows outside of one fold, by class.

    It is the sum of the states of the other folds, as the statistic adds them up: to the bit what a pass over those
    rows gives where numbers are whole, and the same up to the order of additions where they are not.

    Parameters
    ----------
    panels
        Of a statistic over classes ``f * C + c``, see `nfs_dask.sources.folds.by_fold`.
    statistic
        The same over C classes.
    fold
        Which fold is left out.
    """

    def __init__(self, panels: Panels, statistic: Statistic, fold: int) -> None:
        self._panels, self._statistic = panels, statistic
        self._names = [name for name in statistic.zero().totals if name != "mass"]
        n_classes = statistic.n_classes
        self._others = [f for f in range(len(panels.totals["rows"]) // n_classes) if f != fold]
        self.bounds = panels.bounds
        self.totals = self._added({}).totals

    def arrays(self, panel: int) -> dict[str, Array]:
        return self._added(self._panels.arrays(panel)).arrays

    def _added(self, arrays: dict[str, Array]) -> State:
        parts = [self._part(arrays, f) for f in self._others]
        added = parts[0] if len(parts) == 1 else reduce(self._statistic.merge, parts)
        if "mass" in added.totals:  # of all rows, it is known only of these and others together: a bound
            added.totals["mass"] = self._panels.totals["mass"]
        return added

    def _part(self, arrays: dict[str, Array], fold: int) -> State:
        """The state of one fold."""
        rows = slice(fold * self._statistic.n_classes, (fold + 1) * self._statistic.n_classes)
        totals = {name: self._panels.totals[name][rows] for name in self._names}
        if "mass" in self._panels.totals:
            totals["mass"] = self._panels.totals["mass"] * 0
        return State({name: values[rows] for name, values in arrays.items()}, totals)


@dataclass(frozen=True)
class KeptByFold(Kept):
    """The kept statistics of a dataset by fold: under the words of each statistic, and those of the folds."""

    folds: dict[str, Any] = field(default_factory=dict)

    def find(self, statistic: Described) -> StoredPanels | None:
        return super().find(_TrainingByFold(statistic, self.folds))

    def reserve(self, statistic: Described) -> Folder | None:
        return super().reserve(_TrainingByFold(statistic, self.folds))

    def commit(self, statistic: Described, target: Folder) -> bool:
        return super().commit(_TrainingByFold(statistic, self.folds), target)


@dataclass(frozen=True)
class _TrainingByFold:
    """The description of a statistic that is known for each fold."""

    statistic: Described
    folds: dict[str, Any]

    def describe(self) -> dict[str, Any]:
        return {**self.statistic.describe(), "by_fold": self.folds}

    def supersets(self) -> Sequence[Described]:
        return [_TrainingByFold(statistic, self.folds) for statistic in self.statistic.supersets()]
