"""What displays ask of models and evaluations, with refusals that say what to do."""

from __future__ import annotations

from typing import Any

from nfs_dask.arrays.block import Array
from nfs_dask.containers import a_type
from nfs_dask.errors import InputError
from nfs_dask.estimators.evaluating import evaluate
from nfs_dask.models.model import Model
from nfs_dask.plots.drawing_axes import check_matplotlib
from nfs_dask.prediction.evaluation import Confidence, Evaluation


def evaluation_of(model: Any, X: Any, y: Any) -> Evaluation:
    """What `nfs_dask.evaluate` says; not before it is known that it can be drawn."""
    check_matplotlib()
    return evaluate(model, X, y)


def checked_evaluation(evaluation: Any) -> Evaluation:
    """What was given, if it is an evaluation."""
    if not isinstance(evaluation, Evaluation):
        raise InputError(f"the evaluation is {a_type(evaluation)}; give what nfs_dask.evaluate(model, X, y) returns")
    return evaluation


def confidence_of(evaluation: Any) -> Confidence:
    """How sure a model was of the documents it was evaluated on."""
    found = checked_evaluation(evaluation)
    confidence = found.confidence
    if confidence is None and len(found.classes) == 1:
        raise InputError("this evaluation is of a model of one class, which it is always sure of; fit it to more")
    if confidence is None:
        raise InputError(
            "this evaluation is of a model that measures distances and has no probabilities; take one of naive Bayes, "
            'or SparseCentroid(metric="mahalanobis")'
        )
    return confidence


def names_of(model: Model, positions: Array) -> list[str]:
    """Names of some of the chosen features; of no others, as all may be many."""
    if model.names is None:
        return [f"x{column}" for column in model.support[positions].tolist()]
    return [model.names[position] for position in positions.tolist()]
