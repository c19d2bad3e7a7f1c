"""What models of the k of a path would go by: the features that speak for each class most, for one k after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from nfs_dask.engine.engine import Engine
from nfs_dask.methods.procedure import run
from nfs_dask.methods.recipe import Fit, Grid, LongRecipe
from nfs_dask.models.model import Model
from nfs_dask.selection.data_rules import PathData
from nfs_dask.selection.path_table import Path
from nfs_dask.selection.validation_passes import MOST_COUNTS
from nfs_dask.statistics.panels import MemoryPanels


def models_of_path(path: Path, ks: Sequence[int], engine: Engine | None = None) -> Iterator[Model] | None:
    """Models of some k, one after another, those that fits would give; None where the data are not at hand any more.

    Their evidence may be left out, which takes two fifths of the time and which weights do not need.

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
    return _one_by_one(recipe.fitting(classes, panels), ks, alpha)


def tops_of_path(
    path: Path, ks: Sequence[int], n: int, engine: Engine | None = None
) -> Iterator[dict[Any, list[tuple[str, float]]]] | None:
    """For each k the features that speak for each class most, up to n of them, with their weights."""
    models = models_of_path(path, ks, engine)
    return None if models is None else (model.top_features(n, path.named.names) for model in models)


def _one_by_one(fit: Fit, ks: Sequence[int], alpha: float | None) -> Iterator[Model]:
    """One model at a time: those of many features are large."""
    for k in ks:
        yield fit(int(k), alpha)
