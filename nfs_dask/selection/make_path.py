"""Paths: supports of many sizes with their gains and bounds, from one pass over the data; and their models."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.dataset import Dataset
from nfs_dask.engine.engine import Engine
from nfs_dask.errors import InputError
from nfs_dask.estimators.classifier import parameters_of
from nfs_dask.estimators.inputs import numeric, open_labelled
from nfs_dask.estimators.loading import make_estimator
from nfs_dask.methods.number_of_features import numbers_to_keep
from nfs_dask.methods.procedure import run
from nfs_dask.methods.recipe import Grid, LongRecipe
from nfs_dask.models.model import Model
from nfs_dask.registry import method_named, methods_of_paths
from nfs_dask.selection.path_table import Path
from nfs_dask.selection.rules import PathData
from nfs_dask.selection.validation_passes import MOST_COUNTS
from nfs_dask.statistics.panels import MemoryPanels

logger = logging.getLogger("nfs_dask")

POINTS = 200  # values of k over wide data, unless some are named
POINTS_ALONE = 50  # the same where each k is solved by itself: multinomial models of more than two classes
MOST_ALL = 3_000  # up to so many features, every k is solved for
MOST_ALL_ALONE = 100
ORDER = 'write path(X, y, method="multinomial", ks=[...]), or path(X, "multinomial", [...], y=y)'


def path(
    X: Any,
    *given: Any,
    y: Any = None,
    method: str | None = None,
    ks: Iterable[Any] | None = None,
    sample_weight: Any = None,
    alpha: float = 1.0,
    binarize: float | None = None,
    covariance: str | None = None,
    variance_floor: float | None = None,
    engine: Engine | None = None,
) -> Path:
    """The best features for many k, with what each number of them gains and how sure that is.

    The documents are read as for one k, or not at all where the statistics were kept. An estimator takes a k that
    suits.

    Parameters
    ----------
    X : (n, m) matrix, dask array or DataFrame, or Dataset
        Documents, a row for each.
    *given
        Without their names either y, as of `fit` and `cross_validate`, ``path(X, y, method="multinomial", ks=[5])``; or
        method and ks: ``path(dataset, "multinomial", [5, 10])``.
    y : (n,) labels, optional
        A Dataset brings its own.
    method : "multinomial", "bernoulli", "l2", "mahalanobis" or "l1"
        What ranks the features, by its name in commands.
    ks : list of int, float in (0, 1) or "all", optional
        None: every k of up to 3,000 features, else up to 200 values from 1 to all, in equal ratios. A multinomial model
        of more than two classes takes longer: every k of up to 100 features, else up to 50 values.
    sample_weight : (n,) weights of zero or more, optional
        How much each document counts.
    alpha : float
        Naive Bayes: smoothing, as for the estimators.
    binarize : float, optional
        Bernoulli: values above it count as present.
    covariance : {"within", "total", "full"}, optional
        Mahalanobis; "within" if not given.
    variance_floor : float, optional
        Mahalanobis; 0 if not given.
    engine : SerialEngine or DaskEngine, optional
        Where passes run.

    Returns
    -------
    Path
        A table with a row for each k, which prints itself; `choose` takes one k, `support` has its features.

    Examples
    --------
    >>> import nfs_dask as nfs
    >>> X = [[2, 0, 1], [1, 1, 0], [0, 2, 1], [0, 1, 1]]
    >>> path = nfs.path(X, "multinomial", y=["tea", "tea", "coffee", "coffee"], alpha=0.5)
    >>> path.ks.tolist(), path.value.round(3).tolist(), path.support(2).tolist()
    ([1, 2, 3], [0.0, 1.621, 1.803], [0, 1])
    """
    y, method, ks = _in_order(given, {"y": y, "method": method, "ks": ks})
    if y is None and not (isinstance(X, Dataset) or X is None):
        raise InputError(f"the labels of X are missing; {ORDER}")
    instead = method_named(method).instead_of_paths
    if instead is not None:
        raise InputError(
            f"method={method!r} does not rank features, so that there is no path; give one of "
            f"{', '.join(map(repr, methods_of_paths()))}, or {instead}"
        )
    X = numeric(X)
    options = {"binarize": binarize, "covariance": covariance, "variance_floor": variance_floor}
    options |= {"alpha": None if alpha == 1.0 else alpha}
    named = {name: value for name, value in options.items() if value is not None}
    estimator: Any = make_estimator(method, k="all", engine=engine, **named)
    dataset = open_labelled(estimator, X, y, sample_weight)
    classes = dataset.known_classes()
    wanted = _wanted(ks, estimator.solves_each_k(len(classes)), dataset.n_features)
    logger.info("solving for %d values of k", len(wanted))
    found = estimator.rank(dataset, wanted)
    source = dataset.source
    return Path(
        method=method,
        parameters=_shown(estimator),
        classes=classes,
        n_rows=found.rows,
        n_features=dataset.n_features,
        reused=found.reused,
        ks=wanted,
        solved=found.supports,
        # Data on disk are asked for names when they are needed.
        named=NamesInMemory(source.names(np.arange(source.n_features))) if source.is_shipped else source,
        rules=PathData((X, y, sample_weight), dataset, method, estimator),
    )


def _in_order(given: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, str, Any]:
    """y, method and ks from what was given without and with names."""
    order = ("method", "ks") if given and isinstance(given[0], str) else ("y", "method", "ks")
    if len(given) > len(order):
        raise InputError(
            f"{len(given) + 1} values were given without names, of which {len(order) + 1} are known; {ORDER}"
        )
    for name, value in zip(order, given, strict=False):
        if named[name] is not None:
            raise InputError(f"{name} was given twice, by its place and by its name; {ORDER}")
        named[name] = value
    return named["y"], named["method"], named["ks"]


def _shown(estimator: Any) -> dict[str, Any]:
    """The parameters of the method that gains depend on, as JSON values."""
    parameters = parameters_of(estimator)
    if parameters.get("metric", "mahalanobis") != "mahalanobis":
        return {}
    names = [name for name in ("alpha", "covariance", "variance_floor") if name in parameters]
    return {name: parameters[name] if name == "covariance" else float(parameters[name]) for name in names}


def _wanted(ks: Iterable[Any] | None, alone: bool, n_features: int) -> Array:
    """The k to solve for, ascending, each once."""
    if ks is not None:
        return numbers_to_keep(ks, n_features)
    if n_features <= (MOST_ALL_ALONE if alone else MOST_ALL):
        return np.arange(1, n_features + 1)
    return np.unique(np.rint(np.geomspace(1, n_features, POINTS_ALONE if alone else POINTS)).astype(np.int64))


@dataclass(frozen=True)
class NamesInMemory:
    """Names of the columns of data in memory, which are not held themselves."""

    all: list[str] | None

    def names(self, columns: Array) -> list[str] | None:
        return None if self.all is None else [self.all[i] for i in columns]


def models_of_path(path: Path, ks: Sequence[int], engine: Engine | None = None) -> Iterator[Model] | None:
    """Return models of some k in turn, as fits would give them; None where the data are no longer available.

    One pass over the data serves all of them, or none where what it counts was kept. Of methods that take several
    passes all models are held at once.

    Parameters
    ----------
    path
        With the data it was made of.
    ks
        Numbers of features.
    engine
        Where a pass runs; None: where those of the path did.
    """
    data = path.rules
    if not isinstance(data, PathData) or data.dataset is None:
        return None
    engine = data.estimator.engine if engine is None else engine
    alpha = path.parameters.get("alpha")
    classes, recipe = data.dataset.known_classes(), data.estimator.recipe(data.dataset)
    if isinstance(recipe, LongRecipe):
        grid = Grid(path.method, np.asarray(ks, np.int64), (alpha,))
        return iter(run(recipe.learn(data.dataset, grid), data.dataset, engine)[1])
    panels = data.dataset.reduce(recipe.statistic(len(classes)), engine).panels
    nbytes = len(classes) * path.n_features * 8
    if len(panels) > 1 and nbytes <= MOST_COUNTS:
        panels = MemoryPanels(panels.state(), path.n_features)
    fit = recipe.fitting(classes, panels)
    return (fit(int(k), alpha) for k in ks)  # one at a time: those of many features are large


def tops_of_path(
    path: Path, ks: Sequence[int], n: int, engine: Engine | None = None
) -> Iterator[dict[Any, list[tuple[str, float]]]] | None:
    """Return for each k the features that speak for each class most, up to n of them, with their weights."""
    models = models_of_path(path, ks, engine)
    return None if models is None else (model.top_features(n, path.named.names) for model in models)
