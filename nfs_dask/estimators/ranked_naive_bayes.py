"""What the naive Bayes estimators share whose features are chosen by what they gain: paths, and rules that choose k."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.dataset import Dataset
from nfs_dask.engine.engine import Engine
from nfs_dask.estimators.classifier import refuse_nothing, too_wide
from nfs_dask.estimators.naive_bayes import SparseNaiveBayes
from nfs_dask.methods.naive_bayes import Counts, Settings
from nfs_dask.methods.supports import Ranking, Supports
from nfs_dask.statistics.class_totals import PanelTotals, Totals
from nfs_dask.statistics.counts import ClassCounts
from nfs_dask.statistics.panels import Panels, held

if TYPE_CHECKING:
    from nfs_dask.methods.recipes import CountsRecipe


class RankedNaiveBayes(SparseNaiveBayes):
    """A naive Bayes classifier over the k features that gain most."""

    @abstractmethod
    def _supports(self, totals: Totals, class_count: Array, ks: Array) -> Supports:
        """Solve for all k, given the totals and the documents of the classes that have any."""

    @abstractmethod
    def _predicted_error(self, model: Any, panels: Panels) -> float:
        """How often a model will be wrong, from what `_counting_for_errors` counted."""

    def _counting_for_errors(self, statistic: ClassCounts) -> ClassCounts:
        """What is counted to predict errors, given what a fit counts."""
        return statistic

    def recipe(self, dataset: Dataset, n_matrices: int | None = None) -> CountsRecipe:
        return self._recipe(self.statistic(dataset), self.settings(dataset))

    def _recipe(self, counting: ClassCounts, settings: Settings) -> CountsRecipe:
        from nfs_dask.methods.recipes import CountsRecipe

        return CountsRecipe(counting, settings, self._counted, self._model)

    def rank(self, dataset: Dataset, ks: Array) -> Ranking:
        """The best features for many k; the model stays as it is.

        Parameters
        ----------
        dataset
            With labels.
        ks : (K,) ascending
        """
        classes = dataset.known_classes()
        reduction = dataset.reduce(self.statistic(dataset), self.engine)
        panels = reduction.panels
        refuse_nothing(panels.totals["weight"])
        weighed = self._weighed(panels.totals, self.settings(dataset))
        if too_wide(panels, len(classes)):
            counts = Counts(classes, weighed.documents, PanelTotals(panels, weighed.pick))
        else:
            counts = Counts.held(classes, weighed, held(panels))
        supports = self._supports(counts.seen_totals, counts.documents[counts.seen], ks)
        return Ranking(supports, int(panels.totals["rows"].sum()), reduction.reused)

    def predicted_errors(self, dataset: Dataset, ks: Array, engine: Engine | None) -> Array:
        """How often models of each k will be wrong, (K,), predicted from what one pass counts.

        Parameters
        ----------
        dataset
            With labels.
        ks : (K,) ascending
        engine
            Where the pass runs.
        """
        counting = self._counting_for_errors(self.statistic(dataset))
        panels = dataset.reduce(counting, engine).panels
        fit = self._recipe(counting, self.settings(dataset)).fitting(dataset.known_classes(), panels)
        return np.array([self._predicted_error(fit(k, float(self.alpha)), panels) for k in ks.tolist()])
