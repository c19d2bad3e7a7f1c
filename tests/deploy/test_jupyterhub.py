"""A hub and a gateway from the shipped configuration: users work through them, and not beyond what they may."""

from __future__ import annotations

import contextlib
import socket
import ssl
import stat
import textwrap
import time
from pathlib import Path

import nbformat
import psutil
import pytest

from tests.helpers.hub import PASSWORD, processes_in, running_hub, signed_in, skip_without_hub, wait_until
from tests.notebooks.test_notebooks_run import COMPLAINT, FOUND

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "2-big-data.ipynb"
LIMITS = {"clusters": 1, "workers": 2, "worker_cores": [1, 2], "worker_memory": [0.5, 1]}
NEW = "from dask_gateway import Gateway; cluster = Gateway().new_cluster({}); cluster.scale({})"
IDLE_SECONDS = 20  # longer than a worker takes to start on a busy machine


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    skip_without_hub()
    settings = {"hub": {"users": ["alice", "bob"]}, "limits": LIMITS}
    with running_hub(tmp_path_factory.mktemp("hub"), settings) as hub:
        yield hub


@pytest.fixture(scope="module")
def alice(hub):
    with hub.session("alice") as session:
        yield session


@pytest.fixture(scope="module")
def bob(hub):
    return hub.token_of("bob")


@pytest.fixture
def cluster(hub, alice):
    """A cluster of one worker of the user, by its name; it is the variable ``cluster`` of the kernel."""
    for left in hub.gateway("GET", "/clusters/", alice.token).json():  # by a test that has failed
        hub.gateway("DELETE", f"/clusters/{left}", alice.token)
    wait_until(lambda: not hub.gateway("GET", "/clusters/", alice.token).json())
    alice.run(NEW.format("", 1))
    yield alice.value("cluster.name")
    alice.run("cluster.shutdown()")


def test_a_kernel_runs_the_notebook_through_the_gateway(hub, alice):
    cells = [cell.source for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell.cell_type == "code"]
    said = [alice.run(cell) for cell in [*cells, textwrap.dedent(FOUND["2-big-data"])]]
    assert not [text for text in said if COMPLAINT.search(text)]
    assert "2 workers with 2 GiB together; dashboard: /user/alice/proxy/" in said[1]
    assert "the same model: True" in "".join(said)
    assert alice.value("[type(cluster).__name__, cluster.status]") == ["GatewayCluster", "closed"]
    assert hub.gateway("GET", "/clusters/", alice.token).json() == {}
    wait_until(lambda: not list((hub.folder / "state" / "clusters").iterdir()))


def test_a_command_reaches_the_cluster_of_its_user_by_name(alice, cluster):
    alice.run("import subprocess, numpy as np, scipy.sparse as sp, nfs_dask as nfs")
    alice.run("X = sp.csr_array(np.random.default_rng(0).poisson(0.2, (4000, 300))); y = np.arange(4000) % 2")
    alice.run("nfs.ingest(X, 'rows.zarr', labels=y)")
    for i, address in enumerate(["gateway", f"gateway://{cluster}", alice.value("cluster.scheduler_address")]):
        command = f"['nfs-dask', 'fit', 'rows.zarr', 'model{i}', '-k', '7', '--scheduler', '{address}', '--json']"
        alice.run(f"subprocess.run({command}, check=True, capture_output=True)")
        alice.run(f"there = nfs.load_model('model{i}'); here = nfs.SparseMultinomialNB(k=7).fit(X, y)")
        assert alice.value("int((there.coef_ != here.coef_).sum())") == 0
    assert alice.value("cluster.status") == "running"


def test_a_command_leaves_its_fit_to_the_cluster_it_finds_by_name(alice, cluster):
    alice.run("import json, subprocess, numpy as np, scipy.sparse as sp, nfs_dask as nfs")
    alice.run("from nfs_dask.engine.run_status import read_status; cluster.scale(2)")
    alice.run("cluster.get_client().wait_for_workers(2)")
    alice.run("X = sp.csr_array(np.random.default_rng(1).poisson(0.2, (4000, 300))); y = np.arange(4000) % 2")
    alice.run("nfs.ingest(X, 'others.zarr', labels=y)")
    words = ["fit", "others.zarr", "others.model", "-k", "7", "--no-cache", "--run", "others", "--scheduler", "gateway"]
    command = ["nfs-dask", *words, "--detach", "--on-cluster", "--json"]
    alice.run(f"said = json.loads(subprocess.run({command}, check=True, capture_output=True).stdout)")
    wait_until(lambda: not alice.value("read_status('others').live"))
    assert alice.value("read_status('others').state") == "finished"
    assert alice.value("read_status('others').driver.pid") == alice.value("said['pid']")
    alice.run("there = nfs.load_model('others.model'); here = nfs.SparseMultinomialNB(k=7).fit(X, y)")
    assert alice.value("int((there.coef_ != here.coef_).sum())") == 0


