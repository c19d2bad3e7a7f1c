"""Rows are in the fold that the documentation says, whatever they are taken from, and views hand out exactly those."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from scipy import sparse

from nfs_dask.arrays.block import Block, check_structure
from nfs_dask.errors import InputError
from nfs_dask.sources.folds import Folds, by_fold, without_fold
from nfs_dask.sources.open_source import open_source
from nfs_dask.sources.source import Source
from nfs_dask.store.layout import Layout
from nfs_dask.store.writer import write_store

RNG = np.random.default_rng(4)
ROWS, WIDTH, CLASSES = 230, 40, 3
X = RNG.integers(0, 9, (ROWS, WIDTH)) * (RNG.random((ROWS, WIDTH)) < 0.3)
DENSE = RNG.normal(size=(ROWS, WIDTH)).astype(np.float32)
Y = RNG.integers(0, CLASSES, ROWS)
WEIGHTS = RNG.integers(1, 5, ROWS)
KINDS = pytest.mark.parametrize("kind", ["store", "sparse", "dense", "delayed"])


def split_mix(n: int, seed: int = 0) -> list[int]:
    """The first outputs of SplitMix64, one after another as its authors write it."""
    mask, out, state = 2**64 - 1, [], seed
    for _ in range(n):
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        out.append(z ^ (z >> 31))
    return out


@pytest.fixture(scope="module")
def stores(tmp_path_factory: Any) -> Path:
    folder: Path = tmp_path_factory.mktemp("folds")
    layout = Layout(chunk=256, shard=1024, row_chunk=8, row_shard=32, block=600)
    write_store(open_source(sparse.csr_array(X), Y, WEIGHTS), folder / "some.zarr", layout=layout)
    return folder


def source_of(kind: str, stores: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """A source of that kind in several blocks, and its matrix."""
    monkeypatch.setattr("nfs_dask.sources.block_cuts.BLOCK_NBYTES", 10 * WIDTH * 12)
    if kind == "store":
        return open_source(stores / "some.zarr"), X
    if kind == "sparse":
        return open_source(sparse.csr_array(X), Y, WEIGHTS), X
    if kind == "dense":
        return open_source(DENSE, Y, WEIGHTS), DENSE
    chunks = [da.from_array(values, chunks=50) for values in (Y, WEIGHTS)]
    return open_source(da.from_array(DENSE, chunks=(50, WIDTH)), *chunks), DENSE


def read(source: Source) -> tuple[Any, Any, Any]:
    """Rows, codes and weights of all blocks."""
    parts = []
    for block in source.blocks(0, source.n_blocks):
        check_structure(block)
        assert block.nnz <= source.block_entries
        shape = (block.n_rows, block.n_features)
        matrix = sparse.csr_array((block.data, block.indices, block.indptr), shape=shape).toarray()
        weights = np.ones(block.n_rows) if block.weights is None else block.weights
        parts.append((matrix, block.codes, weights))
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))  # type: ignore[return-value]


def test_the_hash_is_split_mix() -> None:
    known = split_mix(1)  # as it is in print for seed 0
    assert known == [0xE220A8397B1DCDAF]
    block = Block(np.zeros(51, np.int64), np.zeros(0, int), np.zeros(0), np.zeros(50, int), 1, first_row=70)
    for count in (2, 5, 300):
        expected = [z % count for z in split_mix(120)[70:]]
        assert Folds(count).of(block).tolist() == expected
    assert Folds(7).sizes(120).tolist() == np.bincount([z % 7 for z in split_mix(120)], minlength=7).tolist()


def test_folds_are_about_as_large_as_each_other_and_unrelated_to_the_order_of_rows() -> None:
    n, count = 200_000, 5
    block = Block(np.zeros(n + 1, np.int64), np.zeros(0, int), np.zeros(0), np.zeros(n, int), 1)
    folds = Folds(count).of(block)
    assert np.abs(np.bincount(folds) - n / count).max() < 5 * np.sqrt(n * (1 / count) * (1 - 1 / count))
    for period in (2, 3, 10, 64):  # rows are often in some regular order
        table = np.array([np.bincount(folds[i::period], minlength=count) for i in range(period)])
        assert ((table - n / count / period) ** 2 / (n / count / period)).sum() < count * period + 6 * np.sqrt(
            2 * count * period
        )


@KINDS
@pytest.mark.parametrize("given", [False, True])
def test_views_by_fold(kind: str, given: bool, stores: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, matrix = source_of(kind, stores, monkeypatch)
    assert source.n_blocks > 2
    found = np.arange(ROWS) % 4 if given else np.array([z % 4 for z in split_mix(ROWS)])
    folds = Folds(4, found) if given else Folds(4)
    view = by_fold(source, folds, carried=1000)
    assert isinstance(view, Source)
    assert (view.delayed is None, view.is_shipped) == (source.delayed is None, source.is_shipped)
    assert (view.n_rows, view.n_features, view.n_blocks, view.nnz) == (ROWS, WIDTH, source.n_blocks, source.nnz)
    assert view.import_nbytes == source.import_nbytes + 1000
    assert view.origin is source
    assert len(view.classes) == 4 * CLASSES
    rows, codes, weights = read(view)
    np.testing.assert_array_equal(rows, matrix)
    np.testing.assert_array_equal(codes, found * CLASSES + Y)
    np.testing.assert_array_equal(weights, WEIGHTS)
    for f in range(4):
        one, mask = without_fold(source, folds, f), found != f
        assert one.n_rows == mask.sum()
        rows, codes, weights = read(one)
        np.testing.assert_array_equal(rows, matrix[mask])
        np.testing.assert_array_equal(codes, Y[mask])
        np.testing.assert_array_equal(weights, WEIGHTS[mask])
        assert [b.full for b in one.blocks(0, 1)] == [kind in ("dense", "delayed")]


def test_delayed_views_compute_what_they_read(stores: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, _ = source_of("delayed", stores, monkeypatch)
    view: Any = by_fold(source, Folds(3))
    for task, block in zip(view.delayed, view.blocks(0, view.n_blocks), strict=True):
        np.testing.assert_array_equal(task.compute(scheduler="threads").codes, block.codes)


def test_chunks_of_unknown_heights_have_numbered_rows() -> None:
    labels = da.from_array(Y, chunks=50)
    known = labels >= 1  # nobody knows how many are left of each chunk
    view = by_fold(open_source(da.from_array(DENSE, chunks=(50, WIDTH))[known], labels[known]), Folds(3))
    _, codes, _ = read(view)
    np.testing.assert_array_equal(codes // 2, [z % 3 for z in split_mix(int((Y >= 1).sum()))])


def test_fingerprints_tell_folds_apart(stores: Path) -> None:
    source = open_source(stores / "some.zarr")
    given = np.arange(ROWS) % 3
    views = [
        by_fold(source, Folds(3)),
        by_fold(source, Folds(4)),
        by_fold(source, Folds(3, given)),
        by_fold(source, Folds(3, given[::-1].copy())),
        *(without_fold(source, Folds(3), f) for f in range(3)),
    ]
    assert len({view.fingerprint for view in views} | {source.fingerprint}) == len(views) + 1
    assert by_fold(source, Folds(3)).fingerprint == views[0].fingerprint
    words = [Folds(3), Folds(4), Folds(3, given), Folds(3, given[::-1].copy())]
    assert len({str(folds.describe()) for folds in words}) == 4


def test_views_travel(stores: Path) -> None:
    view = by_fold(open_source(stores / "some.zarr"), Folds(3, np.arange(ROWS) % 3))
    copy = pickle.loads(pickle.dumps(view))
    np.testing.assert_array_equal(read(copy)[1], read(view)[1])


def test_rows_without_labels_are_named() -> None:
    source = open_source(X, [None, *Y[1:].tolist()])
    with pytest.raises(InputError, match="row 0: label missing"):
        read(by_fold(source, Folds(3)))
    with pytest.raises(InputError, match="rows without labels"):
        by_fold(open_source(X), Folds(3))


@pytest.mark.parametrize("count", [0, 1, -3, 5000])
def test_numbers_of_folds_that_make_no_sense_are_refused(count: int) -> None:
    with pytest.raises(InputError, match="give 2 or more"):
        Folds(count)


def test_folds_that_do_not_fit_the_data_are_refused() -> None:
    with pytest.raises(InputError, match="give each of them some rows"):
        Folds(3, np.array([0, 2, 2]))
    with pytest.raises(InputError, match="230 rows, and folds were given for 3"):
        by_fold(open_source(X, Y), Folds(3, np.array([0, 1, 2])))
    with pytest.raises(InputError, match="fold 3 of 3"):
        without_fold(open_source(X, Y), Folds(3), 3)
