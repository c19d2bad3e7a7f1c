"""The largest of each row is numpy's, to the bit, for few columns and for many."""

from __future__ import annotations

import numpy as np
import pytest

from nfs_dask.models.model import row_maxima


@pytest.mark.parametrize("width", [1, 2, 3, 8, 9, 20])
def test_they_are_those_of_numpy(width: int) -> None:
    values = np.random.default_rng(width).normal(size=(50, width))
    values[::7, 0], values[::5, -1], values[3], values[4, width // 2] = np.inf, -np.inf, -np.inf, np.nan
    np.testing.assert_array_equal(row_maxima(values), values.max(axis=1), strict=True)
    assert row_maxima(values[:0]).shape == (0,)
