"""Documents by fold and without one of them, and the counts of all folds but one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.dataset import Dataset
from nfs_dask.files.folder import Folder
from nfs_dask.sources.folds import Folds, by_fold, without_fold
from nfs_dask.sources.source import Source
from nfs_dask.statistics.panels import Panels
from nfs_dask.statistics.statistic import State, Statistic
from nfs_dask.store.cache import Described, Kept
from nfs_dask.store.states import StoredPanels

_MOST_WHOLE = 2.0**53  # below it, doubles hold all whole numbers


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
    together
        Of a state that is in memory, what all its folds add up to, if `added_folds` says so.
    """

    def __init__(self, panels: Panels, statistic: Statistic, fold: int, together: State | None = None) -> None:
        self._panels, self._statistic, self._fold, self._together = panels, statistic, fold, together
        self._names = [name for name in statistic.zero().totals if name != "mass"]
        self._n_folds = len(panels.totals["rows"]) // statistic.n_classes
        self.bounds = panels.bounds
        self.totals = self._added({}).totals

    def arrays(self, panel: int) -> dict[str, Array]:
        return self._added(self._panels.arrays(panel)).arrays

    def _added(self, arrays: dict[str, Array]) -> State:
        together = self._together or added_folds(State(arrays, self._panels.totals), self._n_folds)
        if together is not None:
            added = _less(together, self._part(arrays, self._fold))
        else:
            parts = [self._part(arrays, f) for f in range(self._n_folds) if f != self._fold]
            added = parts[0] if len(parts) == 1 else reduce(self._statistic.merge, parts)
        if "mass" in self._panels.totals:  # of all rows, it is known only of these and others together: a bound
            added.totals["mass"] = self._panels.totals["mass"]
        return added

    def _part(self, arrays: dict[str, Array], fold: int) -> State:
        """The state of one fold."""
        rows = slice(fold * self._statistic.n_classes, (fold + 1) * self._statistic.n_classes)
        totals = {name: self._panels.totals[name][rows] for name in self._names}
        if "mass" in self._panels.totals:
            totals["mass"] = self._panels.totals["mass"] * 0
        return State({name: values[rows] for name, values in arrays.items()}, totals)


def added_folds(state: State, n_folds: int) -> State | None:
    """Return the sum of the folds of a state; None where that may be rounded, so that the order of additions matters.

    Whole numbers that a double holds are not: taking those of a fold away leaves the sum of the others.
    """
    by_class = {name: values for name, values in state.totals.items() if name != "mass"}
    if not all(map(_adds_exactly, by_class.values())) or any(a.dtype.kind == "f" for a in state.arrays.values()):
        return None
    return State(*({name: _over_folds(a, n_folds) for name, a in part.items()} for part in (state.arrays, by_class)))


def _adds_exactly(values: Array) -> bool:
    """True where no sum of some of the values is rounded."""
    if values.dtype.kind != "f":
        return True
    return bool(np.all(values == np.rint(values))) and float(np.abs(values).sum()) < _MOST_WHOLE


def _over_folds(values: Array, n_folds: int) -> Array:
    """Values of each class of each fold, added up over the folds."""
    wide = np.float64 if values.dtype.kind == "f" else np.int64
    return np.asarray(values.reshape(n_folds, -1, *values.shape[1:]).sum(axis=0, dtype=wide))


def _less(state: State, part: State) -> State:
    """Subtract a part from a state; the names of the state stay."""
    arrays = {name: state.arrays[name] - values for name, values in part.arrays.items()}
    return State(arrays, {name: values - part.totals[name] for name, values in state.totals.items()})


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
