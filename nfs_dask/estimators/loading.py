"""Estimators by the names of their methods, and out of files: the model and the parameters, not the counts."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from typing import Any

from nfs_dask.errors import InputError, StoreError
from nfs_dask.estimators.classifier import SparseClassifier
from nfs_dask.estimators.textual import reader_for
from nfs_dask.models.model import Model
from nfs_dask.registry import METHODS, method_named, takers
from nfs_dask.store.model_files import read_model


def make_estimator(method: str, **parameters: Any) -> SparseClassifier:
    """A plain estimator that is not fitted, of a method by its name in commands and models.

    Parameters
    ----------
    method
        One of `METHODS`.
    **parameters
        Of the estimator; those of other methods are refused.
    """
    made = method_named(method)
    for name, value in parameters.items():
        if name not in made.parameters:
            raise InputError(f"{name}={value!r} is for {takers(name)}, and the method is {method}; leave it out")
    return made.plain_class()(**made.fixed, **parameters)


def load_model(path: str | os.PathLike[str], *, tokenizer: Any = None) -> SparseClassifier:
    """A fitted estimator from what `save` or ``nfs-dask fit`` wrote.

    It predicts, transforms and explains; the counts are not in the file, so it takes no more documents.

    Parameters
    ----------
    path : str or path
        The folder, or its URL.
    tokenizer : callable, optional
        The one that the texts were split with, for a model that was made with one: a model keeps only its name, and
        without it reads no raw text. Also in place of a ``token_pattern`` that may take for ever on some texts.

    Returns
    -------
    SparseClassifier
        Of the class that was saved: a `SparseMultinomialNB`, for one.

    Raises
    ------
    StoreError
        There is no model, or it is damaged, or of a later version.

    Examples
    --------
    >>> import tempfile
    >>> import nfs_dask as nfs
    >>> X, y = [[4, 0, 1], [3, 1, 2], [0, 2, 1], [0, 3, 2]], ["tea", "tea", "coffee", "coffee"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     nfs.SparseMultinomialNB(k=2).fit(X, y).save(f"{folder}/drinks.model")
    ...     nfs.load_model(f"{folder}/drinks.model").predict([[3, 0, 1]]).tolist()
    ['tea']
    """
    model, parameters = read_model(path)
    return estimator_of(model, parameters, path, tokenizer, METHODS[model.method].estimator_class())


def load_plain(path: str | os.PathLike[str]) -> SparseClassifier:
    """As `load_model`, for those who have no use for scikit-learn.

    Parameters
    ----------
    path
        The folder, or its URL.
    """
    return estimator_of(*read_model(path), path)


def estimator_of(
    model: Model,
    parameters: Mapping[str, Any],
    path: str | os.PathLike[str],
    tokenizer: Any = None,
    made: type[SparseClassifier] | None = None,
) -> SparseClassifier:
    """The estimator of a model that was read from a path, beside the parameters it was fitted with.

    Parameters
    ----------
    model, parameters
        What `read_model` found.
    path
        Where; for messages.
    tokenizer
        As of `load_model`.
    made
        Its class; None: the one that scikit-learn is not needed for.
    """
    reader = reader_for(model, tokenizer)
    made = made or METHODS[model.method].plain_class()
    unknown = set(parameters) - set(inspect.signature(made).parameters)
    if unknown:
        raise StoreError(f"{os.fspath(path)} has parameters that {made.__name__} does not know: {sorted(unknown)}")
    estimator = made(**parameters)
    estimator.take_over(model, reader)
    estimator.n_features_in_ = model.n_features
    return estimator
