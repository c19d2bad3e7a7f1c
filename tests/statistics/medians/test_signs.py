"""Signs of entries against numpy, and the laws."""

from __future__ import annotations

import numpy as np
import pytest

from nfs_dask.errors import InputError
from nfs_dask.statistics.medians.signs import ClassSigns, unsettled_columns
from nfs_dask.statistics.panels import MemoryPanels, Panels
from nfs_dask.statistics.statistic import State
from nfs_dask.testing import check_statistic, fold
from tests.helpers.medians_by_hand import blocks_of, full_block, sparse_block


def some_data(seed=0, n=60, m=13, kind="f8"):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m)) * (rng.random((n, m)) < np.linspace(0.2, 1, m))
    return (3 * X).astype(kind), rng.integers(3, size=n), rng


@pytest.mark.parametrize("make", [full_block, sparse_block])
@pytest.mark.parametrize("kind", ["f8", "f4", "i1", "u1"])
@pytest.mark.parametrize("weights", [None, "whole", "real"])
def test_laws_and_numpy(kind, weights, make):
    X, codes, rng = some_data(kind=kind if kind != "u1" else "f8")
    X = np.abs(X).astype(kind) if kind == "u1" else X
    w = None if weights is None else rng.integers(0, 4, 60) if weights == "whole" else rng.random(60)
    blocks = blocks_of(X, codes, w, make=make)
    check_statistic(ClassSigns(3), blocks, exact=weights != "real" and kind != "f8")
    state = fold(ClassSigns(3), blocks)
    assert any("negative" in name for name in state.arrays) == (kind != "u1")
    by_class = np.eye(3)[codes].T * (1 if w is None else w)
    prefix = "" if w is None else "weighted_"
    np.testing.assert_allclose(state.arrays[f"{prefix}positive"], by_class @ (X > 0), rtol=1e-15)
    if kind != "u1":
        np.testing.assert_allclose(state.arrays[f"{prefix}negative"], by_class @ (X < 0), rtol=1e-15)
    np.testing.assert_allclose(state.totals["absolute"], by_class @ np.abs(X.astype(float)).sum(axis=1), rtol=1e-15)
    np.testing.assert_array_equal(state.totals["rows"], np.bincount(codes, minlength=3))
    np.testing.assert_allclose(state.totals["weight"], by_class.sum(axis=1), rtol=1e-15)


class Cut(Panels):
    """A state in panels of some columns."""

    def __init__(self, state, bounds):
        self.state, self.totals, self.bounds = state, state.totals, bounds

    def arrays(self, panel):
        first, last = self.bounds[panel : panel + 2]
        return {name: array[..., first:last] for name, array in self.state.arrays.items()}


@pytest.mark.parametrize("weights", [None, "whole", "real"])
def test_unsettled_columns_are_those_in_which_a_class_is_half_on_one_side(weights):
    X, codes, rng = some_data(1, n=40, m=30, kind="i1")
    X[:, 4] = np.where(np.arange(40) % 2, 1, 0)
    codes[:] = np.arange(40) // 20  # of column 4, exactly half lies above zero in either class
    w = None if weights is None else rng.integers(1, 4, 40) if weights == "whole" else np.full(40, 0.1)
    state = fold(ClassSigns(3), blocks_of(X, codes, w, make=sparse_block))
    half = np.zeros(30, bool)
    for c in range(2):  # nobody is in the third
        v = np.ones(20) if w is None else w[codes == c]
        for side in (X[codes == c] > 0, X[codes == c] < 0):
            half |= (2 * v @ side) > v.sum() * (1 - 1e-9)
    assert half[4] or weights == "whole"
    assert 0 < half.sum() < 30
    want = np.flatnonzero(half)
    for panels in (MemoryPanels(state, 30), Cut(state, (0, 1, 11, 12, 30))):
        np.testing.assert_array_equal(unsettled_columns(panels), want)


def test_a_panel_without_entries_is_settled():
    state = fold(ClassSigns(2), [sparse_block(np.zeros((3, 4)), np.array([0, 1, 1]))])
    state = State({}, state.totals)
    assert unsettled_columns(MemoryPanels(state, 4)).tolist() == []


def test_weights_that_doubles_cannot_hold_are_refused():
    block = sparse_block(np.ones((2, 1)), np.zeros(2), np.array([1, 2**53 + 1]))
    with pytest.raises(InputError, match=r"sample weight 9007199254740993 in row 1"):
        fold(ClassSigns(1), [block])
