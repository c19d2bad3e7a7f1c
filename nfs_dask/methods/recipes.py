"""How models of many k and alpha are made from what one pass counts, method by method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.dataset import Dataset
from nfs_dask.methods.centers import (
    CenterSettings,
    about_means,
    every_moment,
    fit_gram,
    fit_moments,
    gram_gains,
    largest_median,
)
from nfs_dask.methods.class_factors import Weighing
from nfs_dask.methods.class_medians import median_procedure
from nfs_dask.methods.hybrid import HybridFit, HybridSettings, hybrid_procedure
from nfs_dask.methods.naive_bayes import Counts, Settings
from nfs_dask.methods.procedure import Procedure, Sum
from nfs_dask.methods.recipe import Fit, Grid
from nfs_dask.models.centers import CentersModel
from nfs_dask.models.model import NOT_JUDGED, Model
from nfs_dask.models.nested_centers import NestedCenters, part_of
from nfs_dask.solvers.centers.best_features import choose, narrowed
from nfs_dask.solvers.naive_bayes.problem import forced_features
from nfs_dask.sources.views import View, some_blocks
from nfs_dask.statistics.class_totals import ArrayTotals, PanelTotals, Pick
from nfs_dask.statistics.counts import ClassCounts
from nfs_dask.statistics.gram import Gram
from nfs_dask.statistics.moments import ClassMoments
from nfs_dask.statistics.panels import Panels


@dataclass(frozen=True)
class CountsRecipe:
    """Naive Bayes."""

    counting: ClassCounts  # for any number of classes
    settings: Settings  # for any k and alpha
    pick: Pick  # of what was counted, the totals that features are chosen by
    make: Callable[[Counts, Settings], Model]

    def statistic(self, n_classes: int) -> ClassCounts:
        return replace(self.counting, n_classes=n_classes)

    def fitting(self, classes: Array, panels: Panels) -> Fit:
        weighed = Weighing.of(self.settings.class_weight, panels.totals["weight"], self.pick)
        pick = weighed.pick
        totals = ArrayTotals(pick(panels.arrays(0))) if len(panels) == 1 else PanelTotals(panels, pick)
        counts = Counts(classes, weighed.documents, totals)

        def fit(k: int, alpha: float | None) -> Model:
            assert alpha is not None, "naive Bayes smooths"
            return self.make(counts, replace(self.settings, k=k, alpha=alpha, judged=False))

        return fit


@dataclass(frozen=True)
class MomentsRecipe:
    """Centers that are means."""

    settings: CenterSettings  # for any k

    def statistic(self, n_classes: int) -> ClassMoments:
        return ClassMoments(n_classes, squares=self.settings.metric == "mahalanobis")

    def fitting(self, classes: Array, panels: Panels) -> Fit:
        if len(panels) > 1:
            return lambda k, _: fit_moments(classes, panels, replace(self.settings, k=k))
        # In memory, all features are estimated once; which of them a model has is a matter of their order.
        return NestedFit(*every_moment(classes, panels, self.settings), self.settings.always)


@dataclass(frozen=True)
class MediansRecipe:
    """Centers that are medians."""

    settings: CenterSettings  # for any k

    one_by_one = False

    def learn(self, dataset: Dataset, grid: Grid) -> Procedure[tuple[Array, Sequence[Model]]]:
        classes, medians = dataset.known_classes(), (yield from median_procedure(dataset)).medians
        if not medians.weight.any():
            return medians.weight, ()
        settings = replace(self.settings, k=int(grid.ks.max()))
        return medians.weight, grid.models(NestedFit(*largest_median(classes, medians, settings), settings.always))


@dataclass(frozen=True)
class GramRecipe:
    """Centers of whitened features."""

    settings: CenterSettings  # for any k

    one_by_one = False

    def learn(self, dataset: Dataset, grid: Grid) -> Procedure[tuple[Array, Sequence[Model]]]:
        classes, source = dataset.known_classes(), dataset.source
        # About which point does not matter, so it may be one of all folds: the first block may have no other rows.
        first = some_blocks(source.underlying if isinstance(source, View) else source, np.zeros(1, np.int64))
        shift = about_means((yield Sum("shift", ClassMoments(len(classes)), first)).state)
        state = (yield Sum("gram", Gram(len(classes), shift), source)).state
        if not state.totals["weight"].any():
            return state.totals["weight"], ()
        whole = fit_gram(classes, state, replace(self.settings, k=dataset.n_features))
        gains, always = gram_gains(state, self.settings), self.settings.always
        return state.totals["weight"], grid.models(NestedFit(replace(whole, evidence=NOT_JUDGED), gains, always))


@dataclass(frozen=True)
class HybridRecipe:
    """Hybrid naive Bayes."""

    settings: HybridSettings  # for any k and alpha
    model_of: Callable[[HybridFit, int], Model]  # the model of a fit to so many columns

    one_by_one = True

    def learn(self, dataset: Dataset, grid: Grid) -> Procedure[tuple[Array, Sequence[Model]]]:
        words, models = dataset.n_features // self.settings.n_regions, []
        for k, alpha in grid.pairs():
            assert alpha is not None, "hybrid naive Bayes smooths"
            settings = replace(self.settings, k=None if k == words else k, alpha=alpha)
            found = yield from hybrid_procedure(dataset, settings)
            models.append(self.model_of(found, dataset.n_features))
        return found.class_weight, tuple(models)


@dataclass(frozen=True)
class NestedFit:
    """Makes models of one that has all features they may have: those that gain most."""

    whole: CentersModel
    gains: Array  # of its features
    always: Array | None  # features that are in all models

    def __call__(self, k: int, alpha: float | None) -> CentersModel:
        model: CentersModel = part_of(self.whole, choose(self.gains, k, self._forced(k)))
        return model

    def many(self, ks: Array) -> NestedCenters:
        """Models of some k, of which the largest alone is held."""
        wanted = ks.tolist()
        return NestedCenters.of(self.whole, narrowed(self.gains, wanted, self._forced(min(wanted))))

    def _forced(self, k: int) -> Array:
        """Places of the features that are in any case, which are refused if they are more than k."""
        forced = forced_features(self.always, k, self.whole.n_features)
        return np.searchsorted(self.whole.support, forced)
