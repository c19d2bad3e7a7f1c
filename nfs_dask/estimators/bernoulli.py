"""Sparse Bernoulli naive Bayes.

References: NFS20 (Askari et al. 2020) Theorem 1, (SBNB); NFS Theorem 3.1.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.engine.engine import Engine
from nfs_dask.errors import DataWarning, InputError, warn
from nfs_dask.estimators.exchangeable import equal_gains
from nfs_dask.estimators.inputs import check_binarize
from nfs_dask.estimators.ranked_naive_bayes import RankedNaiveBayes
from nfs_dask.methods.model_errors import bernoulli_error
from nfs_dask.methods.naive_bayes import Counts, Settings, bernoulli_scores, fit_bernoulli
from nfs_dask.methods.supports import BernoulliSupports
from nfs_dask.models.naive_bayes import NaiveBayesModel
from nfs_dask.sources.source import Source
from nfs_dask.statistics.binary_counts import BinaryCounts
from nfs_dask.statistics.class_totals import Totals
from nfs_dask.statistics.counts import ClassCounts, documents
from nfs_dask.statistics.panels import Panels

# From here on accuracy falls: by 3 to 20 points on pairs of newsgroups whose classes are of 400 to 1,800 documents.
SMOOTHING_NATS = 10.0


class BernoulliClassifier(RankedNaiveBayes):
    """Bernoulli naive Bayes over the k features that make the data most likely. The choice is exactly optimal.

    maximise sum_c log P(documents of c | theta_c), where theta_c[i] differs between classes for at most k features i.

    Parameters
    ----------
    k : int, float in (0, 1) or "all", default=10
        How many features to choose, or which share of them. With "all" the model is scikit-learn's `BernoulliNB`.
    alpha : float, default=1.0
        Smoothing, added to the number of documents with and without a feature in each class. With 0, a feature that
        is impossible in every class is skipped at prediction, one impossible in one class rules that class out.
    binarize : float or None, default=0.0
        Values above it count as present. None: the data are binary, anything but 0 and 1 is refused.
    always : list of names or indices, optional
        Features that are chosen in any case; they count in k.
    fit_prior : bool, default=True
        Estimate the priors of the classes from the documents; else they are equal.
    class_prior : dict, (C,) probabilities or "uniform", optional
        Priors by label, such as ``{"spam": 0.2, "ham": 0.8}``, or in the order of ``classes_``, instead.
    class_weight : "balanced" or dict, optional
        What documents of each class are multiplied by, as scikit-learn has it: ``{"spam": 5.0}``, where other classes
        have 1; or what makes all classes weigh the same. The data are read once all the same.
    engine : SerialEngine or DaskEngine, optional
        Where passes run. None: here for data in memory; the current Dask client, if there is one, for others.

    Attributes
    ----------
    classes_ : (C,) sorted labels
    class_count_ : (C,) float64
        Documents of each class, under their weights.
    n_features_in_ : int
    feature_names_in_ : (n_features_in_,) names, from data frames only
    scores_ : (n_features_in_,) float64
        Gain of each feature: its documents times its mutual information with the class, in nats.
    coef_ : (1 or C, n_features_in_)
        What a feature adds to the second class less what it adds to the first; of more classes, to each class less the
        average over documents.
    intercept_ : (1 or C,) float64
    feature_log_prob_ : (C, k) float64
        Log P(i|c) of the chosen features.
    objective_, upper_bound_, dual_gap_, certified_
        Log likelihood of the model; no other choice of k features that occur has a larger one.
    ties_ : (t,) int64
        Features that could take the place of a chosen one at the same value, up to rounding.
    n_iter_ : int
    provenance_ : dict
    model_ : nfs_dask.models.naive_bayes.NaiveBayesModel

    Notes
    -----
    With fewer than all features, those absent from all documents are never chosen. Counts of more than 1 GiB stay in
    panels on disk and are solved for one panel at a time; documents can then not be added or taken away.

    Examples
    --------
    >>> import numpy as np
    >>> from nfs_dask import SparseBernoulliNB
    >>> X = np.array([[1, 0, 1], [1, 1, 0], [0, 1, 1], [0, 0, 1]])
    >>> model = SparseBernoulliNB(k=1).fit(X, ["tea", "tea", "coffee", "coffee"])
    >>> model.get_support(indices=True).tolist(), model.predict(X).tolist()
    ([0], ['tea', 'tea', 'coffee', 'coffee'])
    >>> model.dual_gap_, model.certified_
    (0.0, True)
    """

    def __init__(
        self,
        k: int | float | str = 10,
        *,
        alpha: float = 1.0,
        binarize: float | None = 0.0,
        always: Any = None,
        fit_prior: bool = True,
        class_prior: Any = None,
        class_weight: Any = None,
        engine: Engine | None = None,
    ) -> None:
        self.k = k
        self.alpha = alpha
        self.binarize = binarize
        self.always = always
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.class_weight = class_weight
        self.engine = engine

    def _settings(self, source: Source, classes: Array) -> Settings:
        return replace(super()._settings(source, classes), binarize=check_binarize(self.binarize))

    def _statistic(self, n_classes: int, source: Source) -> ClassCounts:
        binarize = check_binarize(self.binarize)
        if source.kind == "binary" and not binarize:
            return ClassCounts(n_classes, with_sums=False, with_documents=True)
        if binarize is not None:
            return ClassCounts(n_classes, with_sums=False, with_documents=True, threshold=binarize)
        if source.trusted and source.kind is not None:
            raise InputError(
                f"the data hold {source.kind} values, and Bernoulli naive Bayes takes 0 and 1; "
                "with binarize=0.0 every value above 0 counts as 1"
            )
        return BinaryCounts(n_classes)

    def _learn(self, counts: Counts, settings: Settings, *about: Any) -> None:
        super()._learn(counts, settings, *about)
        n, alpha = np.sort(counts.documents[counts.seen]), settings.alpha
        if not alpha:
            return
        # What a feature that no document has seen yet says of a document without it, by smoothing alone.
        absent = np.log1p(-alpha / (n + 2 * alpha))
        nats = len(self.model_.support) * float(absent[-1] - absent[0])
        if nats > SMOOTHING_NATS:
            warn(
                f"with {len(self.model_.support):,} features, smoothing alone moves each document by {nats:.0f} nats "
                f"towards the largest class (alpha={alpha:g}; classes of {n[0]:,g} to {n[-1]:,g} documents); take "
                "fewer features, a smaller alpha, or SparseMultinomialNB",
                DataWarning,
            )

    def _counted(self, arrays: dict[str, Array]) -> Array:
        return documents(arrays)

    def _model(self, counts: Counts, settings: Settings) -> NaiveBayesModel:
        return fit_bernoulli(counts, settings)

    @property
    def ties_(self) -> Array:
        """Features that gain as much as the least of the chosen, and were not chosen, (t,); from the counts."""
        return equal_gains(self.scores_, self.model_, self.always)

    def _scores(self, counts: Counts) -> Array:
        return bernoulli_scores(counts, self.model_.alpha)

    def _supports(self, totals: Totals, class_count: Array, ks: Array) -> BernoulliSupports:
        return BernoulliSupports.solve(totals, class_count, float(self.alpha), ks)

    def _predicted_error(self, model: NaiveBayesModel, panels: Panels) -> float:
        return bernoulli_error(model)
