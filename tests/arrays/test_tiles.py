"""Entries sorted by tiles and classes, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfs_dask.arrays import tiles
from nfs_dask.arrays.block import Array, Block, check_structure
from nfs_dask.arrays.tiles import SortedEntries, TiledEntries, Tiling, packs


def a_block(dtype: str, n_features: int, n_classes: int, seed: int, weighted: bool = False) -> Block:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 9, 30) * (rng.random(30) < 0.8)
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    data = rng.integers(-100 if dtype.startswith("int") else 0, 100, indptr[-1]) * (0.7 if dtype[0] == "f" else 1)
    codes, weights = rng.integers(0, n_classes, 30).astype(np.int32), rng.random(30) if weighted else None
    columns = rng.integers(0, n_features, indptr[-1]).astype(np.int32)
    return Block(indptr, columns, data.astype(dtype), codes, n_features, weights)


def rows_of(block: Block) -> Array:
    return np.repeat(np.arange(block.n_rows), np.diff(block.indptr))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float64"])
@pytest.mark.parametrize("shift", [0, 3, 16])
def test_a_block_is_sorted_and_nothing_of_it_is_lost(dtype: str, shift: int, weighted: bool) -> None:
    tiling, block = Tiling(90, 3, shift), a_block(dtype, 90, 3, shift, weighted)
    bucket = (block.indices >> shift) * 3 + block.codes[rows_of(block)]
    order = np.argsort(bucket, kind="stable")
    found = SortedEntries.of(block, tiling)
    np.testing.assert_array_equal(found.ends, np.cumsum(np.bincount(bucket, minlength=tiling.n_buckets)))
    columns, values = found.columns & ((1 << shift) - 1), found.values
    assert (values is None) == dtype.startswith("u")
    if values is None:
        assert found.columns.dtype == np.uint32
        values = found.columns >> shift
    np.testing.assert_array_equal(columns, (block.indices & ((1 << shift) - 1))[order])
    np.testing.assert_array_equal(values, block.data[order])
    if block.weights is None:
        assert found.weights is None
    else:
        np.testing.assert_array_equal(found.weights, block.weights[rows_of(block)][order])


@pytest.mark.parametrize(
    ("dtype", "shift", "together"),
    [("u1", 24, True), ("u1", 25, False), ("u2", 16, True), ("u2", 17, False), ("u4", 0, True), ("u4", 1, False)]
    + [("i1", 3, False), ("f4", 0, False), ("u8", 0, False)],
)
def test_what_has_room_in_32_bits(dtype: str, shift: int, together: bool) -> None:
    assert packs(np.dtype(dtype), shift) == together


def test_the_largest_values_and_columns_keep_all_their_bits() -> None:
    columns, values = np.array([0, 65535, 65536, 131071], np.int32), np.array([65535, 65535, 0, 1], np.uint16)
    block = Block(np.array([0, 4]), columns, values, np.array([0], np.int32), 1 << 17)
    found = SortedEntries.of(block, Tiling(1 << 17, 1, 16))
    assert (found.columns & 65535).tolist() == [0, 65535, 0, 65535]
    assert (found.columns >> 16).tolist() == values.tolist()


def in_pieces(blocks: list[Block], tiling: Tiling) -> TiledEntries:
    """What is read from a spool file, put together without one."""
    pieces = [SortedEntries.of(block, tiling) for block in blocks]
    starts = np.cumsum([0, *(len(piece.columns) for piece in pieces[:-1])])
    borders = np.stack([np.concatenate(([0], p.ends)) + start for p, start in zip(pieces, starts, strict=True)])

    def together(part: str) -> Any:
        arrays = [getattr(piece, part) for piece in pieces]
        return None if arrays[0] is None else np.concatenate(arrays)

    arrays = map(together, ("columns", "values", "weights"))
    return TiledEntries(tiling, tiling.n_features, np.ascontiguousarray(borders.T), *arrays)


@given(
    dtype=st.sampled_from(["uint8", "int64", "float64"]),
    weighted=st.booleans(),
    shift=st.integers(0, 7),
    n_blocks=st.integers(1, 4),
    gathered=st.sampled_from([1, 50, 10**9]),
    data=st.data(),
)
def test_blocks_have_the_entries_of_any_tiles_in_the_order_of_the_documents(
    dtype: str, weighted: bool, shift: int, n_blocks: int, gathered: int, data: Any
) -> None:
    n_features, n_classes = 83, 2
    blocks = [a_block(dtype, n_features, n_classes, seed, weighted) for seed in range(n_blocks)]
    edges = [*range(0, n_features, 1 << shift), n_features]
    first, last = sorted(data.draw(st.sets(st.sampled_from(edges), min_size=2, max_size=2)))
    entries = in_pieces(blocks, Tiling(n_features, n_classes, shift)).of_columns(first, last)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiles, "GATHERED", gathered)
        found = list(entries.blocks())
    want: dict[tuple[int, int], list[Any]] = {}
    for block in blocks:
        weights = np.ones(block.n_rows) if block.weights is None else block.weights
        for row, column, value in zip(rows_of(block), block.indices, block.data, strict=True):
            if first <= column < last:
                want.setdefault((block.codes[row], column - first), []).append((value, weights[row]))
    got: dict[tuple[int, int], list[Any]] = {}
    for block in found:
        check_structure(block)
        assert block.n_features == last - first
        weights = np.ones(block.n_rows) if block.weights is None else block.weights
        for row, column, value in zip(rows_of(block), block.indices, block.data, strict=True):
            got.setdefault((block.codes[row], column), []).append((value, weights[row]))
    assert got == want
