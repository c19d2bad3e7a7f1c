"""Finding selected columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from nfs_dask.arrays.block import Block
from nfs_dask.arrays.lookup import MANY, Lookup


@given(st.data())
def test_taking_columns_is_indexing(data):
    width = data.draw(st.sampled_from([1, 7, 300, 10**6, 10**8]))
    density = min(0.4, 10 / width)
    matrix = sparse.random_array((5, width), density=density, format="csr", rng=data.draw(st.integers(0, 99)))
    some = [*matrix.indices.tolist(), *range(min(width, 9))]
    columns = np.array(sorted(data.draw(st.sets(st.sampled_from(some)))), np.int64)
    block = Block(matrix.indptr.astype(np.int64), matrix.indices, matrix.data, np.zeros(5, np.int32), width)
    taken = Lookup.of(columns, width).take(block)
    found = sparse.csr_array((taken.data, taken.indices, taken.indptr), shape=(5, len(columns)))
    np.testing.assert_array_equal(found.toarray(), matrix[:, columns].toarray())


@pytest.mark.parametrize("n_features", [100, 10**12])
def test_its_size_is_bounded(n_features):
    lookup = Lookup.of(np.array([0, 1, 99]), n_features)
    assert len(lookup.index) <= MANY + 1


def test_all_columns_need_no_index():
    lookup = Lookup.of(np.arange(1000), 1000)
    assert lookup.index is None
    np.testing.assert_array_equal(lookup.positions(np.array([7, 0, 999], np.uint16)), [7, 0, 999])
