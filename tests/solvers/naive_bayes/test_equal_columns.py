"""Columns are numbered as they are met, whatever type their counts have and however they are cut."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfs_dask.solvers.naive_bayes.equal_columns import Numbering, group

# On both sides of what is looked up by itself, and of the types that counts lie in.
NUMBERS = [0, 1, 2, 254, 255, 256, 257, 511, 65_535, 65_536, 2**31, 2**62]


@given(st.integers(1, 4), st.lists(st.lists(st.sampled_from(NUMBERS), min_size=4, max_size=4), min_size=1))
def test_cells_are_the_distinct_columns_in_the_order_of_their_first(n_classes: int, columns: list[list[int]]) -> None:
    totals = np.array(columns, np.int64).T[:n_classes]
    cells, codes = group(totals)
    distinct, firsts, places, sizes = np.unique(
        totals, axis=1, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(firsts)
    np.testing.assert_array_equal(cells.totals, distinct[:, order])
    np.testing.assert_array_equal(cells.sizes, sizes[order])
    np.testing.assert_array_equal(cells.firsts, firsts[order])
    assert codes is not None
    np.testing.assert_array_equal(codes, np.argsort(order)[places.reshape(-1)])


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int64])
def test_more_distinct_columns_than_a_table_begins_with(dtype: type) -> None:
    totals = np.random.default_rng(0).integers(0, 200, (2, 300_000)).astype(dtype)
    whole = Numbering(2)
    codes = whole.codes(totals)
    assert len(whole) == len(np.unique(totals, axis=1).T) > 1 << 15
    np.testing.assert_array_equal(whole.cells.totals[:, codes], totals)
    in_parts = Numbering(2)
    found = [in_parts.codes(part) for part in np.array_split(totals, 7, axis=1)]
    np.testing.assert_array_equal(np.concatenate(found), codes)
    np.testing.assert_array_equal(in_parts.cells.sizes, np.bincount(codes))
