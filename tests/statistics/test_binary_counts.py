"""Document frequencies of data that must be binary."""

from __future__ import annotations

import numpy as np
import pytest

from nfs_dask.arrays.block import Block
from nfs_dask.errors import InputError
from nfs_dask.statistics.binary_counts import BinaryCounts
from nfs_dask.statistics.counts import ClassCounts
from nfs_dask.testing import check_statistic, fold


def block(data, number=0):
    data = np.asarray(data)
    return Block(np.array([0, 2, 3]), np.array([0, 2, 1]), data, np.array([0, 1]), 3, None, 2 * number, number)


def test_it_is_a_statistic():
    check_statistic(BinaryCounts(2), [block([1, 1, 0]), block([0, 1, 1], 1)], exact=True)


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.float64])
def test_it_counts_what_class_counts_counts(dtype):
    blocks = [block(np.array([1, 0, 1], dtype)), block(np.array([1, 1, 1], dtype), 1)]
    found, expected = (fold(s, blocks) for s in (BinaryCounts(2), ClassCounts(2, False, True)))
    np.testing.assert_array_equal(found.arrays["documents"], expected.arrays["documents"])
    assert found.arrays["documents"].tolist() == [[2, 0, 1], [0, 2, 0]]


@pytest.mark.parametrize(("data", "where"), [([1, 1, 2], "row 3, column 1"), ([1.0, 0.5, 1.0], "row 2, column 2")])
def test_it_refuses_other_values_where_they_are(data, where):
    with pytest.raises(InputError, match=rf"in {where}: .*with binarize=0.0"):
        fold(BinaryCounts(2), [block([1, 1, 1]), block(data, 1)])


def test_it_is_not_mistaken_for_counts_that_were_not_looked_at():
    assert BinaryCounts(2).describe() != ClassCounts(2, False, True).describe()
    assert BinaryCounts(2).supersets() == ()
