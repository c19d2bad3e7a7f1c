"""Views hand out the features of documents, whatever they are read from and however the table lies."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from scipy import sparse

from nfs_dask.arrays.block import Block, check_structure
from nfs_dask.engine.distributed import DaskEngine
from nfs_dask.engine.serial import SerialEngine
from nfs_dask.errors import InputError
from nfs_dask.files.folder import Folder
from nfs_dask.sources import region_features as features
from nfs_dask.sources.open_source import open_source
from nfs_dask.sources.region_features import FeatureView, n_columns
from nfs_dask.sources.source import Source
from nfs_dask.sources.word_table_files import TableFiles, store_table
from nfs_dask.statistics import word_pairs
from nfs_dask.statistics.collected_rows import CollectedRows
from nfs_dask.statistics.counts import ClassCounts, sums
from nfs_dask.statistics.leave_one_out import RegionTable
from nfs_dask.store.layout import Layout
from nfs_dask.store.writer import write_store
from tests.helpers.region_features import region_features

N, R, V = 90, 3, 20
RNG = np.random.default_rng(4)
X = RNG.poisson(0.4, (N, R * V)) * (RNG.random((N, 1)) < 0.9)
WEIGHTS = RNG.choice([0.0, 0.25, 1.0, 2.0], N)
SUPPORT = np.array([0, 3, 4, 11, 19])


def source_of(kind: str, folder: Path, y: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The documents in several blocks."""
    monkeypatch.setattr("nfs_dask.sources.block_cuts.BLOCK_NBYTES", 8_000)
    if kind == "store":
        layout = Layout(chunk=64, shard=256, row_chunk=8, row_shard=32, block=200)
        write_store(open_source(sparse.csr_array(X), y, sample_weight=WEIGHTS), folder / "d.zarr", layout=layout)
        return open_source(folder / "d.zarr")
    if kind == "delayed":
        chunks, labels, weights = da.from_array(X, chunks=(40, -1)), da.from_array(y, chunks=40), WEIGHTS
        return open_source(chunks, labels, sample_weight=da.from_array(weights, chunks=40))
    return open_source(sparse.csr_array(X) if kind == "sparse" else X.astype(np.float32), y, sample_weight=WEIGHTS)


def table_of(source: Source, n_classes: int, separate: bool, support: Any) -> tuple[RegionTable, Any]:
    f = sums(SerialEngine().reduce(ClassCounts(n_classes), source).state.arrays).reshape(n_classes, R, V)
    f = f if separate else f.sum(axis=1)
    kept = f if support is None else np.ascontiguousarray(f[..., support])
    return RegionTable(R, V, f.sum(axis=-1), 0.5, support), kept


def read(source: Source) -> tuple[Any, Any, Any]:
    """The matrix, codes and weights of a source."""
    parts = []
    for block in source.blocks(0, source.n_blocks):
        check_structure(block)
        assert block.full
        assert block.nnz <= source.block_entries
        assert block.nbytes <= source.block_nbytes
        parts.append((block.data.reshape(block.n_rows, -1), block.codes, block.weights))
    matrix, codes, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
    return matrix, codes, weights


def whole_block(y: Any) -> Block:
    matrix = sparse.csr_array(X)
    return Block(matrix.indptr.astype(np.int64), matrix.indices, matrix.data, y, R * V, WEIGHTS)


