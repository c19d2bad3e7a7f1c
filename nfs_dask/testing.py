"""For tests: the laws that every statistic obeys."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from nfs_dask.arrays.block import Array, Block, integers_as_integers
from nfs_dask.arrays.tiles import SortedEntries, Tiling
from nfs_dask.statistics.statistic import EntrywiseStatistic, State, Statistic


def check_statistic(statistic: Statistic, blocks: Sequence[Block], *, exact: bool, seed: int = 0) -> None:
    """Assert all laws of `nfs_dask.statistics.statistic` on these blocks; ``exact`` says to the bit, else to 1e-12."""
    rng = np.random.default_rng(seed)
    whole = fold(statistic, blocks)
    for law in (
        _zero_is_neutral,
        _merge_is_associative,
        _merge_commutes,
        _any_tree_gives_the_whole,
        _order_of_rows_is_nothing,
        _splitting_rows_is_nothing,
        _settling_ends_nothing,
        _panels_side_by_side_are_the_whole,
        _sorted_entries_are_the_whole,
    ):
        for state in law(statistic, blocks, rng):
            assert_same(state, whole, exact)
    _update_keeps_no_view(statistic, blocks)
    _merge_shares_nothing(statistic, blocks)
    _size_does_not_depend_on_rows(statistic, blocks)


def fold(statistic: Statistic, blocks: Sequence[Block]) -> State:
    """The blocks, one after another, into one state."""
    state = statistic.zero()
    for block in blocks:
        statistic.update(state, block)
    statistic.settle(state)
    return state


def assert_same(left: State, right: State, exact: bool) -> None:
    """The same numbers; an array that only one side has must be zero."""
    for part in ("arrays", "totals"):
        a, b = getattr(left, part), getattr(right, part)
        for name in {*a, *b}:
            present = a[name] if name in a else b[name]
            x, y = (side.get(name, np.zeros_like(present)) for side in (a, b))
            if exact:
                assert x.dtype == y.dtype, name
                np.testing.assert_array_equal(x, y, err_msg=name)
            else:
                largest = float(np.abs(y).max(initial=0, where=np.isfinite(y)))
                np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12 * largest, err_msg=name)


def rows_of(block: Block, rows: Array) -> Block:
    """Some rows of a block, in the order given."""
    lengths = np.diff(block.indptr)[rows]
    entries = np.concatenate([np.arange(block.indptr[r], block.indptr[r + 1]) for r in rows] or [np.zeros(0, np.int64)])
    return Block(
        indptr=np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
        indices=block.indices[entries.astype(np.int64)],
        data=block.data[entries.astype(np.int64)],
        codes=block.codes[rows],
        n_features=block.n_features,
        weights=None if block.weights is None else block.weights[rows],
    )


def columns_of(block: Block, first: int, last: int) -> Block:
    """A block's entries in a range of columns."""
    inside = (block.indices >= first) & (block.indices < last)
    counts = np.concatenate(([0], np.cumsum(inside)))
    return Block(
        indptr=counts[block.indptr].astype(np.int64),
        indices=(block.indices[inside] - first).astype(block.indices.dtype),
        data=block.data[inside],
        codes=block.codes,
        n_features=last - first,
        weights=block.weights,
    )


def _zero_is_neutral(statistic: Statistic, blocks: Sequence[Block], _: Any) -> Iterator[State]:
    yield statistic.merge(statistic.zero(), fold(statistic, blocks))
    yield statistic.merge(fold(statistic, blocks), statistic.zero())


