"""Cross-validation of every k and every smoothing at once, in two passes over the data where one pass fits a model.

counts    of each fold; what a model of the other folds is fitted to is the sum of their counts
scores    of each document by all models that were fitted without its fold

A method that takes several passes for a model takes them for those of all folds together. Models are made by the
functions that estimators use, so they are those that fitting each of them anew would give.

References: SC (Calafiore and Fracastoro 2019) Remark 4.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.dataset import Dataset
from nfs_dask.engine.engine import Engine
from nfs_dask.errors import DataWarning, InputError, PlanError, warn
from nfs_dask.methods.procedure import Passes, Procedure, Sum, run
from nfs_dask.methods.recipe import Grid, LongRecipe, Recipe
from nfs_dask.models.model import Model
from nfs_dask.selection.lockstep import in_lockstep
from nfs_dask.selection.training import TrainingPanels, added_folds, dataset_by_fold, dataset_without_fold
from nfs_dask.selection.validation_table import CrossValidation
from nfs_dask.sources.folds import Folds, by_fold
from nfs_dask.statistics.held_out import HeldOut, beside, losses, right_answers
from nfs_dask.statistics.panels import MemoryPanels, Panels
from nfs_dask.statistics.statistic import State, Statistic
from nfs_dask.units import format_bytes

logger = logging.getLogger("nfs_dask")

MOST_COUNTS = 1 << 30  # bytes of counts that are held in memory; others stay in panels


def cross_validation(
    dataset: Dataset, folds: Folds, recipe: Recipe | LongRecipe, grid: Grid, engine: Engine | None = None
) -> CrossValidation:
    """Fit models of every k and alpha without each fold in turn, and judge them by it."""
    return run(_validate(dataset, folds, recipe, grid), dataset, engine)


def _validate(dataset: Dataset, folds: Folds, recipe: Recipe | LongRecipe, grid: Grid) -> Procedure[CrossValidation]:
    started, passes = time.perf_counter(), Passes(dataset)
    if isinstance(recipe, LongRecipe):
        models = yield from _learn(passes, folds, recipe, grid)
    else:
        models = yield from _count(passes, folds, recipe, grid)
    totals = yield from _judge(passes, folds, models)
    check_rows(totals["rows"])
    shape = (folds.count, len(grid.alphas), len(grid.ks))
    classes, lost, answers = dataset.known_classes(), losses(totals), totals.get("answers")
    return CrossValidation(
        method=grid.method,
        parameters=grid.parameters,
        classes=classes,
        n_features=dataset.n_features,
        ks=grid.ks,
        alphas=grid.alphas,
        folds=folds.describe(),
        documents=totals["rows"],
        right=right_answers(totals).reshape(*shape, len(classes)),
        losses=None if lost is None else lost.reshape(shape),
        answers=None if answers is None else answers.reshape(*shape, len(classes), len(classes)),
        passes=tuple(passes.done),
        seconds=time.perf_counter() - started,
    )


Models = tuple[Sequence[Model], ...]  # of each fold


def _count(passes: Passes, folds: Folds, recipe: Recipe, grid: Grid) -> Procedure[Models]:
    """Models of what one pass counts by fold, or none where it had been kept."""
    classes = passes.dataset.known_classes()
    statistic = recipe.statistic(len(classes))
    counted: Any = replace(statistic, n_classes=folds.count * len(classes))  # type: ignore[type-var]
    folded = dataset_by_fold(passes.dataset, folds)
    panels = (yield from passes.carry_out(Sum("counts", counted, folded.source, folded.kept))).panels
    check_rows(panels.totals["rows"].reshape(folds.count, len(classes)))
    present = panels.totals["weight"].reshape(folds.count, len(classes)) > 0
    check_present(classes, present.sum(axis=0) - present > 0)
    logger.info("fitting models of %d folds", folds.count)
    return tuple(grid.models(recipe.fitting(classes, training)) for training in _trainings(panels, statistic, folds))


def _learn(passes: Passes, folds: Folds, recipe: LongRecipe, grid: Grid) -> Procedure[Models]:
    """Models of all folds in the passes of one; where each cell of the grid has its own, of as many as memory allows.

    A procedure may hold counts of all features; procedures in lockstep hold as many of them.
    """
    dataset = passes.dataset
    cells = grid.cells() if recipe.one_by_one else [grid]
    nbytes = folds.count * len(dataset.known_classes()) * dataset.n_features * 8
    at_once = max(1, MOST_COUNTS // (2 * nbytes))
    models: list[Sequence[Model]] = [()] * folds.count
    for first in range(0, len(cells), at_once):
        batch = [(fold, cell) for cell in cells[first : first + at_once] for fold in range(folds.count)]
        learning = [recipe.learn(dataset_without_fold(dataset, folds, fold), cell) for fold, cell in batch]
        found = yield from in_lockstep(learning, passes)
        check_present(dataset.known_classes(), np.array([weight > 0 for weight, _ in found[: folds.count]]))
        for (fold, _), (_, made) in zip(batch, found, strict=True):
            models[fold] = (*models[fold], *made) if len(models[fold]) else made
    return tuple(models)


def _judge(passes: Passes, folds: Folds, models: Models) -> Procedure[Mapping[str, Array]]:
    """Score the rows of each fold by its models: in one pass, or in as many as memory asks for."""
    source = passes.dataset.source
    held_out = HeldOut(folds.count * len(passes.dataset.known_classes()), models)
    view = by_fold(source, folds, held_out.carried_nbytes)
    try:
        return (yield from passes.sum("scores", held_out, view)).state.totals
    except PlanError as error:
        half = len(models[0]) // 2
        if not half:
            raise PlanError(
                f"{len(models):,} models of a k, one for each fold, are scored together, and take "
                f"{format_bytes(held_out.carried_nbytes)} in each task; validate smaller k, or fewer folds. {error}"
            ) from error
    logger.info("scoring half of %d models of each fold at a time", len(models[0]))
    first = yield from _judge(passes, folds, tuple(made[:half] for made in models))
    second = yield from _judge(passes, folds, tuple(made[half:] for made in models))
    return beside(first, second)


def check_rows(rows: Array) -> None:
    """Refuse folds without documents; ``rows`` (F, C) are how many there are of each class."""
    empty = np.flatnonzero(rows.sum(axis=1) == 0)
    if len(empty):
        raise InputError(
            f"fold {empty[0]} of {len(rows)} has none of the {rows.sum():,} documents; take fewer folds, or give one "
            "fold for each document"
        )


def check_present(classes: Array, present: Array) -> None:
    """Refuse classes without documents; say where one is not among those that the models of a fold are fitted to.

    ``present`` (F, C) is true where a class has documents, of a weight above 0, outside of each fold.
    """
    nowhere = np.flatnonzero(~present.any(axis=0))
    if len(nowhere):
        raise InputError(
            f"class {classes[nowhere[0]].item()!r} has no documents, or only some of weight zero; leave the class out"
        )
    if not present.any(axis=1).all():
        raise InputError("all documents of a weight above 0 are in one fold; give some in another a weight above 0")
    missing = np.argwhere(~present)
    if len(missing):
        fold, code = missing[0]
        more = f", and so for {len(missing) - 1} other classes" if len(missing) > 1 else ""
        warn(
            f"class {classes[code].item()!r} has documents in fold {fold} only, so that the models which that fold "
            f"judges never predict it{more}; take fewer folds, or leave such classes out",
            DataWarning,
        )


def _trainings(panels: Panels, statistic: Statistic, folds: Folds) -> Iterator[Panels]:
    """Yield the counts outside of each fold in turn; in memory if they fit."""
    nbytes = folds.count * statistic.array_nbytes(panels.n_features, "count", weighted=False)
    wide = len(panels) > 1 and nbytes > MOST_COUNTS
    whole = panels if wide else MemoryPanels(panels.state(), panels.n_features)
    together = None if wide else added_folds(whole.state(), folds.count)
    for fold in range(folds.count):
        training = TrainingPanels(whole, statistic, fold, together)
        yield training if wide else MemoryPanels(State(training.arrays(0), training.totals), panels.n_features)
