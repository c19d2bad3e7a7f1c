"""The predicted error of a multinomial naive Bayes classifier, before it has seen a test document.

References: ERR (27) to (34); see docs/mathematics.md 8.2 on (30) and (34).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.containers import a_type
from nfs_dask.errors import InputError
from nfs_dask.models.model import Model
from nfs_dask.models.naive_bayes import NaiveBayesModel
from nfs_dask.solvers.predicted_error.estimate import ErrorEstimate, ErrorProblem, estimate
from nfs_dask.solvers.predicted_error.prefixes import distinct_features


def predict_error(
    P: Any, *, n_tokens: Any, prior: Any = None, features: Any = None, variance: str = "exact"
) -> ErrorEstimate:
    """How often a multinomial naive Bayes classifier is wrong, if documents are as its probabilities say.

    What speaks for a class against another, L_ik, is a sum over the tokens of a document. Its mean and variance follow
    exactly from the probabilities, and it is taken for normal, which suits long documents and many features. Features
    that are not kept count as one feature of which only the total is known.

    Parameters
    ----------
    P : (C, D) array, or a fitted SparseMultinomialNB or ErrorRateSelector, or its model
        Probability of each feature in each class, all positive, each row adding up to 1; or their natural logarithms,
        which are recognised by being negative.
    n_tokens : number, sequence of numbers, or dict
        Tokens of a document: one number for all of them, the lengths of some documents, or a histogram that maps
        lengths to weights. Over several lengths the error is averaged, and moments are those of the mixture.
    prior : (C,) probabilities, optional
        Of the classes. None: those of the model, equal ones for an array.
    features : indices, optional
        The features that are kept: columns of P, or of the data a model was fitted on, of its support. None: all.
    variance : {"exact", "uncorrelated", "compensated"}, default="exact"
        "uncorrelated" takes kept features for independent of each other; "compensated" makes up for that as if all were
        worth the same. Both are there for comparison.

    Returns
    -------
    ErrorEstimate
        ``error``; ``detection[i, j]``, the probability of saying i where j is true; ``pairwise[i, k, j]``, that of
        preferring i to k; ``mean`` and ``variance`` ``[i, k, j]`` of L_ik where j is true; ``class_mean`` and
        ``class_variance`` ``[r, t]`` of the log likelihood of class r where t is true.

    Notes
    -----
    With more than two classes comparisons are taken for independent, and ``error`` is one minus the mean of the
    diagonal of ``detection`` under the priors. Rows of ``detection`` are not made to add up to 1, as that makes it
    worse: the error would come out too small. Where classes are equal in all that is kept, the first of them is said.

    Neither the probabilities nor the normal distribution is the truth: few tokens, few features or probabilities
    estimated from few documents make the prediction rough, and often too small.

    Examples
    --------
    >>> from nfs_dask import predict_error
    >>> P = [[0.6, 0.1, 0.3], [0.2, 0.5, 0.3]]
    >>> round(predict_error(P, n_tokens=6).error, 3)
    0.086
    >>> round(predict_error(P, n_tokens={3: 1, 6: 1}, features=[0]).error, 3)
    0.176
    """
    model = _model_of(P)
    if model is None:
        probabilities = _numbers(P)
        kept = None if features is None else distinct_features(np.asarray(features), probabilities.shape[-1])
    else:
        probabilities, kept = _of_model(model, features)
        prior = np.exp(model.class_log_prior) if prior is None else prior
    return estimate(ErrorProblem.of(probabilities, n_tokens, prior), kept, variance)


def _model_of(P: Any) -> NaiveBayesModel | None:
    """The multinomial model that was given, if it was one."""
    model = P if isinstance(P, Model) else getattr(P, "model_", None)
    if isinstance(model, NaiveBayesModel) and model.absent is None:  # else it is of what is there, and what not
        return model
    if isinstance(model, Model):
        raise InputError(
            f"a model of method {model.method!r} is not of multinomial documents, whose errors can be predicted; "
            "give a fitted SparseMultinomialNB, or an array of probabilities"
        )
    if hasattr(P, "fit"):
        raise InputError(f"This {type(P).__name__} instance is not fitted yet, or has no probabilities; fit it first")
    return None


def _numbers(P: Any) -> Array:
    """Probabilities, of which logarithms may have been given."""
    try:
        given = np.atleast_2d(np.asarray(P, np.float64))
    except (TypeError, ValueError):
        raise InputError(
            f"P is {a_type(P)} and no array of numbers; give (C, D) probabilities or their logarithms, or a "
            "fitted SparseMultinomialNB"
        ) from None
    return np.asarray(np.exp(given)) if (given <= 0).all() and (given < 0).any() else given


def _of_model(model: NaiveBayesModel, features: Any) -> tuple[Array, Array]:
    """Probabilities of what a model has selected, and of all else together; and the columns of those kept."""
    if not model.class_count.all():
        empty = model.classes[model.class_count == 0].tolist()
        raise InputError(f"the model has no documents of {empty}; fit it with documents of every class")
    kept = model.support if features is None else np.sort(distinct_features(np.asarray(features), model.n_features))
    columns = np.searchsorted(model.support, kept)
    strangers = kept[~np.isin(kept, model.support)]
    if len(strangers):
        raise InputError(
            f"feature {strangers[0]} is not among the {len(model.support)} the model has selected; leave features out "
            "of these, get_support(indices=True), or give an array of probabilities"
        )
    zeros = np.flatnonzero(np.isneginf(model.present).any(axis=0))
    if len(zeros):
        raise InputError(
            f"{model.feature_names[zeros[0]]!r} is impossible in one class, which rules that class out for certain; "
            "fit with alpha above 0"
        )
    if model.rest is not None:
        return np.exp(np.append(model.present, model.rest[:, None], axis=1)), columns
    possible: Array = np.logical_or.reduce(
        model.present < 0, axis=0
    )  # what is impossible in every class is written as a certainty
    P = np.exp(model.present[:, possible])
    positions = np.cumsum(possible) - 1
    kept_columns = positions[columns[possible[columns]]]
    rest = np.mean(1 - P.sum(axis=1))  # the same in every class
    if len(model.support) == model.n_features or rest <= np.finfo(np.float64).eps:
        return P, kept_columns
    return np.append(P, np.full((len(P), 1), rest), axis=1), kept_columns
