"""What a scheduler on a node of Kubernetes opens to whom."""

from __future__ import annotations

import socket
import ssl
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from distributed import Client, Security

from nfs_dask.cluster.tls import make_certificates


def security_of(certificates: Path) -> Security:
    files = {"tls_client_cert": "client.pem", "tls_client_key": "client-key.pem", "tls_ca_file": "ca.pem"}
    return Security(require_encryption=True, **{name: str(certificates / file) for name, file in files.items()})


def assert_serves_little(address: str) -> None:
    """Health, metrics and what the operator asks; no pages about tasks, data and logs."""

    def code(page: str) -> int:
        try:
            with urllib.request.urlopen(f"http://{address}:8787{page}", timeout=10) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return int(error.code)

    served, refused = ["/health", "/metrics", "/api/v1/check_idle"], ["/status", "/info/main/workers.html", "/json/"]
    assert {page: code(page) for page in served + refused} == dict.fromkeys(served, 200) | dict.fromkeys(refused, 404)


def assert_turns_away_who_has_no_certificate(address: str, certificates: Path) -> None:
    context = ssl.create_default_context(cafile=str(certificates / "ca.pem"))
    context.check_hostname = False  # Dask's certificates are for roles
    with (
        pytest.raises((ssl.SSLError, ConnectionResetError)),
        socket.create_connection((address, 8786), 10) as plain,
        context.wrap_socket(plain) as wrapped,
    ):
        wrapped.recv(1)  # TLS 1.3 tells at the first read
    make_certificates(certificates / "foreign")
    foreign = security_of(certificates / "foreign")
    foreign.tls_ca_file = str(certificates / "ca.pem")  # or the client itself would go no further
    for scheme, security in (("tcp", None), ("tls", foreign)):
        with pytest.raises((OSError, TimeoutError)):
            Client(f"{scheme}://{address}:8786", security=security, timeout=5)
