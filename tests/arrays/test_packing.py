"""Numbers that were packed for their way are the same ones at its end, and most take a byte."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfs_dask.arrays.packing import LEAST, Packed, packed, unpacked
from nfs_dask.statistics.statistic import State

EDGES = [0, 1, 254, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**63 - 1, -1, -255, -(2**63)]


@given(st.lists(st.tuples(st.integers(0, 2 * LEAST - 1), st.sampled_from(EDGES)), max_size=50), st.sampled_from(EDGES))
def test_any_numbers_come_back(some: list[tuple[int, int]], most: int) -> None:
    numbers = np.full((2, LEAST), most, np.int64)
    for place, number in some:
        numbers.reshape(-1)[place] = number
    for array in (numbers, numbers.T):
        back = unpacked(packed(array))
        assert (back.dtype, back.strides) == (array.dtype, array.strides)
        np.testing.assert_array_equal(back, array)


@pytest.mark.parametrize(("most", "itemsize"), [(255, 1), (256, 2), (65535, 2), (65536, 4), (2**32 - 1, 4), (2**32, 8)])
def test_most_numbers_decide_how_many_bytes_each_takes(most: int, itemsize: int) -> None:
    numbers = np.full(4 * LEAST, most)
    numbers[-1] = 2**62  # no other is so large
    sent = len(pickle.dumps(packed(numbers), protocol=5))
    assert itemsize * numbers.size <= sent < itemsize * numbers.size + 1000


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(2 * LEAST),  # not whole
        np.zeros(LEAST - 1, np.int64),  # few
        np.zeros((2 * LEAST, 2), np.int64)[::2],  # with others between
        np.full(LEAST, -1),  # of other signs
        np.zeros(2 * LEAST, np.int32),
    ],
)
def test_what_saves_nothing_stays_as_it_is(array: np.ndarray) -> None:
    assert packed(array) is array


def test_numbers_that_no_sample_shows_are_kept() -> None:
    numbers = np.zeros(64 * LEAST, np.int64)
    numbers[1::256] = np.arange(numbers[1::256].size) - 2048  # the sample is every 256th from the first on
    sent = packed(numbers)
    assert isinstance(sent, Packed)
    np.testing.assert_array_equal(sent.unpacked(), numbers)


def test_a_state_is_the_same_in_another_process_and_its_own_to_change() -> None:
    sums, reals = np.arange(4 * LEAST).reshape(2, -1) % 300, np.linspace(0, 1, 2 * LEAST).reshape(2, -1)
    state = State({"sums": sums, "real_sums": reals}, {"rows": np.array([3, 4])})
    content = pickle.dumps(state, protocol=5)
    assert len(content) < reals.nbytes + sums.size + 16 * np.count_nonzero(sums > 255) + 2000
    back = pickle.loads(content)
    assert list(back.arrays) == ["sums", "real_sums"]
    np.testing.assert_array_equal(back.arrays["sums"], sums)
    np.testing.assert_array_equal(back.arrays["real_sums"], reals)
    np.testing.assert_array_equal(back.totals["rows"], state.totals["rows"])
    back.arrays["sums"] += 1
    assert state.arrays["sums"][0, 0] == 0
