"""Class totals of all features, as solvers ask for them: what distinct columns there are, and single columns.

In memory or in panels, the answers are the same to the bit. From panels only as much is taken as the answer is long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError, PlanError
from nfs_dask.files.ahead import ahead
from nfs_dask.solvers.naive_bayes.distinct import ColumnNumbering, DistinctColumns, FeatureIndex, group
from nfs_dask.statistics.panels import HeldPanels, Panels

Pick = Callable[[dict[str, Array]], Array]  # the totals (C, columns) among the arrays of a state


class Totals(Protocol):
    """Totals (C, m), wherever they are."""

    @property
    def n_features(self) -> int: ...

    def grouped(self) -> tuple[DistinctColumns, FeatureIndex | None]:
        """The distinct columns, and which features each stands for; None for reals, whose columns are features."""
        ...

    def at(self, columns: Array) -> Array:
        """The totals of some columns, (C, len(columns)), in the order asked for."""
        ...

    def of(self, classes: Array) -> Totals:
        """The totals of some classes only."""
        ...


@dataclass(frozen=True)
class ArrayTotals:
    """Totals in memory.

    >>> distinct, index = ArrayTotals(np.array([[1, 0, 1], [2, 0, 2]])).grouped()
    >>> distinct.totals.tolist(), distinct.sizes.tolist()
    ([[1, 0], [2, 0]], [2, 1])
    """

    array: Array

    @property
    def n_features(self) -> int:
        return int(self.array.shape[1])

    def grouped(self) -> tuple[DistinctColumns, FeatureIndex | None]:
        if self.array.dtype.kind == "f" and not np.isfinite(self.array.sum()):
            raise InputError("values under their weights add up to more than a float holds; scale them down")
        return group(self.array)

    def at(self, columns: Array) -> Array:
        found: Array = self.array[:, columns]
        return found

    def of(self, classes: Array) -> ArrayTotals:
        return self if len(classes) == len(self.array) else ArrayTotals(self.array[classes])


@dataclass(frozen=True)
class HeldTotals:
    """Totals in panels that are all in memory. Whole numbers are grouped as they come, in the types they have."""

    panels: HeldPanels
    pick: Pick
    classes: Array | None = None  # rows that are left in; None: all

    @property
    def n_features(self) -> int:
        return self.panels.n_features

    @cached_property
    def array(self) -> Array:
        """All of them side by side."""
        return _rows(self.pick(self.panels.state().arrays), self.classes)

    def grouped(self) -> tuple[DistinctColumns, FeatureIndex | None]:
        numbering: ColumnNumbering | None = None
        codes = []
        for totals in self._parts():
            if totals.dtype.kind == "f":
                return ArrayTotals(self.array).grouped()
            numbering = ColumnNumbering(len(totals)) if numbering is None else numbering
            codes.append(numbering.codes(totals))
        assert numbering is not None
        return numbering.distinct, FeatureIndex.listed(np.concatenate(codes))

    def at(self, columns: Array) -> Array:
        parts = self._whole_numbers
        if parts is None:
            return ArrayTotals(self.array).at(columns)
        found = np.empty((len(parts[0]), len(columns)), np.int64, order="F")  # as of one array: sums have its bits
        panel_of = np.searchsorted(self.panels.bounds, columns, side="right") - 1
        for panel in np.unique(panel_of).tolist():
            here = panel_of == panel
            found[:, here] = parts[panel][:, columns[here] - self.panels.bounds[panel]]
        return found

    def of(self, classes: Array) -> HeldTotals:
        return HeldTotals(self.panels, self.pick, classes)

    def _parts(self) -> Iterator[Array]:
        return (_rows(self.pick(self.panels.stored(n)), self.classes) for n in range(len(self.panels)))

    @cached_property
    def _whole_numbers(self) -> tuple[Array, ...] | None:
        """All panels; None where some have numbers that are not whole."""
        parts = tuple(self._parts())
        return None if any(part.dtype.kind == "f" for part in parts) else parts


@dataclass(frozen=True)
class PanelTotals:
    """Totals in panels; one panel is read at a time. Whole numbers are grouped, reals are not."""

    panels: Panels
    pick: Pick
    classes: Array | None = None  # rows that are left in; None: all

    @property
    def n_features(self) -> int:
        return self.panels.n_features

    def grouped(self) -> tuple[DistinctColumns, FeatureIndex | None]:
        distinct = self._distinct
        if distinct is None:
            raise PlanError(
                f"{self.n_features:,} features of values that are not whole numbers are solved panel by panel, for one "
                "k alone; fit an estimator for each k you want, leave out rare features, or count whole numbers"
            )
        return distinct, FeatureIndex.of_panels(self._stored, distinct)

    @property
    def real(self) -> bool:
        """True if there are values that are not whole numbers, so that solvers let the panels stream by."""
        return self._distinct is None

    def at(self, columns: Array) -> Array:
        if not len(columns):
            return self._rows(self.panels.arrays(0))[:, :0]
        return self._rows(self.panels.columns(columns))

    def of(self, classes: Array) -> PanelTotals:
        return PanelTotals(self.panels, self.pick, classes)

    @cached_property
    def _distinct(self) -> DistinctColumns | None:
        """Distinct columns of all panels, None for reals."""
        numbering: ColumnNumbering | None = None
        for _, totals in self._stored():
            if totals.dtype.kind == "f":
                return None
            numbering = ColumnNumbering(len(totals)) if numbering is None else numbering
            numbering.add(totals)
        assert numbering is not None
        return numbering.distinct

    def parts(self) -> Iterator[tuple[int, Array]]:
        """First feature and totals of each panel."""
        for first, state in self.panels:
            yield first, self._rows(state.arrays)

    def _stored(self) -> Iterator[tuple[int, Array]]:
        """The same in the types they lie in; the next panel is read while one is used."""
        stored = ahead(self.panels.stored, range(len(self.panels)), min(2, len(self.panels)))
        for first, arrays in zip(self.panels.bounds[:-1], stored, strict=True):
            yield first, self._rows(arrays)

    def _rows(self, arrays: dict[str, Array]) -> Array:
        return _rows(self.pick(arrays), self.classes)


def _rows(totals: Array, classes: Array | None) -> Array:
    return totals if classes is None or len(classes) == len(totals) else totals[classes]
