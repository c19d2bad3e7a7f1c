"""Cuts of the columns into panels, and of panels into tasks, so that workers end together."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.engine.plan import FOLDS_PER_SLOT, Plan

# What a column of a panel costs, and a panel of whatever width, in entries: estimates from the times of tasks on the
# case of benchmarks/counting.py, whose panels end together by them. Nothing but the balance depends on these.
COLUMN_WORK = 2.0
PANEL_WORK = 2 << 20


def even_bounds(plan: Plan, tiles: Array) -> tuple[int, ...]:
    """First column of each panel, and the end: panels of about the same work, none wider than planned.

    ``tiles`` are the entries of each tile of columns. Words are often sorted by how frequent they are, and panels of
    the same width would then leave most of the work to the first of them. One tile may have more than its share all the
    same; then some more panels than planned are lighter, and those who have none of it are done at the same time.
    """
    work = tiles + COLUMN_WORK * (1 << plan.tile_shift)
    widest = max(1, plan.panel_width >> plan.tile_shift)
    slots = plan.resources.slots
    more = [0, *(1 << i for i in range((slots - 1).bit_length())), slots]
    tried = [_cuts(work, plan.panels + extra, widest) for extra in more]
    cuts = min(tried, key=lambda cuts: (_busiest(np.add.reduceat(work, cuts) + PANEL_WORK, slots), len(cuts)))
    return (*(cut << plan.tile_shift for cut in cuts), plan.n_features)


def folded_together(plan: Plan, tiles: Array, bounds: Sequence[int]) -> list[tuple[int, int]]:
    """Return ranges of neighboring panels, one for each task, those of most work first: the last ones are soon over.

    Of several panels a task holds all entries, and it has not much to do beside what is left to others.
    ``tiles`` are the entries of each tile of columns.
    """
    edges = np.array(bounds)
    entries = np.add.reduceat(tiles, edges[:-1] >> plan.tile_shift)
    work = entries + COLUMN_WORK * np.diff(edges)
    most = work.sum() / (FOLDS_PER_SLOT * plan.resources.slots)
    starts, held, load = [0], 0, 0.0
    for panel, (more, longer) in enumerate(zip(entries.tolist(), work.tolist(), strict=True)):
        if panel > starts[-1] and (held + more > plan.fold_entries or load + longer > most):
            starts.append(panel)
            held, load = 0, 0.0
        held, load = held + more, load + longer
    ranges = list(itertools.pairwise([*starts, len(entries)]))
    loads = np.add.reduceat(work, starts)
    return [ranges[number] for number in np.argsort(-loads, kind="stable").tolist()]


def _cuts(work: Array, panels: int, widest: int) -> list[int]:
    """First tile of each of about so many panels with equal shares of the work."""
    share = work.sum() / panels
    cuts, load = [0], 0.0
    for tile, more in enumerate(work.tolist()):
        if load and (load + more / 2 > share or tile - cuts[-1] == widest):
            cuts.append(tile)
            load = 0.0
        load += more
    return cuts


def _busiest(loads: Array, slots: int) -> float:
    """Work of the slot that has most, where each takes the heaviest panel that is left when it is free."""
    free = [0.0] * min(slots, len(loads))
    for load in np.sort(loads)[::-1].tolist():
        heapq.heapreplace(free, free[0] + load)
    return max(free)
