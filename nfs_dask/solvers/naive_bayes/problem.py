"""What a multinomial solver works on: selectable columns under smoothing, and features that are forced in.

References: NFS (SMNB), section 3.1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nfs_dask.errors import InputError
from nfs_dask.solvers.naive_bayes.directory import Directory
from nfs_dask.solvers.naive_bayes.equal_columns import Cells
from nfs_dask.solvers.naive_bayes.gains import exact_sum, gains, shares
from nfs_dask.solvers.naive_bayes.outward import MANY, TWO, WHOLE, Rounding, is_exact
from nfs_dask.solvers.naive_bayes.sums import Sums
from nfs_dask.solvers.naive_bayes.topk import TopFeatures, top
from nfs_dask.solvers.solution import Array

_HEAVY, _HEAVIEST = 2.0**300, 2.0**1010  # sums of counts


@dataclass(frozen=True)
class Problem:
    """Choose k features, the forced ones among them, such that the gain is largest.

    Columns are the selectable cells followed by one column for each forced feature. Totals include the smoothing.
    """

    totals: Array  # (C, M) float64; classes without any count are left out
    sizes: Array  # (M, ) int64, at least 1
    n_forced: int  # the last columns, always taken
    origin: Array  # (M - n_forced, ) the cell each free column came from
    start: Array  # (C, ) shares of the classes in all counts
    n_cells: int
    forced: Array  # (n_forced, ) int64 ascending feature indices
    classes: Array  # (C, ) which classes are left in
    mass: float  # sum of all counts, of features that cannot be chosen too
    exact: bool  # whether totals and sums of them are not rounded
    rounded: bool = True  # whether totals may be equal where counts are not
    partial: bool = False  # whether columns are left out that are worth less than any in a best set at the dual point

    @property
    def rounding(self) -> Rounding:
        """What sums of gains may be wrong by."""
        if len(self.classes) > 2:
            return MANY
        return WHOLE if self.exact else TWO

    @cached_property
    def size(self) -> int:
        """Number of features that can be chosen, forced ones included."""
        return int(self.sizes.sum())

    def gains(self, point: Array) -> Array:
        return gains(self.totals, point)

    def top(self, gain: Array, k: int) -> TopFeatures:
        """The k best features, forced ones first."""
        if self.n_forced:
            gain = gain.copy()
            gain[len(gain) - self.n_forced :] = np.inf
        return top(gain, self.sizes, k)

    def only(self, columns: Array) -> Problem:
        """The problem on some of the columns, forced ones among them; ascending."""
        free = columns[: len(columns) - self.n_forced]
        return replace(self, totals=self.totals[:, columns], sizes=self.sizes[columns], origin=self.origin[free])

    def times(self, scale: float) -> Problem:
        """The problem with all counts multiplied."""
        return replace(self, totals=self.totals * scale, mass=self.mass * scale)

    def wanted(self, choice: TopFeatures) -> Array:
        """How many features ``choice`` takes of each original cell, forced ones not counted; (n_cells, ) int64."""
        counts = choice.spread(len(self.sizes))
        out = np.zeros(self.n_cells, np.int64)
        out[self.origin] = counts[: len(counts) - self.n_forced]
        return out

    def features(self, choice: TopFeatures, where: Directory | None) -> Array:
        """The features of a choice, ascending; ``where`` tells those of a cell, None if cells are features."""
        if where is None:
            free = choice.cells[choice.cells < len(self.sizes) - self.n_forced]
            chosen = self.origin[free].astype(np.int64)
        else:
            chosen = where.members(self.wanted(choice), self.forced)
            if not len(self.forced):
                return chosen  # which ascend
        return np.sort(np.concatenate((chosen, self.forced)))


def pose(cells: Cells, k: int, alpha: float, forced: Array, forced_cells: Array) -> Problem:
    """The problem of k features: adds ``alpha`` to all counts and leaves out what k < m must not choose.

    ``forced`` are features, ascending, and ``forced_cells`` the cells they are in.
    """
    raw = cells.totals
    smooth = alpha > 0
    classes = np.arange(len(raw)) if smooth else np.flatnonzero(raw.any(axis=1))
    sizes = cells.sizes
    if len(forced):
        sizes = sizes - np.bincount(forced_cells, minlength=len(sizes))
    free: Array | slice = slice(None)
    if len(forced) or k < cells.n_features:
        selectable = sizes > 0
        if k < cells.n_features:
            selectable &= raw.any(axis=0)
        free = np.flatnonzero(selectable)
    totals = raw[classes].astype(np.float64) if raw.dtype.kind != "f" or len(classes) < len(raw) else raw
    masses = _masses(totals, cells) + alpha * cells.n_features
    refuse_heavy(masses)
    mass = exact_sum(masses)
    if smooth:
        totals = totals + alpha
    chosen = totals if isinstance(free, slice) else totals[:, free]
    if len(forced):
        chosen = np.concatenate((chosen, totals[:, forced_cells]), axis=1)
    origin = np.arange(raw.shape[1])[free]
    exact = is_exact(cells.grouped, alpha, mass)
    return Problem(
        totals=np.ascontiguousarray(chosen),
        sizes=np.concatenate((sizes[free], np.ones(len(forced), np.int64))) if len(forced) else sizes[free],
        n_forced=len(forced),
        origin=origin,
        start=shares(masses, np.full(len(masses), 1 / max(len(masses), 1))),
        n_cells=raw.shape[1],
        forced=forced,
        classes=classes,
        mass=mass,
        exact=exact,
        rounded=not exact and (smooth or cells.grouped),
    )


class Posing:
    """Problems of some cells and a smoothing: that of all k but the largest is the same one, which is held."""

    def __init__(self, cells: Cells, alpha: float) -> None:
        self._cells, self._alpha = cells, alpha
        self._posed: tuple[bytes, Problem] | None = None

    def __call__(self, k: int, forced: Array, forced_cells: Array) -> Problem:
        """As `pose`."""
        if k >= self._cells.n_features:
            return pose(self._cells, k, self._alpha, forced, forced_cells)
        key = forced.tobytes()
        if self._posed is None or self._posed[0] != key:
            self._posed = key, pose(self._cells, k, self._alpha, forced, forced_cells)
        return self._posed[1]


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
    """The power of two to multiply counts by, so that products of them neither overflow nor vanish; mostly 1."""
    if 1 / _HEAVY <= mass <= _HEAVY:
        return 1.0
    _, exponent = np.frexp(mass)
    return float(np.ldexp(1.0, min(-int(exponent), 1000)))


def _masses(totals: Array, cells: Cells) -> Array:
    """Sums of the rows; many classes start from them, and panels must start from the same."""
    if cells.grouped:
        return np.asarray((totals * cells.sizes).sum(axis=1))
    if len(totals) == 2:
        return np.asarray(totals.sum(axis=1))
    sums = Sums(len(totals))
    sums.add(totals)
    return np.array(sums.rows)


def forced_features(always: Array | None, k: int, n_features: int) -> Array:
    """``always`` as ascending distinct indices; they count in k."""
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
