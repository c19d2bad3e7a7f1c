"""From a table of words to slopes: documents become features, and a logistic model is fitted to these.

What becomes of the features depends on how many there are:

collected   so few that one machine holds them: one pass brings them there, and the fit reads nothing more
stored      more: they are written into files of their own, which each step of the fit reads
seen        where there is no folder that all workers reach: each step makes them anew

References: HYB (Raina et al. 2003) (9), (11).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.cluster.resources import Resources
from nfs_dask.engine.plan import make_plan
from nfs_dask.files.folder import Folder
from nfs_dask.methods.procedure import Passes, Procedure, Write
from nfs_dask.solvers.logistic.likelihood import derivatives
from nfs_dask.solvers.logistic.newton import LogisticFit, Steps, newton_steps, solve
from nfs_dask.sources.region_features import (
    BATCH_NBYTES,
    PANEL_NBYTES,
    FeatureView,
    Table,
    TablePanels,
    cut,
    n_columns,
    table_nbytes,
)
from nfs_dask.sources.source import Source
from nfs_dask.sources.word_table_files import TableFiles, store_table
from nfs_dask.statistics.collected_rows import CollectedRows, row_nbytes
from nfs_dask.statistics.leave_one_out import RegionTable
from nfs_dask.statistics.logistic_sums import FitSums, derivatives_of, features_of, fixed_offsets
from nfs_dask.statistics.statistic import State, Statistic
from nfs_dask.units import MiB

HELD = 64 * MiB  # of features that are collected
SHIPPED = 1 * MiB  # tables up to here travel with tasks
# Bytes of panels of the table, and of documents that they go by for; the first that fit a worker.
CUTS = ((PANEL_NBYTES, BATCH_NBYTES), (PANEL_NBYTES, BATCH_NBYTES // 4), (PANEL_NBYTES // 4, BATCH_NBYTES // 16))


@dataclass(frozen=True)
class Slopes:
    """What to fit, and to which documents."""

    source: Source
    resources: Resources  # of the engine
    table: RegionTable
    normalize: bool
    ridge: float
    class_weight: Array  # (C,)
    fixed: bool  # whether the prior is

    def fit(self, counts: Array, rows: int, passes: Passes) -> Procedure[LogisticFit]:
        """The fit to all ``rows`` documents, by a table of these counts."""
        way = self._way(rows)
        with self._temporary("table") if way.stored else nullcontext() as folder:
            panels = TablePanels(counts, way.bounds) if folder is None else store_table(folder, counts, way.bounds)
            view = self._view(panels, way.batch)
            if isinstance(way.first, CollectedRows):
                return self._fit_collected((yield from passes.sum("features", way.first, view)).state)
            with self._temporary("features") as place:
                written = yield from passes.write(Write("features", view, place))
                return (yield from self._fit_in_passes(view if written is None else written.rows, passes))

    def first(self, rows: int) -> tuple[Statistic, Source]:
        """The pass over the features; where they are not collected, the first of those, without storing any."""
        way = self._way(rows)
        return way.first, self._foreseen(way)

    def _way(self, rows: int) -> _Way:
        """The first that fits the workers: features are collected if that can be, and tables come in large pieces."""
        zero = np.zeros(self.table.n_classes - 1 + self.table.n_regions)
        firsts: list[Statistic] = [self._sums(zero, zero)]
        if rows * row_nbytes(n_columns(self.table), self.source.weighted) <= HELD:
            firsts.insert(0, CollectedRows(self.table.n_classes, rows))
        ways = [_Way(first, *placing) for first in firsts for placing in self._placings()]
        for way in ways:
            if make_plan(way.first, self._foreseen(way), self.resources).fits:
                return way
        return ways[-1]

    def _placings(self) -> list[tuple[bool, tuple[int, ...], int]]:
        """Where the table may lie: whether it is stored, the bounds of its panels, and the batches they go by for."""
        n_words = self.table.n_kept
        ships = self.resources.remote and not self.source.in_memory
        stored = ships and self.resources.spool is not None and table_nbytes(self.table, n_words) > SHIPPED
        return [(stored, cut(n_words, table_nbytes(self.table, 1), most), batch) for most, batch in CUTS]

    # Features

    @contextmanager
    def _temporary(self, what: str) -> Iterator[Folder | None]:
        """A folder that all workers reach, for as long as the fit takes; None where there is none."""
        if self.resources.spool is None:
            yield None
            return
        folder = (Folder(self.resources.spool) / f".nfs-{what}-{uuid.uuid4().hex[:12]}").scratch
        try:
            yield folder
        finally:
            folder.remove()

    def _foreseen(self, way: _Way) -> Source:
        """A view that is as large as the one that there will be."""
        table = self.table
        shape = (table.n_classes, table.n_kept) if table.n_tables == 1 else (*table.totals.shape, table.n_kept)
        nothing = np.broadcast_to(np.int64(0), shape)
        return self._view(
            TableFiles(Folder(""), way.bounds) if way.stored else TablePanels(nothing, way.bounds), way.batch
        )

    def _view(self, counts: Table, batch: int) -> Source:
        view: Any = FeatureView(  # some of its sizes are read-only
            self.source, self.table, counts, normalize=self.normalize, leave_out=True, batch_nbytes=batch
        )
        return view

    # The fit

    def _fit_collected(self, state: State) -> LogisticFit:
        features = features_of(state.arrays["rows"], self.table.n_classes, self.table.n_regions)
        codes, weights = state.totals["codes"].astype(np.int64), state.totals.get("weights")
        offsets = fixed_offsets(self.class_weight, codes, weights) if self.fixed else None
        return solve(self._steps(), partial(derivatives, features, codes, weights=weights, offsets=offsets))

    def _fit_in_passes(self, features: Source, passes: Passes) -> Procedure[LogisticFit]:
        """A pass over the features for each step."""
        steps = self._steps()
        try:
            at = next(steps)
            while True:
                found = yield from passes.sum("fit", self._sums(*at), features)
                at = steps.send(derivatives_of(found.panels.totals))
        except StopIteration as end:
            fit: LogisticFit = end.value
            return fit

    def _steps(self) -> Steps[LogisticFit]:
        return newton_steps(self.class_weight, self.table.n_regions, ridge=self.ridge, intercepts=not self.fixed)

    def _sums(self, theta: Array, step: Array) -> FitSums:
        prior = tuple(self.class_weight.tolist()) if self.fixed else None
        n_classes, n_regions = self.table.n_classes, self.table.n_regions
        return FitSums(n_classes, n_regions, tuple(theta.tolist()), tuple(step.tolist()), prior)


@dataclass(frozen=True)
class _Way:
    """How features are made, and what becomes of them."""

    first: Statistic  # `CollectedRows`, or sums where there are too many
    stored: bool  # whether the table is, in a folder that all workers reach; else it travels with the view
    bounds: tuple[int, ...]  # of its panels
    batch: int  # bytes of documents that panels go by for
