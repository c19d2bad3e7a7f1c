"""Sparse multinomial naive Bayes.

References: NFS20 (Askari et al. 2020) Theorem 2, (SMNB); NFS Theorems 3.2 and 3.6.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.engine.engine import Engine
from nfs_dask.errors import DataWarning, warn
from nfs_dask.estimators.classifier import read_only
from nfs_dask.estimators.exchangeable import equal_columns
from nfs_dask.estimators.inputs import check_one_of
from nfs_dask.estimators.ranked_naive_bayes import RankedNaiveBayes
from nfs_dask.methods.naive_bayes import SOLVERS, Counts, Settings, fit_multinomial, multinomial_scores
from nfs_dask.methods.supports import MultinomialSupports
from nfs_dask.models.naive_bayes import NaiveBayesModel
from nfs_dask.sources.source import Source
from nfs_dask.statistics.class_totals import Totals
from nfs_dask.statistics.counts import ClassCounts, sums
from nfs_dask.statistics.lengths import lengths_in
from nfs_dask.statistics.panels import Panels

BURST_DOCUMENTS = 5  # at most, that have a feature
BURST_TIMES = 10  # at least, that each of them has it on average


class MultinomialClassifier(RankedNaiveBayes):
    """Multinomial naive Bayes over k features, with a certificate of how near the choice is to the best one.

    maximise sum_c f_c . log theta_c over distributions theta_c that differ between classes for at most k features.

    Parameters
    ----------
    k : int, float in (0, 1) or "all", default=10
        How many features to choose, or which share of them. With "all" the model is scikit-learn's `MultinomialNB`. A
        single feature can carry no weight, as all classes have the same total on the chosen ones.
    alpha : float, default=1.0
        Smoothing, added to the total of each feature in each class. With 0, a feature that is impossible in every class
        is skipped at prediction, one impossible in one class rules that class out.
    solver : {"cuts", "bisection"}, default="cuts"
        "bisection" is the algorithm of the paper, its misprints set right, for two classes; kept as a reference.
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
        Gain of each feature at the dual point, in nats.
    coef_ : (1 or C, n_features_in_)
        What a feature adds to the second class less what it adds to the first; of more classes, to each class less the
        average over documents.
    intercept_ : (1 or C,) float64
    feature_log_prob_ : (C, k) float64
        Log P(i|c) of the chosen features.
    objective_ : float
        Log likelihood of the model.
    upper_bound_ : float
        No choice of k features that occur has a larger one: rounded up, so that it holds whatever was rounded.
    dual_gap_ : float
        What the choice loses at most, 0 if it is proved to be the best. The bound is larger than the objective by this,
        and by rounding.
    certified_ : bool
        Whether the gap is zero up to rounding. Often it is not, though the choice is the best.
    dual_point_ : float, or (C,) float64 for more than two classes
        Share of ``classes_[0]``, or of each class.
    second_dual_ : ((k',) int64, (k',) float64)
        Features, ascending, and their weights in (0, 1], sum k: a mixture of supports whose gain is the upper bound,
        and so its proof. At most C - 1 more than k features; of more than 50 classes there may be more, and weights
        that prove only nearly as much. None with ``solver="bisection"``.
    ties_ : (t,) int64
        Features that were not chosen, whose counts are those of a chosen one. Gains depend on each other: which others
        could be exchanged at the same value is not known.
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
    >>> from nfs_dask import SparseMultinomialNB
    >>> X = np.array([[4, 0, 1], [3, 1, 2], [0, 2, 1], [0, 3, 2]])
    >>> model = SparseMultinomialNB(k=2).fit(X, ["tea", "tea", "coffee", "coffee"])
    >>> model.get_support(indices=True).tolist(), model.predict(X).tolist()
    ([0, 1], ['tea', 'tea', 'coffee', 'coffee'])
    >>> model.certified_
    True
    >>> {label: [name for name, _ in pairs] for label, pairs in model.top_features().items()}
    {'coffee': ['x1'], 'tea': ['x0']}
    """

    dual_point_: float | Array
    second_dual_: tuple[Array, Array] | None

    def __init__(
        self,
        k: int | float | str = 10,
        *,
        alpha: float = 1.0,
        solver: str = "cuts",
        always: Any = None,
        fit_prior: bool = True,
        class_prior: Any = None,
        class_weight: Any = None,
        engine: Engine | None = None,
    ) -> None:
        self.k = k
        self.alpha = alpha
        self.solver = solver
        self.always = always
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.class_weight = class_weight
        self.engine = engine

    def solves_each_k(self, n_classes: int) -> bool:
        return n_classes > 2

    def _said_by(self, model: NaiveBayesModel) -> dict[str, Any]:
        point = model.evidence.point
        assert point is not None
        second = model.evidence.second_dual
        return super()._said_by(model) | {
            "dual_point_": float(point[0]) if len(point) == 2 else read_only(point),
            "second_dual_": None if second is None else (read_only(second[0]), read_only(second[1])),
        }

    def _settings(self, source: Source, classes: Array) -> Settings:
        settings = super()._settings(source, classes)
        solver = check_one_of("solver", self.solver, SOLVERS)
        if settings.k == 1 < source.n_features:
            warn(
                "k=1: a single feature can carry no weight in a multinomial model, as all classes have the same total "
                "on the chosen features; take k=2 or more",
                DataWarning,
            )
        return replace(settings, solver=solver)

    def _learn(self, counts: Counts, settings: Settings, rows: int, source: Source, *about: Any) -> None:
        super()._learn(counts, settings, rows, source, *about)
        table, support = source.table(), self.model_.support
        # Of regions, and of rows that were appended later, no document frequencies are kept.
        if table is None or table.n_terms != source.n_features or table.n_documents < rows:
            return
        documents = table.frequencies(support)
        times = counts.totals.at(support).sum(axis=0) / np.maximum(documents, 1)
        bursts = np.flatnonzero((documents <= BURST_DOCUMENTS) & (times >= BURST_TIMES))
        if len(bursts):
            worst = bursts[np.argmax(times[bursts])]
            names = source.names(support[[worst]])
            name = f"column {support[worst]}" if names is None else repr(names[0])
            warn(
                f"{len(bursts):,} of the {len(support):,} chosen features ({len(bursts) / len(support):.0%}) come from "
                f"at most {BURST_DOCUMENTS} documents that repeat them {BURST_TIMES} times or more; {name} is "
                f"{times[worst]:,.0f} times in each of {documents[worst]}. Ingest with min_df={BURST_DOCUMENTS + 1}, "
                "or take SparseBernoulliNB, which counts documents",
                DataWarning,
            )

    def _statistic(self, n_classes: int, source: Source) -> ClassCounts:
        return ClassCounts(n_classes)

    def _counted(self, arrays: dict[str, Array]) -> Array:
        return sums(arrays)

    def _model(self, counts: Counts, settings: Settings) -> NaiveBayesModel:
        return fit_multinomial(counts, settings)

    @property
    def ties_(self) -> Array:
        """Features that were not chosen, whose counts are those of a chosen one in every class, (t,)."""
        return equal_columns(self.feature_count_, self.model_, self.always)

    def _scores(self, counts: Counts) -> Array:
        assert self.model_.evidence.point is not None
        return multinomial_scores(counts, self.model_.alpha, self.model_.evidence.point)

    def _supports(self, totals: Totals, class_count: Array, ks: Array) -> MultinomialSupports:
        return MultinomialSupports.solve(totals, float(self.alpha), ks)

    def _counting_for_errors(self, statistic: ClassCounts) -> ClassCounts:
        return replace(statistic, with_lengths=True)

    def _predicted_error(self, model: NaiveBayesModel, panels: Panels) -> float:
        from nfs_dask.methods.predicted_error import predict_error

        return float(predict_error(model, n_tokens=lengths_in(panels.totals["lengths"])).error)
