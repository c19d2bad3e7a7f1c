"""Warming a worker: load the libraries, compile the kernels, and look at what it can reach."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import psutil

from nfs_dask.arrays.block import Block, distinct, integers_as_integers
from nfs_dask.arrays.tiles import SortedEntries, Tiling
from nfs_dask.cluster.freed_memory import give_back_freed, give_up_compiler_code
from nfs_dask.files.folder import PROBE, Folder
from nfs_dask.files.spool import SpoolWriter
from nfs_dask.statistics.counts import ClassCounts
from nfs_dask.statistics.statistic import EntrywiseStatistic, Statistic
from nfs_dask.store import states  # noqa: F401  (loads zarr)
from nfs_dask.units import MiB

LEAST_OWN = 100 * MiB  # of a warm worker, whatever Dask takes the sizes of its data for


class _Nowhere:
    """A file that keeps nothing."""

    def write(self, content: Any) -> None:
        pass


@dataclass(frozen=True)
class Warming:
    """What workers are about to do."""

    statistic: Statistic | None = None  # fold the like of this one; None: counts
    rehearsal: Callable[[], None] | None = None  # other work, done once on tiny data

    @property
    def compiles_much(self) -> bool:
        """Whether there is more to compile than for counts."""
        return self.rehearsal is not None or self.statistic is not None


COUNTING = Warming()


def warm_up(places: list[str], token: str, warming: Warming = COUNTING) -> dict[str, Any]:
    """Do once what tasks do, on tiny data; then report the size of this process and which places it reaches."""
    if warming.rehearsal is not None:
        warming.rehearsal()
    for values in (np.uint8, np.float64):
        data = np.array([1, 2, 3], values)
        block = Block(np.array([0, 2, 3]), np.array([0, 2, 1], np.int32), data, np.array([0, 1], np.int32), 4)
        distinct(block)
        integers_as_integers(block)
        statistic = warming.statistic or ClassCounts(2, True, True)
        statistic.update(statistic.zero(), block)
        if isinstance(statistic, EntrywiseStatistic):
            _scatter(statistic, block)
            if warming.statistic is not None:
                _fold_dense(statistic, values)
    if warming.statistic is not None and not warming.statistic.entrywise:
        _fold_dense(warming.statistic, np.float32)
    give_back_freed()
    give_up_compiler_code()
    return {"own": _own_nbytes(), "reaches": [_reaches(Folder(place), token) for place in places]}


def _own_nbytes() -> int:
    """Memory of this process without the data that Dask holds in it, which Dask counts and spills."""
    from distributed import get_worker

    nbytes = int(psutil.Process().memory_info().rss)
    try:
        worker = get_worker()
    except ValueError:  # no task runs this
        return nbytes
    spilled, _ = getattr(worker.data, "spilled_total", (0, 0))
    return max(nbytes - (worker.state.nbytes - spilled), min(nbytes, LEAST_OWN))


def compile_all() -> None:
    """Compile what any pass over rows may need, for images whose cache is filled when they are built."""
    from nfs_dask.statistics.gram import Gram
    from nfs_dask.statistics.medians.sample import RowSample
    from nfs_dask.statistics.medians.signs import ClassSigns
    from nfs_dask.statistics.moments import ClassMoments

    moments = (ClassMoments(2), ClassMoments(2, True))
    medians = (ClassSigns(2), RowSample(2, 2), *_brackets())
    for statistic in (None, ClassCounts(2, True, True), *moments, *medians, Gram(2, np.zeros(4))):
        warm_up([], "", Warming(statistic))


def _brackets() -> tuple[Statistic, ...]:
    from nfs_dask.statistics.medians.cells import ClassCells
    from nfs_dask.statistics.medians.pinned import Pinned

    edges, bracket = np.zeros((3, 2, 4)), np.zeros((3, 4))
    return ClassCells(2, edges), Pinned(2, bracket, bracket, np.zeros((2, 2, 4), np.int64))


def _scatter(statistic: EntrywiseStatistic, block: Block) -> None:
    """Spool a block, and fold a panel of it."""
    tiling = Tiling(4, 2, 2)
    SpoolWriter(_Nowhere(), "", tiling).add(block)  # type: ignore[arg-type]
    statistic.update_tiles({}, SortedEntries.of(block, tiling).tiled(tiling))


def _fold_dense(statistic: Statistic, dtype: Any) -> None:
    """Fold rows that have all columns, as those of measurements do."""
    data = np.linspace(0, 1, 8).astype(dtype)
    indices = np.tile(np.arange(4, dtype=np.int32), 2)
    codes = np.array([0, 1], np.int32)
    statistic.update(statistic.zero(), Block(np.array([0, 4, 8]), indices, data, codes, 4, full=True))


def _reaches(place: Folder, token: str) -> bool:
    """Whether this worker sees the mark that the client left, and can write beside it."""
    try:
        return place.exists(f"{PROBE}{token}") and place.writable()
    except OSError:  # no credentials here, for example
        return False
