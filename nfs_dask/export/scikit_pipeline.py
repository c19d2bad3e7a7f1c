"""Models as pipelines of scikit-learn alone: its own classes, with the numbers of a fit set as their own fits would."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError
from nfs_dask.export.additive import additive_scores, refuse_exact_features
from nfs_dask.models.centers import CentersModel
from nfs_dask.models.hybrid import HybridModel
from nfs_dask.models.model import Model
from nfs_dask.models.naive_bayes import NaiveBayesModel
from nfs_dask.text.settings import TextSettings

MOST_WEIGHTS = 1 << 24  # of a classifier that needs all columns of a row

Steps: TypeAlias = list[tuple[str, Any]]


def pipeline_of(model: Model, feature_names_in: Array | None = None, front: Steps | None = None) -> Any:
    """A fitted `sklearn.pipeline.Pipeline`.

    Parameters
    ----------
    model
    feature_names_in : (n_features,), optional
        Names that rows have to come with, of a model that was fitted to data frames.
    front
        Steps that make the selected columns of texts; None: rows are those of the fit.
    """
    from sklearn.pipeline import Pipeline

    refuse_exact_features(model)
    last = _classifier(model)
    if front is not None and model.needs_whole_rows:
        raise InputError(
            "the model depends on all terms of a document, which it does not have with it; give texts=False, and rows "
            "of all columns to the pipeline"
        )
    names = None if feature_names_in is None else np.asarray(feature_names_in, object)
    steps = front if front is not None else _selection(model, names)
    steps = [*steps, *last]
    for i, (_, step) in enumerate(steps):
        first = front is None and i == 0
        if not hasattr(step, "n_features_in_") and not hasattr(step, "vocabulary_"):
            step.n_features_in_ = model.n_features if first or model.needs_whole_rows else len(model.support)
        if first and names is not None:
            step.feature_names_in_ = names
    return Pipeline(steps)


def words_of_texts(settings: TextSettings, terms: Sequence[str], idf: Array | None) -> Steps:
    """Steps that make the columns of some terms out of texts; refused where scikit-learn would make others.

    Parameters
    ----------
    settings
        How the texts of the fit became terms.
    terms : (k,)
    idf : (k,) weights of the terms, with tf-idf
    """
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

    if settings.tokenizer is not None:
        raise InputError(
            f"the texts were split by {settings.tokenizer}, which is not in the model; give texts=False, and put a "
            "CountVectorizer with that function in front"
        )
    if settings.stem is not None:
        raise InputError(
            f"the words of the fit were stemmed ({settings.stem}), which scikit-learn does not do; give texts=False, "
            "and put a CountVectorizer with such a tokenizer in front"
        )
    if settings.tfidf and settings.norm is not None:
        raise InputError(
            f"with norm={settings.norm!r} a weight depends on all terms of a text, and the model has those that were "
            "selected; give texts=False, or fit with norm=None"
        )
    words = CountVectorizer(
        vocabulary=list(terms),
        analyzer=settings.analyzer,
        ngram_range=settings.ngrams,
        lowercase=settings.lowercase,
        strip_accents=settings.strip_accents,
        token_pattern=settings.token_pattern,
        stop_words=None if settings.stop_words is None else list(settings.stop_words),
        binary=settings.binary,
    )
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # of parameters, which did well so far
        words.fit([""])
    if not settings.tfidf:
        return [("words", words)]
    weights = TfidfTransformer(norm=None, sublinear_tf=settings.sublinear_tf)
    weights.idf_ = np.asarray(idf, np.float64)
    return [("words", words), ("weights", weights)]


def _selection(model: Model, names: Array | None) -> Steps:
    """A selector of the selected columns, if there are others, which selects the same when it is fitted again.

    Its mask takes a byte a column. Sparse weights would take less, which scikit-learn 1.9 and skops know only in part.
    """
    from sklearn.feature_selection import SelectFromModel
    from sklearn.frozen import FrozenEstimator
    from sklearn.linear_model import LinearRegression
    from sklearn.preprocessing import FunctionTransformer

    if len(model.support) == model.n_features or model.needs_whole_rows:
        by_region = isinstance(model, HybridModel) and model.normalize and model.n_regions > 1
        same = FunctionTransformer(validate=True, accept_sparse=True, feature_names_out="one-to-one")
        return [("rows", same)] if by_region else []
    weights = LinearRegression()
    weights.coef_, weights.n_features_in_ = np.zeros(model.n_features, bool), model.n_features
    weights.coef_[model.support] = True
    if names is not None:  # which a frame must still have when it is fitted again
        weights.feature_names_in_ = names
    select = SelectFromModel(FrozenEstimator(weights), threshold=0.5, prefit=True)
    select.estimator_ = select.estimator
    return [("select", select)]


def _classifier(model: Model) -> Steps:
    """The last steps: a classifier, after what it needs."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import NearestCentroid
    from sklearn.svm import LinearSVC

    if isinstance(model, NaiveBayesModel):
        return [("classify", _naive_bayes(model))]
    steps: Steps = []
    if isinstance(model, HybridModel):  # of words, or of their shares in a region, which have the same weights
        steps, made = _shares(model), LogisticRegression()
        coef, intercept = _linear(replace(model, normalize=False))
    else:
        assert isinstance(model, CentersModel), "there are no other models"
        if model.method == "l1":
            nearest = NearestCentroid(metric="manhattan")
            nearest.classes_, nearest.centroids_ = model.classes[model.seen], model.centers[model.seen]
            nearest.class_prior_ = np.full(len(model.seen), 1 / len(model.seen))
            return [("classify", nearest)]
        coef, intercept = _linear(model)
        made = LinearSVC()  # a linear rule without probabilities
        if model.has_probabilities:  # whose log odds are half of what distances differ by
            made, coef, intercept = LogisticRegression(), coef / 2, intercept / 2
    made.classes_, made.coef_, made.intercept_ = model.classes.copy(), coef, intercept
    n = model.evidence.n_evaluations
    made.n_iter_ = np.array([n]) if isinstance(made, LogisticRegression) else n
    return [*steps, ("classify", made)]


