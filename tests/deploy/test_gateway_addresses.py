"""Addresses of clusters at a gateway, and what is said where none can be reached."""

from __future__ import annotations

import sys

import dask
import numpy as np
import pytest

import nfs_dask as nfs
from nfs_dask.cluster.finding import connect
from nfs_dask.errors import ClusterError
from tests.helpers.commands import run
from tests.helpers.hub import free_ports


@pytest.mark.parametrize("address", ["gateway", "gateway://0123abcd", "gateway://10.0.0.1:8586/0123abcd"])
def test_without_the_package_it_says_what_to_install(address, monkeypatch):
    monkeypatch.setitem(sys.modules, "dask_gateway", None)
    assert "needs dask-gateway; pip install 'nfs-dask[gateway]'" in run("doctor", "--scheduler", address, code=4).stderr


def test_a_gateway_that_does_not_answer_is_named(monkeypatch):
    pytest.importorskip("dask_gateway", reason="dask-gateway is not installed")
    (port,) = free_ports(1)
    with dask.config.set({"gateway.address": f"http://127.0.0.1:{port}"}):
        refused = pytest.raises(ClusterError, match=r"gateway://0123abcd cannot be reached .*DASK_GATEWAY__ADDRESS")
        with refused, connect("gateway://0123abcd"):
            pass
        model = nfs.SparseMultinomialNB(k=2, engine=nfs.DaskEngine("gateway://0123abcd"))
        with pytest.raises(ClusterError, match="gateway://0123abcd cannot be reached"):
            model.fit(np.eye(4), [0, 1, 0, 1])


def test_without_an_address_it_says_where_one_belongs():
    pytest.importorskip("dask_gateway", reason="dask-gateway is not installed")
    with dask.config.set({"gateway.address": None}):
        said = run("doctor", "--scheduler", "gateway", code=4).stderr
    assert "No dask-gateway address provided" in said and "DASK_GATEWAY__ADDRESS is its address" in said


def test_certificates_are_the_gateways(tmp_path):
    for name in ("ca", "cert", "key"):
        (tmp_path / name).touch()
    files = [part for name in ("ca", "cert", "key") for part in (f"--tls-{name}", tmp_path / name)]
    said = run("doctor", "--scheduler", "gateway://0123abcd", *files, code=2).stderr
    assert "a gateway has the certificates of its clusters" in said
