"""Sums of likelihoods obey the laws of statistics and give what one machine would; rows come together in order."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfs_dask.arrays.block import Block, full_rows
from nfs_dask.errors import InputError, NfsDaskError
from nfs_dask.files.folder import Folder
from nfs_dask.solvers.logistic.likelihood import derivatives, prior_offsets
from nfs_dask.statistics.collected_rows import CollectedRows, dense_rows, row_nbytes
from nfs_dask.statistics.logistic_sums import FitSums, derivatives_of, features_of, fixed_offsets
from nfs_dask.statistics.statistic import State, Statistic
from nfs_dask.store.states import StoredPanels, write_state
from nfs_dask.testing import check_statistic, fold

N, R = 60, 2


def block_of(values: Any, codes: Any, weights: Any = None, number: int = 0, first: int = 0) -> Block:
    indptr, indices, data, full = full_rows(np.ascontiguousarray(values, np.float64))
    return Block(indptr, indices, data, codes.astype(np.int8), values.shape[1], weights, first, number, full)


def documents(n_classes: int, weights: bool = True, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(N, R if n_classes == 2 else R * n_classes))
    values[::7] = 0
    return values, rng.integers(n_classes, size=N), rng.choice([0.0, 0.5, 1.0, 3.0], N) if weights else None


def blocks_of(n_classes: int, weights: bool = True, cuts: tuple[int, ...] = (0, 13, 13, 40, N)) -> list[Block]:
    values, codes, w = documents(n_classes, weights)
    return [
        block_of(values[a:b], codes[a:b], None if w is None else w[a:b], number, a)
        for number, (a, b) in enumerate(zip(cuts, cuts[1:], strict=False))
    ]


def sums_of(n_classes: int, prior: Any = None) -> FitSums:
    rng = np.random.default_rng(1)
    theta, step = rng.normal(size=(2, n_classes - 1 + R))
    return FitSums(n_classes, R, tuple(theta.tolist()), tuple(step.tolist()), prior)


# Sums


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("fixed", [False, True])
def test_laws(n_classes: int, fixed: bool) -> None:
    statistic = sums_of(n_classes, (30.0,) * n_classes if fixed else None)
    check_statistic(statistic, blocks_of(n_classes), exact=False)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fixed", [False, True])
def test_sums_are_those_of_one_machine(n_classes: int, weighted: bool, fixed: bool) -> None:
    values, codes, w = documents(n_classes, weighted)
    mass = np.bincount(codes, w, n_classes)
    statistic = sums_of(n_classes, tuple(mass.tolist()) if fixed else None)
    removed = np.ones(N) if w is None else np.minimum(w, 1)
    offsets = prior_offsets(mass, codes, removed) if fixed else None
    features = features_of(values, n_classes, R)
    assert features.shape == ((N, R) if n_classes == 2 else (N, R, n_classes))
    want = derivatives(features, codes, np.array(statistic.theta), np.array(statistic.step), weights=w, offsets=offsets)
    found = derivatives_of(fold(statistic, blocks_of(n_classes, weighted)).totals)
    assert found.log_likelihood == pytest.approx(want.log_likelihood, rel=1e-13)
    np.testing.assert_allclose(found.gradient, want.gradient, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.hessian, want.hessian, rtol=1e-12, atol=1e-12)
    for name in ("margin", "step_margin", "step_spread"):
        assert getattr(found, name) == getattr(want, name)


def test_columns_of_regions_hold_their_classes_side_by_side() -> None:
    rows = np.arange(12.0).reshape(2, 6)
    assert features_of(rows, 3, 2)[1].tolist() == [[6, 7, 8], [9, 10, 11]]


def test_a_prior_that_leaves_itself_out_needs_two_documents() -> None:
    lone = FitSums(2, R, (0.0,) * 3, (0.0,) * 3, (1.0, 5.0))
    with pytest.raises(InputError, match="single one"):
        lone.update(lone.zero(), block_of(np.zeros((1, R)), np.zeros(1)))
    np.testing.assert_allclose(fixed_offsets(np.array([1.0, 5.0]), np.array([1]), np.array([0.5])), np.log(4.5))


def test_descriptions_are_json() -> None:
    statistic = sums_of(3, (1.0, 2.0, 3.0))
    assert json.loads(json.dumps(statistic.describe())) == statistic.describe()
    assert statistic.describe() != sums_of(3).describe()
    assert hash(statistic) != hash(sums_of(3))


@pytest.mark.parametrize("statistic", [sums_of(2), sums_of(3), CollectedRows(3, 1000)])
def test_small_ones_warm_up_on_four_columns(statistic: Statistic) -> None:
    small = statistic.small()
    assert small is not None
    small.update(small.zero(), block_of(np.ones((2, 4)), np.array([0, 1])))


@pytest.mark.parametrize("statistic", [sums_of(3), CollectedRows(3, N)])
def test_states_survive_storage(statistic: Statistic, tmp_path: Any) -> None:
    state = fold(statistic, blocks_of(3))
    folder = Folder.of(tmp_path)
    write_state(folder, state, R * 3, {})
    found = StoredPanels(folder).state()
    for part in ("arrays", "totals"):
        assert getattr(found, part).keys() == getattr(state, part).keys()
        for name, array in getattr(state, part).items():
            assert getattr(found, part)[name].tobytes() == array.tobytes(), name


# Rows


def assert_collected(state: State, n_classes: int, weighted: bool) -> None:
    values, codes, w = documents(n_classes, weighted)
    assert state.arrays["rows"].tobytes() == values.tobytes()
    np.testing.assert_array_equal(state.totals["codes"], codes)
    assert ("weights" in state.totals) == weighted
    if weighted:
        np.testing.assert_array_equal(state.totals["weights"], w)


@pytest.mark.parametrize("weighted", [False, True])
@given(cuts=st.lists(st.integers(0, N), max_size=8), seed=st.integers(0, 100))
def test_rows_come_together_in_order(weighted: bool, cuts: list[int], seed: int) -> None:
    """Whatever the blocks, and whichever states meet first."""
    rng = np.random.default_rng(seed)
    statistic = CollectedRows(3, N)
    blocks = blocks_of(3, weighted, (0, *sorted(cuts), N))
    states = [statistic.zero()]
    for block in (blocks[i] for i in rng.permutation(len(blocks))):
        if rng.random() < 0.5:
            states.append(statistic.zero())
        statistic.update(states[-1], block)
    while len(states) > 1:
        a, b = rng.permutation(len(states))[:2]
        merged = statistic.merge(states[a], states[b])
        states = [merged, *(state for i, state in enumerate(states) if i not in (a, b))]
    assert_collected(states[0], 3, weighted)


def test_pieces_of_a_block_are_in_order_too() -> None:
    values, codes, _ = documents(2, False)
    statistic = CollectedRows(2, N)
    later, earlier = statistic.zero(), statistic.zero()
    statistic.update(later, block_of(values[20:], codes[20:], number=3, first=120))
    statistic.update(earlier, block_of(values[:20], codes[:20], number=3, first=100))
    assert_collected(statistic.merge(later, earlier), 2, False)


def test_states_share_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nfs_dask.statistics.collected_rows.GROWTH_ROWS", 8)
    statistic = CollectedRows(2, 1000)
    values, codes, _ = documents(2, False)
    state = statistic.zero()
    seen = []
    for i in range(N):
        block = block_of(values[i : i + 1].copy(), codes[i : i + 1], number=i)
        statistic.update(state, block)
        seen.append(state.arrays["rows"])
        block.data[:] = np.nan
    assert_collected(state, 2, False)
    for i, rows in enumerate(seen):
        np.testing.assert_array_equal(rows, values[: i + 1])
    assert len({rows.ctypes.data for rows in seen}) < N / 4, "most rows found room"
    merged = statistic.merge(state, statistic.zero())
    assert not np.shares_memory(merged.arrays["rows"], state.arrays["rows"])


def test_more_rows_than_promised_are_refused() -> None:
    statistic = CollectedRows(2, N - 1)
    with pytest.raises(NfsDaskError, match="room for 59"):
        fold(statistic, blocks_of(2))
    assert statistic.array_nbytes(5, None, True) == (N - 1) * row_nbytes(5, True) == (N - 1) * (40 + 28)


def test_rows_of_any_block_are_made_dense() -> None:
    sparse_block = Block(
        np.array([0, 1, 1, 3]), np.array([2, 0, 1], np.int32), np.array([7, 1, 2], np.uint8), np.zeros(3, np.int8), 3
    )
    dense = dense_rows(sparse_block)
    assert dense.tolist() == [[0, 0, 7], [0, 0, 0], [1, 2, 0]]
    assert dense.dtype == np.float64
    assert dense_rows(block_of(np.eye(3), np.zeros(3))).tolist() == np.eye(3).tolist()
