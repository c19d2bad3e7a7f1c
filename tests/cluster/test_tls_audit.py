"""Who gets in at schedulers and workers with certificates, by handshakes of raw sockets, and what doctor says of it."""

from __future__ import annotations

import os
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import distributed
import pytest

from nfs_dask.cluster.addresses import host_and_port
from nfs_dask.cluster.examine import Report, examine
from nfs_dask.cluster.finding import connect
from nfs_dask.cluster.tls import make_certificates
from nfs_dask.cluster.tls_audit import Place, audit_tls, greets, greets_anonymous, greets_plain
from nfs_dask.errors import ClusterError, InputError
from tests.helpers.certificates import Certificates
from tests.helpers.commands import run


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates.made(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def encrypted(certificates: Certificates) -> Iterator[Any]:
    """A scheduler and a worker of Dask with certificates."""
    with distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        processes=False,
        protocol="tls://",
        host="127.0.0.1",
        security=certificates.security(),
        dashboard_address="127.0.0.1:0",
        scheduler_kwargs={"dashboard": False},
        silence_logs=50,
    ) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def plain() -> Iterator[Any]:
    with distributed.LocalCluster(
        n_workers=1, processes=False, protocol="tcp", host="127.0.0.1", dashboard_address=None, silence_logs=50
    ) as cluster:
        yield cluster


@pytest.fixture(params=["scheduler", "worker"])
def door(request: pytest.FixtureRequest, encrypted: Any) -> Place:
    (worker,) = encrypted.workers.values()
    address = encrypted.scheduler_address if request.param == "scheduler" else worker.address
    found = host_and_port(address)
    assert address.startswith("tls://") and found is not None
    return found


def test_certificates_of_ours_open_scheduler_and_worker(door: Place, certificates: Certificates) -> None:
    assert greets(door, certificates.context("ours"))


@pytest.mark.parametrize("kind", ["foreign", "expired"])
def test_others_do_not(door: Place, certificates: Certificates, kind: str) -> None:
    context = certificates.context(kind)
    assert not greets(door, context)
    alert = {"foreign": "unknown ca|decrypt error", "expired": "certificate expired"}[kind]
    refused = pytest.raises(ssl.SSLError, match=f"(?i){alert}")
    with refused, socket.create_connection(door, 5) as raw, context.wrap_socket(raw) as connection:
        connection.recv(1)


def test_nor_does_none_or_no_encryption(door: Place) -> None:
    assert not greets_anonymous(door)
    assert not greets_plain(door)


def test_a_plain_scheduler_talks_to_everyone(plain: Any) -> None:
    """So the tests above would notice a door that is open."""
    place = host_and_port(plain.scheduler_address)
    assert place is not None and greets_plain(place)


@pytest.fixture
def lax(certificates: Certificates) -> Iterator[Place]:
    """A server that encrypts, and asks nobody for a certificate."""
    files = certificates.of("scheduler")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files["cert"], files["key"])
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                raw, _ = server.accept()
                with context.wrap_socket(raw, server_side=True) as connection:
                    connection.sendall(b"hello")
            except ssl.SSLError:
                continue
            except OSError:
                return

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield server.getsockname()
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join(5)


def client_of(place: Place, certificates: Certificates, kind: str = "ours") -> Any:
    """Of a scheduler that is nothing but a door."""
    files = certificates.of("client", kind)
    security = distributed.Security(
        tls_ca_file=files["ca"], tls_client_cert=files["cert"], tls_client_key=files["key"], require_encryption=True
    )
    scheduler = SimpleNamespace(address="tls://{}:{}".format(*place), identity=None)
    return SimpleNamespace(scheduler=scheduler, security=security, sync=lambda *_, **__: {"services": {}})


def test_a_scheduler_that_asks_for_no_certificate_is_a_problem(lax: Place, certificates: Certificates) -> None:
    report = Report([])
    audit_tls(report, client_of(lax, certificates))
    (problem,) = report.problems
    assert "lets in whoever comes without a certificate" in problem


def test_a_tunnel_that_takes_encryption_off_is_a_problem(plain: Any, certificates: Certificates) -> None:
    place = host_and_port(plain.scheduler_address)
    assert place is not None
    report = Report([])
    audit_tls(report, client_of(place, certificates))
    assert any("lets in whoever comes without encryption" in problem for problem in report.problems)


# What doctor says


def options(certificates: Certificates, kind: str = "ours") -> list[str]:
    files = certificates.of("client", kind)
    return ["--tls-ca", files["ca"], "--tls-cert", files["cert"], "--tls-key", files["key"]]


