"""Hybrid naive Bayes: posteriors that can be trusted.

References: HYB (Raina et al. 2003) (9), (11).
"""

from __future__ import annotations

import math
import numbers
from typing import Any, Self

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.dataset import Dataset
from nfs_dask.engine.engine import Engine
from nfs_dask.engine.plan import Plan
from nfs_dask.errors import InputError
from nfs_dask.estimators.by_class import check_class_weight
from nfs_dask.estimators.classifier import SparseClassifier, provenance, read_only
from nfs_dask.estimators.given_regions import holds_matrices, joined_regions, number_of_regions
from nfs_dask.estimators.inputs import check_alpha, check_fitted, check_one_of, note_features, open_labelled
from nfs_dask.estimators.rare_classes import warn_of_rare_classes
from nfs_dask.methods.class_factors import class_factors
from nfs_dask.methods.hybrid import HybridFit, HybridSettings, fit_hybrid, hybrid_plans
from nfs_dask.methods.number_of_features import number_to_keep
from nfs_dask.methods.recipes import HybridRecipe
from nfs_dask.models.hybrid import HybridModel
from nfs_dask.models.model import Evidence
from nfs_dask.prediction.model_rows import What
from nfs_dask.sources.class_weighted import ClassWeighted
from nfs_dask.statistics.counts import ClassCounts


