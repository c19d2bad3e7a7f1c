"""Class counts against numpy, and the laws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nfs_dask.arrays.block import Block, smallest_integer
from nfs_dask.arrays.tiles import SortedEntries, Tiling
from nfs_dask.errors import InputError, NfsDaskError
from nfs_dask.statistics.counts import ClassCounts, documents, sums
from nfs_dask.statistics.incremental import subtract
from nfs_dask.statistics.lengths import lengths_in
from nfs_dask.statistics.panels import MemoryPanels
from nfs_dask.statistics.statistic import Coverage, State
from nfs_dask.testing import check_statistic, fold


def dense_block(X: np.ndarray, codes: np.ndarray, weights: np.ndarray | None = None) -> Block:
    rows, columns = np.nonzero(X)
    indptr = np.searchsorted(rows, np.arange(len(X) + 1)).astype(np.int64)
    return Block(indptr, columns.astype(np.int32), X[rows, columns], codes.astype(np.int32), X.shape[1], weights)


def random_blocks(dtype: str, weights: str | None = None, n_classes: int = 3, n: int = 7) -> list[Block]:
    rng = np.random.default_rng(5)
    blocks = []
    for rows in (4, 0, 1, 9, 3, 6, 2)[:n]:
        X = rng.integers(0, 5, (rows, 11)) * (rng.random((rows, 11)) < 0.4)
        X = X.astype(dtype) * (0.7 if dtype.startswith("float") else 1)
        w = None
        if weights is not None:
            w = rng.integers(0, 4, rows) if weights == "whole" else rng.random(rows)
        blocks.append(dense_block(X.astype(dtype), rng.integers(n_classes, size=rows), w))
    return blocks


def dense(block: Block) -> np.ndarray:
    X = np.zeros((block.n_rows, block.n_features))
    rows = np.repeat(np.arange(block.n_rows), np.diff(block.indptr))
    X[rows, block.indices] = block.data
    return X


def by_numpy(blocks: list[Block], threshold: float = 0.0, n_classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    X = np.concatenate([dense(b) for b in blocks])
    codes = np.concatenate([b.codes for b in blocks])
    w = np.concatenate([np.ones(b.n_rows) if b.weights is None else b.weights for b in blocks])
    Y = np.eye(n_classes)[codes] * w[:, None]
    return Y.T @ X, Y.T @ np.greater(X, threshold)


@pytest.mark.parametrize("weights", [None, "whole", "real"])
@pytest.mark.parametrize("dtype", ["uint8", "uint32", "int64", "float32", "float64"])
def test_laws_and_numpy(dtype: str, weights: str | None) -> None:
    blocks = random_blocks(dtype, weights)
    exact = not dtype.startswith("float") and weights != "real"
    statistic = ClassCounts(3, with_documents=True)
    check_statistic(statistic, blocks, exact=exact)
    state = fold(statistic, blocks)
    want_sums, want_documents = by_numpy(blocks)
    np.testing.assert_allclose(sums(state.arrays), want_sums, rtol=1e-12)
    np.testing.assert_allclose(documents(state.arrays), want_documents, rtol=1e-12)
    assert (sums(state.arrays).dtype == np.int64) == exact
    np.testing.assert_array_equal(
        state.totals["rows"], np.bincount(np.concatenate([b.codes for b in blocks]), minlength=3)
    )


def test_documents_above_a_threshold() -> None:
    blocks = random_blocks("uint8")
    state = fold(ClassCounts(3, with_sums=False, with_documents=True, threshold=2), blocks)
    assert set(state.arrays) == {"documents"}
    np.testing.assert_array_equal(documents(state.arrays), by_numpy(blocks, 2)[1])


def test_whole_and_real_blocks_stand_side_by_side() -> None:
    whole, real = random_blocks("uint8"), random_blocks("float64")
    state = fold(ClassCounts(3), [*whole, *real])
    assert state.arrays["sums"].dtype == np.int64
    np.testing.assert_array_equal(state.arrays["sums"], by_numpy(whole)[0])
    np.testing.assert_allclose(sums(state.arrays), by_numpy([*whole, *real])[0], rtol=1e-12)


def test_more_than_two_to_the_31_entries_and_narrow_types_do_not_wrap() -> None:
    """A block of 255s folded again and again: 2.2e9 entries, and sums far beyond 32 bits."""
    n = 1 << 20
    block = Block(np.array([0, n]), np.zeros(n, np.int32), np.full(n, 255, np.uint8), np.zeros(1, np.int32), 1)
    statistic = ClassCounts(1, with_documents=True)
    state = statistic.zero()
    repeats = (1 << 11) + 50
    for _ in range(repeats):
        statistic.update(state, block)
    assert n * repeats > 1 << 31
    assert int(state.arrays["sums"][0, 0]) == 255 * n * repeats
    assert int(state.arrays["documents"][0, 0]) == n * repeats


def test_sums_that_could_wrap_are_refused() -> None:
    block = dense_block(np.array([[2**61]], np.int64), np.zeros(1))
    state = ClassCounts(1).zero()
    ClassCounts(1).update(state, block)
    with pytest.raises(InputError, match="2\\^62"):
        ClassCounts(1).update(state, block)


def test_coverage_refuses_to_count_twice() -> None:
    a, b = Coverage.of(0, 4), Coverage.of(6, 9)
    assert a.union(b).ranges == ((0, 4), (6, 9))
    assert a.union(b).missing(10) == [4, 5, 9]
    assert Coverage.of(4, 6).union(a.union(b)).ranges == ((0, 9),)
    with pytest.raises(NfsDaskError, match="twice"):
        a.union(Coverage.of(3, 5))


def test_panels_give_columns_in_the_order_asked() -> None:
    state = State({"sums": np.arange(20).reshape(2, 10)}, {})
    np.testing.assert_array_equal(
        MemoryPanels(state, 10).columns(np.array([7, 0, 7]))["sums"], [[7, 0, 7], [17, 10, 17]]
    )


@pytest.mark.parametrize("weights", [None, "whole", "real"])
@pytest.mark.parametrize("scale", [1, 700, 10**7])
def test_lengths_are_those_of_the_rows(weights: str | None, scale: int) -> None:
    blocks = [replace(b, data=b.data.astype(np.int64) * scale) for b in random_blocks("uint8", weights)]
    statistic = ClassCounts(3, with_lengths=True)
    check_statistic(statistic, blocks, exact=weights != "real")
    found = lengths_in(fold(statistic, blocks).totals["lengths"])
    kept = [b.weights > 0 if b.weights is not None else np.ones(b.n_rows, bool) for b in blocks]
    values, documents = np.unique(
        np.concatenate([dense(b).sum(axis=1)[k] for b, k in zip(blocks, kept, strict=True)]), return_counts=True
    )
    if scale == 1:
        assert found == dict(zip(values.tolist(), documents.tolist(), strict=True))
    assert sum(found.values()) == documents.sum()
    one_by_one = np.repeat(sorted(found), [found[length] for length in sorted(found)])
    np.testing.assert_allclose(one_by_one, np.repeat(values, documents), rtol=0.004)


def test_more_than_was_asked_for_does() -> None:
    supersets = ClassCounts(3).supersets()
    assert len(supersets) == 3 and ClassCounts(3, True, True, with_lengths=True) in supersets
    assert ClassCounts(3, False, True, 2.0).supersets()[-1] == ClassCounts(3, True, True, 2.0, True)
    assert ClassCounts(3, True, True, with_lengths=True).supersets() == ()
    state, part = (fold(ClassCounts(3, w, d, with_lengths=d), random_blocks("uint8")) for w, d in ((1, 1), (1, 0)))
    rest = subtract(state, part)
    assert set(rest.arrays) == {"sums"} and not rest.arrays["sums"].any() and "lengths" not in rest.totals


# Sorted entries


@pytest.mark.parametrize("largest", [1, 255, 65535])
def test_sorted_entries_are_counted_in_the_smallest_type_that_holds_them(largest: int) -> None:
    """Counts that outgrow 8, 16 and 32 bits on the way; columns of each tile, some of them empty."""
    rng = np.random.default_rng(largest)
    statistic, tiling = ClassCounts(2, with_documents=True, threshold=0.0), Tiling(37, 2, 3)
    arrays: dict[str, np.ndarray] = {}
    want_sums, want_documents = np.zeros((2, 37), np.int64), np.zeros((2, 37), np.int64)
    for number, times in enumerate((1, 1, 300, 70_000)):
        n = 40 * times
        columns, codes = rng.choice([0, 7, 8, 20, 36], n).astype(np.int32), rng.integers(0, 2, n).astype(np.int32)
        values = rng.integers(0, largest + 1, n).astype(np.uint8 if largest < 256 else np.uint16)
        block = Block(np.arange(n + 1), columns, values, codes, 37)
        statistic.update_tiles(arrays, SortedEntries.of(block, tiling).tiled(tiling))
        np.add.at(want_sums, (codes, columns), values)
        np.add.at(want_documents, (codes, columns), values > 0)
        for name, want in (("sums", want_sums), ("documents", want_documents)):
            np.testing.assert_array_equal(arrays[name], want)
            assert arrays[name].dtype == smallest_integer(0, int(want.max())), (name, number)
    assert arrays["sums"].dtype == {1: np.uint32, 255: np.uint32, 65535: np.int64}[largest]


def test_narrow_counts_are_widened_for_what_is_not_packed() -> None:
    """Blocks of small and of large whole numbers, in turn: none wraps."""
    statistic, tiling = ClassCounts(1), Tiling(4, 1, 1)
    arrays: dict[str, np.ndarray] = {}
    for dtype, value in (("uint8", 200), ("int64", 2**40), ("uint8", 250), ("int64", -7)):
        block = Block(np.array([0, 2]), np.array([1, 3], np.int32), np.full(2, value, dtype), np.zeros(1, np.int32), 4)
        statistic.update_tiles(arrays, SortedEntries.of(block, tiling).tiled(tiling))
    total = 200 + 2**40 + 250 - 7
    assert arrays["sums"].tolist() == [[0, total, 0, total]]
