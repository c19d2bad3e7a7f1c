"""Terms of some documents, counted."""

from __future__ import annotations

from dataclasses import dataclass

from nfs_dask.block import Array
from nfs_dask.text.strings import Strings


@dataclass(frozen=True, slots=True)
class Counted:
    """How often each term is in each of some texts, as CSR. An id stands at most once in a row."""

    terms: Strings  # distinct; the ids number them
    indptr: Array  # (n_rows + 1,) int64
    ids: Array  # (nnz,) int32
    counts: Array  # (nnz,) int32, 1 or more
    collisions: int = 0  # how often two terms had the same hash, and were told apart by their bytes

    @property
    def n_rows(self) -> int:
        return len(self.indptr) - 1
