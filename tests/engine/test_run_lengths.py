"""Runs get shorter, there are few of them, and a worker that is four times slower holds a pass hardly at all."""

from __future__ import annotations

import heapq
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfs_dask.engine.plan import RUNS_PER_SLOT, SLOWER, balanced, run_bounds


@given(st.integers(1, 10**7), st.integers(1, 300), st.floats(1, RUNS_PER_SLOT), st.floats(0, 10**6))
def test_runs_cover_the_blocks_and_get_shorter(n_blocks: int, slots: int, per_slot: float, least: float) -> None:
    runs = run_bounds(n_blocks, slots, per_slot, least)
    assert runs[0][0] == 0
    assert runs[-1][1] == n_blocks
    assert all(a[1] == b[0] for a, b in itertools.pairwise(runs))
    lengths = [stop - start for start, stop in runs]
    assert min(lengths) >= 1
    assert lengths == sorted(lengths, reverse=True)
    assert len(runs) <= slots * (per_slot + 2)
    assert len(runs) >= min(slots, n_blocks)
    assert len(runs) <= slots or min(lengths) >= int(least * 2 / 3)


@pytest.mark.parametrize("slots", [1, 2, 3, 8, 64])
def test_lengths_follow_what_is_left(slots: int) -> None:
    n_blocks = 10**6
    for start, stop in run_bounds(n_blocks, slots, RUNS_PER_SLOT, 1)[: -4 * slots]:
        assert stop - start <= (n_blocks - start) / (SLOWER * slots) + 1


def test_little_work_is_cut_evenly() -> None:
    assert run_bounds(16, 2, 1, 1) == ((0, 8), (8, 16))
    assert run_bounds(100, 4, RUNS_PER_SLOT, 20) == ((0, 25), (25, 50), (50, 75), (75, 100))
    assert run_bounds(3, 8, RUNS_PER_SLOT, 1) == ((0, 1), (1, 2), (2, 3))


sizes_of_blocks = st.lists(st.integers(0, 1000), min_size=1, max_size=80)


@given(sizes_of_blocks, st.integers(1, 9), st.floats(0, 20))
def test_balanced_runs_cover_the_blocks(sizes: list[int], slots: int, least: float) -> None:
    runs = run_bounds(len(sizes), slots, RUNS_PER_SLOT, least)
    found = balanced(runs, np.array(sizes))
    assert len(found) == len(runs)
    assert [start for start, _ in found] == [0, *(stop for _, stop in found[:-1])]
    assert found[-1][1] == len(sizes)
    assert all(start < stop for start, stop in found)


@given(st.integers(1, 80), st.integers(1, 9), st.integers(1, 10**6))
def test_runs_of_blocks_that_are_alike_stay(n_blocks: int, slots: int, size: int) -> None:
    runs = run_bounds(n_blocks, slots, RUNS_PER_SLOT, 1)
    assert balanced(runs, np.full(n_blocks, size)) == runs


def test_short_blocks_count_for_what_they_have() -> None:
    """As where files end: cut by how many there are, the second worker would have less than two thirds of the rows."""
    sizes = np.array([165, 165, 165, 165, 165, 165, 55, 110, 165, 165, 110])
    assert run_bounds(11, 2, 1, 11) == ((0, 6), (6, 11))
    assert balanced(((0, 6), (6, 11)), sizes) == ((0, 5), (5, 11))


@given(sizes_of_blocks, st.integers(2, 9))
def test_an_end_is_as_near_to_its_share_as_blocks_can_be_cut(sizes: list[int], slots: int) -> None:
    runs = run_bounds(len(sizes), slots, 1, len(sizes))
    ends = np.concatenate(([0], np.cumsum(sizes)))
    for (old, _), (new, _) in zip(runs, balanced(runs, np.array(sizes)), strict=True):
        wanted = old / len(sizes) * ends[-1]
        distance = np.abs(ends - wanted).min()
        pushed = any(size == 0 for size in sizes) or max(sizes) * slots > sum(sizes)  # a run has a block at least
        assert pushed or abs(ends[new] - wanted) <= distance + 1e-9 * ends[-1]


def seconds(lengths: list[int], paces: list[float], joins: float = 0.0) -> float:
    """When all is done, if each worker takes the next run as it becomes free; the last worker joins late."""
    free = [(joins if i == len(paces) - 1 else 0.0, i) for i in range(len(paces))]
    heapq.heapify(free)
    ends = []
    for length in lengths:
        when, worker = heapq.heappop(free)
        ends.append(when + length / paces[worker])
        heapq.heappush(free, (ends[-1], worker))
    return max(ends)


@pytest.mark.parametrize("slots", [2, 4, 16, 100])
def test_a_slow_worker_hardly_holds_a_pass(slots: int) -> None:
    n_blocks = 10_000 * slots
    paces = [1.0] * (slots - 1) + [1 / SLOWER]
    best = n_blocks / sum(paces)
    lengths = [stop - start for start, stop in run_bounds(n_blocks, slots, RUNS_PER_SLOT, 1)]
    assert seconds(lengths, paces) < 1.15 * best
    assert seconds([n_blocks // slots] * slots, paces) > 2 * best  # as one run for each would
    assert seconds(lengths, [1.0] * slots) < 1.05 * n_blocks / slots


@pytest.mark.parametrize("slots", [2, 4, 16])
def test_who_joins_at_half_time_gets_a_share(slots: int) -> None:
    n_blocks = 10_000 * slots
    lengths = [stop - start for start, stop in run_bounds(n_blocks, slots, RUNS_PER_SLOT, 1)]
    best = 5_000 + 5_000 * slots / (slots + 1)
    assert seconds(lengths, [1.0] * (slots + 1), joins=5_000) < 1.05 * best
