"""Which neighboring panels one task folds: each piece of a spool file is read once for all of them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from nfs_dask.arrays.block import Array
from nfs_dask.engine.panel_bounds import COLUMN_WORK
from nfs_dask.engine.plan import FOLDS_PER_SLOT, Plan


def folded_together(plan: Plan, tiles: Array, bounds: Sequence[int]) -> list[tuple[int, int]]:
    """Ranges of panels, those of most work first: what is begun last is then soon over.

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
