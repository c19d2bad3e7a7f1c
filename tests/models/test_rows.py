"""The largest and the sum of each row are numpy's, to the bit, for few columns and for many."""

from __future__ import annotations

import numpy as np
import pytest

from nfs_dask.models.model import row_maxima, row_sums


@pytest.mark.parametrize("width", [1, 2, 3, 8, 9, 20])
def test_they_are_those_of_numpy(width: int) -> None:
    values = np.random.default_rng(width).normal(size=(50, width))
    values[::7, 0], values[::5, -1], values[3], values[4, width // 2] = np.inf, -np.inf, -np.inf, np.nan
    np.testing.assert_array_equal(row_maxima(values), values.max(axis=1), strict=True)
    assert row_maxima(values[:0]).shape == (0,)


@pytest.mark.parametrize("width", [1, 2, 3, 9])
def test_sums_of_rows_are_numpys_to_the_bit(width):
    values = np.random.default_rng(width).random((50, width))
    np.testing.assert_array_equal(row_sums(values), values.sum(axis=1), strict=True)
    np.testing.assert_array_equal(row_sums(values[0]), values[0].sum())
    assert row_sums(values[:0]).shape == (0,)