def _merge_is_associative(statistic: Statistic, blocks: Sequence[Block], _: Any) -> Iterator[State]:
    third = max(1, len(blocks) // 3)
    a, b, c = (fold(statistic, part) for part in (blocks[:third], blocks[third : 2 * third], blocks[2 * third :]))
    yield statistic.merge(statistic.merge(a, b), c)
    yield statistic.merge(a, statistic.merge(b, c))


def _merge_commutes(statistic: Statistic, blocks: Sequence[Block], _: Any) -> Iterator[State]:
    half = len(blocks) // 2
    yield statistic.merge(fold(statistic, blocks[half:]), fold(statistic, blocks[:half]))


def _any_tree_gives_the_whole(statistic: Statistic, blocks: Sequence[Block], rng: Any) -> Iterator[State]:
    for _ in range(5):
        states = [fold(statistic, [block]) for block in blocks]
        while len(states) > 1:
            i = int(rng.integers(len(states) - 1))
            states[i : i + 2] = [statistic.merge(states[i], states[i + 1])]
        yield states[0]


def _order_of_rows_is_nothing(statistic: Statistic, blocks: Sequence[Block], rng: Any) -> Iterator[State]:
    shuffled = [rows_of(block, rng.permutation(block.n_rows)) for block in blocks]
    yield fold(statistic, [shuffled[i] for i in rng.permutation(len(blocks))])


def _splitting_rows_is_nothing(statistic: Statistic, blocks: Sequence[Block], _: Any) -> Iterator[State]:
    yield fold(
        statistic, [rows_of(b, np.arange(i, min(i + 3, b.n_rows))) for b in blocks for i in range(0, b.n_rows, 3)]
    )


def _settling_ends_nothing(statistic: Statistic, blocks: Sequence[Block], _: Any) -> Iterator[State]:
    state = statistic.zero()
    for block in blocks:
        statistic.update(state, block)
        statistic.settle(state)
    yield state


def _panels_side_by_side_are_the_whole(statistic: Statistic, blocks: Sequence[Block], rng: Any) -> Iterator[State]:
    if not isinstance(statistic, EntrywiseStatistic):
        return
    n_features = blocks[0].n_features
    cuts = sorted({0, n_features, *rng.integers(n_features + 1, size=3).tolist()})
    parts: list[dict[str, Array]] = []
    for first, last in itertools.pairwise(cuts):
        arrays: dict[str, Array] = {}
        for block in blocks:
            statistic.update_arrays(arrays, columns_of(block, first, last))
        parts.append(arrays)
    names = {name for part in parts for name in part}
    whole = fold(statistic, blocks)
    yield State({name: np.concatenate([part[name] for part in parts], axis=-1) for name in names}, whole.totals)


def _sorted_entries_are_the_whole(statistic: Statistic, blocks: Sequence[Block], rng: Any) -> Iterator[State]:
    if not isinstance(statistic, EntrywiseStatistic):
        return
    n_features, shift = blocks[0].n_features, int(rng.integers(4))
    arrays: dict[str, Array] = {}
    for block in map(integers_as_integers, blocks):
        tiling = Tiling(n_features, statistic.n_classes, shift)
        statistic.update_tiles(arrays, SortedEntries.of(block, tiling).tiled(tiling))
    wide = {name: array if array.dtype.kind == "f" else array.astype(np.int64) for name, array in arrays.items()}
    yield State(wide, fold(statistic, blocks).totals)


def _update_keeps_no_view(statistic: Statistic, blocks: Sequence[Block]) -> None:
    copies = [rows_of(block, np.arange(block.n_rows)) for block in blocks]
    state = fold(statistic, copies)
    for block in copies:
        block.data[...] = 0
        block.indices[...] = 0
    assert_same(state, fold(statistic, blocks), exact=True)


def _merge_shares_nothing(statistic: Statistic, blocks: Sequence[Block]) -> None:
    half = len(blocks) // 2
    left, right = fold(statistic, blocks[:half]), fold(statistic, blocks[half:])
    merged = statistic.merge(left, right)
    for side in (left, right):
        for array in (*side.arrays.values(), *side.totals.values()):
            for out in (*merged.arrays.values(), *merged.totals.values()):
                assert not np.shares_memory(array, out)


def _size_does_not_depend_on_rows(statistic: Statistic, blocks: Sequence[Block]) -> None:
    once = fold(statistic, blocks)
    assert fold(statistic, [*blocks, *blocks]).nbytes == once.nbytes
    promised = statistic.array_nbytes(blocks[0].n_features, None, blocks[0].weights is not None)
    assert sum(a.nbytes for a in once.arrays.values()) <= promised
