"""What one task does. Plain functions of a job and a number, so that a loop can run them, or a cluster.

Any of them may run twice, on any worker, at any time: files appear whole under fixed names with the same content, and
states are made by the task that returns them.
"""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array, Block, empty_block, without_zeros
from nfs_dask.arrays.tiles import TiledEntries, Tiling
from nfs_dask.engine.folding import Fold, fold_blocks, prepare
from nfs_dask.engine.plan import Plan
from nfs_dask.engine.task_tally import count
from nfs_dask.errors import ClusterError, NfsDaskError
from nfs_dask.files.ahead import IN_FLIGHT, ahead
from nfs_dask.files.arrayfile import ArrayFile, intact, write_arrays
from nfs_dask.files.folder import Folder
from nfs_dask.files.spool import TILES, OpenedFiles, SpooledPiece, SpoolFile, SpoolWriter, read_pieces
from nfs_dask.sources.source import Source
from nfs_dask.statistics.statistic import Coverage, EntrywiseStatistic, State, Statistic
from nfs_dask.store import states

Tick = Callable[[int], None]  # told how many blocks were finished since the last call

CHECKPOINT_SECONDS = 30.0

_opened = OpenedFiles()


@dataclass(frozen=True)
class Job:
    """All that a task of a pass needs to know. Shipped to each worker once."""

    statistic: Statistic
    source: Source | None  # None: the blocks come as inputs of the tasks
    plan: Plan
    trusted: bool  # values were checked when the data were written
    spool: Folder | None = None  # where batches go
    checkpoints: Folder | None = None  # where unfinished dense runs go
    out: Folder | None = None  # where finished panels go
    bounds: tuple[int, ...] = ()  # first column of each panel, and the end; known once all entries are spooled
    token: str = field(default_factory=lambda: uuid.uuid4().hex)  # no other pass has it, also of the same run folder

    @property
    def tiling(self) -> Tiling:
        return Tiling(self.plan.n_features, self.statistic.n_classes, self.plan.tile_shift)

    def batches(self, run: int) -> list[tuple[int, int]]:
        """The block ranges of a run between checkpoints."""
        start, stop = self.plan.runs[run]
        return [(a, min(a + self.plan.batch, stop)) for a in range(start, stop, self.plan.batch)]


# Dense: whole states


def _blocks(job: Job, start: int, stop: int, shipped: Block | None) -> Iterable[Block]:
    """The blocks of a range: the one that came with the task, or those the source reads here."""
    if shipped is None:
        assert job.source is not None
        blocks: Iterable[Block] = job.source.blocks(start, stop)
    else:
        blocks = [shipped]
    for block in blocks:
        count(blocks=1, rows=block.n_rows, entries=block.nnz, read_bytes=block.nbytes)
        yield block
        del block  # so that the next one may take its memory


def fold_run(job: Job, run: int, tick: Tick, shipped: Block | None = None) -> Fold:
    """Fold the blocks of a run, from its last checkpoint on."""
    fold = _restore(job, run) or Fold(job.statistic.zero())
    count(kept_blocks=fold.coverage.count)
    tick(fold.coverage.count)
    saved = time.monotonic()
    for start, stop in job.batches(run):
        if fold.coverage.ranges and stop <= fold.coverage.ranges[-1][1]:
            continue
        fold_blocks(job.statistic, _blocks(job, start, stop, shipped), fold, job.trusted)
        fold.coverage = fold.coverage.union(Coverage.of(start, stop))
        try:
            tick(stop - start)
        except ClusterError:  # the pass was cancelled, and whoever resumes it goes on from here
            _save(job, run, fold)
            raise
        if time.monotonic() - saved > CHECKPOINT_SECONDS:
            _save(job, run, fold)
            saved = time.monotonic()
    job.statistic.settle(fold.state)
    _save(job, run, fold)
    return fold


def merge_folds(job: Job, folds: Sequence[Fold]) -> Fold:
    """Merge neighbours, left to right, into a state of its own."""
    return reduce(lambda left, right: left.merged(right, job.statistic), folds)


def _save(job: Job, run: int, fold: Fold) -> None:
    if job.checkpoints is None:
        return
    arrays = {f"{part}/{name}": a for part in ("arrays", "totals") for name, a in getattr(fold.state, part).items()}
    facts = {"coverage": fold.coverage.ranges, "mended": fold.mended}
    write_arrays(job.checkpoints, checkpoint_name(run), arrays, facts)
    count(checkpoints=1)


def _restore(job: Job, run: int) -> Fold | None:
    """What an earlier try folded of a run, if that is there and whole."""
    if job.checkpoints is None:
        return None
    file = intact(job.checkpoints, checkpoint_name(run))
    return None if file is None else _load(file, job, run)


def _load(file: ArrayFile, job: Job, run: int) -> Fold:
    state, start, stop = State(), *job.plan.runs[run]
    parts = {"arrays": state.arrays, "totals": state.totals}
    try:
        for key in file.keys:
            part, _, name = key.partition("/")
            parts[part][name] = file.array(key).copy()  # to be added to
        coverage = Coverage(tuple((a, b) for a, b in file.facts["coverage"]))
        fold = Fold(state, coverage, int(file.facts["mended"]))
    except (LookupError, TypeError, ValueError) as error:
        raise file.damaged() from error
    inside = all(start <= a < b <= stop for a, b in coverage.ranges)
    if not inside or any(a.shape[-1:] != (job.plan.n_features,) for a in state.arrays.values()):
        raise file.damaged()
    return fold


