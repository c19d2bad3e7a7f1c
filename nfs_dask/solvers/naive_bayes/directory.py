"""Which features a cell stands for: looked up in memory, or panel by panel where the features are many.

Solvers work on cells. Only at the end do they ask which features those are, and get as many as the support has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from nfs_dask.solvers.naive_bayes.equal_columns import Cells, Numbering, members
from nfs_dask.solvers.solution import Array

Panels = Callable[[], Iterable[tuple[int, Array]]]  # first feature and class totals (C, width) of each panel, in order


class Directory(Protocol):
    """From cells to features."""

    def cells_of(self, features: Array) -> Array:
        """The cell of each of some features, ascending."""
        ...

    def members(self, wanted: Array, forced: Array) -> Array:
        """The ``wanted[c]`` lowest features of each cell c, ascending, leaving out the ``forced`` ones (ascending)."""
        ...

    def lowest(self, cells: Array, forced: Array, n: int) -> Array:
        """The ``n`` lowest features that are in one of some cells and not forced."""
        ...

    def spread(self, values: Array) -> Iterator[tuple[int, Array]]:
        """A value of each cell as one of each feature: panel by panel, with its first feature."""
        ...


@dataclass(frozen=True)
class Listed:
    """All cells in memory.

    >>> Listed(np.array([0, 1, 0, 0])).members(np.array([2, 0]), np.array([0])).tolist()
    [2, 3]
    """

    codes: Array  # (m, ) the cell of each feature

    def cells_of(self, features: Array) -> Array:
        found: Array = self.codes[features]
        return found

    def members(self, wanted: Array, forced: Array) -> Array:
        return members(self.codes, wanted.copy(), forced)

    def lowest(self, cells: Array, forced: Array, n: int) -> Array:
        return _lowest([(0, self.codes)], cells, forced, n)

    def spread(self, values: Array) -> Iterator[tuple[int, Array]]:
        yield 0, values[self.codes]


@dataclass(frozen=True)
class Panelled:
    """Panels are read one after another, as far as is needed; no more than one is held.

    >>> cells = Cells(np.array([[3, 0], [1, 1]]), np.array([3, 1]), np.array([0, 1]))
    >>> panels = [(0, np.array([[3, 0], [1, 1]])), (2, np.array([[3, 3], [1, 1]]))]
    >>> Panelled(lambda: panels, cells).members(np.array([2, 0]), np.array([0])).tolist()
    [2, 3]
    """

    panels: Panels
    cells: Cells

    def _codes(self) -> Iterator[tuple[int, Array]]:
        known = Numbering.of(self.cells)
        for first, totals in self.panels():
            codes = known.places(totals)
            assert len(known) == len(self.cells.sizes) and codes.min(initial=0) >= 0, "a column is in no cell"
            yield first, codes

    def cells_of(self, features: Array) -> Array:
        if not len(features):
            return np.zeros(0, np.int64)
        return np.concatenate([codes[_inside(features, first, len(codes))] for first, codes in self._codes()])

    def members(self, wanted: Array, forced: Array) -> Array:
        left, found = wanted.copy(), []
        for first, codes in self._codes():
            found.append(first + members(codes, left, _inside(forced, first, len(codes))))
            if not left.any():
                break
        return np.concatenate(found)

    def lowest(self, cells: Array, forced: Array, n: int) -> Array:
        return _lowest(self._codes(), cells, forced, n)

    def spread(self, values: Array) -> Iterator[tuple[int, Array]]:
        for first, codes in self._codes():
            yield first, values[codes]


def _lowest(parts: Iterable[tuple[int, Array]], cells: Array, forced: Array, n: int) -> Array:
    """Parts are read until there are enough."""
    found, left = [np.zeros(0, np.int64)], n
    for first, codes in parts:
        if left == 0:
            break
        wanted = np.zeros(max(int(codes.max(initial=0)), int(cells.max(initial=0))) + 1, bool)
        wanted[cells] = True
        there = first + np.flatnonzero(wanted[codes])
        found.append((there[~np.isin(there, forced)] if len(forced) else there)[:left])
        left -= len(found[-1])
    return np.concatenate(found)


def _inside(features: Array, first: int, width: int) -> Array:
    """Those of ascending features that lie in a panel, as its own columns."""
    return features[np.searchsorted(features, first) : np.searchsorted(features, first + width)] - first
