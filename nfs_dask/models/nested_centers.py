"""Models by distance of one fit: the larger ones have the features of the smaller ones, and the same centres there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np

from nfs_dask.arrays.block import Array


@dataclass(frozen=True, eq=False)
class NestedCenters(Sequence[Any]):
    """Such models, of which the largest alone is held; the others are made of it when they are asked for."""

    whole: Any  # the model of the most features
    places: tuple[Array, ...]  # of the features of each model among those of the largest, ascending

    @classmethod
    def of(cls, whole: Any, places: Sequence[Array]) -> NestedCenters:
        """The parts of a model that have the features in some places; what none of them has is let go."""
        largest = max(places, key=len)
        if len(largest) < len(whole.support):
            whole, places = part_of(whole, largest), [np.searchsorted(largest, one) for one in places]
        return cls(whole, tuple(places))

    def __len__(self) -> int:
        return len(self.places)

    @overload
    def __getitem__(self, index: int) -> Any: ...

    @overload
    def __getitem__(self, index: slice) -> NestedCenters: ...

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return NestedCenters.of(self.whole, self.places[index])
        return part_of(self.whole, self.places[index])


def part_of(whole: Any, places: Array) -> Any:
    """The model of those of its features that are in some places, ascending; its evidence is not about that."""
    if len(places) == len(whole.support):
        return whole
    return replace(
        whole,
        support=whole.support[places],
        centers=whole.centers[:, places],
        pooled=whole.pooled[places],
        variances=None if whole.variances is None else whole.variances[places],
        root=None if whole.root is None else np.ascontiguousarray(whole.root[:, places]),
    )
