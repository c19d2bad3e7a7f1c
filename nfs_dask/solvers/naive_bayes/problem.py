"""The problem a multinomial solver works on: selectable columns under smoothing, and features that are forced in.

References: NFS (SMNB), section 3.1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nfs_dask.arrays.compiling import kernel
from nfs_dask.arrays.exact_kernels import gather
from nfs_dask.errors import InputError
from nfs_dask.solvers.naive_bayes.distinct import DistinctColumns
from nfs_dask.solvers.naive_bayes.gains import exact_sum, gains, shares
from nfs_dask.solvers.naive_bayes.rounding_error import (
    EXACT_COUNTS,
    MANY_CLASSES,
    TWO_CLASSES,
    RoundingError,
    is_exact,
)
from nfs_dask.solvers.naive_bayes.topk import top
from nfs_dask.solvers.solution import Array, FeatureSet

_HEAVY, _HEAVIEST = 2.0**300, 2.0**1010  # sums of counts


@dataclass(frozen=True)
class Problem:
    """Choose k features, the forced ones among them, such that the gain is largest.

    Columns are the selectable ones followed by one for each forced feature. Totals include the smoothing.
    """

    totals: Array  # (C, M) float64; classes without any count are left out
    sizes: Array  # (M, ) int64, at least 1
    origin: Array  # (M - n_forced, ) the distinct column each free one came from
    forced: Array  # (n_forced, ) int64 ascending feature indices, whose columns are the last ones
    start: Array  # (C, ) shares of the classes in all counts
    classes: Array  # (C, ) which classes are left in
    n_classes: int  # of all
    mass: float  # sum of all counts, of features that cannot be chosen too
    exact: bool  # whether totals and sums of them are not rounded
    rounded: bool = True  # whether totals may be equal where counts are not
    partial: bool = False  # whether columns are left out that are worth less than any in a best set at the dual point

    @property
    def rounding(self) -> RoundingError:
        if len(self.classes) > 2:
            return MANY_CLASSES
        return EXACT_COUNTS if self.exact else TWO_CLASSES

    @property
    def n_free(self) -> int:
        """Columns that are not forced."""
        return len(self.sizes) - len(self.forced)

    @cached_property
    def size(self) -> int:
        """Number of features that can be chosen, forced ones included."""
        return int(self.sizes.sum())

    def gains(self, point: Array) -> Array:
        return gains(self.totals, point)

    def top(self, gain: Array, k: int) -> FeatureSet:
        """Return the k best features, forced ones first."""
        n = self.n_free
        free = top(gain[:n], self.sizes[:n], k - len(self.forced))
        if not len(self.forced):
            return free
        last = np.arange(n, len(self.sizes))
        return FeatureSet(np.concatenate((free.columns, last)), np.concatenate((free.counts, self.sizes[last])))

    def only(self, columns: Array) -> Problem:
        """Return the problem on some of the columns, forced ones among them; ascending."""
        free = columns[: len(columns) - len(self.forced)]
        parts = self.totals.take(columns, axis=1), self.sizes[columns], self.origin[free]
        return replace(self, totals=parts[0], sizes=parts[1], origin=parts[2], partial=True)

    def times(self, scale: float) -> Problem:
        """Return the problem with all counts multiplied."""
        return replace(self, totals=self.totals * scale, mass=self.mass * scale)

    def all_classes(self, point: Array) -> Array:
        """Return a point of the problem's classes as one of all classes."""
        out = np.zeros(self.n_classes)
        out[self.classes] = point
        return out


def build_problem(distinct: DistinctColumns, k: int, alpha: float, forced: Array, forced_columns: Array) -> Problem:
    """Build the problem of k features: adds ``alpha`` to all counts and leaves out what k < m must not choose.

    ``forced`` are features, ascending, and ``forced_columns`` the distinct columns they have.
    """
    raw, sizes, smooth = distinct.totals, distinct.sizes, alpha > 0
    classes = np.arange(len(raw)) if smooth else np.flatnonzero(raw.any(axis=1))
    totals = raw[classes].astype(np.float64) if raw.dtype.kind != "f" or len(classes) < len(raw) else raw
    masses = _masses(totals, distinct) + alpha * distinct.n_features
    refuse_heavy(masses)
    totals = totals + alpha if smooth else totals
    free = np.arange(raw.shape[1])
    if len(forced) or k < distinct.n_features:
        sizes = sizes - np.bincount(forced_columns, minlength=len(sizes)) if len(forced) else sizes
        free = np.flatnonzero((sizes > 0) & raw.any(axis=0) if k < distinct.n_features else sizes > 0)
    chosen = totals if len(free) == raw.shape[1] else totals[:, free]
    if len(forced):
        chosen = np.concatenate((chosen, totals[:, forced_columns]), axis=1)
    mass = exact_sum(masses)
    exact = is_exact(distinct.grouped, alpha, mass)
    return Problem(
        totals=np.ascontiguousarray(chosen),
        sizes=np.concatenate((sizes[free], np.ones(len(forced), np.int64))) if len(forced) else sizes[free],
        origin=free,
        forced=forced,
        start=shares(masses),
        classes=classes,
        n_classes=len(raw),
        mass=mass,
        exact=exact,
        rounded=not exact and (smooth or distinct.grouped),
    )


def refuse_heavy(masses: Array) -> None:
    """Refuse sums of counts whose likelihoods, some thousands of times as much on the way, would be no doubles."""
    mass = sum(masses.tolist())  # as numpy would warn
    if not mass <= _HEAVIEST:
        much = f"{mass:.3g}, which" if np.isfinite(mass) else "more than a float holds, which"
        raise InputError(
            f"values under their weights and smoothing add up to {much} leaves no room for likelihoods in floats; "
            f"scale them down to {_HEAVIEST:.3g} or less"
        )


def comfortable(mass: float) -> float:
    """Return the power of two to multiply counts by so that products of them do not overflow or vanish; mostly 1."""
    if 1 / _HEAVY <= mass <= _HEAVY:
        return 1.0
    _, exponent = np.frexp(mass)
    return float(np.ldexp(1.0, min(-int(exponent), 1000)))


def _masses(totals: Array, distinct: DistinctColumns) -> Array:
    """Sums of the rows; solvers start from them, and panels must start from the same."""
    if distinct.grouped:
        return np.asarray((totals * distinct.sizes).sum(axis=1))
    sums = RowSums(len(totals))
    sums.add(totals)
    return np.array(sums.rows)


class RowSums:
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


def forced_features(always: Array | None, k: int, n_features: int) -> Array:
    """Return ``always`` as ascending distinct indices; they count in k."""
    if always is None or len(always) == 0:
        return np.zeros(0, np.int64)
    forced = np.unique(np.asarray(always, np.int64))
    if forced[0] < 0 or forced[-1] >= n_features:
        raise InputError(
            f"always names feature {forced[0] if forced[0] < 0 else forced[-1]}, but there are features 0 to "
            f"{n_features - 1}; give indices in that range"
        )
    if len(forced) > k:
        raise InputError(
            f"always forces {len(forced)} features into a support of k={k}; they count in k: raise k or force fewer"
        )
    return forced
