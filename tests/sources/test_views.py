"""Views hand out exactly the columns and blocks that were asked for, whatever they are taken from."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from dask import delayed
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from nfs_dask.arrays.block import Block, check_structure
from nfs_dask.engine.distributed import DaskEngine
from nfs_dask.engine.serial import SerialEngine
from nfs_dask.errors import InputError
from nfs_dask.sources.labelled import Labelled
from nfs_dask.sources.open_source import open_source
from nfs_dask.sources.source import Source
from nfs_dask.sources.views import ColumnChoice, some_blocks, some_columns
from nfs_dask.statistics.counts import ClassCounts, sums
from nfs_dask.store.layout import Layout
from nfs_dask.store.writer import write_store
from tests.helpers.strategies import awkward_csr

RNG = np.random.default_rng(8)
ROWS, WIDTH = 230, 150
X = RNG.integers(0, 9, (ROWS, WIDTH)) * (RNG.random((ROWS, WIDTH)) < 0.3)
DENSE = RNG.normal(size=(ROWS, WIDTH)).astype(np.float32)
Y = RNG.integers(0, 3, ROWS)
COLUMNS = np.array([0, 3, 62, 63, 64, 65, 127, 128, 149])
NAMES = [f"w{i}" for i in range(WIDTH)]


def matrix_of(block: Block) -> Any:
    check_structure(block)
    shape = (block.n_rows, block.n_features)
    return sparse.csr_array((block.data, block.indices, block.indptr), shape=shape).toarray()


def read(source: Source) -> tuple[Any, Any]:
    blocks = list(source.blocks(0, source.n_blocks))
    for block in blocks:
        assert block.nnz <= source.block_entries
        assert block.nbytes <= source.block_nbytes
    return np.concatenate([matrix_of(block) for block in blocks]), np.concatenate([block.codes for block in blocks])


@pytest.fixture(scope="module")
def stores(tmp_path_factory: Any) -> Path:
    folder: Path = tmp_path_factory.mktemp("views")
    layout = Layout(chunk=256, shard=1024, row_chunk=8, row_shard=32, block=600)
    write_store(open_source(sparse.csr_array(X), Y), folder / "sparse.zarr", names=NAMES, layout=layout)
    return folder


def source_of(kind: str, stores: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """A source of that kind in several blocks, and its matrix."""
    monkeypatch.setattr("nfs_dask.sources.block_cuts.BLOCK_NBYTES", 10 * WIDTH * 12)
    if kind == "store":
        return open_source(stores / "sparse.zarr"), X
    if kind == "sparse":
        return open_source(sparse.csr_array(X), Y, names=NAMES), X
    if kind == "dense":
        return open_source(DENSE, Y, names=NAMES), DENSE
    chunks = da.from_array(DENSE, chunks=(50, WIDTH))
    return open_source(chunks, da.from_array(Y, chunks=50), names=NAMES), DENSE


KINDS = pytest.mark.parametrize("kind", ["store", "sparse", "dense", "delayed"])


# Columns


@KINDS
def test_some_columns_are_those_of_the_matrix(kind: str, stores: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, matrix = source_of(kind, stores, monkeypatch)
    view = some_columns(source, COLUMNS)
    assert isinstance(view, Source)
    assert isinstance(view, Source)
    assert (view.n_features, view.n_rows, view.n_blocks) == (len(COLUMNS), ROWS, source.n_blocks)
    assert (view.delayed is None, view.is_shipped) == (source.delayed is None, source.is_shipped)
    got, codes = read(view)
    np.testing.assert_array_equal(got, matrix[:, COLUMNS])
    np.testing.assert_array_equal(codes, Y)
    assert view.names(np.array([1, 8])) == ["w3", "w149"]
    assert next(view.blocks(0, 1)).full == (kind in ("dense", "delayed"))


@KINDS
@pytest.mark.parametrize("distributed", [False, True])
def test_engines_reduce_views(
    kind: str, distributed: bool, stores: Path, monkeypatch: pytest.MonkeyPatch, cluster: Any
) -> None:
    source, matrix = source_of(kind, stores, monkeypatch)
    numbers = np.arange(0, source.n_blocks, 2)
    edges = np.cumsum([0, *(block.n_rows for block in source.blocks(0, source.n_blocks))])
    rows = np.concatenate([np.arange(edges[n], edges[n + 1]) for n in numbers])
    whole = np.abs(matrix)[rows][:, COLUMNS]
    source = open_source(np.abs(DENSE), Y) if kind == "dense" else source
    if kind == "delayed":
        source = open_source(da.from_array(np.abs(DENSE), chunks=(50, WIDTH)), da.from_array(Y, chunks=50))
    view = some_columns(some_blocks(source, numbers), COLUMNS)
    engine = DaskEngine() if distributed else SerialEngine()
    state = engine.reduce(ClassCounts(3), view).state
    expected = np.array([whole[Y[rows] == c].sum(axis=0, dtype=np.float64) for c in range(3)])
    np.testing.assert_allclose(sums(state.arrays), expected, rtol=1e-12)


@given(awkward_csr(), st.data())
def test_any_columns_of_any_rows(matrix: Any, data: Any) -> None:
    width = matrix.shape[1]
    columns = np.array(sorted(data.draw(st.sets(st.integers(0, width - 1), min_size=1))))
    codes = np.zeros(matrix.shape[0], np.int32)
    block = Block(matrix.indptr.astype(np.int64), matrix.indices, matrix.data, codes, width)
    got = ColumnChoice(columns, width).of(block)
    np.testing.assert_array_equal(matrix_of(got), matrix.toarray()[:, columns])
    assert got.data.dtype == block.data.dtype


def test_columns_far_apart_are_found() -> None:
    width = 70_000
    columns = np.sort(RNG.choice(width, 9000, replace=False))
    matrix = sparse.random_array((40, width), density=0.02, format="csr", rng=np.random.default_rng(1))
    source = open_source(matrix, np.arange(40) % 2)
    got, _ = read(some_columns(source, columns))
    np.testing.assert_array_equal(got, matrix.toarray()[:, columns])


def test_all_columns_are_the_source_itself() -> None:
    source = open_source(X, Y)
    assert some_columns(source, np.arange(WIDTH)) is source
    assert some_blocks(source, np.arange(source.n_blocks)) is source


@pytest.mark.parametrize("columns", [[], [3, 3], [5, 2], [-1, 4], [0, WIDTH]])
def test_columns_that_are_no_choice_are_refused(columns: list[int]) -> None:
    with pytest.raises(InputError, match="ascending order, of 0 to 149"):
        some_columns(open_source(X, Y), np.array(columns))


def test_damaged_columns_are_refused_before_a_kernel_sees_them() -> None:
    source = open_source(sparse.csr_array(X), Y)
    source._rows.indices[7] = 150  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="column 150: the data have 150 columns"):
        read(some_columns(source, COLUMNS))


# Blocks


@KINDS
def test_some_blocks_keep_their_numbers(kind: str, stores: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, matrix = source_of(kind, stores, monkeypatch)
    assert source.n_blocks > 4
    numbers = np.array([0, 1, 3, source.n_blocks - 1])
    view = some_blocks(source, numbers)
    assert isinstance(view, Source)
    assert (view.n_blocks, view.n_rows, view.n_features) == (4, -1, WIDTH)
    assert view.read_nbytes == source.read_nbytes * 4 // source.n_blocks
    blocks = list(view.blocks(0, 4))
    assert [block.number for block in blocks] == numbers.tolist()
    for block in blocks:
        np.testing.assert_array_equal(matrix_of(block), matrix[block.first_row : block.first_row + block.n_rows])
    assert [block.number for block in view.blocks(1, 3)] == [1, 3]
    assert view.names(np.array([2])) == ["w2"]


# Identity


def test_views_know_where_they_come_from(stores: Path) -> None:
    source = Labelled(open_source(stores / "sparse.zarr"), Y)
    view = some_blocks(some_columns(source, COLUMNS), np.array([0]))
    assert view.origin is source
    assert source.origin is source


def test_views_have_fingerprints_of_their_own(stores: Path) -> None:
    source = open_source(stores / "sparse.zarr")
    views = [
        source,
        some_columns(source, np.array([0])),
        some_columns(source, np.array([1])),
        some_blocks(source, np.array([0])),
        some_blocks(source, np.array([1])),
        some_columns(some_blocks(source, np.array([0])), np.array([0])),
    ]
    fingerprints = [view.fingerprint for view in views]
    assert len(set(fingerprints)) == len(views)
    assert some_columns(source, np.array([1], np.int32)).fingerprint == fingerprints[2]
    assert some_columns(open_source(X, Y), np.array([1])).fingerprint is None


def test_views_travel_light(stores: Path) -> None:
    view = some_columns(open_source(stores / "sparse.zarr"), COLUMNS)
    before = len(pickle.dumps(view))
    got, _ = read(view)
    assert len(pickle.dumps(view)) == before < 5000
    np.testing.assert_array_equal(read(pickle.loads(pickle.dumps(view)))[0], got)


def test_a_delayed_view_computes_nothing_before_it_is_read() -> None:
    asked: list[int] = []

    @delayed
    def chunk(number: int) -> Any:
        asked.append(number)
        return DENSE[50 * number : 50 * number + 50]

    array = da.concatenate([da.from_delayed(chunk(n), (50, WIDTH), np.float32) for n in range(4)])
    view = some_columns(some_blocks(open_source(array, Y[:200]), np.array([1, 3])), COLUMNS)
    assert asked == []
    got, _ = read(view)
    assert set(asked) == {1, 3}
    np.testing.assert_array_equal(got, DENSE[np.r_[50:100, 150:200]][:, COLUMNS])
