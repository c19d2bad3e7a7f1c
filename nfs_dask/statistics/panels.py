"""A finished state read panel by panel, whether it lies in memory or in a store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.statistics.statistic import State

READERS = 4  # panels that are decoded at a time


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
                    # As columns of one array lie: sums over them are added up in the same order, and have its bits.
                    found[name] = np.zeros((*array.shape[:-1], len(wanted)), dtype, order="F")
                found[name][..., here] = array[..., wanted[here] - self.bounds[panel]]
        return found

    def state(self) -> State:
        """All panels side by side in memory, whole numbers as int64. The caller knows that they fit."""
        if len(self) == 1:
            return State(self.arrays(0), self.totals)
        whole: dict[str, Array] = {}
        for panel, first in enumerate(self.bounds[:-1]):
            for name, array in self.stored(panel).items():
                if name not in whole:
                    dtype = array.dtype if array.dtype.kind == "f" else np.int64
                    whole[name] = np.zeros((*array.shape[:-1], self.n_features), dtype)
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


class HeldPanels(Panels):
    """Panels that lie elsewhere, in memory in the types they lie in: most counts take a byte.

    Several are read at a time, while the first ones are used already.
    """

    def __init__(self, panels: Panels) -> None:
        self.totals, self.bounds = panels.totals, panels.bounds
        pool = ThreadPoolExecutor(READERS)
        self._reading = [pool.submit(panels.stored, panel) for panel in range(len(panels))]
        pool.shutdown(wait=False)

    def arrays(self, panel: int) -> dict[str, Array]:
        return {name: widened(array) for name, array in self.stored(panel).items()}

    def stored(self, panel: int) -> dict[str, Array]:
        return self._reading[panel].result()


def held(panels: Panels) -> State | HeldPanels:
    """The state in memory: in one piece, or in as many as there are."""
    return HeldPanels(panels) if len(panels) > 1 else panels.state()


def widened(array: Array) -> Array:
    """Whole numbers as int64; reals as they are."""
    return array if array.dtype.kind == "f" else array.astype(np.int64)