def checkpoint_name(run: int) -> str:
    return f"run-{run:05d}.fold"


# Scatter: entries to spool files, then panels


def batch_name(start: int, stop: int) -> str:
    return f"blocks-{start:08d}-{stop:08d}.spool"


def scatter_run(job: Job, run: int, tick: Tick, shipped: Block | None = None) -> Fold:
    """Spool the batches of a run that are not there yet; their totals, without arrays."""
    parts = []
    for start, stop in job.batches(run):
        parts.append(scatter_batch(job, _blocks(job, start, stop, shipped), start, stop))
        tick(stop - start)
    return merge_folds(job, parts)


def scatter_batch(job: Job, blocks: Iterable[Block], start: int, stop: int) -> Fold:
    """Spool the entries of some blocks into one file, unless an earlier try finished it."""
    assert job.spool is not None and isinstance(job.statistic, EntrywiseStatistic)
    name = batch_name(start, stop)
    finished = intact(job.spool, name)
    if finished is not None and TILES in finished:  # it is not in those of earlier versions
        count(kept_blocks=stop - start)
        return _fold_of(finished)
    fold = Fold(job.statistic.zero(), Coverage.of(start, stop))
    with job.spool.scratch.create(name) as file:
        writer = SpoolWriter(file, name, job.tiling)
        for block in blocks:
            ready, mended = prepare(block, job.statistic, job.trusted)
            job.statistic.update_totals(fold.state.totals, ready)
            writer.add(without_zeros(ready))
            fold.mended += mended
            del block, ready  # so that the next one may take their memory
        fold.tiles = writer.tiles
        writer.close(_facts_of(fold))
        count(spooled_bytes=file.tell())
    return fold


def _facts_of(fold: Fold) -> dict[str, Any]:
    totals = {name: {"dtype": a.dtype.str, "values": a.tolist()} for name, a in fold.state.totals.items()}
    return {"totals": totals, "coverage": fold.coverage.ranges, "mended": fold.mended}


def _fold_of(file: ArrayFile) -> Fold:
    facts = file.facts
    totals = {name: np.array(t["values"], np.dtype(t["dtype"])) for name, t in facts["totals"].items()}
    coverage = Coverage(tuple((a, b) for a, b in facts["coverage"]))
    return Fold(State({}, totals), coverage, facts["mended"], file.array(TILES).copy())


def fold_panels(job: Job, start: int, stop: int, tick: Tick) -> list[states.Checksums]:
    """Fold neighboring panels from all spool files and store them; the checksums of the arrays of each.

    Entries of several panels are read and held together; of one panel there may be more than a task holds at a time.
    """
    assert job.out is not None and isinstance(job.statistic, EntrywiseStatistic)
    origin = job.bounds[start]
    held: Iterable[TiledEntries] = _held(job, origin, job.bounds[stop])
    if stop - start > 1:
        held = list(held)
    checksums = []
    for panel in range(start, stop):
        first, last = job.bounds[panel : panel + 2]
        arrays: dict[str, Array] = {}
        for entries in held:
            job.statistic.update_tiles(arrays, entries.of_columns(first - origin, last - origin))
            del entries  # its memory is free before the next is read
        if not arrays:
            job.statistic.update_arrays(arrays, empty_block(last - first))
        if panel == stop - 1:
            held = ()
        checksums.append(states.write_panel(job.out, panel, dict(sorted(arrays.items()))))
        count(panels=1)
        tick(1)
    return checksums


def _held(job: Job, first: int, last: int) -> Iterator[TiledEntries]:
    """The entries of these columns from all spool files, as many at a time as a task may hold.

    Of few columns fewer: to go through them again costs less, and what is read stays in cache.
    """
    assert job.spool is not None
    in_flight = IN_FLIGHT if job.spool.remote else 1
    for group in _groups(_spooled(job, first, last, in_flight), min(job.plan.fold_entries, 2 * (last - first))):
        entries = read_pieces(group, job.tiling, first, last, in_flight)
        arrays = (entries.columns, entries.values, entries.weights)
        count(unspooled_bytes=sum(array.nbytes for array in arrays if array is not None))
        yield entries
        del entries, arrays  # so that the next ones may take their memory


def _groups(pieces: Iterable[SpooledPiece], most: int) -> Iterator[list[SpooledPiece]]:
    """Neighbors that may lie together, with no more entries than that; read at once, and then folded."""
    group: list[SpooledPiece] = []
    held = 0
    for piece in pieces:
        if group and (piece.family != group[0].family or len(piece) + held > most):
            yield group
            group, held = [], 0
        group.append(piece)
        held += len(piece)
    if group:
        yield group


def _spooled(job: Job, first: int, last: int, in_flight: int) -> Iterator[SpooledPiece]:
    """Where all spool files have the entries of these columns, in the order of the blocks."""
    spool, covered = job.spool, Coverage()
    assert spool is not None

    def look(batch: tuple[int, int]) -> tuple[SpoolFile, list[SpooledPiece]]:
        file = _opened.open(spool, batch_name(*batch), job.token)
        return file, list(file.pieces(job.tiling, first, last))

    batches = itertools.chain.from_iterable(map(job.batches, range(len(job.plan.runs))))
    for file, pieces in ahead(look, batches, in_flight):
        covered = covered.union(Coverage(tuple((a, b) for a, b in file.facts["coverage"])))
        yield from pieces
    if missing := covered.missing(job.plan.n_blocks):
        raise NfsDaskError(f"blocks {missing} are in no spool file; the pass is not complete")
