"""Cross-validation of many k and many smoothings at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from nfs_dask.containers import is_collection, is_frame, split_off, unwrapped
from nfs_dask.dataset import Dataset
from nfs_dask.engine.engine import Engine
from nfs_dask.errors import InputError
from nfs_dask.estimators.classifier import SparseClassifier, parameters_of
from nfs_dask.estimators.inputs import check_alpha, open_labelled
from nfs_dask.estimators.loading import METHODS, make_estimator
from nfs_dask.methods.number_of_features import numbers_to_keep
from nfs_dask.selection.splitters import folds_of
from nfs_dask.selection.validation_passes import Grid, cross_validation
from nfs_dask.selection.validation_table import CrossValidation
from nfs_dask.sources.dask_matrices import CollectionSource
from nfs_dask.sources.folds import lazy_folds


def cross_validate(
    X: Any,
    y: Any = None,
    *,
    method: str,
    ks: Iterable[Any],
    alphas: Iterable[float] = (1.0,),
    folds: Any = 5,
    sample_weight: Any = None,
    engine: Engine | None = None,
    **parameters: Any,
) -> CrossValidation:
    """Measure models of each k and each alpha on documents they were not fitted to.

    Two passes over the data serve the whole grid: one counts by fold, the other scores each document by all models that
    were fitted without its fold. Medians take as many for the first as one fit does, and a hybrid naive Bayes three in
    all, unless documents are many. Models that are too many for a worker are scored in turn, by more passes. The scores
    are those of fitting an estimator anew for each fold, k and alpha.

    Parameters
    ----------
    X : (n, m) matrix, dask array or DataFrame, or Dataset
        Documents, a row for each.
    y : (n,) labels, optional
        A Dataset brings its own.
    method : "multinomial", "bernoulli", "l2", "mahalanobis", "l1" or "hybrid"
        What is fitted, by its name in commands.
    ks : list of int, float in (0, 1) or "all"
        Numbers of features; of "hybrid", of words.
    alphas : list of float
        Naive Bayes: smoothings.
    folds : int, splitter, (n,) labels, or str, default=5
        How many; of data in memory they are those of scikit-learn's ``cv=folds``, of others rows are spread by a hash
        of their number. A splitter of scikit-learn, for data in memory. Or a label for each row, or the name of a
        column that has them, of a store, an AnnData (in its obs), or a table, whose other columns are then the
        features: rows with the same one are a fold.
    sample_weight : (n,) weights of zero or more, optional
        Of documents that models are fitted to; those that are judged count once.
    engine : SerialEngine or DaskEngine, optional
        Where passes run.
    **parameters
        Others of the method's estimator, such as ``covariance="total"``.

    Returns
    -------
    CrossValidation
        A table of scores for each fold, alpha and k, which prints itself; `choose` takes one k.

    Examples
    --------
    >>> import nfs_dask as nfs
    >>> X = [[2, 0, 1], [1, 1, 0], [0, 2, 1], [0, 1, 1]] * 3
    >>> y = ["tea", "tea", "coffee", "coffee"] * 3
    >>> table = nfs.cross_validate(X, y, method="multinomial", ks=[2, 3], alphas=[0.1, 1.0], folds=3)
    >>> table.scores(k=2, alpha=1.0).tolist(), table.reads
    ([1.0, 1.0, 1.0], 2.0)
    """
    estimator = make_estimator(method, k="all", engine=engine, **_without_grid(parameters))
    if isinstance(folds, str) and is_frame(X := unwrapped(X)):
        folds, X = split_off(X, folds)
    X, n_matrices = estimator.joined(X)
    dataset = open_labelled(estimator, X, y, sample_weight)
    dataset.known_classes()
    if is_collection(folds := unwrapped(folds, "folds")) and isinstance(dataset.source, CollectionSource):
        found, source = lazy_folds(folds, dataset.source)
        dataset = Dataset(source)
    else:
        found = folds_of(folds, dataset, y)
    recipe = estimator.recipe(dataset, n_matrices)
    wanted = numbers_to_keep(ks, estimator.n_choosable(dataset, n_matrices))
    grid = Grid(method, wanted, _alphas(alphas, method), _shown(estimator))
    return cross_validation(dataset, found, recipe, grid, engine)


def _without_grid(parameters: dict[str, Any]) -> dict[str, Any]:
    for name, grid in (("k", "ks"), ("alpha", "alphas")):
        if name in parameters:
            raise InputError(f"{name}={parameters[name]!r} is one value; validate several with {grid}=[...]")
    return parameters


def _alphas(alphas: Any, method: str) -> tuple[float | None, ...]:
    """The smoothings in the order given, each once."""
    if isinstance(alphas, str) or not isinstance(alphas, Iterable):
        raise InputError(f"alphas={alphas!r} is not a list; write several, such as [0.1, 1.0]")
    found = tuple(dict.fromkeys(check_alpha(alpha) for alpha in alphas))
    if not found:
        raise InputError("alphas is empty; name at least one, or leave it out for 1.0")
    if "alpha" in METHODS[method].parameters:
        return found
    if found != (1.0,):
        raise InputError(f"alphas={list(found)} are for methods that smooth, and {method} does not; leave them out")
    return (None,)


def _shown(estimator: SparseClassifier) -> dict[str, Any]:
    """The parameters of an estimator that differ from its defaults, as JSON values."""
    hidden = ("k", "alpha", "engine", "metric")
    default = parameters_of(type(estimator)())
    given = {name: _plain(value) for name, value in parameters_of(estimator).items() if name not in hidden}
    return {name: value for name, value in given.items() if value != _plain(default[name])}


def _plain(value: Any) -> Any:
    """A parameter as a JSON value."""
    if isinstance(value, str | int | float | None):
        return value
    values = value.tolist() if hasattr(value, "tolist") else value
    return [_plain(one) for one in values] if isinstance(values, list | tuple) else str(values)
