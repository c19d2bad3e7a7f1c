"""The Gram matrix of all features, from which their covariance comes. Its size is that of the features, squared.

References: SC (Calafiore and Fracastoro 2019) section 4.1, S.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nfs_dask.arrays.block import Array, Block, Kind
from nfs_dask.errors import InputError
from nfs_dask.statistics.statistic import State, Statistic, added, array_of

_PIECE_NBYTES = 4 << 20  # rows of a block that are made dense at a time


@dataclass(frozen=True, eq=False)
class Gram(Statistic):
    """Sums of z z' over all rows and of z over each class, z = x - shift.

    A shift near the means keeps the digits of the covariance; which shift it is does not change what is meant. Of the
    symmetric matrix only the upper triangle is filled. The state carries the shift, so that it can be read alone.
    """

    n_classes: int
    shift: Array  # (m,)

    name: ClassVar[str] = "gram"
    accepts: ClassVar[Kind] = "signed"

    def __post_init__(self) -> None:
        shift = np.array(self.shift, np.float64)
        if shift.ndim != 1 or not np.isfinite(shift).all():
            raise InputError(f"a shift of shape {shift.shape}; give one finite number for each feature")
        shift.setflags(write=False)
        object.__setattr__(self, "shift", shift)

    def describe(self) -> dict[str, Any]:
        digest = hashlib.blake2b(self.shift.tobytes(), digest_size=16).hexdigest()
        return {"statistic": self.name, "n_classes": self.n_classes, "shift": digest, "n_features": len(self.shift)}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Gram) and self.describe() == other.describe()

    def __hash__(self) -> int:
        return hash((self.n_classes, self.shift.tobytes()))

    def small(self) -> Gram:
        return Gram(2, np.zeros(4))

    def zero(self) -> State:
        rows = np.zeros(self.n_classes, np.int64)
        return State({}, {"rows": rows, "weight": rows.astype(np.float64)})

    def update(self, state: State, block: Block) -> None:
        codes = block.codes.astype(np.intp)
        state.totals["rows"] += np.bincount(codes, minlength=self.n_classes)
        state.totals["weight"] += np.bincount(codes, block.weights, minlength=self.n_classes)
        self._update_arrays(state.arrays, block)

    def _update_arrays(self, arrays: dict[str, Array], block: Block) -> None:
        from scipy.linalg.blas import dsyrk  # takes a while to load

        n_features = len(self.shift)
        if block.n_features != n_features:
            raise InputError(f"data of {block.n_features} columns, but a shift for {n_features}")
        gram = array_of(arrays, "gram", n_features, n_features, "float64")
        sums = array_of(arrays, "sums", self.n_classes, n_features, "float64")
        arrays.setdefault("shift", self.shift.copy())
        assert gram.flags.c_contiguous, "BLAS would add to a copy"
        for rows, piece in _pieces(block):
            np.subtract(piece, self.shift, out=piece)
            codes = block.codes[rows].astype(np.intp)
            members = np.zeros((self.n_classes, len(piece)))
            members[codes, np.arange(len(piece))] = 1.0 if block.weights is None else block.weights[rows]
            sums += members @ piece
            if block.weights is not None:
                np.multiply(piece, np.sqrt(block.weights[rows].astype(np.float64))[:, None], out=piece)
            # In place: BLAS sees the transposes, which are in the order of columns that it wants.
            dsyrk(1.0, piece.T, beta=1.0, c=gram.T, overwrite_c=True, lower=True)

    def merge(self, left: State, right: State) -> State:
        arrays = added(left.arrays, right.arrays)
        shifts = [side.arrays["shift"] for side in (left, right) if "shift" in side.arrays]
        if any(not np.array_equal(shift, self.shift) for shift in shifts):
            raise InputError("Gram matrices about different shifts cannot be added; give every pass the same shift")
        if shifts:
            arrays["shift"] = self.shift.copy()
        return State(arrays, added(left.totals, right.totals))

    def array_nbytes(self, n_features: int, kind: Kind | None, weighted: bool) -> int:
        return (n_features + self.n_classes + 1) * n_features * 8


def covariance(state: State) -> tuple[Array, Array]:
    """Class means (C, m), and the covariance (m, m) of all rows about their mean, divided by their weight.

    >>> statistic = Gram(2, shift=np.array([1.0, 0.0]))
    >>> state = statistic.zero()
    >>> indptr, indices, codes = np.array([0, 1, 3]), np.array([0, 0, 1]), np.array([0, 1])
    >>> statistic.update(state, Block(indptr, indices, np.array([1.0, 3.0, 4.0]), codes, n_features=2))
    >>> means, covariances = covariance(state)
    >>> means.tolist(), covariances.tolist()
    ([[1.0, 0.0], [3.0, 4.0]], [[1.0, 2.0], [2.0, 4.0]])
    """
    if not state.arrays:
        raise InputError("no documents have been counted, so that there is no covariance; give at least one")
    weight, sums = state.totals["weight"], state.arrays["sums"]
    seen = weight > 0
    means = np.zeros(sums.shape)
    means[seen] = state.arrays["shift"] + sums[seen] / weight[seen, None]
    rows = float(weight.sum()) or 1.0
    centre = sums.sum(axis=0) / rows
    found = state.arrays["gram"] / rows
    for i in range(len(found)):  # row by row, beside no second matrix
        found[i, i:] -= centre[i] * centre[i:]
        found[i:, i] = found[i, i:]
    return means, found


def _pieces(block: Block) -> Iterator[tuple[slice, Array]]:
    """Dense rows of a block, a few at a time; the arrays are the caller's to change."""
    step = max(1, _PIECE_NBYTES // (8 * block.n_features))
    for first in range(0, block.n_rows, step):
        rows = slice(first, min(first + step, block.n_rows))
        starts = block.indptr[first : rows.stop + 1]
        entries = slice(int(starts[0]), int(starts[-1]))
        shape = (rows.stop - first, block.n_features)
        if block.full:
            yield rows, block.data[entries].reshape(shape).astype(np.float64)
            continue
        piece = np.zeros(shape)
        piece[np.repeat(np.arange(len(piece)), np.diff(starts)), block.indices[entries]] = block.data[entries]
        yield rows, piece
