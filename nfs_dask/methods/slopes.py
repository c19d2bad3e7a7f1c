"""From a table of words to slopes: documents become features, and a logistic model is fitted to these.

What becomes of the features depends on how many there are:

collected   so few that one machine holds them: one pass brings them there, and the fit reads nothing more
stored      more: they are written into files of their own, which each step of the fit reads
seen        where there is no folder that all workers reach: each step makes them anew

References: HYB (Raina et al. 2003) (9), (11).
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.cluster.resources import Resources
from nfs_dask.engine.plan import Plan, make_plan
from nfs_dask.files.folder import Folder
from nfs_dask.methods.passes import Passes
from nfs_dask.methods.word_tables import ForeseenPanels, store_table
from nfs_dask.solvers.logistic.likelihood import Derivatives, derivatives
from nfs_dask.solvers.logistic.newton import LogisticFit, fit_logistic
from nfs_dask.sources.region_features import (
    BATCH_NBYTES,
    PANEL_NBYTES,
    FeatureView,
    TablePanels,
    cut,
    n_columns,
    table_nbytes,
)
from nfs_dask.sources.row_files import write_row_files
from nfs_dask.sources.source import Source
from nfs_dask.statistics.collected_rows import CollectedRows, row_nbytes
from nfs_dask.statistics.leave_one_out import RegionTable
from nfs_dask.statistics.logistic_sums import FitSums, derivatives_of, features_of, fixed_offsets
from nfs_dask.statistics.panels import Panels
from nfs_dask.statistics.statistic import State, Statistic
from nfs_dask.units import MiB

HELD = 64 * MiB  # of features that are collected
SHIPPED = 1 * MiB  # tables up to here travel with tasks
# Bytes of panels of the table, and of documents that they go by for; the first that fit a worker.
CUTS = ((PANEL_NBYTES, BATCH_NBYTES), (PANEL_NBYTES, BATCH_NBYTES // 4), (PANEL_NBYTES // 4, BATCH_NBYTES // 16))


@dataclass(frozen=True)
class Slopes:
    """What to fit, and to which documents."""

    passes: Passes
    resources: Resources  # of the engine
    table: RegionTable
    normalize: bool
    ridge: float
    class_weight: Array  # (C,)
    fixed: bool  # whether the prior is

    def fit(self, counts: Array, rows: int) -> LogisticFit:
        """The fit to all ``rows`` documents, by a table of these counts."""
        way = self._way(rows)
        with self._features(counts, way) as view:
            if isinstance(way.first, CollectedRows):
                return self._fit_collected(self.passes.reduce("features", way.first, view).state)
            with self._stored(view) as features:
                return self._solve(partial(self._sum, features))

    def plan(self, rows: int) -> Plan:
        """The pass over the features; where they are not collected, the first of those, without storing any."""
        way = self._way(rows)
        return self.passes.plan(way.first, self._foreseen(way))

    def _way(self, rows: int) -> _Way:
        """The first that fits the workers: features are collected if that can be, and tables come in large pieces."""
        zero = np.zeros(self.table.n_classes - 1 + self.table.n_regions)
        firsts: list[Statistic] = [self._sums(zero, zero)]
        if rows * row_nbytes(n_columns(self.table), self.passes.dataset.source.weighted) <= HELD:
            firsts.insert(0, CollectedRows(self.table.n_classes, rows))
        ways = [_Way(first, *placing) for first in firsts for placing in self._placings()]
        for way in ways:
            if make_plan(way.first, self._foreseen(way), self.resources).fits:
                return way
        return ways[-1]

    def _placings(self) -> list[tuple[bool, tuple[int, ...], int]]:
        """Where the table may lie: whether it is stored, the bounds of its panels, and the batches they go by for."""
        n_words = self.table.n_kept
        ships = self.resources.remote and not self.passes.dataset.source.in_memory
        stored = ships and self.resources.spool is not None and table_nbytes(self.table, n_words) > SHIPPED
        return [(stored, cut(n_words, table_nbytes(self.table, 1), most), batch) for most, batch in CUTS]

    # Features

    @contextmanager
    def _features(self, counts: Array, way: _Way) -> Iterator[Source]:
        """The view of the documents; its table lies where workers reach it, or travels with the view."""
        if not way.stored:
            yield self._view(TablePanels(counts, way.bounds), way.batch)
            return
        assert self.resources.spool is not None
        folder = Folder(self.resources.spool) / f".nfs-table-{uuid.uuid4().hex[:12]}"
        try:
            yield self._view(store_table(folder, counts, way.bounds), way.batch)
        finally:
            folder.remove()

    def _foreseen(self, way: _Way) -> Source:
        """A view that is as large as the one that there will be."""
        table = self.table
        shape = (table.n_classes, table.n_kept) if table.n_tables == 1 else (*table.totals.shape, table.n_kept)
        nothing = np.broadcast_to(np.int64(0), shape)
        return self._view(ForeseenPanels(way.bounds) if way.stored else TablePanels(nothing, way.bounds), way.batch)

    def _view(self, counts: Panels, batch: int) -> Source:
        source = self.passes.dataset.source
        view: Any = FeatureView(  # some of its sizes are read-only
            source, self.table, counts, normalize=self.normalize, leave_out=True, batch_nbytes=batch
        )
        return view

    # A few: in memory

    def _fit_collected(self, state: State) -> LogisticFit:
        features = features_of(state.arrays["rows"], self.table.n_classes, self.table.n_regions)
        codes, weights = state.totals["codes"].astype(np.int64), state.totals.get("weights")
        offsets = fixed_offsets(self.class_weight, codes, weights) if self.fixed else None
        return self._solve(partial(derivatives, features, codes, weights=weights, offsets=offsets))

    # Many: in files

    @contextmanager
    def _stored(self, view: Source) -> Iterator[Source]:
        """The features in files, in the run folder or a temporary one; where there is neither, as they are."""
        run = self.passes.engine.run
        if run is not None:
            yield self._write(view, Folder.of(run) / f"features-{str(view.fingerprint)[:12]}")
        elif self.resources.spool is not None:
            folder = Folder(self.resources.spool) / f".nfs-features-{uuid.uuid4().hex[:12]}"
            try:
                yield self._write(view, folder)
            finally:
                folder.remove()
        else:
            yield view

    def _write(self, view: Source, folder: Folder) -> Source:
        started, before = time.perf_counter(), folder.names()
        with self.passes.engine.executor() as executor:
            files: Any = write_row_files(view, folder, executor)
        share = 1 - len(before) / len(folder.names())  # that an earlier process of the run had not written
        self.passes.record("features", None, time.perf_counter() - started, share)
        return files

    # The fit

    def _solve(self, evaluate: Callable[[Array, Array], Derivatives]) -> LogisticFit:
        return fit_logistic(
            evaluate, self.class_weight, self.table.n_regions, ridge=self.ridge, intercepts=not self.fixed
        )

    def _sum(self, features: Source, theta: Array, step: Array) -> Derivatives:
        return derivatives_of(self.passes.reduce("fit", self._sums(theta, step), features).panels.totals)

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
