"""Weights of classes: what is counted of a class is multiplied by its weight, so that one pass serves all weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.statistics.class_totals import Pick

BALANCED: Literal["balanced"] = "balanced"
ClassWeight = Array | Literal["balanced"]  # (C,) factors, or what makes all classes weigh the same


def class_factors(class_weight: ClassWeight, documents: Array) -> Array:
    """What documents of each class are multiplied by, (C,), as scikit-learn has it: n / (C n_c) where balanced.

    >>> class_factors("balanced", np.array([30.0, 10.0, 0.0])).tolist()
    [0.6666666666666666, 2.0, 1.0]
    """
    if not isinstance(class_weight, str):
        return class_weight
    seen = documents > 0
    factors = np.ones(len(documents))
    factors[seen] = documents.sum() / (seen.sum() * documents[seen])
    return factors


@dataclass(frozen=True)
class Weighing:
    """Documents, and how totals are picked, under weights of classes."""

    documents: Array  # (C,)
    pick: Pick

    @classmethod
    def of(cls, class_weight: ClassWeight | None, documents: Array, pick: Pick) -> Weighing:
        """As they are without weights: whole numbers stay such."""
        if class_weight is None:
            return cls(documents, pick)
        factors = class_factors(class_weight, documents)
        return cls(documents * factors, partial(_weighed, pick=pick, factors=factors))


def _weighed(arrays: dict[str, Array], pick: Pick, factors: Array) -> Any:
    return pick(arrays) * factors[:, None]