def test_passes_are_planned_for_the_maximum_of_an_adaptive_cluster(alice, cluster):
    planned = "nfs.plan(rows, nfs.SparseMultinomialNB(k=2), engine=nfs.DaskEngine(client)).resources.workers"
    alice.run("import numpy as np, nfs_dask as nfs; client = cluster.get_client(); client.wait_for_workers(1)")
    alice.run("rows = nfs.open_dataset(np.eye(4), labels=[0, 1, 0, 1])")
    assert alice.value(planned) == 1
    alice.run("cluster.adapt(minimum=1)")
    assert alice.value(planned) == LIMITS["workers"]
    alice.run("client.close()")


LEFT = """
import json
from dask_gateway import Gateway
from nfs_dask.cli.fit import submit_fit
cluster = Gateway().new_cluster(shutdown_on_close=False)
cluster.scale(2)
client = cluster.get_client()
client.wait_for_workers(2)
told = submit_fit(client, "rows.zarr", "left.model", "-k", "7", "--no-cache", "--run", "left")
print(json.dumps([cluster.name, told["pid"]]))
"""


def test_a_fit_that_is_left_to_its_cluster_outlives_who_left_it(hub, alice):
    """A program makes a cluster, leaves a fit to it, and ends; a worker drives on."""
    alice.run("import json, subprocess, sys, numpy as np, scipy.sparse as sp, nfs_dask as nfs")
    alice.run("from nfs_dask.engine.run_status import read_status")
    alice.run("X = sp.csr_array(np.random.default_rng(0).poisson(0.2, (4000, 300))); y = np.arange(4000) % 2")
    alice.run("nfs.ingest(X, 'rows.zarr', labels=y, overwrite=True)")
    alice.run(f"done = subprocess.run([sys.executable, '-c', {LEFT!r}], capture_output=True, text=True)")
    assert alice.value("done.returncode") == 0, alice.value("done.stderr")
    name, pid = alice.value("json.loads(done.stdout.splitlines()[-1])")
    try:
        wait_until(lambda: not alice.value("read_status('left').live"))
        assert alice.value("read_status('left').state") == "finished"
        assert alice.value("read_status('left').driver.pid") == pid
        alice.run("there = nfs.load_model('left.model'); here = nfs.SparseMultinomialNB(k=7).fit(X, y)")
        assert alice.value("int((there.coef_ != here.coef_).sum())") == 0
    finally:
        hub.gateway("DELETE", f"/clusters/{name}", alice.token)
    wait_until(lambda: not hub.gateway("GET", "/clusters/", alice.token).json())


# What users may have


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"worker_cores": 3}, "worker_cores must be <= 2"),
        ({"worker_memory": 64.0}, "worker_memory must be <= 1"),
        ({"idle_minutes": 600.0}, "idle_minutes must be <= 30"),
        ({"environment": "mine"}, "'mine' is not a valid option for environment"),
        ({"worker_cmd": "sh"}, "Unknown fields ['worker_cmd']"),
    ],
)
def test_more_than_a_user_may_have_is_refused_with_the_limit(hub, bob, options, said):
    answer = hub.gateway("POST", "/clusters/", bob, json={"cluster_options": options})
    assert (answer.status_code, said in answer.json()["error"]) == (422, True), answer.text
    assert hub.gateway("GET", "/clusters/", bob).json() == {}


def test_a_user_has_no_more_clusters_and_workers_at_once_than_allowed(hub, alice, cluster):
    answer = hub.gateway("POST", "/clusters/", alice.token, json={})
    assert answer.status_code == 422
    assert f"alice has 1 cluster(s) already, {cluster}, and may have 1; end one first" in answer.json()["error"]
    assert "would exceed resource limit of 2 workers. Scaling to 2 instead" in alice.run("cluster.scale(9)")
    assert alice.value("len(cluster.get_client().wait_for_workers(2) or cluster.scheduler_info['workers'])") == 2
    time.sleep(3)  # time enough for a third to come
    assert alice.value("len(cluster.scheduler_info['workers'])") == 2


def test_an_idle_cluster_ends_by_itself_and_a_busy_one_does_not(hub, alice):
    alice.run(NEW.format(f"idle_minutes={IDLE_SECONDS / 60}", 1))
    alice.run(f"import time; client = cluster.get_client(); client.submit(time.sleep, {1.5 * IDLE_SECONDS}).result()")
    name = alice.value("cluster.name")
    folder = hub.folder / "state" / "clusters" / name
    assert hub.gateway("GET", f"/clusters/{name}", alice.token).json()["status"] == "RUNNING"
    assert len(processes_in(folder)) >= 2
    wait_until(lambda: hub.gateway("GET", f"/clusters/{name}", alice.token).json()["status"] == "STOPPED")
    wait_until(lambda: not folder.exists() and not processes_in(folder))
    alice.run("client.close(); cluster.close()")


