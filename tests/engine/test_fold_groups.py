"""Tasks that fold panels: which neighbors one takes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nfs_dask.cli.corpus import GeneratedCorpus
from nfs_dask.cluster.resources import Resources
from nfs_dask.engine.panel_cuts import COLUMN_WORK, folded_together
from nfs_dask.engine.plan import FOLDS_PER_SLOT, make_plan
from nfs_dask.statistics.counts import ClassCounts

PLAN = make_plan(ClassCounts(2), GeneratedCorpus(100, 200), Resources(spool="/spool"), 2)


@given(
    tiles=st.lists(st.integers(0, 10**6), min_size=1, max_size=60),
    shift=st.integers(0, 16),
    held=st.integers(1, 10**7),
    slots=st.integers(1, 8),
    data=st.data(),
)
def test_panels_are_folded_once_and_few_enough_together(
    tiles: list[int], shift: int, held: int, slots: int, data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(tiles) - 1)), max_size=20))) if len(tiles) > 1 else []
    n_features = (len(tiles) << shift) - (1 if shift else 0)
    bounds = (0, *(cut << shift for cut in cuts), n_features)
    plan = replace(PLAN, tile_shift=shift, fold_entries=held, resources=replace(PLAN.resources, workers=slots))
    groups = folded_together(plan, np.array(tiles), bounds)
    assert sorted(panel for group in groups for panel in range(*group)) == list(range(len(bounds) - 1))
    edges = [0, *cuts, len(tiles)]
    entries = [sum(tiles[edges[start] : edges[stop]]) for start, stop in groups]
    work = [n + COLUMN_WORK * (bounds[stop] - bounds[start]) for n, (start, stop) in zip(entries, groups, strict=True)]
    assert work == sorted(work, reverse=True)
    share = sum(work) / (FOLDS_PER_SLOT * slots)
    several = [stop - start > 1 for start, stop in groups]
    assert all(n <= held for n, more in zip(entries, several, strict=True) if more)
    assert all(load <= share * (1 + 1e-9) for load, more in zip(work, several, strict=True) if more)


def test_small_panels_go_together_and_large_ones_alone() -> None:
    tiles = np.array([10**6, 10, 10, 10, 10, 10, 10])
    plan = replace(PLAN, tile_shift=0, fold_entries=30)
    assert folded_together(plan, tiles, range(8)) == [(0, 1), (1, 4), (4, 7)]
