"""Addresses of schedulers: which stay on this machine, which are encrypted, and which are refused.

Whoever reaches a scheduler can run code on its workers. So what is neither encrypted nor on loopback is refused unless
that is said on purpose. An address is judged by how it is written, and names are not looked up, but for ``localhost``:
what a name leads to may change between the look and the connection.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Any, TypeAlias

from nfs_dask.errors import ClusterError, InputError, warn
from nfs_dask.graphs import IN_A_THREAD

Ip: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

ENCRYPTED = frozenset({"tls", "wss", "gateway"})  # the last is Dask Gateway's, over TLS
OWN_GATEWAY = "gateway"  # alone: the cluster that the user has there
INSECURE = "nfs-dask.insecure"  # a key of Dask's configuration

# What else an address may hold, users, paths, queries, scopes, is not of an address on loopback.
_HOST = re.compile(r"(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<host>[\w.-]+))(?::(?P<port>\d{1,5}))?", re.ASCII)
_SCHEMES = frozenset({"", "tcp", "tls", "ws", "wss", "ucx"})

ACCEPTED = (
    "the address of a scheduler, such as 'tcp://10.0.0.1:8786', a distributed.Client, a cluster such as "
    "distributed.LocalCluster, or None for the current client"
)

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


class GivenAddress(str):
    """The address of a scheduler, with the client or cluster that told it.

    Copies in this process share that, and with it its certificates. What leaves the process is an address.
    """

    __slots__ = ("given",)
    given: Any

    @classmethod
    def of(cls, given: Any) -> GivenAddress:
        """Of a client or a cluster; anything else is refused."""
        address = cls(_address(given))
        address.given = given
        return address

    def __copy__(self) -> GivenAddress:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> GivenAddress:
        return self

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)

    def check(self) -> None:
        """Refuse what was closed since."""
        if not _is_open(self.given):
            raise ClusterError(
                f"the {type(self.given).__name__} of {self} that the engine was given is closed; give one that is open"
            )


def checked_address(address: Any) -> str | None:
    """The address of whatever tells a scheduler."""
    if address is None or isinstance(address, GivenAddress):
        return address
    if isinstance(address, str):
        if not address.strip():
            raise InputError(f"the address of a scheduler is {address!r}; give {ACCEPTED}")
        return address
    return GivenAddress.of(address)


def is_client(given: Any) -> bool:
    """Whether this is a client of a scheduler."""
    from distributed import Client

    return isinstance(given, Client)


def _address(given: Any) -> str:
    if not is_client(given) and not hasattr(type(given), "scheduler_address"):
        raise InputError(f"DaskEngine was given {given!r:.80}, which tells no scheduler; give {ACCEPTED}")
    name = type(given).__name__
    if getattr(given, "asynchronous", False):
        raise InputError(f"the {name} is asynchronous, and passes are waited for; give another one, or {IN_A_THREAD}")
    if not _is_open(given):
        raise ClusterError(f"the {name} is closed; give one that is open, or the address of a scheduler")
    return str(given.scheduler.address if is_client(given) else given.scheduler_address)


def _is_open(given: Any) -> bool:
    status = given.status
    if is_client(given):
        return bool(status == "running")
    return getattr(status, "name", status) == "running"  # a word of an enumeration, or of clusters by others the word
