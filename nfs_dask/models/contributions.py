"""What each selected feature adds to the decision about a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array, Block, canonical, check_structure
from nfs_dask.arrays.lookup import Lookup


@dataclass(frozen=True)
class SelectedEntries:
    """Entries of selected features in some rows, as CSR: each feature at most once in a row, in order."""

    indptr: Array  # (n_rows + 1,) int64
    positions: Array  # (n,) int64, among the selected features
    values: Array  # (n,) float64

    @classmethod
    def of(cls, block: Block, lookup: Lookup, kept: Callable[[Array], Array]) -> SelectedEntries:
        """Those of a block whose values are to be kept."""
        check_structure(block)
        indptr, positions, data, _ = lookup.take(canonical(block)[0]).entries
        wanted = kept(data)
        through = np.concatenate([np.zeros(1, np.int64), np.cumsum(wanted)])
        return cls(through[indptr], positions[wanted].astype(np.int64), data[wanted].astype(np.float64))

    @classmethod
    def of_dense(cls, rows: Array) -> SelectedEntries:
        """All values of an array of the selected features, (n_rows, k)."""
        n, k = rows.shape
        return cls(k * np.arange(n + 1), np.tile(np.arange(k), n), rows.ravel())

    @property
    def n(self) -> int:
        return len(self.positions)

    @property
    def n_rows(self) -> int:
        return len(self.indptr) - 1

    @cached_property
    def rows(self) -> Array:
        """(n,) the row of each entry."""
        return np.repeat(np.arange(self.n_rows), np.diff(self.indptr))

    def row_sums(self, whole: Array) -> Array:
        """Sums of whole numbers of the entries, (n, C), in each row, (n_rows, C)."""
        through = np.concatenate([np.zeros((1, whole.shape[1]), np.int64), np.cumsum(whole, axis=0)])
        sums: Array = np.diff(through[self.indptr], axis=0)
        return sums

    def of_rows(self, rows: Array) -> tuple[SelectedEntries, Array]:
        """Some rows, in the order given and as often, and which entries these are."""
        lengths = np.diff(self.indptr)[rows]
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        taken = np.arange(indptr[-1]) + np.repeat(self.indptr[:-1][rows] - indptr[:-1], lengths)
        return SelectedEntries(indptr, self.positions[taken], self.values[taken]), taken


@dataclass(frozen=True)
class Contributions:
    """Of some rows: ``base`` plus what the features contribute is the `decision_function`.

    Of two classes one number each, above 0 for the second class; of others a number for each class. What rules a class
    out is infinite; no row has infinities of both signs.
    """

    base: Array  # (n_rows,) or (n_rows, C) float64
    entries: SelectedEntries
    parts: Array  # (entries.n,) or (entries.n, C) float64

    @classmethod
    def joined(cls, several: list[Contributions]) -> Contributions:
        """The rows of several, one after another."""
        ends = np.cumsum([0, *(one.entries.n for one in several)])
        pointers = [one.entries.indptr[1:] + first for one, first in zip(several, ends[:-1], strict=True)]
        entries = SelectedEntries(
            np.concatenate([np.zeros(1, np.int64), *pointers]),
            *(_end_to_end(getattr(one.entries, name) for one in several) for name in ("positions", "values")),
        )
        return cls(_end_to_end(o.base for o in several), entries, _end_to_end(o.parts for o in several))

    def of_rows(self, rows: Array) -> Contributions:
        """Some rows, in the order given and as often."""
        entries, taken = self.entries.of_rows(rows)
        return Contributions(self.base[rows], entries, self.parts[taken])


def _end_to_end(arrays: Any) -> Array:
    return np.concatenate(list(arrays))
