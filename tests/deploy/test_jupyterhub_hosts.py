"""A hub for others: on an address that is not loopback, with a certificate, and its user on another host.

Hosts are network namespaces. The tests are on that of the user, and so is all that they start.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.helpers.fault_hosts import done, hosts, missing
from tests.helpers.hub import PASSWORD, running_hub, signed_in, skip_without_hub, wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(missing()), reason=f"needs {missing()}"),
]

LIMITS = {"workers": 2, "worker_memory": [0.5, 1]}
PROGRAM = """
import subprocess, sys
import numpy as np
import nfs_dask as nfs
from dask_gateway import Gateway
with Gateway().new_cluster(worker_memory=1) as cluster:
    cluster.scale(2)
    client = cluster.get_client()
    client.wait_for_workers(2)
    X, y = np.random.default_rng(0).poisson(0.2, (4000, 300)), np.arange(4000) % 2
    here = nfs.SparseMultinomialNB(k=7, engine=nfs.SerialEngine()).fit(X, y)
    there = nfs.SparseMultinomialNB(k=7, engine=nfs.DaskEngine(client)).fit(X, y)
    assert cluster.scheduler_address.startswith(sys.argv[1])
    assert (here.coef_ == there.coef_).all()
    nfs.ingest(X, "rows.zarr", labels=y)
    command = ["nfs-dask", "fit", "rows.zarr", "rows.model", "-k", "7", "--scheduler", "gateway"]
    subprocess.run([sys.executable, "-m", "dask", "nfs", *command[1:]], check=True)
    assert (here.coef_ == nfs.load_model("rows.model").coef_).all()
"""


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    """The hub, and the host that it is on."""
    skip_without_hub()
    settings = {"hub": {"users": ["alice"]}, "limits": LIMITS}
    folder = tmp_path_factory.mktemp("hub")
    with hosts(2) as (server, user), user.visited(), running_hub(folder, settings, host=server) as hub:
        yield hub, server


def test_a_user_elsewhere_signs_in_and_works_in_a_session(there):
    hub, server = there
    assert hub.url.startswith(f"https://{server.address}:")
    assert [signed_in(hub, "alice", word) for word in ("guessed", PASSWORD)] == [403, 302]
    with hub.session("alice") as session:
        session.run("from dask_gateway import Gateway; cluster = Gateway().new_cluster(); cluster.scale(1)")
        assert session.value("cluster.get_client().submit(sum, [1, 2]).result()") == 3
        assert "Dask" in hub.ask("GET", session.value("cluster.dashboard_link"), session.token).text
        session.run("cluster.shutdown()")


def test_a_program_elsewhere_has_a_cluster_and_leaves_none(there, tmp_path):
    """Where the gateway is and who asks is said by the environment, as a session of the hub has it."""
    hub, server = there
    told = {
        "DASK_GATEWAY__ADDRESS": f"{hub.url}/services/dask-gateway",
        "DASK_GATEWAY__PROXY_ADDRESS": f"gateway://{server.address}:{hub.schedulers}",
        "DASK_GATEWAY__AUTH__TYPE": "jupyterhub",
        "JUPYTERHUB_API_TOKEN": hub.token_of("alice"),
        "SSL_CERT_FILE": hub.authority,
    }
    command = [sys.executable, "-c", PROGRAM, f"gateway://{server.address}:"]
    ran = subprocess.run(command, env=os.environ | told, cwd=tmp_path, capture_output=True, text=True, timeout=400)
    assert ran.returncode == 0, ran.stderr
    assert hub.gateway("GET", "/clusters/", told["JUPYTERHUB_API_TOKEN"]).json() == {}
    wait_until(lambda: not list((hub.folder / "state" / "clusters").iterdir()))


def test_others_reach_the_encrypted_ports_of_hub_and_schedulers_alone(there):
    hub, server = there
    lines = done(*server.within, "ss", "-H", "-l", "-t", "-n").splitlines()
    found = {line.split()[3] for line in lines}
    assert len(found) > 4
    public = {address for address in found if not address.startswith("127.0.0.1:")}
    assert public == {hub.url.removeprefix("https://"), f"{server.address}:{hub.schedulers}"}
