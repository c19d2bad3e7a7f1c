"""Sums of rows of reals that do not depend on how the rows are cut."""

from __future__ import annotations

import numpy as np

from nfs_dask.arrays.compiling import kernel
from nfs_dask.arrays.exact_kernels import gather
from nfs_dask.solvers.solution import Array


class Sums:
    """Sums of rows that come in pieces, in order: however they are cut, the same to the bit."""

    def __init__(self, n_rows: int) -> None:
        self._sums, self._lost = np.zeros(n_rows), np.zeros(n_rows)

    def add(self, piece: Array) -> None:
        """Add (n_rows, width) more."""
        _add_rows(piece, self._sums, self._lost)

    @property
    def rows(self) -> list[float]:
        return [float(x) for x in self._sums + self._lost]

    @property
    def pairs(self) -> list[tuple[float, float]]:
        """The same to about twice the digits: unevaluated sums of two."""
        return list(zip(self._sums.tolist(), self._lost.tolist(), strict=True))


@kernel
def _add_rows(piece, sums, lost):
    """What each addition rounds off is added up too."""
    for r in range(len(sums)):
        total, rest = sums[r], lost[r]
        for x in piece[r]:
            total, rest = gather(total, rest, x)
        sums[r], lost[r] = total, rest
