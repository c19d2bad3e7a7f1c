"""Texts as counts: distinct terms, and for each text how often it has which of them."""

from __future__ import annotations

from dataclasses import dataclass

from nfs_dask.arrays.block import Array
from nfs_dask.text.strings import Strings


@dataclass(frozen=True, slots=True)
class TermCounts:
    """Row i holds terms ``ids[indptr[i] : indptr[i + 1]]``, each at most once, in any order."""

    terms: Strings  # distinct
    indptr: Array  # (n_rows + 1,) int64
    ids: Array  # (nnz,) int32, positions in `terms`
    counts: Array  # (nnz,) int32
    collisions: int = 0  # terms whose 64-bit hash was another's; told apart by their bytes

    @property
    def n_rows(self) -> int:
        return len(self.indptr) - 1