def _naive_bayes(model: NaiveBayesModel) -> Any:
    from sklearn.naive_bayes import BernoulliNB, MultinomialNB

    logs = model.present
    tables = [logs] if model.absent is None else [logs, model.absent]
    if any(np.isneginf(table).any() for table in tables):
        raise InputError(
            "alpha=0 gave features the probability 0, with which scikit-learn would reckon NaN; fit with a small "
            "alpha, such as 1e-10"
        )
    if model.rest is not None:
        if model.n_classes * model.n_features > MOST_WEIGHTS:
            raise InputError(
                f"a model of method 'error' has weights for all {model.n_features:,} columns, more than scikit-learn's "
                "classifier should hold; fit SparseMultinomialNB, or to fewer columns"
            )
        logs = np.repeat(model.rest[:, None], model.n_features, axis=1)
        logs[:, model.support] = model.present
    if model.threshold is None:
        made = MultinomialNB(alpha=model.alpha)
    else:
        made = BernoulliNB(alpha=model.alpha, binarize=None if model.binary_only else model.threshold)
    made.classes_, made.class_count_ = model.classes.copy(), model.class_count.copy()
    made.class_log_prior_, made.feature_log_prob_ = model.class_log_prior.copy(), logs.copy()
    return made


def _linear(model: CentersModel | HybridModel) -> tuple[Array, Array]:
    """Weights and intercepts of the scores, of two classes those of their difference."""
    scores = additive_scores(model)
    if scores is None:  # of whitened features
        return model.coefficients()
    coef, intercept = scores.steps.value, scores.start.value
    return (coef, intercept) if model.n_classes != 2 else (coef[1:] - coef[:1], np.diff(intercept))


def _shares(model: HybridModel) -> Steps:
    """Steps that divide the words of each region by their number.

    Those of several regions come out sparse, as a ColumnTransformer that saw sparse rows joins no others.
    """
    from scipy import sparse
    from sklearn.compose import ColumnTransformer
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.preprocessing import Normalizer

    if not model.normalize:
        return []
    if model.n_regions == 1:
        return [("shares", Normalizer(norm="l1"))]
    k, n_words = len(model.support), len(model.support) // model.n_regions
    regions = [
        (f"region {r}", TfidfTransformer(norm="l1", use_idf=False), slice(r * n_words, (r + 1) * n_words))
        for r in range(model.n_regions)
    ]
    shares = ColumnTransformer(regions, sparse_threshold=1.0, verbose_feature_names_out=False)
    return [("shares", shares.fit(sparse.csr_array((1, k))))]
