"""Medians kept beside the data they were found in, so that another k reads nothing."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from nfs_dask.solvers.medians.column_medians import Medians
from nfs_dask.statistics.statistic import State
from nfs_dask.store import states
from nfs_dask.store.cache import Kept

logger = logging.getLogger("nfs_dask")

_NUMBERS = {"n_features": int, "rows": int, "settled": float}  # fields that are no arrays


@dataclass(frozen=True)
class ClassMedians:
    """The description of the medians of all classes: what they are kept under."""

    n_classes: int

    name = "class_medians"

    def describe(self) -> dict[str, Any]:
        """Name and parameters, as statistics give them."""
        return {"statistic": self.name, "n_classes": self.n_classes}

    def supersets(self) -> tuple[ClassMedians, ...]:
        """Nothing else holds medians."""
        return ()

    def find(self, kept: Kept) -> Medians | None:
        """The medians, if they are there."""
        panels = kept.find(self)
        if panels is None:
            return None
        found: dict[str, Any] = {**panels.totals, **panels.arrays(0)}
        for name, kind in _NUMBERS.items():
            found[name] = kind(found[name][0])
        for name, shape in _shapes(self.n_classes).items():
            found.setdefault(name, np.zeros(shape, np.int64 if name == "columns" else np.float64))
        return Medians(**{field.name: found[field.name] for field in fields(Medians)})

    def keep(self, kept: Kept, medians: Medians) -> None:
        """Store the medians; that they cannot be is no reason to lose them."""
        target = kept.reserve(self)
        if target is None:
            return
        values = {name: np.atleast_1d(value) for name, value in asdict(medians).items()}
        arrays = {name: values[name] for name in _shapes(self.n_classes) if len(medians.columns)}
        totals = {name: values[name] for name in (*_NUMBERS, "weight")}
        facts = {"statistic": self.describe(), "fingerprint": kept.fingerprint}
        committed = False
        try:
            states.write_state(target, State(arrays, totals), max(1, len(medians.columns)), facts)
            committed = kept.commit(self, target)
        except OSError as error:
            logger.warning("medians are not kept beside the data: %s", error)
        finally:
            if not committed:
                target.remove()


def _shapes(n_classes: int) -> dict[str, tuple[int, ...]]:
    """The arrays that have a place for each column, and their shapes without any."""
    one, each = (0,), (n_classes, 0)
    return {
        "columns": one,
        "centers": each,
        "pooled": one,
        "dispersions": each,
        "pooled_dispersions": one,
        "gains": one,
    }
