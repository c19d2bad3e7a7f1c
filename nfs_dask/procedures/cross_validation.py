"""Cross-validation of every k and every smoothing at once, in two passes over the data.

counts    of each fold; what a model of the other folds is fitted to is the sum of their counts
scores    of each document by all models that were fitted without its fold

Models are made by the functions that estimators use, so they are those that fitting each of them anew would give.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from nfs_dask.block import Array
from nfs_dask.dataset import Dataset
from nfs_dask.engine.base import Engine
from nfs_dask.engine.choose import choose_engine
from nfs_dask.errors import DataWarning, InputError, PlanError, warn
from nfs_dask.models.base import Model
from nfs_dask.procedures.passes import Passes
from nfs_dask.procedures.training import KeptByFold, TrainingPanels
from nfs_dask.procedures.validation_table import CrossValidation
from nfs_dask.sources.folds import Folds, by_fold
from nfs_dask.statistics.base import State, Statistic
from nfs_dask.statistics.held_out import HeldOut, losses, right_answers
from nfs_dask.statistics.panels import MemoryPanels, Panels
from nfs_dask.storage.kept import Kept
from nfs_dask.units import format_bytes

logger = logging.getLogger("nfs_dask")

MOST_COUNTS = 1 << 30  # bytes of counts that are held in memory; others stay in panels

Fit = Callable[[int, "float | None"], Model]  # the model of a k and an alpha


class Recipe(Protocol):
    """How a method makes models from what is counted in one pass."""

    @property
    def method(self) -> str: ...

    def statistic(self, n_classes: int) -> Statistic:
        """What is counted, of so many classes."""
        ...

    def fitting(self, classes: Array, panels: Panels) -> Fit:
        """Makes models of the documents that were counted in ``panels``."""
        ...


@dataclass(frozen=True)
class Grid:
    """What is validated."""

    ks: Array  # (K,) int64, ascending
    alphas: tuple[float, ...] | tuple[None]  # (None,) of a method that does not smooth
    parameters: Mapping[str, Any] = field(default_factory=dict)  # of the method, for people

    def models(self, fit: Fit) -> tuple[Model, ...]:
        """All of them, by alpha, then k."""
        return tuple(fit(k, alpha) for alpha in self.alphas for k in self.ks.tolist())


def cross_validation(
    dataset: Dataset, folds: Folds, recipe: Recipe, grid: Grid, engine: Engine | None = None
) -> CrossValidation:
    """Fit models of every k and alpha without each fold in turn, and judge them by it.

    Parameters
    ----------
    dataset
        With labels.
    folds
        Of its rows.
    recipe
        Of the method.
    grid
        What is validated.
    engine
        Where the two passes run.
    """
    started = time.perf_counter()
    classes = dataset.known_classes()
    with choose_engine(engine, dataset.source).session() as session:
        passes = Passes(dataset, session)
        panels = _counts(passes, folds, recipe.statistic(folds.count * len(classes)))
        check_folds(classes, panels.totals["weight"], panels.totals["rows"], folds)
        logger.info("fitting %d models", folds.count * len(grid.ks) * len(grid.alphas))
        models = tuple(
            grid.models(recipe.fitting(classes, training))
            for training in _trainings(panels, recipe.statistic(len(classes)), folds)
        )
        totals = judge(passes, folds, models)
    return table_of(dataset, folds, recipe.method, grid, totals, passes, time.perf_counter() - started)


def judge(passes: Passes, folds: Folds, models: Iterable[tuple[Model, ...]]) -> Mapping[str, Array]:
    """What is right of what the models of each fold say of its rows: one pass."""
    source = passes.dataset.source
    held_out = HeldOut(folds.count * len(passes.dataset.known_classes()), tuple(models))
    view = by_fold(source, folds, held_out.carried_nbytes)
    try:
        return passes.reduce("scores", held_out, view).state.totals
    except PlanError as error:
        n = sum(map(len, held_out.models))
        raise PlanError(
            f"{n:,} models of all folds are scored together, and take {format_bytes(held_out.carried_nbytes)} in each "
            f"task; validate fewer or smaller k, or fewer alphas, at a time. {error}"
        ) from error


def table_of(
    dataset: Dataset,
    folds: Folds,
    method: str,
    grid: Grid,
    totals: Mapping[str, Array],
    passes: Passes,
    seconds: float,
) -> CrossValidation:
    """The totals of a `HeldOut` as a table."""
    shape = (folds.count, len(grid.alphas), len(grid.ks))
    classes, lost, answers = dataset.known_classes(), losses(totals), totals.get("answers")
    return CrossValidation(
        method=method,
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
        seconds=seconds,
    )


def check_folds(classes: Array, weight: Array, rows: Array, folds: Folds) -> None:
    """Refuse classes and folds without documents; say where a class is in one fold only.

    Parameters
    ----------
    classes : (C,) labels
    weight, rows : (F * C,)
        Weight and number of the documents of each class of each fold.
    folds
        The F folds.
    """
    weight, rows = weight.reshape(folds.count, len(classes)), rows.reshape(folds.count, len(classes))
    if not np.isfinite(weight).all():
        raise InputError("sample weights add up to more than a float holds; scale them down")
    if (empty := np.flatnonzero(weight.sum(axis=0) == 0)).size:
        raise InputError(
            f"class {classes[empty[0]].item()!r} has no documents, or only some of weight zero; leave the class out"
        )
    if (empty := np.flatnonzero(rows.sum(axis=1) == 0)).size:
        raise InputError(
            f"fold {empty[0]} of {folds.count} has none of the {rows.sum():,} documents; take fewer folds, or give one "
            "fold for each document"
        )
    present = weight > 0
    if present.any(axis=1).sum() == 1:
        raise InputError("all documents of a weight above 0 are in one fold; give some in another a weight above 0")
    alone = np.flatnonzero(present.sum(axis=0) == 1)
    if len(alone):
        fold = int(present[:, alone[0]].argmax())
        more = f", and so for {len(alone) - 1} other classes" if len(alone) > 1 else ""
        warn(
            f"class {classes[alone[0]].item()!r} has documents in fold {fold} only, so that the models which that fold "
            f"judges never predict it{more}; take fewer folds, or leave such classes out",
            DataWarning,
        )


def _counts(passes: Passes, folds: Folds, statistic: Statistic) -> Panels:
    """The statistic over the classes of each fold: one pass, or none where it had been kept."""
    reduction = _ByFold(passes.dataset, folds).reduce(statistic, passes.engine)
    passes.record("counts", reduction.plan, reduction.seconds, 0.0 if reduction.reused else 1.0)
    return reduction.panels


def _trainings(panels: Panels, statistic: Statistic, folds: Folds) -> Iterator[Panels]:
    """What was counted outside of each fold in turn; in memory, if what was counted fits."""
    nbytes = folds.count * statistic.array_nbytes(panels.n_features, "count", weighted=False)
    wide = len(panels) > 1 and nbytes > MOST_COUNTS
    whole = panels if wide else MemoryPanels(panels.state(), panels.n_features)
    for fold in range(folds.count):
        training = TrainingPanels(whole, statistic, fold)
        yield training if wide else MemoryPanels(State(training.arrays(0), training.totals), panels.n_features)


class _ByFold(Dataset):
    """A dataset by fold, whose statistics are kept beside the others."""

    def __init__(self, dataset: Dataset, folds: Folds) -> None:
        super().__init__(by_fold(dataset.source, folds), dataset.location, reuse=dataset.reuse)
        self._kept = None if dataset.statistics is None else KeptByFold.of(dataset.statistics, folds)

    @property
    def statistics(self) -> Kept | None:
        return self._kept
