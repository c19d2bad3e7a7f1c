"""Columns are numbered as they are met, whatever type their counts have and however they are cut."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfs_dask.solvers.naive_bayes.distinct import ColumnNumbering, FeatureIndex, group

# On both sides of what is looked up by what it is, and of the types that counts lie in.
NUMBERS = [0, 1, 2, 254, 255, 256, 257, 511, 65_535, 65_536, 2**31, 2**62]


@given(st.integers(1, 4), st.lists(st.lists(st.sampled_from(NUMBERS), min_size=4, max_size=4), min_size=1))
def test_cells_are_the_distinct_columns_in_the_order_of_their_first(n_classes: int, columns: list[list[int]]) -> None:
    totals = np.array(columns, np.int64).T[:n_classes]
    cells, index = group(totals)
    distinct, firsts, places, sizes = np.unique(
        totals, axis=1, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(firsts)
    np.testing.assert_array_equal(cells.totals, distinct[:, order])
    np.testing.assert_array_equal(cells.sizes, sizes[order])
    np.testing.assert_array_equal(cells.firsts, firsts[order])
    assert index is not None
    np.testing.assert_array_equal(index.columns_of(np.arange(len(columns))), np.argsort(order)[places.reshape(-1)])


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int64])
def test_more_distinct_columns_than_a_table_begins_with(dtype: type) -> None:
    totals = np.random.default_rng(0).integers(0, 200, (2, 300_000)).astype(dtype)
    whole = ColumnNumbering(2)
    codes = whole.codes(totals)
    assert len(whole) == len(np.unique(totals, axis=1).T) > 1 << 15
    np.testing.assert_array_equal(whole.distinct.totals[:, codes], totals)
    in_parts = ColumnNumbering(2)
    found = [in_parts.codes(part) for part in np.array_split(totals, 7, axis=1)]
    np.testing.assert_array_equal(np.concatenate(found), codes)
    np.testing.assert_array_equal(in_parts.distinct.sizes, np.bincount(codes))


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
    numbering = ColumnNumbering(n_classes)
    for panel in panels:
        numbering.add(panel)
    whole = np.concatenate([panel.astype(np.int64) for panel in panels], axis=1)
    totals, firsts, sizes = np.unique(whole, axis=1, return_index=True, return_counts=True)
    order = np.argsort(firsts)
    cells = numbering.distinct
    np.testing.assert_array_equal(cells.totals, totals[:, order])
    np.testing.assert_array_equal(cells.firsts, firsts[order])
    np.testing.assert_array_equal(cells.sizes, sizes[order])
    firsts = np.cumsum([0, *(width for width, _ in widths)]).tolist()
    index = FeatureIndex.of_panels(lambda: zip(firsts, panels, strict=False), cells)
    np.testing.assert_array_equal(cells.totals[:, index.columns_of(np.arange(whole.shape[1]))], whole)


@pytest.mark.parametrize("n_classes", [1, 2])
def test_all_pairs_of_bytes_are_told_apart(n_classes: int) -> None:
    columns = np.stack([np.repeat(np.arange(256), 256), np.tile(np.arange(256), 256)])[:n_classes].astype(np.uint8)
    numbering = ColumnNumbering(n_classes)
    for panel in (columns[:, ::-1], columns):
        numbering.add(np.ascontiguousarray(panel))
    cells = numbering.distinct
    assert len(numbering) == 256**n_classes
    np.testing.assert_array_equal(cells.sizes, np.full(256**n_classes, 2 * 256 ** (2 - n_classes)))
    assert cells.firsts.tolist() == sorted(cells.firsts.tolist())
    np.testing.assert_array_equal(cells.totals, columns[:, ::-1][:, cells.firsts])
    np.testing.assert_array_equal(cells.totals[:, numbering.places(columns)], columns)