# Who gets in


@pytest.mark.parametrize(
    ("user", "password", "status"), [("bob", PASSWORD, 302), ("bob", "guessed", 403), ("mallory", PASSWORD, 403)]
)
def test_who_is_not_listed_or_does_not_know_the_password_is_not_signed_in(hub, user, password, status):
    assert signed_in(hub, user, password) == status


def test_who_has_no_token_or_a_wrong_one_has_no_cluster(hub):
    assert hub.gateway("POST", "/clusters/", None, json={}).status_code == 401
    assert hub.gateway("POST", "/clusters/", "0123456789abcdef", json={}).status_code == 401
    answer = hub.ask("POST", "/hub/api/users/bob/tokens", json={"scopes": ["read:users:name!user"]})
    assert hub.gateway("POST", "/clusters/", answer.json()["token"], json={}).status_code == 401  # may see a name only


def test_a_user_reaches_neither_the_server_nor_the_cluster_of_another(hub, alice, bob, cluster):
    assert hub.ask("GET", "/user/alice/api/contents", bob).status_code == 403
    assert hub.ask("GET", "/user/alice/api/contents", None).status_code == 403
    assert alice.ask("GET", "/api/contents").status_code == 200
    assert hub.gateway("GET", "/clusters/", bob).json() == {}
    for method, path in (("GET", ""), ("POST", "/scale"), ("POST", "/adapt"), ("DELETE", "")):
        answer = hub.gateway(method, f"/clusters/{cluster}{path}", bob, json={"count": 0})
        assert answer.status_code == 403 and "bob lacks permissions" in answer.json()["error"]
    assert hub.gateway("GET", f"/clusters/{cluster}", alice.token).json()["status"] == "RUNNING"


def test_a_dashboard_shows_through_the_server_of_its_user_only(hub, alice, bob, cluster):
    link = alice.value("cluster.dashboard_link")
    assert link.startswith("/user/alice/proxy/") and cluster in link
    page = hub.ask("GET", link, alice.token)
    assert page.status_code == 200 and "Dask" in page.text
    assert hub.ask("GET", link, bob).status_code == 403
    assert hub.ask("GET", link, None).status_code in (302, 403)
    outside = hub.ask("GET", f"/services/dask-gateway/clusters/{cluster}/status", alice.token)
    assert outside.status_code in (302, 404) and "Dask" not in outside.text


def test_schedulers_speak_to_nobody_without_the_certificate_of_the_cluster(hub, alice, cluster):
    def heard(context):
        with socket.create_connection(("127.0.0.1", hub.schedulers), timeout=30) as plain:
            if context is None:
                plain.sendall(b"\x01\x00\x00\x00\x00\x00\x00\x00")
                return plain.recv(64)
            with context.wrap_socket(plain, server_hostname=f"daskgateway-{cluster}") as encrypted:
                return encrypted.recv(64)

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with pytest.raises(ssl.SSLError, match=r"(?i)certificate.required|handshake.failure"):
        heard(context)
    context.load_cert_chain(*(hub.folder / "certificates" / "made" / f"client{end}.pem" for end in ("", "-key")))
    with pytest.raises(ssl.SSLError, match=r"(?i)unknown.ca|certificate"):
        heard(context)
    with contextlib.suppress(ConnectionResetError):
        assert heard(None) == b""
    assert alice.value("cluster.get_client().submit(sum, [1, 2]).result()") == 3


# What is left to be read


def test_secrets_are_in_no_log_no_list_of_processes_and_no_file_that_others_read(hub, alice, cluster):
    told = "\n".join(" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"]))
    for secret in (hub.token, alice.token, alice.value("__import__('os').environ['JUPYTERHUB_API_TOKEN']")):
        assert secret not in told and secret not in hub.log
    private = hub.folder / "state" / "hub"
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    assert {path.name for path in private.iterdir()} >= {"hub.sqlite", "cookie_secret"}


def test_all_that_listens_is_on_this_machine_alone(hub, cluster):
    ours = [hub.process.pid, *(child.pid for child in psutil.Process(hub.process.pid).children(recursive=True))]
    ours += [process.pid for process in processes_in(hub.folder)]
    ports = [one for one in psutil.net_connections("tcp") if one.pid in ours and one.status == psutil.CONN_LISTEN]
    assert len(ports) > 6
    assert {one.laddr.ip for one in ports} <= {"127.0.0.1", "::1"}
