"""Rows written into files are read as they were, by anybody; files that are there are not written again."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from scipy import sparse

from nfs_dask.arrays.block import check_structure
from nfs_dask.engine.distributed import DaskEngine
from nfs_dask.engine.serial import SerialEngine, SerialExecutor
from nfs_dask.errors import StoreError
from nfs_dask.files.folder import Folder
from nfs_dask.sources.open_source import open_source
from nfs_dask.sources.row_files import RowFiles, write_row_files
from nfs_dask.sources.source import Source
from nfs_dask.sources.views import some_columns
from nfs_dask.statistics.collected_rows import CollectedRows
from nfs_dask.store.layout import Layout
from nfs_dask.store.writer import write_store

N, M = 200, 5
RNG = np.random.default_rng(2)
X = RNG.normal(size=(N, M)) * (RNG.random((N, M)) < 0.7)
Y = RNG.integers(3, size=N)
SMALL = Layout(chunk=16, shard=64, row_chunk=8, row_shard=32, block=20)


@pytest.fixture(params=[None, "whole", "real"])
def source(request: Any, tmp_path: Path) -> Any:
    """A store of many blocks, more than there are files at least."""
    weights = {None: None, "whole": RNG.integers(0, 3, N), "real": RNG.random(N)}[request.param]
    write_store(open_source(sparse.csr_array(X), Y, sample_weight=weights), tmp_path / "d.zarr", layout=SMALL)
    opened = open_source(tmp_path / "d.zarr")
    assert opened.n_blocks > 20
    return opened


def files_of(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def assert_same(rows: Source, source: Source) -> None:
    """The same rows, one after another, in blocks as large as was said."""
    found, want = (list(one.blocks(0, one.n_blocks)) for one in (rows, source))
    for block in found:
        check_structure(block)
        assert block.full
        assert block.nnz <= rows.block_entries
        assert block.nbytes <= rows.block_nbytes
    np.testing.assert_array_equal(np.concatenate([block.data for block in found]).reshape(N, M), X)
    np.testing.assert_array_equal(np.concatenate([block.codes for block in found]), Y)
    assert [block.number for block in found] == list(range(rows.n_blocks))
    assert [block.first_row for block in found] == [block.first_row for block in want]
    if source.weighted:
        np.testing.assert_array_equal(
            np.concatenate([block.weights for block in found]), np.concatenate([block.weights for block in want])
        )


def test_rows_are_read_as_they_were_written(source: Any, tmp_path: Path) -> None:
    rows: Any = write_row_files(source, Folder.of(tmp_path / "rows"), SerialExecutor())
    assert isinstance(rows, Source)
    assert (rows.n_rows, rows.n_features, rows.nnz, rows.weighted) == (N, M, N * M, source.weighted)
    assert rows.fingerprint == source.fingerprint
    np.testing.assert_array_equal(rows.classes, source.classes)
    assert rows.origin is source
    assert rows.names(np.arange(1)) is None
    assert rows.read_nbytes <= sum(path.stat().st_size for path in (tmp_path / "rows").iterdir())
    assert_same(rows, source)
    assert_same(pickle.loads(pickle.dumps(rows)), source)


def test_what_travels_is_not_the_data(tmp_path: Path) -> None:
    big = open_source(np.ones((5_000, 20)), np.arange(5_000) % 2)
    view: Any = some_columns(big, np.arange(2))
    rows = write_row_files(view, Folder.of(tmp_path), SerialExecutor())
    assert rows.origin is big
    assert len(pickle.dumps(rows)) < 5_000


def test_whole_files_are_kept_and_damaged_ones_are_made_again(source: Any, tmp_path: Path) -> None:
    folder = tmp_path / "rows"
    write_row_files(source, Folder.of(folder), SerialExecutor())
    names = files_of(folder)
    times = {name: (folder / name).stat().st_mtime_ns for name in names}
    whole = (folder / names[0]).read_bytes()
    (folder / names[0]).write_bytes(whole[:20] + bytes([whole[20] ^ 1]) + whole[21:])
    (folder / names[1]).write_bytes(b"half")
    rows = write_row_files(source, Folder.of(folder), SerialExecutor())
    assert files_of(folder) == names
    assert {name for name in names if (folder / name).stat().st_mtime_ns != times[name]} == set(names[:2])
    assert_same(rows, source)


def test_every_flipped_byte_is_noticed(source: Any, tmp_path: Path) -> None:
    rows: Any = write_row_files(source, Folder.of(tmp_path / "rows"), SerialExecutor())
    path = tmp_path / "rows" / files_of(tmp_path / "rows")[3]
    whole = bytearray(path.read_bytes())
    silent = 0
    for at in range(len(whole)):
        whole[at] ^= 1 << at % 8
        path.write_bytes(whole)
        try:
            assert_same(rows, source)
            silent += 1
        except StoreError as error:
            assert path.name in str(error)  # noqa: PT017
        whole[at] ^= 1 << at % 8
    assert silent <= 7 * len(rows._pieces)  # padding


def test_workers_write_and_read_them(cluster: Any, tmp_path: Path) -> None:
    write_store(open_source(sparse.csr_array(X), Y), tmp_path / "d.zarr", layout=SMALL)
    source: Any = open_source(tmp_path / "d.zarr")
    with DaskEngine().executor() as executor:
        rows: Any = write_row_files(source, Folder.of(tmp_path / "rows"), executor)
    assert_same(rows, source)
    assert isinstance(rows, RowFiles)
    for engine in (SerialEngine(), DaskEngine()):
        state = engine.reduce(CollectedRows(3, N), rows).state
        np.testing.assert_array_equal(state.arrays["rows"], X)


@pytest.mark.parametrize("engine", [SerialEngine(), DaskEngine()])
def test_blocks_that_are_tasks_are_written_where_they_are_made(cluster: Any, engine: Any, tmp_path: Path) -> None:
    source: Any = open_source(da.from_array(X, chunks=(60, -1)), da.from_array(Y, chunks=60))
    with engine.executor() as executor:
        rows: Any = write_row_files(source, Folder.of(tmp_path), executor)
    assert len(files_of(tmp_path)) == source.n_blocks == 4
    np.testing.assert_array_equal(np.concatenate([block.data for block in rows.blocks(0, 4)]).reshape(N, M), X)
    np.testing.assert_array_equal(np.concatenate([block.codes for block in rows.blocks(0, 4)]), Y)


def test_far_away(s3: str, tmp_path: Path) -> None:
    source = open_source(X, Y)
    rows: Any = write_row_files(source, Folder.of(f"{s3}/rows"), SerialExecutor())
    assert_same(rows, source)
