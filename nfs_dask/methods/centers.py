"""From moments, covariances and medians to sparse centers. Pure functions of arrays.

Classes weigh the same, however many documents they have: the common center of a feature is the mean of the class means,
or the median under weights that add up to 1 in each class. Classes without documents take no part.

References: SC (Calafiore and Fracastoro 2019) (8), (10), Propositions 1 and 3; section 4.1, (12), (13).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.arrays.doubles import Pair
from nfs_dask.errors import InputError
from nfs_dask.models.centers import CentersModel
from nfs_dask.models.model import NOT_JUDGED, Evidence
from nfs_dask.solvers.centers.best_features import (
    Best,
    Cost,
    Ranked,
    choose_sparse,
    descending,
    rank,
    scaled,
    symmetric_root,
)
from nfs_dask.solvers.centers.separation import Separation, add_squares, add_up, prefix_sums, separate
from nfs_dask.solvers.medians.column_medians import Medians
from nfs_dask.solvers.naive_bayes.problem import forced_features
from nfs_dask.statistics.gram import covariance
from nfs_dask.statistics.moments import POWER, SUMS, Moments, moments
from nfs_dask.statistics.panels import MemoryPanels, Panels
from nfs_dask.statistics.statistic import State

METHODS = {"euclidean": "l2", "mahalanobis": "mahalanobis", "manhattan": "l1"}  # by metric
COVARIANCES = ("within", "total", "full")

_TELLING = 1000  # times what rounding hides of variances: class means so far apart differ in any case
_CELLS = 1 << 14  # classes times columns that are worked on at a time, so that they stay in the cache


@dataclass(frozen=True)
class CenterSettings:
    """How many features to choose, and what is far."""

    k: int
    metric: str = "euclidean"  # one of METHODS
    covariance: str = "within"  # of mahalanobis: one of COVARIANCES
    variance_floor: float = 0.0  # of mahalanobis: no variance is taken to be less
    always: Array | None = None  # features that are chosen in any case; they count in k

    @property
    def method(self) -> str:
        return METHODS[self.metric]


def fit_moments(classes: Array, panels: Panels, settings: CenterSettings) -> CentersModel:
    """The best sparse centers by squares of differences, as they are or over variances.

    Panels go by one after another, and no more than what the answer takes is held of them.
    """
    sweep = _Sweep(panels, settings)
    k = min(settings.k, panels.n_features)
    best = Best(k, forced_features(settings.always, k, panels.n_features))
    for first, gains in sweep:
        best.add(first, gains)
    support, gains = best.result()
    chosen = MemoryPanels(State(panels.columns(support), panels.totals), len(support))
    model, _ = _estimated(classes, sweep, chosen, panels.n_features, support)
    return replace(model, evidence=_evidence(sweep.cost, gains))


def every_moment(classes: Array, panels: Panels, settings: CenterSettings) -> tuple[CentersModel, Array]:
    """The model of all features, without evidence, and their gains, (m,): one look has all that smaller models need."""
    everything = np.arange(panels.n_features)
    return _estimated(classes, _Sweep(panels, settings), panels, panels.n_features, everything)


def _estimated(
    classes: Array, sweep: _Sweep, chosen: Panels, n_features: int, support: Array
) -> tuple[CentersModel, Array]:
    """The model of some columns of a sweep, not judged, and their gains."""
    gains, centers, pooled, variances = sweep.estimates(chosen)
    model = CentersModel(
        method=sweep.settings.method,
        classes=classes,
        class_count=chosen.totals["weight"],
        n_features=n_features,
        support=support,
        evidence=NOT_JUDGED,
        centers=centers,
        pooled=pooled,
        variances=variances,
        covariance=None if variances is None else sweep.settings.covariance,
    )
    return model, gains


def moment_gains(panels: Panels, settings: CenterSettings) -> Array:
    """The gain of each feature, (m,); infinite where one without variance tells the classes apart."""
    return _all_gains(_Sweep(panels, settings))


def moment_path(panels: Panels, settings: CenterSettings, ks: Array | None = None) -> Ranked:
    """The best features for many k, which ascend; ``settings.k`` does not matter."""
    sweep = _Sweep(panels, settings)
    gains = _all_gains(sweep)
    return rank(gains, ks, cost=sweep.cost, always=settings.always)


def about_means(state: State) -> Array:
    """The mean of each feature (m,) by the moments of the first block: near enough to that over all rows.

    Sums of products are taken around there, so that they lose no digits.
    """
    found = moments(state)
    share = found.weight / max(found.weight.sum(), np.finfo(np.float64).tiny)
    return np.asarray(np.where(found.weight[:, None] > 0, found.means, 0.0).T @ share)


def fit_gram(classes: Array, state: State, settings: CenterSettings) -> CentersModel:
    """The best sparse centers of whitened features. The cost is told less that of no features, which is not known."""
    whitened = _Whitened.of(state, settings)
    ranked = rank(whitened.gains, np.array([settings.k]), always=settings.always)
    support = ranked.support(min(settings.k, len(whitened.gains)))
    return CentersModel(
        method=settings.method,
        classes=classes,
        class_count=state.totals["weight"],
        n_features=len(whitened.gains),
        support=support,
        evidence=_certain(-float(ranked.value[0])),
        centers=whitened.centers[:, support],
        pooled=np.zeros(len(support)),
        covariance="full",
        root=np.ascontiguousarray(whitened.root[:, support]),
        shift=whitened.shift,
    )


def gram_gains(state: State, settings: CenterSettings) -> Array:
    """The gain of each whitened feature, (m,)."""
    return _Whitened.of(state, settings).gains


def gram_path(state: State, settings: CenterSettings, ks: Array | None = None) -> Ranked:
    """The best whitened features for many k, which ascend; costs are told less that of no features, so below 0."""
    ranked = rank(gram_gains(state, settings), ks, always=settings.always)
    return replace(ranked, cost=0.0 - ranked.value)


def fit_medians(classes: Array, medians: Medians, settings: CenterSettings) -> CentersModel:
    """The best sparse centers by absolute differences."""
    k = min(settings.k, medians.n_features)
    forced = forced_features(settings.always, k, medians.n_features)
    support = choose_sparse(medians.columns, medians.gains, medians.n_features, k, forced)
    pooled = _at(medians, medians.pooled, support)
    return CentersModel(
        method=settings.method,
        classes=classes,
        class_count=medians.weight,
        n_features=medians.n_features,
        support=support,
        evidence=_evidence(_median_cost(medians), _at(medians, medians.gains, support)),
        centers=np.where(medians.weight[:, None] > 0, _at(medians, medians.centers, support), pooled),
        pooled=pooled,
    )


def largest_median(classes: Array, medians: Medians, settings: CenterSettings) -> tuple[CentersModel, Array]:
    """As `fit_medians`, without evidence, with the gains of its features: all that smaller models need."""
    model = fit_medians(classes, medians, settings)
    return replace(model, evidence=NOT_JUDGED), _at(medians, medians.gains, model.support)


def median_gains(medians: Medians) -> Array:
    """The gain of each feature, (m,)."""
    gains = np.zeros(medians.n_features)
    gains[medians.columns] = medians.gains
    return gains


def median_path(medians: Medians, settings: CenterSettings, ks: Array | None = None) -> Ranked:
    """The best features for many k, which ascend; ``settings.k`` does not matter."""
    return rank(median_gains(medians), ks, cost=_median_cost(medians), always=settings.always)


class _Sweep:
    """One look at all moments, some columns at a time: their gains, and what adds up on the way."""

    def __init__(self, panels: Panels, settings: CenterSettings) -> None:
        diagonal = settings.metric == "mahalanobis" and settings.covariance != "full"
        if not diagonal and settings.metric != "euclidean":
            raise InputError(
                f"metric={settings.metric!r} with covariance={settings.covariance!r} does not follow from moments; "
                'give "euclidean", or "mahalanobis" with covariance="within" or "total"'
            )
        self.n_features = panels.n_features
        self._panels, self.settings, self._is_scaled = panels, settings, diagonal
        self._seen = _seen(panels.totals["weight"])
        self._weights = Pair(panels.totals["weight"][self._seen], panels.totals["weight_low"][self._seen])
        self._squares = np.zeros((3, len(self._seen)))  # of class sums, where costs are squares
        self._cost = np.zeros(2)  # of what is left with all centers, where that is known by feature, and of gains

    def __iter__(self) -> Iterator[tuple[int, Array]]:
        """First column and gains of some columns in turn, ascending."""
        for first, state in self._pieces(self._panels):
            sums = self._sums(state)
            far = separate(sums, self._weights)
            if self._is_scaled:
                yield first, self._add(far, moments(state), first)
            else:
                add_squares(sums, self._squares)
                add_up(far.gain, self._cost)
                yield first, far.gain

    @property
    def cost(self) -> Cost:
        """The cost of no features; known when all columns have gone by."""
        gains = Fraction(self._cost[0]) + Fraction(self._cost[1])
        if self._is_scaled:
            return Cost.of(gains)
        powers = _exact([self._panels.totals[name][self._seen] for name in POWER])
        weights, squares = _exact([self._weights.hi, self._weights.lo]), _exact(self._squares)
        spreads = [(p - q / w) / w for p, q, w in zip(powers, squares, weights, strict=True)]
        return Cost.of(gains + sum(max(spread, Fraction(0)) for spread in spreads))

    def estimates(self, panels: Panels) -> tuple[Array, Array, Array, Array | None]:
        """Gains (k,), centers (C, k), pooled ones (k,), and variances (k,) if there are any, of k columns."""
        gains, pooled, variances = np.zeros((3, panels.n_features))
        centers = np.zeros((len(panels.totals["weight"]), panels.n_features))
        for first, state in self._pieces(panels):
            found, far = moments(state), separate(self._sums(state), self._weights)
            columns = slice(first, first + len(far.pooled))
            pooled[columns] = far.pooled
            centers[:, columns] = far.pooled
            centers[self._seen, columns] = found.means[self._seen]
            gains[columns] = far.gain
            if self._is_scaled:
                gains[columns], variances[columns] = self._scaled(far, found, first)
        return gains, centers, pooled, variances if self._is_scaled else None

    def _pieces(self, panels: Panels) -> Iterator[tuple[int, State]]:
        """First column and state of some columns in turn."""
        together = max(64, _CELLS // len(self._seen))
        for start, panel in panels:
            width = max((array.shape[1] for array in panel.arrays.values()), default=0)
            for i in range(0, width, together):
                arrays = {name: array[:, i : i + together] for name, array in panel.arrays.items()}
                yield start + i, State(arrays, panel.totals)

    def _sums(self, state: State) -> Pair:
        sums = _class_sums(state.arrays)
        return Pair(sums.hi[self._seen], sums.lo[self._seen])

    def _add(self, far: Separation, found: Moments, first: int) -> Array:
        """The gains, which are added to the cost, with what is left when all features have their centers."""
        gains, variance = self._scaled(far, found, first)
        varies = variance > 0
        assert found.spread is not None
        add_up(found.spread[varies] / variance[varies], self._cost)
        add_up(gains[np.isfinite(gains)], self._cost)
        return gains

    def _scaled(self, far: Separation, found: Moments, first: int) -> tuple[Array, Array]:
        variance = found.within if self.settings.covariance == "within" else found.total
        if variance is None or found.spread is None or found.lost is None:
            raise InputError('metric="mahalanobis" needs moments with squares; count them with squares=True')
        floor = self.settings.variance_floor
        gains, variance = scaled(far, variance, found.spread == 0, floor)
        doubtful = (found.spread == 0) & (gains > 0) & (far.gain < _TELLING * found.lost) & (found.lost > floor)
        if doubtful.any():
            feature = int(np.argmax(doubtful))
            raise InputError(
                f"the values of feature {first + feature} are around {far.pooled[feature]:.3g}, so far from 0 that "
                "their variance under these weights is lost in rounding; subtract a constant from the feature, give "
                f"whole-number weights, or a variance_floor above {found.lost[feature]:.1g}"
            )
        return gains, variance


@dataclass(frozen=True)
class _Whitened:
    """Means as a symmetric root of the inverse covariance sees them, about their own mean."""

    root: Array  # (m, m)
    shift: Array  # (m,) the mean of the class means
    centers: Array  # (C, m) of whitened features; their mean is 0
    gains: Array  # (m,)

    @classmethod
    def of(cls, state: State, settings: CenterSettings) -> _Whitened:
        seen = _seen(state.totals["weight"])
        means, matrix = covariance(state)
        root = symmetric_root(matrix, settings.variance_floor)
        shift = means[seen].mean(axis=0)
        centers = np.zeros(means.shape)
        centers[seen] = (means[seen] - shift) @ root
        return cls(root, shift, centers, (centers**2).sum(axis=0))


def _all_gains(sweep: _Sweep) -> Array:
    out = np.zeros(sweep.n_features)
    for first, gains in sweep:
        out[first : first + len(gains)] = gains
    return out


def _seen(weight: Array) -> Array:
    """Positions of the classes that have documents."""
    seen = np.flatnonzero(weight > 0)
    if not len(seen):
        raise InputError("no class has documents of a weight above 0; give at least one")
    return seen


def _class_sums(arrays: dict[str, Array]) -> Pair:
    """Sums (C, m) of values, whole and other ones together."""
    whole, real, low = (arrays.get(name) for name in SUMS)
    if real is None or low is None:
        return Pair.of(arrays[SUMS[0]])
    return Pair(real, low) if whole is None else Pair(real, low) + Pair.of(whole)


def _exact(terms: Iterable[Array]) -> list[Fraction]:
    """The sum of some arrays (n,) of doubles, as n fractions."""
    return [sum(map(Fraction, parts), Fraction(0)) for parts in np.transpose(list(terms)).tolist()]


def _median_cost(medians: Medians) -> Cost:
    """The cost of no features: what values are away from the pooled medians."""
    running = np.zeros(2)
    add_up(np.array([medians.settled]), running)
    add_up(medians.pooled_dispersions, running)
    return Cost(*running.tolist())


def _at(medians: Medians, values: Array, support: Array) -> Array:
    """Values (..., U) at some features; 0 at those that are settled."""
    place = np.minimum(np.searchsorted(medians.columns, support), max(0, len(medians.columns) - 1))
    if not len(medians.columns):
        return np.zeros((*values.shape[:-1], len(support)))
    return np.where(medians.columns[place] == support, values[..., place], 0.0)


def _evidence(cost: Cost, gains: Array) -> Evidence:
    """The cost that is left when the features of these ``gains`` are chosen; it leaves out those without variance."""
    finite = descending(gains[np.isfinite(gains)])
    return _certain(float(cost.less(prefix_sums(finite, np.array([len(finite)])))[0]))


def _certain(objective: float) -> Evidence:
    """No other support is better: gains are all there is to it."""
    return Evidence(objective=objective, gap=0.0, certified=True, point=None, n_evaluations=1)
