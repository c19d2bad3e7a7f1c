"""Sorting by bits, against numpy's stable sort."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfs_dask.arrays.radix import sort_by_bits


def expected(numbers, low, high):
    kept = (numbers >> np.uint64(low)).astype(object) % (1 << (high - low))
    return numbers[np.argsort(kept.astype(np.uint64), kind="stable")]


@given(st.lists(st.integers(0, 2**64 - 1), max_size=60), st.integers(0, 64), st.integers(0, 64))
def test_sorted_by_the_bits_asked_for(numbers, one, other):
    low, high = min(one, other), max(one, other)
    numbers = np.array(numbers, np.uint64)
    np.testing.assert_array_equal(
        sort_by_bits(numbers.copy(), low, high), expected(numbers, low, high) if low < 64 else numbers
    )


@pytest.mark.parametrize("high", [1, 9, 10, 18, 36, 63, 64])
def test_many_numbers(high):
    numbers = np.random.default_rng(high).integers(0, 2**64, 100_000, dtype=np.uint64)
    np.testing.assert_array_equal(sort_by_bits(numbers.copy(), 0, high), expected(numbers, 0, high))