@pytest.mark.parametrize("kind", ["store", "sparse", "dense", "delayed"])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize(
    ("separate", "support", "normalize", "leave_out"),
    [(False, None, True, True), (True, None, False, True), (False, SUPPORT, True, True), (True, SUPPORT, True, False)],
)
def test_features_are_those_of_the_documents(
    kind: str,
    n_classes: int,
    separate: bool,
    support: Any,
    normalize: bool,
    leave_out: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    y = np.random.default_rng(0).integers(n_classes, size=N)
    source = source_of(kind, tmp_path, y, monkeypatch)
    assert source.n_blocks > 2
    table, counts = table_of(source, n_classes, separate, support)
    ways = {"normalize": normalize, "leave_out": leave_out}
    want = region_features(whole_block(y), table, counts, **ways).reshape(N, -1)
    view: Any = FeatureView(source, table, counts, **ways)
    assert isinstance(view, Source)
    assert (view.n_features, view.kind, view.trusted) == (R if n_classes == 2 else R * n_classes, "signed", True)
    assert view.n_features == n_columns(table)
    assert (view.n_rows, view.nnz, view.n_blocks) == (N, N * view.n_features, source.n_blocks)
    assert view.origin is source
    assert view.names(np.arange(1)) is None
    assert (view.delayed is None) == (source.delayed is None)
    assert view.is_shipped == source.is_shipped
    matrix, codes, weights = read(view)
    assert matrix.tobytes() == want.tobytes()
    np.testing.assert_array_equal(codes, y)
    np.testing.assert_array_equal(weights, WEIGHTS)
    if kind == "store":
        assert read(pickle.loads(pickle.dumps(view)))[0].tobytes() == want.tobytes()


@pytest.mark.parametrize("width", [1, 7, V])
@pytest.mark.parametrize("batch", [0, 3_000, 1 << 30])
def test_panels_and_pieces_change_no_bit(
    width: int, batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    y = RNG.integers(2, size=N)
    source = source_of("sparse", tmp_path, y, monkeypatch)
    table, counts = table_of(source, 2, True, None)
    want = read(FeatureView(source, table, counts, normalize=True, leave_out=True))[0]  # type: ignore[arg-type]
    bounds = (*range(0, V, width), V)
    stored = store_table(Folder.of(tmp_path / "table"), counts, bounds)
    monkeypatch.setattr(features, "PIECE_ROWS", 7)
    view: Any = FeatureView(source, table, stored, normalize=True, leave_out=True, batch_nbytes=batch)
    assert view.block_entries <= 7 * R
    assert read(view)[0].tobytes() == want.tobytes()
    rows = [block.first_row for block in view.blocks(0, view.n_blocks)]
    assert rows == sorted(set(rows))


@pytest.mark.parametrize("most", [0, 2, 5, 1000])
@pytest.mark.parametrize("separate", [False, True])
def test_panels_are_looked_at_together_where_few_words_are_frequent(
    most: int, separate: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``most`` words may have a number of their own in panels that are looked at together."""
    y = RNG.integers(2, size=N)
    monkeypatch.setattr("nfs_dask.sources.block_cuts.BLOCK_NBYTES", 8_000)
    source = open_source(sparse.csr_array(X), y)
    _, counts = table_of(source, 2, separate, None)
    counts = counts * np.where(RNG.random(V) < 0.3, 1000, 1)
    table = RegionTable(R, V, counts.sum(axis=-1), 1.0)
    want = region_features(replace(whole_block(y), weights=None), table, counts, normalize=True, leave_out=True)
    stored = store_table(Folder.of(tmp_path / "table"), counts, (0, 2, 5, 6, V))
    asked: list[int] = []
    monkeypatch.setattr(TableFiles, "laid_out", noted(TableFiles.laid_out, asked))
    monkeypatch.setattr("nfs_dask.statistics.word_pairs.NARROW", word_pairs.OWN + most)
    view: Any = FeatureView(source, table, stored, normalize=True, leave_out=True, batch_nbytes=1000)
    found = [block.data for block in view.blocks(0, source.n_blocks)]
    assert np.concatenate(found).tobytes() == want.tobytes()
    assert (len(asked) == len(stored)) == (most == 1000), "a table in one piece is read once"


def noted(function: Any, asked: list[int]) -> Any:
    def stored(self: Any, panel: int) -> Any:
        asked.append(panel)
        return function(self, panel)

    return stored


def test_wider_tables_and_batches_are_planned_for(tmp_path: Path) -> None:
    source = open_source(sparse.csr_matrix(X), np.arange(N) % 2)
    table, counts = table_of(source, 2, False, None)
    stored = store_table(Folder.of(tmp_path), counts, (0, 5, V))
    wide = RegionTable(R, V, table.totals)
    views = [
        FeatureView(source, wide, counts, normalize=True, leave_out=True),
        FeatureView(source, wide, stored, normalize=True, leave_out=True, batch_nbytes=1000),
        FeatureView(source, wide, stored, normalize=True, leave_out=True, batch_nbytes=3000),
    ]
    needs = [view.import_nbytes for view in views]
    assert needs[1] - needs[0] == 3 * 2 * 15 * 8 - (3 + 1) * 2 * V * 8 + 1000  # the table, and work on panels of it
    assert needs[2] - needs[1] == 2000


def test_fingerprints_tell_features_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = source_of("store", tmp_path, RNG.integers(2, size=N), monkeypatch)
    table, counts = table_of(source, 2, False, None)

    def fingerprint(table: RegionTable, normalize: bool = True, leave_out: bool = True) -> str | None:
        kept = counts[:, : table.n_kept]
        return FeatureView(source, table, kept, normalize=normalize, leave_out=leave_out).fingerprint

    tables = [
        table,
        RegionTable(R, V, table.totals, 1.0),
        RegionTable(R, V, table.totals, 0.5, SUPPORT),
        RegionTable(R, V, table.totals, 0.5, SUPPORT + (SUPPORT == 4)),
        RegionTable(R, V, table.totals + 1, 0.5),
    ]
    different = {fingerprint(one) for one in tables} | {fingerprint(table, normalize=False), source.fingerprint}
    assert len(different) == len(tables) + 2
    assert fingerprint(table) == fingerprint(RegionTable(R, V, table.totals.copy(), 0.5))
    assert fingerprint(table, leave_out=False) is None, "its table may be of any data"


@pytest.mark.parametrize("kind", ["store", "sparse", "delayed"])
def test_workers_read_them(cluster: Any, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    y = RNG.integers(2, size=N)
    source = source_of(kind, tmp_path, y, monkeypatch)
    table, counts = table_of(source, 2, False, None)
    view: Any = FeatureView(source, table, counts, normalize=True, leave_out=True)
    state = DaskEngine().reduce(CollectedRows(2, N), view).state
    assert state.arrays["rows"].tobytes() == read(view)[0].tobytes()
    np.testing.assert_array_equal(state.totals["codes"], y)


def test_bad_documents_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "PIECE_ROWS", 7)
    table, counts = RegionTable(R, V, np.ones(2, np.int64)), np.ones((2, V), np.int64)

    def read_of(matrix: Any, y: Any) -> None:
        read(FeatureView(open_source(matrix, y), table, counts, normalize=True, leave_out=True))  # type: ignore[arg-type]

    missing = np.arange(N) % 2 + 0.0
    missing[40] = np.nan
    with pytest.raises(InputError, match="row 40: label missing"):
        read_of(sparse.csr_matrix(X), missing)
    with pytest.raises(InputError, match="negative value -1"):
        read_of(sparse.csr_matrix(-X.clip(max=1)), np.arange(N) % 2)
    damaged = sparse.csr_matrix(X)
    damaged.indptr[0] = 1
    with pytest.raises(InputError, match="row pointers|not a valid"):
        read_of(damaged, np.arange(N) % 2)
    with pytest.raises(InputError, match="are not 3 regions of 20 words"):
        read_of(sparse.csr_matrix(X[:, 1:]), np.arange(N) % 2)
