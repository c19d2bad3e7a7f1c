"""An engine on the client or the cluster that a user has."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from distributed import Client, LocalCluster, Security
from sklearn.base import clone

import nfs_dask.cluster.finding as cluster_module
from nfs_dask import DaskEngine, SparseMultinomialNB
from nfs_dask.cli.corpus import GeneratedCorpus
from nfs_dask.errors import ClusterError, InputError
from nfs_dask.statistics.counts import ClassCounts
from nfs_dask.testing import assert_same, fold

CORPUS = GeneratedCorpus(60, 40, 2, planted=2, block_rows=20)
COUNTS = ClassCounts(2)
TRUTH = fold(COUNTS, CORPUS.blocks(0, CORPUS.n_blocks))


def threads(**keywords):
    return LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None, **keywords)


@pytest.fixture(scope="module")
def local():
    with threads(protocol="tcp") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def client(local):
    with Client(local, set_as_default=False) as client:
        yield client


@pytest.fixture(params=["client", "cluster", "address"])
def given(request, local, client):
    return {"client": client, "cluster": local, "address": local.scheduler_address}[request.param]


def test_whatever_tells_a_scheduler_runs_passes(given, client, local):
    engine = DaskEngine(given, panels=3)
    assert engine == DaskEngine(local.scheduler_address, panels=3) and hash(engine) == hash(replace(engine))
    assert repr(local.scheduler_address) in repr(engine)
    assert_same(engine.reduce(COUNTS, CORPUS).state, TRUTH, exact=True)
    assert client.status == "running" and local.status.name == "running"


def test_a_given_client_is_the_one_that_is_used(client, monkeypatch):
    monkeypatch.setattr(cluster_module, "connect", None)  # no other is opened
    engine = DaskEngine(client)
    copies = [engine, replace(engine, panels=2), copy.copy(engine), copy.deepcopy(engine)]
    copies.append(clone(SparseMultinomialNB(2, engine=engine)).engine)
    for one in copies:
        with one.executor() as executor:
            assert executor._client is client
    assert client.status == "running"


def test_estimators_with_such_an_engine_fit_clone_and_pickle(given):
    X, y = np.eye(6, dtype=int), np.arange(6) % 2
    fitted = clone(SparseMultinomialNB(2, engine=DaskEngine(given))).fit(X, y)
    expected = SparseMultinomialNB(2).fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), expected.predict(X))


def test_what_leaves_the_process_is_an_address(given, local):
    engine = pickle.loads(pickle.dumps(DaskEngine(given, workers=2)))
    assert engine == DaskEngine(local.scheduler_address, workers=2) and type(engine.address) is str
    assert_same(engine.reduce(COUNTS, CORPUS).state, TRUTH, exact=True)


def test_an_adaptive_cluster_is_planned_for_at_its_largest():
    with threads() as local:
        local.adapt(minimum=1, maximum=3)
        assert DaskEngine(local).plan(COUNTS, CORPUS).resources.workers == 3


def test_certificates_come_with_clients_and_clusters(monkeypatch):
    monkeypatch.setattr(cluster_module, "CONNECT_SECONDS", 2.0)
    security = Security.temporary()
    with threads(security=security, protocol="tls") as local, Client(local, set_as_default=False) as client:
        for engine in (DaskEngine(client), copy.deepcopy(DaskEngine(local))):
            assert engine.address.startswith("tls://")
            assert_same(engine.reduce(COUNTS, CORPUS).state, TRUTH, exact=True)
        with pytest.raises(InputError, match=r"tls://.* takes certificates, and there are none"):
            pickle.loads(pickle.dumps(DaskEngine(client))).reduce(COUNTS, CORPUS)


def test_what_is_closed_is_said():
    with threads() as local:
        client = Client(local, set_as_default=False)
        on_client, on_cluster = DaskEngine(client), DaskEngine(local)
        client.close()
        with pytest.raises(ClusterError, match="the Client of .* that the engine was given is closed"):
            on_client.reduce(COUNTS, CORPUS)
        with pytest.raises(ClusterError, match="the Client is closed; give one that is open"):
            DaskEngine(client)
    with pytest.raises(ClusterError, match="the LocalCluster of .* is closed"):
        on_cluster.reduce(COUNTS, CORPUS)
    with pytest.raises(ClusterError, match="the LocalCluster is closed"):
        DaskEngine(local)


class Asynchronous:
    scheduler_address = "tcp://127.0.0.1:1"
    status = "running"
    asynchronous = True


@pytest.mark.parametrize("wrong", [5, "", " ", ["tcp://a:1"], Security(), Client, Asynchronous()], ids=repr)
def test_what_tells_no_scheduler_is_refused(wrong):
    with pytest.raises(InputError, match=r"such as 'tcp://10.0.0.1:8786'.*Client|is asynchronous"):
        DaskEngine(wrong)
