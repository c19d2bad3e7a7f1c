"""Several models of the same data, which score rows together.

Each says what it says alone, to the bit. Those of one kind lie side by side, so that an entry is looked at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from nfs_dask.arrays.block import Array, Block
from nfs_dask.arrays.lookup import Lookup
from nfs_dask.models.distance_differences import CsrEntries


class Together(Protocol):
    """Some models, as they score rows."""

    def scores(self, block: Block) -> Array:
        """The scores of each row, (n, P, C), of values that were checked."""
        ...


@dataclass(frozen=True)
class OneByOne:
    """Models that have nothing in common."""

    models: Sequence[Any]

    def scores(self, block: Block) -> Array:
        return np.stack([model.scores(block, trusted=True) for model in self.models], axis=1)


@dataclass(frozen=True)
class SharedColumns:
    """The columns that some models look at, and which models each of them matters to."""

    order: tuple[int, ...]  # of the models, those of many features first
    lookup: Lookup  # of the columns that any of them looks at
    places: tuple[Array, ...]  # of the features of each model among them, in that order
    uses: Array  # (columns,) int64, how many of the models, in that order, go by up to the last that looks at it

    @classmethod
    def of(cls, supports: Sequence[Array], n_features: int) -> SharedColumns:
        """Those of models with such supports, which ascend."""
        largest = max(supports, key=len)
        lookup = Lookup.of(largest if len(largest) == n_features else _union(supports), n_features)
        return cls.found(lookup, [lookup.positions(support) for support in supports])

    @classmethod
    def found(cls, lookup: Lookup, places: Sequence[Array]) -> SharedColumns:
        """The same of models whose features are known by their places among the columns, which ascend."""
        order = tuple(sorted(range(len(places)), key=lambda number: -len(places[number])))
        uses = np.zeros(len(lookup.columns), np.int64)
        for position, number in enumerate(order):
            uses[places[number]] = position + 1
        return cls(order, lookup, tuple(places[number] for number in order), uses)

    @property
    def nested(self) -> bool:
        """Whether each support is part of those that are larger."""
        return int(self.uses.sum()) == sum(map(len, self.places))

    def as_given(self, scores: Array) -> Array:
        """Scores (n, P, C) by models in this order, for models as they were given.

        Those of a class lie together, as comparing few classes at many places takes a tenth of the time then.
        """
        out = np.empty((scores.shape[2], *scores.shape[:2]))
        out[:, :, self.order] = np.moveaxis(scores, 2, 0)
        return np.moveaxis(out, 0, 2)


def located(block: Block, lookup: Lookup) -> CsrEntries:
    """The entries of a block in some columns, and where they are among these."""
    return CsrEntries(*lookup.take(block).entries[:3])


def _union(supports: Sequence[Array]) -> Array:
    """All columns of some supports, ascending; these ascend themselves, which a stable sort makes use of."""
    columns = np.sort(np.concatenate(supports), kind="stable")
    return columns[np.concatenate(([True], columns[1:] > columns[:-1]))]
