"""A cluster that is closed while it works ends the work with an error of ours, whatever it was at."""

from __future__ import annotations

import logging
import threading
import time

import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster
from distributed.diagnostics.plugin import SchedulerPlugin

import nfs_dask as nfs
from nfs_dask.errors import ClusterError

Y = np.arange(40) % 2
DEADLINE = 20.0


@pytest.fixture
def started():
    """A cluster and its client, in threads of this process, which a test closes; quiet about it."""
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    with (
        LocalCluster(n_workers=1, processes=False, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield cluster, client
    logging.disable(level)


def slowly(block):
    time.sleep(0.3)
    return block


def rows():
    return da.from_array(np.ones((40, 3)), chunks=(4, 3)).map_blocks(slowly, meta=np.ones((0, 0)))


class Seen(SchedulerPlugin):
    """Notices a task of that name, however short it is."""

    def __init__(self, label):
        self.label = label
        self.event = threading.Event()

    def transition(self, key, start, finish, *args, **kwargs):
        if self.label in str(key):
            self.event.set()


def close_when(cluster, closed, label):
    """Close something as soon as the scheduler has had a task of that name."""
    cluster.scheduler.add_plugin(seen := Seen(label), name="seen")

    def wait():
        assert seen.event.wait(DEADLINE)
        time.sleep(0.2)
        closed.close()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


@pytest.mark.parametrize("what", ["cluster", "client"])
@pytest.mark.parametrize("label", ["nfs-warm", "nfs-fold-run"])
def test_a_fit_says_that_the_cluster_was_closed(started, what, label):
    cluster, client = started
    X = rows()
    thread = close_when(cluster, {"cluster": cluster, "client": client}[what], label)
    with pytest.raises(ClusterError, match="cluster or its client was closed.*a scheduler that stays"):
        nfs.SparseMultinomialNB(k=2, engine=nfs.DaskEngine(client)).fit(X, Y)
    thread.join()
