"""Sparse center classifiers.

References: SC (Calafiore and Fracastoro 2019) Definitions 1 and 2, Propositions 1 and 3, section 4.1.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.dataset import Dataset
from nfs_dask.engine.engine import Engine
from nfs_dask.engine.folding import Reduction
from nfs_dask.engine.plan import Plan
from nfs_dask.errors import InputError
from nfs_dask.estimators.available import available_if
from nfs_dask.estimators.classifier import (
    provenance,
    provenance_of,
    read_only,
    refuse_nothing,
    refuse_wide,
    too_wide,
)
from nfs_dask.estimators.exchangeable import equal_gains
from nfs_dask.estimators.incremental_classifier import AddingClassifier
from nfs_dask.estimators.inputs import (
    check_fitted,
    check_floor,
    check_one_of,
    forced_columns,
    note_features,
    numeric,
    open_labelled,
)
from nfs_dask.estimators.naming import KnownNames
from nfs_dask.estimators.rare_classes import warn_of_rare_classes
from nfs_dask.ingestion.other_names import hinting
from nfs_dask.methods.centers import (
    COVARIANCES,
    METHODS,
    CenterSettings,
    about_means,
    fit_gram,
    fit_medians,
    fit_moments,
    gram_gains,
    gram_path,
    median_gains,
    median_path,
    moment_gains,
    moment_path,
)
from nfs_dask.methods.class_medians import ClassMedians, class_medians, median_plans
from nfs_dask.methods.model_errors import centers_error
from nfs_dask.methods.number_of_features import number_to_keep
from nfs_dask.methods.recipes import GramRecipe, MediansRecipe, MomentsRecipe
from nfs_dask.methods.supports import Ranking
from nfs_dask.models.centers import CentersModel
from nfs_dask.sources.source import Source
from nfs_dask.sources.views import some_blocks
from nfs_dask.statistics.gram import Gram
from nfs_dask.statistics.moments import ClassMoments, moments, take_away
from nfs_dask.statistics.panels import MemoryPanels, Panels
from nfs_dask.statistics.statistic import State, Statistic


def _of_sums(estimator: CentersClassifier) -> bool:
    """Whether centers come from sums, which documents can be added to."""
    return bool(estimator.metric != "manhattan")


def _of_moments(estimator: CentersClassifier) -> bool:
    """Whether the sums are such that documents can be taken from them again."""
    return _of_sums(estimator) and _of_columns(estimator)


def _of_columns(estimator: CentersClassifier | CenterSettings) -> bool:
    """Whether features are columns of the data, rather than whitened."""
    return bool(estimator.metric != "mahalanobis" or estimator.covariance != "full")


def _has_probabilities(estimator: CentersClassifier) -> bool:
    """Whether distances stand for normal classes that share their variances."""
    return bool(estimator.metric == "mahalanobis" and estimator.covariance == "within")


class CentersClassifier(AddingClassifier):
    """Nearest center, where the centers of the classes differ in k features only. The choice is exactly optimal.

    minimise sum_c (1 / n_c) sum_{documents x of c} d(x, theta_c), where theta_c[i] differs between classes for at most
    k features i, and d is a squared Euclidean or Mahalanobis distance, or the sum of absolute differences.

    Parameters
    ----------
    k : int, float in (0, 1) or "all", default=10
        How many features to choose, or which share of them.
    metric : {"euclidean", "mahalanobis", "manhattan"}, default="euclidean"
        "euclidean": centers are means, in one pass. "mahalanobis": as that, with each feature divided by its standard
        deviation. "manhattan": centers are medians, found exactly in a few passes.
    covariance : {"within", "total", "full"}, default="within"
        Of "mahalanobis": variances of features about the centers of their classes, or about their mean over all
        documents; or the covariance matrix of all features, for as many as a matrix of them fits in memory.
    variance_floor : float, default=0.0
        Of "mahalanobis": smaller variances, with "full" smaller eigenvalues, are taken to be this.
    always : list of names or indices, optional
        Features that are chosen in any case; they count in k.
    engine : SerialEngine or DaskEngine, optional
        Where passes run. None: here for data in memory; the current Dask client, if there is one, for others.

    Attributes
    ----------
    classes_ : (C,) sorted labels
    class_count_ : (C,) float64
        Documents of each class, under their weights.
    n_features_in_ : int
    feature_names_in_ : (n_features_in_,) names, from data frames only
    centers_ : (C, k) float64
        Of the chosen features, in the order of the support.
    common_center_ : (k,) float64
        Where all classes would have these features if they were not chosen.
    scores_ : (n_features_in_,) float64
        Gain of each feature: what it takes off the objective.
    ties_ : (t,) int64
        Features that could take the place of a chosen one at the same cost, up to rounding.
    objective_, upper_bound_, dual_gap_, certified_
        Cost of the model; no other choice of k features costs less. With ``covariance="full"`` less the cost without
        any feature, so that it is below 0.
    coef_, intercept_ : of the linear rule; not for "manhattan", nor with features that have no variance
    provenance_ : dict
    model_ : nfs_dask.models.centers.CentersModel

    Notes
    -----
    Every class weighs the same, whatever its number of documents, and so do documents within a class, unless they have
    weights. Ties between features go to the lower index.

    With "mahalanobis", a feature that is constant within all classes and differs between them gains more than any
    other, and a document that is not on one of its centers is infinitely far from all of them there; give a
    ``variance_floor`` to weigh such features like others. With "full" the chosen features are those of the whitened
    data, ``x @ S**(-1/2)`` with the symmetric root: `transform` gives them, named after the features they are nearest.

    Probabilities are those of normal classes that are equally frequent and share the variances; only
    ``metric="mahalanobis", covariance="within"`` has them. `partial_fit` and `forget` are exact; "manhattan" has
    neither, as medians cannot be brought up to date, and with "full" documents can only be added.

    Examples
    --------
    >>> import numpy as np
    >>> from nfs_dask import SparseCentroid
    >>> X = np.array([[2.0, 0.1, -1.0], [3.0, -0.2, 0.5], [-2.0, 0.0, 0.7], [-3.0, 0.1, -0.6]])
    >>> model = SparseCentroid(k=1).fit(X, ["up", "up", "down", "down"])
    >>> model.get_support(indices=True).tolist(), model.centers_.tolist(), model.predict(X).tolist()
    ([0], [[-2.5], [2.5]], ['up', 'up', 'down', 'down'])
    """

    model_: CentersModel
    centers_: Array
    common_center_: Array

    @hinting({"class_weight": "nothing, as all classes weigh the same; for variances of others, sample_weight= of fit"})
    def __init__(
        self,
        k: int | float | str = 10,
        *,
        metric: str = "euclidean",
        covariance: str = "within",
        variance_floor: float = 0.0,
        always: Any = None,
        engine: Engine | None = None,
    ) -> None:
        self.k = k
        self.metric = metric
        self.covariance = covariance
        self.variance_floor = variance_floor
        self.always = always
        self.engine = engine

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose the features and find the centers, from nothing.

        Parameters
        ----------
        X : (n, m) matrix, dask array or DataFrame, or Dataset
            Finite values of any sign. Nothing is densified; data on disk are read block by block.
        y : (n,) labels, optional
            Strings, integers or booleans. A Dataset brings its own.
        sample_weight : (n,) weights of zero or more, or one for all rows, optional
        """
        X = numeric(X)
        dataset = open_labelled(self, X, y, sample_weight)
        note_features(self, X, dataset.source, reset=True)
        classes = dataset.known_classes()
        settings = self._settings(dataset.source, classes)
        if self.metric == "manhattan":
            self._fit_medians(dataset, classes, settings)
        else:
            self._fit_sums(dataset, classes, settings)
        warn_of_rare_classes(self.model_)
        return self

    def _fit_medians(self, dataset: Dataset, classes: Array, settings: CenterSettings) -> None:
        found = class_medians(dataset, self.engine)
        refuse_nothing(found.medians.weight)
        model = fit_medians(classes, found.medians, settings)
        facts = provenance(found.medians.rows, dataset.source, **found.to_json())
        self._remember(model, dataset.source, facts, None)
        self._keep_nothing()
        self._medians = found.medians

    def _fit_sums(self, dataset: Dataset, classes: Array, settings: CenterSettings) -> None:
        statistic = self._counting(dataset, len(classes))
        reduction = dataset.reduce(statistic, self.engine)
        panels = reduction.panels
        refuse_nothing(panels.totals["weight"])
        if isinstance(statistic, Gram) or not too_wide(panels, (1 + statistic.squares) * len(classes)):
            self._settle(classes, panels.state(), settings, dataset.source, reduction)
            return
        model = fit_moments(classes, panels, settings)
        facts = provenance_of(int(panels.totals["rows"].sum()), dataset.source, reduction)
        self._remember(model, dataset.source, facts, None)
        self._keep_nothing()

    partial_fit = available_if(_of_sums)(AddingClassifier.partial_fit)
    forget = available_if(_of_moments)(AddingClassifier.forget)

    def plans(self, dataset: Dataset, engine: Engine | None) -> list[Plan]:
        classes = dataset.known_classes()
        n_classes = len(classes)
        self._settings(dataset.source, classes)
        if self.metric == "manhattan":
            return median_plans(dataset, engine)
        if not self._is_full:
            return [dataset.plan(self._counting(dataset, n_classes), engine)]
        refuse_wide(dataset.n_features)
        return [dataset.plan(Gram(n_classes, np.zeros(dataset.n_features)), engine)]

    def statistic(self, dataset: Dataset) -> Statistic | ClassMedians | None:
        """What a fit keeps beside the data, when all parameters have been checked.

        None with ``covariance="full"``: that is known when the first block has been read.

        Parameters
        ----------
        dataset
            With labels.
        """
        classes = dataset.known_classes()
        n_classes = len(classes)
        self._settings(dataset.source, classes)
        if self.metric == "manhattan":
            return ClassMedians(n_classes)
        return None if self._is_full else self._counting(dataset, n_classes)

    def _transformed(self, X: Any) -> Any:
        """Columns of X, or with ``covariance="full"`` whitened features, (n, k) numpy."""
        return self._score(X, "whiten") if self.model_.needs_whole_rows else super()._transformed(X)

    inverse_transform = available_if(_of_columns)(AddingClassifier.inverse_transform)

    def recipe(self, dataset: Dataset, n_matrices: int | None = None) -> MomentsRecipe | MediansRecipe | GramRecipe:
        settings = self.settings(dataset)
        if settings.metric == "manhattan":
            return MediansRecipe(settings)
        return GramRecipe(settings) if self._is_full else MomentsRecipe(settings)

    def rank(self, dataset: Dataset, ks: Array) -> Ranking:
        """The best features for many k; the model stays as it is.

        Parameters
        ----------
        dataset
            With labels.
        ks : (K,) ascending
        """
        classes = dataset.known_classes()
        settings = self._settings(dataset.source, classes)
        if self.metric == "manhattan":
            found = class_medians(dataset, self.engine)
            refuse_nothing(found.medians.weight)
            return Ranking(median_path(found.medians, settings, ks), found.medians.rows, found.reused)
        reduction = dataset.reduce(self._counting(dataset, len(classes)), self.engine)
        panels = reduction.panels
        refuse_nothing(panels.totals["weight"])
        ranked = gram_path(panels.state(), settings, ks) if self._is_full else moment_path(panels, settings, ks)
        return Ranking(ranked, int(panels.totals["rows"].sum()), reduction.reused)

    @available_if(_of_moments)
    def predicted_errors(self, dataset: Dataset, ks: Array, engine: Engine | None) -> Array:
        """How often models of each k will be wrong, (K,), predicted from what one pass sums up.

        Parameters
        ----------
        dataset
            With labels.
        ks : (K,) ascending
        engine
            Where the pass runs.
        """
        classes = dataset.known_classes()
        panels = dataset.reduce(ClassMoments(len(classes), squares=True), engine).panels
        fit = MomentsRecipe(self.settings(dataset)).fitting(classes, panels)
        return np.array([_predicted_error(fit(k, None), panels) for k in ks.tolist()])

    predict_proba = available_if(_has_probabilities)(AddingClassifier.predict_proba)
    predict_log_proba = available_if(_has_probabilities)(AddingClassifier.predict_log_proba)

    @property
    def scores_(self) -> Array:
        """Gain of each feature, (n_features_in_,); worked out when it is asked for."""
        check_fitted(self)
        if hasattr(self, "_medians"):
            return median_gains(self._medians)
        self._check_state()
        if "gram" in self._state.arrays:
            return gram_gains(self._state, self._learnt)
        return moment_gains(MemoryPanels(self._state, self.n_features_in_), self._learnt)

    @property
    def ties_(self) -> Array:
        """Features that gain as much as the least of the chosen, and were not chosen, (t,)."""
        return equal_gains(self.scores_, self.model_, self.always)

    @property
    def _is_full(self) -> bool:
        return not _of_columns(self)

    def _settings(self, source: Source, classes: Array) -> CenterSettings:
        return CenterSettings(
            k=number_to_keep(self.k, source.n_features),
            metric=check_one_of("metric", self.metric, tuple(METHODS)),
            covariance=check_one_of("covariance", self.covariance, COVARIANCES),
            variance_floor=check_floor(self.variance_floor),
            always=forced_columns(self.always, source),
        )

    def _counting(self, dataset: Dataset, n_classes: int, first: bool = True) -> ClassMoments | Gram:
        if not first:
            self._refuse_other_sums()
        if not self._is_full:
            return ClassMoments(n_classes, squares=self.metric == "mahalanobis")
        if not first:
            return Gram(n_classes, self._state.arrays["shift"])
        refuse_wide(dataset.n_features)
        start = Dataset(some_blocks(dataset.source, np.zeros(1, np.int64)), reuse=False)
        return Gram(n_classes, about_means(start.reduce(ClassMoments(n_classes), self.engine).state))

    def _refuse_other_sums(self) -> None:
        """Documents are added to sums of the same kind, whatever was made of these."""
        learnt = self._learnt
        if (learnt.metric, _of_columns(learnt)) != (self.metric, _of_columns(self)):
            raise InputError(
                f"the documents so far were summed up for metric={learnt.metric!r}, covariance={learnt.covariance!r}, "
                f"which does not do for metric={self.metric!r}, covariance={self.covariance!r}; set them back, or fit "
                "all documents anew"
            )

    def _said_by(self, model: CentersModel) -> dict[str, Any]:
        centers = {"centers_": read_only(model.centers), "common_center_": read_only(model.pooled)}
        return super()._said_by(model) | centers

    def _less(self, state: State, part: State) -> State:
        return take_away(state, part)

    def _settle(
        self,
        classes: Array,
        state: State,
        settings: CenterSettings,
        source: Source,
        reduction: Reduction,
        earlier: KnownNames | None = None,
    ) -> None:
        if not np.isfinite(state.totals["weight"]).all():
            raise InputError("sample weights add up to more than a float holds; scale them down")
        if "gram" in state.arrays:
            model = fit_gram(classes, state, settings)
        else:
            model = fit_moments(classes, MemoryPanels(state, source.n_features), settings)
        facts = provenance_of(int(state.totals["rows"].sum()), source, reduction)
        self._remember(model, source, facts, earlier)
        self._keep_nothing()
        self._state, self._learnt = state, settings

    def _keep_nothing(self) -> None:
        """Let go of what the last fit was made from."""
        for name in ("_state", "_learnt", "_medians"):
            self.__dict__.pop(name, None)


def _predicted_error(model: Any, panels: Panels) -> float:
    within = moments(State(panels.columns(model.support), panels.totals)).within
    assert within is not None
    return centers_error(model, within)
