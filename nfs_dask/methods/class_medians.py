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
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.cluster.resources import Resources
from nfs_dask.dataset import Dataset
from nfs_dask.engine.choose import choose_engine
from nfs_dask.engine.engine import Engine
from nfs_dask.engine.plan import Plan
from nfs_dask.methods.cached_medians import ClassMedians
from nfs_dask.methods.memory_budget import MemoryBudget
from nfs_dask.methods.procedure import Measure, Pass, Passes, Procedure, Supplier, run
from nfs_dask.solvers.medians.column_medians import ColumnMedians, Medians, assemble, from_pinned, from_sample
from nfs_dask.solvers.medians.edges import Brackets, find_brackets, refined_edges, sample_edges
from nfs_dask.sources.folds import Sorted
from nfs_dask.sources.source import Source
from nfs_dask.sources.views import some_columns
from nfs_dask.statistics.medians.cells import ClassCells
from nfs_dask.statistics.medians.pinned import Pinned
from nfs_dask.statistics.medians.sample import RowSample, is_complete
from nfs_dask.statistics.medians.signs import ClassSigns, unsettled_columns
from nfs_dask.statistics.statistic import Statistic

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
    return run(median_procedure(dataset), dataset, engine)


def median_procedure(dataset: Dataset) -> Procedure[MedianResult]:
    """The passes that `class_medians` takes, or none where the medians are kept."""
    started = time.perf_counter()
    what = ClassMedians(len(dataset.known_classes()))
    kept = dataset.kept
    if kept is not None and (found := what.find(kept)) is not None:
        logger.info("reusing the medians kept in %s", kept.folder.location)
        return MedianResult(found, (), time.perf_counter() - started)
    passes = Passes(dataset)
    medians = yield from _all_columns(passes, what.n_classes)
    if kept is not None:
        what.keep(kept, medians)
    return MedianResult(medians, tuple(passes.done), time.perf_counter() - started)


def median_plans(dataset: Dataset, engine: Engine | None = None) -> list[Plan]:
    """The passes that can be foreseen: all of dense data, but those that look closer at single columns.

    Of sparse data, the signs say which columns the other passes are about.
    """
    n_classes, source = len(dataset.known_classes()), dataset.source
    with choose_engine(engine, source).session() as session:
        planning: Any = session
        supplier = Supplier(dataset, replace(planning, run=None))  # no run is begun by planning one
        if _is_sparse(source):
            return [supplier.plan(ClassSigns(n_classes), source)]
        resources = supplier.answer(_measure(n_classes, source))
        columns = np.arange(source.n_features, dtype=np.int64)
        groups = _groups(source, columns, n_classes, resources)
        return [supplier.plan(*one) for _, view, budget in groups for one in _foreseen(n_classes, view, budget)]


def _foreseen(n_classes: int, source: Source, budget: MemoryBudget) -> Iterator[tuple[Statistic, Source]]:
    """Statistics like those of one group of columns, and what they are about."""
    n_columns, (rows, pilot) = source.n_features, budget.sample_of(source)
    yield RowSample(n_classes, rows), pilot
    if rows < source.n_rows or source.n_rows < 0:
        yield ClassCells(n_classes, np.zeros((n_classes + 1, budget.sample_edges(source), n_columns))), source
        bracket, capacities = np.zeros((n_classes + 1, n_columns)), np.zeros((2, n_classes, n_columns), np.int64)
        capacities[0, 0] = budget.values(n_columns)
        yield Pinned(n_classes, bracket, bracket, capacities), source


def _all_columns(passes: Passes, n_classes: int) -> Procedure[Medians]:
    """Leave out the columns that are mostly zero, and take as many of the others at a time as memory allows."""
    source, signs = passes.dataset.source, None
    columns = np.arange(source.n_features, dtype=np.int64)
    if _is_sparse(source):
        panels = (yield from passes.sum("signs", ClassSigns(n_classes), source)).panels
        columns, signs = unsettled_columns(panels), panels.totals
        settled = source.n_features - len(columns)
        logger.info("%d of %d columns are mostly zero in every class", settled, source.n_features)
    parts = []
    if len(columns):
        resources = yield _measure(n_classes, source)
        for group, view, budget in _groups(source, columns, n_classes, resources):
            parts.append((group, (yield from _one_group(passes, n_classes, view, budget, signs))))
    return assemble(source.n_features, parts, signs)


def _is_sparse(source: Source) -> bool:
    """Whether most values are zeros; where entries are not counted, one block is looked at.

    The rows of some folds are taken to be as those of all folds: it does not matter for what is found.
    """
    source = source.underlying if isinstance(source, Sorted) else source
    entries, cells = source.nnz, source.n_rows * source.n_features
    if entries is None:
        first = next(source.blocks(0, 1))
        entries, cells = int(np.count_nonzero(first.data)), first.n_rows * first.n_features
    return SPARSE * entries < cells


def _measure(n_classes: int, source: Source) -> Measure:
    return Measure(RowSample(n_classes, 1), source, lasting=True)


def _groups(
    source: Source, columns: Array, n_classes: int, resources: Resources
) -> Iterator[tuple[Array, Source, MemoryBudget]]:
    """Columns that are worked on at a time, the view that has them alone, and what its states may take."""
    width = MemoryBudget.of(n_classes, some_columns(source, columns), resources).columns
    for group in np.array_split(columns, -(-len(columns) // width)):
        view = some_columns(source, group)
        yield group, view, MemoryBudget.of(n_classes, view, resources)


def _one_group(
    passes: Passes, n_classes: int, source: Source, budget: MemoryBudget, signs: Mapping[str, Array] | None
) -> Procedure[ColumnMedians]:
    """The medians of a source's columns, all of them at once; ``signs`` are the totals of a pass that was before."""
    rows, pilot = budget.sample_of(source, None if signs is None else int(signs["rows"].max()))
    sample = (yield from passes.sum("sample", RowSample(n_classes, rows), pilot)).state
    if pilot is source and is_complete(sample.totals):
        return from_sample(sample.arrays, sample.totals, signs is not None)
    edges = sample_edges(sample.arrays, sample.totals, budget.sample_edges(source))
    del sample
    brackets = yield from _brackets(passes, n_classes, source, edges)
    most = budget.values(source.n_features)
    while (open_ := brackets.open(most)).any():
        some = np.flatnonzero(open_)
        edges = refined_edges(brackets.take(some), budget.edges(len(some)))
        found = yield from _brackets(passes, n_classes, some_columns(source, some), edges)
        brackets = brackets.put(some, found)
    statistic = Pinned(n_classes, brackets.lows, brackets.highs, brackets.capacities, signs is not None)
    state = (yield from passes.sum("pinned", statistic, source)).state
    return from_pinned(state.arrays, state.totals, brackets)


def _brackets(passes: Passes, n_classes: int, source: Source, edges: Array) -> Procedure[Brackets]:
    """Which of the cells between edges hold the medians: one pass."""
    state = (yield from passes.sum("cells", ClassCells(n_classes, edges), source)).state
    return find_brackets(state.arrays, state.totals, edges)
