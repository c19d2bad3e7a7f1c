"""Addresses of schedulers: which stay on this machine, which are encrypted, and which are refused.

Whoever reaches a scheduler can run code on its workers. So what is neither encrypted nor on loopback is refused unless
that is said on purpose. An address is judged by how it is written, and names are not looked up, but for ``localhost``:
what a name leads to may change between the look and the connection.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TypeAlias

from nfs_dask.errors import InputError, warn

Ip: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

ENCRYPTED = frozenset({"tls", "wss", "gateway"})  # the last is Dask Gateway's, over TLS
OWN_GATEWAY = "gateway"  # alone: the cluster that the user has there
INSECURE = "nfs-dask.insecure"  # a key of Dask's configuration

# What else an address may hold, users, paths, queries, scopes, is not of an address on loopback.
_HOST = re.compile(r"(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<host>[\w.-]+))(?::(?P<port>\d{1,5}))?", re.ASCII)
_SCHEMES = frozenset({"", "tcp", "tls", "ws", "wss", "ucx"})

_warned: set[str] = set()


def is_encrypted(address: str) -> bool:
    """Whether what is said to this scheduler cannot be read on the way."""
    scheme, found, _ = address.rpartition("://")
    if address == OWN_GATEWAY:
        return True
    if not found:
        import dask

        scheme = str(dask.config.get("distributed.comm.default-scheme", "tcp"))
    return scheme in ENCRYPTED


def is_loopback(address: str) -> bool:
    """Whether an address such as ``tcp://127.0.0.1:8786`` stays on this machine.

    >>> is_loopback("tcp://127.0.0.1:8786"), is_loopback("tcp://[::1]:8786"), is_loopback("scheduler:8786")
    (True, True, False)
    """
    scheme = address.rpartition("://")[0]
    if scheme == "inproc":  # Dask takes those of this process only
        return True
    host = _host_of(address)
    if host is None or scheme not in _SCHEMES:
        return False
    ip = _ip_of(host)
    return host.lower() == "localhost" if ip is None else ip.is_loopback


def check_encryption(address: str, insecure: bool = False, certificates: bool = False) -> None:
    """Refuse to talk to a scheduler elsewhere without encryption, unless that is ``insecure`` on purpose."""
    if is_encrypted(address):
        return
    if certificates:
        raise InputError(f"certificates were given, but {address} is not encrypted; write tls://...")
    if insecure or is_loopback(address) or _allowed():
        return
    raise InputError(
        f"{address} is not encrypted, and whoever reaches such a scheduler can run code on its workers"
        f"{_hint(address)}; start it with certificates, which nfs-dask doctor --make-certificates writes, and give "
        "tls://..., or say insecure=True if nobody else reaches it"
    )


def warn_unless_encrypted(address: str, insecure: bool = False) -> None:
    """Warn once of a connection that the user has made, which can be neither undone nor refused."""
    if insecure or is_encrypted(address) or is_loopback(address) or address in _warned or _allowed():
        return
    warn(
        f"traffic with {address} is not encrypted, and whoever reaches this scheduler can run code on its workers; "
        f"start the cluster with certificates, or, if nobody else reaches it, set {INSECURE} in Dask's configuration"
    )
    _warned.add(address)


def host_and_port(address: str) -> tuple[str, int] | None:
    """Where a connection goes; None of an address that is not a host and a port.

    >>> host_and_port("tls://10.0.0.1:8786"), host_and_port("inproc://10.0.0.1/12/1")
    (('10.0.0.1', 8786), None)
    """
    found = _HOST.fullmatch(address.rpartition("://")[2])
    return None if found is None or found["port"] is None else (found["six"] or found["host"], int(found["port"]))


def _allowed() -> bool:
    """Whether Dask's configuration says that nobody else reaches any scheduler."""
    import dask

    return bool(dask.config.get(INSECURE, False))


def _host_of(address: str) -> str | None:
    """The host of an address that is a host and maybe a port; None of any other."""
    found = _HOST.fullmatch(address.rpartition("://")[2])
    return None if found is None else found["six"] or found["host"]


def _ip_of(host: str) -> Ip | None:
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return None
    return getattr(ip, "ipv4_mapped", None) or ip  # ::ffff:127.0.0.1 is 127.0.0.1


def _hint(address: str) -> str:
    """What is worth knowing of an address that someone may have taken for one of this machine alone."""
    host = _host_of(address)
    ip = None if host is None else _ip_of(host)
    if host is not None and ip is None:
        return " (names are not looked up; a scheduler that listens on loopback here is at 127.0.0.1)"
    if ip is not None and ip.is_unspecified:
        return f" ({host} means every interface; a scheduler that listens on loopback here is at 127.0.0.1)"
    if ip is not None and _is_ours(ip):
        return " (this is an address of this machine, but others reach it; let the scheduler listen on 127.0.0.1)"
    return ""


def _is_ours(ip: Ip) -> bool:
    import psutil

    return any(str(ip) == one.address for found in psutil.net_if_addrs().values() for one in found)
