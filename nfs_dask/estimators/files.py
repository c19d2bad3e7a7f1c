"""Estimators saved and loaded: the model and the parameters, not the counts."""

from __future__ import annotations

import inspect
import os
from typing import Any

import numpy as np

from nfs_dask.errors import StoreError
from nfs_dask.estimators.base import SparseNaiveBayes
from nfs_dask.estimators.bernoulli import SparseBernoulliNB
from nfs_dask.estimators.multinomial import SparseMultinomialNB
from nfs_dask.estimators.textual import reader_for
from nfs_dask.storage.models import read_model

ESTIMATORS: dict[str, type[SparseNaiveBayes]] = {"bernoulli": SparseBernoulliNB, "multinomial": SparseMultinomialNB}


def load_model(path: str | os.PathLike[str], *, tokenizer: Any = None) -> SparseNaiveBayes:
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
    made = ESTIMATORS.get(model.method)
    if made is None:
        raise StoreError(f"{os.fspath(path)} is a model of method {model.method!r}; known are {', '.join(ESTIMATORS)}")
    unknown = set(parameters) - set(inspect.signature(made).parameters)
    if unknown:
        raise StoreError(f"{os.fspath(path)} has parameters that {made.__name__} does not know: {sorted(unknown)}")
    estimator = made(**parameters)
    estimator.model_, estimator.reader_ = model, reader
    estimator.classes_ = model.classes
    estimator.class_count_ = np.array(model.class_count)
    estimator.n_features_in_ = model.n_features
    return estimator
