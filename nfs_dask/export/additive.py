"""Models as sums over the selected features: the one form that other programs are told of most models."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.errors import InputError
from nfs_dask.models.centers import CentersModel
from nfs_dask.models.hybrid import HybridModel
from nfs_dask.models.log_terms import LogTerms
from nfs_dask.models.model import Model
from nfs_dask.models.naive_bayes import NaiveBayesModel


@dataclass(frozen=True)
class AdditiveScores:
    """The score of a row without any selected feature, and what each feature adds.

    Logarithms of zero are counted apart: a class with more of them than are taken back is ruled out.
    """

    start: LogTerms  # (C,)
    steps: LogTerms  # (C, k), of a unit of the feature; with a threshold, of its presence
    threshold: float | None = None  # values above it count as present
    otherwise: Array | None = None  # (C,) scores of a row that all classes rule out

    @property
    def certain(self) -> bool:
        """True if no feature rules a class out."""
        return not self.steps.zeros.any()


def additive_scores(model: Model) -> AdditiveScores | None:
    """The scores of a model as such a sum, for all classes; None where they are none.

    Classes without documents are ruled out from the start.
    """
    if isinstance(model, NaiveBayesModel):
        return _of_naive_bayes(model)
    if isinstance(model, CentersModel):
        return _of_centers(model) if model.is_linear and model.root is None else None
    if isinstance(model, HybridModel):
        return _of_regions(model) if model.is_linear else None
    return None


def refuse_unselected(model: Model, what: str) -> None:
    """Refuse models whose scores depend on columns that were not selected.

    Parameters
    ----------
    model
    what
        Asks for it, such as "SQL".
    """
    if isinstance(model, CentersModel) and model.root is not None:
        raise InputError(
            f'with covariance="full" each score depends on all {model.n_features:,} columns, and {what} is made of the '
            'selected ones; fit with covariance="within"'
        )
    if isinstance(model, NaiveBayesModel) and model.rest is not None:
        raise InputError(
            f"a model of method 'error' adds up all {model.n_features:,} columns, and {what} has the selected ones "
            'only; fit with k="all", or SparseMultinomialNB to the selected columns'
        )


def refuse_exact_features(model: Model) -> None:
    """Refuse models that compare features without variance before they look at distances."""
    if isinstance(model, CentersModel) and model.method != "l1" and not model.is_linear:
        raise InputError(
            "some selected features have no variance within classes, which are compared before any distance; fit with "
            "a variance_floor above 0"
        )


def _of_naive_bayes(model: NaiveBayesModel) -> AdditiveScores:
    return AdditiveScores(model.start, model.steps, model.threshold, model.class_log_prior)


def _of_centers(model: CentersModel) -> AdditiveScores:
    """Squares ``(x - pooled)^2 - (x - center)^2`` are linear in x."""
    slopes = model.centers - model.pooled
    if model.variances is not None:
        varies = model.variances > 0
        slopes = np.divide(slopes, model.variances, where=varies, out=np.zeros(slopes.shape))
    start = -(slopes * (model.centers + model.pooled)).sum(axis=1)
    return _without_unseen(model, AdditiveScores(LogTerms.of(start), LogTerms.of(2 * slopes)))


def _of_regions(model: HybridModel) -> AdditiveScores:
    logs, n_classes, k = model.log_probabilities, model.n_classes, len(model.support)
    by_region = logs[:, None, :] if logs.ndim == 2 else logs
    worth = (model.slopes[:, None] * by_region).reshape(n_classes, k)
    if n_classes == 2:  # of which only the difference is looked at
        worth = np.stack([np.zeros(k), worth[1] - worth[0]])
    return _without_unseen(model, AdditiveScores(LogTerms.of(model.intercepts), LogTerms.of(worth)))


def _without_unseen(model: Model, scores: AdditiveScores) -> AdditiveScores:
    """Classes without documents ruled out, and nothing else known of them."""
    unseen = (model.class_count == 0).astype(np.int64)
    finite = np.where(unseen, 0.0, scores.start.finite)
    steps = np.where(unseen[:, None], 0.0, scores.steps.finite)
    return replace(scores, start=LogTerms(finite, unseen), steps=LogTerms(steps, scores.steps.zeros))
