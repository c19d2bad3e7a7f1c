"""A pass leaves a cluster as it found it: what its client holds is there, and nothing of the pass is."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.distributed import Client, wait
from scipy import sparse

import nfs_dask as nfs
from nfs_dask.errors import InputError

pytestmark = pytest.mark.timeout(400)  # clusters are started, and workers waited for

ROWS = np.random.default_rng(0).poisson(0.4, (240, 600)).astype(float)
Y = (ROWS[:, :3].sum(1) > 1).astype(int)

METHODS: dict[str, Callable[[Any], Any]] = {
    "bernoulli": lambda engine: nfs.SparseBernoulliNB(4, binarize=0.0, engine=engine),
    "multinomial": lambda engine: nfs.SparseMultinomialNB(4, engine=engine),
    "l2": lambda engine: nfs.SparseCentroid(4, engine=engine),
    "mahalanobis": lambda engine: nfs.SparseCentroid(4, metric="mahalanobis", engine=engine),
    "l1": lambda engine: nfs.SparseCentroid(4, metric="manhattan", engine=engine),
    "hybrid": lambda engine: nfs.HybridNB(regions=2, k=4, engine=engine),
    "error": lambda engine: nfs.ErrorRateSelector(4, engine=engine),
}


def lazy(kind: Callable[[Any], Any] = np.asarray) -> da.Array:
    return da.from_array(ROWS, chunks=(40, -1)).map_blocks(kind, dtype=float)


def frame() -> Any:
    return dd.from_pandas(pd.DataFrame(ROWS, columns=[f"gene{j}" for j in range(ROWS.shape[1])]), npartitions=3)


CONTAINERS: dict[str, Callable[[], Any]] = {
    "ndarray": lambda: ROWS,
    "csr": lambda: sparse.csr_array(ROWS),
    "lazy": lazy,
    "lazy sparse": lambda: lazy(sparse.csr_matrix),
    "persisted": lambda: lazy().persist(),
    "frame": frame,
    "persisted frame": lambda: frame().persist(),
}


def keys(client: Client) -> set[str]:
    """All tasks that the scheduler knows."""
    return set(client.run_on_scheduler(lambda dask_scheduler: [str(key) for key in dask_scheduler.tasks]))


def comes_true(condition: Callable[[], Any], seconds: float = 30) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@contextmanager
def complaints() -> Iterator[list[str]]:
    """Errors and warnings that the scheduler, which is in this process, and the client write to their logs."""
    told: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: told.append(record.getMessage())  # type: ignore[method-assign]
    loggers = [logging.getLogger(f"distributed.{name}") for name in ("core", "scheduler", "client", "utils")]
    for one in loggers:
        one.addHandler(handler)
    try:
        yield told
    finally:
        for one in loggers:
            one.removeHandler(handler)


@contextmanager
def undisturbed(client: Client, may_say: str = "nothing") -> Iterator[None]:
    """An array that was persisted before survives the block, and the scheduler has nothing more than before."""
    held = client.persist(da.random.default_rng(0).random((400, 4), chunks=(100, -1)))
    wait(held)
    total = float(held.sum().compute())
    before = keys(client)
    with complaints() as said:
        yield
        assert comes_true(lambda: keys(client) <= before, 15), keys(client) - before
    assert float(held.sum().compute()) == total
    assert [line for line in said if may_say not in line] == []


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("method", METHODS)
def test_of_a_fit_nothing_is_left(cluster: Client, method: str, container: str) -> None:
    X = CONTAINERS[container]()
    with undisturbed(cluster):
        model = METHODS[method](nfs.DaskEngine()).fit(X, Y)
    assert np.array_equal(model.get_support(), METHODS[method](nfs.SerialEngine()).fit(ROWS, Y).get_support())


TWO = np.arange(40_000) % 2


def measured(disturb: Callable[[Any], Any] = np.asarray) -> da.Array:
    """So many rows and columns that medians take several passes, whose parameters are shipped to workers."""
    rows = da.random.default_rng(1).random((len(TWO), 200), chunks=(5000, -1))
    return rows.map_blocks(disturb, dtype=float, meta=np.ones((0, 0)))


@pytest.mark.parametrize("persisted", [False, True])
def test_of_many_passes_nothing_is_left(cluster: Client, persisted: bool) -> None:
    X = measured().persist() if persisted else measured()
    with undisturbed(cluster):
        model = nfs.SparseCentroid(4, metric="manhattan").fit(X, TWO)
    medians = np.array([np.median(X.compute()[c == TWO], axis=0) for c in (0, 1)])
    assert np.allclose(model.centers_, medians[:, model.get_support(indices=True)])


def test_of_a_store_and_its_models_nothing_is_left(cluster: Client, tmp_path: Path) -> None:
    with undisturbed(cluster):
        data = nfs.ingest(sparse.csr_array(ROWS), tmp_path / "rows.zarr", labels=Y, block_bytes=2000)
        nfs.path(data, "multinomial", [2, 4])
        nfs.cross_validate(data, method="l2", ks=[2, 4], folds=3)
        model = nfs.SparseMultinomialNB(4).fit(data)
        model.score(data)
        assert len(model.predict(lazy()).compute()) == len(ROWS)


def raises(block: Any, block_info: Any = None) -> Any:
    if block_info[None]["chunk-location"][0] == 4:
        block = np.full_like(block, np.nan)
    return block


@pytest.mark.parametrize("method", METHODS)
def test_of_a_pass_that_failed_nothing_is_left(cluster: Client, method: str) -> None:
    X = lazy().map_blocks(raises, dtype=float)
    with undisturbed(cluster), pytest.raises(InputError, match="nan|NaN"):
        METHODS[method](nfs.DaskEngine()).fit(X, Y)


def slowly(block: Any) -> Any:
    time.sleep(0.2)
    return block


@contextmanager
def once(condition: Callable[[], bool], act: Callable[[], None]) -> Iterator[None]:
    """While the block runs, do something as soon as a condition holds."""
    thread = threading.Thread(target=lambda: comes_true(condition) and act())
    thread.start()
    try:
        yield
    finally:
        thread.join()


@pytest.mark.parametrize("lies", ["in memory", "in a collection"])
@pytest.mark.parametrize(("method", "task"), [("multinomial", "run"), ("l1", "run"), ("l1", "nfs-job")])
def test_of_what_ctrl_c_ended_nothing_is_left(cluster: Client, method: str, task: str, lies: str) -> None:
    X = measured(slowly)
    if lies == "in memory":
        X = X.compute()
    with (
        undisturbed(cluster),
        once(lambda: any(task in key for key in keys(cluster)), lambda: signal.raise_signal(signal.SIGINT)),
        pytest.raises(KeyboardInterrupt),
    ):
        METHODS[method](nfs.DaskEngine()).fit(X, TWO)


def dies(block: Any, mark: Path, block_info: Any = None) -> Any:
    """A block whose worker dies the first time."""
    if block_info[None]["chunk-location"][0] == 4 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return block


@pytest.mark.parametrize("method", ["multinomial", "l1"])
def test_of_a_pass_whose_worker_died_a_word_is_left(
    mortal_cluster: Client, method: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    X = measured()
    disturbed = X.map_blocks(dies, tmp_path / "died", dtype=float, meta=np.ones((0, 0)))
    with undisturbed(mortal_cluster, may_say="already computed task"):
        model = METHODS[method](nfs.DaskEngine()).fit(disturbed, TWO)
    assert (tmp_path / "died").exists()
    assert any("was lost, and others do its tasks again" in message for message in caplog.messages)
    assert np.array_equal(model.get_support(), METHODS[method](nfs.SerialEngine()).fit(X.compute(), TWO).get_support())


def test_all_passes_of_all_clients_share_one_topic(cluster: Client) -> None:
    with Client(cluster.scheduler.address, set_as_default=False) as other:
        for client in (cluster, cluster, other):
            nfs.SparseMultinomialNB(4, engine=nfs.DaskEngine(client)).fit(lazy(), Y)
        topics = cluster.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.get_events()))
    assert len([topic for topic in topics if topic.startswith("nfs")]) == 1
