"""Who gets in at a scheduler: looked at from outside, as a stranger would."""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from typing import Any

import psutil

from nfs_dask.cluster.addresses import host_and_port, is_encrypted, is_loopback
from nfs_dask.cluster.examine import Report
from nfs_dask.cluster.finding import scheduler_info
from nfs_dask.cluster.tls import SOON, troubles_of

SECONDS = 5.0  # that a stranger waits for an answer
_NOISE = bytes(64)  # no beginning of an encrypted conversation

Place = tuple[str, int]


def audit_tls(report: Report, client: Any) -> None:
    """Add to a report who else gets in where this client did, and what its certificates are worth."""
    if report.gateway:  # which makes the certificates of its clusters, and stands between them and strangers
        return
    address = str(client.scheduler.address)
    place = host_and_port(address)
    if is_encrypted(address):
        for trouble in troubles_of(client.security):
            (report.problems if trouble.grave else report.notes).append(trouble.text)
    if place is None:
        return
    if address.startswith("tls://"):
        _judge_strangers(report, place)
        _judge_certificate(report, place, client.security)
    _judge_dashboard(report, address, place[0], client)


def greets_plain(place: Place) -> bool:
    """Whether a server of Dask talks to whoever comes without encryption."""
    try:
        with socket.create_connection(place, SECONDS) as connection:
            connection.sendall(_NOISE)
            answer = connection.recv(1)
    except OSError:  # refused
        return False
    return answer not in (b"", b"\x15")  # an alert of TLS


def greets_anonymous(place: Place) -> bool:
    """Whether it talks to whoever comes with encryption, and without a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return greets(place, context)


def greets(place: Place, context: ssl.SSLContext) -> bool:
    """Whether it talks to whoever comes with such certificates. A refusal comes when the first words are read."""
    try:
        with socket.create_connection(place, SECONDS) as plain, context.wrap_socket(plain) as connection:
            return connection.recv(1) != b""
    except OSError:
        return False


def _judge_strangers(report: Report, place: Place) -> None:
    if greets_plain(place):
        report.problems.append("the scheduler lets in whoever comes without encryption; start it with --protocol tls")
    if greets_anonymous(place):
        report.problems.append(
            "the scheduler lets in whoever comes without a certificate; start it as Dask does, with --tls-ca-file, "
            "--tls-cert and --tls-key"
        )


def _judge_certificate(report: Report, place: Place, security: Any) -> None:
    """Look at the certificate that the scheduler shows, which Dask compares with no name."""
    context = security.get_connection_args("client")["ssl_context"]
    try:
        with socket.create_connection(place, SECONDS) as plain, context.wrap_socket(plain) as connection:
            shown = connection.getpeercert()
        context.check_hostname = True
        with socket.create_connection(place, SECONDS) as plain, context.wrap_socket(plain, server_hostname=place[0]):
            pass
    except ssl.SSLCertVerificationError:
        names = ", ".join(name for _, name in shown.get("subjectAltName", ())) or "no name"
        report.notes.append(
            f"the scheduler's certificate is for {names}, and not for {place[0]}; Dask does not look at names, so each "
            "machine with a certificate of this authority can pass for the scheduler"
        )
    except OSError as error:
        report.notes.append(f"the scheduler's certificate was not looked at ({error})")
        return
    left = ssl.cert_time_to_seconds(shown["notAfter"]) - time.time()
    if left < SOON.total_seconds():
        report.notes.append(f"the scheduler's certificate expires on {shown['notAfter']}; make new ones, for all")


def _judge_dashboard(report: Report, address: str, host: str, client: Any) -> None:
    port = scheduler_info(client).get("services", {}).get("dashboard")
    if not isinstance(port, int):
        return
    if _leads_out(host_and_port(address), port) if is_loopback(address) else _serves(host, port):
        report.notes.append(
            f"the pages of the scheduler at port {port} are open to whoever reaches this machine, without a "
            f"certificate; start it with --dashboard-address 127.0.0.1:{port}, and come by a tunnel (ssh -L) or a "
            "proxy that asks who is there"
        )


def _serves(host: str, port: int) -> bool:
    """Whether pages are served to this machine."""
    asked = http.client.HTTPConnection(host, port, timeout=SECONDS)
    try:
        asked.request("GET", "/health")
        return asked.getresponse().status < 400
    except (OSError, http.client.HTTPException):
        return False
    finally:
        asked.close()


def _leads_out(scheduler: Place | None, port: int) -> bool:
    """Whether the scheduler, a process of this machine, serves its pages on other interfaces than loopback."""
    try:
        found = [one for one in psutil.net_connections("tcp") if one.status == psutil.CONN_LISTEN]
    except psutil.AccessDenied:
        return False
    owners = {one.pid for one in found if scheduler is not None and one.laddr.port == scheduler[1]}
    pages = [one for one in found if one.laddr.port == port and one.pid in owners]
    return any(not is_loopback(f"[{one.laddr.ip}]" if ":" in one.laddr.ip else one.laddr.ip) for one in pages)
