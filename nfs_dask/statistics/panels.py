"""A finished state read panel by panel, whether it lies in memory or in a store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.statistics.statistic import State


class Panels(ABC):
    """The state of a pass, cut into ranges of columns. Nobody needs to hold more than one of them."""

    totals: dict[str, Array]
    bounds: tuple[int, ...]  # panel i holds columns bounds[i] .. bounds[i + 1] - 1

    @property
    def n_features(self) -> int:
        return self.bounds[-1]

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @abstractmethod
    def arrays(self, panel: int) -> dict[str, Array]:
        """The arrays of one panel; their last axis is its columns."""

    def stored(self, panel: int) -> dict[str, Array]:
        """The same in the types they lie in, which may be narrower."""
        return self.arrays(panel)

    def __iter__(self) -> Iterator[tuple[int, State]]:
        """First column and state of each panel in turn."""
        for panel in range(len(self)):
            yield self.bounds[panel], State(self.arrays(panel), self.totals)

    def columns(self, wanted: Array) -> dict[str, Array]:
        """The arrays at some columns only, in the order asked for."""
        wanted = np.asarray(wanted, dtype=np.int64)
        panel_of = np.searchsorted(self.bounds, wanted, side="right") - 1
        found: dict[str, Array] = {}
        for panel in np.unique(panel_of):
            here = np.flatnonzero(panel_of == panel)
            for name, array in self.stored(int(panel)).items():  # a panel is not made wide for a few of its columns
                if name not in found:
                    dtype = array.dtype if array.dtype.kind == "f" else np.int64
                    found[name] = np.zeros((*array.shape[:-1], len(wanted)), dtype)
                found[name][..., here] = array[..., wanted[here] - self.bounds[panel]]
        return found

    def state(self) -> State:
        """All panels side by side in memory. The caller knows that they fit."""
        if len(self) == 1:
            return State(self.arrays(0), self.totals)
        whole: dict[str, Array] = {}
        for first, part in self:
            for name, array in part.arrays.items():
                if name not in whole:
                    whole[name] = np.zeros((*array.shape[:-1], self.n_features), array.dtype)
                whole[name][..., first : first + array.shape[-1]] = array
        return State(whole, self.totals)


class MemoryPanels(Panels):
    """A state that is in memory: one panel."""

    def __init__(self, state: State, n_features: int) -> None:
        self._state = state
        self.totals = state.totals
        self.bounds = (0, n_features)

    def arrays(self, panel: int) -> dict[str, Array]:
        return self._state.arrays