class HybridClassifier(SparseClassifier):
    """Naive Bayes of documents with regions, with a few parameters that make its posteriors calibrated.

    Word probabilities P(w|c) are counted, smoothed by ``alpha``. Then each document becomes one number per region, its
    log likelihood ratio by a table that has not seen the document, and

    P(c|x) proportional to exp(theta_0c + sum_r theta_r b_rc),  b_rc = mean of log P(w|c) over the words w of region r

    is fitted to these by maximum likelihood. Naive Bayes takes all words for independent and is far too certain of long
    documents; theta is how much evidence there really is, and how much a region is worth beside another.

    Parameters
    ----------
    regions : int, list of slices, or None, default=None
        The columns are so many regions of equal width, all over the same vocabulary: column j of each is the same word.
        None: as many as the texts of a Dataset have, or as there are matrices in a list, else 1.
    normalize : bool, default=True
        Whether b is a mean over the words of a region, rather than a sum, so that long documents
        weigh as much as short ones.
    alpha : float, default=1.0
        Smoothing, above 0: a word that is in one document only is left out of the table together with it.
    ridge : float, default=1e-3
        Penalty ``ridge / 2 * sum_r theta_r ** 2``, against the log likelihood summed over documents. With 0 the fit is
        refused where the documents can be separated.
    prior : {"fitted", "fixed"}, default="fitted"
        Whether theta_0 is fitted, or is the logarithm of the frequencies of the classes.
    k : int, float in (0, 1) or "all", optional
        Take only so many words, or this share of them, which a sparse multinomial model chooses; the same in every
        region. None: all words.
    tables : {"shared", "separate"}, default="shared"
        Whether all regions have the same word probabilities, or each its own.
    class_weight : "balanced" or dict, optional
        What documents of each class are multiplied by, as scikit-learn has it: ``{"spam": 5.0}``, where other classes
        have 1; or what makes all classes weigh the same, for which documents are counted first.
    engine : SerialEngine or DaskEngine, optional
        Where passes run. None: here for data in memory; the current Dask client, if there is one, for others.

    Attributes
    ----------
    classes_ : (C,) sorted labels
    class_count_ : (C,) float64
        Documents of each class, under their weights.
    n_features_in_ : int
        Columns of all regions together.
    feature_names_in_ : (n_features_in_,) names, from data frames only
    n_regions_ : int
    theta_ : (C - 1 + R,) float64
        theta_0 of all classes but the first, which has 0; then theta_r of the regions.
    feature_log_prob_ : (C, words) float64, with separate tables (C, R, words)
        Log P(w|c) of the chosen words.
    coef_, intercept_ : of the linear rule, with ``normalize=False`` only
    objective_ : float
        Log likelihood of the documents, each by a table without it, less the penalty. With ``k`` that of the
        multinomial model which chose the words; ``upper_bound_``, ``dual_gap_`` and ``certified_`` say how well.
    provenance_ : dict
        Among others the passes, and how well theta was fitted.
    model_ : nfs_dask.models.hybrid.HybridModel

    Notes
    -----
    The data are read twice, and what is kept of the first reading, the counts, is shared with `SparseMultinomialNB`.
    Documents cannot be added to a fitted model, as each of them changes the features of all others.

    Below about fifty documents theta is unreliable: without one of few documents, what is left of its class looks less
    like it than the other classes do. A negative theta_r is the sign; take `SparseMultinomialNB`, or more documents.
    A document leaves the counts, and not the vocabulary, which is that of all training texts: its own rare words are in
    its features, where those of new documents are passed over.

    The support is the columns of the chosen words in all regions. A document of weight w takes min(w, 1) of itself out
    of the table. Regions without words say nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from nfs_dask import HybridNB
    >>> subject = np.array([[1, 0], [1, 0], [0, 1], [0, 1], [0, 1], [1, 0]])
    >>> body = np.array([[3, 1], [2, 2], [1, 3], [1, 1], [2, 1], [0, 2]])
    >>> model = HybridNB(ridge=0.1).fit([subject, body], ["tea", "tea", "milk", "milk", "tea", "milk"])
    >>> model.n_regions_, model.theta_.shape, model.predict([subject, body])[:4].tolist()
    (2, (3,), ['tea', 'tea', 'milk', 'milk'])
    """

    model_: HybridModel
    n_regions_: int
    theta_: Array
    feature_log_prob_: Array

    def __init__(
        self,
        *,
        regions: Any = None,
        normalize: bool = True,
        alpha: float = 1.0,
        ridge: float = 1e-3,
        prior: str = "fitted",
        k: int | float | str | None = None,
        tables: str = "shared",
        class_weight: Any = None,
        engine: Engine | None = None,
    ) -> None:
        self.regions = regions
        self.normalize = normalize
        self.alpha = alpha
        self.ridge = ridge
        self.prior = prior
        self.k = k
        self.tables = tables
        self.class_weight = class_weight
        self.engine = engine

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Count, and fit the parameters, from nothing.

        Parameters
        ----------
        X : (n, m) matrix, dask array or DataFrame, Dataset, or a list of (n, m / R) matrices, one for each region
            Values of zero or more. Nothing is densified; data on disk are read block by block.
        y : (n,) labels, optional
            Strings, integers or booleans. A Dataset brings its own.
        sample_weight : (n,) weights of zero or more, or one for all rows, optional
        """
        X, n_matrices = self.joined(X)
        dataset = open_labelled(self, X, y, sample_weight)
        note_features(self, X, dataset.source, reset=True)
        dataset.known_classes()
        settings = self._settings(dataset, n_matrices)
        found = fit_hybrid(self._weighted(dataset), settings, self.engine)
        facts = provenance(found.rows, dataset.source, **found.to_json())
        self._remember(model_of(found, dataset.n_features), dataset.source, facts, None)
        warn_of_rare_classes(self.model_)
        return self

    def plans(self, dataset: Dataset, engine: Engine | None) -> list[Plan]:
        """The passes of a fit that can be foreseen, when all parameters have been checked; nothing is read.

        Parameters
        ----------
        dataset
            With labels.
        engine
            Where they would run.
        """
        classes = dataset.known_classes()
        settings = self._settings(dataset)
        class_weight = check_class_weight(self.class_weight, classes)
        if class_weight is None:
            return hybrid_plans(dataset, settings, engine)
        first = [dataset.plan(ClassCounts(len(classes)), engine)] if isinstance(class_weight, str) else []
        return first + hybrid_plans(_with_factors(dataset, np.ones(len(classes))), settings, engine)

    def settings(self, dataset: Dataset, n_matrices: int | None = None) -> HybridSettings:
        """The parameters as a fit takes them, checked; nothing is read.

        Parameters
        ----------
        dataset
            With labels.
        n_matrices : int, optional
            Of how many matrices its columns are.
        """
        dataset.known_classes()
        return self._settings(dataset, n_matrices)

    def joined(self, X: Any) -> tuple[Any, int | None]:
        return (joined_regions(X), len(X)) if holds_matrices(X) else super().joined(X)

    def n_choosable(self, dataset: Dataset, n_matrices: int | None = None) -> int:
        """Words, which are in every region."""
        return dataset.n_features // self._settings(dataset, n_matrices).n_regions

    def n_selected(self, dataset: Dataset) -> int | None:
        if self.k is None:
            return None
        settings = self._settings(dataset)
        return dataset.n_features if settings.k is None else settings.k * settings.n_regions

    def recipe(self, dataset: Dataset, n_matrices: int | None = None) -> HybridRecipe:
        if self.class_weight is not None:
            raise InputError(
                f"class_weight={self.class_weight!r} depends on the documents of a fold, and hybrid is validated with "
                "weights of documents: give those as sample_weight=, or weights to nfs_dask.ingest"
            )
        return HybridRecipe(self.settings(dataset, n_matrices), model_of)

    def statistic(self, dataset: Dataset) -> ClassCounts:
        """What a fit keeps beside the data, when all parameters have been checked; nothing is read.

        Parameters
        ----------
        dataset
            With labels.
        """
        self._settings(dataset)
        return ClassCounts(len(dataset.known_classes()))

    def _transformed(self, X: Any) -> Any:
        """The columns of the chosen words in every region; of a list of matrices too."""
        return super()._transformed(self._whole(X))

    def _said_by(self, model: HybridModel) -> dict[str, Any]:
        return super()._said_by(model) | {
            "n_regions_": model.n_regions,
            "theta_": read_only(model.theta),
            "feature_log_prob_": read_only(model.log_probabilities),
        }

    def _score(self, X: Any, what: What) -> Array | Any:
        check_fitted(self)
        return super()._score(self._whole(X), what)

    def _whole(self, X: Any) -> Any:
        """X as one matrix, or whatever else it is, if its regions are those of the fit."""
        n_regions = self.model_.n_regions
        given = X.text.n_regions if isinstance(X, Dataset) and X.text is not None else n_regions
        matrices = holds_matrices(X)
        if matrices:
            given = len(X)
        if given != n_regions:
            raise InputError(f"X has {given} region(s), and the model was fitted to {n_regions}; give it the same ones")
        return joined_regions(X) if matrices else X

    def _weighted(self, dataset: Dataset) -> Dataset:
        """The documents under the weights of their classes; what is balanced is counted first, and kept."""
        classes = dataset.known_classes()
        class_weight = check_class_weight(self.class_weight, classes)
        if class_weight is None:
            return dataset
        if not isinstance(class_weight, str):
            return _with_factors(dataset, class_weight)
        documents = dataset.reduce(ClassCounts(len(classes)), self.engine).panels.totals["weight"]
        return _with_factors(dataset, class_factors(class_weight, documents))

    def _settings(self, dataset: Dataset, n_matrices: int | None = None) -> HybridSettings:
        """The parameters, checked before anything is read."""
        check_class_weight(self.class_weight, dataset.known_classes())
        m = dataset.n_features
        n_regions = number_of_regions(self.regions, m, n_matrices, dataset.text)
        kept = m // n_regions if self.k is None else number_to_keep(self.k, m // n_regions)
        return HybridSettings(
            n_regions=n_regions,
            normalize=_check_bool("normalize", self.normalize),
            alpha=check_alpha(self.alpha),
            ridge=_check_ridge(self.ridge),
            prior="fixed" if check_one_of("prior", self.prior, ("fitted", "fixed")) == "fixed" else "fitted",
            k=None if kept == m // n_regions else kept,
            tables="shared" if check_one_of("tables", self.tables, ("shared", "separate")) == "shared" else "separate",
        )

    def _parameters(self) -> dict[str, Any]:
        """Slices as their number: together they say no more."""
        regions = None if self.regions is None else self.model_.n_regions
        return {**super()._parameters(), "regions": regions}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.classifier_tags.poor_score = True  # as of scikit-learn's own naive Bayes classifiers of counts
        return tags


def _with_factors(dataset: Dataset, factors: Array) -> Dataset:
    return Dataset(ClassWeighted(dataset.source, factors), dataset.location, reuse=dataset.reuse)


def model_of(found: HybridFit, n_features: int) -> HybridModel:
    """What survives a fit; `SparseClassifier` adds names, texts and provenance."""
    settings, fit = found.settings, found.logistic
    starts = np.arange(settings.n_regions, dtype=np.int64)[:, None] * found.n_words
    return HybridModel(
        method="hybrid",
        classes=found.classes,
        class_count=found.class_weight,
        n_features=n_features,
        support=(starts + found.words).ravel(),
        evidence=found.evidence or Evidence(fit.objective, 0.0, True, None, fit.n_evaluations),
        theta=found.theta,
        log_probabilities=found.log_probabilities,
        n_regions=settings.n_regions,
        normalize=settings.normalize,
        alpha=settings.alpha,
    )


def _check_bool(name: str, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{name}={value!r}; give True or False")
    return bool(value)


def _check_ridge(ridge: Any) -> float:
    """The penalty: one number of zero or more."""
    if isinstance(ridge, bool) or not isinstance(ridge, numbers.Real) or not math.isfinite(ridge) or ridge < 0:
        raise InputError(f"ridge={ridge!r}; give one finite number of 0 or more, such as 1e-3")
    return float(ridge)
