"""A source whose documents weigh more or less by their class."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from nfs_dask.arrays.block import Array, Block
from nfs_dask.sources.source import Source
from nfs_dask.sources.views import View

if TYPE_CHECKING:
    from nfs_dask.store.row_columns import Annotations
    from nfs_dask.store.term_table import TermTable
    from nfs_dask.text.strings import Strings


class ClassWeighted(View):
    """Another source, whose weights are multiplied by that of the class of each row.

    Parameters
    ----------
    source
        With labels.
    factors : (C,) float64
        For each of its classes.
    """

    def __init__(self, source: Source, factors: Array) -> None:
        step = partial(_weighed, factors=factors)
        bits = np.ascontiguousarray(factors, "<f8").view("<i8")
        super().__init__(source, "class-weights", bits, step, nnz=source.nnz, weighted=True)
        self.text, self.location, self.names_sorted = source.text, source.location, source.names_sorted

    @property
    def annotations(self) -> Annotations | None:
        return self.underlying.annotations

    def strings(self, start: int, stop: int) -> Strings | None:
        return self.underlying.strings(start, stop)

    def frequencies(self, start: int, stop: int) -> Array | None:
        return self.underlying.frequencies(start, stop)

    def table(self) -> TermTable | None:
        return self.underlying.table()


def _weighed(block: Block, factors: Array) -> Block:
    """Rows without a label, which are refused later, weigh what they weighed."""
    weights = np.append(factors, 1.0)[block.codes]  # the code -1 finds the last entry
    return replace(block, weights=weights if block.weights is None else weights * block.weights)
