"""Exact medians of classes, and of all classes together, in a few passes over the data.

Sparse data begin with the signs of their values: where less than half of every class is above zero, and less than half
below, all medians are zero. What columns are left, and all of dense data, go on like this:

sample   rows of some blocks, from which edges around each median are drawn
cells    counts between the edges, which prove where each median lies; again for those it is not close enough to
pinned   the few values in between, and the sums around them, which give medians and dispersions to the last bit

Each pass is an ordinary reduction, so it is planned, checkpointed and resumed like any other.

References: SC (Calafiore and Fracastoro 2019) Proposition 3, step 1, out of core: docs/mathematics.md 5.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.cluster.resources import Resources
from nfs_dask.dataset import Dataset
from nfs_dask.engine.choose import choose_engine
from nfs_dask.engine.engine import Engine
from nfs_dask.engine.plan import Plan
from nfs_dask.methods.cached_medians import ClassMedians
from nfs_dask.methods.memory_budget import Room
from nfs_dask.methods.passes import Pass, Passes
from nfs_dask.solvers.medians.column_medians import ColumnMedians, Medians, assemble, from_pinned, from_sample
from nfs_dask.solvers.medians.edges import Brackets, find_brackets, refined_edges, sample_edges
from nfs_dask.sources.source import Source
from nfs_dask.sources.views import some_columns
from nfs_dask.statistics.medians.cells import ClassCells
from nfs_dask.statistics.medians.pinned import Pinned
from nfs_dask.statistics.medians.sample import RowSample, is_complete
from nfs_dask.statistics.medians.signs import ClassSigns, unsettled_columns
from nfs_dask.statistics.statistic import State, Statistic

logger = logging.getLogger("nfs_dask")

SPARSE = 4  # data with fewer than one entry for so many cells are sparse


@dataclass(frozen=True)
class MedianResult:
    """Medians, and how they came about."""

    medians: Medians
    passes: tuple[Pass, ...]
    seconds: float

    @property
    def reused(self) -> bool:
        """Whether nothing was read: they had been kept, or an earlier process of the run had finished its passes."""
        return not self.reads

    @property
    def reads(self) -> float:
        """How often the data were read: the shares of all passes together."""
        return sum(one.share for one in self.passes)

    def to_json(self) -> dict[str, Any]:
        """Where the medians come from, as JSON values: the passes in turn, and the seconds of each by name."""
        return {
            "passes": [one.to_json() for one in self.passes],
            "reads": self.reads,
            "reused": self.reused,
            "seconds": {one.name: one.seconds for one in self.passes},
        }


def class_medians(dataset: Dataset, engine: Engine | None = None) -> MedianResult:
    """The medians of each class and of all together, with the dispersions around them, exactly.

    Parameters
    ----------
    dataset
        With labels.
    engine
        Where passes run; with a run folder, what they finished outlives this process.

    Returns
    -------
    MedianResult
        The same to the last bit for every engine and partition. Kept beside the data, if the dataset reuses.
    """
    started = time.perf_counter()
    what = ClassMedians(len(dataset.known_classes(1)))
    kept = dataset.statistics if dataset.reuse else None
    if kept is not None and (found := what.find(kept)) is not None:
        logger.info("reusing the medians kept in %s", kept.folder.location)
        return MedianResult(found, (), time.perf_counter() - started)
    with choose_engine(engine, dataset.source).session() as session:
        search = _MedianSearch(Passes(dataset, session), what.n_classes)
        medians = _all_columns(search)
    if kept is not None:
        what.keep(kept, medians)
    return MedianResult(medians, tuple(search.passes.done), time.perf_counter() - started)


def median_plans(dataset: Dataset, engine: Engine | None = None) -> list[Plan]:
    """The passes that can be foreseen: all of dense data, but those that look closer at single columns.

    Of sparse data, the signs say which columns the other passes are about.
    """
    n_classes, source = len(dataset.known_classes(1)), dataset.source
    with choose_engine(engine, source).session() as session:
        planning: Any = session
        search = _MedianSearch(
            Passes(dataset, replace(planning, run=None)), n_classes
        )  # no run is begun by planning one
        if _is_sparse(source):
            return [search.passes.plan(ClassSigns(n_classes), source)]
        groups = _groups(search, source, np.arange(source.n_features, dtype=np.int64))
        return [plan for group in groups for plan in _plans_of_group(search, some_columns(source, group))]


def _plans_of_group(search: _MedianSearch, source: Source) -> Iterator[Plan]:
    n_classes, n_columns, room = search.n_classes, source.n_features, search.room(source)
    rows, pilot = room.sample_of(source)
    plan = search.passes.plan
    yield plan(RowSample(n_classes, rows), pilot)
    if rows < source.n_rows or source.n_rows < 0:
        edges = np.zeros((n_classes + 1, room.sample_edges(source), n_columns))
        yield plan(ClassCells(n_classes, edges), source)
        bracket, capacities = np.zeros((n_classes + 1, n_columns)), np.zeros((2, n_classes, n_columns), np.int64)
        capacities[0, 0] = room.values(n_columns)
        yield plan(Pinned(n_classes, bracket, bracket, capacities), source)


@dataclass(frozen=True)
class _MedianSearch:
    """The passes of one search, and what they may take."""

    passes: Passes
    n_classes: int

    @property
    def source(self) -> Source:
        return self.passes.dataset.source

    def state(self, name: str, statistic: Statistic, source: Source) -> State:
        """The result of one pass over a view of the data, in memory."""
        return self.passes.reduce(name, statistic, source).state

    def room(self, source: Source) -> Room:
        """What the states of passes over a source or some of its columns may take."""
        return Room.of(self.n_classes, source, self._resources)

    @cached_property
    def _resources(self) -> Resources:
        return self.passes.resources(RowSample(self.n_classes, 1), self.source)


def _all_columns(search: _MedianSearch) -> Medians:
    """Leave out the columns that are mostly zero, and take as many of the others at a time as there is room for."""
    source, signs = search.source, None
    if _is_sparse(source):
        panels = search.passes.reduce("signs", ClassSigns(search.n_classes), source).panels
        columns, signs = unsettled_columns(panels), panels.totals
        settled = source.n_features - len(columns)
        logger.info("%d of %d columns are mostly zero in every class", settled, source.n_features)
    else:
        columns = np.arange(source.n_features, dtype=np.int64)
    parts = []
    for group in _groups(search, source, columns):
        parts.append((group, _one_group(search, some_columns(source, group), signs)))
    return assemble(source.n_features, parts, signs)


def _is_sparse(source: Source) -> bool:
    """Whether most values are zeros that nobody stored; where that is not known, one block is looked at."""
    entries, cells = source.nnz, source.n_rows * source.n_features
    if entries is None:
        first = next(source.blocks(0, 1))
        entries, cells = first.nnz, first.n_rows * first.n_features
    return SPARSE * entries < cells


def _groups(search: _MedianSearch, source: Source, columns: Array) -> Iterator[Array]:
    if len(columns):
        width = search.room(some_columns(source, columns)).columns
        yield from np.array_split(columns, -(-len(columns) // width))


def _one_group(search: _MedianSearch, source: Source, signs: Mapping[str, Array] | None) -> ColumnMedians:
    """The medians of a source's columns, all of them at once; ``signs`` are the totals of a pass that was before."""
    n_classes, room = search.n_classes, search.room(source)
    rows, pilot = room.sample_of(source, None if signs is None else int(signs["rows"].max()))
    sample = search.state("sample", RowSample(n_classes, rows), pilot)
    if pilot is source and is_complete(sample.totals):
        return from_sample(sample.arrays, sample.totals)
    edges = sample_edges(sample.arrays, sample.totals, room.sample_edges(source))
    del sample
    brackets = _brackets(search, source, edges)
    most = room.values(source.n_features)
    while (open_ := brackets.open(most)).any():
        some = np.flatnonzero(open_)
        edges = refined_edges(brackets.take(some), room.edges(len(some)))
        brackets = brackets.put(some, _brackets(search, some_columns(source, some), edges))
    statistic = Pinned(n_classes, brackets.lows, brackets.highs, brackets.capacities, signs is not None)
    state = search.state("pinned", statistic, source)
    return from_pinned(state.arrays, state.totals, brackets)


def _brackets(search: _MedianSearch, source: Source, edges: Array) -> Brackets:
    """Which of the cells between edges hold the medians: one pass."""
    state = search.state("cells", ClassCells(search.n_classes, edges), source)
    return find_brackets(state.arrays, state.totals, edges)
