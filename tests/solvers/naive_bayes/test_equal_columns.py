"""Distinct columns of narrow panels, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfs_dask.solvers.naive_bayes.equal_columns import Cells, Numbering


@given(
    n_classes=st.integers(1, 3),
    widths=st.lists(st.tuples(st.integers(0, 60), st.sampled_from(["u1", "u2", "i8"])), min_size=1, max_size=6),
    most=st.sampled_from([2, 256]),
    seed=st.integers(0, 99),
)
def test_panels_of_any_types_have_the_cells_of_all_columns(
    n_classes: int, widths: list[tuple[int, str]], most: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    panels = [rng.integers(0, most, (n_classes, width)).astype(dtype) for width, dtype in widths]
    numbering = Numbering(n_classes)
    for panel in panels:
        numbering.add(panel)
    whole = np.concatenate([panel.astype(np.int64) for panel in panels], axis=1)
    totals, firsts, sizes = np.unique(whole, axis=1, return_index=True, return_counts=True)
    order = np.argsort(firsts)
    cells = numbering.cells
    np.testing.assert_array_equal(cells.totals, totals[:, order])
    np.testing.assert_array_equal(cells.firsts, firsts[order])
    np.testing.assert_array_equal(cells.sizes, sizes[order])
    known = Numbering.of(cells)
    for panel in panels:
        np.testing.assert_array_equal(cells.totals[:, known.places(panel)], panel)
    assert len(known) == len(order)


@pytest.mark.parametrize("n_classes", [1, 2])
def test_all_pairs_of_bytes_are_told_apart(n_classes: int) -> None:
    columns = np.stack([np.repeat(np.arange(256), 256), np.tile(np.arange(256), 256)])[:n_classes].astype(np.uint8)
    numbering = Numbering(n_classes)
    for panel in (columns[:, ::-1], columns):
        numbering.add(np.ascontiguousarray(panel))
    cells = numbering.cells
    assert len(numbering) == 256**n_classes
    np.testing.assert_array_equal(cells.sizes, np.full(256**n_classes, 2 * 256 ** (2 - n_classes)))
    assert cells.firsts.tolist() == sorted(cells.firsts.tolist())
    np.testing.assert_array_equal(cells.totals, columns[:, ::-1][:, cells.firsts])
    np.testing.assert_array_equal(cells.totals[:, numbering.places(columns)], columns)


def test_a_column_that_is_in_no_cell_has_no_place() -> None:
    known = Numbering.of(Cells(np.array([[1, 300], [0, 2]]), np.ones(2, np.int64), np.arange(2)))
    assert known.places(np.array([[1, 44, 0], [0, 2, 1]], np.uint8)).tolist() == [0, -1, -1]
