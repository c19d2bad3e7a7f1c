"""Data that workers cannot read themselves: matrices of the caller, and Dask collections."""

from __future__ import annotations

import weakref
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from distributed import Client, LocalCluster, wait

from nfs_dask.engine.choose import choose_engine
from nfs_dask.engine.distributed import DaskEngine
from nfs_dask.engine.serial import SerialEngine
from nfs_dask.errors import InputError
from nfs_dask.sources.dask_matrices import CollectionSource
from nfs_dask.sources.matrix_source import MatrixSource
from nfs_dask.statistics.counts import ClassCounts

RNG = np.random.default_rng(3)
X = sp.csr_matrix(RNG.integers(1, 9, (600, 70)) * (RNG.random((600, 70)) < 0.1))
Y = np.array(["a", "b", "c"])[RNG.integers(3, size=600)]
WANT = np.stack([X.toarray()[c == Y].sum(axis=0) for c in "abc"])
COUNTS = ClassCounts(3, with_documents=True)


def lazy_rows(meta: Any = None) -> da.Array:
    """X as a dask array of CSR chunks."""
    chunks = [da.from_delayed(_piece(i), (100, 70), dtype=X.dtype, meta=meta) for i in range(6)]
    return da.concatenate(chunks)


def _piece(i: int) -> Any:
    return dask.delayed(lambda: X[100 * i : 100 * i + 100])()


@pytest.mark.parametrize("panels", [None, 7])
@pytest.mark.parametrize("engine", [SerialEngine, DaskEngine])
def test_a_matrix_in_memory(cluster: Client, engine: Any, panels: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nfs_dask.sources.block_cuts.BLOCK_NBYTES", 5000)
    source = MatrixSource(X, Y)
    assert source.n_blocks > 5
    state = engine(panels=panels).reduce(COUNTS, source).state
    np.testing.assert_array_equal(state.arrays["sums"], WANT)
    assert state.arrays["sums"].dtype == np.int64


@pytest.mark.parametrize("panels", [None, 7])
@pytest.mark.parametrize("persisted", [False, True])
def test_a_dask_array(cluster: Client, panels: int | None, persisted: bool) -> None:
    lazy, labels = lazy_rows(), da.from_array(Y, chunks=100)
    if persisted:
        lazy = lazy.persist()
        wait(lazy)
    result = DaskEngine(panels=panels).reduce(COUNTS, CollectionSource(lazy, labels))
    np.testing.assert_array_equal(result.state.arrays["sums"], WANT)
    assert result.plan is not None
    assert len(result.plan.runs) == 6


def test_a_dask_array_runs_serially_too() -> None:
    source = CollectionSource(lazy_rows(), Y)
    np.testing.assert_array_equal(SerialEngine().reduce(COUNTS, source).state.arrays["sums"], WANT)


def test_a_bad_value_in_a_chunk_is_named(cluster: Client) -> None:
    lazy = lazy_rows().map_blocks(lambda block: -block)
    with pytest.raises(InputError, match="negative value -[0-9]+ in row 0, column"):
        DaskEngine().reduce(COUNTS, CollectionSource(lazy, Y))


def test_memory_runs_serially_unless_told_otherwise(cluster: Client) -> None:
    assert isinstance(choose_engine(None, MatrixSource(X, Y)), SerialEngine)
    assert isinstance(choose_engine(None, CollectionSource(lazy_rows(), Y)), DaskEngine)
    assert choose_engine(DaskEngine(workers=3), MatrixSource(X, Y)) == DaskEngine(workers=3)


class Counted(np.ndarray):
    """An array that knows how many of its kind are alive."""

    alive = 0
    most = 0


def counted(i: int) -> Any:
    chunk = X[10 * i : 10 * i + 10].toarray().view(Counted)
    Counted.alive += 1
    Counted.most = max(Counted.most, Counted.alive)
    weakref.finalize(chunk, lambda: setattr(Counted, "alive", Counted.alive - 1))
    return chunk


@pytest.mark.parametrize("panels", [None, 7])
def test_only_a_few_blocks_of_a_collection_are_alive(panels: int | None) -> None:
    chunks = [da.from_delayed(dask.delayed(counted)(i), (10, 70), dtype=X.dtype) for i in range(60)]
    source = CollectionSource(da.concatenate(chunks), Y)
    assert source.block_entries > 0  # looks at a chunk, if it has to, before the count begins
    Counted.most = 0
    with (
        LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as local,
        Client(local),
    ):
        state = DaskEngine(panels=panels).reduce(COUNTS, source).state
    np.testing.assert_array_equal(state.arrays["sums"], WANT)
    assert 0 < Counted.most <= 8


def test_only_a_few_blocks_of_a_matrix_are_sent_at_a_time(cluster: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nfs_dask.sources.block_cuts.BLOCK_NBYTES", 2000)
    sent: list[Any] = []
    held: list[int] = []
    scatter = Client.scatter

    def watched(self: Client, *args: Any, **kwargs: Any) -> Any:
        future = scatter(self, *args, **kwargs)
        sent.append(weakref.ref(future))
        held.append(sum(ref() is not None and not ref().cancelled() for ref in sent))
        return future

    monkeypatch.setattr(Client, "scatter", watched)
    state = DaskEngine(panels=1).reduce(COUNTS, MatrixSource(X, Y)).state
    np.testing.assert_array_equal(state.arrays["sums"], WANT)
    assert len(held) > 20
    assert max(held) <= 5
