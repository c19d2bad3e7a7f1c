"""What sparse naive Bayes estimators share: counting, adding to the counts, and taking from them."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.dataset import Dataset
from nfs_dask.engine.engine import Engine
from nfs_dask.engine.folding import Reduction
from nfs_dask.engine.plan import Plan
from nfs_dask.errors import InputError
from nfs_dask.estimators.by_class import check_class_weight, check_prior
from nfs_dask.estimators.classifier import (
    provenance_of,
    read_only,
    refuse_nothing,
    too_wide,
)
from nfs_dask.estimators.incremental_classifier import AddingClassifier
from nfs_dask.estimators.inputs import (
    check_alpha,
    check_fitted,
    forced_columns,
    note_features,
    numeric,
    open_labelled,
)
from nfs_dask.estimators.naming import KnownNames
from nfs_dask.estimators.rare_classes import warn_of_rare_classes
from nfs_dask.methods.class_factors import Weighing
from nfs_dask.methods.naive_bayes import Counts, Settings
from nfs_dask.methods.number_of_features import number_to_keep
from nfs_dask.models.naive_bayes import NaiveBayesModel
from nfs_dask.sources.source import Source
from nfs_dask.statistics.class_totals import PanelTotals
from nfs_dask.statistics.counts import ClassCounts
from nfs_dask.statistics.incremental import subtract
from nfs_dask.statistics.panels import HeldPanels, held
from nfs_dask.statistics.statistic import State


class SparseNaiveBayes(AddingClassifier):
    """A naive Bayes classifier over k features that are chosen together with its parameters.

    The counts stay in memory after a fit, (C, n_features_in_), so that documents can be added and taken away.
    """

    alpha: Any
    fit_prior: Any
    class_prior: Any
    class_weight: Any = None  # of methods that do not take it
    model_: NaiveBayesModel
    _sums: State | HeldPanels  # of all documents so far
    class_log_prior_: Array  # (C,) of the priors; -inf for a class without documents
    feature_log_prob_: Array  # (C, k) log P(i|c) of the chosen features

    @abstractmethod
    def _statistic(self, n_classes: int, source: Source) -> ClassCounts:
        """The counts this method needs of a source."""

    @abstractmethod
    def _counted(self, arrays: dict[str, Array]) -> Array:
        """The totals (C, m) among the arrays of a state."""

    @abstractmethod
    def _model(self, counts: Counts, settings: Settings) -> NaiveBayesModel:
        """Choose features and estimate."""

    @abstractmethod
    def _scores(self, counts: Counts) -> Array:
        """Gain of each feature, (m,)."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose the features and fit the classifier, from nothing.

        Parameters
        ----------
        X : (n, m) matrix, dask array or DataFrame, or Dataset
            Values of zero or more. Nothing is densified; data on disk are read block by block.
        y : (n,) labels, optional
            Strings, integers or booleans. A Dataset brings its own.
        sample_weight : (n,) weights of zero or more, or one for all rows, optional
        """
        X = numeric(X)
        dataset = open_labelled(self, X, y, sample_weight)
        note_features(self, X, dataset.source, reset=True)
        classes = dataset.known_classes()
        settings = self._settings(dataset.source, classes)
        reduction = dataset.reduce(self._statistic(len(classes), dataset.source), self.engine)
        panels = reduction.panels
        if too_wide(panels, len(classes)):
            self._settle_panels(classes, settings, dataset.source, reduction)
        else:
            self._settle(classes, held(panels), settings, dataset.source, reduction)
        warn_of_rare_classes(self.model_)
        return self

    def statistic(self, dataset: Dataset) -> ClassCounts:
        """What `fit` would count of a dataset, when all parameters have been checked; nothing is read.

        Parameters
        ----------
        dataset
            With labels.
        """
        classes = dataset.known_classes()
        self._settings(dataset.source, classes)
        return self._statistic(len(classes), dataset.source)

    def plans(self, dataset: Dataset, engine: Engine | None) -> list[Plan]:
        return [dataset.plan(self.statistic(dataset), engine)]

    def predict_joint_log_proba(self, X: Any) -> Any:
        """Log P(c) + log P(x|c) for each class, (n, C); up to a constant of the row where k leaves features out."""
        return self._score(X, "scores")

    @property
    def scores_(self) -> Array:
        """Gain of each feature, (n_features_in_,); worked out from the counts when it is asked for."""
        check_fitted(self)
        self._check_state()
        settings = Settings(k=1, class_weight=check_class_weight(self.class_weight, self.classes_))
        weighed = self._weighed(self._state.totals, settings)
        return self._scores(Counts.held(self.classes_, weighed, self._state))

    @property
    def feature_count_(self) -> Array:
        """Totals of each feature in each class, (C, n_features_in_), before ``class_weight`` and smoothing."""
        check_fitted(self)
        self._check_state()
        return read_only(self._counted(self._state.arrays))

    def _settings(self, source: Source, classes: Array) -> Settings:
        return Settings(
            k=number_to_keep(self.k, source.n_features),
            alpha=check_alpha(self.alpha),
            always=forced_columns(self.always, source),
            fit_prior=bool(self.fit_prior),
            class_prior=check_prior(self.class_prior, classes),
            class_weight=check_class_weight(self.class_weight, classes),
        )

    def _settle(
        self,
        classes: Array,
        sums: State | HeldPanels,
        settings: Settings,
        source: Source,
        reduction: Reduction,
        earlier: KnownNames | None = None,
    ) -> None:
        """Solve, and only then remember: an estimator that refused is as it was."""
        counts = Counts.held(classes, self._weighed(sums.totals, settings), sums)
        self._learn(counts, settings, int(sums.totals["rows"].sum()), source, reduction, earlier)
        self._sums = sums

    @property
    def _state(self) -> State:  # type: ignore[override]
        """The sums in one piece, for those who add to them or look at all of them."""
        if isinstance(self._sums, HeldPanels):
            self._sums = self._sums.state()
        return self._sums

    def __getstate__(self) -> dict[str, Any]:
        if hasattr(self, "_sums"):
            self._sums = self._state
        return super().__getstate__()

    def _settle_panels(self, classes: Array, settings: Settings, source: Source, reduction: Reduction) -> None:
        """Solve over panels, which stay where they are: the estimator has no counts to add to."""
        panels = reduction.panels
        weighed = self._weighed(panels.totals, settings)
        totals = PanelTotals(panels, weighed.pick)
        counts = Counts(classes, weighed.documents, totals, panels.totals.get("lengths"))
        self._learn(counts, settings, int(panels.totals["rows"].sum()), source, reduction, None)
        if hasattr(self, "_sums"):
            del self._sums

    def _learn(
        self,
        counts: Counts,
        settings: Settings,
        rows: int,
        source: Source,
        reduction: Reduction,
        earlier: KnownNames | None,
    ) -> None:
        refuse_nothing(counts.documents)
        if not np.isfinite(counts.documents).all():
            raise InputError("sample weights add up to more than a float holds; scale them down")
        self._remember(self._model(counts, settings), source, provenance_of(rows, source, reduction), earlier)

    def _counting(self, dataset: Dataset, n_classes: int, first: bool) -> ClassCounts:
        return self._statistic(n_classes, dataset.source)

    def _said_by(self, model: NaiveBayesModel) -> dict[str, Any]:
        logs = {"class_log_prior_": read_only(model.class_log_prior), "feature_log_prob_": read_only(model.present)}
        return super()._said_by(model) | logs

    def _less(self, state: State, part: State) -> State:
        return subtract(state, part)

    def _weighed(self, totals: dict[str, Array], settings: Settings) -> Weighing:
        return Weighing.of(settings.class_weight, totals["weight"], self._counted)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.classifier_tags.poor_score = True  # as of scikit-learn's own naive Bayes classifiers of counts
        return tags
