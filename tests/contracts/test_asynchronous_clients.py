"""A client in an event loop: passes are refused where they would block the loop, and run in a thread of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import dask.bag as db
import numpy as np
import pytest
from dask.distributed import Client, get_client
from scipy import sparse

import nfs_dask as nfs
from nfs_dask.errors import InputError

ROWS = np.random.default_rng(0).poisson(0.4, (240, 40)).astype(float)
Y = (ROWS[:, :3].sum(1) > 1).astype(int)


def lazy() -> da.Array:
    return da.from_array(ROWS, chunks=(40, -1))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("asynchronous") / "rows.zarr"
    nfs.ingest(sparse.csr_array(ROWS), place, labels=Y)
    return place


CALLS: dict[str, Callable[[Any], Any]] = {
    "a collection": lambda store: nfs.SparseMultinomialNB(4).fit(lazy(), Y),
    "lazy labels": lambda store: nfs.SparseMultinomialNB(4).fit(lazy(), da.from_array(Y, chunks=40)),
    "a bag": lambda store: nfs.ingest(db.from_sequence(["one two"] * 4), store.parent / "bag.zarr", min_df=1),
    "labels of a score": lambda store: nfs.SparseMultinomialNB(4).fit(ROWS, Y).score(ROWS, da.from_array(Y)),
    "persisted": lambda store: nfs.SparseMultinomialNB(4).fit(get_client().persist(lazy()), Y),
    "a store": lambda store: nfs.SparseMultinomialNB(4).fit(nfs.open_dataset(store, reuse=False)),
    "an engine": lambda store: nfs.SparseMultinomialNB(4, engine=nfs.DaskEngine()).fit(ROWS, Y),
    "score": lambda store: nfs.SparseMultinomialNB(4).fit(ROWS, Y).score(nfs.open_dataset(store)),
    "cross-validation": lambda store: nfs.cross_validate(nfs.open_dataset(store), method="l2", ks=[2], folds=3),
    "ingest": lambda store: nfs.ingest(lazy(), store.parent / "again.zarr", labels=Y),
    "plan": lambda store: nfs.plan(nfs.open_dataset(store, reuse=False), nfs.SparseMultinomialNB(4)),
}


def within_a_loop(cluster: Client, call: Callable[[], Any], in_a_thread: bool) -> Any:
    async def main() -> Any:
        async with Client(cluster.scheduler.address, asynchronous=True):
            return await asyncio.to_thread(call) if in_a_thread else call()

    return asyncio.run(main())


@pytest.mark.parametrize("what", CALLS)
def test_what_would_block_the_loop_is_refused_in_words(cluster: Client, store: Path, what: str) -> None:
    with pytest.raises(InputError, match=r"client is asynchronous.*asyncio\.to_thread"):
        within_a_loop(cluster, lambda: CALLS[what](store), in_a_thread=False)


@pytest.mark.parametrize("what", CALLS)
def test_the_way_that_is_named_works(cluster: Client, store: Path, what: str) -> None:
    def call() -> Any:
        return CALLS[what](store)

    assert within_a_loop(cluster, call, in_a_thread=True) is not None


def test_what_needs_no_cluster_runs_as_ever(cluster: Client) -> None:
    model = within_a_loop(cluster, lambda: nfs.SparseMultinomialNB(4).fit(ROWS, Y), in_a_thread=False)
    assert np.array_equal(model.predict(ROWS), nfs.SparseMultinomialNB(4).fit(ROWS, Y).predict(ROWS))
