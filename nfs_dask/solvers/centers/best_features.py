"""Sparse centers, solved exactly for any number of classes: the k features of largest gain.

A gain is what a feature takes off the cost when it gets a center for each class, in place of one for all. The cost of k
features is the cost of none less the k largest gains, whatever the metric: one sort serves every k.

References: SC (Calafiore and Fracastoro 2019) Propositions 1 and 3, Remark 4; section 4.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from nfs_dask.arrays.doubles import two_sum
from nfs_dask.errors import InputError
from nfs_dask.solvers.centers.separation import Separation, prefix_sums
from nfs_dask.solvers.naive_bayes.problem import forced_features
from nfs_dask.solvers.solution import Array

_SAME = 2.0**-60  # of two doubles that are not the same number, the difference relative to them is larger
_DOUBTFUL = 1e-8  # of the largest eigenvalue: those below have lost half their digits, and may be nothing
_DEPENDENT = 1e-12  # of the largest variance, in standard units: below it, a direction is taken for rounding
_ANY_UNITS = 2  # of LAPACK's Jacobi method: accurate under any scaling of rows
_SPARE = 1 << 16  # features that may wait until the best of them are picked: as many as k, and these


@dataclass(frozen=True)
class Cost:
    """A sum of squares or of distances in twice the digits, so that taking gains off it loses none."""

    high: float
    low: float = 0.0

    @classmethod
    def of(cls, exact: Fraction) -> Cost:
        """A number that is known exactly; at least 0, as rounding may have left it below."""
        high = float(max(exact, Fraction(0)))
        return cls(high, float(exact - Fraction(high)) if high else 0.0)

    def less(self, sums: Array) -> Array:
        """Return the rest, (K,), when sums of gains (2, K) are taken off; never negative."""
        total, error = two_sum(self.high, -sums[0])
        return np.maximum(total + (error + (self.low - sums[1])), 0.0)


@dataclass(frozen=True)
class Ranked:
    """The gains of the best features for many k; made by `rank`. Exact: no other features gain more."""

    gains: Array  # (m,) float64, at least 0, and infinite where a feature alone tells the classes apart
    forced: Array  # features that are in every support, ascending
    ks: Array  # (K,) int64, ascending
    value: Array  # (K,) gain of the best k features
    cost: Array  # (K,) what is left of the cost; of features with a finite gain
    null: float  # the cost at k = 0
    noise: float = 0.0  # gains closer than this are the same number

    @property
    def bound(self) -> Array:
        """No support of k features gains more, (K,)."""
        return self.value

    @property
    def gap(self) -> Array:
        """Nothing is lost, (K,)."""
        return np.zeros(len(self.ks))

    @property
    def objective(self) -> Array:
        """The cost of the best k features, (K,)."""
        return self.cost

    def support(self, k: int) -> Array:
        """The best k features, ascending; of equal gains the lower ones."""
        return choose(self.gains, k, self.forced)


def rank(
    gains: Array, ks: Array | None = None, *, cost: Cost | None = None, always: Sequence[int] | Array | None = None
) -> Ranked:
    """The best features for each of ``ks``, which ascend; all of 0 to m if not given.

    ``always`` are in every support and count in k. ``cost`` is that of no features.

    >>> ranked = rank(np.array([2.0, 5.0, 0.0, 2.0]), cost=Cost(9.0))
    >>> ranked.value.tolist(), ranked.cost.tolist(), ranked.support(2).tolist()
    ([0.0, 5.0, 7.0, 9.0, 9.0], [9.0, 4.0, 2.0, 0.0, 0.0], [0, 1])
    """
    cost = Cost(0.0) if cost is None else cost
    m = len(gains)
    first = 0 if always is None else len(np.unique(always))
    ks = np.arange(first, m + 1) if ks is None else np.clip(np.asarray(ks, np.int64), 0, m)
    forced = forced_features(None if always is None else np.asarray(always), int(ks.min(initial=m)), m)
    free = np.delete(gains, forced) if len(forced) else gains
    order = np.concatenate((descending(gains[forced]), descending(free, int(ks.max(initial=0)) - len(forced))))
    finite = np.isfinite(order)
    sums = prefix_sums(np.where(finite, order, 0.0), ks)
    endless = np.concatenate(([False], np.logical_or.accumulate(~finite)))[ks]
    value = np.where(endless, np.inf, sums[0] + sums[1])
    return Ranked(gains, forced, ks, value, cost.less(sums), cost.high + cost.low)


def descending(gains: Array, n: int | None = None) -> Array:
    """The n largest gains, or all, in descending order."""
    if n is not None and n < len(gains):
        gains = np.partition(gains, len(gains) - n - 1)[len(gains) - n :]
    return np.sort(gains)[::-1]


def choose(gains: Array, k: int, forced: Array | None = None) -> Array:
    """The k features of largest gain, ``forced`` ones among them, ascending; of equal ones the lower.

    >>> choose(np.array([2.0, 5.0, 0.0, 2.0]), 2, np.array([2])).tolist()
    [1, 2]
    """
    if forced is None or not len(forced):
        return best(gains, k)
    free = np.delete(np.arange(len(gains)), forced)
    return np.sort(np.concatenate((forced, free[best(gains[free], k - len(forced))])))


def narrowed(gains: Array, ks: Sequence[int], forced: Array | None = None) -> list[Array]:
    """As `choose` for each of some k: the features of a smaller one are looked for among those of the larger ones.

    >>> [one.tolist() for one in narrowed(np.array([2.0, 5.0, 0.0, 2.0]), [1, 3])]
    [[1], [0, 1, 3]]
    """
    found, among = {}, np.arange(len(gains))
    forced = np.zeros(0, np.int64) if forced is None else forced
    for k in sorted(ks, reverse=True):
        if k < len(among):
            among = among[choose(gains[among], k, np.searchsorted(among, forced))]
        found[k] = among
    return [found[k] for k in ks]


def choose_sparse(columns: Array, gains: Array, n_features: int, k: int, forced: Array) -> Array:
    """As `choose`, where only ``columns``, which ascend, have ``gains`` and all other features gain nothing.

    >>> choose_sparse(np.array([3, 7]), np.array([0.0, 1.0]), 10, 3, np.array([5])).tolist()
    [0, 5, 7]
    """
    free = (gains > 0) & ~np.isin(columns, forced)
    taken = np.concatenate((forced, columns[free][best(gains[free], k - len(forced))]))
    others = np.arange(min(n_features, k + len(taken)))
    rest = others[~np.isin(others, taken)][: k - len(taken)]
    return np.sort(np.concatenate((taken, rest)))


class Best:
    """The k features of largest gain among all that go by in ascending order; never many more are held."""

    def __init__(self, k: int, forced: Array) -> None:
        self._k = k - len(forced)
        self._forced = forced
        self._forced_gains = np.zeros(len(forced))
        self._features, self._gains = [np.zeros(0, np.int64)], [np.zeros(0)]
        self._waiting = 0
        self._last = -1.0  # what a gain must be above, as others have come before

    def add(self, first: int, gains: Array) -> None:
        """Gains of the features ``first``, ``first + 1``, ..."""
        here = slice(*np.searchsorted(self._forced, (first, first + len(gains))))
        self._forced_gains[here] = gains[self._forced[here] - first]
        better = gains > self._last
        better[self._forced[here] - first] = False
        at = np.flatnonzero(better)
        self._features.append(first + at)
        self._gains.append(gains[at])
        self._waiting += len(at)
        if self._waiting > 2 * self._k + _SPARE:
            self._pick()

    def result(self) -> tuple[Array, Array]:
        """The features, ascending, and their gains."""
        self._pick()
        features = np.concatenate((self._forced, self._features[0]))
        order = np.argsort(features)
        return features[order], np.concatenate((self._forced_gains, self._gains[0]))[order]

    def _pick(self) -> None:
        features, gains = np.concatenate(self._features), np.concatenate(self._gains)
        chosen = best(gains, self._k)
        self._features, self._gains, self._waiting = [features[chosen]], [gains[chosen]], len(chosen)
        if len(chosen) == self._k:
            self._last = float(gains[chosen].min(initial=np.inf))


def scaled(separation: Separation, variance: Array, constant: Array, floor: float = 0.0) -> tuple[Array, Array]:
    """Gains under a variance (m,) of each feature, and the variances used, which are ``floor`` at least.

    Features that are ``constant`` (m,) within each class gain nothing if their class means are equal. Those without any
    variance are infinitely good if not.

    >>> far = Separation(gain=np.array([2.0, 0.0, 2.0]), pooled=np.zeros(3))
    >>> scaled(far, np.array([4.0, 0.0, 0.0]), np.array([False, True, True]))[0].tolist()
    [0.5, 0.0, inf]
    """
    # Means of constants are values: they differ by more than this, or by rounding.
    same = constant & (np.sqrt(separation.gain) <= _SAME * np.abs(separation.pooled))
    used = np.maximum(np.where(same, 0.0, variance), floor)
    with np.errstate(divide="ignore", over="ignore"):
        gains = np.divide(separation.gain, used, out=np.zeros(len(used)), where=~same & (separation.gain > 0))
    return gains, used


def symmetric_root(covariance: Array, floor: float = 0.0) -> Array:
    """The symmetric root of the inverse of a covariance (m, m), of its pseudo-inverse if it is singular.

    Directions with a variance below ``floor`` get that variance. Which directions have none is told from features in
    units of their standard deviations: units may be as far apart as they like.

    >>> symmetric_root(np.diag([4.0, 0.25])).tolist()
    [[0.5, 0.0], [0.0, 2.0]]
    """
    if not np.isfinite(covariance).all():
        raise InputError("the covariance has values that a float does not hold; scale the features down")
    values, directions = np.linalg.eigh(covariance)
    if len(values) and values[0] <= _DOUBTFUL * values[-1]:
        values, directions = _axes_of_any_units(covariance)
    root = (directions / np.sqrt(np.maximum(values, floor))) @ directions.T
    if floor > 0 and len(values) < len(root):
        root += (np.eye(len(root)) - directions @ directions.T) / np.sqrt(floor)
    return (root + root.T) / 2


def _axes_of_any_units(covariance: Array) -> tuple[Array, Array]:
    """The variances above 0 of a covariance (m, m), (r,), and their directions (m, r), each to nearly all its digits.

    Eigenvalues are rounded by the size of the largest, which leaves nothing of a feature in small units beside one in
    large ones. Singular values of a root whose rows are in those units are not (Demmel and others, Computing the
    singular value decomposition with high relative accuracy, 1999): units are taken off and put back.
    """
    from scipy.linalg.lapack import dgejsv  # takes a while to load

    units = np.sqrt(np.diag(covariance))
    inverse = np.divide(1.0, units, out=np.zeros(len(units)), where=units > 0)
    values, directions = np.linalg.eigh(covariance * inverse[:, None] * inverse)
    varies = values > _DEPENDENT * values[-1]
    whitened = directions[:, varies] * np.sqrt(values[varies])
    if not whitened.shape[1]:
        return values[varies], whitened
    factor = units[:, None] * whitened
    spread, axes, right, scaling, _, failed = dgejsv(factor, joba=_ANY_UNITS)
    if failed:
        raise InputError("the covariance is too close to singular; give a variance_floor above 0")
    spread *= scaling[0] / scaling[1]
    if varies.all():  # axes are U = F W / s = F'^-1 W s: each number of them comes from the smaller of these
        opposite = inverse[:, None] * (directions / np.sqrt(values))
        axes = np.where(units[:, None] < spread, factor @ right / spread, opposite @ right * spread)
    return spread**2, axes


def best(scores: Array, k: int) -> Array:
    """The k features of largest score, ascending; of equal ones the lower.

    >>> best(np.array([1.0, 3.0, 1.0, 2.0]), 3).tolist()
    [0, 1, 3]
    """
    k = max(0, min(int(k), len(scores)))
    if k == 0:
        return np.zeros(0, np.int64)
    last = np.partition(scores, len(scores) - k)[len(scores) - k]
    above = np.flatnonzero(scores > last)
    return np.sort(np.concatenate((above, np.flatnonzero(scores == last)[: k - len(above)])))
