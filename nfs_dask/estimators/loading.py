"""Estimators saved and loaded: the model and the parameters, not the counts."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nfs_dask.errors import InputError, StoreError
from nfs_dask.estimators.bernoulli import SparseBernoulliNB
from nfs_dask.estimators.centers import SparseCentroid
from nfs_dask.estimators.classifier import SparseClassifier
from nfs_dask.estimators.hybrid import HybridNB
from nfs_dask.estimators.multinomial import SparseMultinomialNB
from nfs_dask.estimators.predicted_error import ErrorRateSelector
from nfs_dask.estimators.textual import reader_for
from nfs_dask.store.model_files import read_model


@dataclass(frozen=True)
class Method:
    """A method by its name in commands and models: an estimator with some parameters fixed."""

    estimator: type[SparseClassifier]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    idle: frozenset[str] = frozenset()  # parameters that change nothing

    @property
    def parameters(self) -> set[str]:
        """Those that may be given."""
        return set(inspect.signature(self.estimator).parameters) - set(self.fixed) - self.idle


_VARIANCES = frozenset({"covariance", "variance_floor"})

METHODS = {
    "multinomial": Method(SparseMultinomialNB),
    "bernoulli": Method(SparseBernoulliNB),
    "l2": Method(SparseCentroid, {"metric": "euclidean"}, _VARIANCES),
    "mahalanobis": Method(SparseCentroid, {"metric": "mahalanobis"}),
    "l1": Method(SparseCentroid, {"metric": "manhattan"}, _VARIANCES),
    "hybrid": Method(HybridNB),
    "error": Method(ErrorRateSelector),
}


def make_estimator(method: str, **parameters: Any) -> SparseClassifier:
    """An estimator that is not fitted, of a method by its name in commands and models.

    Parameters
    ----------
    method
        One of `METHODS`.
    **parameters
        Of the estimator; those of other methods are refused.
    """
    made = METHODS.get(method)
    if made is None:
        raise InputError(f"method={method!r}; give one of {', '.join(map(repr, METHODS))}")
    for name, value in parameters.items():
        if name not in made.parameters:
            takers = " and ".join(other for other, one in METHODS.items() if name in one.parameters)
            raise InputError(f"{name}={value!r} is for {takers}, and the method is {method}; leave it out")
    return made.estimator(**made.fixed, **parameters)


def load_model(path: str | os.PathLike[str], *, tokenizer: Any = None) -> SparseClassifier:
    """A fitted estimator from what `save` or ``nfs-dask fit`` wrote.

    It predicts, transforms and explains; the counts are not in the file, so it takes no more documents.

    Parameters
    ----------
    path
        The folder, or its URL.
    tokenizer : callable, optional
        The one that the texts were split with, for a model that was made with one: a model keeps only its name, and
        without it reads no raw text.
    """
    model, parameters = read_model(path)
    reader = reader_for(model, tokenizer)
    method = METHODS.get(model.method)
    if method is None:
        raise StoreError(f"{os.fspath(path)} is a model of method {model.method!r}; known are {', '.join(METHODS)}")
    made = method.estimator
    unknown = set(parameters) - set(inspect.signature(made).parameters)
    if unknown:
        raise StoreError(f"{os.fspath(path)} has parameters that {made.__name__} does not know: {sorted(unknown)}")
    estimator = made(**parameters)
    estimator.take_over(model, reader)
    estimator.n_features_in_ = model.n_features
    return estimator
