"""Several models by distance that differ in how many features they have alone, side by side.

The larger ones have the features of the smaller ones, and the same centres: how much nearer a value is to one of these
is worked out once for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array, Block, check_structure
from nfs_dask.arrays.lookup import Lookup
from nfs_dask.errors import InputError
from nfs_dask.models.distance_differences import CenterTables, nested_advantages, parts_at_zero
from nfs_dask.models.nested_centers import NestedCenters
from nfs_dask.models.together import SharedColumns, located


@dataclass(frozen=True)
class CentersTogether:
    """Models whose distances are sums over features, of which the larger ones have those of the smaller ones."""

    n_classes: int
    seen: Array  # positions of the classes that have documents, which the tables are about
    columns: SharedColumns
    tables: CenterTables  # of the largest model, whose features are all columns
    at_zero: Array  # (columns, C) what each feature adds where it is 0
    empty: Array  # (P, C) what all features of each model add to a row of zeros

    @classmethod
    def of(cls, models: Sequence[Any], tables: Sequence[CenterTables]) -> CentersTogether | None:
        """None where they differ in more than in their features; ``tables`` are those of each model."""
        first = models[0]
        columns = SharedColumns.of([model.support for model in models], first.n_features)
        largest = tables[columns.order[0]]
        if not columns.nested or any(not np.array_equal(model.seen, first.seen) for model in models):
            return None
        for number, places in zip(columns.order, columns.places, strict=True):
            alike = (np.array_equal(one[places], own) for one, own in zip(largest[1:], tables[number][1:], strict=True))
            if tables[number].plain != largest.plain or not all(alike):
                return None
        return cls._of_columns(first, columns, largest)

    @classmethod
    def nested(cls, models: NestedCenters) -> CentersTogether:
        """Those that are known to be so; ``models.whole`` works out its tables."""
        whole = models.whole
        columns = SharedColumns.found(Lookup.of(whole.support, whole.n_features), models.places)
        return cls._of_columns(whole, columns, whole.tables)

    @classmethod
    def _of_columns(cls, model: Any, columns: SharedColumns, tables: CenterTables) -> CentersTogether:
        at_zero, empty = parts_at_zero(tables, columns.uses, len(columns.places))
        return cls(model.n_classes, model.seen, columns, tables, at_zero, empty)

    def scores(self, block: Block) -> Array:
        check_structure(block)
        entries, columns = located(block, self.columns.lookup), self.columns
        found = nested_advantages(entries, self.tables, self.at_zero, self.empty, columns.uses, columns.places)
        found = checked_distances(found, block)
        if len(self.seen) < self.n_classes:
            scores = np.full((*found.shape[:2], self.n_classes), -np.inf)
            scores[:, :, self.seen] = found
            found = scores
        return columns.as_given(found)


def checked_distances(scores: Array, block: Block) -> Array:
    """The same scores; refused where a distance is beyond what a number holds."""
    finite = np.isfinite(scores).all(axis=tuple(range(1, scores.ndim)))
    if not finite.all():
        raise InputError(
            f"{block.row_in_words(int(np.argmin(finite)))}: its distance to the centres is "
            "beyond what a number holds; scale the data down, or fit with a larger variance_floor"
        )
    return scores
