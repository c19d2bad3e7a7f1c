"""Sums of logarithms of probabilities, zeros of which are counted apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array


@dataclass(frozen=True)
class LogTerms:
    """Sums of logarithms, some of them of zero: a finite part, and how many zeros there are."""

    finite: Array
    zeros: Array  # of whole numbers; a negative one takes back a zero that was counted elsewhere

    @classmethod
    def of(cls, logs: Array) -> LogTerms:
        zero = logs == -np.inf
        if not zero.any():
            return cls(logs, np.zeros(logs.shape, np.int64))
        return cls(np.where(zero, 0.0, logs), zero.astype(np.int64))

    def __sub__(self, other: LogTerms) -> LogTerms:
        return LogTerms(self.finite - other.finite, self.zeros - other.zeros)

    def __getitem__(self, index: Any) -> LogTerms:
        return LogTerms(self.finite[index], self.zeros[index])

    @property
    def value(self) -> Array:
        """As plain numbers: infinite where zeros do not cancel."""
        return np.where(self.zeros > 0, -np.inf, np.where(self.zeros < 0, np.inf, self.finite))