def test_encryption_is_told(encrypted: Any, certificates: Certificates) -> None:
    with connect(encrypted.scheduler_address, *certificates.of("client").values()) as client:
        report = examine(client)
    assert report.encrypted is True
    assert report.problems == []


def test_doctor_of_a_sound_scheduler(encrypted: Any, certificates: Certificates) -> None:
    shown = run("doctor", "--scheduler", encrypted.scheduler_address, *options(certificates)).stdout
    assert "traffic is encrypted" in shown and "nothing stands in the way" in shown
    assert "note:" not in shown.replace("note: no memory limit", "")


def test_doctor_of_pages_that_are_open(certificates: Certificates) -> None:
    with (
        distributed.LocalCluster(
            n_workers=0, processes=False, protocol="tcp", host="127.0.0.1", dashboard_address=":0", silence_logs=50
        ) as cluster,
        connect(cluster.scheduler_address) as client,
    ):
        report = Report([])
        audit_tls(report, client)
    (note,) = report.notes
    assert "without a certificate; start it with --dashboard-address 127.0.0.1:" in note


def test_certificates_that_end_soon_or_are_for_others_or_readable(tmp_path: Path) -> None:
    make_certificates(tmp_path / "soon", ["scheduler.example.org"], days=7)
    own = Certificates(tmp_path)
    (tmp_path / "ours").symlink_to("soon")
    (tmp_path / "soon" / "client-key.pem").chmod(0o640)
    with distributed.LocalCluster(
        n_workers=0, protocol="tls://", host="127.0.0.1", security=own.security(), dashboard_address=None
    ) as cluster:
        shown = " ".join(run("doctor", "--scheduler", cluster.scheduler_address, *options(own)).stdout.split())
    assert f"note: the authority {tmp_path}/ours/ca.pem expires on 20" in shown
    assert f"note: the certificate {tmp_path}/ours/client.pem expires on 20" in shown
    assert "note: the scheduler's certificate expires on" in shown
    assert "is for scheduler.example.org, and not for 127.0.0.1; Dask does not look at names" in shown
    assert f"client-key.pem can be read by others than you; chmod 600 {tmp_path}/ours/client-key.pem" in shown


@pytest.mark.parametrize(
    ("kind", "why"), [("expired", r"client.pem has expired on 20\d\d"), ("foreign", "cannot be reached")]
)
def test_connections_that_fail_say_which_certificate_is_why(
    encrypted: Any, certificates: Certificates, kind: str, why: str
) -> None:
    files = certificates.of("client", kind)
    with pytest.raises(ClusterError, match=why), connect(encrypted.scheduler_address, *files.values(), seconds=1):
        pass


def test_a_certificate_of_another_authority_is_named(encrypted: Any, certificates: Certificates) -> None:
    ours, foreign = certificates.of("client"), certificates.of("client", "foreign")
    with (
        pytest.raises(ClusterError, match=r"client.pem is not of the authority .*ours/ca.pem"),
        connect(encrypted.scheduler_address, ours["ca"], foreign["cert"], foreign["key"], seconds=1),
    ):
        pass


def test_files_that_do_not_go_together_are_refused(encrypted: Any, certificates: Certificates, tmp_path: Path) -> None:
    files, worker = certificates.of("client"), certificates.of("worker")
    (tmp_path / "text.pem").write_text("nothing")
    for given in (
        (files["ca"], files["cert"], worker["key"]),
        (str(tmp_path / "text.pem"), files["cert"], files["key"]),
        (files["ca"], str(tmp_path / "none.pem"), files["key"]),
    ):
        with pytest.raises(InputError, match="the certificates for tls://.* cannot be used"):
            connect(encrypted.scheduler_address, *given).__enter__()


def test_workers_without_encryption_are_a_problem(encrypted: Any, certificates: Certificates) -> None:
    with connect(encrypted.scheduler_address, *certificates.of("client").values()) as client:
        identity = client.scheduler.identity

        async def one_is_plain(**keywords: Any) -> Any:
            info = await identity(**keywords)
            workers = {address.replace("tls://", "tcp://"): worker for address, worker in info["workers"].items()}
            return {**info, "workers": workers}

        client.scheduler.identity = one_is_plain
        report = examine(client)
    assert any("traffic with workers at tcp://127.0.0.1" in problem for problem in report.problems)


def test_keys_are_only_for_their_owner(certificates: Certificates) -> None:
    assert os.stat(certificates.of("client")["key"]).st_mode & 0o077 == 0
