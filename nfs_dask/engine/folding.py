"""Blocks into states: checked, mended, added up, with a ledger of which. What all tasks have in common.

A small pass over data in memory is this and nothing else: there is nothing to plan, to spool, or to resume.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from nfs_dask.arrays.block import (
    Array,
    Block,
    check_labels,
    check_structure,
    distinct,
    integers_as_integers,
)
from nfs_dask.engine.plan import CHEAP_STATE, Plan
from nfs_dask.errors import DataWarning, NfsDaskError, warn
from nfs_dask.sources.source import Source
from nfs_dask.statistics.panels import MemoryPanels, Panels
from nfs_dask.statistics.statistic import Coverage, State, Statistic

SERIAL_ENTRIES = 20_000_000  # fewer are counted before a second thread has paid for itself


@dataclass
class Fold:
    """A state, which blocks it covers, and what was noticed on the way."""

    state: State
    coverage: Coverage = field(default_factory=Coverage)
    mended: int = 0  # blocks that came with duplicates
    tiles: Array | int = 0  # spooled entries of each column tile; 0: none were spooled

    def merged(self, other: Fold, statistic: Statistic) -> Fold:
        return Fold(
            statistic.merge(self.state, other.state),
            self.coverage.union(other.coverage),
            self.mended + other.mended,
            self.tiles + other.tiles,
        )

    def check(self, n_blocks: int) -> None:
        """The ledger must be complete; what was mended on the way is said once."""
        if missing := self.coverage.missing(n_blocks):
            raise NfsDaskError(f"the pass ended without blocks {missing}; this is a bug, please report it")
        if self.mended:
            warn(
                f"{self.mended} of {n_blocks} blocks had rows with a column more than once; such entries were "
                "added up in passing. Ingest the data once to save that work in each pass",
                DataWarning,
            )


@dataclass(frozen=True)
class Reduction:
    """The result of a pass, and how it came about."""

    panels: Panels
    plan: Plan | None  # None: nothing was read, or what was read is small and in memory
    seconds: float
    reused: bool = False  # the statistic had been kept, or finished by an earlier process; nothing was read

    @property
    def state(self) -> State:
        """The whole state, in memory."""
        return self.panels.state()


def prepare(block: Block, statistic: Statistic, trusted: bool) -> tuple[Block, bool]:
    """The block as statistics want it: checked, whole numbers as integers; and whether duplicates were added up."""
    check_structure(block)
    check_labels(block, statistic.n_classes)
    block, mended = integers_as_integers(block, None if trusted else statistic.accepts), False
    if not trusted and statistic.needs_distinct:
        block, mended = distinct(block)
    return (integers_as_integers(block) if mended else block), mended


def fold_blocks(statistic: Statistic, blocks: Iterable[Block], into: Fold, trusted: bool) -> Fold:
    """Add blocks to a fold whose state belongs to the caller."""
    for block in blocks:
        ready, mended = prepare(block, statistic, trusted)
        statistic.update(into.state, ready)
        into.mended += mended
        del block, ready  # so that the next one may take their memory
    return into


def folds_in_place(statistic: Statistic, source: Source) -> bool:
    """Whether a pass is too small to be planned: data in memory, a small state, and a second of work at most."""
    if not source.in_memory or source.about_entries > SERIAL_ENTRIES:
        return False
    return statistic.array_nbytes(source.n_features, source.kind, source.weighted) <= CHEAP_STATE


def fold_in_place(statistic: Statistic, source: Source) -> Reduction:
    """One pass in the calling thread, block by block into a single state."""
    started = time.perf_counter()
    fold = Fold(statistic.zero(), Coverage.of(0, source.n_blocks))
    trusted = source.trusted_for(statistic.accepts)
    fold_blocks(statistic, source.blocks(0, source.n_blocks), fold, trusted).check(source.n_blocks)
    statistic.settle(fold.state)
    return Reduction(MemoryPanels(fold.state, source.n_features), None, time.perf_counter() - started)
