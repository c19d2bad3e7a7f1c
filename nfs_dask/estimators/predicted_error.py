"""Selection by predicted error.

References: ERR (34) without its denominator, section 1 for the searches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.dataset import Dataset
from nfs_dask.engine.engine import Engine
from nfs_dask.errors import DataWarning, InputError, warn
from nfs_dask.estimators.feature_search import SEARCHES, Documents, Search, Selection, lone_errors, select
from nfs_dask.estimators.inputs import check_one_of
from nfs_dask.estimators.naive_bayes import SparseNaiveBayes
from nfs_dask.methods.naive_bayes import Counts, Settings, log_prior
from nfs_dask.models.naive_bayes import NaiveBayesModel
from nfs_dask.solvers.predicted_error.estimate import ErrorEstimate, Lengths
from nfs_dask.sources.source import Source
from nfs_dask.statistics.counts import ClassCounts, sums
from nfs_dask.statistics.lengths import lengths_in

TRAINING = "training"
BELIEVED = 0.9  # predicted errors below this share of what is sure to be wrong are warned of


class PredictedErrorClassifier(SparseNaiveBayes):
    """The k features with which a multinomial naive Bayes classifier is predicted to be wrong least.

    The classifier counts all features that are not selected as one more. How often it is wrong is predicted from the
    training counts alone, see `predict_error`: what speaks for a class against another is taken for normal.

    Parameters
    ----------
    k : int, float in (0, 1) or "all", default=10
        How many features to choose, or which share of them.
    search : {"ranked", "best-individual", "forward", "plus-minus", "floating", "bounded"}, default="ranked"
        "ranked": those of `SparseMultinomialNB`, in the order of their gains. "best-individual": those that are best
        when each is kept alone. "forward": add the best to those there are, one by one. "plus-minus": add ``add``, take
        the worst ``drop`` away, and so on. "floating": after each addition, take away while that beats what is known of
        that size. "bounded": branch and bound, the smallest error there is, of up to 62 features.
    add, drop : int
        Of "plus-minus". With more to drop than to add it starts with all features.
    n_tokens : "training", number, sequence of numbers, or dict, default="training"
        How long documents are that will be classified: as those of the fit, or as for `predict_error`.
    alpha : float, default=1.0
        Smoothing, added to the total of each feature in each class; above 0.
    balanced : bool, default=True
        Whether errors are predicted as if all classes were as likely as each other; else they have the priors of the
        classifier. See the notes.
    fit_prior : bool, default=True
        Estimate the priors of the classifier from the documents; else they are equal.
    class_prior : dict, (C,) probabilities or "uniform", optional
        Priors of the classifier by label, or in the order of ``classes_``, instead.
    class_weight : "balanced" or dict, optional
        What documents of each class are multiplied by, as scikit-learn has it: ``{"spam": 5.0}``, where other classes
        have 1; or what makes all classes weigh the same.
    engine : SerialEngine or DaskEngine, optional
        Where passes run. None: here for data in memory; the current Dask client, if there is one, for others.

    Attributes
    ----------
    classes_ : (C,) sorted labels
    class_count_ : (C,) float64
        Documents of each class, under their weights.
    n_features_in_ : int
    feature_names_in_ : (n_features_in_,) names, from data frames only
    error_ : float
        The predicted error with the selected features; also ``objective_``.
    estimate_ : ErrorEstimate
        All that is predicted, class by class. Not of a model that was loaded, nor are the next two.
    errors_ : dict
        Numbers of features, and the smallest error seen with each: of "ranked", "best-individual" and "forward" those
        of the first 0, 1, ..., k of ``order_``.
    order_ : (k,) int64, or None
        Features in the order they were chosen; None where some of them were taken away on the way.
    upper_bound_, dual_gap_, certified_
        No other k features have a smaller error than ``error_ - dual_gap_``, which is ``upper_bound_``: 0, unless all
        choices were looked at or there was none.
    n_iter_ : int
        Candidates whose error was worked out.
    scores_ : (n_features_in_,) float64
        What each feature alone takes off the error predicted without any.
    coef_ : (1 or C, n_features_in_)
        Of more than two classes, what a feature adds to each, less the average over documents. All features that are
        not selected have the same weight.
    intercept_ : (1 or C,) float64
    feature_log_prob_ : (C, k) float64
        Log P(i|c) of the selected features.
    provenance_ : dict
    model_ : nfs_dask.models.naive_bayes.NaiveBayesModel

    Notes
    -----
    A set of features is tried in O(1) for each pair of classes and each length, and bounds pass most candidates over;
    what is found does not depend on that. Equal errors go to the lower feature. Long searches are faster with a single
    length, such as the mean, as those of the fit may be hundreds.

    Sums over few or rare features are far from normal. Where priors differ, even by little, that rewards features which
    hardly ever occur: normally distributed, they would outweigh the priors often. So errors are balanced unless told
    otherwise; the classifier has its own priors. A warning says if more documents have none of the features, and are
    decided wrongly, than are predicted to be wrong.

    Features absent from all documents are never chosen, unless all are. Counts of more than 1 GiB stay in panels on
    disk; of these, whole numbers can be searched through, and others be ranked.

    Documents are classified by all of their features, though most of these are only added up: a row of the selected
    columns alone is not enough. `SparseMultinomialNB` disregards all others. With all features the model is
    scikit-learn's `MultinomialNB`.

    Examples
    --------
    >>> import numpy as np
    >>> from nfs_dask import ErrorRateSelector
    >>> X = np.array([[4, 0, 1], [3, 1, 2], [0, 2, 1], [0, 3, 2]])
    >>> selector = ErrorRateSelector(k=2, search="forward").fit(X, ["tea", "tea", "coffee", "coffee"])
    >>> selector.order_.tolist(), round(selector.error_, 3)
    ([0, 1], 0.08)
    >>> selector.transform(X).shape, selector.predict(X).tolist()
    ((4, 2), ['tea', 'tea', 'coffee', 'coffee'])
    """

    always = None
    error_: float
    order_: Array | None
    errors_: dict[int, float]
    estimate_: ErrorEstimate

    def __init__(
        self,
        k: int | float | str = 10,
        *,
        search: str = "ranked",
        add: int = 2,
        drop: int = 1,
        n_tokens: Any = TRAINING,
        alpha: float = 1.0,
        balanced: bool = True,
        fit_prior: bool = True,
        class_prior: Any = None,
        class_weight: Any = None,
        engine: Engine | None = None,
    ) -> None:
        self.k = k
        self.search = search
        self.add = add
        self.drop = drop
        self.n_tokens = n_tokens
        self.alpha = alpha
        self.balanced = balanced
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.class_weight = class_weight
        self.engine = engine

    def recipe(self, dataset: Dataset, n_matrices: int | None = None) -> NoReturn:
        """Refuse: each k and fold is a search of its own."""
        raise InputError(
            "method='error' searches anew for each k and fold, for which there is no shortcut; try several k with "
            "scikit-learn's GridSearchCV, or go by errors_, which one fit predicts for all k up to its own"
        )

    def _said_by(self, model: NaiveBayesModel) -> dict[str, Any]:
        """Errors are the better for being small."""
        error, gap = model.evidence.objective, model.evidence.gap
        return super()._said_by(model) | {"error_": error, "upper_bound_": error - gap}

    def _settings(self, source: Source, classes: Array) -> Settings:
        settings = super()._settings(source, classes)
        self._search()
        self._given_lengths()
        if settings.alpha == 0:
            raise InputError(
                "alpha=0 makes what was not seen in a class impossible there, and errors cannot be predicted from "
                "that; give a number above 0, such as 1.0"
            )
        return settings

    def _search(self) -> Search:
        """The parameters of the search, checked."""
        name = check_one_of("search", self.search, SEARCHES)
        add, drop = _steps("add", self.add), _steps("drop", self.drop)
        if name == "plus-minus" and add == drop:
            raise InputError(f"add={add} and drop={drop} get nowhere; give two different numbers")
        return Search(name, add, drop)

    @property
    def _of_training(self) -> bool:
        return isinstance(self.n_tokens, str) and self.n_tokens == TRAINING

    def _given_lengths(self) -> Any:
        """The lengths that were given, checked; None for those of the fit."""
        if self._of_training:
            return None
        if isinstance(self.n_tokens, str):
            raise InputError(f"n_tokens={self.n_tokens!r}; give {TRAINING!r}, a number, a list of them, or a dict")
        Lengths.of(self.n_tokens)
        return self.n_tokens

    def _documents(self, counts: Counts, logs: Array) -> Documents:
        """Whose errors are predicted; ``logs`` of the priors of the classifier."""
        n_tokens = self._given_lengths()
        if n_tokens is None:
            assert counts.lengths is not None
            n_tokens = lengths_in(counts.lengths)
        return Documents(n_tokens, None if self.balanced else np.exp(logs)[counts.seen])

    def _statistic(self, n_classes: int, source: Source) -> ClassCounts:
        return ClassCounts(n_classes, with_lengths=self._of_training)

    def _counting(self, dataset: Dataset, n_classes: int, first: bool) -> ClassCounts:
        """Lengths are counted from the first document on, or never."""
        counted = first or "lengths" in self._state.totals
        if self._of_training and not counted:
            raise InputError(
                f"n_tokens={TRAINING!r} needs the lengths of all documents, and those of the fit were not counted; fit "
                "anew, or give lengths"
            )
        return replace(self._statistic(n_classes, dataset.source), with_lengths=counted)

    def _counted(self, arrays: dict[str, Array]) -> Array:
        return sums(arrays)

    def _model(self, counts: Counts, settings: Settings) -> NaiveBayesModel:
        found = select(counts, settings, self._search(), self._documents(counts, log_prior(counts, settings)))
        self._warn_if_wrong(found)
        self.order_, self.errors_, self.estimate_ = found.order, found.errors, found.estimate
        return found.model

    def _warn_if_wrong(self, found: Selection) -> None:
        """Of predictions that cannot be true, as far as that can be told without a test."""
        predicted, least = found.estimate.error, found.least
        if predicted >= BELIEVED * least:
            return
        remedy = "take" if self.balanced else "take balanced=True,"
        warn(
            f"the predicted error is {predicted:.3g}, but {least:.3g} of all documents have none of the selected "
            "features and are decided wrongly: these are too few or too rare for the normal distribution; "
            f"{remedy} a larger k, or search='ranked'",
            DataWarning,
        )

    def _scores(self, counts: Counts) -> Array:
        return lone_errors(counts, self.model_.alpha, self._documents(counts, self.class_log_prior_))

    def _parameters(self) -> dict[str, Any]:
        parameters = super()._parameters()
        if isinstance(self.n_tokens, Mapping):
            parameters["n_tokens"] = {str(length): float(weight) for length, weight in self.n_tokens.items()}
        return parameters


def _steps(name: str, value: Any) -> int:
    """How many features to add, or to drop, at a time."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise InputError(f"{name}={value!r}; give a whole number of 0 or more")
    return int(value)
